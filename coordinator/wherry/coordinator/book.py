"""Everything the machine keeps of one connector, and what an event does to it.

Joins the small machines (`connector`, `task`, `lease`, `assignment`): routes an event to those it concerns, then
settles: winds down, plans, launches, parks and wakes until nothing more follows. Pure: effects are collected, time and
jitter are handed in.

Invariants: at most one live lease per task (Invariant 3: a task's next lease is launched only after its last one is
known to have ended); a new generation begins only when no lease of the old one is live; no task is launched while
another one of the connector is being wound down, so work that moves between tasks is never done twice.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from typing import Final

from wherry.contract.errors import ErrorClass
from wherry.contract.position import Position
from wherry.coordinator import connector as connectors
from wherry.coordinator import effects as fx
from wherry.coordinator import events as ev
from wherry.coordinator import lease as leases
from wherry.coordinator import task as tasks
from wherry.coordinator.api import State
from wherry.coordinator.assignment import SplitQueue, assign_partitions
from wherry.coordinator.connector import ConnectorInput, ConnectorState
from wherry.coordinator.lease import Lease, LeaseInput, LeasePhase, LeaseTimes
from wherry.coordinator.task import Task, TaskInput, TaskState

SPLITS_PER_PLAN_MAX: Final = 1_000
REPLAN_DELAY_MS_MIN: Final = 100
SETTLE_ROUNDS_MAX: Final = 16

_MAY_LAUNCH: Final = frozenset(
    {ConnectorState.PLANNING, ConnectorState.RUNNING, ConnectorState.BACKOFF, ConnectorState.FAILED}
)
_RESTING: Final = frozenset({ConnectorState.PAUSED, ConnectorState.STOPPED})
_LOSSES: Final = frozenset({ev.EndReason.DRAINED, ev.EndReason.FENCED})


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
    generation: int = 0
    """Last one given out, over all connectors."""
    lease_number: int = 0

    def next_generation(self) -> int:
        """A generation higher than all before."""
        self.generation += 1
        return self.generation

    def next_lease_id(self, connector: str, task: int) -> str:
        """A lease id used never before by this process, and by no other: the generation rises over restarts."""
        self.lease_number += 1
        return f"{connector}-{task}-{self.generation}-{self.lease_number}"


class Book:
    """One connector: its machine, tasks, leases, splits and timers."""

    def __init__(self, put: ev.ConnectorPut, around: Surroundings) -> None:
        self.spec = put.spec
        self.connector = connectors.create(put.connector, put.target)
        self.generation = around.next_generation()
        self.tasks: dict[int, Task] = {}
        self.leases: dict[str, Lease] = {}
        self.splits = SplitQueue()
        self.works: dict[int, ev.TaskWork | None] = {}
        """What the last plan wants: a task's work, or None for a runner of splits."""
        self.plan_id = 0
        self.plan_deadline_ms: int | None = None
        self.plan_wanted = self.connector.state is ConnectorState.PLANNING
        self.replan_at_ms: int | None = None
        self._around = around
        self._deferred: tuple[Position, ...] = ()
        self._more_splits = False
        self._splits_done_since_plan = False
        self._complete = False
        self._replans = False
        self._published: dict[int | None, tuple[State, str]] = {}
        self._out: list[fx.Effect] = []

    # ---- what the machine calls --------------------------------------------------------------------------------

    @property
    def name(self) -> str:
        """Name of the connector."""
        return self.spec.name

    @property
    def gone(self) -> bool:
        """Whether it was deleted and nothing of it is left."""
        return self.connector.state is ConnectorState.DELETED

    def shown(self) -> dict[int | None, tuple[State, str]]:
        """State and trace of the connector (None) and its tasks as REST shows them now."""
        return dict(self._published)

    def handle(self, event: ev.ConnectorEvent, now_ms: int) -> None:
        """Take in one event."""
        match event:
            case ev.ConnectorPut():
                self._configure(event.spec, now_ms)
            case ev.ConnectorDeleted():
                self._connector_input(ConnectorInput.DELETE, now_ms)
            case ev.TargetSet():
                self._connector_input(connectors.target_input(event.target), now_ms)
            case ev.ConnectorRestarted():
                self._restart(event, now_ms)
            case ev.TaskRestarted():
                self._task_input(event.task, TaskInput.RESTART, now_ms)
            case ev.ConnectorFailed():
                self._plan_failed(event.failure, now_ms)
            case ev.Planned() if event.plan_id == self.plan_id and self.plan_deadline_ms is not None:
                self._planned(event.result, now_ms)
            case ev.PlanFailed() if event.plan_id == self.plan_id and self.plan_deadline_ms is not None:
                self._plan_failed(event.failure, now_ms)
            case ev.PlanChanged():
                self.plan_wanted = True
            case ev.CommitFailed():
                self._commit_failed(event, now_ms)
            case ev.Woken():
                self._task_input(event.task, TaskInput.WOKEN, now_ms)
            case ev.LeaseOpening():
                self._opening(event, now_ms)
            case ev.LeaseReported():
                self._reported(event, now_ms)
            case ev.LeaseEnded():
                self._ended(event, now_ms)
            case ev.LeaseLost():
                self._lost(event.lease, event.message, now_ms)
            case _:  # an answer to a plan that is no longer waited for
                pass

    def tick(self, now_ms: int) -> None:
        """Let everything happen that is due."""
        for lease in [lease for lease in self.leases.values() if lease.deadline_ms <= now_ms]:
            self._lease_over(
                lease,
                LeaseInput.TIMED_OUT,
                now_ms,
                lost=_silence(lease, self._around.times),
            )
        for task in [task for task in self.tasks.values() if task.retry_at_ms is not None]:
            if task.retry_at_ms is not None and task.retry_at_ms <= now_ms:
                self._task_input(task.number, TaskInput.RETRY_DUE, now_ms)
        if self.connector.retry_at_ms is not None and self.connector.retry_at_ms <= now_ms:
            self._connector_input(ConnectorInput.RETRY_DUE, now_ms)
        if self.plan_deadline_ms is not None and self.plan_deadline_ms <= now_ms:
            seconds = self._around.plan_timeout_ms / 1000
            message = f"The connector did not say within {seconds:g} s what there is to do."
            self._plan_failed(ev.Failure(ErrorClass.TRANSIENT, message), now_ms)
        if self.replan_at_ms is not None and self.replan_at_ms <= now_ms:
            self.replan_at_ms = None
            self.plan_wanted = True

    def due_ms(self, now_ms: int) -> int | None:
        """When `tick` has something to do next; None if never."""
        times = [lease.deadline_ms for lease in self.leases.values()]
        times += [task.retry_at_ms for task in self.tasks.values() if task.retry_at_ms is not None]
        split_ms = self.splits.next_due_ms(now_ms)
        others = (self.connector.retry_at_ms, self.plan_deadline_ms, self.replan_at_ms, split_ms)
        times += [time for time in others if time is not None]
        return min(times, default=None)

    def engine_lost(self, message: str, now_ms: int) -> None:
        """Spark is gone, and all leases with it."""
        for lease in list(self.leases.values()):
            self._lost(lease.id, message, now_ms)

    def engine_up(self, failure: ev.Failure | None, now_ms: int) -> None:
        """Spark is there; `failure` is what had kept it away, and made tasks fail."""
        for task in list(self.tasks.values()):
            if task.state is TaskState.FAILED and failure is not None and task.failure == failure:
                self._task_input(task.number, TaskInput.RESTART, now_ms)

    def close(self, now_ms: int) -> None:
        """Wind down all leases; the connector stays what it is."""
        for number in list(self.tasks):
            self._task_input(number, TaskInput.STOP, now_ms)

    def settle(self, now_ms: int) -> list[fx.Effect]:
        """Do what follows from the state now, and give out everything that is to be done."""
        for _ in range(SETTLE_ROUNDS_MAX):
            before = (self.connector, dict(self.tasks), self.plan_wanted, len(self.splits.pending))
            self._wound_down(now_ms)
            self._sort_out_tasks(now_ms)
            self._plan(now_ms)
            self._launch(now_ms)
            if before == (self.connector, self.tasks, self.plan_wanted, len(self.splits.pending)):
                break
        if self._deferred and not self.splits.active:
            self._out.append(fx.StorePositions(self.name, self.spec, self._deferred))
            self._deferred = ()
        self._publish()
        out, self._out = self._out, []
        return out

    # ---- the connector -----------------------------------------------------------------------------------------

    def _connector_input(self, given: ConnectorInput, now_ms: int, failure: ev.Failure | None = None) -> None:
        before = self.connector
        jitter = self._around.jitter() if given is ConnectorInput.PLAN_FAILED else 0.0
        after = connectors.step(before, given, now_ms, failure=failure, policy=self.spec.restart, jitter=jitter)
        self.connector = after
        if after.state is ConnectorState.PLANNING and (before.state is not after.state or after is not before):
            self.plan_wanted = True
        if after.state is before.state:
            return
        if after.state is ConnectorState.PLANNING and before.state in _RESTING:
            self.generation = self._around.next_generation()
        follow = {
            ConnectorState.RECONFIGURING: TaskInput.RESTART,
            ConnectorState.PAUSING: TaskInput.PAUSE,
            ConnectorState.PAUSED: TaskInput.PAUSE,
            ConnectorState.STOPPING: TaskInput.STOP,
            ConnectorState.DELETING: TaskInput.STOP,
        }.get(after.state)
        if before.state in (ConnectorState.PAUSING, ConnectorState.PAUSED) and follow in (None, TaskInput.RESTART):
            follow = TaskInput.RESUME
        if follow is not None:
            if after.state is not ConnectorState.PLANNING:
                self._forget_plan()
            for number in list(self.tasks):
                self._task_input(number, follow, now_ms)

    def _configure(self, spec: ev.ConnectorSpec, now_ms: int) -> None:
        if spec != self.spec:
            self.spec = spec
            self._connector_input(ConnectorInput.CONFIGURED, now_ms)
            return
        # Writing the same configuration again is how people kick what has failed.
        self._restart(ev.ConnectorRestarted(spec.name, include_tasks=True, only_failed=True), now_ms)

    def _restart(self, event: ev.ConnectorRestarted, now_ms: int) -> None:
        if event.include_tasks and not event.only_failed:
            if self.connector.state in (ConnectorState.PAUSED, ConnectorState.STOPPED):
                return
            self._connector_input(ConnectorInput.CONFIGURED, now_ms)  # all anew: sidecars, too
            return
        if not event.only_failed or self.connector.state is ConnectorState.FAILED:
            self._connector_input(ConnectorInput.RESTART, now_ms)
        if event.include_tasks:
            for task in list(self.tasks.values()):
                if task.state in (TaskState.FAILED, TaskState.BACKOFF):
                    self._task_input(task.number, TaskInput.RESTART, now_ms)

    def _wound_down(self, now_ms: int) -> None:
        """Once the last lease has ended, become what was asked for."""
        if self.connector.state not in connectors.WINDING_DOWN or self.leases:
            return
        self._connector_input(ConnectorInput.DRAINED, now_ms)
        self.splits.clear()
        match self.connector.state:
            case ConnectorState.PLANNING:
                self.generation = self._around.next_generation()
                self._out.append(fx.StopSidecars(self.name, self.generation))
            case ConnectorState.PAUSED:
                self._out.append(fx.StopSidecars(self.name))
            case ConnectorState.STOPPED:
                self.works = {}
                self._out.append(fx.StopSidecars(self.name))
            case _:
                self.works = {}
                self._out.append(fx.CleanUpDeleted(self.name, self.spec, self.generation))

    # ---- planning ----------------------------------------------------------------------------------------------

    def _forget_plan(self) -> None:
        self.plan_id += 1  # an answer under way no longer counts
        self.plan_deadline_ms = None
        self.plan_wanted = False
        self.replan_at_ms = None
        self._deferred = ()

    def _plan(self, now_ms: int) -> None:
        wanted = self.plan_wanted and self.connector.state in connectors.PLANS and not self._around.closing
        if not wanted or self.plan_deadline_ms is not None:
            return
        self.plan_wanted = False
        self.plan_id += 1
        self.plan_deadline_ms = now_ms + self._around.plan_timeout_ms
        self.replan_at_ms = None
        self._splits_done_since_plan = False
        self._out.append(
            fx.LoadPlan(
                self.name,
                self.generation,
                self.plan_id,
                self.spec,
                self.splits.plan_asked(),
                SPLITS_PER_PLAN_MAX,
                first=not self.connector.planned,
            )
        )

    def _planned(self, result: ev.SourcePlan | ev.SinkPlan, now_ms: int) -> None:
        self.plan_deadline_ms = None
        if isinstance(result, ev.SinkPlan):
            previous = {n: work.partitions for n, work in self.works.items() if work is not None}
            dealt = assign_partitions(result.partitions, self.spec.tasks_max, previous)
            works: dict[int, ev.TaskWork | None] = {n: ev.TaskWork(partitions=kept) for n, kept in dealt.items()}
            replan_after_ms = result.replan_after_ms
        else:
            plan = result.plan
            if len(plan.tasks) > self.spec.tasks_max:
                message = (
                    f"The connector {self.name} has generated {len(plan.tasks)} tasks, which is greater than "
                    f"{self.spec.tasks_max}, the maximum number of tasks it is configured to create (tasks.max)."
                )
                self._plan_failed(ev.Failure(ErrorClass.CONFIG, message), now_ms)
                return
            works = self._source_works(result)
            replan_after_ms = plan.replan_after_ms
            self._deferred = (*plan.retired, *plan.reached)
            self._more_splits = len(plan.splits) >= SPLITS_PER_PLAN_MAX
            self._complete = plan.complete
            self.splits.planned(plan.splits)
        self._replans = replan_after_ms > 0
        if self._replans and not self._complete:
            self.replan_at_ms = now_ms + max(replan_after_ms, REPLAN_DELAY_MS_MIN)
        self._connector_input(ConnectorInput.PLANNED, now_ms)
        self._set_works(works, now_ms)

    def _source_works(self, result: ev.SourcePlan) -> dict[int, ev.TaskWork | None]:
        works: dict[int, ev.TaskWork | None] = {n: ev.TaskWork(work) for n, work in enumerate(result.plan.tasks)}
        had_runners = any(work is None for work in self.works.values())
        if self.spec.splits or result.plan.splits or had_runners:
            works.update(dict.fromkeys(range(len(works), self.spec.tasks_max)))
            if result.plan.splits and None not in works.values():
                # All numbers are taken by tasks without end: splits get a runner that REST doesn't show.
                works[self.spec.tasks_max] = None
        return works

    def _plan_failed(self, failure: ev.Failure, now_ms: int) -> None:
        self.plan_deadline_ms = None
        self._connector_input(ConnectorInput.PLAN_FAILED, now_ms, failure)

    def _set_works(self, works: dict[int, ev.TaskWork | None], now_ms: int) -> None:
        self.works = works
        for number, task in list(self.tasks.items()):
            if number not in works:
                self._task_input(number, TaskInput.STOP, now_ms)
            elif task.work != works[number]:
                self.tasks[number] = replace(task, work=works[number])
                self._task_input(number, TaskInput.RESTART, now_ms)
            elif self.spec.kind is ev.Kind.SOURCE and task.work is not None:
                # A log that had nothing more when it was parked: planning anew is the sign to look again.
                self._task_input(number, TaskInput.WOKEN, now_ms)

    # ---- tasks -------------------------------------------------------------------------------------------------

    def _task_input(
        self,
        number: int,
        given: TaskInput,
        now_ms: int,
        *,
        failure: ev.Failure | None = None,
        at_once: bool = False,
    ) -> None:
        before = self.tasks.get(number)
        if before is None:
            return
        jitter = self._around.jitter() if given is TaskInput.FAILED else 0.0
        after = tasks.step(before, given, now_ms, failure=failure, policy=self.spec.restart, jitter=jitter)
        if at_once and after.state is TaskState.BACKOFF and after.restarts == 1:
            after = replace(after, retry_at_ms=now_ms)
        self.tasks[number] = after
        watched = self.spec.kind is ev.Kind.SINK and before.work is not None and before.work.partitions
        if watched and before.state is not after.state:
            if after.state is TaskState.PARKED and before.work is not None:
                self._out.append(fx.WatchTask(self.name, number, before.work.partitions))
            elif before.state is TaskState.PARKED:
                self._out.append(fx.UnwatchTask(self.name, number))
        if after.state in tasks.ENDING and before.state not in tasks.ENDING:
            for lease in [lease for lease in self.leases.values() if lease.task == number]:
                self._lease_over(lease, LeaseInput.DRAIN_ASKED, now_ms)

    def _sort_out_tasks(self, now_ms: int) -> None:
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
                self._task_input(task.number, TaskInput.RETRY_DUE, now_ms)
        parked = [t.number for t in self._in_order() if t.state is TaskState.PARKED and t.work is None]
        for number in parked[: self.splits.ready_count(now_ms, len(parked)) if parked else 0]:
            self._task_input(number, TaskInput.WOKEN, now_ms)
        idle = not self.splits.active and not self.splits.pending
        if (idle and self._splits_done_since_plan and not self._complete) or (
            self._more_splits and not self.splits.pending
        ):
            self._more_splits = self._splits_done_since_plan = False
            self.plan_wanted = True

    def _may_launch(self) -> bool:
        return self.connector.planned and self.connector.state in _MAY_LAUNCH and not self._around.closing

    def _in_order(self) -> list[Task]:
        return sorted(self.tasks.values(), key=lambda task: task.number)

    def _launch(self, now_ms: int) -> None:
        if not self._may_launch():
            return
        waiting = [task for task in self._in_order() if task.state is TaskState.WAITING]
        if self._around.engine_failure is not None:
            for task in waiting:
                self._task_input(task.number, TaskInput.GAVE_UP, now_ms, failure=self._around.engine_failure)
            return
        if not self._around.engine_up or any(task.state in tasks.ENDING for task in self.tasks.values()):
            return
        starts = [start for task in waiting if (start := self._lease_for(task, now_ms)) is not None]
        if starts:
            self._out.append(fx.StartLeases(self.name, self.generation, tuple(starts)))

    def _lease_for(self, task: Task, now_ms: int) -> fx.LeaseStart | None:
        split = None
        if task.work is None:
            split = self.splits.take(now_ms)
        if (task.work is None and split is None) or task.work == ev.TaskWork():
            self._task_input(task.number, TaskInput.PARKED, now_ms)
            return None
        lease_id = self._around.next_lease_id(self.name, task.number)
        # Invariant 3: a WAITING task has no live lease.
        assert all(lease.task != task.number for lease in self.leases.values()), (
            f"{self.name}-{task.number} has a lease"
        )
        self.leases[lease_id] = leases.launch(
            lease_id=lease_id,
            connector=self.name,
            generation=self.generation,
            task=task.number,
            split=None if split is None else split.id,
            now_ms=now_ms,
            times=self._around.times,
        )
        self._task_input(task.number, TaskInput.LAUNCHED, now_ms)
        return fx.LeaseStart(lease_id, task.number)

    # ---- leases ------------------------------------------------------------------------------------------------

    def _opening(self, event: ev.LeaseOpening, now_ms: int) -> None:
        lease = self.leases.get(event.lease)
        if lease is None or lease.generation != event.generation or self._around.closing:
            self._refuse(event, "The lease is over, or a newer generation has taken over.")
            return
        stepped = leases.step(lease, LeaseInput.OPENED, now_ms, self._around.times, attempt=event.attempt)
        if stepped is None:
            self._refuse(event, "The lease is ending, or a newer attempt has taken over.")
            if event.attempt > lease.attempt:
                self._lost(lease.id, "The worker died while it came to its end.", now_ms)
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
        self.leases[lease.id] = replace(opened, worker=event.worker)
        self._out += effects
        self._task_input(lease.task, TaskInput.OPENED, now_ms)
        self._out.append(
            fx.GrantLease(
                self.name,
                lease.id,
                lease.generation,
                event.attempt,
                event.request,
                lease.task,
                self.spec,
                work,
                wakes=self.spec.kind is ev.Kind.SINK or self._replans,
            )
        )

    def _refuse(self, event: ev.LeaseOpening, message: str) -> None:
        self._out.append(fx.RefuseLease(self.name, event.lease, event.request, message))

    def _reported(self, event: ev.LeaseReported, now_ms: int) -> None:
        lease = self.leases.get(event.lease)
        # Invariant 2: a stale lease, generation or attempt moves no position.
        if lease is None or not leases.accepts(lease, event.attempt):
            return
        stepped = leases.step(lease, LeaseInput.REPORTED, now_ms, self._around.times)
        if stepped is None:
            return
        lease = replace(stepped[0], trouble=event.trouble)
        if event.positions or event.tokens or event.splits_done:
            self._out.append(
                fx.CommitReport(
                    self.name, lease.id, lease.generation, self.spec, event.seq, event.positions, event.tokens
                )
            )
        for split_id in event.splits_done:
            if split_id == lease.split and self.splits.done(split_id):
                lease = replace(lease, split=None)
                self._splits_done_since_plan = True
        self.leases[lease.id] = lease
        if event.want_split and lease.split is None and self.tasks[lease.task].work is None:
            self._assign(lease, now_ms)

    def _assign(self, lease: Lease, now_ms: int) -> None:
        running = self.tasks[lease.task].state is TaskState.RUNNING and self._may_launch()
        split = self.splits.take(now_ms) if running else None
        if split is not None:
            self.leases[lease.id] = replace(lease, split=split.id)
        work = None if split is None else ev.TaskWork(split, split=True)
        self._out.append(fx.AssignSplit(self.name, lease.id, work))

    def _ended(self, event: ev.LeaseEnded, now_ms: int) -> None:
        lease = self.leases.get(event.lease)
        if lease is None or (event.attempt >= 0 and not leases.accepts(lease, event.attempt)):
            return
        self._lease_over(lease, LeaseInput.ENDED, now_ms, reason=event.reason, failure=event.failure)

    def _lost(self, lease_id: str, message: str, now_ms: int) -> None:
        lease = self.leases.get(lease_id)
        if lease is not None:
            self._lease_over(lease, LeaseInput.LOST, now_ms, lost=message)

    def _commit_failed(self, event: ev.CommitFailed, now_ms: int) -> None:
        lease = self.leases.get(event.lease)
        if lease is not None:
            self._out.append(fx.FenceLease(self.name, lease.id, lease.generation))
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
        del self.leases[lease.id]
        task = self.tasks[lease.task]
        if task.state in tasks.ENDING or given is LeaseInput.DRAIN_ASKED:
            self.splits.put_back(lease.split or "")
            self._task_input(task.number, TaskInput.ENDED, now_ms)
        elif reason in (ev.EndReason.IDLE, ev.EndReason.SPLITS_DONE):
            self.splits.put_back(lease.split or "")
            self._task_input(task.number, TaskInput.PARKED, now_ms)
        else:
            if failure is None or reason in _LOSSES:
                lost = lost or (failure.message if failure else "The worker ended the lease without being asked to.")
                failure = ev.Failure(ErrorClass.TRANSIENT, lost)
            # One that merely got lost is run again at once; only if that happens once more there is a wait.
            self._task_input(task.number, TaskInput.FAILED, now_ms, failure=failure, at_once=bool(lost))
            retry_at_ms = self.tasks[task.number].retry_at_ms
            self.splits.put_back(lease.split or "", retry_at_ms=now_ms if retry_at_ms is None else retry_at_ms)

    # ---- status ------------------------------------------------------------------------------------------------

    def _publish(self) -> None:
        if self._around.closing:
            return  # what is shown outlives the process; the next one begins where it was
        now: dict[int | None, tuple[State, str]] = {}
        if self.connector.shown is not None:
            now[None] = (self.connector.shown, self.connector.failure.text if self.connector.failure else "")
        for number, task in self.tasks.items():
            if task.shown is not None and number < self.spec.tasks_max:
                now[number] = (task.shown, task.failure.text if task.failure else "")
        self._out += self._differences(now)
        self._published = now

    def _differences(self, now: dict[int | None, tuple[State, str]]) -> Iterable[fx.Effect]:
        for component, (state, trace) in now.items():
            if self._published.get(component) != (state, trace):
                yield fx.PublishStatus(self.name, component, state, trace, self.generation)
        for component in self._published.keys() - now.keys():
            yield fx.PublishStatus(self.name, component, None, "", self.generation)


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
