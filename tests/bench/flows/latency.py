"""Latency: Kafka to a file at 50 records per second, from the producer's send to the line being readable in the file.

Each record carries the time it was sent; a reader woken by the kernel stamps its arrival. Both stamps are of the same
clock. The connector is active: some seconds of the same load go before the measured ones.
"""

from __future__ import annotations

import time

from confluent_kafka import Producer
from tests.bench import limits, load
from tests.bench.figures import OTHER_CPU, Figure
from tests.bench.flows.flow import Flow, Outcome
from tests.bench.measure import TOTAL, Sampler, percentile, watch
from tests.bench.processes import BenchError
from tests.bench.site import Site
from tests.bench.systems import Connector, WorkerSettings
from tests.bench.tail import Tail

RATE = limits.LATENCY_RATE_PER_SECOND
PADDING = "x" * 170

FIGURES = (
    Figure("p50_ms", "latency p50", "ms", 2, ratio_max=1.2),
    Figure("p99_ms", "latency p99", "ms", 2, ratio_max=1.2),
    Figure("max_ms", "latency, worst", "ms", 2),
    Figure("cpu_us", "CPU of the system", "µs/record", 0),
    Figure("pss_mb", "memory of the system, peak", "MB", 0),
    OTHER_CPU,
)


def run_once(site: Site, name: str, label: str, records: int) -> Outcome:
    """Sends `records` at the fixed rate, after a warm-up, and measures each of them."""
    topic = f"latency-{label}"
    load.create_topic(site.bootstrap, topic, 1)
    system = site.running(name)
    path = site.directory / f"latency-{label}.txt"
    connector = Connector(
        f"latency-{label}",
        {
            "connector.class": "org.apache.kafka.connect.file.FileStreamSinkConnector",
            "tasks.max": "1",
            "topics": topic,
            "file": str(path),
        },
    )
    producer = Producer({**load.CLIENT, "bootstrap.servers": site.bootstrap, "linger.ms": 0, "acks": "1"})
    warm_up = round(limits.LATENCY_WARM_UP_SECONDS * RATE)

    def failure() -> str | None:
        return system.rest.failure(connector.name)

    with Tail(path) as tail:
        system.rest.create(connector.name, connector.config)
        _send(producer, topic, 1)
        watch(lambda: len(tail.lines), target=1, failure=failure)
        _send(producer, topic, warm_up)
        with Sampler(site.trees(system), pss_of=["system"]) as sampler:
            begun = time.time()
            _send(producer, topic, records)
            ended = time.time()
            watch(lambda: len(tail.lines), target=1 + warm_up + records, failure=failure)
        lines = tail.lines[1 + warm_up :]
    system.rest.delete(connector.name)
    if len(lines) != records:
        raise BenchError(f"{len(lines)} lines arrived for {records} records.")
    latencies = [(arrived - int(line.split(b" ", 1)[0])) / 1e6 for arrived, line in lines]
    figures = {
        "p50_ms": percentile(latencies, 0.50),
        "p99_ms": percentile(latencies, 0.99),
        "max_ms": max(latencies),
        "cpu_us": 1e6 * sampler.cpu_seconds("system", begun, ended) / records,
        "pss_mb": sampler.peak_pss_mb("system").get(TOTAL, 0.0),
        "other_cpu_percent": sampler.other_cpu_percent(begun, ended),
    }
    return Outcome(figures, {"peak_pss_mb_by_process": sampler.peak_pss_mb("system")})


def _send(producer: Producer, topic: str, records: int) -> None:
    """Sends at the fixed rate; a record's time is taken just before it is handed to the producer."""
    begun = time.monotonic()
    for index in range(records):
        delay = begun + index / RATE - time.monotonic()
        if delay > 0:
            time.sleep(delay)
        producer.produce(topic, f"{time.time_ns()} {PADDING}".encode())
        producer.poll(0)
    if producer.flush(limits.LATENCY_DRAIN_SECONDS) != 0:
        raise BenchError(f"The broker did not take {topic}'s records within {limits.LATENCY_DRAIN_SECONDS:.0f} s.")


FLOW = Flow(
    name="latency",
    summary=f"Kafka to a file at {RATE} records/s, send to readable line, connector active",
    figures=FIGURES,
    records=1500,
    warm_up_records=0,
    settings=WorkerSettings(),
    run_once=run_once,
)
