"""What the worker's configuration says of the engine's manners: how long leases may be silent, how failures restart.

Translates settings, and nothing else.
"""

from __future__ import annotations

from typing import Final

from wherry.coordinator import events as ev
from wherry.coordinator.config.worker import WorkerConfig
from wherry.coordinator.grants import LeaseTimings
from wherry.coordinator.lease import LeaseTimes

DRAIN_MS_MAX: Final = 3_500
"""SIGTERM leaves 5 s in all."""


def lease_times(worker: WorkerConfig) -> LeaseTimes:
    """How long leases may be silent, from the worker's configuration."""
    return LeaseTimes(
        silence_ms=int(worker.parsed["wherry.lease.timeout.ms"]),
        drain_ms=min(worker.shutdown_timeout_ms, DRAIN_MS_MAX),
        drain_grace_ms=500,
    )


def lease_timings(worker: WorkerConfig) -> LeaseTimings:
    """What leases are told about time, from the worker's configuration."""
    return LeaseTimings(
        report_interval_ms=int(worker.parsed["wherry.lease.report.interval.ms"]),
        commit_interval_ms=worker.offset_flush_interval_ms,
        idle_park_ms=int(worker.parsed["wherry.idle.park.ms"]),
        coordinator_timeout_ms=int(worker.parsed["wherry.lease.timeout.ms"]),
        drain_timeout_ms=min(worker.shutdown_timeout_ms, DRAIN_MS_MAX),
    )


def restart_policy(worker: WorkerConfig) -> ev.RestartPolicy:
    """How failures are followed by restarts, from the worker's configuration."""
    return ev.RestartPolicy(
        enabled=bool(worker.parsed["wherry.restart.enabled"]),
        restarts_max=int(worker.parsed["wherry.restart.max"]),
        base_ms=int(worker.parsed["wherry.restart.base.ms"]),
        delay_ms_max=int(worker.parsed["wherry.restart.delay.max.ms"]),
    )
