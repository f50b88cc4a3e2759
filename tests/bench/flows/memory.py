"""Memory: proportional set size of every process without a connector, with one active, and its slope under load.

Kafka to a file at a steady rate for `--minutes`. Each run is a new process. The slope is taken over the second half,
when heaps and pools have grown to their working size.
"""

from __future__ import annotations

import threading
import time
from typing import Self

from confluent_kafka import Producer
from tests.bench import limits, load
from tests.bench.figures import Figure
from tests.bench.flows.flow import Flow, Outcome
from tests.bench.measure import Point, slope_per_minute
from tests.bench.processes import BenchError, ProcessTree
from tests.bench.site import Site
from tests.bench.systems import Connector, WorkerSettings

IDLE_SECONDS = 20.0
"""How long a system rests before its idle memory is read."""

SAMPLE_SECONDS = 2.0
TICK_SECONDS = 0.05

FIGURES = (
    Figure("idle_mb", "no connector, all processes", "MB", 0, value_max=700.0),
    Figure("active_mb", "one connector under load, all processes", "MB", 0),
    Figure("connector_mb", "what the connector added, all processes", "MB", 0),
    Figure("lease_mb", "an active lease's worker", "MB", 0, value_max=45.0),
    Figure("sidecar_mb", "its sidecar", "MB", 0, value_max=60.0),
    Figure("slope_mb_per_minute", "growth, second half of the load", "MB/min", 2),
)


def run_once(site: Site, name: str, label: str, records: int) -> Outcome:
    """Measures one new process; `records` is the load per second."""
    topic = f"memory-{label}"
    load.create_topic(site.bootstrap, topic)
    path = site.directory / f"memory-{label}.txt"
    connector = Connector(
        f"memory-{label}",
        {
            "connector.class": "org.apache.kafka.connect.file.FileStreamSinkConnector",
            "tasks.max": "1",
            "topics": topic,
            "file": str(path),
        },
    )
    system = site.fresh(name)
    system.start()
    try:
        time.sleep(IDLE_SECONDS)
        idle = system.tree.pss_mb()
        system.rest.create(connector.name, connector.config)
        system.rest.wait_running(connector.name, 1)
        with _Load(site.bootstrap, topic, records) as sent:
            readings = _sample(system.tree, 60.0 * site.options.minutes)
        failed = system.rest.failure(connector.name)
        if failed is not None:
            raise BenchError(f"The connector failed under load: {failed}")
    finally:
        system.stop()
    if not path.exists() or path.stat().st_size == 0:
        raise BenchError(f"Nothing of {sent.records:,} records arrived in {path}.")
    path.unlink()
    return Outcome(_figures(idle, readings), {"idle": idle, "readings": readings[:: max(1, len(readings) // 60)]})


Reading = tuple[float, dict[str, float]]


def _sample(tree: ProcessTree, seconds: float) -> list[Reading]:
    readings = []
    end = time.time() + seconds
    while time.time() < end:
        time.sleep(SAMPLE_SECONDS)
        readings.append((time.time(), tree.pss_mb()))
    return readings


def _figures(idle: dict[str, float], readings: list[Reading]) -> dict[str, float]:
    half = readings[len(readings) // 2 :]
    totals = [Point(at=at, count=sum(sizes.values())) for at, sizes in half]
    active = sum(point.count for point in totals) / len(totals)
    last = readings[-1][1]
    figures = {
        "idle_mb": sum(idle.values()),
        "active_mb": active,
        "connector_mb": active - sum(idle.values()),
        "slope_mb_per_minute": slope_per_minute(totals),
    }
    for key, role in (("lease_mb", "lease worker"), ("sidecar_mb", "sidecar")):
        sizes = [size for name, size in last.items() if name.rstrip(" 0123456789") == role]
        if sizes:
            figures[key] = max(sizes)
    return figures


class _Load:
    """Produces at a steady rate in a thread until it is left."""

    def __init__(self, bootstrap: str, topic: str, per_second: int) -> None:
        self.records = 0
        self._topic, self._per_second = topic, per_second
        self._producer = Producer({**load.CLIENT, "bootstrap.servers": bootstrap, "linger.ms": 5})
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._run, name="load", daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join(limits.REST_TIMEOUT_SECONDS)
        self._producer.flush(load.FLUSH_SECONDS)

    def _run(self) -> None:
        begun = time.monotonic()
        while not self._over.wait(TICK_SECONDS):
            due = int((time.monotonic() - begun) * self._per_second)
            for index in range(self.records, due):
                self._producer.produce(self._topic, load.record(index), partition=index % load.PARTITIONS)
            self.records = due
            self._producer.poll(0)


FLOW = Flow(
    name="memory",
    summary="no connector, then one (Kafka to a file) under a steady load; records means records per second here",
    figures=FIGURES,
    records=2000,
    warm_up_records=0,
    settings=WorkerSettings(),
    run_once=run_once,
)
