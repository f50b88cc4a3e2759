"""Everything the machine keeps of one connector, and what an event does to it.

Adds the connector and its plans to the hand-out of tasks and leases (`handout.py`): routes an event to those it
concerns, then settles: winds down, plans, launches, parks and wakes until nothing more follows. Pure: effects are
collected, time and jitter are handed in.

Invariant: a new generation begins only when no lease of the old one is live.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from wherry.contract.errors import ErrorClass
from wherry.contract.position import Position
from wherry.coordinator import connector as connectors
from wherry.coordinator import effects as fx
from wherry.coordinator import events as ev
from wherry.coordinator import retries
from wherry.coordinator.api import RestartInfo, State
from wherry.coordinator.assignment import assign_partitions
from wherry.coordinator.connector import Connector, ConnectorInput, ConnectorState
from wherry.coordinator.handout import Handout, Surroundings
from wherry.coordinator.task import Task, TaskInput, TaskState

SPLITS_PER_PLAN_MAX: Final = 1_000
REPLAN_DELAY_MS_MIN: Final = 100
SETTLE_ROUNDS_MAX: Final = 16

_MAY_LAUNCH: Final = frozenset(
    {ConnectorState.PLANNING, ConnectorState.RUNNING, ConnectorState.BACKOFF, ConnectorState.FAILED}
)
_RESTING: Final = frozenset({ConnectorState.PAUSED, ConnectorState.STOPPED})


class Book:
    """One connector: its machine, plans and hand-out."""

    def __init__(self, put: ev.ConnectorPut, around: Surroundings) -> None:
        self.connector = connectors.create(put.connector, put.target)
        self.plan_id = 0
        self.plan_deadline_ms: int | None = None
        self.plan_wanted = self.connector.state is ConnectorState.PLANNING
        self.replan_at_ms: int | None = None
        self._around = around
        self._out: list[fx.Effect] = []
        self.handout = Handout(put.spec, around.next_generation(), around, self._out, self._may_launch)
        self._deferred: tuple[Position, ...] = ()
        self._more_splits = False
        self._complete = False
        self._restored = put.restored
        self._published: dict[int | None, tuple[State, str]] = {}

    @property
    def name(self) -> str:
        """Name of the connector."""
        return self.handout.spec.name

    @property
    def spec(self) -> ev.ConnectorSpec:
        """What it is configured to be."""
        return self.handout.spec

    @property
    def gone(self) -> bool:
        """Whether it was deleted and nothing of it is left."""
        return self.connector.state is ConnectorState.DELETED

    def shown(self) -> dict[int | None, tuple[State, str]]:
        """State and trace of the connector (None) and its tasks as REST shows them now."""
        return dict(self._published)

    def retries(self, now_ms: int) -> list[RestartInfo]:
        """Everything of the connector that has failed and was started again, or will be, or no more."""
        parts: list[tuple[int | None, Connector | Task]] = [(None, self.connector), *self.handout.tasks.items()]
        found = (retries.of(self.name, number, part, self.spec.restart, now_ms) for number, part in parts)
        return [retry for retry in found if retry is not None]

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
                self.handout.history.asked(None, now_ms)
                self._restart(event, now_ms)
            case ev.TaskRestarted():
                self.handout.history.asked(event.task, now_ms)
                self.handout.task_input(event.task, TaskInput.RESTART, now_ms)
            case ev.ConnectorFailed():
                self._plan_failed(event.failure, now_ms)
            case ev.Planned() if event.plan_id == self.plan_id and self.plan_deadline_ms is not None:
                self._planned(event.result, now_ms)
            case ev.PlanFailed() if event.plan_id == self.plan_id and self.plan_deadline_ms is not None:
                self._plan_failed(event.failure, now_ms)
            case ev.PlanChanged():
                self.plan_wanted = True
            case ev.Woken():
                self.handout.task_input(event.task, TaskInput.WOKEN, now_ms)
            case ev.LeaseOpening() | ev.LeaseReported() | ev.LeaseEnded() | ev.LeaseLost() | ev.CommitFailed():
                self.handout.handle(event, now_ms)
            case _:  # an answer to a plan that is no longer waited for
                pass

    def tick(self, now_ms: int) -> None:
        """Let everything happen that is due."""
        self.handout.tick(now_ms)
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
        times = (
            self.connector.retry_at_ms,
            self.plan_deadline_ms,
            self.replan_at_ms,
            self.handout.due_ms(now_ms),
        )
        return min((time for time in times if time is not None), default=None)

    def engine_lost(self, now_ms: int) -> None:
        """Spark is gone, and all leases with it."""
        self.handout.all_lost(now_ms)

    def engine_up(self, failure: ev.Failure | None, now_ms: int) -> None:
        """Spark is there; `failure` is what had kept it away, and made tasks fail."""
        for task in list(self.handout.tasks.values()):
            if task.state is TaskState.FAILED and failure is not None and task.failure == failure:
                self.handout.task_input(task.number, TaskInput.RESTART, now_ms)

    def close(self, now_ms: int) -> None:
        """Wind down all leases; the connector stays what it is."""
        self.handout.all_tasks_input(TaskInput.STOP, now_ms)

    def settle(self, now_ms: int) -> list[fx.Effect]:
        """Do what follows from the state now, and give out everything that is to be done."""
        for _ in range(SETTLE_ROUNDS_MAX):
            before = self._fingerprint()
            self._wound_down(now_ms)
            self.handout.sort_out(now_ms)
            self._replan_for_splits()
            self._plan(now_ms)
            self.handout.launch(now_ms)
            if before == self._fingerprint():
                break
        if self._deferred and not self.handout.splits.active:
            self._out.append(fx.StorePositions(self.name, self.spec, self._deferred))
            self._deferred = ()
        self._publish()
        out = list(self._out)
        self._out.clear()
        return out

    # ---- the connector -----------------------------------------------------------------------------------------

    def _connector_input(self, given: ConnectorInput, now_ms: int, failure: ev.Failure | None = None) -> None:
        before = self.connector
        jitter = self._around.jitter() if given is ConnectorInput.PLAN_FAILED else 0.0
        after = connectors.step(before, given, now_ms, failure=failure, policy=self.spec.restart, jitter=jitter)
        self.connector = after
        if failure is not None and after is not before:
            self.handout.history.failed(None, after, failure, now_ms)
        if after.state is ConnectorState.PLANNING and (before.state is not after.state or after is not before):
            self.plan_wanted = True
        if after.state is before.state:
            return
        if after.state is ConnectorState.PLANNING and before.state in _RESTING:
            self.handout.generation = self._around.next_generation()
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
            self.handout.all_tasks_input(follow, now_ms)

    def _configure(self, spec: ev.ConnectorSpec, now_ms: int) -> None:
        if spec != self.spec:
            self.handout.spec = spec
            self._restored = False
            self._connector_input(ConnectorInput.CONFIGURED, now_ms)
            if self.connector.state in (ConnectorState.PAUSED, ConnectorState.PAUSING):
                # What failed with the old configuration is tried with the new one when it is resumed.
                for task in [task for task in self.handout.tasks.values() if task.state is TaskState.FAILED]:
                    self.handout.task_input(task.number, TaskInput.RESTART, now_ms)
                    self.handout.task_input(task.number, TaskInput.PAUSE, now_ms)
            return
        # Writing the same configuration again is how people kick what has failed.
        self._restart(ev.ConnectorRestarted(spec.name, include_tasks=True, only_failed=True), now_ms)

    def _restart(self, event: ev.ConnectorRestarted, now_ms: int) -> None:
        self._restored = False
        if event.include_tasks and not event.only_failed:
            if self.connector.state in (ConnectorState.PAUSED, ConnectorState.STOPPED):
                return
            self._connector_input(ConnectorInput.CONFIGURED, now_ms)  # all anew: sidecars, too
            return
        if not event.only_failed or self.connector.state is ConnectorState.FAILED:
            self._connector_input(ConnectorInput.RESTART, now_ms)
        if event.include_tasks:
            for task in list(self.handout.tasks.values()):
                if task.state in (TaskState.FAILED, TaskState.BACKOFF):
                    self.handout.task_input(task.number, TaskInput.RESTART, now_ms)

    def _wound_down(self, now_ms: int) -> None:
        """Once the last lease has ended, become what was asked for."""
        if self.connector.state not in connectors.WINDING_DOWN or self.handout.leases:
            return
        self._connector_input(ConnectorInput.DRAINED, now_ms)
        self.handout.splits.clear()
        match self.connector.state:
            case ConnectorState.PLANNING:
                self.handout.generation = self._around.next_generation()
                self._out.append(fx.StopSidecars(self.name, self.handout.generation))
            case ConnectorState.PAUSED:
                self._out.append(fx.StopSidecars(self.name))
            case ConnectorState.STOPPED:
                self.handout.works = {}
                self._out.append(fx.StopSidecars(self.name))
            case _:
                self.handout.works = {}
                self._out.append(fx.CleanUpDeleted(self.name, self.spec, self.handout.generation))

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
        self.handout.splits_done_since_plan = False
        self._out.append(
            fx.LoadPlan(
                self.name,
                self.handout.generation,
                self.plan_id,
                self.spec,
                self.handout.splits.plan_asked(),
                SPLITS_PER_PLAN_MAX,
                first=not self.connector.planned,
                restored=self._restored,
            )
        )

    def _planned(self, result: ev.SourcePlan | ev.SinkPlan, now_ms: int) -> None:
        self.plan_deadline_ms = None
        if isinstance(result, ev.SinkPlan):
            previous = {n: work.partitions for n, work in self.handout.works.items() if work is not None}
            dealt = assign_partitions(result.partitions, self.spec.tasks_max, previous)
            works: dict[int, ev.TaskWork | None] = {n: ev.TaskWork(partitions=kept) for n, kept in dealt.items()}
            replan_after_ms = result.replan_after_ms
            self.handout.caught_up = result.caught_up if self._restored else frozenset()
        else:
            plan = result.plan
            if self.spec.tasks_max_enforced and len(plan.tasks) > self.spec.tasks_max:
                message = (
                    f"The connector {self.name} has generated {len(plan.tasks)} tasks, which is greater than "
                    f"{self.spec.tasks_max}, the maximum number of tasks it is configured to create (tasks.max). Raise "
                    "tasks.max, or set tasks.max.enforce=false to run them all."
                )
                self._plan_failed(ev.Failure(ErrorClass.CONFIG, message), now_ms)
                return
            works = self._source_works(result)
            replan_after_ms = plan.replan_after_ms
            self._deferred = (*plan.retired, *plan.reached)
            self._more_splits = len(plan.splits) >= SPLITS_PER_PLAN_MAX
            self._complete = plan.complete
            self.handout.splits.planned(plan.splits)
        self.handout.replans = replan_after_ms > 0
        if self.handout.replans and not self._complete:
            self.replan_at_ms = now_ms + max(replan_after_ms, REPLAN_DELAY_MS_MIN)
        self._restored = False
        self._connector_input(ConnectorInput.PLANNED, now_ms)
        self.handout.set_works(works, now_ms)

    def _source_works(self, result: ev.SourcePlan) -> dict[int, ev.TaskWork | None]:
        works: dict[int, ev.TaskWork | None] = {n: ev.TaskWork(work) for n, work in enumerate(result.plan.tasks)}
        had_runners = any(work is None for work in self.handout.works.values())
        if self.spec.splits or result.plan.splits or had_runners:
            works.update(dict.fromkeys(range(len(works), self.spec.tasks_max)))
            if result.plan.splits and None not in works.values():
                # All numbers are taken by tasks without end: splits get a runner that REST doesn't show.
                works[max(len(works), self.spec.tasks_max)] = None
        return works

    def _plan_failed(self, failure: ev.Failure, now_ms: int) -> None:
        self.plan_deadline_ms = None
        self._connector_input(ConnectorInput.PLAN_FAILED, now_ms, failure)

    def _replan_for_splits(self) -> None:
        """Ask for more when the queue has run dry, or when all splits are done and something may follow them."""
        if not self._may_launch() or self.handout.splits.pending:
            return
        all_done = not self.handout.splits.active and self.handout.splits_done_since_plan and not self._complete
        if all_done or self._more_splits:
            self._more_splits = self.handout.splits_done_since_plan = False
            self.plan_wanted = True

    def _fingerprint(self) -> object:
        return self.connector, dict(self.handout.tasks), self.plan_wanted, len(self.handout.splits.pending)

    def _may_launch(self) -> bool:
        return self.connector.planned and self.connector.state in _MAY_LAUNCH and not self._around.closing

    # ---- status ------------------------------------------------------------------------------------------------

    def _publish(self) -> None:
        if self._around.closing:
            return  # what is shown outlives the process; the next one begins where it was
        now: dict[int | None, tuple[State, str]] = {}
        policy, tasks = self.spec.restart, self.handout.tasks
        if self.connector.shown is not None:
            now[None] = (self.connector.shown, retries.told(self.connector, policy, self.connector.shown))
        for number, task in tasks.items():
            # A runner of splits beyond tasks.max is our own affair.
            if task.shown is not None and number < self._tasks_shown_max:
                now[number] = (task.shown, retries.told(task, policy, task.shown))
        self._out += self._differences(now)
        self._published = now

    @property
    def _tasks_shown_max(self) -> int:
        if self.spec.tasks_max_enforced:
            return self.spec.tasks_max
        return max(self.spec.tasks_max, sum(work is not None for work in self.handout.works.values()))

    def _differences(self, now: dict[int | None, tuple[State, str]]) -> Iterable[fx.Effect]:
        for component, (state, trace) in now.items():
            if self._published.get(component) != (state, trace):
                yield fx.PublishStatus(self.name, component, state, trace, self.handout.generation)
        for component in self._published.keys() - now.keys():
            yield fx.PublishStatus(self.name, component, None, "", self.handout.generation)
