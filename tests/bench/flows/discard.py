"""Kafka to nowhere: what an engine itself costs, with records of several kinds, converters and transforms.

Both sinks do nothing. So nothing can be counted behind them, and the destination's word is the consumer group's
committed offset, which both engines move only after their sink has taken the records, once per second. Steady figures
are taken between commits made in the middle of the run, where the offset is exact when it is seen; the last commit, up
to a second late, is left out. That both engines make the same of the records is checked before (`contents.py`).
"""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Mapping

from confluent_kafka import Consumer, KafkaException, TopicPartition
from tests.bench import limits, load
from tests.bench.figures import CONNECT, OTHER_CPU, WHERRY, Figure
from tests.bench.flows import contents
from tests.bench.flows.flow import Flow, Outcome, costs, detail
from tests.bench.measure import Point, Sampler, interpolate, rate, watch
from tests.bench.site import Site
from tests.bench.systems import Connector, System, WorkerSettings

TASKS = 2
CALL_SECONDS = 10.0
JSON = "org.apache.kafka.connect.json.JsonConverter"
STRING = "org.apache.kafka.connect.storage.StringConverter"

Config = Mapping[str, str]
DEV_NULL: Config = {"connector.class": "org.apache.kafka.connect.file.FileStreamSinkConnector", "file": "/dev/null"}
NOTHING: Mapping[str, Config] = {
    CONNECT: {"connector.class": "DiscardSink"},
    WHERRY: {"connector.class": "wherry.tally.DiscardSink"},
}
TRANSFORMS: Config = {
    "transforms": "insert,replace,cast",
    "transforms.insert.type": "org.apache.kafka.connect.transforms.InsertField$Value",
    "transforms.insert.static.field": "origin",
    "transforms.insert.static.value": "bench",
    "transforms.replace.type": "org.apache.kafka.connect.transforms.ReplaceField$Value",
    "transforms.replace.exclude": "note",
    "transforms.replace.renames": "city:town",
    "transforms.cast.type": "org.apache.kafka.connect.transforms.Cast$Value",
    "transforms.cast.spec": "customer:string,amount:float32",
}
BARE: Config = {"value.converter": JSON, "value.converter.schemas.enable": "false"}
ENVELOPE: Config = {"value.converter": JSON, "value.converter.schemas.enable": "true"}


@dataclasses.dataclass(frozen=True, slots=True)
class Discard:
    """Consumes a whole topic of records of one kind; a `RunOnce`.

    Attributes:
        config: Converters and transforms, for both.
        kind: What the records are: see `load.KINDS`.
        sinks: The sink of each system.
        tasks: How many tasks.
        checked: Whether both engines' results are compared first.
    """

    config: Config
    kind: str = "json"
    sinks: Mapping[str, Config] = dataclasses.field(default_factory=lambda: NOTHING)
    tasks: int = TASKS
    checked: bool = True

    def __call__(self, site: Site, name: str, label: str, records: int) -> Outcome:
        """See `RunOnce`."""
        if self.checked:
            contents.check(site, name, self.config, site.topic_of_records(contents.RECORDS, kind=self.kind))
        topic = site.topic_of_records(records, kind=self.kind)
        connector = Connector(
            f"discard-{label}", {**self.sinks[name], **self.config, "tasks.max": str(self.tasks), "topics": topic}
        )
        return consume(site, site.running(name), connector, records)


def consume(
    site: Site,
    system: System,
    connector: Connector,
    records: int,
    *,
    partitions: int = load.PARTITIONS,
    pss_seconds: float = limits.PSS_SAMPLE_SECONDS,
) -> Outcome:
    """Lets a sink of one topic read all of it."""
    topic = connector.config["topics"]
    # A consumer that never joins: an admin client's library crashes when the group's coordinator is not there yet.
    group = f"connect-{connector.name}"
    reader = Consumer({**load.CLIENT, "bootstrap.servers": site.bootstrap, "group.id": group})
    timelines: dict[int, list[Point]] = {partition: [] for partition in range(partitions)}

    def committed() -> int:
        now = time.time()
        total = 0
        for partition, offset in _committed(reader, topic, partitions).items():
            timeline = timelines[partition]
            if offset > 0 and (not timeline or timeline[-1].count < offset):
                timeline.append(Point(at=now, count=offset))
            total += offset
        return total

    time.sleep(limits.SETTLE_SECONDS)
    with Sampler(site.trees(system), pss_of=["system"], pss_seconds=pss_seconds) as sampler:
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


def _committed(reader: Consumer, topic: str, partitions: int) -> dict[int, int]:
    """The group's offsets by partition; nothing while the group is not there yet."""
    wanted = [TopicPartition(topic, partition) for partition in range(partitions)]
    try:
        found = reader.committed(wanted, timeout=CALL_SECONDS)
    except KafkaException:
        return {}
    return {partition.partition: max(0, partition.offset) for partition in found if partition.error is None}


def figures(speed: float | None = None, cost: float | None = None) -> tuple[Figure, ...]:
    """The figures of a flow, with the least ratio of speeds and the greatest of CPU times that are asked for."""
    return (
        Figure("records_per_second", "records, between mid-run commits", "1/s", 0, ratio_min=speed),
        Figure("records_per_second_all_in", "records, creation to last commit", "1/s", 0),
        Figure("cpu_us", "CPU of the system, steady", "µs/record", 2, ratio_max=cost),
        Figure("cpu_us_all_in", "CPU of the system, all in", "µs/record", 2),
        Figure("broker_cpu_us", "CPU of the broker, steady", "µs/record", 2),
        Figure("pss_mb", "memory of the system, peak", "MB", 0),
        OTHER_CPU,
    )


PLAIN = Flow(
    name="kafka-discard",
    summary="200 B JSON records, schemaless JsonConverter, 2 partitions, 2 tasks, into a sink that does nothing",
    figures=figures(speed=1.5, cost=0.7),
    records=5_000_000,
    warm_up_records=5_000_000,
    settings=WorkerSettings(),
    run_once=Discard(BARE),
)
TRANSFORMED = dataclasses.replace(
    PLAIN,
    name="kafka-discard-smt",
    summary="the same through InsertField, ReplaceField and Cast",
    figures=figures(speed=1.5),
    run_once=Discard({**BARE, **TRANSFORMS}),
)
ENVELOPED = dataclasses.replace(
    PLAIN,
    name="kafka-discard-envelope",
    summary="the same records in JsonConverter's envelope of schema and payload (1 kB), typed values",
    figures=figures(speed=2.0),
    records=2_000_000,
    warm_up_records=2_000_000,
    run_once=Discard(ENVELOPE, kind="envelope"),
)
TEXTS = dataclasses.replace(
    PLAIN,
    name="kafka-discard-string",
    summary="the same records, StringConverter",
    figures=figures(speed=1.1),
    run_once=Discard({"value.converter": STRING}),
)
# The same without a difference between the sinks: both make the text `{k=v, ...}` of each record.
DEV_NULL_FLOW = dataclasses.replace(
    PLAIN,
    name="kafka-devnull",
    summary="200 B JSON records, 2 partitions, 2 tasks: FileStreamSink to /dev/null on both",
    figures=figures(),
    run_once=Discard(BARE, sinks={CONNECT: DEV_NULL, WHERRY: DEV_NULL}),
)
