"""Records of 64 MiB with what is around them, the largest that a row may be, to nowhere: what memory a task needs.

They go through as bytes (ByteArrayConverter), one task, one partition. Told is the most that a task's processes held at
one time: Wherry's lease worker and its sidecar, Kafka Connect's JVM, whose heap is 2 GB.
"""

from __future__ import annotations

import dataclasses

from confluent_kafka import Producer
from tests.bench import load
from tests.bench.figures import OTHER_CPU, Figure
from tests.bench.flows import discard
from tests.bench.flows.flow import Outcome
from tests.bench.processes import BenchError
from tests.bench.site import Site
from tests.bench.systems import Connector

ROW_BYTES = 64 * 1024 * 1024
RECORD_BYTES = ROW_BYTES - 1024
ROOM_BYTES = ROW_BYTES + 1024 * 1024
"""A record with what is around it in Kafka."""

PSS_SECONDS = 0.25
"""Memory is looked at more often than elsewhere: a record comes and goes in less than the usual time."""

FLUSH_SECONDS = 120.0
BYTES = "org.apache.kafka.connect.converters.ByteArrayConverter"

FIGURES = (
    Figure("worker_mb", "the lease's worker, peak", "MB", 0, value_max=600.0),
    Figure("sidecar_mb", "its sidecar, peak", "MB", 0, value_max=100.0),
    Figure("pss_mb", "memory of the system, peak", "MB", 0),
    Figure("records_per_second_all_in", "records, creation to last commit", "1/s", 1),
    Figure("cpu_us_all_in", "CPU of the system, all in", "µs/record", 0),
    OTHER_CPU,
)


def run_once(site: Site, name: str, label: str, records: int) -> Outcome:
    """Consumes the topic of large records."""
    topic = _topic(site, records)
    connector = Connector(
        f"discard-{label}",
        {
            **discard.NOTHING[name],
            "tasks.max": "1",
            "topics": topic,
            "key.converter": BYTES,
            "value.converter": BYTES,
            "consumer.override.max.partition.fetch.bytes": str(ROOM_BYTES),
            "consumer.override.fetch.max.bytes": str(ROOM_BYTES),
        },
    )
    outcome = discard.consume(site, site.running(name), connector, records, partitions=1, pss_seconds=PSS_SECONDS)
    peaks = outcome.detail["peak_pss_mb_by_process"]
    assert isinstance(peaks, dict)
    names = {figure.key for figure in FIGURES}
    figures = {key: value for key, value in outcome.figures.items() if key in names}
    for key, role in (("worker_mb", "lease worker"), ("sidecar_mb", "sidecar")):
        found = [size for process, size in peaks.items() if process == role or process.startswith(f"{role} ")]
        if found:
            # Others of that name rest.
            figures[key] = max(found)
    return Outcome(figures, outcome.detail)


def _topic(site: Site, records: int) -> str:
    topic = f"big-{records}"
    if topic not in site.notes:
        load.create_topic(site.bootstrap, topic, 1, config={"max.message.bytes": str(ROOM_BYTES)})
        producer = Producer(
            {
                **load.CLIENT,
                "bootstrap.servers": site.bootstrap,
                "message.max.bytes": ROOM_BYTES,
                "queue.buffering.max.kbytes": 4 * ROOM_BYTES // 1024,
            }
        )
        for index in range(records):
            producer.produce(topic, bytes([index % 256]) * RECORD_BYTES)
            if producer.flush(FLUSH_SECONDS):
                raise BenchError(f"A record of {RECORD_BYTES} bytes was not taken within {FLUSH_SECONDS:.0f} s.")
        site.notes[topic] = True
    return topic


FLOW = dataclasses.replace(
    discard.PLAIN,
    name="big-records",
    summary="records of 64 MiB as bytes, one task, into a sink that does nothing: memory",
    figures=FIGURES,
    records=30,
    warm_up_records=30,
    run_once=run_once,
)
