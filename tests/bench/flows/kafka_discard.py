"""Kafka to nowhere: what an engine itself costs, with JSON values and no transform.

Nothing can be counted at /dev/null, so the destination's word is the consumer group's committed offset, which both
engines move only after their sink has flushed, once per second. Steady figures are taken between commits made in the
middle of the run, where the offset is exact when it is seen; the last commit, up to a second late, is left out.
"""

from __future__ import annotations

import dataclasses
import functools
import time
from collections.abc import Mapping

from confluent_kafka import Consumer, KafkaException, TopicPartition
from tests.bench import limits, load
from tests.bench.figures import CONNECT, OTHER_CPU, WHERRY, Figure
from tests.bench.flows.flow import Flow, Outcome, costs, detail
from tests.bench.measure import Point, Sampler, interpolate, rate, watch
from tests.bench.site import Site
from tests.bench.systems import Connector, WorkerSettings

TASKS = 2
CALL_SECONDS = 10.0

FIGURES = (
    Figure("records_per_second", "records, between mid-run commits", "1/s", 0, ratio_min=1.0),
    Figure("records_per_second_all_in", "records, creation to last commit", "1/s", 0),
    Figure("cpu_us", "CPU of the system, steady", "µs/record", 2),
    Figure("cpu_us_all_in", "CPU of the system, all in", "µs/record", 2),
    Figure("broker_cpu_us", "CPU of the broker, steady", "µs/record", 2),
    Figure("pss_mb", "memory of the system, peak", "MB", 0),
    OTHER_CPU,
)

Sink = Mapping[str, str]
DEV_NULL: Sink = {"connector.class": "org.apache.kafka.connect.file.FileStreamSinkConnector", "file": "/dev/null"}
TALLY: Sink = {"connector.class": "wherry.tally.DiscardSink"}


def run_once(sinks: Mapping[str, Sink], site: Site, name: str, label: str, records: int) -> Outcome:
    """Consumes the whole topic."""
    topic = site.topic_of_records(records)
    system = site.running(name)
    connector = Connector(f"discard-{label}", {**sinks[name], "tasks.max": str(TASKS), "topics": topic})
    # A consumer that never joins: an admin client's library crashes when the group's coordinator is not there yet.
    group = f"connect-{connector.name}"
    reader = Consumer({**load.CLIENT, "bootstrap.servers": site.bootstrap, "group.id": group})
    timelines: dict[int, list[Point]] = {partition: [] for partition in range(load.PARTITIONS)}

    def committed() -> int:
        now = time.time()
        total = 0
        for partition, offset in _committed(reader, topic).items():
            timeline = timelines[partition]
            if offset > 0 and (not timeline or timeline[-1].count < offset):
                timeline.append(Point(at=now, count=offset))
            total += offset
        return total

    time.sleep(limits.SETTLE_SECONDS)
    with Sampler(site.trees(system), pss_of=["system"]) as sampler:
        created_at = time.time()
        system.rest.create(connector.name, connector.config)
        points = watch(committed, target=records, failure=lambda: system.rest.failure(connector.name))
    reader.close()
    system.rest.delete(connector.name)
    steady = mid_run(list(timelines.values()))
    figures = {
        "records_per_second": rate(steady),
        "records_per_second_all_in": records / (points[-1].at - created_at),
        **costs(sampler, steady, created_at),
        "cpu_us_all_in": 1e6 * sampler.cpu_seconds("system", created_at, points[-1].at) / records,
    }
    return Outcome(figures, {"commits_seen": len(points), **detail(sampler, steady)})


def mid_run(timelines: list[list[Point]]) -> list[Point]:
    """Begin and end of the time in which every partition was being read, with the records committed by then.

    Each partition's last commit is left out: it comes when its reading is over, not when the offset was reached. With
    fewer than three commits in a partition there is no such time, and the whole run from first to last commit is taken.
    """
    inner = [timeline[:-1] for timeline in timelines] if all(len(line) > 2 for line in timelines) else timelines
    begin = max(timeline[0].at for timeline in inner)
    end = min(timeline[-1].at for timeline in inner)
    if end <= begin:
        begin, end = min(line[0].at for line in timelines), max(line[-1].at for line in timelines)
    return [Point(at=at, count=sum(_count(timeline, at) for timeline in timelines)) for at in (begin, end)]


def _count(timeline: list[Point], at: float) -> float:
    return interpolate([point.at for point in timeline], [point.count for point in timeline], at)


def _committed(reader: Consumer, topic: str) -> dict[int, int]:
    """The group's offsets by partition; nothing while the group is not there yet."""
    wanted = [TopicPartition(topic, partition) for partition in range(load.PARTITIONS)]
    try:
        found = reader.committed(wanted, timeout=CALL_SECONDS)
    except KafkaException:
        return {}
    return {partition.partition: max(0, partition.offset) for partition in found if partition.error is None}


FLOW = Flow(
    name="kafka-discard",
    summary="200 B JSON records, 2 partitions, 2 tasks: FileStreamSink to /dev/null against the tally discard sidecar",
    figures=FIGURES,
    records=3_000_000,
    warm_up_records=1_000_000,
    settings=WorkerSettings(
        value_converter="org.apache.kafka.connect.json.JsonConverter", extra={"value.converter.schemas.enable": "false"}
    ),
    run_once=functools.partial(run_once, {CONNECT: DEV_NULL, WHERRY: TALLY}),
)

# The same without a difference between the sinks: both make the text `{k=v, ...}` of each record.
DEV_NULL_FLOW = dataclasses.replace(
    FLOW,
    name="kafka-devnull",
    summary="200 B JSON records, 2 partitions, 2 tasks: FileStreamSink to /dev/null on both",
    figures=tuple(dataclasses.replace(figure, ratio_min=None) for figure in FIGURES),
    run_once=functools.partial(run_once, {CONNECT: DEV_NULL, WHERRY: DEV_NULL}),
)
