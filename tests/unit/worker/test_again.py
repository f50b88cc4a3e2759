"""Rows that are offered once more, and what has to follow them."""

from __future__ import annotations

import pyarrow as pa

from wherry.contract.batch import Batch, Constants, RowError, of_value
from wherry.contract.errors import ErrorClass
from wherry.worker.again import OFFERED_AGAIN_MAX, Again
from wherry.worker.endpoints import FailedRow


def read(start: int, count: int, partition: int = 0) -> Batch:
    values = pa.array([f"{partition}/{number}".encode() for number in range(start, start + count)], pa.binary())
    return of_value(values, constants=Constants("t", partition, start))


def failed(raw: Batch | None, row: int, *after: Batch, error_class: ErrorClass = ErrorClass.TRANSIENT) -> FailedRow:
    return FailedRow(raw, row, RowError(row, error_class, "BUSY"), after)


def taken(again: Again) -> list[str]:
    return [value.decode() for batch in again.take() for value in batch.value.to_pylist()]


def test_a_row_comes_with_what_followed_it_in_its_partition() -> None:
    again, first, second, third = Again(), read(0, 3), read(0, 2, partition=1), read(3, 2)
    assert again.sort([failed(first, 1, second, third)]) == []
    assert len(again) == 1
    assert taken(again) == ["0/1", "0/2", "0/3", "0/4"]
    assert not again


def test_rows_of_several_partitions_in_one_batch_follow_their_own() -> None:
    columns = {"partition": pa.array([0, 1, 0, 1, 0], pa.int32()), "offset": pa.array([5, 9, 6, 10, 7])}
    mixed = of_value(pa.array([b"a", b"b", b"c", b"d", b"e"]), constants=Constants("t"), **columns)
    again = Again()
    again.sort([failed(mixed, 3, read(11, 1, partition=1), read(8, 1))])
    assert taken(again) == ["d", "1/11"]


def test_rows_refused_for_good_are_not_offered_again() -> None:
    again, batch = Again(), read(0, 4)
    refused = failed(batch, 2, error_class=ErrorClass.SCHEMA)
    assert again.sort([failed(batch, 1), refused]) == [refused]
    assert taken(again) == ["0/1", "0/3"]


def test_two_rows_of_a_partition_bring_the_rest_once() -> None:
    again, first, second = Again(), read(0, 3), read(3, 2)
    again.sort([failed(first, 1, second), failed(second, 0)])
    assert taken(again) == ["0/1", "0/2", "0/3", "0/4"]


def test_a_row_that_fails_again_is_given_up_until_all_is_settled() -> None:
    again, batch = Again(), read(0, 2)
    again.sort([failed(batch, 0)])
    assert taken(again) == ["0/0", "0/1"]
    second = failed(read(0, 2), 0)
    assert again.sort([second]) == [second]
    assert not again
    again.settled()
    assert again.sort([second]) == []


def test_a_row_that_was_only_repeated_may_fail_for_now_once_as_well() -> None:
    again = Again()
    again.sort([failed(read(0, 2), 0)])
    again.take()
    assert again.sort([failed(read(0, 2), 1)]) == []
    assert taken(again) == ["0/1"]


def test_rows_that_do_not_tell_where_they_stood_have_one_more_try_together() -> None:
    values = of_value(pa.array([b"a", b"b", b"c"]))
    again = Again()
    assert again.sort([failed(values, 1)]) == []
    assert taken(again) == ["b", "c"]
    assert len(again.sort([failed(values, 0)])) == 1


def test_rows_made_of_one_record_become_rows_again_together() -> None:
    columns = {"partition": pa.array([0, 0, 0], pa.int32()), "offset": pa.array([5, 5, 6])}
    exploded = of_value(pa.array([b"a", b"a", b"b"]), constants=Constants("t"), **columns)
    again = Again()
    again.sort([failed(exploded, 0)])
    assert taken(again) == ["a", "b"]


def test_a_row_of_which_nothing_is_kept_is_given_up() -> None:
    lost = failed(None, 0)
    assert Again().sort([lost]) == [lost]


def test_only_so_many_rows_wait() -> None:
    again, batch = Again(), read(0, OFFERED_AGAIN_MAX + 5)
    rest = again.sort([failed(batch, row) for row in range(OFFERED_AGAIN_MAX + 5)])
    assert len(rest) == 5


def test_failing_for_now_round_after_round_is_exhausting() -> None:
    again, batch = Again(), read(0, 50)
    rounds = 0
    while not again.exhausted:
        assert again.sort([failed(batch, rounds)]) == []
        again.take()
        rounds += 1
    assert rounds == 10
