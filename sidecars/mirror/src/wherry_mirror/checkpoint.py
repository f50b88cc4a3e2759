"""MirrorCheckpointConnector: where consumer groups would go on in the target cluster.

Offsets of groups are translated by the offset syncs that the copying itself tells. What has changed is written as
checkpoints; with `sync.group.offsets.enabled` groups that nobody uses in the target cluster are moved there, forwards
only.
"""

from __future__ import annotations

import contextlib
import time
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, ClassVar

from confluent_kafka import OFFSET_BEGINNING, Consumer, KafkaError, KafkaException, TopicPartition

from wherry.contract.errors import TransientError
from wherry.contract.mirror import CHECKPOINT_CLASS, Checkpoint, OffsetSync
from wherry.sdk import Offsets, Plan, Record, Source, Task, Work
from wherry_mirror.clusters import Cluster
from wherry_mirror.config import GROUP_FILTER, TOPIC_FILTER, CheckpointConfig, problems
from wherry_mirror.filters import dealt, matcher
from wherry_mirror.syncs import SyncStore

SYNCS_READ_S = 30.0
CONSUME_MAX = 1_000


class MirrorCheckpoint(Source[CheckpointConfig]):
    """Writes checkpoints to the target cluster."""

    class_name = CHECKPOINT_CLASS
    aliases: ClassVar[Sequence[str]] = ("MirrorCheckpoint", "MirrorCheckpointConnector")
    parkable = False

    @classmethod
    def validate(cls, config: CheckpointConfig, connect: bool) -> Mapping[str, str]:
        """Patterns must be some, clusters have addresses, and filters be those that are here."""
        return problems(
            config,
            {
                "group.filter.class": (config.group_filter_class, GROUP_FILTER),
                "topic.filter.class": (config.topic_filter_class, TOPIC_FILTER),
            },
            {
                "groups": config.groups,
                "groups.exclude": config.groups_exclude,
                "topics": config.topic_patterns[0],
                "topics.exclude": config.topic_patterns[1],
            },
        )

    def plan(self, offsets: Offsets, max_tasks: int) -> Plan:
        """Deals out the groups there are."""
        config = self.config
        if not config.enabled or not (config.emit_checkpoints_enabled or config.sync_group_offsets_enabled):
            return Plan()
        included, excluded = matcher(config.groups, "groups"), matcher(config.groups_exclude, "groups.exclude")
        names = [name for name in self._cluster("source").groups() if included(name) and not excluded(name)]
        topic = config.policy.checkpoints(config.source_cluster_alias)
        self._cluster("target").ensure(topic, config.checkpoints_topic_replication_factor)
        shares = dealt([(name, 0) for name in names], max_tasks)
        tasks = [
            Task(
                data={"groups": [name for name, _ in share]},
                config={
                    **config.originals,
                    "task.index": str(number),
                    "task.assigned.groups": ",".join(name for name, _ in share),
                },
            )
            for number, share in enumerate(shares)
        ]
        refresh = config.refresh_groups_interval_seconds if config.refresh_groups_enabled else 0
        return Plan(tasks=tasks, replan_after_ms=refresh * 1000)

    def read(self, work: Work, offsets: Offsets) -> Iterator[Any]:
        """Looks at the groups every so often, until it is told to end."""
        config = self.config
        source, target = self._cluster("source"), self._cluster("target")
        near_source = config.offset_syncs_topic_location == "source"
        other = config.target_cluster_alias if near_source else config.source_cluster_alias
        store = SyncStore()
        reader = Follower(
            source if near_source else target,
            config.policy.offset_syncs(other),
            lambda key, value: store.add(OffsetSync.parse(key, value)),
        )
        emitted_s = synced_s = float("-inf")
        try:
            written = self._written(target, set(work.data["groups"]))
            while not self.stopping:
                reader.read(self)
                now = time.monotonic()
                emits = config.emit_checkpoints_enabled and now - emitted_s >= config.emit_checkpoints_interval_seconds
                syncs = (
                    config.sync_group_offsets_enabled and now - synced_s >= config.sync_group_offsets_interval_seconds
                )
                for group in work.data["groups"] if emits or syncs else ():
                    found = self._checkpoints(source, store, group)
                    if emits:
                        yield from self._changed(found, written)
                    if syncs:
                        self._move(target, group, found)
                emitted_s, synced_s = now if emits else emitted_s, now if syncs else synced_s
                self.wait(
                    min(config.emit_checkpoints_interval_seconds, config.sync_group_offsets_interval_seconds, 1.0)
                )
        finally:
            reader.close()

    def _cluster(self, side: str) -> Cluster:
        return Cluster(self.config.originals, side, self.config.admin_timeout_ms / 1000)

    def _written(self, target: Cluster, groups: set[str]) -> dict[tuple[str, str, int], Checkpoint]:
        """The last checkpoints of groups that are in the target cluster already."""
        found: dict[tuple[str, str, int], Checkpoint] = {}

        def take(key: bytes, value: bytes) -> None:
            checkpoint = Checkpoint.parse(key, value)
            if checkpoint.group in groups:
                found[checkpoint.group, checkpoint.topic, checkpoint.partition] = checkpoint

        if self.config.emit_checkpoints_enabled:
            follower = Follower(target, self.config.policy.checkpoints(self.config.source_cluster_alias), take)
            try:
                follower.read(self)
            finally:
                follower.close()
        return found

    def _checkpoints(self, source: Cluster, store: SyncStore, group: str) -> list[Checkpoint]:
        config = self.config
        texts = config.topic_patterns
        included, excluded = matcher(texts[0], "topics"), matcher(texts[1], "topics.exclude")
        partitions = [each for each in store.partitions() if included(each[0]) and not excluded(each[0])]
        found = source.offsets(group, partitions) if partitions else {}
        checkpoints = []
        for (topic, partition), (upstream, metadata) in sorted(found.items()):
            downstream = None if upstream is None else store.translated(topic, partition, upstream)
            if upstream is not None and downstream is not None:
                remote = config.policy.remote(config.source_cluster_alias, topic)
                checkpoints.append(Checkpoint(group, remote, partition, upstream, downstream, metadata))
        return checkpoints

    def _changed(
        self, found: Sequence[Checkpoint], written: dict[tuple[str, str, int], Checkpoint]
    ) -> Iterator[Record]:
        topic = self.config.policy.checkpoints(self.config.source_cluster_alias)
        for checkpoint in found:
            place = (checkpoint.group, checkpoint.topic, checkpoint.partition)
            if not is_news(checkpoint, written.get(place)):
                continue
            written[place] = checkpoint
            key, value = checkpoint.record()
            partition = {"partition": checkpoint.partition, "topic": checkpoint.topic, "group": checkpoint.group}
            yield Record(value, key, topic, partition=partition, offset={"offset": 0}, kafka_partition=0)

    def _move(self, target: Cluster, group: str, found: Sequence[Checkpoint]) -> None:
        """Moves a group of the target cluster, unless it is in use there; never backwards."""
        if not found or target.has_members(group):
            return
        wanted = {(each.topic, each.partition): each.downstream for each in found}
        there = set(target.topics())
        wanted = {place: offset for place, offset in wanted.items() if place[0] in there}
        stands = target.offsets(group, list(wanted)) if wanted else {}
        # Where the group stands in a partition that the cluster doesn't tell of, it may stand further on.
        moves = {place: wanted[place] for place, (stand, _) in stands.items() if stand is None or wanted[place] > stand}
        if moves:
            target.commit(group, moves)


def is_news(checkpoint: Checkpoint, last: Checkpoint | None) -> bool:
    """Whether a checkpoint is written: the first of its partition, one further on, or one of a group that went back."""
    return last is None or checkpoint.downstream > last.downstream or checkpoint.upstream < last.upstream


class Follower:
    """Follows a topic of one partition from its beginning.

    Args:
        cluster: Where it lies.
        topic: The topic.
        take: Gets key and value of each record; one that it refuses by a ValueError is passed over.
    """

    def __init__(self, cluster: Cluster, topic: str, take: Callable[[bytes, bytes], None]) -> None:
        self._topic = topic
        self._take = take
        self._at_end = False
        own = {"group.id": f"wherry-mirror-{uuid.uuid4().hex}", "enable.auto.commit": False}
        self._consumer = Consumer({**cluster.settings("consumer"), **own, "enable.partition.eof": True})
        self._consumer.assign([TopicPartition(topic, 0, OFFSET_BEGINNING)])

    def read(self, source: Source[Any]) -> None:
        """Takes in what has come, to the end of the topic.

        Raises:
            TransientError: The end of the topic was not reached in time.
        """
        deadline = time.monotonic() + SYNCS_READ_S
        while not source.stopping:
            try:
                messages = self._consumer.consume(CONSUME_MAX, 0.5)
            except KafkaException as error:
                raise TransientError(f"The records in {self._topic} can't be read: {error.args[0].str()}.") from None
            for message in messages:
                event = message.error()
                if event is None:
                    self._at_end = False
                    # A tombstone, or what is not MirrorMaker's, tells nothing.
                    with contextlib.suppress(ValueError):
                        self._take(message.key() or b"", message.value() or b"")
                elif event.code() == KafkaError._PARTITION_EOF:
                    self._at_end = True
            # The end is told once, not again while nothing comes.
            if self._at_end:
                return
            if time.monotonic() > deadline:
                raise TransientError(f"The records in {self._topic} could not be read to their end in time.")

    def close(self) -> None:
        """Releases the consumer."""
        self._consumer.close()
