"""Sql: what a query makes of records with and without a schema, and that types come through whole."""

from __future__ import annotations

import datetime
import json
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
import yaml

from wherry.contract import selects
from wherry.contract.batch import JSON_TYPE, TIMESTAMP_TYPE, Batch, Constants, Mark, of_value
from wherry.contract.position import Position
from wherry.worker.transform.registry import chain_of
from wherry.worker.transform.step import Transforms

CASES = yaml.safe_load((Path(__file__).parents[3] / "cases/selects.yaml").read_text())
REFUSED = [case for case in CASES if "why" in case]
RUN = [case for case in CASES if "why" not in case]


def chain(query: str) -> Transforms:
    return Transforms(
        chain_of({"transforms": "s", "transforms.s.type": "Sql", "transforms.s.query": query}, is_sink=True)
    )


def batch(column: pa.Array, *marks: Mark) -> Batch:
    keys = pa.array(["key"] * len(column))
    return of_value(column, key=keys, constants=Constants("t", 0, 5), marks=marks)


def answer(query: str, given: Batch) -> tuple[list[Any], list[str]]:
    stepped = chain(query).apply(given, given)
    return [row for after, _ in stepped.pieces for row in after.value.to_pylist()], [
        str(each.error) for each in stepped.failures
    ]


@pytest.mark.parametrize("case", REFUSED, ids=lambda case: case["query"])
def test_a_query_that_needs_more_than_the_record_at_hand_is_refused(case: dict[str, str]) -> None:
    told = selects.problem(case["query"])
    assert told is not None
    assert case["why"] in told


@pytest.mark.parametrize("case", RUN, ids=lambda case: case["query"])
def test_a_query_makes_rows_of_a_record(case: dict[str, Any]) -> None:
    kind = pa.array([case["value"] or {"a": 1}]).type
    found, failed = answer(case["query"], batch(pa.array([case["value"]], kind)))
    if "error" in case:
        assert len(failed) == 1
        assert case["error"] in failed[0]
    else:
        assert failed == []
    assert found == case.get("rows", [])


def test_rows_keep_their_records_offset_and_marks_and_nulls_their_place() -> None:
    column = pa.array([{"a": 1}, None, {"a": 2}, {"a": 3}], pa.struct([("a", pa.int64())]))
    given = batch(column, *(Mark(row, Position('{"p":0}', str(row))) for row in (1, 2, 3, 4)))
    stepped = chain("SELECT a FROM records WHERE a <> 2").apply(given, given)
    ((after, raw),) = stepped.pieces
    assert after.value.to_pylist() == [{"a": 1}, None, {"a": 3}]
    assert after.column("offset").to_pylist() == raw.column("offset").to_pylist() == [5, 6, 8]
    assert [mark.row_count for mark in after.marks] == [1, 2, 2, 3]
    assert stepped.filtered == 1


def test_a_row_that_can_not_be_computed_fails_alone() -> None:
    column = pa.array([{"a": text} for text in ("1", "x", "3", "y")])
    given = batch(column)
    stepped = chain("SELECT a::INTEGER AS n FROM records").apply(given, given)
    assert [each.row for each in stepped.failures] == [1, 3]
    ((after, _),) = stepped.pieces
    assert after.value.to_pylist() == [{"n": 1}, {"n": 3}]


def test_without_a_schema_the_value_is_one_column_of_json() -> None:
    texts = pa.array([json.dumps({"a": 1, "b": "x"}), json.dumps({"b": "y"}), "7"])
    given = batch(pa.ExtensionArray.from_storage(JSON_TYPE, texts))
    found, failed = answer("SELECT value->>'$.b' AS b, (value->'$.a')::INT AS a FROM records", given)
    assert failed == []
    assert found == [{"b": "x", "a": 1}, {"b": "y", "a": None}, {"b": None, "a": None}]


def test_a_member_named_as_if_there_were_a_schema_is_told_how_to_be_had() -> None:
    given = batch(pa.ExtensionArray.from_storage(JSON_TYPE, pa.array(['{"a":{"b":1}}'])))
    for query in ("SELECT a FROM records", "SELECT a.b FROM records"):
        _, [told] = answer(query, given)
        assert told.startswith("There is no column a: a value without a schema is the one column value")
        assert told.endswith("as value->>'$.a' does")


def test_every_type_of_connect_comes_through_whole() -> None:
    moment = datetime.datetime(2024, 2, 29, 12, 30, 15, 123_000, tzinfo=datetime.UTC)
    fields: list[tuple[pa.Field, Any]] = [
        (pa.field("i8", pa.int8()), -128),
        (pa.field("i16", pa.int16()), -32768),
        (pa.field("i32", pa.int32()), 2**31 - 1),
        (pa.field("i64", pa.int64()), -(2**63)),
        (pa.field("f32", pa.float32()), 1.5),
        (pa.field("f64", pa.float64()), 1e300),
        (pa.field("flag", pa.bool_()), True),
        (pa.field("txt", pa.string()), "é\0x"),
        (pa.field("raw", pa.binary()), b"\x00\xff"),
        (
            pa.field("dec", pa.decimal128(38, 10), metadata={"connect.doc": "m"}),
            Decimal("-1234567890123456.0123456789"),
        ),
        (pa.field("day", pa.date32()), datetime.date(1582, 10, 4)),
        (pa.field("tim", pa.time32("ms")), datetime.time(23, 59, 59, 999_000)),
        (pa.field("mom", TIMESTAMP_TYPE), moment),
        (pa.field("lst", pa.list_(pa.int32())), [1, None]),
        (pa.field("mp", pa.map_(pa.string(), pa.int64())), [("a", 1), ("b", None)]),
        (
            pa.field("st", pa.struct([pa.field("x", pa.int8()), pa.field("y", pa.list_(pa.string()))])),
            {"x": 1, "y": ["z"]},
        ),
    ]
    kind = pa.struct([field for field, _ in fields])
    value = {field.name: item for field, item in fields}
    column = pa.array([value, dict.fromkeys(value), None], kind)
    given = batch(column)
    ((after, _),) = chain("SELECT * FROM records").apply(given, given).pieces
    assert after.value.type.equals(kind, check_metadata=True)
    assert after.value.to_pylist() == column.to_pylist()


def test_a_time_finer_than_milliseconds_is_refused_rather_than_cut() -> None:
    given = batch(pa.array([{"a": "12:00:00.000001"}]))
    found, failed = answer("SELECT a::TIME AS t FROM records", given)
    assert found == []
    assert "lose data" in failed[0]


@pytest.mark.parametrize("names", [("a", "A"), ("rowid", "b")])
def test_fields_that_sql_can_not_tell_apart_fail_the_record(names: tuple[str, str]) -> None:
    given = batch(pa.array([dict.fromkeys(names, 1)]))
    found, failed = answer("SELECT 1 AS x FROM records", given)
    assert found == []
    assert "can't tell the fields apart" in failed[0]


def test_a_query_can_not_reach_files(tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("s")
    given = batch(pa.array([{"a": 1}]))
    assert "its FROM must be records" in str(selects.problem(f"SELECT * FROM read_text('{tmp_path}/secret')"))
    found, failed = answer("SELECT getvariable('x') IS NULL AS n FROM records", given)
    assert (found, failed) == ([{"n": True}], [])
