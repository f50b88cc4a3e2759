"""What authors yield and receive: records, batches, marks."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from wherry.contract import batch as contract
from wherry.contract.batch import Constants, RowError
from wherry.contract.position import Position

Headers = Mapping[str, str | bytes | None] | Sequence[tuple[str, str | bytes | None]]


class Record:
    """One row.

    A source gives partition and offset: where the source stands after this row, in maps of its own; rows without them
    are read again after a restart. A sink receives kafka_partition and kafka_offset instead.

    Attributes:
        value: str, bytes, or anything JSON can hold (dict, list, number, bool); None is a null (a tombstone).
        key: The same; None for no key.
        topic: Topic it goes to or comes from; in a source None means the configuration's `topic`.
        headers: Names and values, as a mapping or as pairs where names repeat.
        timestamp_ms: Timestamp in ms since the epoch; None means Kafka's own.
        partition: Source partition.
        offset: Source offset.
        schema: Arrow type (or schema) of the value; None means JSON for what isn't text or bytes.
        key_schema: Arrow type of the key; None as with `schema`.
        kafka_partition: Kafka partition.
        kafka_offset: Kafka offset; sinks only.
        original_topic: Sinks: topic it was read from, where a transformation has moved it since; else None.
        original_partition: Sinks: partition it was read from; None as with `original_topic`. `kafka_offset` is always
            the one it was read at.
    """

    __slots__ = (
        "headers",
        "kafka_offset",
        "kafka_partition",
        "key",
        "key_schema",
        "offset",
        "original_partition",
        "original_topic",
        "partition",
        "schema",
        "timestamp_ms",
        "topic",
        "value",
    )

    def __init__(
        self,
        value: Any = None,
        key: Any = None,
        topic: str | None = None,
        *,
        headers: Headers | None = None,
        timestamp_ms: int | None = None,
        partition: Mapping[str, Any] | None = None,
        offset: Mapping[str, Any] | None = None,
        schema: pa.DataType | pa.Schema | None = None,
        key_schema: pa.DataType | None = None,
        kafka_partition: int | None = None,
        kafka_offset: int | None = None,
        original_topic: str | None = None,
        original_partition: int | None = None,
    ) -> None:
        self.value = value
        self.key = key
        self.topic = topic
        self.headers = headers
        self.timestamp_ms = timestamp_ms
        self.partition = partition
        self.offset = offset
        self.schema = schema
        self.key_schema = key_schema
        self.kafka_partition = kafka_partition
        self.kafka_offset = kafka_offset
        self.original_topic = original_topic
        self.original_partition = original_partition

    def __repr__(self) -> str:
        told = ((name, getattr(self, name)) for name in sorted(self.__slots__, key=_ORDER.get))  # type: ignore[arg-type]
        return f"Record({', '.join(f'{name}={value!r}' for name, value in told if value is not None)})"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Record) and all(getattr(self, n) == getattr(other, n) for n in self.__slots__)

    __hash__ = None  # type: ignore[assignment]  # it holds what authors put in


_NAMES = (
    "topic kafka_partition kafka_offset original_topic original_partition "
    "key value headers timestamp_ms partition offset schema key_schema"
)
_ORDER = {name: place for place, name in enumerate(_NAMES.split())}


class Mark(contract.Mark):
    """Says that after the first `rows` rows of a batch a source partition stands at an offset.

    Yielded by itself, with rows 0, it moves a position without rows.
    """

    __slots__ = ()

    def __init__(self, rows: int, partition: Mapping[str, Any], offset: Mapping[str, Any] | None) -> None:
        super().__init__(rows, Position.of(partition, offset))


class Batch(contract.Batch):
    """Rows as Arrow columns: what a batch-wise source yields and a batch-wise sink receives.

    Args:
        records: A record batch with the column value and, where needed, key, headers, timestamp, topic, partition
            (Kafka's) and offset.
        value: Instead of `records`: the values.
        key: Beside `value`: the keys.
        headers: Beside `value`: the headers, of `HEADERS_TYPE`.
        timestamp: Beside `value`: the timestamps, timestamp[ms, UTC].
        topic: Topic of all rows; in a source None, without a topic column, means the configuration's `topic`.
        marks: Positions reached, in row order.
        row_errors: Rows of the source that could not be read.
    """

    __slots__ = ()

    def __init__(
        self,
        records: pa.RecordBatch | None = None,
        *,
        value: pa.Array | None = None,
        key: pa.Array | None = None,
        headers: pa.Array | None = None,
        timestamp: pa.Array | None = None,
        topic: str | None = None,
        marks: Iterable[contract.Mark] = (),
        row_errors: Iterable[RowError] = (),
        constants: Constants | None = None,
        traceparent: str = "",
    ) -> None:
        if records is None:
            columns = {"value": value, "key": key, "headers": headers, "timestamp": timestamp}
            present = {name: array for name, array in columns.items() if array is not None}
            records = pa.RecordBatch.from_arrays(list(present.values()), names=list(present))
        if constants is None:
            constants = Constants(topic=topic) if topic is not None else contract.NO_CONSTANTS
        super().__init__(records, constants, tuple(marks), tuple(row_errors), traceparent)

    @classmethod
    def of(cls, batch: contract.Batch) -> Batch:
        """Makes the author's batch of the contract's."""
        return cls(
            batch.records,
            constants=batch.constants,
            marks=batch.marks,
            row_errors=batch.row_errors,
            traceparent=batch.traceparent,
        )


@dataclass(frozen=True, slots=True)
class CaughtUp:
    """Yielded by a source: there is nothing more now.

    Attributes:
        retry_after_ms: When there may be more, in ms from now; 0 if unknown.
    """

    retry_after_ms: int = 0
