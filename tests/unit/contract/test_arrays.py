"""Arrays are of the very type they were asked for, whatever Arrow forgets."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

from wherry.contract.arrays import array_of


def told(name: str, data_type: pa.DataType) -> pa.Field:
    return pa.field(name, data_type, metadata={b"default": b"1"})


MAP = pa.map_(pa.field("key", pa.string(), nullable=False), told("value", pa.int32()))
STRUCT = pa.struct([told("m", pa.map_(pa.string(), told("value", MAP))), told("l", pa.list_(told("item", MAP)))])


@pytest.mark.parametrize(
    ("data_type", "values"),
    [
        (MAP, [[("a", 1), ("b", None)], None, []]),
        (STRUCT, [{"m": [("x", [("a", 1)]), ("y", None)], "l": [[("a", 1)], None, []]}, None, {"m": None, "l": None}]),
        (STRUCT, []),
        (pa.struct([told("m", MAP), told("n", pa.int8())]), [{"m": [], "n": 1}]),
    ],
)
def test_what_stands_beside_the_items_of_maps_is_kept(data_type: pa.DataType, values: list[Any]) -> None:
    made = array_of(values, data_type)
    made.validate(full=True)
    assert made.type.equals(data_type, check_metadata=True)
    assert made.to_pylist() == pa.array(values, data_type).to_pylist()
