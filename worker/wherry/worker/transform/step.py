"""The transforming step of a pipeline: a chain over batches, with failures told by row, and marks kept true.

Each transform gets the rows it is for. Where a predicate parts a batch, both parts are put together again in their
order afterwards: as one batch where they still have the same schema, otherwise as runs. A row that is dropped moves the
position all the same: a mark stands after what became of the rows before it.

A transform may make several rows of one. They stay together and in order; when one of them fails further down the chain
the record as a whole does, so that it is either delivered or a dead letter.
"""

from __future__ import annotations

import dataclasses
import logging
from collections.abc import Sequence
from typing import Final

import numpy as np
import pyarrow as pa

from wherry.contract.batch import JSON_TYPE, TOPIC, Batch, Mark, concat, mark_only
from wherry.contract.data import DataError
from wherry.contract.errors import ConnectorBugError, WherryError
from wherry.worker.convert.step import Stage, StageFailure, Stepped, keep_rows
from wherry.worker.retry import BrokenOffError
from wherry.worker.transform.base import Runs
from wherry.worker.transform.columns import Positions
from wherry.worker.transform.dedupe import Stateful
from wherry.worker.transform.failing import RowsFailedError
from wherry.worker.transform.registry import Link
from wherry.worker.transform.rows import Loose, Rows, Side, Typed, batch_of, rows_of
from wherry.worker.transform.shapes import can_part, parted

logger: Final = logging.getLogger("wherry.worker.transform")
# Rows that fail are cut out and the others tried again, so often at most: a transform tells all it finds at once.
TRIES_MAX: Final = 20
_JSON_CONVERTER: Final = "org.apache.kafka.connect.json.JsonConverter"


class Transforms:
    """A step that applies a chain.

    Args:
        links: The transforms, in order.
    """

    def __init__(self, links: Sequence[Link]) -> None:
        self._links = tuple(links)
        self._parts = can_part([link.transform for link in links])
        self._stateful = [link.transform for link in links if isinstance(link.transform, Stateful)]
        self._last: Batch | None = None

    def apply(self, batch: Batch, raw: Batch) -> Stepped:
        """See `Step.apply`."""
        if not batch.num_rows:
            return Stepped(((batch, raw),))
        if self._stateful:
            for transform in self._stateful:
                if batch is self._last:
                    transform.undo()
                else:
                    transform.begin()
            self._last = batch
        return self._through(self._links, batch, raw)

    def again(self, batch: Batch, raw: Batch) -> Stepped:
        """Does the same to rows that went through before and are offered once more: nothing is remembered of them."""
        if not batch.num_rows:
            return Stepped(((batch, raw),))
        return self._through([link for link in self._links if link.transform not in self._stateful], batch, raw)

    def forget(self) -> None:
        """Says that rows of long ago come again."""
        self._last = None
        for transform in self._stateful:
            transform.forget()

    def close(self) -> None:
        """Releases what the transforms hold."""
        for link in self._links:
            close = getattr(link.transform, "close", None)
            if close is not None:
                close()

    def _through(self, links: Sequence[Link], batch: Batch, raw: Batch) -> Stepped:
        failures: dict[int, StageFailure] = {}
        parts = _by_nulls(rows_of(batch))
        if self._parts:
            parts = [alike for part in parts for alike in parted(part)]
        for link in links:
            parts = [
                after for part in parts if len(part) for after in self._apply(link, part, raw, failures) if len(after)
            ]
        told = tuple(failures[row] for row in sorted(failures))
        if failures:
            # What else was made of a failed record goes with it.
            parts = [_without(part, list(failures)) for part in parts]
            parts = [part for part in parts if len(part)]
        kept = _distinct([part.index for part in parts])
        written = [*zip((part.index for part in parts), _alike([*map(batch_of, parts)]), strict=True)]
        return Stepped(_pieces(written, batch, raw), told, filtered=batch.num_rows - kept - len(told))

    def _apply(self, link: Link, rows: Rows, raw: Batch, failures: dict[int, StageFailure]) -> list[Rows]:
        mask = link.mask(rows)
        if mask is None or mask.all():
            return self._transform(link, rows, raw, failures)
        if not mask.any():
            return [rows]
        changed = self._transform(link, rows.take(np.flatnonzero(mask)), raw, failures)
        return [*changed, rows.take(np.flatnonzero(~mask))]

    def _transform(self, link: Link, rows: Rows, raw: Batch, failures: dict[int, StageFailure]) -> list[Rows]:
        transform = link.transform
        for _ in range(TRIES_MAX):
            if not len(rows):
                return [rows]
            try:
                return transform.apply_runs(rows) if isinstance(transform, Runs) else [transform.apply(rows)]
            except RowsFailedError as failed:
                rows = self._cut(link, rows, failed, raw, failures)
                if failed.others is not None:
                    return list(failed.others)
            except (WherryError, BrokenOffError):
                raise
            except Exception as error:
                # A value nobody has thought of must not take its neighbours with it.
                odd = _odd_rows(link, rows, 0)
                if not odd:
                    raise
                logger.warning("%s could not handle a value: %r", link.transform.class_name, error)
                rows = self._cut(link, rows, RowsFailedError(odd), raw, failures)
        raise ConnectorBugError(f"{link.transform.class_name} finds other rows at fault each time.")

    def _cut(
        self, link: Link, rows: Rows, failed: RowsFailedError, raw: Batch, failures: dict[int, StageFailure]
    ) -> Rows:
        stage = Stage.VALUE_CONVERTER if failed.converter else Stage.TRANSFORMATION
        executing = _JSON_CONVERTER if failed.converter else link.transform.class_name
        for place, error in failed.failures.items():
            row = int(rows.index[place])
            failures.setdefault(row, StageFailure(raw, row, stage, executing, error))
        kept = np.ones(len(rows), np.bool_)
        kept[list(failed.failures)] = False
        return rows.take(np.flatnonzero(kept))


def _by_nulls(rows: Rows) -> list[Rows]:
    """Parts rows whose key or value is null where its schema allows none: in Kafka Connect those have no schema.

    They stand in a column beside others, which has one; to transforms they are what they are there.
    """
    bare = [_bare_nulls(rows.side(is_key)) for is_key in (True, False)]
    if not any(map(len, bare)):
        return [rows]
    kinds = np.zeros(len(rows), np.int8)
    for bit, places in enumerate(bare):
        kinds[places] |= 1 << bit
    parts = []
    for kind in np.unique(kinds).tolist():
        part = rows.take(np.flatnonzero(kinds == kind))
        for bit, is_key in enumerate((True, False)):
            if kind >> bit & 1:
                part = part.with_side(is_key, Loose.nulls(len(part)))
        parts.append(part)
    return parts


def _bare_nulls(side: Side) -> Positions:
    if not isinstance(side, Typed) or side.field.nullable or not side.column.null_count:
        return np.zeros(0, np.int64)
    return np.flatnonzero(side.is_null())


def _alike(batches: list[Batch]) -> list[Batch]:
    """Lets sides that are all null and have no schema join those that have one, where all those have the same."""
    if len(batches) == 1:
        return batches
    for name in ("key", "value"):
        known = [batch.records.schema.field(name) for batch in batches if not _is_bare(batch, name)]
        if known and all(field.equals(known[0], check_metadata=True) for field in known[1:]):
            batches = [_with_nulls(batch, known[0]) if _is_bare(batch, name) else batch for batch in batches]
    return batches


def _is_bare(batch: Batch, name: str) -> bool:
    column = batch.stored(name)
    return column is None or (column.type in (JSON_TYPE, pa.null()) and column.null_count == len(column))


def _with_nulls(batch: Batch, field: pa.Field) -> Batch:
    records = batch.records
    place = records.schema.get_field_index(field.name)
    nulls = pa.nulls(records.num_rows, field.type)
    changed = records.append_column(field, nulls) if place < 0 else records.set_column(place, field, nulls)
    return dataclasses.replace(batch, records=changed)


def _without(rows: Rows, failed: Sequence[int]) -> Rows:
    gone = np.isin(rows.index, np.asarray(failed, np.int64))
    return rows.take(np.flatnonzero(~gone)) if gone.any() else rows


def _distinct(indices: list[Positions]) -> int:
    """Counts the rows that something has become of."""
    if len(indices) == 1 and len(indices[0]):
        steps = np.diff(indices[0])
        if (steps >= 0).all():
            return 1 + int(np.count_nonzero(steps))
    return len(np.unique(np.concatenate(indices))) if indices else 0


def _odd_rows(link: Link, rows: Rows, start: int) -> dict[int, DataError]:
    """Finds the rows that a transform can't handle, by halves; rows it refuses in good order are not among them."""
    try:
        link.transform.apply(rows)
    except (RowsFailedError, WherryError):
        if len(rows) == 1:
            return {}
    except Exception as error:
        if len(rows) == 1:
            return {start: DataError(f"{type(error).__name__}: {error}", reason="UNEXPECTED_VALUE")}
    else:
        return {}
    middle = len(rows) // 2
    places = np.arange(len(rows))
    return _odd_rows(link, rows.take(places[:middle]), start) | _odd_rows(
        link, rows.take(places[middle:]), start + middle
    )


def _pieces(parts: list[tuple[Positions, Batch]], batch: Batch, raw: Batch) -> tuple[tuple[Batch, Batch], ...]:
    """Puts the parts in order, with the raw rows each row came from and the marks."""
    if not parts:
        return ((mark_only(*(mark.position for mark in batch.marks)), raw.slice(0, 0)),) if batch.marks else ()
    index, runs = _in_order(parts)
    pieces: list[tuple[Batch, Batch]] = []
    start = 0
    for run in runs:
        rows = index[start : start + run.num_rows]
        whole = len(rows) == raw.num_rows and bool((rows == np.arange(raw.num_rows)).all())
        origin = raw if whole else keep_rows(raw, rows.tolist())
        pieces.append(
            (run.with_marks(*_marks(batch, index, start, run.num_rows, len(pieces) == len(runs) - 1)), origin)
        )
        start += run.num_rows
    return tuple(pieces)


def _marks(batch: Batch, index: Positions, start: int, count: int, last: bool) -> list[Mark]:
    """Returns the marks that stand within a run or at its end."""
    marks = []
    for mark in batch.marks:
        place = int(np.searchsorted(index, mark.row_count, side="left"))
        first = start == 0 and place == 0
        if first or start < place <= start + count or (last and place > start + count):
            marks.append(Mark(min(place - start, count), mark.position))
    return marks


def _in_order(parts: list[tuple[Positions, Batch]]) -> tuple[Positions, list[Batch]]:
    """Returns the rows' origins in order, and the batches that hold them: one for each run of one schema."""
    if len(parts) == 1:
        return parts[0][0], [parts[0][1]]
    origins = np.concatenate([index for index, _ in parts])
    order = np.argsort(origins, kind="stable")
    alike = len({batch.constants.topic for _, batch in parts}) == 1
    batches = [_with_columns(batch, keep_topic=alike) for _, batch in parts]
    schema = batches[0].records.schema
    if all(batch.records.schema.equals(schema, check_metadata=True) for batch in batches):
        joined = concat(batches)
        return origins[order], [keep_rows(joined, order.tolist())]
    part_of = np.concatenate([np.full(len(index), number) for number, (index, _) in enumerate(parts)])[order]
    edges = (np.flatnonzero(part_of[1:] != part_of[:-1]) + 1).tolist()
    taken = [0] * len(parts)
    runs = []
    for start, end in zip([0, *edges], [*edges, len(part_of)], strict=True):
        number = int(part_of[start])
        runs.append(batches[number].slice(taken[number], end - start))
        taken[number] += end - start
    return origins[order], runs


def _with_columns(batch: Batch, *, keep_topic: bool) -> Batch:
    """Makes columns in the same order of all parts; a constant topic may differ between them."""
    names = ("value", "key", "headers", "timestamp", TOPIC, "partition", "offset")
    if batch.constants.topic is not None and not keep_topic:
        batch = batch.with_columns(topic=batch.column(TOPIC)).with_constants(
            dataclasses.replace(batch.constants, topic=None)
        )
    if batch.constants.first_offset is not None:
        batch = batch.with_columns(offset=batch.column("offset"))
    schema = batch.records.schema
    present = [name for name in names if name in schema.names]
    records = pa.RecordBatch.from_arrays(
        [batch.records.column(schema.get_field_index(name)) for name in present],
        schema=pa.schema([schema.field(name) for name in present]),
    )
    return dataclasses.replace(batch, records=records)
