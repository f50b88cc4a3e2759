"""The converting step of a pipeline: raw batches to Connect's and back, with failures told by row and stage.

Without failures and with one schema a batch goes through as one, sharing its buffers. Otherwise the failed rows are
cut out, the rest is converted once more, and rows of different schemas become different batches; marks stay true.
"""

from __future__ import annotations

import dataclasses
import enum
from collections.abc import Callable, Iterable, Iterator
from typing import Final, Protocol

import pyarrow as pa

from wherry.contract.batch import Batch, Mark, mark_only
from wherry.contract.headers import is_typed
from wherry.worker.convert import Converted, DataError, Run
from wherry.worker.convert.registry import Converters


class Stage(enum.Enum):
    """Where a record can fail; the names are Kafka Connect's."""

    TASK_POLL = "TASK_POLL"
    TASK_PUT = "TASK_PUT"
    TRANSFORMATION = "TRANSFORMATION"
    KEY_CONVERTER = "KEY_CONVERTER"
    VALUE_CONVERTER = "VALUE_CONVERTER"
    HEADER_CONVERTER = "HEADER_CONVERTER"
    KAFKA_PRODUCE = "KAFKA_PRODUCE"
    KAFKA_CONSUME = "KAFKA_CONSUME"


@dataclasses.dataclass(frozen=True, slots=True)
class StageFailure:
    """A row that failed in a stage.

    Attributes:
        raw: The batch it was read in.
        row: Its index there.
        stage: Where it failed.
        executing: Class of the plugin that failed it.
        error: Why.
    """

    raw: Batch
    row: int
    stage: Stage
    executing: str
    error: DataError


@dataclasses.dataclass(frozen=True, slots=True)
class Stepped:
    """A converted batch.

    Attributes:
        pieces: What became of it, in order, each with the raw rows it came from.
        failures: The rows that failed.
        filtered: How many rows were left out on purpose.
    """

    pieces: tuple[tuple[Batch, Batch], ...]
    failures: tuple[StageFailure, ...] = ()
    filtered: int = 0


_KEY: Final = (Stage.KEY_CONVERTER, "key")
_VALUE: Final = (Stage.VALUE_CONVERTER, "value")
_HEADERS: Final = (Stage.HEADER_CONVERTER, "headers")
# In which order Kafka Connect converts, and so which of two failures of a record is told.
_SINK_SIDES: Final = (_KEY, _VALUE, _HEADERS)
_SOURCE_SIDES: Final = (_HEADERS, _KEY, _VALUE)
_Sides = tuple[tuple[Stage, str], ...]
_Convert = Callable[[str, str, pa.Array, pa.Field], Converted]


class Step(Protocol):
    """Something that is done to each batch between reader and writer."""

    def apply(self, batch: Batch, raw: Batch) -> Stepped:
        """Answers with what becomes of a batch; `raw` holds the same rows as they were read."""


class ToConnect:
    """Converts what was read from Kafka."""

    def __init__(self, converters: Converters) -> None:
        self._converters = converters

    def apply(self, batch: Batch, raw: Batch) -> Stepped:
        """See `Step.apply`."""
        return _step(batch, raw, self._converters, self._convert, _SINK_SIDES)

    def _convert(self, topic: str, side: str, column: pa.Array, field: pa.Field) -> Converted:
        return getattr(self._converters, side).to_connect(topic, column)  # type: ignore[no-any-return]


class FromConnect:
    """Converts what goes to Kafka."""

    def __init__(self, converters: Converters) -> None:
        self._converters = converters

    def apply(self, batch: Batch, raw: Batch) -> Stepped:
        """See `Step.apply`."""
        return _step(batch, raw, self._converters, self._convert, _SOURCE_SIDES)

    def _convert(self, topic: str, side: str, column: pa.Array, field: pa.Field) -> Converted:
        return getattr(self._converters, side).from_connect(topic, field, column)  # type: ignore[no-any-return]


class WriteHeaders:
    """Turns the typed headers that transforms have added into bytes; plain ones stay."""

    def __init__(self, converters: Converters, *, for_sink: bool = True) -> None:
        self._converters = converters
        self._for_sink = for_sink

    def apply(self, batch: Batch, raw: Batch) -> Stepped:
        """See `Step.apply`."""
        if batch.headers is None or not is_typed(batch.headers):
            return Stepped(((batch, raw),))
        return _step(batch, raw, self._converters, self._convert, (_HEADERS,))

    def _convert(self, topic: str, side: str, column: pa.Array, field: pa.Field) -> Converted:
        return self._converters.headers.written(column, for_sink=self._for_sink)


def keep_rows(batch: Batch, rows: list[int]) -> Batch:
    """Returns some rows of a batch, by rising index; a mark stays after the rows it stood after."""
    schema = batch.records.schema
    columns, fields = list(batch.records.columns), list(schema)
    if batch.constants.first_offset is not None:
        columns.append(batch.column("offset"))
        fields.append(pa.field("offset", pa.int64()))
    indices = pa.array(rows, pa.int64())
    records = pa.RecordBatch.from_arrays([column.take(indices) for column in columns], schema=pa.schema(fields))
    constants = dataclasses.replace(batch.constants, first_offset=None)
    marks, kept = [], 0
    for mark in batch.marks:
        while kept < len(rows) and rows[kept] < mark.row_count:
            kept += 1
        marks.append(Mark(kept, mark.position))
    return dataclasses.replace(batch, records=records, constants=constants, marks=tuple(marks), row_errors=())


def cut_failures(batch: Batch, raw: Batch, failed: set[int]) -> tuple[Batch, Batch]:
    """Returns the rows that didn't fail, converted and raw."""
    rest = [row for row in range(batch.num_rows) if row not in failed]
    kept = keep_rows(batch, rest)
    return kept, kept if raw is batch else keep_rows(raw, rest)


def _step(batch: Batch, raw: Batch, converters: Converters, convert: _Convert, sides: _Sides) -> Stepped:
    if not batch.num_rows:
        return Stepped(((batch, raw),))
    topics = batch.topics()
    if len(topics) == 1:
        return _step_topic(batch, raw, topics[0] or "", converters, convert, sides)
    pieces: list[tuple[Batch, Batch]] = []
    failures: list[StageFailure] = []
    for start, length, topic in _topic_runs(batch):
        run = batch.slice(start, length)
        run_raw = run if raw is batch else raw.slice(start, length)
        stepped = _step_topic(run, run_raw, topic or "", converters, convert, sides)
        pieces += stepped.pieces
        failures += stepped.failures
    return Stepped(tuple(pieces), tuple(failures))


def _step_topic(
    batch: Batch, raw: Batch, topic: str, converters: Converters, convert: _Convert, sides: _Sides
) -> Stepped:
    schema = batch.records.schema
    results = {}
    for stage, side in sides:
        column = batch.stored(side)
        if column is not None:
            results[stage, side] = convert(topic, side, column, schema.field(side))
    failures = [
        StageFailure(raw, failure.row, stage, getattr(converters, side).class_name, failure.error)
        for (stage, side), converted in results.items()
        for failure in converted.failures
    ]
    if not failures:
        runs = {side: converted.runs for (_, side), converted in results.items()}
        return Stepped(tuple(_aligned(batch, raw, runs)))
    # A row that fails in both stages is told once, by the first.
    first = {failure.row: failure for failure in reversed(failures)}
    told = tuple(first[row] for row in sorted(first))
    rest, raw_rest = cut_failures(batch, raw, set(first))
    if not rest.num_rows:
        return Stepped(((mark_only(*(mark.position for mark in rest.marks)), raw_rest),) if rest.marks else (), told)
    return Stepped(_step_topic(rest, raw_rest, topic, converters, convert, sides).pieces, told)


def _aligned(batch: Batch, raw: Batch, runs: dict[str, tuple[Run, ...]]) -> Iterable[tuple[Batch, Batch]]:
    """Cuts the batch where the schema of the key or that of the value changes."""
    if all(len(found) == 1 for found in runs.values()):
        yield _with_runs(batch, {side: found[0] for side, found in runs.items()}), raw
        return
    ends = sorted({end for found in runs.values() for end in _ends(found)})
    cuts = {side: _cuts(found, ends) for side, found in runs.items()}
    start = 0
    for end in ends:
        piece = batch.slice(start, end - start)
        cut = piece if raw is batch else raw.slice(start, end - start)
        yield _with_runs(piece, {side: next(found) for side, found in cuts.items()}), cut
        start = end


def _ends(runs: tuple[Run, ...]) -> Iterable[int]:
    total = 0
    for run in runs:
        total += len(run.column)
        yield total


def _cuts(runs: tuple[Run, ...], ends: list[int]) -> Iterator[Run]:
    """Cuts runs at ends, which are those of the runs and others."""
    start = begin = 0
    left = iter(runs)
    run = next(left)
    for end in ends:
        while begin + len(run.column) <= start:
            begin += len(run.column)
            run = next(left)
        yield Run(run.field, run.column.slice(start - begin, end - start))
        start = end


def _with_runs(batch: Batch, runs: dict[str, Run]) -> Batch:
    schema = batch.records.schema
    columns, fields = [], []
    for index, name in enumerate(schema.names):
        run = runs.get(name)
        columns.append(batch.records.column(index) if run is None else run.column)
        fields.append(schema.field(index) if run is None else run.field.with_name(name))
    return dataclasses.replace(batch, records=pa.RecordBatch.from_arrays(columns, schema=pa.schema(fields)))


def _topic_runs(batch: Batch) -> Iterable[tuple[int, int, str | None]]:
    column = batch.column("topic")
    topics = [] if column is None else column.to_pylist()
    start = 0
    for row in range(1, len(topics) + 1):
        if row == len(topics) or topics[row] != topics[start]:
            yield start, row - start, topics[start]
            start = row
