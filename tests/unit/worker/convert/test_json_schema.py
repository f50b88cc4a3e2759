"""Envelopes whose schemas change all the time."""

from __future__ import annotations

import json

import pyarrow as pa
import pytest

from wherry.contract.batch import Constants, Mark, of_value
from wherry.contract.position import kafka_position
from wherry.worker.convert.json_schema import SCHEMAS_KNOWN_MAX, EnvelopeReader
from wherry.worker.convert.json_write import WriteOptions
from wherry.worker.convert.registry import converters_of
from wherry.worker.convert.step import ToConnect
from wherry.worker.marks import with_own_marks

pytestmark = pytest.mark.usefixtures("both_ways")

MANY = 10_000


def envelope(number: int, *, spaces: bool = False) -> bytes:
    schema = {"type": "struct", "name": f"s{number}", "fields": [{"field": f"f{number}", "type": "int32"}]}
    text = json.dumps({"schema": schema, "payload": {f"f{number}": number}}, separators=None if spaces else (",", ":"))
    return text.encode()


def test_ten_thousand_schemas_are_read_and_but_so_many_are_kept() -> None:
    reader = EnvelopeReader("", WriteOptions())
    column = pa.array([envelope(number) for number in range(MANY)], pa.binary())
    before = pa.total_allocated_bytes()
    for _ in range(2):
        converted = reader.read(column)
        assert converted.failures == ()
        assert [run.column.to_pylist() for run in converted.runs[::999]] == [
            [{f"f{number}": number}] for number in range(0, MANY, 999)
        ]
        del converted
    assert pa.total_allocated_bytes() - before < 1 << 20
    assert len(reader._by_prefix) <= SCHEMAS_KNOWN_MAX
    assert len(reader._by_schema) <= SCHEMAS_KNOWN_MAX


def test_a_batch_in_which_every_record_has_another_schema_loses_no_row_and_no_position() -> None:
    rows = [envelope(number, spaces=bool(number % 2)) for number in range(300)]
    rows[150] = b"poison"
    batch = of_value(
        pa.array(rows, pa.binary()), constants=Constants("t", 0, 7), marks=[Mark(300, kafka_position("t", 0, 307))]
    )
    stepped = ToConnect(converters_of({"value.converter": "Json", "key.converter": "ByteArray"}, {})).apply(
        batch, batch
    )
    assert [failure.row for failure in stepped.failures] == [150]
    values = [value for piece, _ in stepped.pieces for value in piece.value.to_pylist()]
    assert values == [{f"f{number}": number} for number in range(300) if number != 150]
    marked = with_own_marks(stepped.pieces)
    assert [mark.position for piece, _ in marked for mark in piece.marks] == [
        kafka_position("t", 0, 8 + number) for number in range(300) if number != 150
    ]


@pytest.mark.parametrize("length", [1, 63, 64, 65, 320, 1000])
def test_runs_of_any_length_are_found(length: int) -> None:
    rows = [envelope(1)] * length + [envelope(2)] * length + [None] + [envelope(1)] * length
    converted = EnvelopeReader("", WriteOptions()).read(pa.array(rows, pa.binary()))
    assert [len(run.column) for run in converted.runs] == [length, length + 1, length]
