"""Typed headers: kept in order, repeated, and with their types."""

from __future__ import annotations

import json
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from wherry.contract import headers, values
from wherry.contract.batch import HEADERS_TYPE
from wherry.contract.data import FLOAT32_SCHEMA, INT8_SCHEMA, STRING_SCHEMA, Float32, Instant, Typed

TEXTS = [case[0] for case in json.loads((Path(__file__).parents[2] / "cases/values/text.json").read_text())]
PLAIN = pa.array([[("a", b"1"), ("b", None), ("a", b"\xff")], None, []], HEADERS_TYPE)


def back(value: Typed) -> Typed:
    _, data, schema = headers.entry("n", value)
    assert schema is not None
    return headers.typed(data, schema)


@pytest.mark.parametrize("text", TEXTS, ids=ascii)
def test_whatever_a_text_holds_comes_back_with_its_type(text: str) -> None:
    value = values.parse(text)
    schema, found = back(value)
    assert schema == value.schema
    assert repr(found) == repr(value.value)
    assert values.format(found, schema) == values.format(value.value, value.schema)


@pytest.mark.parametrize(
    "value", [b"\xff", [1, "a", Float32(0.5), 0.5, Instant(3), Decimal("1.50"), None], {"$a": {1: [True]}}, None, "x"]
)
def test_a_value_without_schema_comes_back_as_it_is(value: Any) -> None:
    schema, found = back(Typed(None, value))
    assert schema is None
    assert repr(found) == repr(value)


def test_a_null_with_a_schema_stays_one() -> None:
    assert back(Typed(STRING_SCHEMA.as_optional(), None)) == (STRING_SCHEMA.as_optional(), None)


def test_headers_are_added_after_those_there_are_and_names_may_repeat() -> None:
    column = headers.append(PLAIN, [[headers.entry("a", Typed(INT8_SCHEMA, 5))], [], []])
    assert headers.is_typed(column)
    first = column.to_pylist()[0]
    assert [(item["name"], item["value"], item["schema"] is None) for item in first] == [
        ("a", b"1", True),
        ("b", None, True),
        ("a", b"\xff", True),
        ("a", b"5", False),
    ]
    assert column.to_pylist()[1:] == [None, None]


def test_headers_are_added_to_rows_that_have_none() -> None:
    entry = headers.entry("f", Typed(FLOAT32_SCHEMA, Float32(0.1)))
    assert len(headers.append(None, [[entry], [entry]])[1]) == 1


def test_headers_are_dropped_by_name_from_either_kind_of_column() -> None:
    wanted = "b".__eq__
    for column in (PLAIN, headers.append(PLAIN, [[], [], []])):
        kept = headers.keep(column, wanted)
        assert kept.type == column.type
        assert [[item["name"] for item in row or ()] for row in kept.to_pylist()] == [["b"], [], []]
    assert headers.keep(PLAIN, lambda _: True) is PLAIN


def test_values_are_replaced_without_touching_names_and_rows() -> None:
    column = headers.plain(headers.append(PLAIN.slice(0, 2), [[], []]), [b"x", None, b"z"])
    assert column.type == HEADERS_TYPE
    assert column.to_pylist()[0][2] == {"name": "a", "value": b"z"}
    assert column.to_pylist()[1] is None


def test_a_slice_knows_the_rows_of_its_headers() -> None:
    assert headers.rows_of_headers(PLAIN).to_pylist() == [0, 0, 0]
