"""When a lease tries again by itself, and when it gives up."""

from __future__ import annotations

from wherry.worker.recovery import FAULT_PAUSES_S, FAULT_WINDOW_S, Recovery


def test_a_first_fault_is_made_good_at_once() -> None:
    assert Recovery().pause_s(100.0) == 0.0


def test_faults_in_a_row_wait_longer_and_longer_and_are_given_up() -> None:
    recovery = Recovery()
    pauses = [recovery.pause_s(100.0) for _ in FAULT_PAUSES_S]
    assert pauses == list(FAULT_PAUSES_S)
    assert recovery.pause_s(100.0) is None


def test_faults_are_forgotten_after_the_window() -> None:
    recovery = Recovery()
    for _ in FAULT_PAUSES_S:
        recovery.pause_s(100.0)
    assert recovery.pause_s(100.0 + FAULT_WINDOW_S + 1) == 0.0


def test_a_fault_a_minute_is_borne_for_ever() -> None:
    recovery = Recovery()
    assert {recovery.pause_s(minute * (FAULT_WINDOW_S + 1)) for minute in range(1000)} == {0.0}


def test_a_longer_wait_that_is_asked_for_wins() -> None:
    assert Recovery().pause_s(100.0, retry_after_s=7.0) == 7.0
