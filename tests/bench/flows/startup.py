"""Start-up: from the command to REST answering, and to the first record moved by a connector configured beforehand.

Kafka to a file with a backlog of one record. Kafka Connect finds its connector in the config topic, left there by an
earlier life of the worker; Wherry gets it on its command line. Every run starts a new process; jars are cached.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from confluent_kafka import Producer
from tests.bench import limits, load
from tests.bench.figures import OTHER_CPU, Figure
from tests.bench.flows.flow import Flow, Outcome
from tests.bench.measure import Sampler
from tests.bench.processes import BenchError
from tests.bench.site import Site
from tests.bench.systems import Connector, System, WorkerSettings

POLL_SECONDS = 0.01

FIGURES = (
    Figure("rest_seconds", "start to REST answers", "s", 2, value_max=2.0),
    Figure("first_record_seconds", "start to first record moved", "s", 2, value_max=20.0),
    Figure("cpu_seconds", "CPU used until the first record", "s", 1),
    Figure("stop_seconds", "SIGTERM to ended", "s", 2, value_max=5.0),
    Figure("left_behind", "left behind by a stop", "processes", 0, value_max=0.0),
    OTHER_CPU,
)


def run_once(site: Site, name: str, label: str, records: int) -> Outcome:
    """Starts the system once; `records` is the backlog."""
    topic = f"startup-{label}"
    load.create_topic(site.bootstrap, topic, 1)
    path = site.directory / f"startup-{label}.txt"
    connector = Connector(
        f"startup-{label}",
        {
            "connector.class": "org.apache.kafka.connect.file.FileStreamSinkConnector",
            "tasks.max": "1",
            "topics": topic,
            "file": str(path),
        },
    )
    system = site.fresh(name)
    try:
        system.prepare([connector])
        path.unlink(missing_ok=True)
        _produce(site.bootstrap, topic, records)
        time.sleep(limits.SETTLE_SECONDS)
        system.start([connector], wait=False)
        with Sampler(site.trees(system)) as sampler:
            rest_at, first_at = _watch(system, path)
        cpu_seconds = system.tree.cpu().total
        rest_seconds, first_seconds = rest_at - system.started_at, first_at - system.started_at
    finally:
        stop_seconds = system.stop()
    return Outcome(
        {
            "rest_seconds": rest_seconds,
            "first_record_seconds": first_seconds,
            "cpu_seconds": cpu_seconds,
            "stop_seconds": stop_seconds,
            "left_behind": len(system.leftovers()),
            "other_cpu_percent": sampler.other_cpu_percent(system.started_at, first_at),
        }
    )


def _watch(system: System, path: Path) -> tuple[float, float]:
    """When REST answered first, and when the file first held something.

    Each is waited for in a thread of its own: a request that the starting worker accepts but does not answer yet must
    not hide the first record.
    """
    deadline = time.monotonic() + limits.SYSTEM_START_SECONDS
    with ThreadPoolExecutor(max_workers=2) as pool:
        rest = pool.submit(_moment, system.rest.answers, system, deadline, "REST does not answer")
        first = pool.submit(
            _moment, lambda: path.exists() and path.stat().st_size > 0, system, deadline, "no record moved"
        )
        return rest.result(), first.result()


def _moment(happened: Callable[[], bool], system: System, deadline: float, otherwise: str) -> float:
    """The wall-clock time at which something was first seen to have happened."""
    while not happened():
        if not system.alive():
            raise BenchError(f"{system.name} ended while starting; the end of its log:\n{system.log_tail()}")
        if time.monotonic() > deadline:
            raise BenchError(f"{system.name}: {otherwise} within {limits.SYSTEM_START_SECONDS:.0f} s of its start.")
        time.sleep(POLL_SECONDS)
    return time.time()


def _produce(bootstrap: str, topic: str, records: int) -> None:
    producer = Producer({**load.CLIENT, "bootstrap.servers": bootstrap})
    for index in range(records):
        producer.produce(topic, load.record(index))
    if producer.flush(load.FLUSH_SECONDS) != 0:
        raise BenchError(f"The broker did not take the backlog of {topic}.")


FLOW = Flow(
    name="startup",
    summary="a new process with one connector configured beforehand, Kafka to a file, jars cached",
    figures=FIGURES,
    records=1,
    warm_up_records=0,
    settings=WorkerSettings(),
    run_once=run_once,
)
