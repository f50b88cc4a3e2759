"""JSON with its schema in a registry."""

from __future__ import annotations

import json
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

from wherry.contract.data import DataError
from wherry.contract.schema import field_of, from_form, to_form
from wherry.worker.convert.registered.json import JsonSchemaConverter
from wherry.worker.convert.registered.json_types import Reading, from_connect

URL = {"schema.registry.url": "mock://registry"}
STRUCT = {
    "type": "struct",
    "fields": [
        {"type": "int8", "optional": False, "field": "z"},
        {"type": "string", "optional": True, "doc": "why", "field": "a"},
        {"type": "double", "optional": False, "default": 1.5, "field": "f"},
        {"type": "bytes", "optional": True, "field": "b"},
        {"type": "array", "items": {"type": "float", "optional": False}, "optional": False, "field": "l"},
        {
            "type": "map",
            "keys": {"type": "string", "optional": False},
            "values": {"type": "int32", "optional": True},
            "optional": True,
            "field": "m",
        },
        {
            "type": "bytes",
            "optional": True,
            "name": "org.apache.kafka.connect.data.Decimal",
            "version": 1,
            "parameters": {"scale": "2"},
            "field": "d",
        },
        {
            "type": "int64",
            "optional": False,
            "name": "org.apache.kafka.connect.data.Timestamp",
            "version": 1,
            "field": "t",
        },
    ],
    "optional": False,
    "name": "x.R",
    "version": 3,
}


def read(form: Any, *, nonrequired_optional: bool = False, **references: Any) -> Any:
    return to_form(Reading(form, references, nonrequired_optional=nonrequired_optional).schema())


def test_a_schema_is_written_with_what_json_schema_cannot_say_in_properties() -> None:
    form = from_connect(from_form(STRUCT), numeric_decimals=False, nonrequired_optional=False)
    assert form["title"] == "x.R"
    assert form["connect.version"] == 3
    assert form["properties"]["z"] == {"type": "integer", "connect.type": "int8", "connect.index": 0}
    assert form["properties"]["a"] == {
        "oneOf": [{"type": "null"}, {"type": "string", "description": "why"}],
        "connect.index": 1,
    }
    assert form["properties"]["f"] == {
        "type": "number",
        "connect.type": "float64",
        "default": 1.5,
        "connect.index": 2,
    }
    assert "required" not in form


@pytest.mark.parametrize("numeric", [False, True])
@pytest.mark.parametrize("optional", [False, True])
def test_a_schema_comes_back_as_it_went(numeric: bool, optional: bool) -> None:
    form = from_connect(from_form(STRUCT), numeric_decimals=numeric, nonrequired_optional=optional)
    assert read(json.loads(json.dumps(form)), nonrequired_optional=optional) == STRUCT


@pytest.mark.parametrize(
    ("form", "kind"),
    [
        ({"type": "integer"}, "int64"),
        ({"type": "number"}, "double"),
        ({"type": ["null", "string"]}, "string"),
        ({"enum": ["A", "B"]}, "string"),
        ({"$ref": "#/definitions/X", "definitions": {"X": {"type": "boolean"}}}, "boolean"),
        ({"$ref": "other.json#/$defs/Y"}, "boolean"),
        ({"allOf": [{"$ref": "#/$defs/Z"}], "$defs": {"Z": {"type": "string"}}}, "string"),
    ],
)
def test_schemas_of_others_are_read(form: Any, kind: str) -> None:
    assert read(form, **{"other.json": {"$defs": {"Y": {"type": "boolean"}}}})["type"] == kind


def test_properties_that_are_not_required_are_optional_when_asked() -> None:
    form = {"properties": {"a": {"type": "string"}, "b": {"type": "string"}}, "required": ["b"]}
    assert [field["optional"] for field in read(form, nonrequired_optional=True)["fields"]] == [True, False]
    assert [field["optional"] for field in read(form)["fields"]] == [False, False]


@pytest.mark.parametrize(
    ("form", "message"),
    [
        ({"oneOf": [{"type": "string"}, {"type": "integer"}]}, "allows 2 types"),
        ({"type": "object", "properties": {"a": {"$ref": "#"}}}, "holds itself"),
        ({"$ref": "nowhere.json"}, "refers to nowhere.json"),
        ({"$ref": "#/definitions/X"}, "can't be read"),
        (True, "allows anything"),
        ({}, "of type None"),
        ({"type": "boolean", "connect.type": "int8"}, "says connect.type int8 of a type boolean"),
    ],
)
def test_what_has_no_columns_is_refused_in_a_sentence(form: Any, message: str) -> None:
    with pytest.raises(DataError, match=message):
        read(form)


@pytest.mark.parametrize("decimals", ["BASE64", "NUMERIC"])
def test_values_come_back_and_poison_fails_alone(decimals: str) -> None:
    converter = JsonSchemaConverter(URL | {"decimal.format": decimals}, is_key=False)
    field = field_of(STRUCT)
    row = {"z": 1, "a": None, "f": 0.5, "b": b"\xff", "l": [1.5], "m": [("k", None)], "d": Decimal("1.25"), "t": 5}
    column = pa.array([row, None, row], field.type)
    written = converter.from_connect("t", field, column)
    assert written.failures == ()
    first, _, last = written.runs[0].column.to_pylist()
    rows = [first, None, first[:5] + b"{", first[:5] + b"\xff", first[:5] + b'{"z":null}', last]
    converted = converter.to_connect("t", pa.array(rows, pa.binary()))
    assert [failure.row for failure in converted.failures] == [2, 3, 4]
    assert str(converted.failures[0].error) == (
        "Failed to deserialize data for topic t to JSON Schema: The bytes are no JSON."
    )
    assert converted.runs[0].column.to_pylist() == column.to_pylist()
