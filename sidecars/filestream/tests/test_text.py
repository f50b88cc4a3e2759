"""Values print as Java prints them."""

from __future__ import annotations

import pyarrow as pa

from wherry_filestream.text import texts_of


def test_a_struct_leaves_its_null_fields_out() -> None:
    column = pa.array(
        [{"a": 1, "b": None, "c": [1.5]}],
        pa.struct([("a", pa.int32()), ("b", pa.string()), ("c", pa.list_(pa.float64()))]),
    )
    assert texts_of(column) == ["Struct{a=1,c=[1.5]}"]


def test_a_map_shows_its_nulls() -> None:
    assert texts_of(pa.array([[("a", None)]], pa.map_(pa.string(), pa.int32()))) == ["{a=null}"]


def test_null_values_print_as_null() -> None:
    assert texts_of(pa.array(["a", None])) == ["a", "null"]


def test_bytes_print_as_the_text_they_hold() -> None:
    assert texts_of(pa.array([b"a", None])) == ["a", "null"]
