"""What is remembered of failures and restarts."""

from __future__ import annotations

from wherry.contract.errors import ErrorClass
from wherry.contract.plan import Plan, Work
from wherry.coordinator import effects as fx
from wherry.coordinator import events as ev
from wherry.coordinator.api import RestartNote, TargetState
from wherry.coordinator.history import MESSAGE_CHARACTERS_MAX, NOTES_MAX, RestartHistory
from wherry.coordinator.machine import Machine
from wherry.coordinator.task import Task, TaskState

POLICY = ev.RestartPolicy(enabled=True, restarts_max=1, base_ms=1_000, delay_ms_max=9_000)
BROKE = ev.Failure(ErrorClass.TRANSIENT, "it broke")


def machine() -> Machine:
    made = Machine()
    spec = ev.ConnectorSpec("c", ev.Kind.SOURCE, {"name": "c"}, restart=POLICY)
    made.step(ev.EngineUp(), 0)
    made.step(ev.ConnectorPut("c", spec, TargetState.STARTED), 0)
    return made


def told(made: Machine) -> list[tuple[int, int | None, str, int, int | None]]:
    book = made.book("c")
    assert book is not None
    return [(n.at_ms, n.task, n.happening, n.attempt, n.wait_ms) for n in book.handout.history.told(0)]


def plan_failed(made: Machine, now_ms: int) -> None:
    book = made.book("c")
    assert book is not None
    made.step(ev.PlanFailed("c", book.plan_id, BROKE), now_ms)


def test_a_connector_that_failed_waited_failed_again_and_was_restarted_tells_all_of_it() -> None:
    made = machine()
    plan_failed(made, 100)
    made.step(ev.Tick(), 1_100)
    plan_failed(made, 1_200)
    made.step(ev.ConnectorRestarted("c"), 5_000)
    assert told(made) == [
        (100, None, "failed", 1, 1_000),
        (1_200, None, "given up", 1, None),
        (5_000, None, "asked", 0, 0),
    ]


def test_a_lost_lease_is_told_of_its_task() -> None:
    made = machine()
    book = made.book("c")
    assert book is not None
    plan = Plan(tasks=(Work("t"),))
    effects = made.step(ev.Planned("c", book.plan_id, ev.SourcePlan(plan)), 10)
    (start,) = [effect for effect in effects if isinstance(effect, fx.StartLeases)]
    made.step(ev.LeaseLost("c", start.leases[0].lease, "the worker died"), 20)
    assert told(made) == [(20, 0, "failed", 1, 0)]


def test_a_task_asked_to_restart_is_told_as_asked() -> None:
    made = machine()
    made.step(ev.TaskRestarted("c", 3), 7)
    assert told(made) == [(7, 3, "asked", 0, 0)]


def test_times_are_told_since_the_epoch_and_messages_cut() -> None:
    history = RestartHistory()
    failure = ev.Failure(ErrorClass.CONFIG, "x" * 10_000)
    history.failed(1, Task(1, TaskState.FAILED, restarts=2), failure, 30)
    message = "x" * MESSAGE_CHARACTERS_MAX
    assert list(history.told(1_000)) == [RestartNote(1_030, 1, "given up", "CONFIG", message, 2, None)]


def test_only_the_last_of_many_are_kept() -> None:
    history = RestartHistory()
    for number in range(NOTES_MAX + 7):
        history.asked(number, number)
    assert [note.task for note in history.told(0)] == list(range(7, NOTES_MAX + 7))
