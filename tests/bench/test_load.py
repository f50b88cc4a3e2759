"""The records that both systems are given, and the reader that stamps lines."""

from __future__ import annotations

import json
import time
from pathlib import Path

import pytest
from tests.bench.flows.contents import compare
from tests.bench.load import RECORD_FIELDS, RECORD_SCHEMA, envelope, irregular, record, shuffled
from tests.bench.processes import BenchError
from tests.bench.tail import Tail

PYTHON_TYPES = {"int64": int, "int32": int, "double": float, "boolean": bool, "string": str}


@pytest.mark.parametrize("index", [0, 1, 99_999, 100_000, 2_999_999])
def test_a_record_is_json_of_its_schema(index: int) -> None:
    value = json.loads(record(index))
    assert list(value) == [field["field"] for field in RECORD_FIELDS]
    assert [type(cell) for cell in value.values()] == [PYTHON_TYPES[str(field["type"])] for field in RECORD_FIELDS]


def test_records_are_about_200_bytes() -> None:
    assert 180 <= len(record(0)) <= len(record(9_999_999)) <= 205


def test_an_envelope_holds_the_record_and_its_schema() -> None:
    assert json.loads(envelope(7)) == {
        "schema": json.loads(json.dumps(RECORD_SCHEMA)),
        "payload": json.loads(record(7)),
    }


def test_irregular_records_differ_in_their_members() -> None:
    assert len({tuple(json.loads(irregular(index))) for index in range(6)}) == 2


def test_shuffled_records_differ_in_the_order_of_their_members_alone() -> None:
    assert len({tuple(json.loads(shuffled(index))) for index in range(60)}) > 50
    assert [json.loads(shuffled(index)) for index in range(60)] == [json.loads(irregular(index)) for index in range(60)]


def test_other_lines_of_the_other_system_are_refused() -> None:
    compare({"wherry": ["a", "b"]})
    compare({"wherry": ["a", "b"], "connect": ["a", "b"]})
    with pytest.raises(BenchError, match="wherry wrote 'b' where connect wrote 'c'"):
        compare({"wherry": ["a", "b"], "connect": ["a", "c"]})
    with pytest.raises(BenchError, match="wrote 2 lines where connect wrote 1"):
        compare({"wherry": ["a", "b"], "connect": ["a"]})


def test_the_tail_stamps_whole_lines_only(tmp_path: Path) -> None:
    path = tmp_path / "lines"
    with Tail(path) as tail, path.open("ab", buffering=0) as file:
        before = time.time_ns()
        file.write(b"one\ntw")
        file.write(b"o\nthr")
        deadline = time.monotonic() + 60.0
        while len(tail.lines) < 2 and time.monotonic() < deadline:
            time.sleep(0.001)
    assert [line for _, line in tail.lines] == [b"one", b"two"]
    assert all(before <= at <= time.time_ns() for at, _ in tail.lines)
