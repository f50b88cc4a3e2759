"""Reads topic partitions at given offsets: no group membership, no commits, bounded memory.

The first record is waited for; what else is there is taken without waiting, up to a number of bytes that grows under
load. Each batch ends with a mark per partition: the next offset to read. Values, keys and headers stay bytes; columns
that no record needs (keys, headers) are not made.

Where the compiled helper is installed it takes the records out of librdkafka; otherwise confluent_kafka's messages are
taken apart here. Either way the batches are the same.

Each batch is of one topic, so that converters and sinks see one schema at a time; its partition and offsets travel as
constants where they are consecutive.

A position that is gone follows `auto.offset.reset` as in Kafka Connect (`earliest` unless set otherwise), with a
warning in the log; with `none` it is an error of class OFFSET_LOST, and so is a partition without any position.
"""

from __future__ import annotations

import dataclasses
import itertools
import logging
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

import confluent_kafka
import numpy as np
import pyarrow as pa
from confluent_kafka import KafkaError, KafkaException, Message

from wherry.contract.batch import Batch, Constants, Mark
from wherry.contract.errors import ConfigError, ErrorClass, OffsetLostError
from wherry.contract.kafka_clients import ClientConfig, ClientValue
from wherry.contract.position import (
    Position,
    TopicPartition,
    kafka_partition_json,
    kafka_position,
    parse_kafka_position,
)
from wherry.worker.convert.step import keep_rows
from wherry.worker.endpoints.columns import binary_array, headers_array, timestamp_array
from wherry.worker.endpoints.kafka_errors import error_of, is_missing, is_reconnecting
from wherry.worker.endpoints.kafka_logging import client_logger
from wherry.worker.endpoints.kafka_native import NativeQueues, Rows, open_queues, shares
from wherry.worker.endpoints.kafka_produce import plugin
from wherry.worker.policy import BATCH_BYTES_TARGET, BATCH_ROWS_MAX, BatchSize

logger: Final = logging.getLogger("wherry.worker.kafka")

# Messages of one batch that are consumed at once; a larger batch takes several calls.
CONSUME_MAX: Final = 20_000
# Messages taken at once from the consumer's own queue, where none are expected when the helper reads.
STRAYS_MAX: Final = 1_000
# Bytes of a row beside its value: timestamp, offset, length.
ROW_OVERHEAD: Final = 24
# Rows that a run of one partition must have to become a batch of its own; shorter ones share a batch.
RUN_ROWS_MIN: Final = 500

# What auto.offset.reset may say, and where it leads; anything else is an error, as Kafka's `none`.
RESETS: Final = {
    "earliest": confluent_kafka.OFFSET_BEGINNING,
    "beginning": confluent_kafka.OFFSET_BEGINNING,
    "smallest": confluent_kafka.OFFSET_BEGINNING,
    "latest": confluent_kafka.OFFSET_END,
    "end": confluent_kafka.OFFSET_END,
    "largest": confluent_kafka.OFFSET_END,
}

LEADER_TOPICS_MAX: Final = 32
LEADER_TIMEOUT_S: Final = 1.0
"""For asking once who leads a topic's partitions; without an answer reading begins as well, a little later."""

WARNED_MAX: Final = 100
"""Partitions that are missing are told once each, and of so many."""

_value, _key, _headers = Message.value, Message.key, Message.headers
_offset, _partition, _topic = Message.offset, Message.partition, Message.topic
_error, _timestamp = Message.error, Message.timestamp


class KafkaReader:
    """A `Reader` of topic partitions."""

    def __init__(
        self, client: ClientConfig, positions: Sequence[Position], *, bytes_target: int = BATCH_BYTES_TARGET
    ) -> None:
        self._client = client
        self._client_id = str(client.values["client.id"])
        self._size = BatchSize(bytes_target)
        self._next: dict[TopicPartition, int | None] = dict(parse_kafka_position(position) for position in positions)
        # Offset at which an end was met; a record read since then has a higher one.
        self._ends: dict[TopicPartition, int] = {}
        self._names = {tp: kafka_partition_json(tp.topic, tp.partition) for tp in self._next}
        topics = {partition.topic for partition in self._next}
        self._only_topic = topics.pop() if len(topics) == 1 else ""
        self._paused: frozenset[str] = frozenset()
        self._reset_to: int | None = RESETS.get(str(client.values.get("auto.offset.reset", "earliest")))
        self._refuse_unknown_starts()
        self._ready: deque[Batch] = deque()
        self._draining = False
        self._trouble = ""
        self._warned: set[str] = set()
        self._fatal: Any = None
        self._closed = False
        try:
            # A position that is gone is for us to judge: the client would go elsewhere without a word.
            self._queues: NativeQueues | None = None
            self._consumer = self._made(plugin(client.values))
            self._know_leaders()
            self._assign()
        except KafkaException as error:
            raise error_of(error.args[0], "Making the Kafka consumer") from error

    def _made(self, helped: Mapping[str, ClientValue]) -> Any:
        """The consumer; where the helper can take part in it, by `helped`, its queues are opened as well.

        NB: errors come by the queues of partitions, too. With a callback of Python there, taking from them natively
        ends the process: confluent_kafka insists on having made each call itself.
        """
        own: dict[str, Any] = {"auto.offset.reset": "error", "logger": client_logger(self._client_id)}
        own |= {**shares(self._client.values, len(self._next)), **helped} if helped else {"error_cb": self._on_error}
        consumer = confluent_kafka.Consumer({**self._client.values, **own})
        if not helped:
            return consumer
        self._queues = self._open_queues(consumer)
        if self._queues is None:
            consumer.close()
            return self._made({})
        return consumer

    def poll(self, timeout_s: float) -> Batch | None:
        """See `Reader.poll`."""
        ready = self._next_ready()
        if ready is not None:
            return ready
        if self._draining:
            # Those of paused partitions are read again.
            self._ready.clear()
            return None
        queues = self._queues
        batches = self._batches(self._consume(timeout_s)) if queues is None else self._take(queues, timeout_s)
        if self._fatal is not None:
            raise error_of(self._fatal, "Reading from Kafka")
        if not batches:
            return None
        self._trouble = ""
        self._ready.extend(batches)
        return self._next_ready()

    def committed(self, positions: Sequence[Position]) -> None:
        """Does nothing: the coordinator commits a sink's offsets."""

    def rewind(self, positions: Sequence[Position]) -> None:
        """See `Reader.rewind`."""
        for position in positions:
            partition, offset = parse_kafka_position(position)
            if partition not in self._next:
                raise ConfigError(
                    f"{position.partition} is not among the partitions of this task, so it can't be rewound."
                )
            self._next[partition] = offset
        rewound = {position.partition for position in positions}
        # Rows of other partitions stay: they have been read, and the client goes on after them.
        self._split_ready()
        self._ready = deque(batch for batch in self._ready if self._name_of(batch) not in rewound)
        self._assign()

    def pause(self, partitions: Sequence[str]) -> None:
        """See `Reader.pause`."""
        wanted = frozenset(partitions)
        if wanted == self._paused:
            return
        resumed = [tp for tp, name in self._names.items() if name in self._paused - wanted]
        paused = [tp for tp, name in self._names.items() if name in wanted]
        if resumed:
            self._consumer.resume([confluent_kafka.TopicPartition(tp.topic, tp.partition) for tp in resumed])
        if paused:
            self._consumer.pause([confluent_kafka.TopicPartition(tp.topic, tp.partition) for tp in paused])
        if wanted:
            self._split_ready()
        self._paused = wanted

    def drain(self, deadline_s: float) -> None:
        """Stops reading; what was read is still given."""
        self._draining = True

    def close(self) -> None:
        """See `Reader.close`."""
        if not self._closed:
            self._closed = True
            self._ready.clear()
            if self._queues is not None:
                self._queues.close()
            self._consumer.close()

    @property
    def finished(self) -> bool:
        """True once drained: a topic has no end."""
        return self._draining and not self._ready

    @property
    def caught_up(self) -> bool:
        """Whether every partition was read to its end."""
        return not self._ready and all(map(self._at_end, self._next))

    @property
    def lag(self) -> int | None:
        """Records between the positions and the ends that the last fetches told."""
        total = 0
        for partition, offset in self._next.items():
            if self._at_end(partition):
                continue
            low, high = self._consumer.get_watermark_offsets(
                confluent_kafka.TopicPartition(partition.topic, partition.partition), cached=True
            )
            if high < 0:
                return None
            total += max(0, high - (max(low, 0) if offset is None else offset))
        return total

    @property
    def trouble(self) -> str:
        """What keeps the consumer from its brokers now."""
        return self._trouble

    def _on_error(self, error: Any) -> None:
        """Hears what is no record's error: brokers that are away, refused credentials, partitions that are missing."""
        if is_missing(error):
            self._missing(error)
        elif is_reconnecting(error):
            self._trouble = f"The Kafka consumer is reconnecting: {error.str()}."
        elif error.fatal() or error_of(error, "").error_class is ErrorClass.AUTH:
            self._fatal = error

    def _missing(self, error: Any) -> None:
        """A partition is not there: it was deleted, or this broker has not heard of it yet; others are read on.

        As in Kafka Connect that is no failure. The client looks for it again, and the coordinator plans anew without
        it when it is gone for good.
        """
        self._trouble = f"Not all partitions are there: {error.str()}."
        if self._trouble not in self._warned and len(self._warned) < WARNED_MAX:
            self._warned.add(self._trouble)
            logger.warning("%s", self._trouble)

    def _at_end(self, partition: TopicPartition) -> bool:
        end = self._ends.get(partition)
        return end is not None and (self._next[partition] or 0) <= end

    def _know_leaders(self) -> None:
        """Learn who leads the partitions that were never read before anything is asked of them.

        The client otherwise looks for "the beginning" at once, finds no leader yet, and tries again 500 ms later
        (measured: the first record after 504 ms instead of 5).
        """
        topics = sorted({partition.topic for partition, offset in self._next.items() if offset is None})
        for topic in topics[:LEADER_TOPICS_MAX]:
            try:
                self._consumer.list_topics(topic, timeout=LEADER_TIMEOUT_S)
            except KafkaException:
                return  # it goes on without, only later

    def _assign(self) -> None:
        start = confluent_kafka.OFFSET_BEGINNING if self._reset_to is None else self._reset_to
        self._ends.clear()
        natives = [
            confluent_kafka.TopicPartition(tp.topic, tp.partition, start if offset is None else offset)
            for tp, offset in self._next.items()
        ]
        self._consumer.assign(natives)
        paused = [native for native, name in zip(natives, self._names.values(), strict=True) if name in self._paused]
        if paused:
            self._consumer.pause(paused)

    def _refuse_unknown_starts(self) -> None:
        """With `none` a partition that was never read is an error, too."""
        unknown = [self._names[tp] for tp, offset in self._next.items() if offset is None]
        if unknown and self._reset_to is None:
            raise OffsetLostError(
                f"There is no committed offset for {unknown[0]}, and auto.offset.reset=none allows no start without "
                "one. Alter the connector's offsets, or set consumer.override.auto.offset.reset to earliest or latest."
            )

    def _reset(self, error: Any, topic: str, partition: int) -> None:
        """The position of a partition is gone: goes on where auto.offset.reset says."""
        where = f"topic {topic}, partition {partition}"
        key = TopicPartition(topic, partition)
        if self._reset_to is None or key not in self._next:
            raise error_of(error, f"Reading {where}")
        goal = "earliest" if self._reset_to == confluent_kafka.OFFSET_BEGINNING else "latest"
        logger.warning(
            "Offset %s of %s is gone: reading goes on at the %s record, because auto.offset.reset=%s. "
            "Records in between are lost, or come again if the topic was made anew.",
            self._next[key], where, goal, goal,
        )  # fmt: skip
        self._next[key] = None
        self._ends.pop(key, None)
        native = confluent_kafka.TopicPartition(topic, partition, self._reset_to)
        self._consumer.incremental_unassign([native])
        self._consumer.incremental_assign([native])

    def _next_ready(self) -> Batch | None:
        """Takes the next batch that is not of a paused partition."""
        for index, batch in enumerate(self._ready):
            if not self._paused or self._name_of(batch) not in self._paused:
                del self._ready[index]
                return batch
        return None

    def _split_ready(self) -> None:
        """Makes every batch that waits one of a single partition."""
        self._ready = deque(part for batch in self._ready for part in _by_partition(batch))

    def _name_of(self, batch: Batch) -> str:
        """Partition of a batch as compact JSON; empty when it is of several."""
        topic, partition = batch.constants.topic, batch.constants.partition
        return "" if topic is None or partition is None else self._names.get(TopicPartition(topic, partition), "")

    def _consume(self, timeout_s: float) -> list[Any]:
        """Waits for one message, then takes those that are there; events are handled and left out."""
        consume = self._consumer.consume
        messages: list[Any] = self._clean(consume(1, timeout_s))
        if not messages:
            return messages
        wanted = self._size.rows
        while len(messages) < wanted:
            asked = min(wanted - len(messages), CONSUME_MAX)
            more = consume(asked, 0)
            messages += self._clean(more)
            if len(more) < asked:
                break
        return messages

    def _clean(self, messages: list[Any]) -> list[Any]:
        if not any(map(_error, messages)):
            return messages
        kept = []
        for message in messages:
            error = message.error()
            if error is None:
                kept.append(message)
                continue
            if error.code() == KafkaError._PARTITION_EOF:
                end = TopicPartition(message.topic(), message.partition())
                if self._begins_at(end) and not any(
                    _topic(each) == end.topic and _partition(each) == end.partition for each in kept
                ):
                    self._begin_at(end, message.offset())
                self._ends[end] = message.offset()
            elif message.topic() is None:
                self._judge(error, None)
            else:
                self._judge(error, TopicPartition(message.topic(), message.partition()))
        return kept

    def _begins_at(self, partition: TopicPartition) -> bool:
        """Whether reading of a partition begins where its end is met first: `latest`, and no position yet."""
        return self._reset_to == confluent_kafka.OFFSET_END and self._next.get(partition, 0) is None

    def _begin_at(self, partition: TopicPartition, end: int) -> None:
        """Tells the position of a partition that begins at its end, without a row.

        Were it not committed, the next lease would begin at a later end and leave out what has come in between.
        """
        records = pa.RecordBatch.from_arrays([pa.array([], pa.binary()), timestamp_array([])], ["value", "timestamp"])
        constants = Constants(partition.topic, partition.partition, end)
        self._ready.append(Batch(records, constants, (self._mark(partition.topic, partition.partition, end - 1, 0),)))

    def _judge(self, error: Any, partition: TopicPartition | None) -> None:
        """Goes on after an error where that is right, and raises it otherwise."""
        if error.code() == KafkaError._AUTO_OFFSET_RESET and partition is not None:
            self._reset(error, partition.topic, partition.partition)
        elif is_missing(error):
            self._missing(error)
        elif is_reconnecting(error):
            self._trouble = f"The Kafka consumer is reconnecting: {error.str()}."
        else:
            where = "Reading from Kafka"
            if partition is not None:
                where = f"Reading topic {partition.topic}, partition {partition.partition}"
            raise error_of(error, where)

    def _open_queues(self, consumer: Any) -> NativeQueues | None:
        partitions = sorted(self._next, key=lambda partition: (partition.topic, partition.partition))
        return open_queues(consumer, self._client_id, partitions)

    def _take(self, queues: NativeQueues, timeout_s: float) -> list[Batch]:
        """Takes records by the compiled helper, and what else the consumer has to tell."""
        # Serves callbacks; errors that are of no partition come here too.
        strays = self._clean(self._consumer.consume(STRAYS_MAX, 0))
        if strays:
            # The client has made a partition anew, as for a topic that was: its records are in the common queue first.
            queues.close()
            self._queues = self._open_queues(self._consumer)
            return self._batches(strays)
        rows, events = queues.poll(timeout_s, BATCH_ROWS_MAX, self._size.bytes_target)
        read = {partition for partition, _ in rows.runs} if rows is not None and events else ()
        for event in events:
            error = KafkaError(event.code, event.text or None)
            if event.partition is None:
                self._on_error(error)
            elif event.code == KafkaError._PARTITION_EOF:
                if self._begins_at(event.partition) and event.partition not in read:
                    self._begin_at(event.partition, event.offset)
                self._ends[event.partition] = event.offset
            else:
                self._judge(error, event.partition)
        return [] if rows is None else self._native_batches(rows)

    def _native_batches(self, rows: Rows) -> list[Batch]:
        batches, start = [], 0
        for topic, runs in itertools.groupby(rows.runs, key=lambda run: run[0].topic):
            counted = [(partition.partition, count) for partition, count in runs]
            groups = [counted] if _are_short(counted) else [[run] for run in counted]
            for group in groups:
                length = sum(count for _, count in group)
                whole = length == len(rows.offsets)
                columns = rows.columns if whole else _sliced(rows.columns, start, length)
                batches.append(self._batch(topic, columns, rows.offsets[start : start + length], group))
                start += length
        return batches

    def _batches(self, messages: list[Any]) -> list[Batch]:
        """Makes batches of one topic each, and of one partition each where runs are long."""
        if not messages:
            return []
        if not self._only_topic:
            topics: list[Any] = list(map(_topic, messages))
            return [
                batch
                for start, end in _runs(np.array(topics))
                for batch in self._topic_batches(topics[start], messages[start:end])
            ]
        return self._topic_batches(self._only_topic, messages)

    def _topic_batches(self, topic: str, messages: list[Any]) -> list[Batch]:
        partitions = np.fromiter(map(_partition, messages), np.int32, len(messages))
        runs = _runs(partitions)
        counted = [(int(partitions[start]), end - start) for start, end in runs]
        if _are_short(counted):
            return [self._message_batch(topic, messages, counted)]
        return [
            self._message_batch(topic, messages[start:end], [run])
            for (start, end), run in zip(runs, counted, strict=True)
        ]

    def _message_batch(self, topic: str, messages: list[Any], runs: list[tuple[int, int]]) -> Batch:
        rows = len(messages)
        columns: dict[str, pa.Array] = {"value": binary_array(list(map(_value, messages)))}
        keys = list(map(_key, messages))
        if keys.count(None) != rows:
            columns["key"] = binary_array(keys)
        headers: list[Any] = list(map(_headers, messages))
        if headers.count(None) != rows:
            columns["headers"] = headers_array(headers)
        columns["timestamp"] = timestamp_array(list(map(_timestamp, messages)))
        # Keys and headers are small beside the values; what matters is that batches stay about the size aimed at.
        self._size.saw(rows, columns["value"].buffers()[2].size + ROW_OVERHEAD * rows)
        return self._batch(topic, columns, np.fromiter(map(_offset, messages), np.int64, rows), runs)

    def _batch(self, topic: str, columns: dict[str, pa.Array], offsets: Any, runs: list[tuple[int, int]]) -> Batch:
        """Makes a batch of columns and offsets; the runs tell partitions and their numbers of rows, in order."""
        rows = len(offsets)
        if len(runs) == 1:
            partition = runs[0][0]
            # Offsets of one partition rise, so that a span as long as the run has no gap.
            dense = offsets[-1] - offsets[0] == rows - 1
            constants = Constants(topic, partition, int(offsets[0]) if dense else None)
            if not dense:
                columns = {**columns, "offset": pa.array(offsets)}
            marks: tuple[Mark, ...] = (self._mark(topic, partition, int(offsets[-1]), rows),)
        else:
            constants = Constants(topic=topic)
            numbers, counts = zip(*runs, strict=True)
            partitions = np.repeat(np.array(numbers, np.int32), counts)
            columns = {**columns, "partition": pa.array(partitions), "offset": pa.array(offsets)}
            last = dict(zip(numbers, np.cumsum(counts).tolist(), strict=True))
            marks = tuple(
                self._mark(topic, partition, int(offsets[end - 1]), end)
                for partition, end in sorted(last.items(), key=lambda item: item[1])
            )
        return Batch(pa.RecordBatch.from_arrays(list(columns.values()), names=list(columns)), constants, marks)

    def _mark(self, topic: str, partition: int, offset: int, rows: int) -> Mark:
        key = TopicPartition(topic, partition)
        self._next[key] = offset + 1
        return Mark(rows, kafka_position(topic, partition, offset + 1))


def _by_partition(batch: Batch) -> Iterator[Batch]:
    """Yields the rows of each partition as a batch of its own, with its mark."""
    column = batch.column("partition")
    if batch.constants.partition is not None or column is None:
        yield batch
        return
    partitions = np.asarray(column)
    for partition in dict.fromkeys(partitions.tolist()):
        part = keep_rows(batch, np.flatnonzero(partitions == partition).tolist())
        name = kafka_partition_json(str(batch.constants.topic), partition)
        marks = tuple(mark for mark in part.marks if mark.position.partition == name)
        records = part.records.drop_columns("partition")
        constants = dataclasses.replace(part.constants, partition=partition)
        yield dataclasses.replace(part, records=records, constants=constants, marks=marks)


def _are_short(runs: Sequence[tuple[int, int]]) -> bool:
    """Whether runs, told by partition and rows, are better off in one batch."""
    return len(runs) > 1 and sum(rows for _, rows in runs) < len(runs) * RUN_ROWS_MIN


def _sliced(columns: dict[str, pa.Array], start: int, rows: int) -> dict[str, pa.Array]:
    """Returns some rows of the columns, without those that none of the rows needs."""
    sliced = {name: column.slice(start, rows) for name, column in columns.items()}
    if "key" in sliced and sliced["key"].null_count == rows:
        del sliced["key"]
    if "headers" in sliced and not len(sliced["headers"].flatten()):
        del sliced["headers"]
    return sliced


def _runs(values: Any) -> list[tuple[int, int]]:
    """Returns start and end of each run of equal values."""
    edges = (np.flatnonzero(values[1:] != values[:-1]) + 1).tolist()
    return list(zip([0, *edges], [*edges, len(values)], strict=True))
