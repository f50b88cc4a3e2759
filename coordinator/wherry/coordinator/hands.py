"""Carries out what the machine wants: one method for each kind of effect.

Called in the machine's thread, so everything that may wait goes to a lane. The lane `(connector, "positions")` keeps
the order that commits need: a lease is started, granted or given a split only after every commit before it is done.
Plans and sidecars have a lane of their own, so that a sidecar that hangs holds up no commit.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass, field, replace
from functools import singledispatchmethod
from typing import Final

import grpc
from opentelemetry.trace import Span

from wherry.contract import trace
from wherry.contract.errors import GRPC_CODES, WherryError
from wherry.contract.position import Position
from wherry.control.v1 import lease_pb2
from wherry.coordinator import effects as fx
from wherry.coordinator import events as ev
from wherry.coordinator.api import State
from wherry.coordinator.commits import PositionKeeper
from wherry.coordinator.control import ControlServer
from wherry.coordinator.exactly_once import Fencer
from wherry.coordinator.figures import Figures
from wherry.coordinator.grants import Grants
from wherry.coordinator.hosts import HostClient
from wherry.coordinator.planner import Planner, failure_of
from wherry.coordinator.runner import Lanes
from wherry.coordinator.spark import SparkEngine
from wherry.coordinator.staged import StagedCommits
from wherry.coordinator.store import ConfigStore, StatusStore, StoredStatus
from wherry.coordinator.traces import Traces
from wherry.coordinator.watcher import Watcher

log = logging.getLogger(__name__)

DELETE_DEADLINE_S: Final = 5.0


@dataclass(slots=True)
class Hands:
    """Everything that effects need."""

    post: Callable[[ev.Event], None]
    lanes: Lanes
    control: ControlServer
    spark: SparkEngine
    hosts: HostClient
    keeper: PositionKeeper
    staged: StagedCommits
    planner: Planner
    watcher: Watcher
    grants: Grants
    figures: Figures
    configs: ConfigStore
    statuses: StatusStore
    worker_id: str
    traces: Traces = field(default_factory=Traces)
    fencer: Fencer | None = None

    def carry_out(self, effect: fx.Effect) -> None:
        """Start carrying out an effect; returns at once."""
        self._do(effect)

    @singledispatchmethod
    def _do(self, effect: fx.Effect) -> None:
        raise TypeError(f"no hand for {type(effect).__name__}")

    def _in_order(self, connector: str, act: Callable[[], None]) -> None:
        self.lanes.submit((connector, "positions"), act)

    def _span(self, name: str, connector: str) -> AbstractContextManager[Span]:
        return trace.span(name, parent=self.traces.parent(connector), attributes={"wherry.connector": connector})

    def _aside(self, connector: str, act: Callable[[], None]) -> None:
        self.lanes.submit((connector, "plan"), act)

    # ---- plans ---------------------------------------------------------------------------------------------------

    @_do.register
    def _(self, effect: fx.LoadPlan) -> None:
        def load() -> None:
            try:
                if effect.spec.exactly_once and self.fencer is not None and effect.first:
                    self.fencer.owe_round(effect.spec)
                self._settle_fences(effect.connector)
                positions = self.keeper.load(effect.spec) if effect.spec.kind is ev.Kind.SOURCE else []
            except Exception as error:
                self._plan_failed(effect, error)
                return
            self._aside(effect.connector, lambda: plan(positions))

        def plan(positions: list[Position]) -> None:
            try:
                with self._span("plan", effect.connector):
                    result = self.planner.plan(effect, positions)
                self._keep_task_configs(effect.spec, result)
                self._expect_tasks(effect, result)
            except Exception as error:
                self._plan_failed(effect, error)
                return
            if isinstance(result, ev.SinkPlan):
                self.watcher.follow(effect.connector, effect.spec.config, result.partitions)
            self.post(ev.Planned(effect.connector, effect.plan_id, result))

        self._in_order(effect.connector, load)

    def _plan_failed(self, effect: fx.LoadPlan, error: Exception) -> None:
        if not isinstance(error, WherryError):
            log.exception("Planning %s failed in an unforeseen way", effect.connector)
        self.post(ev.PlanFailed(effect.connector, effect.plan_id, failure_of(error)))

    def _keep_task_configs(self, spec: ev.ConnectorSpec, result: ev.SourcePlan | ev.SinkPlan) -> None:
        """Write the task configurations that REST shows, when they are others than before."""
        if isinstance(result, ev.SourcePlan) and len(result.plan.tasks) > spec.tasks_max:
            if spec.tasks_max_enforced:
                return  # the plan is refused
            log.warning(
                "The connector %s has generated %d tasks, more than tasks.max=%d; all run (tasks.max.enforce=false)",
                spec.name, len(result.plan.tasks), spec.tasks_max,
            )  # fmt: skip
        task_class = {"task.class": task_class_of(self.grants.description(spec).class_name)}
        config = {**spec.config, **spec.placeholders}
        tasks: list[dict[str, str]] = []
        if isinstance(result, ev.SourcePlan):
            tasks = [{**(work.config or config), **task_class} for work in result.plan.tasks]
        if isinstance(result, ev.SinkPlan) or spec.splits or result.plan.splits:
            tasks += [{**config, **task_class} for _ in range(len(tasks), spec.tasks_max)]
        stored = self.configs.snapshot().connectors.get(spec.name)
        if stored is not None and [dict(task) for task in stored.tasks] != tasks:
            self.configs.put_task_configs(spec.name, tasks)

    def _expect_tasks(self, effect: fx.LoadPlan, result: ev.SourcePlan | ev.SinkPlan) -> None:
        """Say how many transactional ids the plan's tasks use, before the first of them begins."""
        spec = effect.spec
        if not spec.exactly_once or self.fencer is None or not isinstance(result, ev.SourcePlan):
            return
        # Splits have up to tasks.max runners, and one more where all numbers are taken by tasks without end.
        most = max(spec.tasks_max, len(result.plan.tasks))
        runners = most + 1 if spec.splits or result.plan.splits else 0
        self.fencer.expect(spec, max(len(result.plan.tasks), runners), first=effect.first)

    def _settle_fences(self, connector: str) -> None:
        if self.fencer is not None:
            self.fencer.settle(connector)

    @_do.register
    def _(self, effect: fx.ShutOut) -> None:
        def shut_out() -> None:
            if self.fencer is None:
                return
            self.fencer.owe(effect.spec, (effect.task,))
            try:
                self.fencer.settle(effect.connector)
            except WherryError as error:
                # Nothing is handed out before it has been done.
                log.warning("The last worker of %s-%d is not shut out yet: %s", effect.connector, effect.task, error)

        self._in_order(effect.connector, shut_out)

    @_do.register
    def _(self, effect: fx.StopSidecars) -> None:
        def stop() -> None:
            self.watcher.forget(effect.connector)
            self.planner.release(effect.connector)
            try:
                self.hosts.stop_connector(effect.connector, effect.below_generation)
            except WherryError as error:
                log.warning("Sidecars of %s could not be stopped: %s", effect.connector, error)

        self._aside(effect.connector, stop)

    @_do.register
    def _(self, effect: fx.CleanUpDeleted) -> None:
        def clean_up() -> None:
            self.watcher.forget(effect.connector)
            self.figures.forget(effect.connector)
            if self.fencer is not None:
                self.fencer.forget(effect.connector)
            self.traces.forget(effect.connector)
            try:
                self.planner.on_delete(effect.spec, effect.generation)
                self.hosts.stop_connector(effect.connector, deadline_s=DELETE_DEADLINE_S)
            except WherryError as error:
                log.warning("What %s held outside may not be released: %s", effect.connector, error)

        self._aside(effect.connector, clean_up)
        self.lanes.submit((effect.connector, "status"), lambda: self.statuses.remove(effect.connector))

    # ---- leases --------------------------------------------------------------------------------------------------

    @_do.register
    def _(self, effect: fx.StartLeases) -> None:
        def start() -> None:
            with self._span("lease.start", effect.connector):
                specs = [(lease.lease, self._spec_of(effect, lease)) for lease in effect.leases]
            tasks = ",".join(str(lease.task) for lease in effect.leases)
            places = [lease.executor for lease in effect.leases]
            self.spark.submit(effect.connector, specs, f"{effect.connector}/{tasks}", places)

        self._in_order(effect.connector, start)

    def _spec_of(self, effect: fx.StartLeases, lease: fx.LeaseStart) -> bytes:
        spec = lease_pb2.LeaseSpec(
            lease_id=lease.lease,
            connector=effect.connector,
            generation=effect.generation,
            coordinator_endpoints=self.control.endpoints,
            token=self.control.token,
            traceparent=trace.current_traceparent(),
            coordinator_certificate=self.control.certificate,
        )
        return bytes(spec.SerializeToString())

    @_do.register
    def _(self, effect: fx.GrantLease) -> None:
        def grant() -> None:
            if not self.control.waits(effect.request):
                return  # it has asked again meanwhile; while a broker is away such questions would pile up
            try:
                self.keeper.may_write()  # Invariant 2: what a deposed leader hands out, another one hands out too.
                self._settle_fences(effect.connector)
                if self.grants.stages(effect.spec):
                    self.staged.recover(effect.spec, effect.generation)
                response = self.grants.lease(effect, self.keeper.load_for(effect.spec, effect.work))
            except WherryError as error:
                self.control.refuse(effect.request, error.message, GRPC_CODES[error.error_class])
            except Exception as error:
                log.exception("Lease %s could not be granted", effect.lease)
                self.control.refuse(effect.request, failure_of(error).message, grpc.StatusCode.INTERNAL)
            else:
                self.control.grant(effect.request, response)

        self._in_order(effect.connector, grant)

    @_do.register
    def _(self, effect: fx.RefuseLease) -> None:
        self.control.refuse(effect.request, effect.message)

    @_do.register
    def _(self, effect: fx.DrainLease) -> None:
        self.control.drain(effect.lease, effect.deadline_ms)

    @_do.register
    def _(self, effect: fx.FenceLease) -> None:
        self.control.fence(effect.lease, effect.generation, effect.below_attempt)
        if effect.below_attempt is None:
            self.figures.ended(effect.lease)

    @_do.register
    def _(self, effect: fx.CancelLease) -> None:
        self.spark.cancel(effect.lease)

    @_do.register
    def _(self, effect: fx.AssignSplit) -> None:
        def assign() -> None:
            positions: list[Position] = []
            if effect.work is not None and effect.work.work is not None:
                try:
                    self._settle_fences(effect.connector)
                    positions = self.keeper.load_source(effect.connector, effect.work.work.partitions)
                except WherryError as error:
                    # Without its positions the split can't be begun: the lease ends, and both are handed out anew.
                    log.warning("No split for lease %s: %s", effect.lease, error)
                    self.post(ev.CommitFailed(effect.connector, effect.lease, failure_of(error)))
                    return
            self.control.assign(effect.lease, effect.work, positions)

        self._in_order(effect.connector, assign)

    # ---- positions -----------------------------------------------------------------------------------------------

    @_do.register
    def _(self, effect: fx.CommitReport) -> None:
        def commit() -> None:
            try:
                with self._span("commit", effect.connector):
                    if effect.tokens:
                        self.staged.commit(effect)
                    else:
                        self.keeper.commit(effect.spec, effect.positions, in_transaction=effect.spec.exactly_once)
            except Exception as error:
                log.warning("Positions of %s could not be committed: %s", effect.connector, error)
                self.post(ev.CommitFailed(effect.connector, effect.lease, failure_of(error)))
                return
            self.control.committed(effect.lease, effect.seq)

        self._in_order(effect.connector, commit)

    @_do.register
    def _(self, effect: fx.StorePositions) -> None:
        def store() -> None:
            try:
                self.keeper.commit(effect.spec, effect.positions)
            except WherryError as error:
                # The next plan says the same again.
                log.warning("Positions that %s has reached could not be stored: %s", effect.connector, error)

        self._in_order(effect.connector, store)

    @_do.register
    def _(self, effect: fx.WatchTask) -> None:
        def watch() -> None:
            self.watcher.watch(effect.connector, effect.task, effect.partitions)
            # Held to apply what was staged; a parked task keeps no sidecar.
            self.planner.release(effect.connector)

        self._in_order(effect.connector, watch)

    @_do.register
    def _(self, effect: fx.UnwatchTask) -> None:
        self._in_order(effect.connector, lambda: self.watcher.unwatch(effect.connector, effect.task))

    # ---- status --------------------------------------------------------------------------------------------------

    @_do.register
    def _(self, effect: fx.PublishStatus) -> None:
        def publish() -> None:
            if effect.state is None:
                if effect.task is not None:
                    self.statuses.remove(effect.connector, effect.task)
                return
            told = StoredStatus(
                effect.connector, effect.task, effect.state, self.worker_id, effect.generation, effect.trace
            )
            self.statuses.put(told)
            if effect.task is None and effect.state is State.PAUSED:
                self._pause_what_others_ran(told)

        self.lanes.submit((effect.connector, "status"), publish)

    def _pause_what_others_ran(self, connector: StoredStatus) -> None:
        """A coordinator that was paused before it had a plan knows no tasks; those of the former leader are at rest."""
        for task in self.statuses.tasks(connector.connector):
            if task.worker_id != self.worker_id and task.state not in (State.PAUSED, State.FAILED):
                self.statuses.put(replace(connector, task=task.task))


def task_class_of(class_name: str) -> str:
    """Name of the task class that Kafka Connect's connector would have."""
    return f"{class_name.removesuffix('Connector')}Task"
