"""The two ends of a mirror: bytes of one cluster's topics into those of another, with MirrorMaker 2's positions.

Rows keep partition, time, key, headers and order; only the topic gets its remote name. For some rows the writer tells
where their copy lies (offset syncs): the first of each partition, those after a gap, one every `offset.lag.max`, and at
a flush the last ones.
Whoever translates offsets of consumer groups goes by these records; a lost one makes a translation coarser, never
wrong, so that trouble with them never holds up records.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, Final

import confluent_kafka
import numpy as np
from confluent_kafka import KafkaException

from wherry.contract.batch import OFFSET, Batch, Mark
from wherry.contract.errors import ConnectorBugError
from wherry.contract.kafka_clients import ClientConfig
from wherry.contract.mirror import OffsetSync, Policy, mirror_position, parse_mirror_position
from wherry.contract.position import Position, TopicPartition, kafka_position, parse_kafka_position
from wherry.worker.endpoints import Flushed, Remaining
from wherry.worker.endpoints.kafka_logging import client_logger
from wherry.worker.endpoints.kafka_reader import KafkaReader
from wherry.worker.endpoints.kafka_writer import KafkaWriter, partitions_of
from wherry.worker.endpoints.topics import TopicCreator

logger: Final = logging.getLogger("wherry.worker.mirror")

SYNCS_CLOSE_S: Final = 2.0


class MirrorReader(KafkaReader):
    """Reads partitions of the source cluster; rows name their remote topics, marks are a mirror's positions."""

    def __init__(self, client: ClientConfig, cluster: str, policy: Policy, positions: Sequence[Position]) -> None:
        self._cluster = cluster
        self._policy = policy
        super().__init__(client, [_to_kafka(position) for position in positions])

    def poll(self, timeout_s: float) -> Batch | None:
        """See `Reader.poll`."""
        batch = super().poll(timeout_s)
        if batch is None:
            return None
        topic = batch.constants.topic
        if topic is None:
            raise ConnectorBugError("A batch of several topics can't be mirrored.")
        constants = replace(batch.constants, topic=self._policy.remote(self._cluster, topic))
        marks = (Mark(mark.row_count, self._to_mirror(mark.position)) for mark in batch.marks)
        return batch.with_constants(constants).with_marks(*marks)

    def rewind(self, positions: Sequence[Position]) -> None:
        """See `Reader.rewind`."""
        super().rewind([_to_kafka(position) for position in positions])

    def _to_mirror(self, position: Position) -> Position:
        partition, offset = parse_kafka_position(position)
        # Kafka's position is that of the next record, a mirror's that of the last one.
        last = None if offset is None else offset - 1
        return mirror_position(self._cluster, partition.topic, partition.partition, last)


def _to_kafka(position: Position) -> Position:
    _, topic, partition, offset = parse_mirror_position(position)
    return kafka_position(topic, partition, None if offset is None else offset + 1)


@dataclass(slots=True)
class SyncRule:
    """Which rows of a partition to tell the copy's place of. Pure.

    Attributes:
        lag_max: Offsets after which the next place is told at the latest.
    """

    lag_max: int
    _last: dict[TopicPartition, int] = field(default_factory=dict)
    _told: dict[TopicPartition, int] = field(default_factory=dict)

    def rows(self, partition: TopicPartition, offsets: Any) -> set[int]:
        """Indices of the rows to tell, of the rows with these rising offsets."""
        chosen: set[int] = set()
        last, told = self._last.get(partition), self._told.get(partition)
        if last is None or told is None or int(offsets[0]) != last + 1:
            chosen.add(0)
            told = int(offsets[0])
        while (place := int(np.searchsorted(offsets, told + self.lag_max))) < len(offsets):
            chosen.add(place)
            told = int(offsets[place])
        gaps = np.flatnonzero(np.diff(offsets) != 1)
        if len(gaps):
            # Those before are within the lag of others.
            chosen.add(int(gaps[-1]) + 1)
            told = max(told, int(offsets[gaps[-1] + 1]))
        end = int(offsets[-1])
        self._last[partition], self._told[partition] = end, told
        return chosen


class OffsetSyncs:
    """Tells offset syncs to the topic they belong to, as well as it can.

    Args:
        client: Settings of the producer.
        topic: The topic of offset syncs.
    """

    def __init__(self, client: ClientConfig, topic: str) -> None:
        self._topic = topic
        self._troubled = False
        settings = {**client.values, "logger": client_logger(str(client.values["client.id"]))}
        self._producer = confluent_kafka.Producer(settings)

    def tell(self, sync: OffsetSync) -> None:
        """Sends one on its way."""
        key, value = sync.record()
        try:
            self._producer.produce(self._topic, value, key, partition=0, on_delivery=self._delivered)
        except (BufferError, KafkaException) as error:
            self._complain(error)

    def poll(self) -> None:
        """Hears how those before have fared."""
        self._producer.poll(0)

    def close(self) -> None:
        """Gives those under way a moment."""
        self._producer.flush(SYNCS_CLOSE_S)
        self._producer.purge()
        self._producer.flush(0)

    def _delivered(self, error: Any, _: Any) -> None:
        if error is None:
            self._troubled = False
        else:
            self._complain(error)

    def _complain(self, error: Any) -> None:
        if not self._troubled:
            self._troubled = True
            logger.warning(
                "Offset syncs can't be written to %s, so offsets are translated coarsely: %s", self._topic, error
            )


class MirrorWriter(KafkaWriter):
    """Writes to remote topics, and tells the places of some rows.

    Args:
        client: Settings of the producer of the target cluster.
        origins: Name of a topic in the source cluster by its remote name.
        rule: Chooses the rows.
        syncs: Takes offset syncs; None tells nobody.
        creator: Creates topics that a transformation names; None leaves that to the broker.
        at_flush: Whether places are told at a flush only, because until then they may be rolled back.
    """

    def __init__(
        self,
        client: ClientConfig,
        origins: Mapping[str, str],
        rule: SyncRule,
        syncs: OffsetSyncs | None,
        *,
        creator: TopicCreator | None = None,
        at_flush: bool = False,
    ) -> None:
        self._origins = origins
        self._rule = rule
        self._syncs = syncs
        self._at_flush = at_flush
        self._kept: list[OffsetSync] = []
        self._latest: dict[TopicPartition, OffsetSync] = {}
        told = {} if syncs is None else {"delivery.report.only.error": False}
        super().__init__(replace(client, values={**client.values, **told}), creator=creator)

    def flush(self, remaining: Remaining, *, final: bool = False) -> Flushed:
        """See `Writer.flush`."""
        flushed = super().flush(remaining, final=final)
        if self._syncs is not None:
            for sync in (*self._kept, *self._latest.values()):
                self._syncs.tell(sync)
            self.forget()
            self._syncs.poll()
        return flushed

    def forget(self) -> None:
        """See `KafkaWriter.forget`."""
        self._kept.clear()
        self._latest.clear()

    def close(self) -> None:
        """See `Writer.close`."""
        super().close()
        if self._syncs is not None:
            self._syncs.close()

    def _plain(self, batch: Batch) -> bool:
        """Never: a copy keeps its partition and time."""
        return False

    def _callbacks(self, batch: Batch) -> Mapping[int, Callable[..., None]]:
        """See `KafkaWriter._callbacks`: the rows whose place is told."""
        if self._syncs is None:
            return {}
        # What a transformation sends elsewhere has no place that a group's offset could be translated to.
        topic = self._origins.get(batch.constants.topic or "")
        offsets, numbers = batch.column(OFFSET), batch.constants.partition
        if topic is None or offsets is None:
            return {}
        upstream = offsets.to_numpy(zero_copy_only=False)
        if numbers is not None:
            groups = {numbers: np.arange(len(upstream))}
        else:
            partitions = np.asarray(partitions_of(batch))
            groups = {int(number): np.flatnonzero(partitions == number) for number in np.unique(partitions)}
        told = {}
        for number, places in groups.items():
            chosen = self._rule.rows(TopicPartition(topic, number), upstream[places])
            for row in chosen | {len(places) - 1}:
                index = int(places[row])
                told[index] = partial(self._acknowledged, topic, int(upstream[index]), row in chosen)
        return told

    def _acknowledged(self, topic: str, upstream: int, at_once: bool, error: Any, message: Any) -> None:
        self._on_delivery(error, message)
        if error is not None or self._syncs is None or message.offset() < 0:
            return
        sync = OffsetSync(topic, message.partition(), upstream, message.offset())
        key = TopicPartition(topic, sync.partition)
        if at_once:
            self._latest.pop(key, None)
            if self._at_flush:
                self._kept.append(sync)
            else:
                self._syncs.tell(sync)
        else:
            self._latest[key] = sync
