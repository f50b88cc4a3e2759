"""The JVM collects when a burst is over, and not while it lasts."""

from __future__ import annotations

from wherry.coordinator.heap import JOBS_MIN, QUIET_S, ROUND_PAUSE_S, ROUNDS, HeapRest


def times_due(rest: HeapRest, jobs: int, until_s: float, *, from_s: float = 0.0, step_s: float = 0.5) -> list[float]:
    steps = int((until_s - from_s) / step_s)
    return [now_s for now_s in (from_s + step_s * step for step in range(steps)) if rest.due(jobs, now_s)]


def test_after_a_burst_it_collects_as_often_as_is_worth_it_and_then_no_more() -> None:
    due = times_due(HeapRest(), JOBS_MIN, 600.0)
    assert due == [QUIET_S + ROUND_PAUSE_S * number for number in range(ROUNDS)]


def test_a_burst_is_not_interrupted() -> None:
    rest = HeapRest()
    assert not any(rest.due(JOBS_MIN + number, 0.5 * QUIET_S * number) for number in range(100))


def test_for_a_few_jobs_it_never_collects() -> None:
    assert times_due(HeapRest(), JOBS_MIN - 1, 600.0) == []


def test_jobs_one_by_one_add_up() -> None:
    rest, due = HeapRest(), 0
    for number in range(1, JOBS_MIN + 1):
        due += len(times_due(rest, number, 100.0 * number, from_s=100.0 * (number - 1)))
    assert due == ROUNDS


def test_a_second_burst_is_collected_too() -> None:
    rest = HeapRest()
    assert len(times_due(rest, JOBS_MIN, 100.0)) == ROUNDS
    assert times_due(rest, JOBS_MIN, 200.0, from_s=100.0) == []
    assert len(times_due(rest, 2 * JOBS_MIN, 300.0, from_s=200.0)) == ROUNDS
