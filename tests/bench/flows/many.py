"""Many idle connectors: sinks of a topic that holds nothing, created one after another over REST.

`--records` is their number. Measured: until all of them run, what REST takes to tell of all, and what they cost while
nothing moves. Kafka Connect keeps threads and consumers for each; Wherry parks them after `wherry.idle.park.ms`.
"""

from __future__ import annotations

import time
from pathlib import Path

from tests.bench import load
from tests.bench.figures import OTHER_CPU, Figure
from tests.bench.flows.flow import Flow, Outcome
from tests.bench.measure import Sampler, percentile
from tests.bench.processes import BenchError
from tests.bench.site import Site
from tests.bench.systems import System, WorkerSettings

CONNECTORS = 1_000
STATUS_PATH = "/connectors?expand=status&expand=info"
ASKED_TIMES = 20
IDLE_SECONDS = 20.0
PARK_MS = 5_000
WARM_SECONDS = 5.0
"""After the system says that it is healthy, for what it does by itself then."""
REST_SECONDS = 90.0
"""After everything runs, until what is idle is parked and its processes, kept for a minute, are gone."""
START_SECONDS_EACH = 1.0
"""Longest a connector may take to start, on average."""
POLL_SECONDS = 0.5

FIGURES = (
    Figure("started_seconds", "first creation to all running", "s", 1, value_max=120.0),
    Figure("create_ms", "one creation, median", "ms", 1),
    Figure("create_p99_ms", "one creation, p99", "ms", 1),
    Figure("status_ms", "status and info of all, median", "ms", 1, value_max=200.0),
    Figure("idle_cores", "CPU while idle", "cores", 3, value_max=0.05),
    Figure("extra_mb", "memory, beyond that of none", "MB", 0, value_max=60.0),
    Figure("start_cpu_seconds", "CPU to start all", "s", 1),
    OTHER_CPU,
)


def run_once(site: Site, name: str, label: str, records: int) -> Outcome:
    """Starts the system with nothing, then makes `records` connectors."""
    topic = f"many-{label}"
    load.create_topic(site.bootstrap, topic, 1)
    system = site.fresh(name)
    try:
        system.start()
        system.rest.wait_healthy()
        time.sleep(WARM_SECONDS)
        empty_mb = system.tree.pss_mb()
        with Sampler(site.trees(system)) as sampler:
            began = time.time()
            created_ms = [_create(system, topic, site.directory / f"{label}-{number}") for number in range(records)]
            _await_running(system, records)
            running_at = time.time()
            time.sleep(PARK_MS / 1000 + REST_SECONDS)
            status_ms = [_status_ms(system, records) for _ in range(ASKED_TIMES)]
            idle_at = time.time()
            time.sleep(IDLE_SECONDS)
            ended_at = time.time()
            full_mb = system.tree.pss_mb()
    finally:
        system.stop()
    return Outcome(
        {
            "started_seconds": running_at - began,
            "create_ms": percentile(created_ms, 0.5),
            "create_p99_ms": percentile(created_ms, 0.99),
            "status_ms": percentile(status_ms, 0.5),
            "idle_cores": sampler.cpu_seconds("system", idle_at, ended_at) / (ended_at - idle_at),
            "extra_mb": sum(full_mb.values()) - sum(empty_mb.values()),
            "start_cpu_seconds": sampler.cpu_seconds("system", began, running_at),
            "other_cpu_percent": sampler.other_cpu_percent(began, ended_at),
        },
        {
            "cpu_seconds_by_role": sampler.cpu_by_role("system", began, ended_at),
            "idle_cpu_seconds_by_role": sampler.cpu_by_role("system", idle_at, ended_at),
            "empty_mb": empty_mb,
            "full_mb": full_mb,
        },
    )


def _create(system: System, topic: str, path: Path) -> float:
    """Milliseconds that the creation took."""
    began = time.monotonic()
    system.rest.create(
        f"many-{path.name}",
        {
            "connector.class": "org.apache.kafka.connect.file.FileStreamSinkConnector",
            "tasks.max": "1",
            "topics": topic,
            "file": str(path),
        },
    )
    return 1000 * (time.monotonic() - began)


def _await_running(system: System, count: int) -> None:
    deadline = time.monotonic() + 60.0 + count * START_SECONDS_EACH
    while (running := _running(system)) < count:
        if not system.alive():
            raise BenchError(f"{system.name} ended; the end of its log:\n{system.log_tail()}")
        if time.monotonic() > deadline:
            raise BenchError(f"{system.name}: {running} of {count} connectors run.\n{system.log_tail()}")
        time.sleep(POLL_SECONDS)


def _running(system: System) -> int:
    """How many connectors run with their task."""
    told = system.rest.call("GET", STATUS_PATH)
    states = ((each["status"]["connector"]["state"], [task["state"] for task in each["status"]["tasks"]])
              for each in told.values() if "status" in each)  # fmt: skip
    return sum(connector == "RUNNING" and tasks == ["RUNNING"] for connector, tasks in states)


def _status_ms(system: System, count: int) -> float:
    began = time.monotonic()
    told = system.rest.call("GET", STATUS_PATH)
    took_ms = 1000 * (time.monotonic() - began)
    if len(told) != count:
        raise BenchError(f"{system.name} tells of {len(told)} connectors, not of {count}.")
    return took_ms


FLOW = Flow(
    name="many",
    summary="many idle sinks of one empty topic; --records is their number",
    figures=FIGURES,
    records=CONNECTORS,
    warm_up_records=0,
    settings=WorkerSettings(extra={"wherry.idle.park.ms": str(PARK_MS)}),
    run_once=run_once,
)
