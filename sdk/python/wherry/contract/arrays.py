"""Arrow arrays of Python values, with all that their type says."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pyarrow as pa


def array_of(values: Sequence[Any], data_type: pa.DataType) -> pa.Array:
    """What `pyarrow.array` makes of values, of the very type that was asked for.

    Arrow itself (26.0) forgets what stands beside the items of maps: their metadata, which holds schema names, defaults
    and docs of Connect types.

    Raises:
        ArrowInvalid: A value is not of the type.
    """
    return _as_type(pa.array(values, data_type), data_type)


def _as_type(column: pa.Array, data_type: pa.DataType) -> pa.Array:
    """The same values under a type that differs in what stands beside it only."""
    if column.type.equals(data_type, check_metadata=True):
        return column
    mask = column.is_null() if column.null_count else None
    if pa.types.is_struct(data_type):
        children = [_as_type(column.field(index), child.type) for index, child in enumerate(data_type)]
        return pa.StructArray.from_arrays(children, fields=list(data_type), mask=mask)
    if pa.types.is_list(data_type):
        items = _as_type(column.values, data_type.value_type)
        return pa.ListArray.from_arrays(column.offsets, items, type=data_type, mask=mask)
    if pa.types.is_map(data_type):
        keys, items = _as_type(column.keys, data_type.key_type), _as_type(column.items, data_type.item_type)
        return pa.MapArray.from_arrays(column.offsets, keys, items, type=data_type, mask=mask)
    return column.cast(data_type)
