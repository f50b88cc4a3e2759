"""What a running lease is told, and whom it tells: the pump's inbox and its reporter.

The lease's control thread fills `Signals`; the pump reads it between batches. Nothing here calls the network.
"""

from __future__ import annotations

import dataclasses
import enum
import threading
from collections import deque
from collections.abc import Sequence
from typing import Final, Protocol

from wherry.contract.plan import Work
from wherry.contract.position import Position
from wherry.worker.counts import Counts

# Splits are asked for one at a time, so more answers than this under way mean a broken coordinator.
ASSIGNMENTS_MAX: Final = 16


class Phase(enum.IntEnum):
    """What a lease is doing; the numbers are those of the wire's LeasePhase."""

    STARTING = 1
    RUNNING = 2
    PAUSED = 3
    DRAINING = 4
    RETRYING = 5


class EndReason(enum.IntEnum):
    """Why a lease ended; the numbers are those of the wire's EndReason."""

    DRAINED = 1
    SPLITS_DONE = 2
    IDLE = 3
    FAILED = 4
    FENCED = 5


@dataclasses.dataclass(frozen=True, slots=True)
class Assignment:
    """The next split, or none.

    Attributes:
        work: The split; None when there is none and the lease is to end.
        positions: Positions to go on from.
    """

    work: Work | None
    positions: tuple[Position, ...] = ()


class Signals:
    """Inbox of a running lease. Every method may be called from any thread.

    A drain or a fence is never taken back; the first drain's deadline holds unless a later one is sooner.
    """

    def __init__(self, *, paused: bool = False) -> None:
        self._condition = threading.Condition()
        self._paused = paused
        self._drain_seconds: float | None = None
        self._fenced: str | None = None
        self._assignments: deque[Assignment] = deque()

    def pause(self, paused: bool) -> None:
        """Pauses the lease, or lets it go on."""
        with self._condition:
            self._paused = paused
            self._condition.notify_all()

    def drain(self, seconds: float) -> None:
        """Asks for an end in good order within so many seconds."""
        with self._condition:
            if self._drain_seconds is None or seconds < self._drain_seconds:
                self._drain_seconds = seconds
            self._condition.notify_all()

    def fence(self, message: str) -> None:
        """Stops the lease at once, without a commit; the message says why."""
        with self._condition:
            self._fenced = message
            self._condition.notify_all()

    def assign(self, assignment: Assignment) -> None:
        """Hands over the next split, or the news that there is none."""
        with self._condition:
            if len(self._assignments) >= ASSIGNMENTS_MAX:
                raise ValueError(f"more than {ASSIGNMENTS_MAX} splits were assigned without being asked for")
            self._assignments.append(assignment)
            self._condition.notify_all()

    @property
    def paused(self) -> bool:
        """Whether the lease is to rest."""
        return self._paused

    @property
    def drain_seconds(self) -> float | None:
        """Seconds given for the drain when it was asked for; None when it wasn't."""
        return self._drain_seconds

    @property
    def fenced(self) -> str | None:
        """Why the lease is fenced; None when it isn't."""
        return self._fenced

    def take_assignment(self) -> Assignment | None:
        """Takes the next assignment; None when there is none yet."""
        with self._condition:
            return self._assignments.popleft() if self._assignments else None

    def wait(self, timeout_s: float) -> None:
        """Sleeps until something changes, at most so long."""
        with self._condition:
            self._condition.wait(timeout_s)


class Reporter(Protocol):
    """Carries reports to the coordinator. Must not block for long: the pump calls it between batches."""

    def report(
        self,
        *,
        phase: Phase,
        positions: Sequence[Position] = (),
        counts: Counts | None = None,
        splits_done: Sequence[str] = (),
        want_split: bool = False,
        tokens: Sequence[bytes] = (),
        lag: int | None = None,
        trouble: str = "",
        topics: Sequence[str] = (),
    ) -> int:
        """Sends a report and returns its seq. Positions must be durable at the destination."""

    def committed_seq(self) -> int:
        """The highest seq whose positions the coordinator has committed; 0 before the first."""
