"""Batches: constants, cutting and joining keep every row, mark and error exactly once."""

from __future__ import annotations

import itertools

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from wherry.contract.batch import Batch, Constants, Mark, RowError, concat, mark_only, of_value
from wherry.contract.errors import ConnectorBugError, ErrorClass, RecordRejectedError
from wherry.contract.position import kafka_position


@st.composite
def marked(draw: st.DrawFn) -> Batch:
    rows = draw(st.integers(1, 20))
    places = sorted(draw(st.lists(st.integers(0, rows), max_size=6)))
    errors = sorted(draw(st.lists(st.integers(0, rows), max_size=4)))
    return Batch(
        of_value(pa.array(range(rows))).records,
        Constants(topic="t", first_offset=100),
        tuple(Mark(row, kafka_position("t", n, row)) for n, row in enumerate(places)),
        tuple(RowError(row, ErrorClass.SCHEMA, str(n)) for n, row in enumerate(errors)),
    )


@given(marked(), st.lists(st.integers(0, 20), max_size=4))
@settings(deadline=None)
def test_cutting_and_joining_gives_the_batch_back(batch: Batch, cuts: list[int]) -> None:
    borders = sorted({0, batch.num_rows, *(min(cut, batch.num_rows) for cut in cuts)})
    pieces = [batch.slice(a, b - a) for a, b in itertools.pairwise(borders)]
    joined = concat(pieces)
    assert joined.records.equals(batch.records)
    assert (joined.marks, joined.row_errors, joined.constants) == (batch.marks, batch.row_errors, batch.constants)


@given(marked(), st.integers(1, 64))
@settings(deadline=None)
def test_split_pieces_hold_all_rows_in_order(batch: Batch, bytes_max: int) -> None:
    pieces = list(batch.split(bytes_max))
    assert [n for piece in pieces for n in piece.value.to_pylist()] == batch.value.to_pylist()
    assert all(piece.num_rows == 1 or piece.nbytes <= bytes_max for piece in pieces)


def test_a_mark_on_the_border_belongs_to_the_rows_before() -> None:
    batch = of_value(
        pa.array([1, 2, 3]), marks=[Mark(0, kafka_position("t", 0, 0)), Mark(2, kafka_position("t", 0, 2))]
    )
    assert [mark.row_count for mark in batch.slice(0, 2).marks] == [0, 2]
    assert batch.slice(2).marks == ()


def test_constants_read_as_columns() -> None:
    batch = of_value(pa.array([1, 2]), constants=Constants("t", 3, 7, 1000))
    assert batch.column("topic").to_pylist() == ["t", "t"]  # type: ignore[union-attr]
    assert batch.column("partition").to_pylist() == [3, 3]  # type: ignore[union-attr]
    assert batch.column("offset").to_pylist() == [7, 8]  # type: ignore[union-attr]
    assert batch.slice(1).column("offset").to_pylist() == [8]  # type: ignore[union-attr]
    assert batch.stored("topic") is None


def test_constants_that_differ_become_columns_when_joined() -> None:
    joined = concat(
        [
            of_value(pa.array([1]), constants=Constants("a", 0, 5)),
            of_value(pa.array([2]), constants=Constants("b", 0, 9)),
        ]
    )
    assert joined.constants == Constants(partition=0)
    assert joined.topics() == ["a", "b"]
    assert joined.stored("offset").to_pylist() == [5, 9]  # type: ignore[union-attr]


def test_offsets_that_follow_on_stay_constant() -> None:
    one = of_value(pa.array([1, 2]), constants=Constants("a", 0, 5))
    two = of_value(pa.array([3]), constants=Constants("a", 0, 7))
    assert concat([one, two]).constants.first_offset == 5


def test_joining_takes_in_batches_without_rows() -> None:
    joined = concat([of_value(pa.array([1])), mark_only(kafka_position("t", 0, 9))])
    assert joined.marks == (Mark(1, kafka_position("t", 0, 9)),)


def test_different_schemas_are_not_joined() -> None:
    with pytest.raises(ConnectorBugError, match="different schemas"):
        concat([of_value(pa.array([1])), of_value(pa.array(["a"]))])


def test_a_batch_needs_a_value_column_and_no_strange_ones() -> None:
    with pytest.raises(ConnectorBugError, match="needs value"):
        Batch(pa.record_batch({"key": [1]}))
    with pytest.raises(ConnectorBugError, match="value, colour"):
        Batch(pa.record_batch({"value": [1], "colour": [2]}))


def test_a_column_given_wins_over_the_constant() -> None:
    batch = of_value(pa.array([1]), constants=Constants("t", 1)).with_columns(topic=pa.array(["u"]))
    assert batch.topics() == ["u"]
    assert batch.constants == Constants(partition=1)


def test_a_column_taken_away_is_gone() -> None:
    assert of_value(pa.array([1]), key=pa.array(["k"])).with_columns(key=None).key is None


def test_topics_without_any_are_told_as_none() -> None:
    assert of_value(pa.array([1])).topics() == [None]


@pytest.mark.parametrize(
    ("batch", "runs"),
    [
        (of_value(pa.array([1, 2])), [(None, 0, 2)]),
        (of_value(pa.array([1, 2]), constants=Constants("t")), [("t", 0, 2)]),
        (of_value(pa.array([1, 2, 3]), topic=pa.array(["a", "a", "b"])), [("a", 0, 2), ("b", 2, 1)]),
        (of_value(pa.array([1, 2, 3]), topic=pa.array(["a", "b", "a"])).slice(1), [("b", 0, 1), ("a", 1, 1)]),
        (of_value(pa.array([]), constants=Constants("t")), []),
        (of_value(pa.array([]), topic=pa.array([], pa.string())), []),
    ],
)
def test_rows_of_one_topic_that_follow_one_another_are_a_run(batch: Batch, runs: list[tuple[str, int, int]]) -> None:
    assert list(batch.topic_runs()) == runs


def test_a_row_error_is_made_of_an_exception() -> None:
    error = RecordRejectedError("Too long.", reason="VALUE_TOO_LONG", field_path="a.b", raw=b"x")
    assert RowError.of(4, error) == RowError(4, ErrorClass.SCHEMA, "VALUE_TOO_LONG", "a.b", "Too long.", b"x")
