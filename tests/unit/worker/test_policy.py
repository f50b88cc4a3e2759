"""The pump's pure decisions."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from wherry.worker.policy import (
    BATCH_ROWS_FIRST,
    BATCH_ROWS_MAX,
    BATCH_ROWS_MIN,
    BatchSize,
    CommitTiming,
    Every,
    Idleness,
    LeasePolicy,
)


def test_a_batch_starts_small_as_long_as_nothing_is_known_of_the_records() -> None:
    assert BatchSize().rows == BATCH_ROWS_FIRST


def test_batches_aim_at_bytes_so_larger_records_make_fewer_rows() -> None:
    size = BatchSize(bytes_target=1_000_000)
    size.saw(100, 100 * 1_000)
    assert size.rows == 1_000


def test_a_batch_shrinks_at_once_and_grows_slowly() -> None:
    size = BatchSize(bytes_target=1_000_000)
    size.saw(10, 10 * 10_000)
    assert size.rows == 100
    size.saw(100, 100 * 100)
    assert 100 < size.rows < 1_000


@given(st.lists(st.tuples(st.integers(0, 10_000), st.integers(0, 1 << 26))))
def test_rows_asked_for_stay_within_their_limits(seen: list[tuple[int, int]]) -> None:
    size = BatchSize()
    for rows, octets in seen:
        size.saw(rows, octets)
        assert BATCH_ROWS_MIN <= size.rows <= BATCH_ROWS_MAX


def test_nothing_is_committed_while_nothing_was_written() -> None:
    assert not CommitTiming(1.0).due(1_000_000.0)


def test_under_load_commits_come_at_the_interval() -> None:
    timing = CommitTiming(10.0)
    for tenth in range(100):
        timing.wrote(tenth / 10)
        assert not timing.due(tenth / 10)
    timing.wrote(10.0)
    assert timing.due(10.0)


def test_when_records_stop_a_commit_follows_within_a_second() -> None:
    timing = CommitTiming(60.0)
    timing.wrote(5.0)
    assert not timing.due(5.1)
    assert timing.due(5.6)


def test_a_trickle_does_not_commit_record_by_record() -> None:
    timing = CommitTiming(60.0)
    timing.wrote(0.0)
    timing.committed(0.6)
    timing.wrote(0.7)
    assert not timing.due(1.3)
    assert timing.due(1.7)


def test_a_short_interval_is_never_stretched_by_idleness() -> None:
    timing = CommitTiming(0.1)
    timing.wrote(0.0)
    assert timing.due(0.1)


def test_after_a_commit_nothing_is_dirty() -> None:
    timing = CommitTiming(1.0)
    timing.wrote(0.0)
    timing.committed(1.0)
    assert not timing.dirty
    assert not timing.due(100.0)


def test_a_report_is_due_at_first_and_then_at_its_interval() -> None:
    every = Every(1.0)
    assert every.due(0.0)
    every.done(0.0)
    assert not every.due(0.9)
    assert every.due(1.0)


def test_rest_that_lasts_long_enough_parks() -> None:
    idleness = Idleness(2.0)
    assert not idleness.rest(10.0)
    assert not idleness.rest(11.9)
    assert idleness.rest(12.0)


def test_a_record_starts_the_rest_anew() -> None:
    idleness = Idleness(2.0)
    idleness.rest(10.0)
    idleness.busy()
    assert not idleness.rest(12.5)


def test_without_a_parking_time_nothing_parks() -> None:
    idleness = Idleness(0.0)
    assert not any(idleness.rest(float(second)) for second in range(1_000))


def test_the_commit_interval_is_the_workers_flush_interval_unless_the_lease_says_otherwise() -> None:
    assert LeasePolicy.of({}).commit_interval_s == 60.0
    assert LeasePolicy.of({"offset.flush.interval.ms": "5000"}).commit_interval_s == 5.0
    assert LeasePolicy.of({"offset.flush.interval.ms": "5000"}, commit_interval_ms=100).commit_interval_s == 0.1
