"""Reads topic partitions at given offsets: no group membership, no commits, bounded memory.

The first record is waited for; what else is there is taken without waiting, up to a number of bytes that grows under
load. Each batch ends with a mark per partition: the next offset to read. Values, keys and headers stay bytes; columns
that no record needs (keys, headers) are not made.

Each batch is of one topic, so that converters and sinks see one schema at a time; its partition and offsets travel as
constants where they are consecutive.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping, Sequence
from typing import Any, Final

import confluent_kafka
import pyarrow as pa
from confluent_kafka import KafkaError, KafkaException, Message

from wherry.contract.batch import HEADERS_TYPE, TIMESTAMP_TYPE, Batch, Constants, Mark
from wherry.contract.errors import ConfigError
from wherry.contract.position import (
    Position,
    TopicPartition,
    kafka_partition_json,
    kafka_position,
    parse_kafka_position,
)
from wherry.worker.endpoints.kafka_config import ClientConfig
from wherry.worker.endpoints.kafka_errors import error_of, is_reconnecting
from wherry.worker.policy import BATCH_BYTES_TARGET, BatchSize

# Messages of one batch that are consumed at once; a larger batch takes several calls.
CONSUME_MAX: Final = 20_000
CLOSE_TIMEOUT_S: Final = 2.0
# Bytes a record costs beside key and value: timestamp, offset, lengths.
_ROW_OVERHEAD: Final = 24

_value, _key, _headers = Message.value, Message.key, Message.headers
_offset, _partition, _topic = Message.offset, Message.partition, Message.topic
_error, _timestamp, _length = Message.error, Message.timestamp, Message.__len__


class KafkaReader:
    """A `Reader` of topic partitions."""

    def __init__(
        self, client: ClientConfig, positions: Sequence[Position], *, bytes_target: int = BATCH_BYTES_TARGET
    ) -> None:
        self._client = client
        self._size = BatchSize(bytes_target)
        self._next: dict[TopicPartition, int | None] = dict(parse_kafka_position(position) for position in positions)
        # Offset at which an end was met; a record read since then has a higher one.
        self._ends: dict[TopicPartition, int] = {}
        self._names = {tp: kafka_partition_json(tp.topic, tp.partition) for tp in self._next}
        self._paused: frozenset[str] = frozenset()
        self._ready: deque[Batch] = deque()
        self._draining = False
        self._trouble = ""
        self._closed = False
        try:
            self._consumer = confluent_kafka.Consumer(client.values)
            self._assign()
        except KafkaException as error:
            raise error_of(error.args[0], "Making the Kafka consumer") from error

    def poll(self, timeout_s: float) -> Batch | None:
        """See `Reader.poll`."""
        if self._ready:
            return self._ready.popleft()
        if self._draining:
            return None
        messages = self._consume(timeout_s)
        if not messages:
            return None
        self._trouble = ""
        self._ready.extend(self._batches(messages))
        return self._ready.popleft()

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
        self._ready.clear()
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
        self._paused = wanted

    def drain(self, deadline_s: float) -> None:
        """Stops reading; what was read is still given."""
        self._draining = True

    def close(self) -> None:
        """See `Reader.close`."""
        if not self._closed:
            self._closed = True
            self._ready.clear()
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

    def _at_end(self, partition: TopicPartition) -> bool:
        end = self._ends.get(partition)
        return end is not None and (self._next[partition] or 0) <= end

    def _assign(self) -> None:
        reset = str(self._client.values.get("auto.offset.reset", "error"))
        start = (
            confluent_kafka.OFFSET_END if reset in {"latest", "largest", "end"} else confluent_kafka.OFFSET_BEGINNING
        )
        self._ends.clear()
        self._consumer.assign(
            [
                confluent_kafka.TopicPartition(tp.topic, tp.partition, start if offset is None else offset)
                for tp, offset in self._next.items()
            ]
        )

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
        self._size.saw(len(messages), sum(map(_length, messages)) + _ROW_OVERHEAD * len(messages))
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
                self._ends[TopicPartition(message.topic(), message.partition())] = message.offset()
            elif is_reconnecting(error):
                self._trouble = f"The Kafka consumer is reconnecting: {error.str()}."
            else:
                where = "Reading from Kafka"
                if message.topic() is not None:
                    where = f"Reading topic {message.topic()}, partition {message.partition()}"
                raise error_of(error, where)
        return kept

    def _batches(self, messages: list[Any]) -> list[Batch]:
        """Makes one batch of each run of messages of one topic."""
        topics = list(map(_topic, messages))
        first = topics[0]
        if topics.count(first) == len(topics):
            return [self._batch(first, messages)]
        batches, start = [], 0
        for index in range(1, len(topics) + 1):
            if index == len(topics) or topics[index] != topics[start]:
                batches.append(self._batch(topics[start], messages[start:index]))
                start = index
        return batches

    def _batch(self, topic: str, messages: list[Any]) -> Batch:
        rows = len(messages)
        partitions, offsets = list(map(_partition, messages)), list(map(_offset, messages))
        columns: dict[str, pa.Array] = {"value": pa.array(list(map(_value, messages)), pa.binary())}
        keys = list(map(_key, messages))
        if keys.count(None) != rows:
            columns["key"] = pa.array(keys, pa.binary())
        headers = list(map(_headers, messages))
        if headers.count(None) != rows:
            columns["headers"] = headers_array(headers)
        times = [time[1] for time in map(_timestamp, messages)]
        timestamps = pa.array(times, pa.int64())
        if min(times) < 0:
            timestamps = pa.array([time if time >= 0 else None for time in times], pa.int64())
        columns["timestamp"] = timestamps.cast(TIMESTAMP_TYPE)

        constants = Constants(topic=topic)
        first = partitions[0]
        if partitions.count(first) == rows:
            # Offsets of one partition rise, so that a span as long as the run has no gap.
            dense = offsets[-1] - offsets[0] == rows - 1
            constants = Constants(topic, first, offsets[0] if dense else None)
            if not dense:
                columns["offset"] = pa.array(offsets, pa.int64())
            marks = (self._mark(topic, first, offsets[-1], rows),)
        else:
            columns["partition"] = pa.array(partitions, pa.int32())
            columns["offset"] = pa.array(offsets, pa.int64())
            last = {partition: row for row, partition in enumerate(partitions)}
            marks = tuple(
                self._mark(topic, partition, offsets[row], row + 1)
                for partition, row in sorted(last.items(), key=lambda item: item[1])
            )
        records = pa.RecordBatch.from_arrays(list(columns.values()), names=list(columns))
        return Batch(records, constants, marks)

    def _mark(self, topic: str, partition: int, offset: int, rows: int) -> Mark:
        key = TopicPartition(topic, partition)
        self._next[key] = offset + 1
        return Mark(rows, kafka_position(topic, partition, offset + 1))


def headers_array(headers: Sequence[list[tuple[str, bytes | None]] | None]) -> pa.Array:
    """Makes a column of HEADERS_TYPE from the headers of messages; None means none."""
    offsets, names, values, total = [0], [], [], 0
    for pairs in headers:
        for name, value in pairs or ():
            names.append(name)
            values.append(value)
        total += len(pairs or ())
        offsets.append(total)
    fields = [HEADERS_TYPE.value_type.field(0), HEADERS_TYPE.value_type.field(1)]
    structs = pa.StructArray.from_arrays([pa.array(names, pa.string()), pa.array(values, pa.binary())], fields=fields)
    return pa.ListArray.from_arrays(pa.array(offsets, pa.int32()), structs, type=HEADERS_TYPE)


def starting_positions(positions: Mapping[str, Position], partitions: Sequence[str]) -> list[Position]:
    """Returns a position for each partition (compact JSON): the stored one, or none."""
    return [positions.get(partition) or Position(partition, None) for partition in partitions]
