"""What the worker's configuration says of the engine's manners: how long leases may be silent, how failures restart.

Translates settings, and nothing else.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Final

from wherry.coordinator import events as ev
from wherry.coordinator.config import sparkmaster
from wherry.coordinator.config.worker import WorkerConfig
from wherry.coordinator.executors import own_address
from wherry.coordinator.grants import LeaseTimings
from wherry.coordinator.lease import LeaseTimes
from wherry.coordinator.sparksettings import SparkSettings
from wherry.coordinator.spread import SpreadTimes

WINDOWS_OF_REST: Final = 10
REST_MS_MIN: Final = 10_000
STARTS_MIN: Final = 4
STARTS_PER_CORE: Final = 2
STOP_MS_MIN: Final = 5_000
"""SIGTERM leaves so long in all; more where the worker's configuration gives tasks more."""
AFTER_DRAIN_MS: Final = 1_500
"""Of that is left when the leases have drained."""


def stop_ms(worker: WorkerConfig) -> int:
    """How long the whole worker may take to end."""
    return max(worker.shutdown_timeout_ms, STOP_MS_MIN)


def drain_ms(worker: WorkerConfig) -> int:
    """How long a lease may take to end."""
    return min(worker.shutdown_timeout_ms, stop_ms(worker) - AFTER_DRAIN_MS)


def lease_times(worker: WorkerConfig) -> LeaseTimes:
    """How long leases may be silent, from the worker's configuration."""
    return LeaseTimes(
        silence_ms=int(worker.parsed["wherry.lease.timeout.ms"]),
        drain_ms=drain_ms(worker),
        drain_grace_ms=500,
    )


def lease_timings(worker: WorkerConfig) -> LeaseTimings:
    """What leases are told about time, from the worker's configuration."""
    return LeaseTimings(
        report_interval_ms=int(worker.parsed["wherry.lease.report.interval.ms"]),
        commit_interval_ms=worker.offset_flush_interval_ms,
        idle_park_ms=int(worker.parsed["wherry.idle.park.ms"]),
        coordinator_timeout_ms=int(worker.parsed["wherry.lease.timeout.ms"]),
        drain_timeout_ms=drain_ms(worker),
    )


def restart_policy(worker: WorkerConfig) -> ev.RestartPolicy:
    """How failures are followed by restarts, from the worker's configuration."""
    return ev.RestartPolicy(
        enabled=bool(worker.parsed["wherry.restart.enabled"]),
        restarts_max=int(worker.parsed["wherry.restart.max"]),
        base_ms=int(worker.parsed["wherry.restart.base.ms"]),
        delay_ms_max=int(worker.parsed["wherry.restart.delay.max.ms"]),
        healthy_ms=int(worker.parsed["wherry.restart.healthy.ms"]),
    )


def starts_max(worker: WorkerConfig) -> int:
    """How many leases start at once on each machine: by default so many that its cores are busy, and not fought for."""
    return int(worker.parsed["wherry.lease.starts.max"]) or max(STARTS_MIN, STARTS_PER_CORE * (os.cpu_count() or 1))


def spread_times(worker: WorkerConfig) -> SpreadTimes:
    """How calmly leases are moved between executors: a task that was moved stays for ten windows, and ten seconds."""
    window_ms = int(worker.parsed["wherry.rebalance.window.ms"])
    return SpreadTimes(window_ms, max(WINDOWS_OF_REST * window_ms, REST_MS_MIN))


def spark_settings(worker: WorkerConfig, run_directory: Path, fallback_host: str) -> SparkSettings:
    """How Spark is started, and by which address its executors reach the driver and the coordinator.

    Raises:
        ConfigError: Its master can't be used as things are.
    """
    master, own = worker.spark_master, worker.spark_settings
    sparkmaster.check(master, own, os.environ)
    host = own.get("spark.driver.host") or (
        "" if sparkmaster.runs_locally(master) else own_address(master, fallback_host)
    )
    return SparkSettings(master, own, run_directory, host=host)


def standby_is_warm(worker: WorkerConfig) -> bool:
    """Whether Spark runs where no connectors do.

    On a cluster only where that was asked for in so many words: an application takes all cores that it may have, also
    while it has nothing to do, and the leader would get none.
    """
    if "wherry.standby" in worker.values or sparkmaster.runs_locally(worker.spark_master):
        return bool(worker.parsed["wherry.standby"] == "warm")
    return False
