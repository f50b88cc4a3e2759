"""Avro schemas and Connect's; the table was recorded from a Java converter of the same lineage as Confluent's."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from wherry.contract.data import DataError
from wherry.contract.schema import from_form, to_form
from wherry.worker.convert.registered import avro_schema, avro_types

CASES = json.loads((Path(__file__).parents[4] / "cases/registered/avro_schemas.json").read_text())
IDS = [str(index) for index in range(len(CASES))]


def text(avro: Any) -> str:
    return avro if isinstance(avro, str) else json.dumps(avro)


@pytest.mark.parametrize(("start", "given", "connect", "avro"), CASES, ids=IDS)
def test_schemas_are_mapped_as_by_the_java_converter(start: str, given: Any, connect: Any, avro: Any) -> None:
    if start == "A":
        schema = avro_schema.to_connect(avro_types.parse(text(given)))
        assert to_form(schema) == connect
        assert avro_schema.from_connect(schema) == avro
    else:
        written = avro_schema.from_connect(from_form(given))
        assert written == avro
        assert to_form(avro_schema.to_connect(avro_types.parse(text(written)))) == connect


@pytest.mark.parametrize(
    ("avro", "message"),
    [
        ('{"type":"record","name":"L","fields":[{"name":"n","type":["null","L"]}]}', "L holds itself"),
        ('"null"', "null schemas are not supported"),
        ('{"type":"record"}', "can't be read"),
        ("{", "can't be read"),
        ('{"type":"nope"}', "names nope, which it doesn't define"),
        ('["int",{"type":"fixed","name":"a.int","size":2}]', "Multiple union schemas"),
        ('{"type":"record","name":"R","fields":[{"name":"a","type":"int","default":"x"}]}', "default of the field a"),
    ],
)
def test_what_columns_cannot_hold_is_refused_in_a_sentence(avro: str, message: str) -> None:
    with pytest.raises(DataError, match=message):
        avro_schema.to_connect(avro_types.parse(avro))


def test_a_name_that_avro_does_not_allow_is_refused() -> None:
    with pytest.raises(DataError, match="Illegal character in: a-b"):
        avro_schema.from_connect(from_form({"type": "struct", "fields": [{"type": "int8", "field": "a-b"}]}))


def test_a_schema_finds_what_it_refers_to() -> None:
    other = '{"type":"record","name":"x.A","fields":[{"name":"n","type":"int"}]}'
    avro = avro_types.parse('{"type":"record","name":"x.B","fields":[{"name":"a","type":"A"}]}', [other])
    assert avro.fields[0].type.fields[0].type.kind is avro_types.AvroKind.INT


def test_an_enum_becomes_one_again_when_asked() -> None:
    given = {"type": "enum", "name": "E", "namespace": "x", "symbols": ["A", "B"]}
    schema = avro_schema.to_connect(avro_types.parse(json.dumps(given)))
    again = avro_schema.from_connect(schema, enhanced=True, metadata=False)
    assert again == given


def test_maps_of_unlike_keys_get_names_of_their_own() -> None:
    form = {
        "type": "struct",
        "fields": [
            {"type": "map", "keys": {"type": key}, "values": {"type": "int32"}, "field": key}
            for key in ("int32", "int64")
        ],
    }
    written = avro_schema.from_connect(from_form(form))
    assert [field["type"]["items"]["name"] for field in written["fields"]] == ["MapEntry", "MapEntry2"]
    back = to_form(avro_schema.to_connect(avro_types.parse(json.dumps(written))))
    assert [field["keys"]["type"] for field in back["fields"]] == ["int32", "int64"]
