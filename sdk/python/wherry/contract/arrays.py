"""Arrow arrays of the very type that was asked for, with all that the type says."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import pyarrow as pa


def array_of(values: Sequence[Any], data_type: pa.DataType) -> pa.Array:
    """What `pyarrow.array` makes of values, of the very type that was asked for.

    Arrow itself (26.0) forgets what stands beside the items of maps: their metadata, which holds schema names, defaults
    and docs of Connect types.

    Raises:
        ArrowInvalid: A value is not of the type.
    """
    made = pa.array(values, data_type)
    return made if made.type.equals(data_type, check_metadata=True) else as_type(made, data_type)


def cast(column: pa.Array, data_type: pa.DataType) -> pa.Array:
    """A column of a type that holds no others, as another such type."""
    return column if column.type == data_type else column.cast(data_type)


def as_type(
    column: pa.Array, data_type: pa.DataType, plain: Callable[[pa.Array, pa.DataType], pa.Array] = cast
) -> pa.Array:
    """The same rows under a type of the same shape: its field names, nullability and metadata.

    Args:
        column: Not a slice of another one.
        data_type: The type wanted.
        plain: What becomes of columns that hold no others.
    """
    mask = column.is_null() if column.null_count else None
    if pa.types.is_struct(data_type):
        children = [as_type(column.field(index), child.type, plain) for index, child in enumerate(data_type)]
        return pa.StructArray.from_arrays(children, fields=list(data_type), mask=mask)
    if pa.types.is_list(data_type):
        items = as_type(column.values, data_type.value_type, plain)
        return pa.ListArray.from_arrays(column.offsets, items, type=data_type, mask=mask)
    if pa.types.is_map(data_type):
        keys = as_type(column.keys, data_type.key_type, plain)
        items = as_type(column.items, data_type.item_type, plain)
        return pa.MapArray.from_arrays(column.offsets, keys, items, type=data_type, mask=mask)
    return plain(column, data_type)
