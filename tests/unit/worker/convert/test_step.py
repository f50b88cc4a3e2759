"""The converting step: failures cut out, schemas told apart, marks kept true."""

from __future__ import annotations

import pyarrow as pa
import pytest

from wherry.contract.batch import JSON_TYPE, Batch, Constants, Mark, mark_only, of_value
from wherry.contract.position import Position
from wherry.worker.convert.registry import converters_of
from wherry.worker.convert.step import FromConnect, Stage, ToConnect, keep_rows
from wherry.worker.convert.typed import TypedValues, value_type

JSON = converters_of(
    {
        "value.converter": "Json",
        "value.converter.schemas.enable": "false",
        "key.converter": "Json",
        "key.converter.schemas.enable": "false",
    },
    {},
)
ENVELOPES = converters_of({"value.converter": "Json", "key.converter": "String"}, {})


def at(offset: int) -> Position:
    return Position('{"p":0}', str(offset))


def batch(*values: bytes | None, keys: list[bytes | None] | None = None, marks: tuple[int, ...] = ()) -> Batch:
    return of_value(
        pa.array(values, pa.binary()),
        constants=Constants("t", 0, 10),
        key=None if keys is None else pa.array(keys, pa.binary()),
        marks=tuple(Mark(row, at(row)) for row in marks),
    )


def test_a_good_batch_goes_through_as_one_with_its_raw_rows() -> None:
    raw = batch(b"1", b"2", marks=(2,))
    stepped = ToConnect(JSON).apply(raw, raw)
    ((converted, kept),) = stepped.pieces
    assert kept is raw
    assert converted.value.type == JSON_TYPE
    assert converted.marks == raw.marks
    assert converted.constants == raw.constants


def test_failed_rows_are_cut_out_and_marks_stay_after_the_rows_they_stood_after() -> None:
    raw = batch(b"1", b"{", b"3", b"{", b"5", marks=(1, 2, 4, 5))
    stepped = ToConnect(JSON).apply(raw, raw)
    ((converted, kept),) = stepped.pieces
    assert converted.value.storage.to_pylist() == ["1", "3", "5"]
    assert kept.value.to_pylist() == [b"1", b"3", b"5"]
    assert [(mark.row_count, mark.position) for mark in converted.marks] == [
        (1, at(1)),
        (1, at(2)),
        (2, at(4)),
        (3, at(5)),
    ]
    assert converted.column("offset").to_pylist() == [10, 12, 14]
    assert [(failure.row, failure.stage, failure.raw is raw) for failure in stepped.failures] == [
        (1, Stage.VALUE_CONVERTER, True),
        (3, Stage.VALUE_CONVERTER, True),
    ]


def test_a_row_that_fails_in_key_and_value_is_told_once() -> None:
    raw = batch(b"{", b"2", keys=[b"{", b"k{"])
    stepped = ToConnect(JSON).apply(raw, raw)
    assert [(failure.row, failure.stage) for failure in stepped.failures] == [
        (0, Stage.KEY_CONVERTER),
        (1, Stage.KEY_CONVERTER),
    ]
    assert stepped.pieces == ()


def test_when_all_rows_fail_the_positions_are_kept() -> None:
    raw = batch(b"{", marks=(1,))
    ((converted, _),) = ToConnect(JSON).apply(raw, raw).pieces
    assert (converted.num_rows, converted.marks) == (0, (Mark(0, at(1)),))


def test_rows_of_different_schemas_become_different_pieces_in_order() -> None:
    raw = batch(
        b'{"schema":{"type":"int8"},"payload":1}', b'{"schema":{"type":"string"},"payload":"a"}',
        b'{"schema":{"type":"string"},"payload":"b"}', marks=(1, 3),
    )  # fmt: skip
    pieces = ToConnect(ENVELOPES).apply(raw, raw).pieces
    assert [converted.value.to_pylist() for converted, _ in pieces] == [[1], ["a", "b"]]
    assert [[mark.row_count for mark in converted.marks] for converted, _ in pieces] == [[1], [2]]
    assert [piece.constants.first_offset for piece, _ in pieces] == [10, 11]
    assert [kept.num_rows for _, kept in pieces] == [1, 2]


def test_rows_of_different_topics_are_converted_apart() -> None:
    both = of_value(pa.array(["a", "b", "c"]), topic=pa.array(["t", "t", "u"]))
    pieces = FromConnect(JSON).apply(both, both).pieces
    assert [converted.value.to_pylist() for converted, _ in pieces] == [[b'"a"', b'"b"'], [b'"c"']]


def test_marks_alone_pass_through() -> None:
    marks = mark_only(at(3))
    assert ToConnect(JSON).apply(marks, marks).pieces == ((marks, marks),)


def test_keeping_rows_keeps_the_metadata_of_the_columns() -> None:
    field = pa.field("value", pa.int8(), nullable=False, metadata={b"connect.name": b"x"})
    records = pa.RecordBatch.from_arrays([pa.array([1, 2], pa.int8())], schema=pa.schema([field]))
    assert keep_rows(Batch(records), [1]).records.schema.field("value").equals(field, check_metadata=True)


# Typed sinks

WANTED = pa.schema([("a", pa.int32()), ("b", pa.string())])


def json_batch(*texts: str, topic: str = "t") -> Batch:
    return of_value(pa.ExtensionArray.from_storage(JSON_TYPE, pa.array(texts)), constants=Constants(topic))


def test_bare_json_is_parsed_into_the_schema_the_sink_asks_for_once_per_topic() -> None:
    asked: list[tuple[str, pa.Schema | None]] = []

    def ensure(topic: str, schema: pa.Schema | None) -> pa.Schema:
        asked.append((topic, schema))
        return WANTED

    step = TypedValues(ensure, "x.Sink")
    rows = json_batch('{"a":1,"b":"x"}', '{"a":"no"}', '{"a":3}')
    for _ in range(2):
        stepped = step.apply(rows, rows)
    ((converted, kept),) = stepped.pieces
    assert converted.value.to_pylist() == [{"a": 1, "b": "x"}, {"a": 3, "b": None}]
    assert kept.num_rows == 2
    assert [(failure.row, failure.executing) for failure in stepped.failures] == [(1, "x.Sink")]
    assert asked == [("t", None)]


def test_a_sink_that_wants_any_schema_gets_the_json() -> None:
    rows = json_batch('{"a":1}')
    assert TypedValues(lambda topic, schema: None, "x").apply(rows, rows).pieces == ((rows, rows),)


def test_a_schema_the_values_have_is_told_when_it_changes_and_the_values_stay() -> None:
    told: list[pa.Schema | None] = []

    def ensure(topic: str, schema: pa.Schema | None) -> None:
        told.append(schema)

    step = TypedValues(ensure, "x")
    one = of_value(pa.array([{"a": 1}]), constants=Constants("t"))
    other = of_value(pa.array([{"a": 1, "b": 2}]), constants=Constants("t"))
    for rows in (one, one, other):
        assert step.apply(rows, rows).pieces == ((rows, rows),)
    assert [schema.field("value").type.num_fields for schema in told if schema] == [1, 2]


@pytest.mark.parametrize("schema", [WANTED, pa.schema([("value", pa.struct(list(WANTED)))])])
def test_the_wanted_schema_is_that_of_the_value_or_its_fields(schema: pa.Schema) -> None:
    assert value_type(schema) == pa.struct(list(WANTED))
