"""Batches: rows on their way, as an Arrow record batch with marks and row errors.

The columns are key, value, headers, timestamp, topic, partition and offset; only value is required. A column that has
one value for all rows travels in `Constants` instead. A batch never changes; what looks like a change makes a new one
that shares the buffers.

Where something stands "at row k" (a mark, or the error of a source row that could not be read), it comes after the
first k rows and before the row of index k. Cutting a batch gives what stands on the border to the earlier part.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final

import pyarrow as pa

from wherry.contract.errors import ConnectorBugError, ErrorClass, RecordRejectedError
from wherry.contract.position import Position

VALUE: Final = "value"
KEY: Final = "key"
HEADERS: Final = "headers"
TIMESTAMP: Final = "timestamp"
TOPIC: Final = "topic"
PARTITION: Final = "partition"
OFFSET: Final = "offset"
COLUMN_NAMES: Final = frozenset({VALUE, KEY, HEADERS, TIMESTAMP, TOPIC, PARTITION, OFFSET})

# Header bytes untouched; a batch may as well have typed header values.
HEADERS_TYPE: Final = pa.list_(pa.struct([("name", pa.string()), ("value", pa.binary())]))
# A schemaless value: JSON text, parsed only when something looks inside.
JSON_TYPE: Final = pa.json_()
TIMESTAMP_TYPE: Final = pa.timestamp("ms", tz="UTC")

_EMPTY: Final = pa.record_batch([pa.nulls(0)], names=[VALUE])


@dataclass(frozen=True, slots=True)
class Mark:
    """Says that after the first `row_count` rows of a batch a partition stands at a position."""

    row_count: int
    position: Position


@dataclass(frozen=True, slots=True)
class RowError:
    """One row that can't be delivered.

    Attributes:
        row: Sinks: index of the row in its batch. Sources: rows of the batch that came before the unreadable one,
            which is itself not among them.
        error_class: What kind of error it is; TRANSIENT asks the engine to offer the row once more, together with the
            rows that followed it in its partition, so that their order stays. A sink that stores positions with the
            rows has no use for it: it fails as a whole instead.
        reason: Upper-case constant, such as VALUE_TOO_LONG.
        field_path: Field at fault as a dotted path; empty when the whole row is.
        message: One sentence for a person, without secrets.
        raw: Bytes that could not be understood; sources only.
    """

    row: int
    error_class: ErrorClass
    reason: str = ""
    field_path: str = ""
    message: str = ""
    raw: bytes = b""

    @classmethod
    def of(cls, row: int, error: RecordRejectedError) -> RowError:
        """Makes the row error of an exception."""
        return cls(row, error.error_class, error.reason, error.field_path, str(error), error.raw)


@dataclass(frozen=True, slots=True)
class Constants:
    """Columns that have one value in all rows of a batch.

    Attributes:
        topic: Topic of every row.
        partition: Partition of every row.
        first_offset: Offset of row 0, where row i has `first_offset` + i.
        timestamp_ms: Timestamp of every row, in ms since the epoch.
        original_topic: Topic every row was read from, where rows have another topic or partition since; only told to
            sinks. None: the topic.
        original_partition: Partition every row was read from; None as with `original_topic`.
    """

    topic: str | None = None
    partition: int | None = None
    first_offset: int | None = None
    timestamp_ms: int | None = None
    original_topic: str | None = None
    original_partition: int | None = None

    def from_row(self, start: int) -> Constants:
        """Returns the constants of the rows from `start` on."""
        if self.first_offset is None or not start:
            return self
        return replace(self, first_offset=self.first_offset + start)


NO_CONSTANTS: Final = Constants()


@dataclass(frozen=True, slots=True)
class Batch:
    """Rows with the positions they lead to.

    Attributes:
        records: The columns.
        constants: Columns that have one value in all rows.
        marks: Positions reached, in row order.
        row_errors: Source rows that could not be read.
        traceparent: W3C trace context of the batch; empty when tracing is off.
    """

    records: pa.RecordBatch
    constants: Constants = field(default=NO_CONSTANTS)
    marks: tuple[Mark, ...] = ()
    row_errors: tuple[RowError, ...] = ()
    traceparent: str = ""

    def __post_init__(self) -> None:
        names = self.records.schema.names
        if VALUE not in names or not COLUMN_NAMES.issuperset(names):
            raise ConnectorBugError(
                f"A batch has the columns {', '.join(names) or '(none)'}; it needs value, and may have key, headers, "
                "timestamp, topic, partition and offset.",
                reason="BAD_BATCH",
            )

    @property
    def num_rows(self) -> int:
        """Number of rows."""
        return int(self.records.num_rows)

    @property
    def nbytes(self) -> int:
        """Bytes of the columns, only the parts that belong to these rows."""
        return int(self.records.nbytes)

    def stored(self, name: str) -> pa.Array | None:
        """Returns a column as it is carried; None when it is absent or constant."""
        index = self.records.schema.get_field_index(name)
        return None if index < 0 else self.records.column(index)

    def column(self, name: str) -> pa.Array | None:
        """Returns a column, made from its constant where it has one; None when the rows don't have it."""
        stored = self.stored(name)
        return self._constant_column(name) if stored is None else stored

    @property
    def value(self) -> pa.Array:
        """The values."""
        return self.records.column(VALUE)

    @property
    def key(self) -> pa.Array | None:
        """The keys; None when no row has one."""
        return self.stored(KEY)

    @property
    def headers(self) -> pa.Array | None:
        """The headers; None when no row has any."""
        return self.stored(HEADERS)

    @property
    def timestamp(self) -> pa.Array | None:
        """The timestamps; None when the rows have none."""
        return self.column(TIMESTAMP)

    def topics(self) -> list[str | None]:
        """Returns the topics of the rows, each once, in order of appearance; [None] when they have none."""
        stored = self.stored(TOPIC)
        if stored is None:
            return [self.constants.topic]
        return list(stored.unique().to_pylist())

    def topic_runs(self) -> Iterator[tuple[str | None, int, int]]:
        """Yields topic, first row and number of rows of each run of rows of one topic; None when they have none."""
        stored = self.stored(TOPIC)
        if stored is None:
            if self.num_rows:
                yield self.constants.topic, 0, self.num_rows
            return
        import pyarrow.compute as pc  # heavy, and most batches are of one topic

        runs = pc.run_end_encode(stored.cast(pa.string()))
        start = 0
        for topic, end in zip(runs.values.to_pylist(), runs.run_ends.to_pylist(), strict=True):
            yield topic, start, end - start
            start = end

    def slice(self, start: int, length: int | None = None) -> Batch:
        """Returns some of the rows, without copying.

        Args:
            start: Index of the first row.
            length: Number of rows; None means all that follow.

        Returns:
            The rows with the marks and row errors that stand within them or at their end. Those at `start` belong to
            the rows before, unless there are none.
        """
        records = self.records.slice(start, length)
        end = start + records.num_rows

        def mine(row: int) -> bool:
            return start < row <= end or (start == 0 and row == 0)

        return Batch(
            records,
            self.constants.from_row(start),
            tuple(Mark(mark.row_count - start, mark.position) for mark in self.marks if mine(mark.row_count)),
            tuple(replace(error, row=error.row - start) for error in self.row_errors if mine(error.row)),
            self.traceparent,
        )

    def split(self, bytes_max: int) -> Iterator[Batch]:
        """Cuts the batch into runs of rows of at most about `bytes_max` bytes, and of one row at least.

        Rows of one batch are taken to be of similar size; a piece that turns out larger is cut again.
        """
        if self.num_rows <= 1 or self.nbytes <= bytes_max:
            yield self
            return
        rows = max(1, min(self.num_rows - 1, self.num_rows * bytes_max // self.nbytes))
        for start in range(0, self.num_rows, rows):
            yield from self.slice(start, rows).split(bytes_max)

    def with_columns(self, **columns: pa.Array | None) -> Batch:
        """Returns the batch with columns put in place of others; None takes one away.

        A column given here wins over a constant of the same name.
        """
        names = list(self.records.schema.names)
        arrays = dict(zip(names, self.records.columns, strict=True))
        fields = {name: self.records.schema.field(name) for name in names}
        constants = self.constants
        for name, array in columns.items():
            constants = _without(constants, name)
            fields.pop(name, None)
            arrays.pop(name, None)
            if array is not None:
                arrays[name] = array
                fields[name] = pa.field(name, array.type)
        schema = pa.schema([fields[name] for name in arrays], metadata=self.records.schema.metadata)
        return replace(
            self, records=pa.RecordBatch.from_arrays(list(arrays.values()), schema=schema), constants=constants
        )

    def with_constants(self, constants: Constants) -> Batch:
        """Returns the batch with other constants."""
        return replace(self, constants=constants)

    def with_marks(self, *marks: Mark) -> Batch:
        """Returns the batch with other marks."""
        return replace(self, marks=tuple(marks))

    def _constant_column(self, name: str) -> pa.Array | None:
        constants, rows = self.constants, self.num_rows
        if name == TOPIC and constants.topic is not None:
            return pa.repeat(pa.scalar(constants.topic, pa.string()), rows)
        if name == PARTITION and constants.partition is not None:
            return pa.repeat(pa.scalar(constants.partition, pa.int32()), rows)
        if name == TIMESTAMP and constants.timestamp_ms is not None:
            return pa.repeat(pa.scalar(constants.timestamp_ms, TIMESTAMP_TYPE), rows)
        if name == OFFSET and constants.first_offset is not None:
            return pa.arange(constants.first_offset, constants.first_offset + rows)
        return None


def mark_only(*marks: Mark | Position) -> Batch:
    """Returns a batch without rows that only moves positions."""
    return Batch(_EMPTY, marks=tuple(mark if isinstance(mark, Mark) else Mark(0, mark) for mark in marks))


def of_value(
    value: pa.Array, *, constants: Constants = NO_CONSTANTS, marks: Sequence[Mark] = (), **columns: Any
) -> Batch:
    """Returns a batch of a value column and other columns; those given as None are left out."""
    present = {VALUE: value, **{name: array for name, array in columns.items() if array is not None}}
    return Batch(pa.RecordBatch.from_arrays(list(present.values()), names=list(present)), constants, tuple(marks))


def concat(batches: Sequence[Batch]) -> Batch:
    """Joins batches, in order, with their marks and row errors.

    Batches without rows only add their marks. A constant that is not the same in all becomes a column.

    Raises:
        ConnectorBugError: The batches have different schemas, or there is none.
    """
    if not batches:
        raise ConnectorBugError("There is no batch to join.", reason="BAD_BATCH")
    if len(batches) == 1:
        return batches[0]
    with_rows = [batch for batch in batches if batch.num_rows] or [batches[0]]
    constants = _common(with_rows)
    records = [_spread(batch, constants).records for batch in with_rows]
    if any(not records[0].schema.equals(other.schema, check_metadata=True) for other in records[1:]):
        raise ConnectorBugError("Batches of different schemas can't be joined; cut them into runs.", reason="BAD_BATCH")
    marks: list[Mark] = []
    errors: list[RowError] = []
    start = 0
    for batch in batches:
        marks.extend(Mark(start + mark.row_count, mark.position) for mark in batch.marks)
        errors.extend(replace(error, row=start + error.row) for error in batch.row_errors)
        start += batch.num_rows
    joined = records[0] if len(records) == 1 else pa.concat_batches(records)
    return Batch(joined, constants, tuple(marks), tuple(errors), batches[0].traceparent)


def _common(batches: Sequence[Batch]) -> Constants:
    """Returns the constants that hold for all rows of the batches put one after another."""
    first = batches[0].constants
    topic, partition, offset, timestamp = first.topic, first.partition, first.first_offset, first.timestamp_ms
    rows = 0
    for batch in batches:
        other = batch.constants
        topic = topic if other.topic == topic else None
        partition = partition if other.partition == partition else None
        timestamp = timestamp if other.timestamp_ms == timestamp else None
        if offset is not None and other.first_offset != offset + rows:
            offset = None
        rows += batch.num_rows
    origins = {(batch.constants.original_topic, batch.constants.original_partition) for batch in batches}
    return Constants(topic, partition, offset, timestamp, *(origins.pop() if len(origins) == 1 else ()))


def _spread(batch: Batch, kept: Constants) -> Batch:
    """Turns the constants that aren't kept into columns."""
    mine = batch.constants
    columns: dict[str, pa.Array] = {}
    for name, mine_has, kept_has in (
        (TOPIC, mine.topic, kept.topic),
        (PARTITION, mine.partition, kept.partition),
        (OFFSET, mine.first_offset, kept.first_offset),
        (TIMESTAMP, mine.timestamp_ms, kept.timestamp_ms),
    ):
        if mine_has is not None and kept_has is None:
            columns[name] = batch.column(name)
    return batch.with_columns(**columns).with_constants(kept) if columns else batch.with_constants(kept)


def _without(constants: Constants, name: str) -> Constants:
    if name == TOPIC:
        return replace(constants, topic=None)
    if name == PARTITION:
        return replace(constants, partition=None)
    if name == OFFSET:
        return replace(constants, first_offset=None)
    if name == TIMESTAMP:
        return replace(constants, timestamp_ms=None)
    return constants
