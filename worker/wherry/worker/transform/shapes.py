"""Objects without schema that differ in their members, parted into rows that columns can hold.

Records with a member that is there in some of them only would all go row by row. Where there are few kinds of them, the
rows of each kind become columns (`lift.py`, which proves it) and go through the chain by themselves; the step puts them
in order again.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np

from wherry.worker.convert import json_native
from wherry.worker.transform.base import OnSide, Transform
from wherry.worker.transform.cast import Cast
from wherry.worker.transform.fields import ExtractField, HoistField
from wherry.worker.transform.flatten import Flatten
from wherry.worker.transform.insert import InsertField
from wherry.worker.transform.lift import ROWS_MIN
from wherry.worker.transform.mask import MaskField
from wherry.worker.transform.replace import ReplaceField
from wherry.worker.transform.rows import Loose, Rows, Side
from wherry.worker.transform.times import TimestampConverter

# With more kinds of rows than this the parts become too small to be worth it.
SHAPES_MAX: Final = 16
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
    """Parts rows by the members of their values; as they are where that leads nowhere."""
    value = rows.value
    if not isinstance(value, Loose) or value.texts is None or len(rows) < 2 * ROWS_MIN or value.columns is not None:
        return [rows]
    if not _alike(rows.key):
        return [rows]
    shapes = json_native.shapes(value.texts)
    if shapes is None:
        return [rows]
    kinds, numbers, counts = np.unique(shapes, return_inverse=True, return_counts=True)
    if not 1 < len(kinds) <= SHAPES_MAX or counts.max() < ROWS_MIN:
        return [rows]
    return [rows.take(np.flatnonzero(numbers == number)) for number in range(len(kinds))]


def _alike(side: Side) -> bool:
    """Whether every part has the column, or none: one without schema goes where all of its rows are null."""
    if not isinstance(side, Loose):
        return True
    nulls = side.is_null()
    return bool(nulls.all() or not nulls.any())
