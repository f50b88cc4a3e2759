"""What can happen to the coordinator, and the words its pure cores share.

Holds data only. Every event names its connector, so that the machine touches one connector per step. Time is not part
of an event: it is handed to `step` beside it.
"""

from __future__ import annotations

import enum
from collections.abc import Mapping
from dataclasses import dataclass, field

from wherry.contract.errors import ErrorClass
from wherry.contract.plan import Plan, Work
from wherry.contract.position import Position
from wherry.coordinator.api import TargetState


class Kind(enum.Enum):
    """Which way a connector moves records."""

    SOURCE = "source"
    SINK = "sink"


@dataclass(frozen=True, slots=True)
class RestartPolicy:
    """How failed tasks and connectors are started again by themselves.

    Restart n (from 1) comes after `base_ms * (n² + n) / 2`, at most `delay_ms_max`, plus up to a tenth of jitter.
    """

    enabled: bool = True
    restarts_max: int = 10
    """Restarts in a row until it is given up; -1 never gives up."""
    base_ms: int = 1_000
    delay_ms_max: int = 60_000
    healthy_ms: int = 120_000
    """A lease that ran so long proves that the restart helped: counting begins anew."""


@dataclass(frozen=True, slots=True)
class ConnectorSpec:
    """A connector as the machine needs to know it. Equal specs mean that nothing has to be done."""

    name: str
    kind: Kind
    config: Mapping[str, str]
    tasks_max: int = 1
    splits: bool = False
    """The class plans bounded splits: all `tasks_max` tasks are shown, whatever there is to do now."""
    restart: RestartPolicy = field(default_factory=RestartPolicy)
    exactly_once: bool = False
    """A source whose workers commit in transactions: one that was lost is shut out before its work goes on."""
    tasks_max_enforced: bool = True
    """More tasks than `tasks_max` are refused; otherwise they run, with a warning."""
    placeholders: Mapping[str, str] = field(default_factory=dict)
    """What was written in the place of those values of `config` that a provider told; tasks are stored with it."""


@dataclass(frozen=True, slots=True)
class Failure:
    """Why something failed."""

    error_class: ErrorClass
    message: str
    trace: str = ""

    @property
    def text(self) -> str:
        """What a status shows."""
        return f"{self.message}\n{self.trace}" if self.trace else self.message


@dataclass(frozen=True, slots=True)
class TaskWork:
    """What one task does: a source's work (a task, or the split to begin with), or the partitions of a sink."""

    work: Work | None = None
    split: bool = False
    partitions: tuple[str, ...] = ()


class EndReason(enum.Enum):
    """Why a lease ended, in its own words."""

    DRAINED = "drained"
    SPLITS_DONE = "splits done"
    IDLE = "idle"
    FAILED = "failed"
    FENCED = "fenced"


@dataclass(frozen=True, slots=True)
class SourcePlan:
    """A source said what there is to do."""

    plan: Plan


@dataclass(frozen=True, slots=True)
class SinkPlan:
    """The topic partitions a sink's topics have now, as compact JSON."""

    partitions: tuple[str, ...]
    replan_after_ms: int = 0
    caught_up: frozenset[str] = frozenset()
    """Those that hold nothing which was not written already; told of connectors that are taken up again only."""


# ---- events: from the outside ---------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class ConnectorPut:
    """A connector was created, or its configuration was written; `target` counts for a new one only."""

    connector: str
    spec: ConnectorSpec
    target: TargetState = TargetState.STARTED
    restored: bool = False
    """It was there before this process: what has nothing to do waits parked, without proving that it could start."""


@dataclass(frozen=True, slots=True)
class ConnectorDeleted:
    """A connector was deleted."""

    connector: str


@dataclass(frozen=True, slots=True)
class TargetSet:
    """A connector is wanted running, paused or stopped."""

    connector: str
    target: TargetState


@dataclass(frozen=True, slots=True)
class ConnectorRestarted:
    """Someone asked for a restart."""

    connector: str
    include_tasks: bool = False
    only_failed: bool = False


@dataclass(frozen=True, slots=True)
class TaskRestarted:
    """Someone asked for the restart of one task."""

    connector: str
    task: int


@dataclass(frozen=True, slots=True)
class ConnectorFailed:
    """A connector's sidecar reported that the connector as a whole has failed, or its class could not be resolved."""

    connector: str
    failure: Failure


# ---- events: results of effects --------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Planned:
    """LoadPlan succeeded."""

    connector: str
    plan_id: int
    result: SourcePlan | SinkPlan


@dataclass(frozen=True, slots=True)
class PlanFailed:
    """LoadPlan failed."""

    connector: str
    plan_id: int
    failure: Failure


@dataclass(frozen=True, slots=True)
class PlanChanged:
    """A plan would be another now: a sidecar said so, or partitions appeared."""

    connector: str
    reason: str = ""


@dataclass(frozen=True, slots=True)
class CommitFailed:
    """Positions could not be stored."""

    connector: str
    lease: str
    failure: Failure


@dataclass(frozen=True, slots=True)
class Woken:
    """There is something to do for a parked task."""

    connector: str
    task: int


# ---- events: from leases ---------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class LeaseOpening:
    """A worker wants to take up a lease; `request` is answered by GrantLease or RefuseLease."""

    connector: str
    lease: str
    generation: int
    attempt: int
    request: int
    worker: str = ""
    executor: str = ""
    """Spark's id of the executor that runs it; empty where there is none."""


@dataclass(frozen=True, slots=True)
class LeaseReported:
    """A lease says where it stands; its positions are durable at the destination."""

    connector: str
    lease: str
    attempt: int
    seq: int = 0
    positions: tuple[Position, ...] = ()
    tokens: tuple[bytes, ...] = ()
    splits_done: tuple[str, ...] = ()
    want_split: bool = False
    trouble: str = ""
    started: bool = True
    """It no longer waits for its sidecar."""


@dataclass(frozen=True, slots=True)
class LeaseEnded:
    """A lease is over by its own word. `attempt` -1 comes from the result row, and counts for any attempt."""

    connector: str
    lease: str
    attempt: int
    reason: EndReason
    failure: Failure | None = None


@dataclass(frozen=True, slots=True)
class LeaseLost:
    """The process of a lease is gone: its Spark job ended without its word."""

    connector: str
    lease: str
    message: str


# ---- events: without a connector -------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class EngineUp:
    """Spark can run leases."""


@dataclass(frozen=True, slots=True)
class EngineDown:
    """Spark cannot run leases; `permanent` when only a person can change that."""

    failure: Failure
    permanent: bool = False


@dataclass(frozen=True, slots=True)
class Executor:
    """Where leases can run."""

    id: str
    slots: int
    """How many leases side by side."""


@dataclass(frozen=True, slots=True)
class ExecutorsSeen:
    """All of Spark's executors; none where leases run beside the driver."""

    executors: tuple[Executor, ...]


@dataclass(frozen=True, slots=True)
class Tick:
    """Time has passed."""


@dataclass(frozen=True, slots=True)
class LeadershipGiven:
    """This coordinator leads now; generations go on above `generation`, and so above those of its forerunner."""

    generation: int


@dataclass(frozen=True, slots=True)
class LeadershipLost:
    """Another coordinator leads: all work is dropped, and nothing more is committed or told."""


@dataclass(frozen=True, slots=True)
class ShutdownAsked:
    """The coordinator is to end: every lease is drained and nothing starts any more."""


ConnectorEvent = (
    ConnectorPut
    | ConnectorDeleted
    | TargetSet
    | ConnectorRestarted
    | TaskRestarted
    | ConnectorFailed
    | Planned
    | PlanFailed
    | PlanChanged
    | CommitFailed
    | Woken
    | LeaseOpening
    | LeaseReported
    | LeaseEnded
    | LeaseLost
)
Event = ConnectorEvent | EngineUp | EngineDown | ExecutorsSeen | Tick | LeadershipGiven | LeadershipLost | ShutdownAsked
