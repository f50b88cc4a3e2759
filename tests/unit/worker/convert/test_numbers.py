"""The converters of numbers; both tables were recorded from Kafka Connect 4.3.1."""

from __future__ import annotations

import json
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from wherry.contract.batch import JSON_TYPE
from wherry.contract.java_text import java_texts
from wherry.worker.convert import Converter
from wherry.worker.convert.registry import factory_of

CASES = Path(__file__).parents[3] / "cases/numbers"
READ = json.loads((CASES / "read.json").read_text())
WRITE = json.loads((CASES / "write.json").read_text())
TYPES: dict[str, tuple[pa.DataType, Any]] = {
    "INT8": (pa.int8(), int),
    "INT16": (pa.int16(), int),
    "INT32": (pa.int32(), int),
    "INT64": (pa.int64(), int),
    "FLOAT32": (pa.float32(), float),
    "FLOAT64": (pa.float64(), float),
    "BOOLEAN": (pa.bool_(), "true".__eq__),
    "STRING": (pa.string(), str),
    "BYTES": (pa.binary(), str.encode),
    "BYTES:Decimal": (pa.decimal128(38, 1), Decimal),
    "INT32:Date": (pa.date32(), lambda ms: ms // 86_400_000),
    "ARRAY": (pa.list_(pa.int8()), json.loads),
    "STRUCT": (pa.struct([("a", pa.int8())]), None),
}


def converter(name: str) -> Converter:
    factory = factory_of(f"org.apache.kafka.connect.converters.{name}Converter")
    assert factory is not None
    return factory({}, is_key=False)


def column_of(kind: str | None, value: Any) -> pa.Array:
    if kind is None:
        value = None if value is None else json.dumps(json.loads(value)) if value != "5" else '"5"'
        return pa.ExtensionArray.from_storage(JSON_TYPE, pa.array([value], pa.string()))
    data_type, parse = TYPES[kind]
    return pa.array([None if value is None else parse(value)], data_type)


@pytest.mark.parametrize(("name", "data", "value", "error"), READ)
def test_bytes_are_read_as_kafka_connect_does(name: str, data: str | None, value: str, error: str | None) -> None:
    column = pa.array([b"" if data == "" else data and bytes.fromhex(data)], pa.binary())
    converted = converter(name).to_connect("t", column)
    assert [str(failure.error) for failure in converted.failures] == ([error] if error else [])
    if not error:
        run = converted.runs[0]
        assert run.field.nullable
        assert (java_texts(run.column)[0] or "null") == value


@pytest.mark.parametrize(("name", "kind", "optional", "value", "data", "error"), WRITE)
def test_values_are_written_as_kafka_connect_does(
    name: str, kind: str | None, optional: bool, value: Any, data: str | None, error: str | None
) -> None:
    column = column_of(kind, value)
    converted = converter(name).from_connect("t", pa.field("value", column.type, nullable=optional), column)
    assert [str(failure.error) for failure in converted.failures] == ([error] if error else [])
    if not error:
        found = converted.runs[0].column[0].as_py()
        assert (None if found is None else found.hex()) == data


@pytest.mark.parametrize("name", ["Boolean", "Short", "Integer", "Long", "Float", "Double"])
def test_a_column_comes_back_with_its_nulls_and_without_its_poison(name: str) -> None:
    this = converter(name)
    column = pa.array([1, None, 0, 1, None, 1], pa.int8()).cast(this.data_type).slice(1)  # type: ignore[attr-defined]
    field = pa.field("value", column.type)
    stored = this.from_connect("t", field, column).runs[0].column
    read = this.to_connect("t", stored)
    assert read.failures == ()
    assert read.runs[0].column.to_pylist() == column.to_pylist()
    poisoned = pa.array([b"", *stored.to_pylist(), b"\x02" * 9], pa.binary())
    sorted_out = this.to_connect("t", poisoned)
    assert [failure.row for failure in sorted_out.failures] == [0, 6]
    assert sorted_out.runs[0].column.to_pylist() == column.to_pylist()


def test_a_byte_that_is_no_boolean_is_told_beside_one_of_another_width() -> None:
    column = pa.array([b"\x02", b"\x00", b"wide", None, b"\x01", b"\x03"], pa.binary())
    read = converter("Boolean").to_connect("t", column)
    assert [failure.row for failure in read.failures] == [0, 2, 5]
    assert read.runs[0].column.to_pylist() == [False, None, True]


def test_numbers_without_a_schema_are_longs_and_doubles() -> None:
    texts = pa.ExtensionArray.from_storage(JSON_TYPE, pa.array(["5", "1.5", "[1]", None], pa.string()))
    longs = converter("Long").from_connect("t", pa.field("value", JSON_TYPE), texts)
    assert longs.runs[0].column.to_pylist() == [(5).to_bytes(8, "big"), None]
    assert [str(failure.error) for failure in longs.failures] == [
        "Failed to serialize to long (was class java.lang.Double): ",
        "Failed to serialize to long (was class java.util.ArrayList): ",
    ]
