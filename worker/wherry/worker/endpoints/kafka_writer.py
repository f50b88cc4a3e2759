"""Writes batches to Kafka and says when they are durable.

Invariant 1: `flush` answers only after every record handed to the client was acknowledged by the brokers. Records go
out one by one in a tight loop, because that is what the client takes fastest: in the compiled helper where rows have
neither headers nor a topic, partition or time of their own, otherwise in Python. The client's queue is bounded, and a
full queue makes the loop wait.
"""

from __future__ import annotations

import itertools
import re
import time
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final

import confluent_kafka
import pyarrow as pa
from confluent_kafka import KafkaError, KafkaException

from wherry.contract.batch import Batch, Constants, RowError, of_value
from wherry.contract.errors import ConfigError, ErrorClass, SchemaError, TransientError, WherryError
from wherry.contract.kafka_clients import ClientConfig
from wherry.contract.position import Position
from wherry.worker.endpoints import WAIT_SLICE_S, FailedRow, Flushed, Remaining, kafka_produce
from wherry.worker.endpoints.columns import headers_array
from wherry.worker.endpoints.kafka_errors import error_of, is_reconnecting
from wherry.worker.endpoints.kafka_logging import client_logger
from wherry.worker.endpoints.kafka_produce import NativeProducer
from wherry.worker.endpoints.topics import TopicCreator

# A full queue is waited for in pieces; a broker that takes nothing for so long ends the wait.
QUEUE_WAIT_S: Final = 0.05
QUEUE_TIMEOUT_S: Final = 120.0
CLOSE_TIMEOUT_S: Final = 1.0
# While brokers take nothing for so long, a batch that was begun goes into the queue: whoever writes has more to see to.
PATIENCE_S: Final = 0.25
# For a partition that a record names and the client does not know (yet), and between two questions for it.
PARTITION_WAIT_S: Final = 10.0
PARTITION_ASK_S: Final = 0.2
# So many rows are handed over one by one between two looks at what is under way.
HOLD_BACK_ROWS: Final = 64
# Failures kept in full; a batch that fails as a whole needn't be told row by row.
FAILURES_MAX: Final = 1_000
# At most so many rows are sent on at once instead of lingering for more: nothing else is under way.
PROMPT_ROWS_MAX: Final = 100
_NO_CALLBACKS: Final[Mapping[int, Callable[..., None]]] = {}
_TOPIC: Final = re.compile(r"(?!\.{1,2}$)[a-zA-Z0-9._-]{1,249}")
_NO_TOPIC: Final = frozenset({
    KafkaError._UNKNOWN_TOPIC, KafkaError._UNKNOWN_PARTITION, KafkaError.UNKNOWN_TOPIC_OR_PART,
    KafkaError.TOPIC_EXCEPTION,
})  # fmt: skip


class KafkaWriter:
    """A `Writer` to topics."""

    def __init__(self, client: ClientConfig, *, creator: TopicCreator | None = None, default_topic: str = "") -> None:
        self._creator = creator
        self._default_topic = default_topic
        self._known_topics: set[str] = set()
        self._failed: list[FailedRow] = []
        self._fatal: Any = None
        self._undelivered: RowError | None = None
        self._rows = 0
        self._rows_failed = 0
        self._trouble = ""
        self._closed = False
        try:
            self._producer = confluent_kafka.Producer(
                {
                    **client.values,
                    **kafka_produce.plugin(client.values),
                    "error_cb": self._on_error,
                    "on_delivery": self._on_delivery,
                    "logger": client_logger(str(client.values["client.id"])),
                }
            )
        except KafkaException as error:
            raise error_of(error.args[0], "Making the Kafka producer") from error
        self._native = kafka_produce.open_producer(self._producer)
        if self._native is not None:
            self._native.bound(client.values)

    def ready(self, timeout_s: float) -> bool:
        """Whether the client can use more rows, where that can be told; a full queue is waited for row by row."""
        if self._native is None or self._native.room(timeout_s):
            return True
        self._serve(self._producer.poll, 0)
        self._look_at_failures()
        if self._fatal is not None:
            raise error_of(self._fatal, "Writing to Kafka")
        return False

    def write(self, batch: Batch, raw: Batch) -> None:
        """See `Writer.write`."""
        rows = batch.num_rows
        if not rows:
            return
        for topic in batch.topics():
            if topic not in self._known_topics:
                self._meet(topic)
        self._produce(batch, raw)
        self._rows += rows
        self._serve(self._producer.poll, 0)
        if rows <= PROMPT_ROWS_MAX and len(self._producer) <= PROMPT_ROWS_MAX:
            # Little is under way, so lingering for more would only add latency.
            self._serve(self._producer.flush, 0)
        self._look_at_failures()
        if self._fatal is not None:
            raise error_of(self._fatal, "Writing to Kafka")

    def flush(self, remaining: Remaining, *, final: bool = False) -> Flushed:
        """See `Writer.flush`."""
        begun = time.monotonic()
        while (left := remaining()) > 0 and self._serve(self._producer.flush, min(left, WAIT_SLICE_S)):
            self._look_at_failures()
            if self._fatal is not None:
                break
        self._look_at_failures()
        if self._fatal is not None:
            raise error_of(self._fatal, "Writing to Kafka")
        outstanding = len(self._producer)
        if outstanding:
            waited = time.monotonic() - begun
            raise TransientError(
                f"{outstanding} records were not acknowledged by Kafka within {waited:.0f} s. {self._trouble}".strip()
            )
        self._trouble = ""
        rows, failed = self._rows, self._rows_failed
        self._rows = self._rows_failed = 0
        # Invariant 1: nothing is outstanding and nothing failed unseen.
        return Flushed(rows_written=rows - failed, rows_failed=failed)

    def failed_rows(self) -> list[FailedRow]:
        """See `Writer.failed_rows`."""
        self._look_at_failures()
        failed, self._failed = self._failed, []
        return failed

    def rewinds(self) -> tuple[Position, ...]:
        """Never: Kafka takes what it is given."""
        return ()

    def paused_partitions(self) -> tuple[str, ...]:
        """Never any."""
        return ()

    @property
    def needs_flush(self) -> bool:
        """Never: nothing is kept."""
        return False

    @property
    def stored(self) -> tuple[Position, ...]:
        """None: positions are the coordinator's."""
        return ()

    @property
    def trouble(self) -> str:
        """What keeps the producer from its brokers now."""
        return self._trouble

    def close(self) -> None:
        """See `Writer.close`. What was not flushed is dropped: its positions were never reported."""
        if not self._closed:
            self._closed = True
            self._producer.purge()
            self._producer.flush(CLOSE_TIMEOUT_S)

    def forget(self) -> None:
        """What was written since the last flush is rolled back: nothing that goes by it holds."""

    @property
    def producer(self) -> Any:
        """The client, for what goes out beside the batches."""
        return self._producer

    @property
    def fatal_error(self) -> Any:
        """The client's error after which it takes nothing more; None while all is well."""
        self._look_at_failures()
        return self._fatal

    @property
    def undelivered(self) -> RowError | None:
        """What was wrong with the record that the broker refused last; None if it has taken all."""
        self._look_at_failures()
        return self._undelivered

    def _plain(self, batch: Batch) -> bool:
        """Whether topic, partition, headers and timestamps need no look at each row."""
        return all(batch.column(name) is None for name in ("headers", "partition")) and (
            batch.stored("topic") is None and batch.stored("timestamp") is None
        )

    def _produce(self, batch: Batch, raw: Batch) -> None:
        plain = self._plain(batch)
        topic, stamp = batch.constants.topic or self._default_topic, batch.constants.timestamp_ms or 0
        if plain and self._native is not None:
            rows = kafka_produce.Rows(topic, batch.value, batch.key, stamp)
            if kafka_produce.takes(rows):
                self._produce_columns(self._native, rows, raw)
                return
        values = batch.value.to_pylist()
        keys = None if batch.key is None else batch.key.to_pylist()
        if plain:
            self._produce_plain(topic, values, keys, stamp, raw)
        else:
            self._produce_rows(batch, values, keys, raw)

    def _produce_columns(self, native: NativeProducer, rows: kafka_produce.Rows, raw: Batch) -> None:
        start, total, bounded = 0, len(rows.values), True
        while start < total:
            before = start
            start, code = native.produce(rows, start, PATIENCE_S, bounded=bounded)
            if code == KafkaError._QUEUE_FULL and not bounded:
                self.wait_for_room()
            elif code == KafkaError._QUEUE_FULL:
                bounded = start > before
            elif code:
                self._refused(KafkaException(KafkaError(code)), rows.topic, start, raw)
                start += 1

    def _produce_plain(self, topic: str, values: list[Any], keys: list[Any] | None, stamp: int, raw: Batch) -> None:
        produce, start, total = self._producer.produce, 0, len(values)
        # By place, which costs less than by name: partition, two ways to name who is called back, time stamp.
        rest = (-1, None, None, stamp) if stamp else ()
        while start < total:
            row = start
            try:
                if keys is None:
                    for row, value in enumerate(itertools.islice(values, start, None), start):  # noqa: B007 (told below)
                        produce(topic, value, None, *rest)
                else:
                    pairs = zip(itertools.islice(values, start, None), itertools.islice(keys, start, None), strict=True)
                    for row, (value, key) in enumerate(pairs, start):  # noqa: B007 (told below)
                        produce(topic, value, key, *rest)
                return
            except BufferError:
                self.wait_for_room()
                start = row
            except KafkaException as error:
                self._refused(error, topic, row, raw)
                start = row + 1

    def _produce_rows(self, batch: Batch, values: list[Any], keys: list[Any] | None, raw: Batch) -> None:
        rows, produce, called_back = len(values), self._producer.produce, self._callbacks(batch).get
        # An absent key is None for each row; `repeat` bounded, because the columns must be of one length.
        columns = zip(
            topics_of(batch, self._default_topic), values, keys or itertools.repeat(None, rows), partitions_of(batch),
            timestamps_of(batch), headers_of(batch), strict=True,
        )  # fmt: skip
        patient = True
        for row, (topic, value, key, partition, timestamp, headers) in enumerate(columns):
            if patient and not row % HOLD_BACK_ROWS:
                patient = self.hold_back()
            while True:
                try:
                    # By place, which takes a fifth off the call; without a report of its own a row gets the common one.
                    produce(topic, value, key, partition, called_back(row), None, timestamp, headers)
                except BufferError:
                    self.wait_for_room()
                    continue
                except KafkaException as error:
                    if error.args[0].code() == KafkaError._UNKNOWN_PARTITION and partition >= 0:
                        self._await_partition(topic, partition)
                        continue
                    self._refused(error, topic, row, raw)
                break

    def _await_partition(self, topic: str, partition: int) -> None:
        """Waits until a record's partition is known: its topic may have grown since the client last asked.

        Kafka Connect's producer waits for it as well, and for ever; here whoever restarts the task asks anew.
        """
        deadline = time.monotonic() + PARTITION_WAIT_S
        while True:
            try:
                found = self._producer.list_topics(topic, timeout=PARTITION_WAIT_S).topics[topic].partitions
            except KafkaException as error:
                raise error_of(error.args[0], f"Writing to topic {topic}") from error
            if partition in found:
                return
            if time.monotonic() >= deadline:
                raise TransientError(
                    f"Partition {partition} of topic {topic} with partition count {len(found)} is not present in "
                    f"metadata after {PARTITION_WAIT_S * 1000:.0f} ms."
                )
            self._serve(self._producer.poll, PARTITION_ASK_S)
            self._look_at_failures()

    def _callbacks(self, batch: Batch) -> Mapping[int, Callable[..., None]]:
        """Who is called when a row was acknowledged or not, by its index, for rows that have somebody of their own."""
        return _NO_CALLBACKS

    def hold_back(self) -> bool:
        """Waits a moment until the client can use more rows; False when brokers take none at present."""
        return self._native is None or self._native.room(PATIENCE_S)

    def wait_for_room(self) -> None:
        """Waits until a full queue has room for a record."""
        deadline = time.monotonic() + QUEUE_TIMEOUT_S
        before = len(self._producer)
        while len(self._producer) >= before:
            self._serve(self._producer.poll, QUEUE_WAIT_S)
            self._look_at_failures()
            if self._fatal is not None:
                raise error_of(self._fatal, "Writing to Kafka")
            if time.monotonic() > deadline:
                raise TransientError(f"Kafka has taken no record for {QUEUE_TIMEOUT_S:.0f} s. {self._trouble}".strip())

    def _serve(self, call: Callable[[float], int], seconds: float) -> int:
        """Lets the client serve its callbacks; a fatal error is raised there instead of being told to any."""
        try:
            return call(seconds)
        except KafkaException as error:
            raise error_of(error.args[0], "Writing to Kafka") from error

    def _meet(self, topic: str | None) -> None:
        if topic is None:
            if not self._default_topic:
                raise ConfigError("A record names no topic to be written to; the connector must give each record one.")
        elif self._creator is not None:
            self._creator.ensure(topic)
        self._known_topics.add(topic or "")

    def _refused(self, error: KafkaException, topic: str, row: int, raw: Batch) -> None:
        """Notes a row that the client would not take; any other error is raised."""
        known = _trouble_of(error.args[0], topic)
        if not isinstance(known, SchemaError):
            raise known from error
        self._rows_failed += 1
        self._note(FailedRow(raw, row, RowError(row, ErrorClass.SCHEMA, known.reason, message=str(known))))

    def _on_delivery(self, error: Any, message: Any) -> None:
        if error is None or error.code() in {KafkaError._PURGE_QUEUE, KafkaError._PURGE_INFLIGHT}:
            return
        self._not_taken(error, message.topic(), message.value(), message.key(), message.headers())

    def _look_at_failures(self) -> None:
        """Looks at what the brokers refused of the records that were handed over in columns."""
        if self._native is None:
            return
        lost = self._native.failed()
        if not lost:
            return
        before = self._rows_failed
        for failure in self._native.failures():
            self._not_taken(KafkaError(failure.code), failure.topic, failure.value, failure.key, None)
        # Of a flood only the first are kept; the others are told as a number.
        self._rows_failed = max(self._rows_failed, before + lost)

    def _not_taken(self, error: Any, topic: str, value: bytes | None, key: bytes | None, headers: Any) -> None:
        known = _trouble_of(error, topic)
        if isinstance(known, SchemaError):
            self._rows_failed += 1
            self._undelivered = RowError(0, ErrorClass.SCHEMA, known.reason, message=str(known))
            self._note(FailedRow(_row_of(topic, value, key, headers), 0, self._undelivered))
        elif self._fatal is None:
            self._fatal = error

    def _on_error(self, error: Any) -> None:
        if is_reconnecting(error):
            self._trouble = f"The Kafka producer is reconnecting: {error.str()}."
        elif error.fatal() or error_of(error, "").error_class is ErrorClass.AUTH:
            self._fatal = error

    def _note(self, failed: FailedRow) -> None:
        if len(self._failed) < FAILURES_MAX:
            self._failed.append(failed)


def _trouble_of(error: Any, topic: str) -> WherryError:
    """The error of a record; a name that no topic can have is the record's own fault."""
    if error.code() in _NO_TOPIC and not _TOPIC.fullmatch(topic):
        return SchemaError(f"Invalid topics: [{topic}]. No topic can have that name.", reason="INVALID_TOPIC")
    return error_of(error, f"Writing to topic {topic}")


def _row_of(topic: str, value: bytes | None, key: bytes | None, headers: Any) -> Batch:
    """A record that the broker refused, as it was sent."""
    columns = {
        "key": None if key is None else pa.array([key], pa.binary()),
        "headers": None if not headers else headers_array([headers]),
    }
    present = {name: column for name, column in columns.items() if column is not None}
    return of_value(pa.array([value], pa.binary()), constants=Constants(topic=topic), **present)


def topics_of(batch: Batch, default: str) -> Iterable[str]:
    """Topic of each row."""
    column = batch.stored("topic")
    if column is None:
        return itertools.repeat(batch.constants.topic or default, batch.num_rows)
    return [topic or default for topic in column.to_pylist()]


def partitions_of(batch: Batch) -> Iterable[int]:
    """Partition of each row; -1 lets the partitioner choose."""
    column = batch.column("partition")
    if column is None:
        return itertools.repeat(-1, batch.num_rows)
    return [-1 if partition is None else partition for partition in column.to_pylist()]


def timestamps_of(batch: Batch) -> Iterable[int]:
    """Timestamp of each row in ms; 0 means now."""
    column = batch.column("timestamp")
    if column is None:
        return itertools.repeat(0, batch.num_rows)
    return [time or 0 for time in column.cast(pa.timestamp("ms", tz="UTC")).cast(pa.int64()).to_pylist()]


def headers_of(batch: Batch) -> Iterable[list[tuple[str, str | bytes | None]] | None]:
    """Headers of each row."""
    column = batch.headers
    if column is None:
        return itertools.repeat(None, batch.num_rows)
    return [[(pair["name"], pair["value"]) for pair in pairs] if pairs else None for pairs in column.to_pylist()]
