"""Values print as Java prints them."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

from wherry_filestream.text import java_double, java_text, texts_of


@pytest.mark.parametrize(
    ("number", "text"),
    [
        (0.0, "0.0"),
        (-0.0, "-0.0"),
        (1.0, "1.0"),
        (5e-3, "0.005"),
        (1e-3, "0.001"),
        (1e-4, "1.0E-4"),
        (9999999.0, "9999999.0"),
        (1e7, "1.0E7"),
        (1.5e300, "1.5E300"),
        (9.223372036854776e18, "9.223372036854776E18"),
        (-123456789.25, "-1.2345678925E8"),
        (float("nan"), "NaN"),
        (float("-inf"), "-Infinity"),
    ],
)
def test_doubles_print_as_java_prints_them(number: float, text: str) -> None:
    assert java_double(number) == text


def test_a_single_precision_number_has_no_more_digits_than_it_needs() -> None:
    assert java_double(0.10000000149011612, single=True) == "0.1"


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (None, "null"),
        (True, "true"),
        (7, "7"),
        ("x", "x"),
        ({"some_key": 0}, "{some_key=0}"),
        ({"a": None, "b": [1, "x", None]}, "{a=null, b=[1, x, null]}"),
        ({}, "{}"),
    ],
)
def test_schemaless_values_print_as_java_maps_and_lists(value: Any, text: str) -> None:
    assert java_text(value) == text


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
