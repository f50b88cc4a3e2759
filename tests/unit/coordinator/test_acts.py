"""Whatever people do to a connector, one act or two in a row and in whatever state, it ends as they asked for.

Each life is played against a world that always answers; between the acts of a pair it answers nothing, so that the
second meets the first half done.
"""

from __future__ import annotations

import itertools
import random
from collections import deque
from collections.abc import Iterable
from dataclasses import replace

import pytest

from wherry.contract.errors import ErrorClass
from wherry.contract.plan import Plan, Work
from wherry.coordinator import effects as fx
from wherry.coordinator import events as ev
from wherry.coordinator.api import State, TargetState
from wherry.coordinator.machine import Machine

NAME = "log"
TASKS = 2
CALM_MS = 3_600_000
STEPS_MAX = 2_000
ROWS = 100
SPEC = ev.ConnectorSpec(NAME, ev.Kind.SOURCE, {}, TASKS, restart=ev.RestartPolicy(restarts_max=3))
BROKEN = ev.Failure(ErrorClass.CONFIG, "it cannot be so")
PLAN = ev.SourcePlan(Plan(tuple(Work(str(number)) for number in range(TASKS))))

ACTS: dict[str, ev.ConnectorEvent] = {
    "put the same": ev.ConnectorPut(NAME, SPEC),
    "put another": ev.ConnectorPut(NAME, replace(SPEC, config={"v": "2"})),
    "pause": ev.TargetSet(NAME, TargetState.PAUSED),
    "resume": ev.TargetSet(NAME, TargetState.STARTED),
    "stop": ev.TargetSet(NAME, TargetState.STOPPED),
    "restart": ev.ConnectorRestarted(NAME),
    "restart all": ev.ConnectorRestarted(NAME, include_tasks=True),
    "restart failed": ev.ConnectorRestarted(NAME, include_tasks=True, only_failed=True),
    "restart task": ev.TaskRestarted(NAME, 0),
    "delete": ev.ConnectorDeleted(NAME),
}
CURES = {"put the same", "put another", "restart", "restart all", "restart failed"}
"""Acts after which a failed connector is planned anew."""
TASK_CURES = {"put the same", "put another", "restart all", "restart failed", "restart task"}


class Life:
    """A machine with one connector, and a world that answers when it is let."""

    def __init__(self) -> None:
        self.machine = Machine()
        self.now_ms = 0
        self.owed: deque[ev.Event] = deque()
        self.broken_plan = self.broken_task = False
        self.requests = itertools.count(1)
        self.do(ev.EngineUp())

    def do(self, event: ev.Event) -> None:
        for effect in self.machine.step(event, self.now_ms):
            self.owed += self.answers(effect)
        live = [lease.task for lease in self.machine.leases()]
        assert len(live) == len(set(live)), "two live leases for one task"

    def answers(self, effect: fx.Effect) -> list[ev.Event]:
        match effect:
            case fx.LoadPlan() if self.broken_plan:
                return [ev.PlanFailed(NAME, effect.plan_id, BROKEN)]
            case fx.LoadPlan():
                return [ev.Planned(NAME, effect.plan_id, PLAN)]
            case fx.StartLeases():
                return [
                    ev.LeaseOpening(NAME, each.lease, effect.generation, 0, next(self.requests), "w")
                    for each in effect.leases
                ]
            case fx.GrantLease() if self.broken_task and effect.task == 0:
                return [ev.LeaseEnded(NAME, effect.lease, effect.attempt, ev.EndReason.FAILED, BROKEN)]
            case fx.DrainLease():
                return [ev.LeaseEnded(NAME, effect.lease, -1, ev.EndReason.DRAINED)]
            case _:
                return []

    def settle(self) -> None:
        """Answer everything, and let time pass, with leases reporting so that none is lost."""
        until_ms = self.now_ms + CALM_MS
        for _ in range(STEPS_MAX):
            if self.owed:
                self.do(self.owed.popleft())
                continue
            due_ms = self.machine.due_ms()
            leases = list(self.machine.leases())
            if due_ms is None or due_ms > until_ms or (leases and self.quiet()):
                return
            self.now_ms = max(self.now_ms, due_ms)
            self.do(ev.Tick())
        raise AssertionError("it never comes to rest")

    def quiet(self) -> bool:
        """Whether all that runs has been granted and nothing waits for another try."""
        shown = self.machine.shown(NAME)
        waiting = (State.RESTARTING, State.UNASSIGNED)
        return shown is not None and not {shown.connector[0], *(task[0] for task in shown.tasks.values())} & {*waiting}

    def shown(self) -> tuple[str, list[str]]:
        found = self.machine.shown(NAME)
        if found is None:
            return "gone", []
        return found.connector[0].value, [state.value for state, _ in found.tasks.values()]


def planning() -> Life:
    life = Life()
    life.do(ACTS["put the same"])
    return life


def running() -> Life:
    life = planning()
    life.settle()
    assert life.shown() == ("RUNNING", ["RUNNING"] * TASKS)
    return life


def launched() -> Life:
    life = planning()
    life.do(life.owed.popleft())
    assert life.shown() == ("RUNNING", ["UNASSIGNED"] * TASKS)
    return life


def failed() -> Life:
    life = planning()
    life.broken_plan = True
    life.owed = deque([ev.PlanFailed(NAME, 1, BROKEN)])
    life.settle()
    assert life.shown() == ("FAILED", [])
    life.broken_plan = False
    return life


def backing_off() -> Life:
    life = planning()
    life.owed.clear()
    life.do(ev.PlanFailed(NAME, 1, ev.Failure(ErrorClass.TRANSIENT, "away")))
    assert life.shown() == ("RESTARTING", [])
    return life


def task_failed() -> Life:
    life = planning()
    life.broken_task = True
    life.settle()
    assert life.shown() == ("RUNNING", ["FAILED", "RUNNING"])
    life.broken_task = False
    return life


def after(act: str, *, settled: bool) -> Life:
    life = running()
    life.do(ACTS[act])
    if settled:
        life.settle()
    return life


STATES = {
    "planning": planning,
    "launched": launched,
    "running": running,
    "failed": failed,
    "backing off": backing_off,
    "task failed": task_failed,
    "reconfiguring": lambda: after("put another", settled=False),
    "pausing": lambda: after("pause", settled=False),
    "paused": lambda: after("pause", settled=True),
    "stopping": lambda: after("stop", settled=False),
    "stopped": lambda: after("stop", settled=True),
    "deleting": lambda: after("delete", settled=False),
}


def expected(state: str, acts: tuple[str, ...]) -> tuple[str, set[str]]:
    """How it has to end: the connector's state, and what its tasks may show."""
    target = {"paus": "PAUSED", "stop": "STOPPED"}.get(state[:4], "RUNNING")
    there, connector_ill, task_ill = state != "deleting", state == "failed", state == "task failed"
    for act in acts:
        if act == "delete":
            there = False
        elif act.startswith("put") and not there:
            there, target, connector_ill, task_ill = True, "RUNNING", False, False
        elif there and act in ("pause", "resume", "stop"):
            before, target = target, {"pause": "PAUSED", "resume": "RUNNING", "stop": "STOPPED"}[act]
            connector_ill = connector_ill and target == before
            task_ill = task_ill and act != "stop"
        if there and act in CURES and target == "RUNNING":
            connector_ill = False
        if there and (act in TASK_CURES and (target == "RUNNING" or act == "put another")):
            task_ill = False
    if not there:
        return "gone", set()
    if connector_ill:
        return "FAILED", set()
    return target, {"FAILED", target} if task_ill else {target}


def wrongs(state: str, sequences: Iterable[tuple[str, ...]]) -> list[str]:
    wrong = []
    for acts in sequences:
        life = STATES[state]()
        for act in acts:
            life.do(ACTS[act])
        life.settle()
        connector, tasks = life.shown()
        wanted, may = expected(state, acts)
        count = {"RUNNING": TASKS, "STOPPED": 0, "gone": 0}.get(wanted, len(tasks))
        if connector != wanted or not set(tasks) <= may or len(tasks) != count:
            wrong.append(f"{state}: {', '.join(acts)} → {connector} {tasks}, not {wanted} {sorted(may)}")
    return wrong


@pytest.mark.parametrize("state", STATES)
def test_every_act_and_every_pair_of_acts_leads_where_it_should(state: str) -> None:
    sequences = [*itertools.product(ACTS), *itertools.product(ACTS, ACTS)]
    wrong = wrongs(state, sequences)
    assert not wrong, f"{len(wrong)} of {len(sequences)}:\n" + "\n".join(wrong[:20])


@pytest.mark.parametrize("state", STATES)
def test_longer_rows_of_acts_lead_where_they_should(state: str) -> None:
    """Drawn with a seed of the state's own; a failure prints the row."""
    draw = random.Random(state)
    rows = [tuple(draw.choices(list(ACTS), k=draw.randrange(3, 7))) for _ in range(ROWS)]
    wrong = wrongs(state, rows)
    assert not wrong, f"{len(wrong)} of {len(rows)}:\n" + "\n".join(wrong[:20])


def test_a_failed_task_is_tried_with_the_configuration_given_during_a_pause() -> None:
    assert wrongs("task failed", [("pause", "put another", "resume")]) == []
