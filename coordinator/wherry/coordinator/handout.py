"""The tasks of one connector and the leases that run them: handed out, taken back, parked, woken.

Joins the small machines `task`, `lease` and the split queue; `book.py` adds the connector and its plans. Pure: effects
are appended to a list, time is handed in.

Invariants: at most one live lease per task (Invariant 3: a task's next lease is launched only after its last one is
known to have ended); no task is launched while another one of the connector is being wound down, so work that moves
between tasks is never done twice.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Final

from wherry.contract.errors import ErrorClass
from wherry.coordinator import effects as fx
from wherry.coordinator import events as ev
from wherry.coordinator import lease as leases
from wherry.coordinator import task as tasks
from wherry.coordinator.assignment import SplitQueue
from wherry.coordinator.history import RestartHistory
from wherry.coordinator.lease import Lease, LeaseInput, LeasePhase, LeaseTimes
from wherry.coordinator.spread import Spread
from wherry.coordinator.starts import Starts
from wherry.coordinator.task import Task, TaskInput, TaskState

ATTEMPTS_AGAIN_MAX: Final = 2
"""So often Spark may run a lease again whose worker has died; below what it counts before it fails a job."""
_LOSSES: Final = frozenset({ev.EndReason.DRAINED, ev.EndReason.FENCED})
_SETTLED: Final = frozenset({ev.EndReason.DRAINED, ev.EndReason.IDLE, ev.EndReason.SPLITS_DONE})
"""Ends after which no transaction is open, nor one whose commit may yet come through."""
_AT_REST: Final = frozenset(state for state in TaskState if state not in tasks.LEASED) - {TaskState.WAITING}


@dataclass(slots=True)
class Surroundings:
    """What all connectors share. Owned by the machine."""

    times: LeaseTimes = field(default_factory=LeaseTimes)
    plan_timeout_ms: int = 90_000
    jitter: Callable[[], float] = lambda: 0.0
    engine_up: bool = False
    engine_failure: ev.Failure | None = None
    """Set when leases can't be run until a person does something."""
    closing: bool = False
    leads: bool = True
    """Whether connectors are ours to run; another coordinator may have them."""
    generation: int = 0
    """Last one given out, over all connectors."""
    lease_number: int = 0
    starts: Starts = field(default_factory=Starts)
    spread: Spread = field(default_factory=Spread)

    def next_generation(self) -> int:
        """A generation higher than all before."""
        self.generation += 1
        return self.generation

    def next_lease_id(self, connector: str, task: int) -> str:
        """A lease id used never before by this process, and by no other: the generation rises over restarts."""
        self.lease_number += 1
        return f"{connector}-{task}-{self.generation}-{self.lease_number}"


LeaseEvent = ev.LeaseOpening | ev.LeaseReported | ev.LeaseEnded | ev.LeaseLost | ev.CommitFailed


class Handout:
    """Tasks, leases and splits of one connector.

    Args:
        spec: The connector; replaced by its book.
        generation: The generation leases are made under; replaced by its book.
        around: What all connectors share.
        out: Where effects go.
        may_launch: Whether tasks may run now.
    """

    def __init__(
        self,
        spec: ev.ConnectorSpec,
        generation: int,
        around: Surroundings,
        out: list[fx.Effect],
        may_launch: Callable[[], bool],
    ) -> None:
        self.spec = spec
        self.generation = generation
        self.tasks: dict[int, Task] = {}
        self.leases: dict[str, Lease] = {}
        self.splits = SplitQueue()
        self.history = RestartHistory()
        self.works: dict[int, ev.TaskWork | None] = {}
        """What the last plan wants: a task's work, or None for a runner of splits."""
        self.caught_up: frozenset[str] = frozenset()
        """Partitions that nothing is to be read from now, as of the plan of a connector taken up again."""
        self.replans = False
        """Planning anew will wake a parked task."""
        self.splits_done_since_plan = False
        self._around = around
        self._out = out
        self._may_launch = may_launch

    # ---- tasks -------------------------------------------------------------------------------------------------

    def all_tasks_input(self, given: TaskInput, now_ms: int) -> None:
        """The same happens to all tasks."""
        for number in list(self.tasks):
            self.task_input(number, given, now_ms)

    def task_input(
        self,
        number: int,
        given: TaskInput,
        now_ms: int,
        *,
        failure: ev.Failure | None = None,
        at_once: bool = False,
    ) -> None:
        """Something happens to a task, and its lease is drained if need be. An unknown task is ignored."""
        before = self.tasks.get(number)
        if before is None:
            return
        jitter = self._around.jitter() if given is TaskInput.FAILED else 0.0
        after = tasks.step(before, given, now_ms, failure=failure, policy=self.spec.restart, jitter=jitter)
        if at_once and after.state is TaskState.BACKOFF and after.restarts == 1:
            after = replace(after, retry_at_ms=now_ms)
        self.tasks[number] = after
        if failure is not None and after is not before:
            self.history.failed(number, after, failure, now_ms)
        if after.state in _AT_REST:
            self._around.spread.rests((self.spec.name, number))
        watched = self.spec.kind is ev.Kind.SINK and before.work is not None and before.work.partitions
        if watched and before.state is not after.state:
            if after.state is TaskState.PARKED and before.work is not None:
                self._out.append(fx.WatchTask(self.spec.name, number, before.work.partitions))
            elif before.state is TaskState.PARKED:
                self._out.append(fx.UnwatchTask(self.spec.name, number))
        if after.state in tasks.ENDING and before.state not in tasks.ENDING:
            for lease in [lease for lease in self.leases.values() if lease.task == number]:
                self._lease_over(lease, LeaseInput.DRAIN_ASKED, now_ms)

    def set_works(self, works: dict[int, ev.TaskWork | None], now_ms: int) -> None:
        """Take up what a plan wants: tasks whose work is the same are left alone."""
        self.works = works
        for number, task in list(self.tasks.items()):
            if number not in works:
                self.task_input(number, TaskInput.STOP, now_ms)
            elif task.work != works[number]:
                self.tasks[number] = replace(task, work=works[number])
                self.task_input(number, TaskInput.RESTART, now_ms)
            elif self.spec.kind is ev.Kind.SOURCE and task.work is not None:
                # A log that had nothing more when it was parked: planning anew is the sign to look again.
                self.task_input(number, TaskInput.WOKEN, now_ms)

    def sort_out(self, now_ms: int) -> None:
        """Drop tasks that have stopped, make those a plan wants, and wake what has something to do."""
        for number in [n for n, task in self.tasks.items() if task.state is TaskState.STOPPED]:
            if not self._around.closing:
                del self.tasks[number]
        if not self._may_launch():
            return
        for number in sorted(self.works.keys() - self.tasks.keys()):
            self.tasks[number] = Task(number, work=self.works[number], since_ms=now_ms)
        for task in [task for task in self.tasks.values() if task.retry_at_ms is not None]:
            if task.retry_at_ms is not None and task.retry_at_ms <= now_ms:
                self.task_input(task.number, TaskInput.RETRY_DUE, now_ms)
        parked = [t.number for t in self._in_order() if t.state is TaskState.PARKED and t.work is None]
        for number in parked[: self.splits.ready_count(now_ms, len(parked)) if parked else 0]:
            self.task_input(number, TaskInput.WOKEN, now_ms)

    def launch(self, now_ms: int) -> None:
        """Start a lease for every task that waits for one, all as one job."""
        if not self._may_launch():
            return
        waiting = [task for task in self._in_order() if task.state is TaskState.WAITING]
        if self._around.engine_failure is not None:
            for task in waiting:
                self.task_input(task.number, TaskInput.GAVE_UP, now_ms, failure=self._around.engine_failure)
            return
        if not self._around.engine_up or any(task.state in tasks.ENDING for task in self.tasks.values()):
            return
        starts = []
        for task in waiting:
            if not self._around.starts.free:
                self._around.starts.block(self.spec.name)
                break
            if (start := self._lease_for(task, now_ms)) is not None:
                starts.append(start)
        else:
            self.caught_up = frozenset()
        if starts:
            self._out.append(fx.StartLeases(self.spec.name, self.generation, tuple(starts)))

    def _in_order(self) -> list[Task]:
        return sorted(self.tasks.values(), key=lambda task: task.number)

    def _lease_for(self, task: Task, now_ms: int) -> fx.LeaseStart | None:
        split = None
        if task.work is None:
            split = self.splits.take(now_ms)
        idle = task.work is not None and task.work.partitions and self.caught_up.issuperset(task.work.partitions)
        if (task.work is None and split is None) or task.work == ev.TaskWork() or idle:
            self.task_input(task.number, TaskInput.PARKED, now_ms)
            return None
        lease_id = self._around.next_lease_id(self.spec.name, task.number)
        # Invariant 3: a WAITING task has no live lease.
        assert all(lease.task != task.number for lease in self.leases.values()), (
            f"{self.spec.name}-{task.number} has a lease"
        )
        self.leases[lease_id] = leases.launch(
            lease_id=lease_id,
            connector=self.spec.name,
            generation=self.generation,
            task=task.number,
            split=None if split is None else split.id,
            now_ms=now_ms,
            times=self._around.times,
        )
        self.task_input(task.number, TaskInput.LAUNCHED, now_ms)
        self._around.starts.begin(lease_id, now_ms)
        executor = self._around.spread.launch(lease_id, (self.spec.name, task.number), now_ms)
        return fx.LeaseStart(lease_id, task.number, executor)

    def move(self, number: int, now_ms: int) -> None:
        """End a task's lease in good order so that its next one starts where there is less to do."""
        self.task_input(number, TaskInput.MOVE, now_ms)

    # ---- time --------------------------------------------------------------------------------------------------

    def tick(self, now_ms: int) -> None:
        """Let everything happen that is due."""
        for lease in [lease for lease in self.leases.values() if lease.deadline_ms <= now_ms]:
            self._lease_over(lease, LeaseInput.TIMED_OUT, now_ms, lost=_silence(lease, self._around.times))
        for task in [task for task in self.tasks.values() if task.retry_at_ms is not None]:
            if task.retry_at_ms is not None and task.retry_at_ms <= now_ms:
                self.task_input(task.number, TaskInput.RETRY_DUE, now_ms)

    def due_ms(self, now_ms: int) -> int | None:
        """When `tick` has something to do next; None if never."""
        times = [lease.deadline_ms for lease in self.leases.values()]
        times += [task.retry_at_ms for task in self.tasks.values() if task.retry_at_ms is not None]
        split_ms = self.splits.next_due_ms(now_ms)
        return min(times if split_ms is None else [*times, split_ms], default=None)

    # ---- leases ------------------------------------------------------------------------------------------------

    def handle(self, event: LeaseEvent, now_ms: int) -> None:
        """Take in what a lease says, or what is said about it."""
        match event:
            case ev.LeaseOpening():
                self._opening(event, now_ms)
            case ev.LeaseReported():
                self._reported(event, now_ms)
            case ev.LeaseEnded():
                self._ended(event, now_ms)
            case ev.LeaseLost():
                self.lost(event.lease, event.message, now_ms)
            case ev.CommitFailed():
                self._commit_failed(event, now_ms)

    def _opening(self, event: ev.LeaseOpening, now_ms: int) -> None:
        lease = self.leases.get(event.lease)
        if lease is None or lease.generation != event.generation or self._around.closing:
            self._refuse(event, "The lease is over, or a newer generation has taken over.")
            return
        if event.attempt > ATTEMPTS_AGAIN_MAX:
            # Spark would give up the whole job at its next failure, and with it the leases that run well.
            self._refuse(event, "It has lost its worker too often.")
            self.lost(lease.id, f"The worker of the lease has died {event.attempt} times.", now_ms)
            return
        stepped = leases.step(lease, LeaseInput.OPENED, now_ms, self._around.times, attempt=event.attempt)
        if stepped is None:
            self._refuse(event, "The lease is ending, or a newer attempt has taken over.")
            if event.attempt > lease.attempt:
                self.lost(lease.id, "The worker died while it came to its end.", now_ms)
            return
        task = self.tasks[lease.task]
        work = task.work
        opened, effects = stepped
        if work is None:
            split = self.splits.active.get(lease.split or "") or self.splits.take(now_ms)
            if split is None:
                self._refuse(event, "No split is left.")
                self._lease_over(lease, LeaseInput.ENDED, now_ms, reason=ev.EndReason.SPLITS_DONE)
                return
            opened = replace(opened, split=split.id)
            work = ev.TaskWork(split, split=True)
        self.leases[lease.id] = replace(opened, worker=event.worker, executor=event.executor)
        # A runner of splits comes to its end by itself, and what it reads now would be read again.
        self._around.spread.opened(lease.id, event.executor, movable=task.work is not None)
        self._out += effects
        if self.spec.exactly_once and 0 <= lease.attempt < event.attempt:
            # A transaction that the worker before has left open would hide the task's own positions.
            self._out.append(fx.ShutOut(self.spec.name, self.spec, lease.task))
        self.task_input(lease.task, TaskInput.OPENED, now_ms)
        self._out.append(
            fx.GrantLease(
                self.spec.name,
                lease.id,
                lease.generation,
                event.attempt,
                event.request,
                lease.task,
                self.spec,
                work,
                wakes=self.spec.kind is ev.Kind.SINK or self.replans,
                others_wait=self._around.starts.contended,
            )
        )

    def _refuse(self, event: ev.LeaseOpening, message: str) -> None:
        self._out.append(fx.RefuseLease(self.spec.name, event.lease, event.request, message))

    def _reported(self, event: ev.LeaseReported, now_ms: int) -> None:
        lease = self.leases.get(event.lease)
        # Invariant 2: a stale lease, generation or attempt moves no position.
        if lease is None or not leases.accepts(lease, event.attempt):
            return
        if event.started:
            self._around.starts.done(lease.id)
        stepped = leases.step(lease, LeaseInput.REPORTED, now_ms, self._around.times)
        if stepped is None:
            return
        lease = replace(stepped[0], trouble=event.trouble)
        if event.positions or event.tokens or event.splits_done:
            self._out.append(
                fx.CommitReport(
                    self.spec.name, lease.id, lease.generation, self.spec, event.seq, event.positions, event.tokens
                )
            )
        for split_id in event.splits_done:
            if split_id == lease.split and self.splits.done(split_id):
                lease = replace(lease, split=None)
                self.splits_done_since_plan = True
        self.leases[lease.id] = lease
        if event.want_split and lease.split is None and self.tasks[lease.task].work is None:
            self._assign(lease, now_ms)

    def _assign(self, lease: Lease, now_ms: int) -> None:
        running = self.tasks[lease.task].state is TaskState.RUNNING and self._may_launch()
        split = self.splits.take(now_ms) if running else None
        if split is not None:
            self.leases[lease.id] = replace(lease, split=split.id)
        work = None if split is None else ev.TaskWork(split, split=True)
        self._out.append(fx.AssignSplit(self.spec.name, lease.id, work))

    def _ended(self, event: ev.LeaseEnded, now_ms: int) -> None:
        lease = self.leases.get(event.lease)
        if lease is None or (event.attempt >= 0 and not leases.accepts(lease, event.attempt)):
            return
        self._lease_over(lease, LeaseInput.ENDED, now_ms, reason=event.reason, failure=event.failure)

    def lost(self, lease_id: str, message: str, now_ms: int) -> None:
        """The process of a lease is gone."""
        lease = self.leases.get(lease_id)
        if lease is not None:
            self._lease_over(lease, LeaseInput.LOST, now_ms, lost=message)

    def all_lost(self, now_ms: int) -> None:
        """What ran all leases is gone; that is no fault of theirs."""
        for lease in list(self.leases.values()):
            self._lease_over(lease, LeaseInput.LOST, now_ms, blameless=True)

    def _commit_failed(self, event: ev.CommitFailed, now_ms: int) -> None:
        lease = self.leases.get(event.lease)
        if lease is not None:
            self._lease_over(lease, LeaseInput.LOST, now_ms, reason=ev.EndReason.FAILED, failure=event.failure)

    def _lease_over(
        self,
        lease: Lease,
        given: LeaseInput,
        now_ms: int,
        *,
        reason: ev.EndReason | None = None,
        failure: ev.Failure | None = None,
        lost: str = "",
        blameless: bool = False,
    ) -> None:
        """A lease draws to its end (DRAIN_ASKED) or has come to it: its task and split learn of it."""
        stepped = leases.step(lease, given, now_ms, self._around.times)
        if stepped is None:
            return
        lease, effects = stepped
        self._out += effects
        self.leases[lease.id] = lease
        if lease.phase is not LeasePhase.ENDED:
            return
        if given is LeaseInput.TIMED_OUT:
            self._around.spread.silent(lease.id, now_ms)
        self.forget(lease.id)
        if self.spec.exactly_once and not (given is LeaseInput.ENDED and reason in _SETTLED):
            self._out.append(fx.ShutOut(self.spec.name, self.spec, lease.task))
        task = self.tasks[lease.task]
        if task.state in tasks.ENDING or given is LeaseInput.DRAIN_ASKED or blameless:
            self.splits.put_back(lease.split or "")
            self.task_input(task.number, TaskInput.ENDED, now_ms)
        elif reason in (ev.EndReason.IDLE, ev.EndReason.SPLITS_DONE):
            self.splits.put_back(lease.split or "")
            self.task_input(task.number, TaskInput.PARKED, now_ms)
        else:
            if failure is None or reason in _LOSSES:
                lost = lost or (failure.message if failure else "The worker ended the lease without being asked to.")
                failure = ev.Failure(ErrorClass.TRANSIENT, lost)
            # One that merely got lost is run again at once; only if that happens once more there is a wait.
            self.task_input(task.number, TaskInput.FAILED, now_ms, failure=failure, at_once=bool(lost))
            retry_at_ms = self.tasks[task.number].retry_at_ms
            self.splits.put_back(lease.split or "", retry_at_ms=now_ms if retry_at_ms is None else retry_at_ms)

    def forget(self, lease_id: str) -> None:
        """A lease is no more."""
        del self.leases[lease_id]
        self._around.starts.done(lease_id)
        self._around.spread.over(lease_id)


def _silence(lease: Lease, times: LeaseTimes) -> str:
    match lease.phase:
        case LeasePhase.LAUNCHING:
            return (
                f"No worker took up the lease within {times.launch_ms / 1000:g} s: Spark has no free slot, or its "
                "executors can't start Python; see the coordinator's log."
            )
        case LeasePhase.DRAINING:
            return f"The lease did not come to an end within {times.drain_ms / 1000:g} s."
        case _:
            return f"Nothing was heard of the worker {lease.worker} for {times.silence_ms / 1000:g} s."
