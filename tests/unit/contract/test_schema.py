"""Connect schemas as Arrow fields and back."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from wherry.contract.data import DATE, DECIMAL, TIME, TIMESTAMP, DataError, Kind, Schema
from wherry.contract.schema import field_of, from_field, from_form, schema_of, to_field, to_form

PRIMITIVE = ["boolean", "int8", "int16", "int32", "int64", "float", "double", "bytes", "string"]


def schemas() -> st.SearchStrategy[dict[str, Any]]:
    leaves = st.builds(
        lambda kind, optional: {"type": kind, "optional": optional}, st.sampled_from(PRIMITIVE), st.booleans()
    )
    named = st.sampled_from([
        {"type": "int32", "optional": True, "name": DATE, "version": 1},
        {"type": "int64", "optional": False, "name": TIMESTAMP, "version": 1},
        {"type": "bytes", "optional": True, "name": DECIMAL, "version": 1, "parameters": {"scale": "3"}},
        {"type": "string", "optional": True, "name": "io.debezium.data.Json", "version": 2, "doc": "d", "default": "x"},
    ])  # fmt: skip

    def nested(inner: st.SearchStrategy[dict[str, Any]]) -> st.SearchStrategy[dict[str, Any]]:
        return st.one_of(
            inner.map(lambda items: {"type": "array", "items": items, "optional": True}),
            inner.map(lambda values: {
                "type": "map", "keys": {"type": "string", "optional": False}, "values": values, "optional": False,
            }),
            st.lists(inner, min_size=1, max_size=3).map(lambda fields: {
                "type": "struct",
                "fields": [{**field, "field": f"f{index}"} for index, field in enumerate(fields)],
                "optional": False,
                "name": "x.Y",
            }),
        )  # fmt: skip

    return st.recursive(leaves | named, nested, max_leaves=6)


@given(schemas())
def test_a_schema_comes_back_as_it_went_with_its_keys_in_order(schema: dict[str, Any]) -> None:
    back = schema_of(field_of(schema))
    assert back == schema
    assert list(back) == list(schema)


@pytest.mark.parametrize(
    ("schema", "data_type"),
    [
        ({"type": "int32", "name": DATE}, pa.date32()),
        ({"type": "int32", "name": TIME}, pa.time32("ms")),
        ({"type": "int64", "name": TIMESTAMP}, pa.timestamp("ms", "UTC")),
        ({"type": "bytes", "name": DECIMAL, "parameters": {"scale": "2"}}, pa.decimal128(38, 2)),
        ({"type": "array", "items": {"type": "int8", "optional": True}}, pa.list_(pa.int8())),
    ],
)
def test_logical_types_become_arrows_own(schema: dict[str, Any], data_type: pa.DataType) -> None:
    assert field_of(schema).type == data_type


def test_a_schema_without_the_word_optional_is_required() -> None:
    assert not field_of({"type": "string"}).nullable


@pytest.mark.parametrize(
    "schema",
    [
        {"type": "int128"},
        {},
        {"type": "array"},
        {"type": "map", "keys": {"type": "string"}},
        {"type": "struct", "fields": 3},
        {"type": "struct", "fields": [{"type": "int8", "field": ""}]},
        {"type": "bytes", "name": DECIMAL},
    ],
)
def test_what_is_no_schema_is_refused(schema: dict[str, Any]) -> None:
    with pytest.raises(DataError):
        field_of(schema)


def test_a_schema_nested_without_end_is_refused() -> None:
    schema: dict[str, Any] = {"type": "string"}
    for _ in range(200):
        schema = {"type": "array", "items": schema}
    with pytest.raises(DataError, match="levels deep"):
        field_of(schema)


@given(schemas())
def test_a_schema_is_the_same_as_a_value_and_as_a_field(form: dict[str, Any]) -> None:
    schema = from_form(form)
    assert to_form(schema) == form
    field = to_field(schema)
    assert from_field(field) == schema
    assert field.equals(field_of(form), check_metadata=True)


UNUSUAL = [
    {"type": "int8", "optional": False, "name": DATE, "version": 1},
    {"type": "int64", "optional": True, "name": TIME},
    {"type": "int32", "optional": False, "name": TIMESTAMP, "version": 7, "doc": "d", "parameters": {"a": "b"}},
    {"type": "string", "optional": False, "name": DATE},
    {"type": "string", "optional": False, "version": 3},
    {"type": "int32", "optional": True, "default": None},
    {"type": "int32", "optional": False, "name": DATE, "version": 1, "default": 18262},
    {"type": "bytes", "optional": False, "default": "AQL/"},
    {
        "type": "bytes",
        "optional": False,
        "name": DECIMAL,
        "version": 1,
        "parameters": {"scale": "2", "connect.decimal.precision": "60"},
        "default": "AQ==",
    },
    {
        "type": "map",
        "keys": {"type": "int32", "optional": True, "doc": "k"},
        "values": {"type": "string", "optional": True, "default": "é"},
        "optional": False,
        "default": [[1, "x"]],
    },
    {
        "type": "struct",
        "fields": [{"type": "int32", "optional": False, "default": 4, "field": "a"}],
        "optional": True,
        "name": "s",
    },
]


@pytest.mark.parametrize("form", UNUSUAL, ids=[str(index) for index in range(len(UNUSUAL))])
def test_what_is_unusual_in_a_schema_is_kept_too(form: dict[str, Any]) -> None:
    assert schema_of(field_of(form)) == form
    assert to_form(from_form(form)) == form
    assert from_field(to_field(from_form(form))) == from_form(form)


def test_a_precision_beyond_38_digits_takes_the_wider_decimal() -> None:
    assert field_of(UNUSUAL[8]).type == pa.decimal256(76, 2)


def test_elements_without_a_schema_in_common_have_no_arrow_type() -> None:
    with pytest.raises(DataError, match="items"):
        to_field(Schema(Kind.ARRAY))
