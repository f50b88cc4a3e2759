"""Avro's bytes into columns and back, against fastavro and against each other's ways."""

from __future__ import annotations

import io
import json
from typing import Any

import fastavro
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from wherry.worker.convert import Converted
from wherry.worker.convert.registered import avro_bytes, avro_types, avro_write
from wherry.worker.convert.registered.avro_read import HALVED_ROWS_MIN, AvroReader

LONG = st.integers(-(2**63), 2**63 - 1)
TEXT = st.text(st.characters(codec="utf-8"), max_size=8)
SIMPLE: list[tuple[Any, st.SearchStrategy[Any]]] = [
    ("boolean", st.booleans()),
    ("int", st.integers(-(2**31), 2**31 - 1)),
    ("long", LONG),
    ("float", st.floats(width=32, allow_nan=False)),
    ("double", st.floats(allow_nan=False)),
    ("string", TEXT),
    ("bytes", st.binary(max_size=8)),
    ({"type": "fixed", "name": "F", "size": 3}, st.binary(min_size=3, max_size=3)),
    ({"type": "enum", "name": "E", "symbols": ["A", "B", "C"]}, st.sampled_from("ABC")),
    ({"type": "long", "logicalType": "timestamp-micros"}, LONG),
]


@st.composite
def types(draw: st.DrawFn, depth: int = 2, path: str = "") -> tuple[Any, st.SearchStrategy[Any]]:
    """A schema, and values of it; names are unique because they are made of their place."""
    kind = draw(st.sampled_from(["simple", "optional", "array", "map", "record"] if depth else ["simple"]))
    if kind == "simple":
        schema, values = draw(st.sampled_from(SIMPLE))
        if isinstance(schema, dict) and "name" in schema:
            schema = {**schema, "name": f"{schema['name']}{path}"}
        return schema, values
    inner, values = draw(types(depth - 1, path + "a"))
    if kind == "optional":
        if isinstance(inner, list):
            return inner, values
        return (["null", inner] if draw(st.booleans()) else [inner, "null"]), st.none() | values
    if kind == "array":
        return {"type": "array", "items": inner}, st.lists(values, max_size=3)
    if kind == "map":
        return {"type": "map", "values": inner}, st.dictionaries(TEXT, values, max_size=3)
    other, others = draw(types(depth - 1, path + "b"))
    name = f"R{path}"
    fields = [{"name": "a", "type": inner}, {"name": "b", "type": other}]
    return {"type": "record", "name": name, "fields": fields}, st.fixed_dictionaries({"a": values, "b": others})


def encoded(schema: Any, value: Any) -> bytes:
    out = io.BytesIO()
    fastavro.schemaless_writer(out, fastavro.parse_schema(plain(schema)), value)
    return out.getvalue()


def plain(schema: Any) -> Any:
    """The schema without logical types, which fastavro would act on."""
    if isinstance(schema, list):
        return [plain(branch) for branch in schema]
    if isinstance(schema, dict):
        return {key: plain(value) for key, value in schema.items() if key != "logicalType"}
    return schema


def expected(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: expected(item) for key, item in value.items()}
    return [expected(item) for item in value] if isinstance(value, list) else value


def found(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: found(item) for key, item in value.items()}
    if isinstance(value, list) and value and isinstance(value[0], tuple):
        return {key: found(item) for key, item in value}
    return [found(item) for item in value] if isinstance(value, list) else value


def same(left: Any, right: Any) -> bool:
    """Whether two values are alike; an empty map and an empty list look the same in Arrow."""
    if isinstance(left, dict) and isinstance(right, dict):
        return left.keys() == right.keys() and all(same(left[key], right[key]) for key in left)
    if isinstance(left, list) and isinstance(right, list):
        return len(left) == len(right) and all(map(same, left, right))
    return bool(left == right) or (not left and not right and isinstance(left, list | dict) and right is not None)


def read(schema: Any, payloads: list[bytes]) -> Converted:
    return AvroReader(avro_types.parse(json.dumps(schema))).read(pa.array(payloads, pa.binary()))


@settings(max_examples=30, deadline=None)
@given(st.data())
def test_columns_hold_what_fastavro_wrote_and_are_written_as_fastavro_does(data: st.DataObject) -> None:
    schema, values = data.draw(types())
    rows = data.draw(st.lists(values, min_size=8, max_size=12))
    payloads = [encoded(schema, row) for row in rows]
    converted = read(schema, payloads)
    assert converted.failures == ()
    column = converted.runs[0].column
    assert all(same(found(got), expected(row)) for got, row in zip(column.to_pylist(), rows, strict=True))
    avro = avro_types.parse(json.dumps(schema))
    written = avro_write.write(avro, column).to_pylist()
    decode = avro_bytes.decoder(avro)
    assert [decode(one, 0) for one in written] == [decode(one, 0) for one in payloads]


@settings(max_examples=30, deadline=None)
@given(st.data())
def test_poison_fails_its_own_row_and_both_ways_agree_on_it(data: st.DataObject) -> None:
    schema, values = data.draw(types())
    rows = data.draw(st.lists(values, min_size=10, max_size=10))
    payloads = [encoded(schema, row) for row in rows]
    place = data.draw(st.integers(0, 9))
    payloads[place] = data.draw(
        st.binary(max_size=20) | st.just(payloads[place][:-1]) | st.just(payloads[place] + b"x")
    )
    whole = read(schema, payloads)
    alone = [read(schema, [payload]) for payload in payloads]
    assert [failure.row for failure in whole.failures] == [row for row, one in enumerate(alone) if one.failures]
    assert {failure.row for failure in whole.failures} <= {place}
    together = [value for one in alone if not one.failures for value in one.runs[0].column.to_pylist()]
    assert repr(whole.runs[0].column.to_pylist()) == repr(together)


RECORD = {"type": "record", "name": "R", "fields": [{"name": "a", "type": "long"}, {"name": "b", "type": "string"}]}


def test_lengths_that_cancel_out_are_noticed() -> None:
    good = [encoded(RECORD, {"a": index, "b": "xyz"}) for index in range(20)]
    # The first row lends its last byte to the second, which alone would still be one whole record of the file.
    shifted = [good[0][:-1], good[0][-1:] + good[1], *good[2:]]
    converted = read(RECORD, shifted)
    assert [failure.row for failure in converted.failures] == [0]
    assert converted.runs[0].column.to_pylist()[1:] == [{"a": index, "b": "xyz"} for index in range(2, 20)]


@pytest.mark.parametrize("place", [0, 5, 19])
@pytest.mark.parametrize("type_name", ["int", "long"])
def test_a_number_that_ends_in_the_next_row_shifts_nothing_behind_it(type_name: str, place: int) -> None:
    payloads = [encoded(type_name, index % 3) for index in range(20)]
    payloads[place] = b"\x80"
    converted = read(type_name, payloads)
    assert [failure.row for failure in converted.failures] == [place]
    assert converted.runs[0].column.to_pylist() == [index % 3 for index in range(20) if index != place]


def test_one_damaged_row_among_many_leaves_the_others_to_the_quick_way(monkeypatch: pytest.MonkeyPatch) -> None:
    payloads = [encoded(RECORD, {"a": index, "b": "x" * index}) for index in range(500)]
    payloads[321] = b"\xff"
    reader = AvroReader(avro_types.parse(json.dumps(RECORD)))
    slow_rows: list[int] = []
    slow = reader._row_by_row
    monkeypatch.setattr(reader, "_row_by_row", lambda rows, *rest: (slow_rows.append(len(rows)), slow(rows, *rest))[1])
    converted = reader.read(pa.array(payloads, pa.binary()))
    assert [failure.row for failure in converted.failures] == [321]
    assert "321" not in str(converted.failures[0].error)
    assert converted.runs[0].column.field("a").to_pylist() == [row for row in range(500) if row != 321]
    assert sum(slow_rows) <= HALVED_ROWS_MIN


@pytest.mark.parametrize("count", [3, 20])
def test_logical_types_and_damaged_text_come_out_the_same_both_ways(count: int) -> None:
    schema = {
        "type": "record",
        "name": "R",
        "fields": [
            {"name": "d", "type": {"type": "int", "logicalType": "date"}},
            {"name": "m", "type": ["null", {"type": "bytes", "logicalType": "decimal", "precision": 9, "scale": 2}]},
            {"name": "s", "type": "string"},
            {"name": "i", "type": {"type": "int", "connect.type": "int8"}},
        ],
    }
    payload = b"\x02" + b"\x02\x02\x7d" + b"\x04a\xff" + b"\x80\x02"
    converted = read(schema, [payload] * count)
    assert str(converted.runs[0].column.to_pylist()[-1]) == (
        "{'d': datetime.date(1970, 1, 2), 'm': Decimal('1.25'), 's': 'a\ufffd', 'i': -128}"
    )


def test_an_array_of_nothing_is_refused_because_its_length_could_be_anything() -> None:
    with pytest.raises(avro_types.DataError, match="takes no bytes"):
        read({"type": "array", "items": {"type": "record", "name": "N", "fields": []}}, [])


@pytest.mark.parametrize(
    ("schema", "column", "message"),
    [
        ("int", pa.array([2**31]), "out of the range of an int"),
        ("string", pa.array([1]), "int64 can't be written as Avro's string"),
        ({"type": "enum", "name": "E", "symbols": ["A"]}, pa.array(["B"]), "'B' is no symbol"),
        (
            RECORD,
            pa.array([{"a": None, "b": "x"}], pa.struct([("a", pa.int64()), ("b", pa.string())])),
            "value.a: null",
        ),
        (RECORD, pa.array([{"a": 1}]), "value.b: the schema has a required field"),
    ],
)
def test_what_does_not_fit_the_schema_is_refused_by_field(schema: Any, column: pa.Array, message: str) -> None:
    with pytest.raises(avro_types.DataError, match=message):
        avro_write.write(avro_types.parse(json.dumps(schema)), column)


def test_a_field_that_the_record_lacks_takes_the_schemas_default() -> None:
    fields = [{"name": "a", "type": "int"}, {"name": "b", "type": "string", "default": "x"}]
    fields.append({"name": "c", "type": ["null", "int"], "default": None})
    avro = avro_types.parse(json.dumps({"type": "record", "name": "R", "fields": fields}))
    [data] = avro_write.write(avro, pa.array([{"a": 1, "z": 5}], pa.struct([("a", pa.int32()), ("z", pa.int8())])))
    assert data.as_py() == b"\x02\x02x\x00"
