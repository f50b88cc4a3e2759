"""Objects without schema, parted into rows that the same columns can hold, and those that none can.

Columns hold objects whose members come in one order, be it that some lack some (`lift.py`, which proves it). Where that
order differs, or a few records are odd, each kind of rows goes through the chain by itself; the step puts them in order
again.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np
import pyarrow as pa

from wherry.worker.transform.base import OnSide, Transform
from wherry.worker.transform.cast import Cast
from wherry.worker.transform.columns import Columns, Positions
from wherry.worker.transform.fields import ExtractField, HoistField
from wherry.worker.transform.flatten import Flatten
from wherry.worker.transform.insert import InsertField
from wherry.worker.transform.lift import ROWS_MIN, some
from wherry.worker.transform.mask import MaskField
from wherry.worker.transform.replace import ReplaceField
from wherry.worker.transform.rows import Loose, Rows, Side
from wherry.worker.transform.times import TimestampConverter

# With more kinds of rows than this the parts become too small to be worth it.
SHAPES_MAX: Final = 8
# So is one that holds less than this part of the rows that are left.
PART_SHARE: Final = 16
# They change values alone, each by itself. Others could leave the parts with different columns beside the values, so
# that they would come out as many small batches.
_ALONE: Final = (
    Cast, ExtractField, Flatten, HoistField, InsertField, MaskField, ReplaceField, TimestampConverter,
)  # fmt: skip


def can_part(transforms: Sequence[Transform]) -> bool:
    """Whether a chain gives the same when rows are parted, and as few batches."""
    return bool(transforms) and all(
        isinstance(transform, OnSide) and isinstance(transform, _ALONE) and not transform.is_key
        for transform in transforms
    )


def parted(rows: Rows) -> list[Rows]:
    """Parts rows by the columns that hold their values; as they are where that leads nowhere."""
    value = rows.value
    if not isinstance(value, Loose) or value.texts is None or len(rows) < ROWS_MIN:
        return [rows]
    parts, left = _kinds(value.texts)
    if not parts:
        return [rows]
    if len(parts) == 1 and not len(left):
        return [rows.with_side(False, value.held(parts[0][0]))]
    if not _alike(rows.key):
        return [rows]
    made = []
    for columns, places in parts:
        part = rows.take(places)
        made.append(part.with_side(False, value.held(columns, pa.array(places))))
    return [*made, rows.take(left)] if len(left) else made


def _kinds(texts: pa.Array) -> tuple[list[tuple[Columns, Positions]], Positions]:
    """Parts texts by the columns that hold them; returns those of each, and the rows that none hold."""
    parts: list[tuple[Columns, Positions]] = []
    left: Positions = np.arange(len(texts))
    while len(left) >= ROWS_MIN and len(parts) < SHAPES_MAX:
        found = some(texts if len(left) == len(texts) else texts.take(pa.array(left)))
        if found is None or len(found[1]) < max(ROWS_MIN, len(left) // PART_SHARE):
            break
        columns, places = found
        parts.append((columns, left[places]))
        left = np.delete(left, places)
    return parts, left


def _alike(side: Side) -> bool:
    """Whether every part has the column, or none: one without schema goes where all of its rows are null."""
    if not isinstance(side, Loose):
        return True
    nulls = side.is_null()
    return bool(nulls.all() or not nulls.any())
