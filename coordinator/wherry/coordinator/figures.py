"""What leases count and say about themselves: for status pages and metrics, never for decisions.

Sums over the life of a lease; forgotten when it ends, but for a task's totals. Safe for use by many threads.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final

from wherry.control.v1 import lease_pb2

PHASES: Final = {
    lease_pb2.LEASE_PHASE_STARTING: "starting",
    lease_pb2.LEASE_PHASE_RUNNING: "running",
    lease_pb2.LEASE_PHASE_PAUSED: "paused",
    lease_pb2.LEASE_PHASE_DRAINING: "draining",
    lease_pb2.LEASE_PHASE_RETRYING: "retrying",
}
TOPICS_PER_REPORT_MAX: Final = 1_000


@dataclass(slots=True)
class LeaseFigures:
    """One lease's figures."""

    lease: str
    connector: str
    task: int
    generation: int
    worker: str
    started_ms: int
    phase: str = "starting"
    records_read: int = 0
    records_written: int = 0
    bytes_read: int = 0
    bytes_written: int = 0
    errors: int = 0
    lag: int | None = None
    trouble: str = ""
    sidecar_pids: tuple[int, ...] = field(default=())
    topics: dict[str, None] = field(default_factory=dict)
    topics_reset: bool = False
    """Whether its topics were forgotten since it used them last; a lease tells each only once."""


@dataclass(slots=True)
class Totals:
    """Sums over all leases of a task since the coordinator started."""

    records_read: int = 0
    records_written: int = 0
    errors: int = 0
    leases: int = 0
    failures: int = 0
    skipped: int = 0
    retries: int = 0
    logged: int = 0
    dead_letters: int = 0
    dead_letter_failures: int = 0
    last_error_ms: int = 0


class Figures:
    """Figures of all leases.

    Args:
        topic_used: Told each topic that a task uses for the first time in a lease: connector, task, topic.
    """

    def __init__(self, topic_used: Callable[[str, int, str], None]) -> None:
        self._topic_used = topic_used
        self._lock = threading.Lock()
        self._leases: dict[str, LeaseFigures] = {}
        self._totals: dict[tuple[str, int], Totals] = {}

    def opened(self, lease: str, connector: str, task: int, generation: int, worker: str) -> None:
        """A worker took up the lease."""
        with self._lock:
            self._leases[lease] = LeaseFigures(lease, connector, task, generation, worker, int(time.time() * 1000))
            self._totals.setdefault((connector, task), Totals()).leases += 1

    def reported(self, lease: str, report: lease_pb2.LeaseReport) -> None:
        """Add a report."""
        counts = report.counts
        with self._lock:
            figures = self._leases.get(lease)
            if figures is None:
                return
            figures.phase = PHASES.get(report.phase, figures.phase)
            figures.records_read += counts.records_read
            figures.records_written += counts.records_written
            figures.bytes_read += counts.bytes_read
            figures.bytes_written += counts.bytes_written
            figures.errors += counts.errors
            figures.lag = report.lag if report.HasField("lag") else None
            figures.trouble = report.trouble
            figures.sidecar_pids = tuple(report.sidecar_pids)
            totals = self._totals.setdefault((figures.connector, figures.task), Totals())
            totals.records_read += counts.records_read
            totals.records_written += counts.records_written
            totals.errors += counts.errors
            for name in ("failures", "skipped", "retries", "logged", "dead_letters", "dead_letter_failures"):
                setattr(totals, name, getattr(totals, name) + getattr(counts, name))
            totals.last_error_ms = max(totals.last_error_ms, counts.last_error_ms)
            used = list(report.topics[:TOPICS_PER_REPORT_MAX])
            figures.topics |= dict.fromkeys(used)
            if figures.topics_reset and (counts.records_read or counts.records_written):
                figures.topics_reset = False
                used = list(figures.topics)
        for topic in used:
            self._topic_used(figures.connector, figures.task, topic)

    def topics_reset(self, connector: str) -> None:
        """Tell the topics of a connector's leases again, once they have moved records after now."""
        with self._lock:
            for figures in self._leases.values():
                if figures.connector == connector:
                    figures.topics_reset = True

    def ended(self, lease: str) -> None:
        """Forget a lease."""
        with self._lock:
            self._leases.pop(lease, None)

    def forget(self, connector: str) -> None:
        """Forget a connector."""
        with self._lock:
            self._leases = {k: v for k, v in self._leases.items() if v.connector != connector}
            self._totals = {k: v for k, v in self._totals.items() if k[0] != connector}

    def get(self, lease: str) -> LeaseFigures | None:
        """Figures of a lease; None if it never opened or is over."""
        with self._lock:
            return self._leases.get(lease)

    def lags(self, connector: str) -> dict[int, int | None]:
        """What live leases have still to read, by task; None where it is not known."""
        with self._lock:
            return {each.task: each.lag for each in self._leases.values() if each.connector == connector}

    def totals(self, connector: str) -> dict[int, Totals]:
        """Sums by task."""
        with self._lock:
            return {task: totals for (name, task), totals in self._totals.items() if name == connector}
