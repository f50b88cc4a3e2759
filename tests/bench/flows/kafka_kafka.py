"""Kafka to Kafka, bytes untouched: MirrorMaker 2's source connector in the real worker, and the same JSON in Wherry.

One broker plays both clusters, so that the work of the cluster is the same as in the other flows. Counted by the end
offsets of the remote topic; of each partition the first records are compared with their origins, all parts of them.
"""

from __future__ import annotations

import itertools
import time
from collections.abc import Iterator
from typing import Any

from confluent_kafka import Consumer
from tests.bench import limits, load
from tests.bench.connect_plugins import MIRROR_MAKER
from tests.bench.figures import OTHER_CPU, Figure
from tests.bench.flows.ends import Ends
from tests.bench.flows.file_kafka import SETTINGS, SURPLUS_SECONDS
from tests.bench.flows.flow import Flow, Outcome, costs, detail
from tests.bench.measure import Sampler, rate, watch
from tests.bench.processes import BenchError
from tests.bench.site import Site
from tests.bench.systems import Connector, WorkerSettings

TASKS = 2
COMPARED_RECORDS = 20_000
"""Of each partition."""

CONSUME_ROWS = 10_000
BYTES = "org.apache.kafka.connect.converters.ByteArrayConverter"

FIGURES = (
    Figure("records_per_second", "records, first to last offset", "1/s", 0, ratio_min=1.2),
    Figure("records_per_second_all_in", "records, creation to last offset", "1/s", 0),
    Figure("cpu_us", "CPU of the system, steady", "µs/record", 2),
    Figure("cpu_us_all_in", "CPU of the system, all in", "µs/record", 2),
    Figure("broker_cpu_us", "CPU of the broker, steady", "µs/record", 2),
    Figure("pss_mb", "memory of the system, peak", "MB", 0),
    Figure("first_record_seconds", "creation to first record", "s", 2),
    OTHER_CPU,
)


def run_once(site: Site, name: str, label: str, records: int) -> Outcome:
    """Copies the whole topic into a remote one of its own."""
    topic = site.topic_of_records(records)
    # The remote topic is named after the cluster, so that every run has its own.
    cluster = f"from-{label}"
    remote = f"{cluster}.{topic}"
    connector = Connector(f"mirror-{label}", _config(site.bootstrap, cluster, topic))
    system = site.running(name)
    with Ends(site.bootstrap, remote, load.PARTITIONS) as ends:
        time.sleep(limits.SETTLE_SECONDS)
        with Sampler(site.trees(system), pss_of=["system"]) as sampler:
            created_at = time.time()
            system.rest.create(connector.name, connector.config)
            points = watch(ends.total, target=records, failure=lambda: system.rest.failure(connector.name))
        time.sleep(SURPLUS_SECONDS)
        if ends.total() != records:
            raise BenchError(f"{remote} holds {ends.total():,} records, its origin {records:,}.")
    system.rest.delete(connector.name)
    for partition in range(load.PARTITIONS):
        _compare(site.bootstrap, topic, remote, partition, min(COMPARED_RECORDS, records // load.PARTITIONS))
    load.delete_topic(site.bootstrap, remote)
    figures = {
        "records_per_second": rate(points),
        "records_per_second_all_in": records / (points[-1].at - created_at),
        "first_record_seconds": points[0].at - created_at,
        **costs(sampler, points, created_at),
    }
    return Outcome(figures, detail(sampler, points))


def _config(bootstrap: str, cluster: str, topic: str) -> dict[str, str]:
    return {
        "connector.class": "org.apache.kafka.connect.mirror.MirrorSourceConnector",
        "tasks.max": str(TASKS),
        "source.cluster.alias": cluster,
        "target.cluster.alias": "here",
        "source.cluster.bootstrap.servers": bootstrap,
        "target.cluster.bootstrap.servers": bootstrap,
        "topics": topic,
        "replication.factor": "1",
        "offset-syncs.topic.replication.factor": "1",
        "key.converter": BYTES,
        "value.converter": BYTES,
    }


def _compare(bootstrap: str, topic: str, remote: str, partition: int, records: int) -> None:
    pairs = zip(_read(bootstrap, topic, partition), _read(bootstrap, remote, partition), strict=False)
    count = 0
    for origin, copy in itertools.islice(pairs, records):
        if origin != copy:
            raise BenchError(f"Record {count} of {remote}, partition {partition}, is {copy}, its origin {origin}.")
        count += 1
    if count < records:
        raise BenchError(f"{count} of {records} records of {remote}, partition {partition}, could be read.")


def _read(bootstrap: str, topic: str, partition: int) -> Iterator[tuple[Any, ...]]:
    """Yields key, value, time and headers of the records of a partition."""
    reader = Consumer(
        {**load.CLIENT, "bootstrap.servers": bootstrap, "group.id": "bench-verify", "enable.partition.eof": True}
    )
    reader.assign([Ends.beginning(topic, partition)])
    deadline = time.monotonic() + limits.STALL_SECONDS
    try:
        while time.monotonic() < deadline:
            for message in reader.consume(CONSUME_ROWS, 1.0):
                if message.error() is not None:
                    return
                yield message.key(), message.value(), message.timestamp(), tuple(message.headers() or ())
    finally:
        reader.close()


FLOW = Flow(
    name="kafka-kafka",
    summary="200 B records with keys, 2 partitions, 2 tasks, from topic to topic: MirrorSourceConnector on both",
    figures=FIGURES,
    records=2_000_000,
    warm_up_records=2_000_000,
    settings=WorkerSettings(key_converter=BYTES, value_converter=BYTES, extra=SETTINGS),
    run_once=run_once,
    plugins=(MIRROR_MAKER,),
)
