"""One thread steps the machine; lanes keep order within a key and never let one key hold up another."""

from __future__ import annotations

import threading
import time

import pytest

from wherry.coordinator import effects as fx
from wherry.coordinator import events as ev
from wherry.coordinator.machine import Machine
from wherry.coordinator.runner import Lanes, Runner

SPEC = ev.ConnectorSpec("c", ev.Kind.SOURCE, {})


def test_a_lane_keeps_its_order() -> None:
    lanes, seen, done = Lanes(), [], threading.Event()
    for number in range(100):
        lanes.submit("a", lambda number=number: seen.append(number))  # type: ignore[misc]
    lanes.submit("a", done.set)
    assert done.wait(60)
    assert seen == list(range(100))
    lanes.close(1)


def test_a_lane_that_hangs_holds_up_no_other() -> None:
    lanes, hang, done = Lanes(), threading.Event(), threading.Event()
    lanes.submit("slow", lambda: hang.wait(120) and None)
    lanes.submit("quick", done.set)
    assert done.wait(60)
    hang.set()
    lanes.close(1)


def test_a_lane_goes_on_after_something_unforeseen(caplog: pytest.LogCaptureFixture) -> None:
    lanes, done = Lanes(), threading.Event()

    def fail() -> None:
        raise ZeroDivisionError

    lanes.submit("a", fail)
    lanes.submit("a", done.set)
    assert done.wait(60)
    assert "unforeseen" in caplog.text
    lanes.close(1)


def test_closing_waits_for_what_is_under_way() -> None:
    lanes, seen = Lanes(), []
    lanes.submit("a", lambda: time.sleep(0.1))
    lanes.submit("a", lambda: seen.append(1))
    lanes.close(60)
    assert seen == [1]


def test_events_come_out_as_effects() -> None:
    effects: list[fx.Effect] = []
    runner = Runner(Machine(), effects.append)
    runner.start()
    runner.post(ev.ConnectorPut("c", SPEC))
    assert runner.ask(lambda machine: machine.connectors()) == ["c"]
    assert any(isinstance(effect, fx.LoadPlan) for effect in effects)
    runner.stop()


def test_timers_fire_without_an_event() -> None:
    effects: list[fx.Effect] = []
    runner = Runner(Machine(plan_timeout_ms=50), effects.append)
    runner.start()
    runner.post(ev.ConnectorPut("c", SPEC))
    assert runner.wait_until(lambda machine: "did not say within" in machine.shown("c").connector[1], 60)  # type: ignore[union-attr]
    runner.stop()


def test_a_question_to_a_stuck_machine_is_given_up() -> None:
    hang = threading.Event()
    runner = Runner(Machine(), lambda effect: None)
    runner.start()
    runner._queue.put(lambda: hang.wait(120) and None)
    with pytest.raises(TimeoutError):
        runner.ask(lambda machine: machine.idle, 0.1)
    hang.set()
    runner.stop()


def test_a_fault_in_one_effect_does_not_end_the_thread(caplog: pytest.LogCaptureFixture) -> None:
    def fail(effect: fx.Effect) -> None:
        raise ZeroDivisionError

    runner = Runner(Machine(), fail)
    runner.start()
    runner.post(ev.ConnectorPut("c", SPEC))
    assert runner.ask(lambda machine: machine.connectors()) == ["c"]
    assert "could not take in ConnectorPut of c" in caplog.text
    runner.stop()
