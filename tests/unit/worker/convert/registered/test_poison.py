"""Poison for every converter of a registry: each such row fails alone, in a sentence, and the rest is bounded."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

from wherry.contract.errors import TransientError
from wherry.worker.convert import Converter
from wherry.worker.convert.registered.avro import AvroConverter
from wherry.worker.convert.registered.client import SCHEMAS_KNOWN_MAX
from wherry.worker.convert.registered.framing import RegisteredConverter
from wherry.worker.convert.registered.json import JsonSchemaConverter
from wherry.worker.convert.registered.protobuf import ProtobufConverter

URL = {"schema.registry.url": "mock://registry"}
KINDS: dict[str, type[RegisteredConverter]] = {
    "AVRO": AvroConverter, "PROTOBUF": ProtobufConverter, "JSON": JsonSchemaConverter,
}  # fmt: skip
WORDS = {"AVRO": "Avro", "PROTOBUF": "Protobuf", "JSON": "JSON Schema"}
FIELD = pa.field("value", pa.struct([pa.field("a", pa.int32()), pa.field("s", pa.string())]))
VALUE = {"a": 1, "s": "hello"}
FORMS = {
    "AVRO": '{{"type":"record","name":"R{0}","fields":[{{"name":"f{0}","type":"int"}}]}}',
    "PROTOBUF": 'syntax = "proto3"; message R{0} {{ int32 f{0} = 1; }}',
    "JSON": '{{"type":"object","title":"R{0}","properties":{{"f{0}":{{"type":"integer","connect.type":"int32"}}}}}}',
}
BODIES = {"AVRO": "\4", "PROTOBUF": "\0\x08\2", "JSON": '{{"f{0}":2}}'}


class ManySchemas:
    """A registry that has a schema of one kind for any id."""

    def __init__(self, kind: str) -> None:
        self.kind, self.asked, self.cleared = kind, 0, 0

    def get_schema(self, number: int, *_: Any) -> Any:
        from confluent_kafka.schema_registry import Schema

        self.asked += 1
        return Schema(FORMS[self.kind].format(number), self.kind)

    def lookup_schema(self, *_: Any) -> Any:
        raise LookupError

    def register_schema(self, *_: Any, **__: Any) -> int:
        self.asked += 1
        return self.asked

    def clear_caches(self) -> None:
        self.cleared += 1


def one(converter: Converter, value: Any = VALUE, field: pa.Field = FIELD) -> bytes:
    converted = converter.from_connect("t", field, pa.array([value], field.type))
    assert converted.failures == ()
    return bytes(converted.runs[0].column[0].as_py())


@pytest.mark.parametrize("kind", KINDS)
def test_what_is_no_framing_says_what_it_should_be(kind: str) -> None:
    this = KINDS[kind](URL, is_key=False)
    good = one(this)
    begins = (
        "What a schema registry's converter wrote begins with 0x00 and the four bytes of its schema's id; this begins"
    )
    cases = {
        b"": f"Unknown magic byte! {begins} with nothing, for it is empty.",
        b"\1" + good[1:]: f"Unknown magic byte! {begins} with 0x01.",
        b"\2": f"Unknown magic byte! {begins} with 0x02.",
        b"{}": f"Unknown magic byte! {begins} with 0x7b.",
        b"\0": "The bytes end within the schema's id, which takes four of them: there are 0.",
        good[:4]: "The bytes end within the schema's id, which takes four of them: there are 3.",
    }
    converted = this.to_connect("t", pa.array([good, *cases, good], pa.binary()))
    told = [str(failure.error) for failure in converted.failures]
    assert told == [f"Failed to deserialize data for topic t to {WORDS[kind]}: {text}" for text in cases.values()]
    assert [value for run in converted.runs for value in run.column.to_pylist()] == [VALUE, VALUE]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("number", [b"\0\0\x09\x09", b"\x7f\xff\xff\xff", b"\xff\xff\xff\xff"])
def test_an_id_that_nobody_has_is_told(kind: str, number: bytes) -> None:
    this = KINDS[kind](URL, is_key=False)
    good = one(this)
    [failure] = this.to_connect("t", pa.array([good, b"\0" + number + good[5:]], pa.binary())).failures
    assert f"404 (schema {int.from_bytes(number, 'big')}): Schema Not Found" in str(failure.error)
    assert failure.row == 1


@pytest.mark.parametrize(("kind", "other"), [(kind, other) for kind in KINDS for other in KINDS if kind != other])
def test_the_id_of_another_types_schema_fails_its_rows(kind: str, other: str) -> None:
    this, writer = KINDS[kind](URL, is_key=False), KINDS[other](URL, is_key=False)
    writer._registry = this._registry
    poison = one(writer, {"b": 1}, pa.field("value", pa.struct([pa.field("b", pa.int32())])))
    converted = this.to_connect("t", pa.array([one(this), poison, poison], pa.binary()))
    assert [failure.row for failure in converted.failures] == [1, 2]
    assert f"is of type {other}; this converter reads {kind}." in str(converted.failures[0].error)


@pytest.mark.parametrize("kind", KINDS)
def test_bodies_that_are_cut_anywhere_fail_alone(kind: str) -> None:
    this = KINDS[kind](URL, is_key=False)
    good = one(this)
    # Protobuf has no end of its own: a body cut between two fields is a shorter message.
    cuts = [good[:length] for length in range(5, len(good)) if kind != "PROTOBUF" or length not in (6, 8)]
    converted = this.to_connect("t", pa.array([good, *cuts, good], pa.binary()))
    assert [failure.row for failure in converted.failures] == list(range(1, len(cuts) + 1))
    assert [value for run in converted.runs for value in run.column.to_pylist()] == [VALUE, VALUE]


@pytest.mark.parametrize("tail", [b"\0", b"xyz", b"{", b'{"a":2}', b" "])
@pytest.mark.parametrize("kind", ["AVRO", "JSON"])
def test_bytes_after_the_value_are_passed_over(kind: str, tail: bytes) -> None:
    this = KINDS[kind](URL, is_key=False)
    converted = this.to_connect("t", pa.array([one(this) + tail], pa.binary()))
    assert converted.failures == ()
    assert converted.runs[0].column.to_pylist() == [VALUE]


def test_bytes_after_a_protobuf_message_are_part_of_it_and_damage_it() -> None:
    this = ProtobufConverter(URL, is_key=False)
    converted = this.to_connect("t", pa.array([one(this) + b"xyz", one(this)], pa.binary()))
    assert [failure.row for failure in converted.failures] == [0]


@pytest.mark.parametrize("kind", KINDS)
def test_thousands_of_schemas_are_read_and_written_without_being_kept(kind: str) -> None:
    this = KINDS[kind](URL, is_key=False)
    this._registry._made = client = ManySchemas(kind)
    count = SCHEMAS_KNOWN_MAX + 100
    rows = [b"\0" + number.to_bytes(4, "big") + BODIES[kind].format(number).encode() for number in range(count)]
    for start in range(0, count, 110):
        converted = this.to_connect("t", pa.array(rows[start : start + 110], pa.binary()))
        assert converted.failures == ()
        values = [value for run in converted.runs for value in run.column.to_pylist()]
        assert values == [{f"f{start + row}": 2} for row in range(110)]
    assert client.asked == count
    assert client.cleared >= 1
    assert len(this._readers) == len(this._registry._schemas) == SCHEMAS_KNOWN_MAX
    # The last ones are known; the first is asked for again.
    this.to_connect("t", pa.array(rows[-1:], pa.binary()))
    assert client.asked == count
    this.to_connect("t", pa.array(rows[:1], pa.binary()))
    assert client.asked == count + 1


@pytest.mark.parametrize("kind", KINDS)
def test_a_registry_that_is_away_is_the_batchs_trouble_and_no_rows(kind: str) -> None:
    this = KINDS[kind]({"schema.registry.url": "http://127.0.0.1:1"}, is_key=False)
    with pytest.raises(TransientError, match="doesn't answer"):
        this.to_connect("t", pa.array([b"\0\0\0\0\1\2"], pa.binary()))
    with pytest.raises(TransientError, match="doesn't answer"):
        this.from_connect("t", FIELD, pa.array([VALUE], FIELD.type))
