"""Rows for sinks, and rows of sources."""

from __future__ import annotations

import pyarrow as pa
import pytest

from wherry.conformance.failure import UsageError
from wherry.conformance.rows import column, rows_of, sample_batch, struct_type
from wherry.conformance.subject import ClassSubject, Sample, Variables
from wherry.contract.batch import JSON_TYPE

PERSON = Sample("struct", {"id": "$n", "name": "n-$n $text"}, {"id": "int64", "name": "string"})


def test_rows_are_numbered_from_the_first_and_marked_behind_the_last() -> None:
    batch = sample_batch(ClassSubject({}, value=PERSON), Variables({}), first=5, count=2)
    assert batch.value.to_pylist() == [{"id": 5, "name": "n-5 text"}, {"id": 6, "name": "n-6 text"}]
    assert batch.marks[0].row_count == 2
    assert batch.marks[0].position.offset == '{"kafka_offset":7}'


def test_the_bad_row_has_the_bad_value() -> None:
    subject = ClassSubject({}, value=PERSON, bad_value={"id": None, "name": "x"})
    batch = sample_batch(subject, Variables({}), first=0, count=2, bad_row=1)
    assert [row["id"] for row in batch.value.to_pylist()] == [0, None]


def test_keys_come_as_they_are_described() -> None:
    subject = ClassSubject({}, key=Sample("text", "k$n"))
    batch = sample_batch(subject, Variables({}), first=0, count=2)
    assert batch.key is not None
    assert batch.key.to_pylist() == ["k0", "k1"]


def test_kinds_have_their_arrow_types() -> None:
    assert column(Sample("bytes", ""), ["a"]).type == pa.binary()
    assert column(Sample("json", ""), [{"a": 1}, "[2]"]).type == JSON_TYPE
    assert column(Sample("text", ""), [1, None]).to_pylist() == ["1", None]


def test_an_unknown_type_is_refused() -> None:
    with pytest.raises(UsageError, match="must be one of Arrow's"):
        struct_type({"a": "color"})


def test_rows_can_be_compared() -> None:
    subject = ClassSubject({}, value=PERSON)
    one = rows_of(sample_batch(subject, Variables({}), first=0, count=2))
    assert one == rows_of(sample_batch(subject, Variables({}), first=0, count=2))
    assert one != rows_of(sample_batch(subject, Variables({}), first=1, count=2))
    assert one[0].topic == "conformance"
