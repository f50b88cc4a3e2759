"""The pump's pure decisions."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
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
    RetryPolicy,
    StopThreshold,
)

RETRIES = json.loads((Path(__file__).parents[2] / "cases" / "errors_retry.json").read_text())["cases"]


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


@pytest.mark.parametrize("case", RETRIES, ids=lambda case: case["why"])
def test_waits_between_attempts_are_kafka_connects(case: dict[str, Any]) -> None:
    policy = RetryPolicy(case["timeout"] / 1000, case["max"] / 1000)
    begun = 12.0
    found = policy.delay_s(case["attempt"], begun, begun + case["elapsed"] / 1000, lambda: case["chance"])
    assert found == (None if case["wait"] is None else pytest.approx(case["wait"] / 1000))


def test_a_threshold_of_nothing_never_stops() -> None:
    threshold = StopThreshold()
    threshold.saw(10)
    assert not any(threshold.failed(row) for row in range(10))


def test_so_many_failures_close_together_are_too_many() -> None:
    threshold = StopThreshold(failures=3, records=10)
    threshold.saw(100)
    assert [threshold.failed(row) for row in (10, 11, 19)] == [False, False, True]


def test_as_many_failures_further_apart_are_not() -> None:
    threshold = StopThreshold(failures=3, records=10)
    threshold.saw(100)
    assert [threshold.failed(row) for row in (10, 11, 20, 29)] == [False, False, False, False]


def test_failures_are_counted_across_batches() -> None:
    threshold = StopThreshold(failures=2, records=10)
    threshold.saw(5)
    assert not threshold.failed(4)
    threshold.saw(5)
    assert threshold.failed(0)
    threshold.saw(100)
    assert not threshold.failed(50)


@given(st.lists(st.booleans(), max_size=200), st.integers(1, 5), st.integers(1, 20))
def test_a_threshold_trips_exactly_when_a_window_holds_too_many(bad: list[bool], failures: int, records: int) -> None:
    threshold = StopThreshold(failures, records)
    for index, failed in enumerate(bad):
        threshold.saw(1)
        if failed:
            window = bad[max(0, index - records + 1) : index + 1]
            assert threshold.failed(0) == (sum(window) >= failures)
