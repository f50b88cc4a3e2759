"""Protobuf messages into columns and back, against protobuf's own classes."""

from __future__ import annotations

import datetime
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from google.protobuf.message_factory import GetMessageClass
from hypothesis import given, settings
from hypothesis import strategies as st

from wherry.contract.data import DataError
from wherry.contract.schema import field_of, from_form, to_form
from wherry.worker.convert.registered.proto_data import ProtobufReader, write
from wherry.worker.convert.registered.proto_types import from_connect, messages_of, to_connect
from wherry.worker.convert.registered.protobuf import ProtobufConverter

ALL = """
// A comment.
syntax = "proto3"; package x.y;
import "google/protobuf/timestamp.proto";
import "google/type/date.proto"; /* and
another */ import "google/type/timeofday.proto";
import "other.proto";
option java_package = "a;b";
message All {
  reserved 90 to 95, 99; reserved "gone";
  option deprecated = true;
  int32 i = 1; sint32 s = 2; uint32 u = 3; int64 l = 4; sint64 z = 5 [deprecated = true]; uint64 h = 6;
  fixed32 f = 7; fixed64 g = 8; sfixed32 a = 9; sfixed64 b = 10; float c = 11; double d = 12;
  bool t = 13; string n = 14; bytes y = 15; Colour e = 16; optional int32 o = 17; Inner m = 18;
  repeated int32 r = 19; repeated string q = 20; map<string, int64> p = 21; repeated Inner k = 22;
  oneof either { string left = 23; int32 right = 24; }
  google.protobuf.Timestamp at = 25; .google.type.Date day = 26; google.type.TimeOfDay time = 27;
  other.Thing thing = 28; map<int32, Inner> w = 29;
  enum Colour { option allow_alias = true; NONE = 0; RED = 1 [(x.o) = "y"]; ROT = 1; LOW = -1; }
  message Inner { double v = 1; optional string w = 2; }
}
message Second { int32 a = 1; }
service S { rpc Go(All) returns (Second) { option idempotency_level = IDEMPOTENT; } }
"""
OTHER = 'syntax = "proto3"; package other; message Thing { string name = 1; }'
MESSAGES = messages_of(ALL, [("other.proto", OTHER)])
I32, I64 = st.integers(-(2**31), 2**31 - 1), st.integers(-(2**63), 2**63 - 1)
TEXT = st.text(st.characters(codec="utf-8"), max_size=6)
VALUES = st.fixed_dictionaries(
    {},
    optional={
        **dict.fromkeys(("i", "s", "a", "o"), I32),
        **dict.fromkeys(("l", "z", "b"), I64),
        **dict.fromkeys(("u", "f"), st.integers(0, 2**32 - 1)),
        **dict.fromkeys(("h", "g"), st.integers(0, 2**63 - 1)),
        "c": st.floats(width=32, allow_nan=False),
        "d": st.floats(allow_nan=False),
        "t": st.booleans(),
        "n": TEXT,
        "y": st.binary(max_size=6),
        "e": st.sampled_from(["NONE", "RED", "LOW"]),
        "m": st.fixed_dictionaries({"v": st.floats(allow_nan=False)}, optional={"w": TEXT}),
        "r": st.lists(I32, max_size=3),
        "q": st.lists(TEXT, max_size=3),
        "p": st.dictionaries(TEXT, I64, max_size=3),
        "k": st.lists(st.fixed_dictionaries({}, optional={"w": TEXT}), max_size=2),
        "left": TEXT,
        "thing": st.fixed_dictionaries({"name": TEXT}),
    },
)


@settings(max_examples=30, deadline=None)
@given(st.lists(VALUES, min_size=1, max_size=5))
def test_columns_hold_what_protobuf_wrote_and_are_read_by_protobuf(rows: list[dict[str, Any]]) -> None:
    made = GetMessageClass(MESSAGES[0])
    messages = [made(**row) for row in rows]
    payloads = [b"\0" + message.SerializeToString() for message in messages]
    converted = ProtobufReader(MESSAGES[0]).read(pa.array(payloads, pa.binary()))
    assert converted.failures == ()
    column = converted.runs[0].column
    for got, row in zip(column.to_pylist(), rows, strict=True):
        assert got["i"] == row.get("i", 0)
        assert got["o"] == row.get("o")
        assert got["e"] == ("RED" if row.get("e") == "RED" else row.get("e", "NONE")) or got["e"] == "ROT"
        assert dict(got["p"]) == row.get("p", {})
        assert got["r"] == row.get("r", [])
        assert (got["m"] is None) == ("m" not in row)
        assert got["either_0"] == ({"left": row["left"], "right": None} if "left" in row else None)
    written = write(MESSAGES[0], column)
    assert [made.FromString(data) for data in written.to_pylist()] == messages


def test_googles_types_are_connects_logical_ones() -> None:
    made = GetMessageClass(MESSAGES[0])
    message = made(
        at={"seconds": -1, "nanos": 5_000_000}, day={"year": 2020, "month": 2, "day": 29}, time={"hours": 23}
    )
    column = ProtobufReader(MESSAGES[0]).read(pa.array([b"\0" + message.SerializeToString()])).runs[0].column
    got = column.to_pylist()[0]
    assert got["at"].timestamp() == -0.995
    assert (got["day"], got["time"]) == (datetime.date(2020, 2, 29), datetime.time(23))
    assert made.FromString(write(MESSAGES[0], column)[0].as_py()) == message


@pytest.mark.parametrize("data", [b"", b"\0\xff\xff", b"\0\x72\x02\xff\xff", b"\2\2\x08\x01", b"\x80", b"\0\x72\x50a"])
def test_poison_fails_alone(data: bytes) -> None:
    good = b"\0\x08\x05"
    converted = ProtobufReader(MESSAGES[0]).read(pa.array([good, data, b"\2\0\x08\x07"], pa.binary()))
    assert [failure.row for failure in converted.failures] == [1]
    assert converted.runs[0].column.field("i").to_pylist() == [5, 7]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("message A { A a = 1; }", "holds itself"),
        ('import "x.proto"; message A {}', "imports x.proto"),
        ("message A { int32 a = ; }", "can't be read"),
        ("message A {", "ends too early"),
        ("message A { Nope a = 1; }", "can't be used"),
        ("message A { int32 a = 1; int32 b = 1; }", "can't be used"),
    ],
)
def test_what_cannot_be_used_is_refused_in_a_sentence(text: str, message: str) -> None:
    with pytest.raises(DataError, match=message):
        to_connect(messages_of(f'syntax = "proto3"; {text}')[0])


STRUCT = {
    "type": "struct",
    "fields": [
        {"type": "int8", "optional": True, "field": "a"},
        {"type": "string", "optional": True, "field": "b"},
        {"type": "array", "items": {"type": "double", "optional": False}, "optional": False, "field": "c"},
        {
            "type": "bytes",
            "optional": True,
            "name": "org.apache.kafka.connect.data.Decimal",
            "version": 1,
            "parameters": {"scale": "2"},
            "field": "d",
        },
        {
            "type": "struct",
            "fields": [{"type": "int64", "optional": False, "field": "z"}],
            "optional": True,
            "field": "e",
        },
        {
            "type": "int64",
            "optional": True,
            "name": "org.apache.kafka.connect.data.Timestamp",
            "version": 1,
            "field": "f",
        },
    ],
    "optional": False,
    "name": "x.y.R",
}


def test_a_schema_comes_back_but_for_names_and_numbers() -> None:
    text = from_connect(from_form(STRUCT), optional_labels=True)
    back = to_form(to_connect(messages_of(text)[0]))
    assert back["name"] == "R"
    assert [(field["field"], field["type"], field["optional"]) for field in back["fields"]] == [
        (field["field"], field["type"], field["optional"])
        for field in STRUCT["fields"]  # type: ignore[attr-defined]
    ]
    assert back["fields"][3]["parameters"]["scale"] == "2"
    assert [field["parameters"]["io.confluent.connect.protobuf.Tag"] for field in back["fields"]] == list("123456")


@pytest.mark.parametrize(("labels", "empty"), [("true", None), ("false", 0)])
def test_values_come_back_through_a_registry(labels: str, empty: int | None) -> None:
    url = {"schema.registry.url": "mock://registry"}
    converter = ProtobufConverter(url | {"optional.for.nullables": labels}, is_key=False)
    field = field_of(STRUCT)
    row = {"a": 5, "b": "é", "c": [1.5], "d": Decimal("-1.25"), "e": {"z": 7}, "f": 1}
    column = pa.array([row, None, dict.fromkeys("abdef") | {"c": []}], field.type)
    written = converter.from_connect("t", field, column)
    assert written.failures == ()
    again = converter.to_connect("t", written.runs[0].column)
    assert again.failures == ()
    first, second, third = again.runs[0].column.to_pylist()
    assert (first["a"], first["b"], first["c"], first["d"], first["e"]) == (5, "é", [1.5], Decimal("-1.25"), {"z": 7})
    assert second is None
    assert (third["a"], third["d"], third["e"]) == (empty, None, None)


def test_only_structs_are_messages() -> None:
    converter = ProtobufConverter({"schema.registry.url": "mock://registry"}, is_key=False)
    [failure] = converter.from_connect("t", pa.field("value", pa.int32()), pa.array([1], pa.int32())).failures
    assert "Only structs" in str(failure.error)
