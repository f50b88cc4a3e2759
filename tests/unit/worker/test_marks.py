"""Marks of the pieces of a batch that was cut."""

from __future__ import annotations

import dataclasses
from typing import Any

import pyarrow as pa

from wherry.contract.batch import Batch, Constants, Mark, mark_only, of_value
from wherry.contract.position import kafka_position
from wherry.worker.marks import with_own_marks


def read(start: int, count: int, *marks: Mark, **constants: Any) -> Batch:
    """Rows of partition 3, as they were read."""
    made = Constants("t", 3, start)
    column = pa.array([b"v"] * count, pa.binary())
    return of_value(column, constants=dataclasses.replace(made, **constants), marks=marks)


def end(rows: int, offset: int, partition: int = 3) -> Mark:
    return Mark(rows, kafka_position("t", partition, offset))


def marks_of(*pieces: Batch) -> list[tuple[Mark, ...]]:
    return [piece.marks for piece, _ in with_own_marks([(piece, piece) for piece in pieces])]


def test_every_piece_of_a_cut_batch_says_how_far_it_goes() -> None:
    pieces = read(10, 2), read(12, 1), read(13, 4, end(4, 17))
    assert marks_of(*pieces) == [(end(2, 12),), (end(1, 13),), (end(4, 17),)]


def test_a_batch_in_one_piece_stays_as_it_is() -> None:
    batch = read(10, 2, end(2, 12))
    assert with_own_marks([(batch, batch)])[0][0] is batch


def test_rows_that_are_offered_again_without_marks_move_nothing() -> None:
    assert marks_of(read(10, 2), read(12, 1)) == [(), ()]


def test_rows_that_were_not_read_from_kafka_get_no_marks() -> None:
    pieces = read(0, 2, first_offset=None), read(0, 2, end(2, 17), first_offset=None)
    assert marks_of(*pieces) == [(), (end(2, 17),)]


def test_marks_tell_where_rows_were_read_whatever_topic_they_go_by() -> None:
    raw = read(10, 2), read(12, 2, end(2, 14))
    routed = [piece.with_constants(Constants("other", 3, None)) for piece in raw]
    marked = with_own_marks(list(zip(routed, raw, strict=True)))
    assert [piece.marks for piece, _ in marked] == [(end(2, 12),), (end(2, 14),)]
    assert marked[0][0].constants.topic == "other"


def test_a_record_is_done_only_with_the_last_of_the_rows_made_of_it() -> None:
    pieces = read(10, 2), read(11, 2, end(2, 13))
    assert marks_of(*pieces) == [(end(2, 11),), (end(2, 13),)]


def test_each_partition_of_a_mixed_piece_has_its_own_mark() -> None:
    columns = {"partition": pa.array([1, 2, 1], pa.int32()), "offset": pa.array([5, 70, 6])}
    mixed = of_value(pa.array([b"v"] * 3, pa.binary()), constants=Constants("t"), **columns)
    last = read(8, 1, end(1, 9))
    assert marks_of(mixed, last)[0] == (end(2, 71, partition=2), end(3, 7, partition=1))


def test_a_mark_that_is_there_already_is_not_repeated() -> None:
    assert marks_of(read(10, 2, end(2, 99)), read(12, 1, end(1, 100)))[0] == (end(2, 99),)


def test_pieces_without_rows_are_passed_over() -> None:
    nothing = mark_only(kafka_position("t", 3, 20))
    assert marks_of(read(10, 2), nothing, read(12, 1, end(1, 13)))[0] == (end(2, 12),)
