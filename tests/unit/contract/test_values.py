"""Texts read and written as Kafka Connect's `Values` does; the table was recorded from Kafka Connect 4.3.1 in UTC."""

from __future__ import annotations

import datetime
import json
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from wherry.contract import values
from wherry.contract.data import (
    DATE_SCHEMA,
    DECIMAL,
    FLOAT32_SCHEMA,
    TEMPORAL,
    DataError,
    Float32,
    Instant,
    Kind,
    Pairs,
    Schema,
)
from wherry.contract.java import float_text

CASES = json.loads((Path(__file__).parents[2] / "cases/values/text.json").read_text())


def type_text(schema: Schema | None) -> str | None:
    if schema is None:
        return None
    if schema.kind is Kind.ARRAY:
        return f"ARRAY<{type_text(schema.value)}>"
    if schema.kind is Kind.MAP:
        return f"MAP<{type_text(schema.key)},{type_text(schema.value)}>"
    if schema.name == DECIMAL:
        return f"Decimal({schema.scale})"
    return schema.name.rpartition(".")[2] if schema.name in TEMPORAL and schema.name else schema.kind.value


def told(value: Any) -> Any:
    if isinstance(value, Instant):
        return {"Date": int(value)}
    if isinstance(value, Float32):
        return {"Float": float_text(value)}
    if isinstance(value, float | Decimal):
        return {"Double" if isinstance(value, float) else "BigDecimal": str(values.format(value))}
    if isinstance(value, Pairs):
        return {"map": [[told(key), told(item)] for key, item in value]}
    if isinstance(value, list | tuple):
        return list(map(told, value))
    if isinstance(value, dict):
        return {"map": [[told(key), told(item)] for key, item in value.items()]}
    return value


@pytest.mark.parametrize(("text", "kind", "value", "written"), CASES, ids=[ascii(case[0]) for case in CASES])
def test_a_text_is_read_and_written_as_kafka_connect_does(text: str, kind: str, value: Any, written: str) -> None:
    schema, found = values.parse(text)
    assert (type_text(schema), told(found), values.format(found, schema)) == (kind, value, written)


@pytest.mark.parametrize(
    ("data", "text"), [(b"a\xff", "a\ufffd"), (b"\xed\xa0\x80", "\ufffd"), (b"[1,\xff]", "[1,\ufffd]"), (b"12", 12)]
)
def test_damaged_bytes_are_read_as_text(data: bytes, text: str) -> None:
    assert values.read(data).value == text


def test_no_bytes_are_no_value() -> None:
    assert values.read(None) == (None, None)


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (b"\x01\x02\xff", "AQL/"),
        ([b"\x01"], '["AQ=="]'),
        ('a"b\\c', 'a"b\\c'),
        (['a"b\\c'], '["a\\"b\\\\c"]'),
        ({"a": 1, "b": None, "c": ["x", 1.5, True]}, '{"a":1,"b":null,"c":["x",1.5,true]}'),
        (Decimal("1.50"), "1.50"),
        (Decimal("1E+3"), "1E+3"),
        (Decimal("0E-10"), "0E-10"),
        (Instant(86_400_001), "1970-01-02T00:00:00.001Z"),
        (Instant(-1), "23:59:59.999Z"),
        (Instant(-86_400_000), "00:00:00.000Z"),
        (Instant(253_402_300_800_000), "10000-01-01"),
        (datetime.date(2020, 2, 29), "2020-02-29"),
        (datetime.datetime(2020, 1, 2, 3, 4, 5, 678_000), "2020-01-02T03:04:05.678Z"),
        (datetime.time(1, 2, 3, 4000), "01:02:03.004Z"),
        (float("-inf"), "-Infinity"),
        (1e300, "1.0E300"),
        (True, "true"),
        (None, None),
    ],
)
def test_a_value_is_written_as_kafka_connect_does(value: Any, text: str | None) -> None:
    assert values.format(value) == text


def test_a_schema_tells_single_precision_and_moments_apart() -> None:
    assert values.format(0.1, FLOAT32_SCHEMA) == "0.1"
    assert values.format(Float32(0.10000000149011612)) == "0.1"
    assert values.format(86_400_000, DATE_SCHEMA) == "1970-01-02"


def test_what_connect_does_not_know_is_refused() -> None:
    with pytest.raises(DataError, match="unexpected value type object"):
        values.format([object()])


def test_nesting_beyond_the_limit_stays_text() -> None:
    text = "[" * 5000 + "]" * 5000
    assert values.parse(text).value == text


@given(st.text(max_size=40) | st.text(alphabet='0123456789eE.-+:TZ[]{}",\\ntrueafls ', max_size=40))
def test_every_text_is_read_and_what_was_written_is_read_alike(text: str) -> None:
    schema, value = values.parse(text)
    written = values.format(value, schema)
    if written is not None and schema is not None and schema.kind not in {Kind.ARRAY, Kind.MAP, Kind.BYTES}:
        assert values.format(*reversed(values.parse(written))) == written
