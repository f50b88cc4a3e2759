"""What the machine wants done. Data only; `runner.py` carries it out.

Effects of one connector that touch positions (ShutOut, StartLeases, GrantLease, AssignSplit, CommitReport,
StorePositions and the loading half of LoadPlan) are carried out in the order given; others are free to overtake.
"""

from __future__ import annotations

from dataclasses import dataclass

from wherry.contract.position import Position
from wherry.coordinator.api import State
from wherry.coordinator.events import ConnectorSpec, TaskWork


@dataclass(frozen=True, slots=True)
class LoadPlan:
    """Find out what there is to do; answered by Planned or PlanFailed with the same `plan_id`."""

    connector: str
    generation: int
    plan_id: int
    spec: ConnectorSpec
    splits_active: tuple[str, ...] = ()
    splits_max: int = 0
    first: bool = False
    """First plan of this generation: check that nobody else runs the connector."""
    restored: bool = False
    """Find out, too, which partitions of a sink hold nothing new."""


@dataclass(frozen=True, slots=True)
class LeaseStart:
    """One lease of a StartLeases."""

    lease: str
    task: int
    executor: str = ""
    """Where it would better run; empty leaves it to Spark."""


@dataclass(frozen=True, slots=True)
class StartLeases:
    """Run these leases as one Spark job."""

    connector: str
    generation: int
    leases: tuple[LeaseStart, ...]


@dataclass(frozen=True, slots=True)
class GrantLease:
    """Answer a LeaseOpening with everything the worker needs, at the positions committed now."""

    connector: str
    lease: str
    generation: int
    attempt: int
    request: int
    task: int
    spec: ConnectorSpec
    work: TaskWork
    wakes: bool = True
    """Something will wake the task if it is parked."""
    others_wait: bool = False
    """Leases wait for their turn to start: this one had better not stay for nothing."""


@dataclass(frozen=True, slots=True)
class RefuseLease:
    """Answer a LeaseOpening with FENCED."""

    connector: str
    lease: str
    request: int
    message: str


@dataclass(frozen=True, slots=True)
class DrainLease:
    """Tell a lease to come to an end in good order."""

    connector: str
    lease: str
    deadline_ms: int


@dataclass(frozen=True, slots=True)
class FenceLease:
    """Tell a lease, or an older attempt of it, to stop without committing. Attempts below `below_attempt` only."""

    connector: str
    lease: str
    generation: int
    below_attempt: int | None = None


@dataclass(frozen=True, slots=True)
class CancelLease:
    """Make Spark end the process of a lease; the last resort."""

    connector: str
    lease: str


@dataclass(frozen=True, slots=True)
class ShutOut:
    """The last worker of a task may come back: shut it out of its transactions before anything else is handed out."""

    connector: str
    spec: ConnectorSpec
    task: int


@dataclass(frozen=True, slots=True)
class AssignSplit:
    """Give a lease its next split, or None: there is no more."""

    connector: str
    lease: str
    work: TaskWork | None


@dataclass(frozen=True, slots=True)
class CommitReport:
    """Store the positions of a report, then tell the lease; on failure CommitFailed."""

    connector: str
    lease: str
    generation: int
    spec: ConnectorSpec
    seq: int
    positions: tuple[Position, ...]
    tokens: tuple[bytes, ...] = ()


@dataclass(frozen=True, slots=True)
class StorePositions:
    """Store positions a plan has reached; one without offset is forgotten."""

    connector: str
    spec: ConnectorSpec
    positions: tuple[Position, ...]


@dataclass(frozen=True, slots=True)
class StopSidecars:
    """Stop a connector's sidecars of generations below; 0 stops all."""

    connector: str
    below_generation: int = 0


@dataclass(frozen=True, slots=True)
class CleanUpDeleted:
    """The connector is gone: call OnDelete, stop its sidecars, forget its status and what is kept for it."""

    connector: str
    spec: ConnectorSpec
    generation: int


@dataclass(frozen=True, slots=True)
class WatchTask:
    """Send Woken when there are records beyond what is committed for the parked task of a sink."""

    connector: str
    task: int
    partitions: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class UnwatchTask:
    """Forget a WatchTask."""

    connector: str
    task: int


@dataclass(frozen=True, slots=True)
class PublishStatus:
    """Show a state; `task` None is the connector itself, `state` None takes the component away."""

    connector: str
    task: int | None
    state: State | None
    trace: str
    generation: int


Effect = (
    LoadPlan
    | StartLeases
    | GrantLease
    | RefuseLease
    | DrainLease
    | FenceLease
    | CancelLease
    | ShutOut
    | AssignSplit
    | CommitReport
    | StorePositions
    | StopSidecars
    | CleanUpDeleted
    | WatchTask
    | UnwatchTask
    | PublishStatus
)
