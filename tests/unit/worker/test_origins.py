"""Rows that transformations have moved tell where they were read."""

from __future__ import annotations

import pyarrow as pa

from wherry.contract.batch import Batch, Constants, Mark, of_value
from wherry.contract.position import kafka_position
from wherry.worker.origins import with_origins


def rows(name: str | None = "t", number: int | None = 3, first: int | None = 10, **more: pa.Array) -> Batch:
    values = pa.array([b"a", b"b", b"c"], pa.binary())
    marks = (Mark(3, kafka_position("t", 3, 13)),)
    return of_value(values, constants=Constants(name, number, first), marks=marks, **more)


def told(batch: Batch) -> tuple[list[bytes], str | None, str | None, int | None]:
    found = batch.constants
    return batch.value.to_pylist(), found.topic, found.original_topic, found.original_partition


def test_rows_that_were_not_moved_stay_as_they_are() -> None:
    raw = rows()
    converted = rows()
    assert with_origins([(raw, raw), (converted, raw)]) == [(raw, raw), (converted, raw)]


def test_a_new_name_comes_with_the_old_one() -> None:
    [(piece, raw)] = with_origins([(rows("renamed"), rows())])
    assert told(piece) == ([b"a", b"b", b"c"], "renamed", "t", 3)
    assert piece.marks == rows().marks
    assert raw == rows()


def test_rows_of_several_topics_under_one_name_are_cut_where_they_were_read_elsewhere() -> None:
    offsets = pa.array([5, 6, 1], pa.int64())
    read = rows(
        None, None, None, topic=pa.array(["t", "t", "u"]), partition=pa.array([0, 0, 1], pa.int32()), offset=offsets
    )
    written = rows("all", None, None, partition=pa.array([0, 0, 1], pa.int32()), offset=offsets)
    pieces = with_origins([(written, read)])
    assert [told(piece) for piece, _ in pieces] == [([b"a", b"b"], "all", "t", 0), ([b"c"], "all", "u", 1)]
    assert [raw.num_rows for _, raw in pieces] == [2, 1]
    assert [mark.row_count for piece, _ in pieces for mark in piece.marks] == [1]


def test_columns_that_say_the_same_are_no_move() -> None:
    read = rows(None, None, None, topic=pa.array(["t", "t", "u"]), offset=pa.array([5, 6, 1], pa.int64()))
    [(piece, _)] = with_origins([(rows(None, None, None, topic=pa.array(["t", "t", "u"])), read)])
    assert piece.constants.original_topic is None


def test_rows_that_were_not_read_from_kafka_have_no_origin_there() -> None:
    source = rows("t", None, None)
    [(piece, _)] = with_origins([(rows("renamed", None, None), source)])
    assert piece.constants.original_topic is None
