"""The lease's machine: every edge of the table, no other; who may speak for it, and how long silence is borne."""

from __future__ import annotations

import itertools
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from wherry.coordinator.effects import CancelLease, DrainLease, FenceLease
from wherry.coordinator.lease import TRANSITIONS, Lease, LeaseInput, LeasePhase, LeaseTimes, accepts, launch, step

TIMES = LeaseTimes()
ABSENT = sorted(set(itertools.product(LeasePhase, LeaseInput)) - TRANSITIONS.keys(), key=str)


def launched() -> Lease:
    return launch(lease_id="l", connector="c", generation=1, task=0, split=None, now_ms=0, times=TIMES)


def opened(attempt: int = 0) -> Lease:
    stepped = step(launched(), LeaseInput.OPENED, 100, TIMES, attempt=attempt)
    assert stepped is not None
    return stepped[0]


@pytest.mark.parametrize(("edge", "target"), TRANSITIONS.items(), ids=str)
def test_every_edge_of_the_table_is_taken(edge: tuple[LeasePhase, LeaseInput], target: LeasePhase) -> None:
    stepped = step(replace(launched(), phase=edge[0]), edge[1], 0, TIMES, attempt=0)
    assert stepped is not None
    assert stepped[0].phase is target


@pytest.mark.parametrize("edge", ABSENT, ids=str)
def test_whatever_is_not_in_the_table_is_refused(edge: tuple[LeasePhase, LeaseInput]) -> None:
    assert step(replace(launched(), phase=edge[0]), edge[1], 0, TIMES, attempt=0) is None


def test_a_higher_attempt_takes_over_and_the_lower_one_is_fenced() -> None:
    stepped = step(opened(), LeaseInput.OPENED, 200, TIMES, attempt=1)
    assert stepped is not None
    lease, effects = stepped
    assert effects == (FenceLease("c", "l", 1, below_attempt=1),)
    assert accepts(lease, 1)
    assert not accepts(lease, 0)


def test_a_lower_attempt_is_refused() -> None:
    assert step(opened(attempt=2), LeaseInput.OPENED, 200, TIMES, attempt=1) is None


def test_the_same_attempt_may_ask_again() -> None:
    stepped = step(opened(), LeaseInput.OPENED, 200, TIMES, attempt=0)
    assert stepped is not None
    assert stepped[1] == ()


def test_a_report_gives_more_time() -> None:
    stepped = step(opened(), LeaseInput.REPORTED, 5_000, TIMES)
    assert stepped is not None
    assert stepped[0].deadline_ms == 5_000 + TIMES.silence_ms


def test_a_report_while_draining_gives_none() -> None:
    draining = step(opened(), LeaseInput.DRAIN_ASKED, 1_000, TIMES)
    assert draining is not None
    assert draining[1] == (DrainLease("c", "l", TIMES.drain_ms),)
    reported = step(draining[0], LeaseInput.REPORTED, 4_000, TIMES)
    assert reported is not None
    assert reported[0].deadline_ms == draining[0].deadline_ms


def test_a_lease_that_nobody_opened_ends_at_once_when_drained() -> None:
    stepped = step(launched(), LeaseInput.DRAIN_ASKED, 0, TIMES)
    assert stepped is not None
    assert (stepped[0].live, stepped[1]) == (False, ())


def test_a_silent_lease_is_fenced_and_its_process_ended() -> None:
    stepped = step(opened(), LeaseInput.TIMED_OUT, 20_000, TIMES)
    assert stepped is not None
    assert stepped[1] == (FenceLease("c", "l", 1), CancelLease("c", "l"))


@given(st.lists(st.tuples(st.sampled_from(list(LeaseInput)), st.integers(0, 3)), max_size=60))
def test_attempts_never_go_down_and_the_end_is_final(inputs: list[tuple[LeaseInput, int]]) -> None:
    lease = launched()
    for given_input, attempt in inputs:
        stepped = step(lease, given_input, 0, TIMES, attempt=attempt)
        if stepped is None:
            continue
        assert lease.live, "nothing happens to a lease that has ended"
        assert stepped[0].attempt >= lease.attempt
        lease = stepped[0]
