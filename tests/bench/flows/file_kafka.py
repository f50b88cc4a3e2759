"""File to Kafka: FileStreamSource on both, the same file and producer settings; counted by the topic's end offsets."""

from __future__ import annotations

import time
from dataclasses import dataclass
from pathlib import Path

from confluent_kafka import Consumer
from tests.bench import limits, load
from tests.bench.figures import OTHER_CPU, Figure
from tests.bench.flows.ends import Ends
from tests.bench.flows.flow import Flow, Outcome, costs, detail
from tests.bench.measure import Point, Sampler, rate, watch
from tests.bench.processes import BenchError
from tests.bench.site import Site
from tests.bench.systems import Connector, System, WorkerSettings

SURPLUS_SECONDS = 0.5
"""How long the topic is watched after the last line for records that should not be there."""

CONSUME_ROWS = 20_000

PRODUCER = {"acks": "all", "linger.ms": "5", "batch.size": "131072", "compression.type": "none"}
SETTINGS = {f"producer.{key}": value for key, value in PRODUCER.items()}

FIGURES = (
    Figure("lines_per_second", "lines, first to last offset", "1/s", 0, ratio_min=1.3),
    Figure("lines_per_second_all_in", "lines, creation to last offset", "1/s", 0),
    Figure("cpu_us", "CPU of the system, steady", "µs/line", 2),
    Figure("cpu_us_all_in", "CPU of the system, all in", "µs/line", 2),
    Figure("broker_cpu_us", "CPU of the broker, steady", "µs/line", 2),
    Figure("pss_mb", "memory of the system, peak", "MB", 0),
    Figure("first_record_seconds", "creation to first record", "s", 2),
    OTHER_CPU,
)


@dataclass(frozen=True, slots=True)
class Copied:
    """A file was copied to a topic: what was seen of it."""

    sampler: Sampler
    points: list[Point]
    created_at: float

    @property
    def figures(self) -> dict[str, float]:
        """The figures of the copying."""
        return {
            "lines_per_second": rate(self.points),
            "lines_per_second_all_in": self.points[-1].count / (self.points[-1].at - self.created_at),
            "first_record_seconds": self.points[0].at - self.created_at,
            **costs(self.sampler, self.points, self.created_at),
        }


def run_once(site: Site, name: str, label: str, records: int) -> Outcome:
    """Reads the whole file into an empty topic of one partition."""
    topic = f"lines-{label}"
    copied = copy(site, site.running(name), label, topic, records)
    load.delete_topic(site.bootstrap, topic)
    return Outcome(copied.figures, detail(copied.sampler, copied.points))


def copy(site: Site, system: System, label: str, topic: str, records: int) -> Copied:
    """Reads the whole file into a new topic, and compares what arrives with the file, line by line."""
    path = file_of_lines(site.directory, records)
    load.create_topic(site.bootstrap, topic, 1)
    connector = Connector(
        f"file-{label}",
        {
            "connector.class": "org.apache.kafka.connect.file.FileStreamSourceConnector",
            "tasks.max": "1",
            "file": str(path),
            "topic": topic,
        },
    )
    with Ends(site.bootstrap, topic, 1) as ends:
        time.sleep(limits.SETTLE_SECONDS)
        with Sampler(site.trees(system), pss_of=["system"]) as sampler:
            created_at = time.time()
            system.rest.create(connector.name, connector.config)
            points = watch(ends.total, target=records, failure=lambda: system.rest.failure(connector.name))
        time.sleep(SURPLUS_SECONDS)
    system.rest.delete(connector.name)
    verify(site.bootstrap, topic, path)
    return Copied(sampler, points, created_at)


def verify(bootstrap: str, topic: str, path: Path) -> None:
    """Raises `BenchError` unless the committed records of a topic are the lines of a file, each once and in order."""
    reader = Consumer(
        {
            **load.CLIENT,
            "bootstrap.servers": bootstrap,
            "group.id": "bench-verify",
            "enable.partition.eof": True,
            "isolation.level": "read_committed",
        }
    )
    reader.assign([Ends.beginning(topic, 0)])
    deadline = time.monotonic() + limits.RUN_SECONDS
    count = 0
    try:
        with path.open("rb") as file:
            while time.monotonic() < deadline:
                for message in reader.consume(CONSUME_ROWS, 1.0):
                    if message.error() is not None:
                        if file.readline():
                            raise BenchError(f"{topic} ends after {count:,} records; the file has more lines.")
                        return
                    line = file.readline()[:-1]
                    if message.value() != line:
                        raise BenchError(f"Record {count:,} of {topic} is {message.value()!r}, the line is {line!r}.")
                    count += 1
    finally:
        reader.close()
    raise BenchError(f"{topic} could not be read to its end within {limits.RUN_SECONDS:.0f} s.")


def file_of_lines(directory: Path, lines: int) -> Path:
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
    settings=WorkerSettings(extra=SETTINGS),
    run_once=run_once,
)
