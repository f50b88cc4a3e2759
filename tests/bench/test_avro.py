"""The records in Avro are the records."""

from __future__ import annotations

import io
import json

import fastavro
from tests.bench.avro import encoder, schema
from tests.bench.load import record


def test_a_record_in_avro_is_framed_and_says_the_same() -> None:
    data = encoder(258)(41)
    assert data[:5] == b"\0\0\0\x01\x02"
    plain = {**schema(), "fields": [{**field, "type": _without_logical(field["type"])} for field in schema()["fields"]]}
    assert fastavro.schemaless_reader(io.BytesIO(data[5:]), fastavro.parse_schema(plain)) == json.loads(record(41))


def _without_logical(kind: object) -> object:
    return kind["type"] if isinstance(kind, dict) else kind
