"""What is promised, and how long is waited before a run is given up: nothing here waits for ever."""

from __future__ import annotations

RECOVERY_S = 3.0
"""Promised: from the death of a sidecar or a worker to the next record at the destination."""

RECOVERY_IN_CI_S = 25.0
"""The same where a machine may stand still for seconds; what waited for a time-out would take longer all the same."""

UNDER_WAY_S = 1.0
"""How long after a fault records may still arrive that had been under way when it came."""

STOP_S = 25.0
"""From SIGTERM to a clean end, before the worker's own limit in these runs; by default that is 5 s."""

ORPHANS_S = 60.0
"""How long after the coordinator's death its processes may take to notice."""

OUTAGE_S = 10.0
FREEZE_S = 30.0
FIRST_RECORD_S = 180.0
STALL_S = 120.0
"""A run whose destination has not moved for this long is given up."""

FEED_S = 10.0
"""Records flow for this long, so that a fault meets a system at work and what comes after it can be seen."""

PROGRESS_POLL_S = 0.02
COMMITTED_POLL_S = 0.1
RECORDS_BY_HAND = 1_000_000
RECORDS_IN_CI = 100_000
EARLIEST_FAULT, LATEST_FAULT = 0.15, 0.75
"""Faults fall between these shares of the records."""
