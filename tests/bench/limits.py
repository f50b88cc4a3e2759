"""Every deadline, period and size of the harness, named in one place so that nothing waits for ever."""

from __future__ import annotations

SYSTEM_START_SECONDS = 120.0
SYSTEM_STOP_SECONDS = 30.0
CONNECTOR_RUNNING_SECONDS = 90.0
RUN_SECONDS = 600.0
"""The longest one measured run may take before it is given up."""

STALL_SECONDS = 60.0
"""A run whose destination has not moved for this long is given up."""

REST_TIMEOUT_SECONDS = 30.0

CPU_SAMPLE_SECONDS = 0.25
"""One scan of /proc costs about 3 ms; four a second keep the observer near one percent of a core."""

PSS_SAMPLE_SECONDS = 2.0
"""Reading smaps_rollup takes the process's memory map lock, so it is done rarely."""

PROGRESS_POLL_SECONDS = 0.02
SETTLE_SECONDS = 1.0
"""Quiet time before each run, so that the last run's checkpoint or garbage collection is not charged to the next."""

LATENCY_WARM_UP_SECONDS = 5.0
LATENCY_RATE_PER_SECOND = 50
LATENCY_DRAIN_SECONDS = 10.0

LOG_TAIL_LINES = 25
"""How much of a server's log is shown when it fails to start."""
