"""File to Kafka: FileStreamSource on both, the same file and producer settings; counted by the topic's end offsets."""

from __future__ import annotations

import time
from pathlib import Path

from confluent_kafka import Consumer, TopicPartition
from tests.bench import limits, load
from tests.bench.figures import OTHER_CPU, Figure
from tests.bench.flows.flow import Flow, Outcome, costs, detail
from tests.bench.measure import Sampler, rate, watch
from tests.bench.processes import BenchError
from tests.bench.site import Site
from tests.bench.systems import Connector, WorkerSettings

CALL_SECONDS = 10.0
SURPLUS_SECONDS = 0.5
"""How long the topic is watched after the last line for records that should not be there."""

PRODUCER = {"acks": "all", "linger.ms": "5", "batch.size": "131072", "compression.type": "none"}

FIGURES = (
    Figure("lines_per_second", "lines, first to last offset", "1/s", 0, ratio_min=1.0),
    Figure("lines_per_second_all_in", "lines, creation to last offset", "1/s", 0),
    Figure("cpu_us", "CPU of the system, steady", "µs/line", 2),
    Figure("cpu_us_all_in", "CPU of the system, all in", "µs/line", 2),
    Figure("broker_cpu_us", "CPU of the broker, steady", "µs/line", 2),
    Figure("pss_mb", "memory of the system, peak", "MB", 0),
    Figure("first_record_seconds", "creation to first record", "s", 2),
    OTHER_CPU,
)


def run_once(site: Site, name: str, label: str, records: int) -> Outcome:
    """Reads the whole file into an empty topic of one partition."""
    path = _file_of_lines(site.directory, records)
    topic = f"lines-{label}"
    load.create_topic(site.bootstrap, topic, 1)
    system = site.running(name)
    connector = Connector(
        f"file-{label}",
        {
            "connector.class": "org.apache.kafka.connect.file.FileStreamSourceConnector",
            "tasks.max": "1",
            "file": str(path),
            "topic": topic,
        },
    )
    reader = Consumer(
        {**load.CLIENT, "bootstrap.servers": site.bootstrap, "group.id": "bench-watch", "enable.auto.commit": False}
    )
    partition = TopicPartition(topic, 0)

    def end_offset() -> int:
        found = reader.get_watermark_offsets(partition, timeout=CALL_SECONDS, cached=False)
        if found is None:
            raise BenchError(f"The broker did not tell the end offset of {topic} within {CALL_SECONDS:.0f} s.")
        return int(found[1])

    try:
        end_offset()
        time.sleep(limits.SETTLE_SECONDS)
        with Sampler(site.trees(system), pss_of=["system"]) as sampler:
            created_at = time.time()
            system.rest.create(connector.name, connector.config)
            points = watch(end_offset, target=records, failure=lambda: system.rest.failure(connector.name))
        time.sleep(SURPLUS_SECONDS)
        if end_offset() != records:
            raise BenchError(f"{topic} holds {end_offset():,} records from a file of {records:,} lines.")
    finally:
        reader.close()
    system.rest.delete(connector.name)
    load.delete_topic(site.bootstrap, topic)
    figures = {
        "lines_per_second": rate(points),
        "lines_per_second_all_in": records / (points[-1].at - created_at),
        "first_record_seconds": points[0].at - created_at,
        **costs(sampler, points, created_at),
    }
    return Outcome(figures, detail(sampler, points))


def _file_of_lines(directory: Path, lines: int) -> Path:
    """The file with that many lines, written at its first use."""
    path = directory / f"lines-{lines}.jsonl"
    if not path.exists():
        load.write_lines(path, lines)
    return path


FLOW = Flow(
    name="file-kafka",
    summary="a file of 200 B lines into one partition, FileStreamSource on both, same producer settings",
    figures=FIGURES,
    records=2_000_000,
    warm_up_records=1_000_000,
    settings=WorkerSettings(extra={f"producer.{key}": value for key, value in PRODUCER.items()}),
    run_once=run_once,
)
