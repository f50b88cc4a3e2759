"""Rows into columns and back."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from wherry.contract.batch import JSON_TYPE
from wherry.contract.errors import ConnectorBugError, SchemaError
from wherry.sdk import Record
from wherry.sdk._columns import batches, rows_of

JSON = st.recursive(
    st.booleans() | st.integers(-(2**53), 2**53) | st.floats(allow_nan=False, allow_infinity=False),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=5,
)
CELLS = st.none() | st.text(max_size=5) | st.binary(max_size=5) | JSON
ROWS = st.builds(
    Record,
    CELLS,
    CELLS,
    st.none() | st.sampled_from(["a", "b"]),
    headers=st.none()
    | st.lists(st.tuples(st.text(max_size=3), st.none() | st.binary(max_size=3)), min_size=1, max_size=2),
    timestamp_ms=st.none() | st.integers(0, 2**40),
    kafka_partition=st.none() | st.integers(0, 9),
)


@given(st.lists(ROWS, min_size=1, max_size=12))
@settings(deadline=None)
def test_rows_come_back_as_they_were_whatever_their_kinds(rows: list[Record]) -> None:
    back = [row for batch in batches(rows, None) for row in rows_of(batch)]
    assert back == rows


def test_rows_of_one_kind_are_one_batch_with_constants() -> None:
    (batch,) = batches([Record("a", topic="t"), Record(None, topic="t"), Record("b", topic="t")], None)
    assert batch.records.schema.names == ["value"]
    assert (batch.constants.topic, batch.value.type) == ("t", pa.string())


def test_a_change_of_kind_starts_a_new_batch() -> None:
    rows = [Record("a"), Record(None), Record(b"b"), Record({"c": 1}), Record(5)]
    assert [(batch.num_rows, batch.value.type) for batch in batches(rows, None)] == [
        (2, pa.string()),
        (1, pa.binary()),
        (2, JSON_TYPE),
    ]


def test_a_schema_makes_typed_columns() -> None:
    schema = pa.schema([("a", pa.int32()), ("b", pa.string())])
    (batch,) = batches([Record({"a": 1, "b": "x"}, schema=schema), Record({"a": None}, schema=schema)], None)
    assert batch.value.to_pylist() == [{"a": 1, "b": "x"}, {"a": None, "b": None}]


def test_a_row_that_does_not_fit_its_schema_is_told() -> None:
    with pytest.raises(SchemaError, match="doesn't fit its schema"):
        list(batches([Record({"a": "x"}, schema=pa.struct([("a", pa.int32())]))], None))


def test_a_value_that_is_no_json_is_a_bug() -> None:
    with pytest.raises(ConnectorBugError, match="neither text, bytes nor JSON"):
        list(batches([Record({"a": object()})], None))


def test_topics_are_filled_in_row_by_row() -> None:
    (batch,) = batches([Record("a"), Record("b", topic="u")], "t")
    assert batch.column("topic").to_pylist() == ["t", "u"]  # type: ignore[union-attr]


def marks(rows: list[Record], **options: Any) -> list[tuple[int, str, str | None]]:
    (batch,) = batches(rows, None, **options)
    return [(mark.row_count, mark.position.partition, mark.position.offset) for mark in batch.marks]


def test_the_last_offset_of_each_partition_is_marked() -> None:
    a, b = {"p": "a"}, {"p": "b"}
    rows = [
        Record("1", partition=a, offset={"n": 1}),
        Record("2", partition=b, offset={"n": 1}),
        Record("3", partition={"p": "a"}, offset={"n": 2}),
        Record("4"),
    ]
    assert marks(rows) == [(2, '{"p":"b"}', '{"n":1}'), (3, '{"p":"a"}', '{"n":2}')]


def test_every_offset_is_marked_where_transactions_end_with_them() -> None:
    rows = [Record(str(n), partition={"p": 0}, offset={"n": n}) for n in range(3)]
    assert [place for place, *_ in marks(rows, every_mark=True)] == [1, 2, 3]
