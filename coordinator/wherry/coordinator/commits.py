"""Where connectors stand: reads and writes positions of both kinds.

Sources: the offset store, in Kafka Connect's shape. Sinks: the offsets of the consumer group `connect-<name>`. Decides
nothing about who may commit: the machine has checked lease, attempt and generation before (Invariant 2), and calls for
one connector come one after another.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from typing import Final

from wherry.contract.errors import ErrorClass, WherryError
from wherry.contract.position import (
    Position,
    TopicPartition,
    kafka_position,
    kept_and_forgotten,
    parse_kafka_position,
)
from wherry.coordinator.events import ConnectorSpec, Kind, TaskWork
from wherry.coordinator.kafka import KafkaAdmin
from wherry.coordinator.staged import is_entry
from wherry.coordinator.store import OffsetStore

COMMIT_ATTEMPTS_MAX: Final = 8
COMMIT_RETRY_WAIT_S: Final = 0.25
COMMIT_RETRY_WAIT_S_MAX: Final = 4.0
_GROUP_OVERRIDE: Final = "consumer.override.group.id"


def group_of(name: str, config: Mapping[str, str]) -> str:
    """Consumer group of a sink."""
    return config.get(_GROUP_OVERRIDE) or f"connect-{name}"


class PositionKeeper:
    """Positions of all connectors.

    Args:
        offsets: Positions of sources.
        kafka: For the groups of sinks.
        sleep: How to wait between attempts.
        write_behind: Takes positions that a transaction has stored where they count; None lets them be.
        may_write: Raises FencedError when another coordinator leads, or may lead; groups of sinks have no other guard.
    """

    def __init__(
        self,
        offsets: OffsetStore,
        kafka: KafkaAdmin,
        *,
        sleep: Callable[[float], None] = time.sleep,
        write_behind: Callable[[str, Sequence[Position]], None] | None = None,
        may_write: Callable[[], None] = lambda: None,
    ) -> None:
        self._offsets = offsets
        self._write_behind = write_behind
        self._kafka = kafka
        self.may_write = may_write
        self._sleep = sleep

    def load(self, spec: ConnectorSpec) -> list[Position]:
        """All positions of a connector."""
        if spec.kind is Kind.SOURCE:
            return self._load(spec.name)
        found = self._kafka.group_offsets(group_of(spec.name, spec.config))
        return [kafka_position(p.topic, p.partition, offset) for p, offset in sorted(found.items())]

    def load_for(self, spec: ConnectorSpec, work: TaskWork) -> list[Position]:
        """Positions that a task goes on from: one for each of its partitions, without offset where there is none."""
        if spec.kind is Kind.SOURCE:
            wanted = () if work.work is None else work.work.partitions
            return self.load_source(spec.name, wanted)
        partitions = [_topic_partition(partition) for partition in work.partitions]
        found = self._kafka.group_offsets(group_of(spec.name, spec.config), partitions)
        return [kafka_position(p.topic, p.partition, found.get(p)) for p in partitions]

    def load_source(self, name: str, partitions: Sequence[str]) -> list[Position]:
        """Positions of a source: of these partitions in their order, or all if there are none."""
        stored = self._load(name)
        if not partitions:
            return stored
        by_partition = {position.partition: position for position in stored}
        return [by_partition.get(partition, Position(partition, None)) for partition in partitions]

    def _load(self, name: str) -> list[Position]:
        """Positions of a source, without what a direct pipeline's sink has staged."""
        return [position for position in self._offsets.load(name) if not is_entry(position)]

    def commit(self, spec: ConnectorSpec, positions: Sequence[Position], *, in_transaction: bool = False) -> None:
        """Store positions; tries again for a while.

        Args:
            spec: The connector.
            positions: Where it stands.
            in_transaction: A transaction has stored them already. An older report must never undo what a newer one
                has told, so they go to no place that counts.

        Raises:
            WherryError: They could not be stored.
        """
        self._patiently(lambda: self._commit_once(spec, positions, in_transaction))

    def _patiently(self, act: Callable[[], None]) -> None:
        """Do it; where it may work later, try again for a while."""
        wait_s = COMMIT_RETRY_WAIT_S
        for attempt in range(COMMIT_ATTEMPTS_MAX):
            try:
                act()
                return
            except WherryError as error:
                transient = error.error_class in (ErrorClass.TRANSIENT, ErrorClass.THROTTLED)
                if not transient or attempt == COMMIT_ATTEMPTS_MAX - 1:
                    raise
            self._sleep(wait_s)
            wait_s = min(wait_s * 2, COMMIT_RETRY_WAIT_S_MAX)

    def _commit_once(self, spec: ConnectorSpec, positions: Sequence[Position], in_transaction: bool) -> None:
        if spec.kind is Kind.SOURCE:
            if not in_transaction:
                # Of what a source forgets, the reason is often a position beside it (all parts of a file are read, the
                # file is finished): one without the other would have it read again.
                for together in filter(None, kept_and_forgotten(positions)):
                    self._offsets.write(spec.name, together)
            elif self._write_behind is not None:
                self._write_behind(spec.name, positions)
            return
        offsets: dict[TopicPartition, int] = {}
        for position in positions:
            partition, offset = parse_kafka_position(position)
            if offset is not None:
                offsets[partition] = offset
        self.may_write()  # Invariant 2: what a deposed leader still hears from its leases moves no position.
        self._kafka.commit_group(group_of(spec.name, spec.config), offsets)

    def alter(self, spec: ConnectorSpec, positions: Sequence[Position] | None) -> None:
        """Write what an operator wants; None forgets everything, a position without offset its partition."""
        if spec.kind is Kind.SOURCE:
            if positions is None:
                self._offsets.reset(spec.name)
            else:
                # What a direct pipeline's sink has staged belongs to the old positions.
                staged = [Position(old.partition, None) for old in self._offsets.load(spec.name) if is_entry(old)]
                self._offsets.write(spec.name, [*staged, *positions])
            return
        self.may_write()
        # What a two-phase sink has staged belongs to the old positions.
        self._offsets.reset(spec.name)
        group = group_of(spec.name, spec.config)
        if positions is None:
            self._kafka.delete_group(group)
            return
        wanted = dict(parse_kafka_position(position) for position in positions)
        if None in wanted.values():
            # The client can't forget single partitions: keep the others, and begin the group anew.
            kept = {p: o for p, o in self._kafka.group_offsets(group).items() if p not in wanted}
            self._kafka.delete_group(group)
            left = {p: offset for p, offset in {**kept, **wanted}.items() if offset is not None}
            # Nobody but us knows any more where the others stand.
            self._patiently(lambda: self._kafka.commit_group(group, left))
            return
        self._kafka.commit_group(group, {p: offset for p, offset in wanted.items() if offset is not None})


def _topic_partition(partition_json: str) -> TopicPartition:
    return parse_kafka_position(Position(partition_json, None))[0]
