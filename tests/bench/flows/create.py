"""Creation: from the request that creates a sink to RUNNING and to the first record at its destination.

A record waits in each connector's topic. `--records` is the number of connectors, made and deleted one after another
in a system that has run one before, so that nothing but the creation itself is measured.
"""

from __future__ import annotations

import time

from confluent_kafka import Producer
from tests.bench import limits, load
from tests.bench.figures import OTHER_CPU, Figure
from tests.bench.flows.flow import Flow, Outcome
from tests.bench.measure import Sampler, percentile
from tests.bench.processes import BenchError
from tests.bench.site import Site
from tests.bench.systems import System, WorkerSettings
from tests.bench.tail import Tail

CREATIONS = 20
TOPICS_WAIT_SECONDS = 10.0
POLL_SECONDS = 0.01
PAUSE_SECONDS = 0.5
"""Between two, so that the end of one is not charged to the next."""

FIGURES = (
    Figure("request_ms", "the request itself, median", "ms", 0),
    Figure("running_ms", "request to RUNNING, median", "ms", 0),
    Figure("first_ms", "request to first record, median", "ms", 0, value_max=1500.0),
    Figure("first_p99_ms", "request to first record, p99", "ms", 0, value_max=1500.0),
    Figure("cpu_ms", "CPU of the system, each", "ms", 0),
    OTHER_CPU,
)


def run_once(site: Site, name: str, label: str, records: int) -> Outcome:
    """Makes and deletes `records` sinks; the one before them is not measured."""
    system = site.running(name)
    system.rest.wait_healthy()
    topic = f"create-{label}"
    load.create_topic(site.bootstrap, topic, 1)
    producer = Producer({**load.CLIENT, "bootstrap.servers": site.bootstrap, "acks": "1"})
    producer.produce(topic, b"waiting")
    if producer.flush(TOPICS_WAIT_SECONDS) != 0:
        raise BenchError(f"The broker did not take a record within {TOPICS_WAIT_SECONDS:.0f} s.")
    _create(site, system, topic, f"{label}-before")
    with Sampler(site.trees(system)) as sampler:
        begun = time.time()
        times = [_create(site, system, topic, f"{label}-{number}") for number in range(records)]
        ended = time.time()
    request_ms, running_ms, first_ms = ([each[part] for each in times] for part in range(3))
    return Outcome(
        {
            "request_ms": percentile(request_ms, 0.5),
            "running_ms": percentile(running_ms, 0.5),
            "first_ms": percentile(first_ms, 0.5),
            "first_p99_ms": percentile(first_ms, 0.99),
            "cpu_ms": 1000 * sampler.cpu_seconds("system", begun, ended) / records,
            "other_cpu_percent": sampler.other_cpu_percent(begun, ended),
        },
        {"times_ms": times, "cpu_seconds_by_role": sampler.cpu_by_role("system", begun, ended)},
    )


def _create(site: Site, system: System, topic: str, label: str) -> tuple[float, float, float]:
    """Milliseconds until the request was answered, until all was RUNNING, and until the record could be read."""
    name, path = f"create-{label}", site.directory / f"create-{label}.txt"
    config = {
        "connector.class": "org.apache.kafka.connect.file.FileStreamSinkConnector",
        "tasks.max": "1",
        "topics": topic,
        "file": str(path),
    }
    with Tail(path) as tail:
        began = time.time()
        system.rest.create(name, config)
        answered = time.time()
        running = 0.0
        while not running or not tail.lines:
            if not running and _runs(system, name):
                running = time.time()
            if time.time() - began > limits.CONNECTOR_RUNNING_SECONDS:
                what = "did not write its record" if running else "is not RUNNING"
                raise BenchError(f"Connector {name} {what} after {limits.CONNECTOR_RUNNING_SECONDS:.0f} s.")
            time.sleep(POLL_SECONDS)
        arrived = tail.lines[0][0] / 1e9
    system.rest.delete(name)
    time.sleep(PAUSE_SECONDS)
    return 1000 * (answered - began), 1000 * (running - began), 1000 * (arrived - began)


def _runs(system: System, name: str) -> bool:
    try:
        status = system.rest.call("GET", f"/connectors/{name}/status")
    except BenchError as error:
        if "refused with 404" in str(error):
            return False
        raise
    states = [part["state"] for part in [status["connector"], *status["tasks"]]]
    return len(states) == 2 and set(states) == {"RUNNING"}


FLOW = Flow(
    name="create",
    summary="a sink created in a running system, request to first record in a file; --records is their number",
    figures=FIGURES,
    records=CREATIONS,
    warm_up_records=0,
    settings=WorkerSettings(),
    run_once=run_once,
)
