"""Rows that the destination asks to be offered once more, and what has to come after them again. Pure.

A row that failed for now was followed by others of its partition, which are written already. Offered again alone it
would come after them: the old value of a key would win. So it is offered together with what followed it in its
partition, in order; what is repeated thereby is repeated as after any retry. Rows refused for good stay out.

A row is offered once more, and given up when it fails again.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Final

from wherry.contract.batch import OFFSET, PARTITION, TOPIC, Batch
from wherry.contract.errors import ErrorClass
from wherry.worker.convert.step import keep_rows
from wherry.worker.endpoints import FailedRow
from wherry.worker.tolerance import record_of

# Rows that wait to be offered once more; any further ones are given up at once.
OFFERED_AGAIN_MAX: Final = 10_000
# Each time other rows may fail; then it is the destination that has to come to itself.
ROUNDS_MAX: Final = 10

_Record = tuple[str, int, int]


class Again:
    """What is to be offered again, between a flush and the next."""

    def __init__(self) -> None:
        self._failed: list[FailedRow] = []
        # With the batches, so that no other takes over their identity.
        self._refused: dict[tuple[int, int], Batch | None] = {}
        self._offered: set[_Record] = set()
        self._rounds = 0

    def __bool__(self) -> bool:
        return bool(self._failed)

    def __len__(self) -> int:
        return len(self._failed)

    def sort(self, failed: Sequence[FailedRow]) -> list[FailedRow]:
        """Keeps the rows that may be offered once more; returns the others."""
        refused = []
        for row in failed:
            if self._takes(row):
                self._failed.append(row)
            else:
                refused.append(row)
        if self._failed:
            self._refused.update({(id(row.raw), row.error.row): row.raw for row in refused})
        return refused

    def take(self) -> list[Batch]:
        """Hands over the rows as they were read, in order, each partition from the first row on that has failed."""
        failed, self._failed = self._failed, []
        self._rounds += 1
        starts = {(id(row.raw), row.error.row) for row in failed}
        for row in failed:
            record = None if row.raw is None else record_of(row.raw, row.error.row)
            if record is not None:
                self._offered.add(record)
        begun: set[Any] = set()
        seen: set[_Record] = set()
        taken = []
        for batch in _in_order(failed):
            rows = self._rows_of(batch, starts, begun, seen)
            if rows:
                taken.append(keep_rows(batch, rows).with_marks())
        self._refused.clear()
        return taken

    def settled(self) -> None:
        """Everything written is durable or given up."""
        self._offered.clear()
        self._refused.clear()
        self._rounds = 0

    @property
    def exhausted(self) -> bool:
        """Whether rows failed for now in so many rounds that it makes no sense to go on."""
        return self._rounds >= ROUNDS_MAX

    def _takes(self, row: FailedRow) -> bool:
        if row.error.error_class is not ErrorClass.TRANSIENT or row.raw is None:
            return False
        if len(self._failed) >= OFFERED_AGAIN_MAX:
            return False
        record = record_of(row.raw, row.error.row)
        # Rows that don't tell where they stood can't be told from those that failed before.
        return self._rounds == 0 if record is None else record not in self._offered

    def _rows_of(self, batch: Batch, starts: set[tuple[int, int]], begun: set[Any], seen: set[_Record]) -> list[int]:
        rows = []
        for row, (topic, partition, offset) in enumerate(_places(batch)):
            key = id(batch), row
            if key in starts:
                begun.add((topic, partition))
            if (topic, partition) not in begun or key in self._refused:
                continue
            if offset is not None:
                # Several rows of one record become rows again together.
                record = (topic or "", partition or 0, offset)
                if record in seen:
                    continue
                seen.add(record)
            rows.append(row)
        return rows


def _in_order(failed: Sequence[FailedRow]) -> list[Batch]:
    """Returns the batches that the rows stand in, and those sent after them, in the order they were sent."""
    batches: dict[int, Batch] = {}
    for row in failed:
        for batch in (row.raw, *row.after):
            if batch is not None:
                batches.setdefault(id(batch), batch)
    return list(batches.values())


def _places(batch: Batch) -> Iterable[tuple[Any, Any, Any]]:
    """Returns topic, partition and offset of each row; None for what the rows don't tell."""
    columns = [batch.column(name) for name in (TOPIC, PARTITION, OFFSET)]
    nothing = [None] * batch.num_rows
    return zip(*(nothing if column is None else column.to_pylist() for column in columns), strict=True)
