"""The inbox of a running lease."""

from __future__ import annotations

import threading
import time

import pytest

from wherry.contract.plan import Work
from wherry.worker.signals import ASSIGNMENTS_MAX, Assignment, Signals


def test_the_soonest_drain_holds() -> None:
    signals = Signals()
    assert signals.drain_seconds is None
    signals.drain(5.0)
    signals.drain(9.0)
    assert signals.drain_seconds == 5.0
    signals.drain(1.0)
    assert signals.drain_seconds == 1.0


def test_assignments_come_in_order_and_once() -> None:
    signals = Signals()
    for name in "ab":
        signals.assign(Assignment(Work(name)))
    signals.assign(Assignment(None))
    taken = [signals.take_assignment() for _ in range(4)]
    assert [None if one is None or one.work is None else one.work.id for one in taken] == ["a", "b", None, None]
    assert taken[2] is not None
    assert taken[3] is None


def test_more_assignments_than_were_asked_for_are_refused() -> None:
    signals = Signals()
    for _ in range(ASSIGNMENTS_MAX):
        signals.assign(Assignment(None))
    with pytest.raises(ValueError, match="without being asked for"):
        signals.assign(Assignment(None))


def test_a_signal_wakes_the_waiter() -> None:
    signals = Signals()
    threading.Timer(0.05, lambda: signals.pause(True)).start()
    begun = time.monotonic()
    signals.wait(120.0)
    assert time.monotonic() - begun < 60.0
    assert signals.paused
