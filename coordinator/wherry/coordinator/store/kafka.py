"""Stores in Kafka Connect's three topics, in its formats: what it has written is found, and what we write it finds.

Every store reads its topic by itself and answers from memory; what a method has written is read back before it returns.
Only the leader may write: `may_write` is asked before every record, and the config topic has a writer that the broker
fences. Before the topics have been read, everything is refused as unavailable.
"""

from __future__ import annotations

import contextlib
import logging
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from wherry.contract.connect_topics import OffsetLog, offset_records
from wherry.contract.errors import FencedError, TransientError, WherryError
from wherry.contract.offsets_topic import ends_of
from wherry.contract.position import Position, TopicPartition
from wherry.coordinator.api import State, TargetState, UnavailableError
from wherry.coordinator.kafka import KafkaAdmin
from wherry.coordinator.store import ConfigSnapshot, StoredStatus, StoredTopic
from wherry.coordinator.store import configlog as configs
from wherry.coordinator.store import statuslog as statuses
from wherry.coordinator.store.configlog import ConfigLog, SessionKey
from wherry.coordinator.store.internal_topics import InternalTopic
from wherry.coordinator.store.statuslog import StatusLog, may_put, status_key, status_record, topic_key, topic_record
from wherry.coordinator.store.topiclog import READ_TIMEOUT_S, PlainWriter, TopicLog, Writer

NOT_READ: Final = "The worker is still starting: it has not yet read its topics in Kafka."
_WITH_CARE: Final = frozenset({State.UNASSIGNED, State.FAILED})

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Place:
    """Where a store keeps what it knows, and by whom it is written.

    Attributes:
        topic: The topic.
        config: Connection settings of librdkafka.
        admin: Tells end offsets.
        group: The worker's group.id.
        writer: Writes records.
        may_write: Raises when this coordinator may not.
    """

    topic: InternalTopic
    config: Mapping[str, Any]
    admin: KafkaAdmin
    group: str
    writer: Writer
    may_write: Callable[[], None]


class _Kept:
    """What the three have in common: a topic, its log, and who may write.

    Args:
        place: The topic, and its writer.
        apply: Takes in a record, with the lock held.
    """

    def __init__(self, place: Place, apply: Callable[[bytes | None, bytes | None], object]) -> None:
        self.topic = place.topic
        self.lock = threading.Lock()
        self._place = place
        self._apply = apply
        self._ready = False
        self._log = TopicLog(place.topic.name, place.config, place.admin, self._take, group=place.group)

    def start(self) -> None:
        """Read the topic; returns when all there is has been read."""
        self._log.start()
        self._ready = True

    def catch_up(self, timeout_s: float = READ_TIMEOUT_S) -> None:
        """Read what has been written until now."""
        self._log.read_to_end(timeout_s)

    def close(self) -> None:
        """Follow the topic no more."""
        self._log.close()

    def check_ready(self) -> None:
        """Refuse to answer before the topic was read."""
        if not self._ready:
            raise UnavailableError(NOT_READ)

    def wait_for(self, ends: Mapping[TopicPartition, int]) -> None:
        """Wait until so much has been read."""
        self._log.wait_for(ends)

    def settled_ends(self) -> dict[TopicPartition, int] | None:
        """Where the partitions end; None while a transaction is open in any of them."""
        return self._log.settled_ends()

    def write(self, records: Sequence[tuple[bytes, bytes | None]], *, read_back: bool = True) -> None:
        """Write records, and read them back."""
        if not records:
            return
        self.check_ready()
        self._place.may_write()
        ends = self._place.writer.write(self.topic.name, records)
        if read_back:
            self._log.wait_for(ends)

    def _take(self, key: bytes | None, value: bytes | None) -> None:
        with self.lock:
            self._apply(key, value)


@contextlib.contextmanager
def _told(what: str) -> Iterator[None]:
    """Say what could not be written as Kafka Connect does, and then why."""
    try:
        yield
    except TransientError as error:
        raise TransientError(f"Error writing {what} to Kafka: {error.message}") from error


class KafkaConfigStore:
    """A `ConfigStore` in the config topic."""

    def __init__(
        self,
        place: Place,
        level_set: Callable[[str, str], None] = lambda logger, level: None,
    ) -> None:
        self._state = ConfigLog(level_set)
        self.kept = _Kept(place, self._state.apply)

    def snapshot(self) -> ConfigSnapshot:
        """Everything, as of now."""
        self.kept.check_ready()
        with self.kept.lock:
            return self._state.snapshot()

    def put_connector(self, name: str, config: Mapping[str, str], target_state: TargetState | None = None) -> None:
        """Write a configuration; None leaves the target state."""
        before = self.snapshot().connectors.get(name)
        self._write(configs.connector_records(name, config, target_state, before=before))

    def delete_connector(self, name: str) -> None:
        """Forget a connector."""
        if name in self.snapshot().connectors:
            self._write(configs.deletion_records(name))

    def put_target_state(self, name: str, target_state: TargetState) -> None:
        """Write what the connector is wanted to be."""
        if name in self.snapshot().connectors:
            with _told("target state"):
                self._write(configs.target_records(name, target_state))

    def put_task_configs(self, name: str, configs_: Sequence[Mapping[str, str]]) -> None:
        """Write the whole set of task configurations."""
        if name in self.snapshot().connectors:
            self._write(configs.task_records(name, configs_))

    def put_logger_level(self, logger: str, level: str) -> None:
        """Set a log level on every worker."""
        with _told("logger level"):
            self._write(configs.logger_records(logger, level))

    def put_session_key(self, key: SessionKey) -> None:
        """Give every worker a new key to sign with."""
        self._write(configs.session_key_records(key))

    def session_key(self) -> SessionKey | None:
        """What workers sign with now."""
        self.kept.check_ready()
        with self.kept.lock:
            return self._state.session_key

    def task_count(self, name: str) -> int | None:
        """How many transactional ids the last fencing round of a connector has told of; None when there was none."""
        self.kept.check_ready()
        with self.kept.lock:
            return self._state.task_counts.get(name)

    def put_task_count(self, name: str, count: int) -> None:
        """Tell, after a fencing round, how many transactional ids the next generation uses."""
        self._write(configs.task_count_records(name, count))

    def _write(self, records: Sequence[configs.Record]) -> None:
        self.kept.write([(key.encode(), value) for key, value in records])


class KafkaOffsetStore:
    """An `OffsetStore` in the offsets topic.

    Args:
        others_write: Exactly-once sources write to the topic, in transactions of their own. Behind one that is open
            nothing can be read, so that only what is asked for is waited for, when it is asked for.
    """

    def __init__(
        self,
        place: Place,
        *,
        others_write: bool = False,
    ) -> None:
        self._state = OffsetLog()
        self._others_write = others_write
        self._config = place.config
        self.kept = _Kept(place, self._state.apply)

    def load(self, connector: str) -> list[Position]:
        """All positions of a connector, in the order they were first written."""
        self.kept.check_ready()
        if self._others_write:
            self._read_on(connector)
        with self.kept.lock:
            return self._state.positions(connector)

    def write(self, connector: str, positions: Sequence[Position]) -> None:
        """Write positions; one without offset forgets its partition."""
        records = [(record.key, record.value) for record in offset_records(connector, positions)]
        self.kept.write(records, read_back=not self._others_write)

    def _read_on(self, connector: str) -> None:
        ends = self.kept.settled_ends()
        if ends is None:
            topic = self.kept.topic.name
            found = ends_of(self._config, topic, connector, timeout_s=READ_TIMEOUT_S)
            ends = {TopicPartition(topic, number): end for number, end in found.items()}
        try:
            self.kept.wait_for(ends)
        except TransientError as error:
            raise TransientError(
                f"{error.message} Positions of {connector} stand behind a transaction that is open there; a topic of "
                "its own (`offsets.storage.topic`) would spare it those of other connectors. One that outlives its "
                "transaction.timeout.ms has been lost by a broker: `kafka-transactions.sh find-hanging` tells which, "
                "and `abort` ends it."
            ) from error

    def reset(self, connector: str) -> None:
        """Forget all positions of a connector."""
        self.write(connector, [Position(position.partition, None) for position in self.load(connector)])


class KafkaStatusStore:
    """A `StatusStore` in the status topic.

    Args:
        generation: What the group's members count leaders by. It is written in the place of the machine's, which is far
            higher, so that a Kafka Connect worker that takes over later may replace what we have written.
    """

    def __init__(
        self,
        place: Place,
        *,
        generation: Callable[[], int],
    ) -> None:
        self._state = StatusLog()
        self._generation = generation
        self._newest: dict[tuple[str, int | None], int] = {}
        # What we have written last, by its key, so that it can be written again.
        self._written: dict[str, StoredStatus] = {}
        self.kept = _Kept(place, self._take)

    def put(self, status: StoredStatus) -> None:
        """Write a state; one of a lower generation than one written before by us is ignored."""
        part = (status.connector, status.task)
        key, written = status_key(*part), replace(status, generation=self._generation())
        with self.kept.lock:
            if status.generation < self._newest.get(part, 0):
                return
            self._newest[part] = status.generation
            if status.state in _WITH_CARE and not may_put(written, self._state.get(*part)):
                return
            self._written[key] = written
        self._write([status_record(written)])

    def _take(self, key: bytes | None, value: bytes | None) -> None:
        """Take in a record. One that a deposed leader had under way when it was stopped comes after ours."""
        self._state.apply(key, value)
        name = (key or b"").decode("utf-8", "replace")
        ours = self._written.get(name)
        if ours is None:
            return
        told = self._state.get(ours.connector, ours.task)
        if told is not None and told.worker_id != ours.worker_id and told.generation < ours.generation:
            threading.Thread(target=self._write_again, args=(name,), name="status-again", daemon=True).start()

    def _write_again(self, key: str) -> None:
        """Write what we had written, until nothing newer was written meanwhile."""
        written = None
        while (newest := self._written.get(key)) is not written and newest is not None:
            written = newest
            log.info("The state of %s was overwritten by a former leader; writing it again", key)
            try:
                self._write([status_record(written)])
            except WherryError as error:
                log.info("%s was not written again: %s", key, error.message)
                return

    def get(self, connector: str, task: int | None = None) -> StoredStatus | None:
        """State of a connector, or of one of its tasks."""
        self.kept.check_ready()
        with self.kept.lock:
            return self._state.get(connector, task)

    def tasks(self, connector: str) -> list[StoredStatus]:
        """States of all tasks, by task number."""
        self.kept.check_ready()
        with self.kept.lock:
            return self._state.tasks(connector)

    def remove(self, connector: str, task: int | None = None) -> None:
        """Forget a task's state; without a task the connector's with all its tasks and topics."""
        with self.kept.lock:
            for key, written in list(self._written.items()):
                if written.connector == connector and task in (None, written.task):
                    del self._written[key]
        if task is not None:
            if self.get(connector, task) is not None:
                self._write([(status_key(connector, task), None)])
            return
        known: list[int | None] = [status.task for status in self.tasks(connector)]
        if self.get(connector) is not None:
            known.append(None)
        gone = [status_key(connector, number) for number in known]
        gone += [topic_key(connector, topic) for topic in self.topics(connector)]
        self._write([(key, None) for key in gone])

    def add_topic(self, topic: StoredTopic) -> None:
        """Remember that a topic is used; the first discovery stays."""
        if topic.name not in self.topics(topic.connector):
            self._write([topic_record(topic)])

    def topics(self, connector: str) -> list[str]:
        """Topics used, in order of discovery."""
        self.kept.check_ready()
        with self.kept.lock:
            return [topic.name for topic in self._state.topics(connector)]

    def reset_topics(self, connector: str) -> None:
        """Forget the topics of a connector."""
        self._write([(topic_key(connector, topic), None) for topic in self.topics(connector)])

    def forget_surplus(self, connectors: Mapping[str, int]) -> None:
        """Take away the states of tasks beyond each connector's number of them, and of connectors that are gone."""
        with self.kept.lock:
            known = self._state.connectors()
        for connector in known:
            if connector not in connectors:
                self.remove(connector)
                continue
            for status in self.tasks(connector):
                if status.task is not None and status.task >= connectors[connector]:
                    self.remove(connector, status.task)

    def _write(self, records: Sequence[statuses.Record]) -> None:
        self.kept.write([(key.encode(), value) for key, value in records])


class KafkaStores:
    """All three, with the writer of positions and states that they share.

    Args:
        topics: The three topics: configurations, positions, states.
        config: Connection settings of librdkafka.
        admin: Tells end offsets.
        group: The worker's group.id.
        config_writer: Writes the config topic.
        leads: Whether this coordinator leads, and so may write.
        generation: The leader's generation.
        level_set: Told of log levels set for the whole cluster.
        workers_write: Whether workers write positions, too, as those of exactly-once sources do.
    """

    def __init__(
        self,
        topics: Sequence[InternalTopic],
        config: Mapping[str, Any],
        admin: KafkaAdmin,
        group: str,
        config_writer: Writer,
        *,
        leads: Callable[[], bool],
        generation: Callable[[], int],
        level_set: Callable[[str, str], None] = lambda logger, level: None,
        workers_write: bool = False,
    ) -> None:
        def may_write() -> None:
            if not leads():
                raise FencedError("This coordinator does not lead its cluster (any more), and writes nothing.")

        self.may_write: Callable[[], None] = may_write
        self._writer = PlainWriter(config)
        places = [
            Place(topic, config, admin, group, writer, may_write)
            for topic, writer in zip(topics, (config_writer, self._writer, self._writer), strict=True)
        ]
        self.configs = KafkaConfigStore(places[0], level_set)
        self.offsets = KafkaOffsetStore(places[1], others_write=workers_write)
        self.statuses = KafkaStatusStore(places[2], generation=generation)

    def start(self) -> None:
        """Read all topics; returns when all there is has been read."""
        for store in (self.configs, self.offsets, self.statuses):
            store.kept.start()

    def catch_up(self, timeout_s: float = READ_TIMEOUT_S) -> None:
        """Read what has been written until now, by whom ever; each of the topics within the time."""
        for store in (self.configs, self.offsets, self.statuses):
            store.kept.catch_up(timeout_s)

    def close(self) -> None:
        """Let go of all connections."""
        for store in (self.configs, self.offsets, self.statuses):
            store.kept.close()
        self._writer.close()
