"""Runs the scenario files of this folder against the machine: a command, then everything it wants done.

A file is a sequence of blocks: a command line (`#` begins a remark), `----`, and the effects, one a line. Blank lines
part the blocks. `WHERRY_REWRITE=1 pytest tests/scenarios` writes what happens now into the files; only someone who can
explain every line of the diff commits it. Commands are the methods of `Stage`.
"""

from __future__ import annotations

import os
import shlex
from collections.abc import Iterator
from pathlib import Path

import pytest

from wherry.contract.errors import ErrorClass
from wherry.contract.plan import Plan, Work
from wherry.contract.position import Position
from wherry.coordinator import effects as fx
from wherry.coordinator import events as ev
from wherry.coordinator.api import TargetState
from wherry.coordinator.lease import Lease, LeaseTimes
from wherry.coordinator.machine import Machine

HERE = Path(__file__).parent
REWRITE = "WHERRY_REWRITE"


class Stage:
    """A machine and the time; each public method is a command of the files."""

    def __init__(self) -> None:
        self.now_ms = 0
        self.machine = Machine(generation=0, times=LeaseTimes())
        self.specs: dict[str, ev.ConnectorSpec] = {}
        self.plans: dict[str, int] = {}
        self.requests = 0

    def run(self, line: str) -> list[str]:
        verb, *words = shlex.split(line, comments=True)
        options = dict(word.split("=", 1) for word in words if "=" in word)
        event = getattr(self, verb.replace("-", "_"))(*[word for word in words if "=" not in word], **options)
        effects = self.machine.step(event, self.now_ms)
        for effect in effects:
            if isinstance(effect, fx.LoadPlan):
                self.plans[effect.connector] = effect.plan_id
        return [text for effect in effects for text in [told(effect)]] or ["(nothing)"]

    # ---- time and surroundings

    def at(self, seconds: str) -> ev.Event:
        self.now_ms = int(float(seconds) * 1000)
        return ev.Tick()

    def spark(self, state: str, message: str = "", *more: str) -> ev.Event:
        if state == "up":
            return ev.EngineUp()
        return ev.EngineDown(ev.Failure(ErrorClass.TRANSIENT, message), permanent="for-good" in more)

    def executors(self, *told: str) -> ev.Event:
        pairs = (each.partition(":") for each in told)
        return ev.ExecutorsSeen(tuple(ev.Executor(executor, int(slots or 16)) for executor, _, slots in pairs))

    def given(self, *, starts: str = "64", silence_s: str = "10") -> ev.Event:
        times = LeaseTimes(silence_ms=int(silence_s) * 1000)
        self.machine = Machine(generation=0, times=times, starts_max=int(starts))
        return ev.Tick()

    def lead(self, generation: str) -> ev.Event:
        return ev.LeadershipGiven(int(generation))

    def depose(self) -> ev.Event:
        return ev.LeadershipLost()

    def shutdown(self) -> ev.Event:
        return ev.ShutdownAsked()

    # ---- people

    def put(
        self, name: str, kind: str, *flags: str, tasks: str = "1", target: str = "STARTED", **config: str
    ) -> ev.Event:
        policy = ev.RestartPolicy(enabled="no-restart" not in flags, restarts_max=3)
        spec = ev.ConnectorSpec(
            name, ev.Kind(kind), config, int(tasks), "splits" in flags, policy, "exactly-once" in flags,
            "too-many" not in flags,
        )  # fmt: skip
        return ev.ConnectorPut(name, spec, TargetState(target), "restored" in flags)

    def delete(self, name: str) -> ev.Event:
        return ev.ConnectorDeleted(name)

    def pause(self, name: str) -> ev.Event:
        return ev.TargetSet(name, TargetState.PAUSED)

    def resume(self, name: str) -> ev.Event:
        return ev.TargetSet(name, TargetState.STARTED)

    def stop(self, name: str) -> ev.Event:
        return ev.TargetSet(name, TargetState.STOPPED)

    def restart(self, name: str, *flags: str) -> ev.Event:
        return ev.ConnectorRestarted(name, "tasks" in flags, "failed" in flags)

    def restart_task(self, name: str, task: str) -> ev.Event:
        return ev.TaskRestarted(name, int(task))

    # ---- plans

    def plan(
        self, name: str, *flags: str, tasks: str = "", splits: str = "", replan: str = "0", **positions: str
    ) -> ev.Event:
        works = tuple(Work(str(n), text.encode()) for n, text in enumerate(filter(None, tasks.split(","))))
        pieces = tuple(
            Work(split, order_group=group) for split, _, group in (s.partition(":") for s in splits.split(",") if s)
        )
        plan = Plan(
            works,
            pieces,
            int(replan),
            retired=tuple(Position(p, None) for p in positions.get("retired", "").split(",") if p),
            reached=tuple(Position(p, "{}") for p in positions.get("reached", "").split(",") if p),
            complete="complete" in flags,
        )
        return ev.Planned(name, self.plans[name], ev.SourcePlan(plan))

    def partitions(self, name: str, *partitions: str, caught_up: str = "") -> ev.Event:
        plan = ev.SinkPlan(partitions, caught_up=frozenset(caught_up.split(",")))
        return ev.Planned(name, self.plans[name], plan)

    def plan_fails(self, name: str, error_class: str, message: str) -> ev.Event:
        return ev.PlanFailed(name, self.plans[name], ev.Failure(ErrorClass[error_class], message))

    def plan_changes(self, name: str) -> ev.Event:
        return ev.PlanChanged(name)

    # ---- leases

    def open(
        self, name: str, task: str, *, attempt: str = "0", lease: str = "", generation: str = "", on: str = ""
    ) -> ev.Event:
        self.requests += 1
        found = self._lease(name, task)
        held = found.generation if found else 0
        return ev.LeaseOpening(
            name, lease or found.id, int(generation or held), int(attempt), self.requests, f"worker-{task}", on
        )

    def report(self, name: str, task: str, *flags: str, attempt: str = "", lease: str = "", **fields: str) -> ev.Event:
        found = self._lease(name, task)
        return ev.LeaseReported(
            name,
            lease or found.id,
            int(attempt or found.attempt),
            int(fields.get("seq", "1")),
            tuple(Position(p, "{}") for p in fields.get("positions", "").split(",") if p),
            splits_done=tuple(s for s in fields.get("done", "").split(",") if s),
            want_split="want" in flags,
            started="starting" not in flags,
        )

    def end(self, name: str, task: str, reason: str, error_class: str = "", message: str = "") -> ev.Event:
        failure = ev.Failure(ErrorClass[error_class], message) if error_class else None
        found = self._lease(name, task)
        return ev.LeaseEnded(name, found.id, found.attempt, ev.EndReason[reason], failure)

    def lose(self, name: str, task: str, message: str = "The worker was killed.") -> ev.Event:
        return ev.LeaseLost(name, self._lease(name, task).id, message)

    def commit_fails(self, name: str, task: str, message: str) -> ev.Event:
        return ev.CommitFailed(name, self._lease(name, task).id, ev.Failure(ErrorClass.TRANSIENT, message))

    def wake(self, name: str, task: str) -> ev.Event:
        return ev.Woken(name, int(task))

    def _lease(self, name: str, task: str) -> Lease:
        book = self.machine.book(name)
        leases = [] if book is None else list(book.handout.leases.values())
        return next((lease for lease in leases if lease.task == int(task)), None)  # type: ignore[return-value]


def told(effect: fx.Effect) -> str:
    """An effect in one line, without what never changes."""
    name = type(effect).__name__
    match effect:
        case fx.LoadPlan():
            active = f" without {','.join(effect.splits_active)}" if effect.splits_active else ""
            flags = f"{' first' if effect.first else ''}{' restored' if effect.restored else ''}"
            return f"{name} {effect.connector} generation={effect.generation}{active}{flags}"
        case fx.StartLeases():
            starts = (f"{each.lease}{f'@{each.executor}' if each.executor else ''}" for each in effect.leases)
            return f"{name} {' '.join(starts)}"
        case fx.GrantLease():
            hurry = " while others wait" if effect.others_wait else ""
            return f"{name} {effect.lease} attempt={effect.attempt} {work_told(effect.work)}{hurry}"
        case fx.RefuseLease():
            return f"{name} {effect.lease}: {effect.message}"
        case fx.DrainLease():
            return f"{name} {effect.lease} within {effect.deadline_ms} ms"
        case fx.FenceLease():
            below = "" if effect.below_attempt is None else f" attempts below {effect.below_attempt}"
            return f"{name} {effect.lease}{below}"
        case fx.CancelLease():
            return f"{name} {effect.lease}"
        case fx.ShutOut():
            return f"{name} {effect.connector}-{effect.task}"
        case fx.AssignSplit():
            return f"{name} {effect.lease} {'nothing' if effect.work is None else work_told(effect.work)}"
        case fx.CommitReport():
            return f"{name} {effect.lease} seq={effect.seq} {','.join(p.partition for p in effect.positions)}"
        case fx.StorePositions():
            said = (f"{p.partition}{' forgotten' if p.offset is None else ''}" for p in effect.positions)
            return f"{name} {', '.join(said)}"
        case fx.StopSidecars():
            return f"{name} {effect.connector} below {effect.below_generation or 'all'}"
        case fx.CleanUpDeleted():
            return f"{name} {effect.connector}"
        case fx.WatchTask():
            return f"{name} {effect.connector}-{effect.task} {','.join(effect.partitions)}"
        case fx.UnwatchTask():
            return f"{name} {effect.connector}-{effect.task}"
        case fx.PublishStatus():
            who = effect.connector if effect.task is None else f"{effect.connector}-{effect.task}"
            trace = ": " + effect.trace.replace("\n", " | ") if effect.trace else ""
            return f"  {who} {'gone' if effect.state is None else effect.state.value}{trace}"


def work_told(work: ev.TaskWork) -> str:
    if work.work is not None:
        return f"split {work.work.id}" if work.split else f"task {work.work.descriptor.decode()}"
    return ",".join(work.partitions)


def blocks(text: str) -> Iterator[str]:
    return (block for block in text.split("\n\n") if block.strip())


def played(text: str) -> str:
    """The file as it would read if what happens now were right."""
    stage = Stage()
    out = []
    for block in blocks(text):
        lines = block.strip("\n").split("\n")
        remarks = [line for line in lines if line.startswith("#")]
        commands = [line for line in lines[: lines.index("----") if "----" in lines else None] if line not in remarks]
        effects = [told for command in commands for told in stage.run(command)]
        out.append("\n".join([*remarks, *commands, *(["----", *effects] if commands else [])]))
    return "\n\n".join(out) + "\n"


@pytest.mark.parametrize("path", sorted(HERE.glob("*.txt")), ids=lambda path: path.stem)
def test_the_machine_does_what_the_file_says(path: Path) -> None:
    text = path.read_text()
    now = played(text)
    if os.environ.get(REWRITE):
        path.write_text(now)
        return
    assert now == text


def test_there_are_scenarios() -> None:
    assert len(list(HERE.glob("*.txt"))) >= 5
