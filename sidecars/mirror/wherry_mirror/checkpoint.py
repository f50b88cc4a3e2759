"""MirrorCheckpointConnector: where consumer groups would go on in the target cluster.

Offsets of groups are translated by the offset syncs that the copying itself tells. What has changed is written as
checkpoints; with `sync.group.offsets.enabled` groups that nobody uses in the target cluster are moved there, forwards
only.
"""

from __future__ import annotations

import time
import uuid
from collections.abc import Iterator, Mapping, Sequence
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
            {"groups": config.groups, "groups.exclude": config.groups_exclude},
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
        reader = SyncReader(source if near_source else target, config.policy.offset_syncs(other))
        written: dict[tuple[str, str, int], Checkpoint] = {}
        emitted_s = synced_s = float("-inf")
        try:
            while not self.stopping:
                store = reader.read(self)
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

    def _checkpoints(self, source: Cluster, store: SyncStore, group: str) -> list[Checkpoint]:
        config = self.config
        partitions = store.partitions()
        found = source.offsets(group, partitions) if partitions else {}
        checkpoints = []
        for (topic, partition), (upstream, metadata) in sorted(found.items()):
            downstream = store.translated(topic, partition, upstream)
            if downstream is not None:
                remote = config.policy.remote(config.source_cluster_alias, topic)
                checkpoints.append(Checkpoint(group, remote, partition, upstream, downstream, metadata))
        return checkpoints

    def _changed(
        self, found: Sequence[Checkpoint], written: dict[tuple[str, str, int], Checkpoint]
    ) -> Iterator[Record]:
        topic = self.config.policy.checkpoints(self.config.source_cluster_alias)
        for checkpoint in found:
            place = (checkpoint.group, checkpoint.topic, checkpoint.partition)
            if written.get(place) == checkpoint:
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
        moves = {place: offset for place, offset in wanted.items() if offset > stands.get(place, (-1, ""))[0]}
        if moves:
            target.commit(group, moves)


class SyncReader:
    """Follows a topic of offset syncs from its beginning."""

    def __init__(self, cluster: Cluster, topic: str) -> None:
        self._topic = topic
        self._store = SyncStore()
        own = {"group.id": f"wherry-mirror-{uuid.uuid4().hex}", "enable.auto.commit": False}
        self._consumer = Consumer({**cluster.settings("consumer"), **own, "enable.partition.eof": True})
        self._consumer.assign([TopicPartition(topic, 0, OFFSET_BEGINNING)])

    def read(self, source: Source[Any]) -> SyncStore:
        """Takes in what has come; returns all that is known.

        Raises:
            TransientError: The end of the topic was not reached in time.
        """
        deadline = time.monotonic() + SYNCS_READ_S
        while not source.stopping:
            try:
                messages = self._consumer.consume(CONSUME_MAX, 0.5)
            except KafkaException as error:
                raise TransientError(
                    f"The offset syncs in {self._topic} can't be read: {error.args[0].str()}."
                ) from None
            for message in messages:
                event = message.error()
                if event is None:
                    self._take(message)
                elif event.code() == KafkaError._PARTITION_EOF:
                    return self._store
            if not messages and self._is_at_end():
                return self._store
            if time.monotonic() > deadline:
                raise TransientError(f"The offset syncs in {self._topic} could not be read to their end in time.")
        return self._store

    def close(self) -> None:
        """Releases the consumer."""
        self._consumer.close()

    def _is_at_end(self) -> bool:
        """Whether nothing has come since the end was met: it is told only once."""
        (native,) = self._consumer.position([TopicPartition(self._topic, 0)])
        _, high = self._consumer.get_watermark_offsets(TopicPartition(self._topic, 0), cached=True)
        return bool(high >= 0 and native.offset >= high)

    def _take(self, message: Any) -> None:
        try:
            self._store.add(OffsetSync.parse(message.key() or b"", message.value() or b""))
        except ValueError:
            return  # a tombstone, or not MirrorMaker's
