"""One lease: permission to run one task, under one generation, from hand-out to end.

Decides how long silence is borne and which attempt speaks for the lease. Never starts or stops anything itself.

Invariants: an ENDED lease stays ended (Invariant 2: whoever holds an older lease moves no position); only the highest
attempt that opened is listened to; every state but ENDED has a deadline, so every lease ends in finitely many ticks.
"""

from __future__ import annotations

import enum
from dataclasses import dataclass, replace
from typing import Final

from wherry.coordinator.effects import CancelLease, DrainLease, Effect, FenceLease


class LeasePhase(enum.Enum):
    """Where a lease is in its life."""

    LAUNCHING = "launching"
    RUNNING = "running"
    DRAINING = "draining"
    ENDED = "ended"


class LeaseInput(enum.Enum):
    """What can happen to a lease."""

    OPENED = "opened"
    REPORTED = "reported"
    DRAIN_ASKED = "drain asked"
    ENDED = "ended"
    LOST = "lost"
    TIMED_OUT = "timed out"


_P = LeasePhase
_I = LeaseInput
TRANSITIONS: Final[dict[tuple[LeasePhase, LeaseInput], LeasePhase]] = {
    (_P.LAUNCHING, _I.OPENED): _P.RUNNING,
    (_P.LAUNCHING, _I.DRAIN_ASKED): _P.ENDED,  # nobody has taken it up, and nobody will: OPENED is refused now
    (_P.LAUNCHING, _I.ENDED): _P.ENDED,
    (_P.LAUNCHING, _I.LOST): _P.ENDED,
    (_P.LAUNCHING, _I.TIMED_OUT): _P.ENDED,
    (_P.RUNNING, _I.OPENED): _P.RUNNING,  # Spark ran the task once more: the new attempt takes over
    (_P.RUNNING, _I.REPORTED): _P.RUNNING,
    (_P.RUNNING, _I.DRAIN_ASKED): _P.DRAINING,
    (_P.RUNNING, _I.ENDED): _P.ENDED,
    (_P.RUNNING, _I.LOST): _P.ENDED,
    (_P.RUNNING, _I.TIMED_OUT): _P.ENDED,
    (_P.DRAINING, _I.REPORTED): _P.DRAINING,
    (_P.DRAINING, _I.DRAIN_ASKED): _P.DRAINING,
    (_P.DRAINING, _I.ENDED): _P.ENDED,
    (_P.DRAINING, _I.LOST): _P.ENDED,
    (_P.DRAINING, _I.TIMED_OUT): _P.ENDED,
}
"""Everything else is refused: `step` answers None. A lease told to drain is not opened any more."""


@dataclass(frozen=True, slots=True)
class LeaseTimes:
    """How long each phase may be silent, in ms."""

    launch_ms: int = 60_000
    """Waiting for a Spark slot and a worker."""
    silence_ms: int = 10_000
    """Between two reports."""
    drain_ms: int = 5_000
    drain_grace_ms: int = 1_000
    """After the drain's deadline, for its last word to arrive."""


@dataclass(frozen=True, slots=True)
class Lease:
    """A lease and what is known of it."""

    id: str
    connector: str
    generation: int
    task: int
    phase: LeasePhase
    deadline_ms: int
    attempt: int = -1
    """Highest attempt that opened; -1 before the first."""
    opened_ms: int = 0
    split: str | None = None
    """Id of the split being read."""
    worker: str = ""
    """host:pid of the process that has taken it up."""
    executor: str = ""
    """Spark's id of the executor that process belongs to; empty where it has none."""
    trouble: str = ""

    @property
    def live(self) -> bool:
        """Whether someone may still be running it."""
        return self.phase is not LeasePhase.ENDED


def launch(
    *, lease_id: str, connector: str, generation: int, task: int, split: str | None, now_ms: int, times: LeaseTimes
) -> Lease:
    """A lease that is about to be handed to Spark."""
    deadline_ms = now_ms + times.launch_ms
    return Lease(lease_id, connector, generation, task, LeasePhase.LAUNCHING, deadline_ms, split=split)


def accepts(lease: Lease, attempt: int) -> bool:
    """Whether an attempt may speak for the lease: only the newest one, and not after the end."""
    return lease.live and attempt == lease.attempt


def step(
    lease: Lease, given: LeaseInput, now_ms: int, times: LeaseTimes, *, attempt: int = -1
) -> tuple[Lease, tuple[Effect, ...]] | None:
    """The lease afterwards and what is to be done; None when the input makes no sense now.

    `attempt` counts for OPENED only.
    """
    phase = TRANSITIONS.get((lease.phase, given))
    if phase is None or (given is LeaseInput.OPENED and attempt < lease.attempt):
        return None
    match given:
        case LeaseInput.OPENED:
            return _opened(lease, attempt, now_ms, times)
        case LeaseInput.REPORTED:
            # A draining lease may report, but that doesn't give it more time.
            deadline_ms = now_ms + times.silence_ms if phase is LeasePhase.RUNNING else lease.deadline_ms
            return replace(lease, deadline_ms=deadline_ms), ()
        case LeaseInput.DRAIN_ASKED:
            if lease.phase is LeasePhase.DRAINING:
                return lease, ()
            deadline_ms = now_ms + times.drain_ms + times.drain_grace_ms
            draining = replace(lease, phase=phase, deadline_ms=deadline_ms)
            effects = () if lease.phase is LeasePhase.LAUNCHING else (_drain(lease, times),)
            return draining, effects
        case LeaseInput.TIMED_OUT:
            return replace(lease, phase=phase), (_fence(lease), CancelLease(lease.connector, lease.id))
        case LeaseInput.LOST:
            # Its worker may live where Spark doesn't reach it.
            return replace(lease, phase=phase), (_fence(lease),)
        case LeaseInput.ENDED:
            return replace(lease, phase=phase), ()


def _fence(lease: Lease) -> Effect:
    return FenceLease(lease.connector, lease.id, lease.generation)


def _drain(lease: Lease, times: LeaseTimes) -> Effect:
    return DrainLease(lease.connector, lease.id, times.drain_ms)


def _opened(lease: Lease, attempt: int, now_ms: int, times: LeaseTimes) -> tuple[Lease, tuple[Effect, ...]]:
    effects: tuple[Effect, ...] = ()
    if lease.attempt >= 0 and attempt > lease.attempt:
        effects = (FenceLease(lease.connector, lease.id, lease.generation, below_attempt=attempt),)
    opened = replace(
        lease,
        phase=LeasePhase.RUNNING,
        attempt=attempt,
        opened_ms=lease.opened_ms or now_ms,
        deadline_ms=now_ms + times.silence_ms,  # it reports from now on, also while it waits for its sidecar
    )
    return opened, effects
