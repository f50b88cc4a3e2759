"""Mirroring between two brokers: what arrives, under which names, and what MirrorMaker's clients would read of it."""

from __future__ import annotations

import signal
import time
from collections.abc import Iterator
from typing import Any

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, ConfigResource, NewPartitions, ResourceType
from tests.support.standalone import Standalone, send
from tests.support.topics import commit, create_topic
from tests.support.waiting import eventually

from wherry.contract.mirror import Checkpoint, Heartbeat, OffsetSync
from wherry.coordinator.dev.kafka import EmbeddedKafka

pytestmark = pytest.mark.integration

BYTES = "org.apache.kafka.connect.converters.ByteArrayConverter"
MIRROR = "org.apache.kafka.connect.mirror.Mirror"
LIMIT_S = 120.0


@pytest.fixture(scope="module")
def source() -> Iterator[EmbeddedKafka]:
    """The cluster that is read; the run's own broker is the target."""
    with EmbeddedKafka() as broker:
        yield broker


@pytest.fixture(scope="module")
def wherry(kafka: EmbeddedKafka) -> Iterator[Standalone]:
    settings = {"key.converter": BYTES, "value.converter": BYTES}
    with Standalone(bootstrap=kafka.bootstrap, settings=settings) as running:
        yield running


def config(kind: str, source: EmbeddedKafka, target: EmbeddedKafka, **more: str) -> dict[str, str]:
    factors = ("", "offset-syncs.topic.", "checkpoints.topic.", "heartbeats.topic.")
    return {
        "connector.class": f"{MIRROR}{kind}Connector",
        "source.cluster.alias": "A",
        "target.cluster.alias": "B",
        "source.cluster.bootstrap.servers": source.bootstrap,
        "target.cluster.bootstrap.servers": target.bootstrap,
        "tasks.max": "2",
        **{f"{factor}replication.factor": "1" for factor in factors},
        **more,
    }


def records(bootstrap: str, topic: str) -> list[Any]:
    """All records of a topic; none while it isn't there."""
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": "check", "enable.partition.eof": True})
    try:
        found = consumer.list_topics(topic, timeout=60).topics[topic]
        if found.error is not None:
            return []
        consumer.assign([TopicPartition(topic, number, 0) for number in found.partitions])
        messages: list[Any] = []
        ends, deadline = 0, time.monotonic() + 90
        while ends < len(found.partitions) and time.monotonic() < deadline:
            for message in consumer.consume(10_000, 0.5):
                if message.error() is None:
                    messages.append(message)
                else:
                    ends += 1
        return messages
    finally:
        consumer.close()


def fill(bootstrap: str, topic: str, numbers: range) -> None:
    producer = Producer({"bootstrap.servers": bootstrap, "linger.ms": 20})
    for number in numbers:
        value = None if number % 10 == 9 else b"\xff\x00%d" % number
        headers = [("h", b"\x01"), ("h", None)] if number % 2 else None
        producer.produce(
            topic, value, b"k%d" % number, partition=number % 2, timestamp=1_000_000 + number, headers=headers
        )
        if not number % 1_000:
            producer.poll(0)
    assert producer.flush(60) == 0


def told(message: Any) -> tuple[Any, ...]:
    headers = tuple(message.headers() or ())
    return message.partition(), message.key(), message.value(), message.timestamp(), headers


def test_records_are_copied_as_they_are_through_kills_and_growth(
    source: EmbeddedKafka, kafka: EmbeddedKafka, wherry: Standalone
) -> None:
    settings = {
        "retention.ms": "777000", "cleanup.policy": "compact",
        "min.cleanable.dirty.ratio": "1",  # keeps the cleaner from what comes twice, which is looked at below
    }  # fmt: skip
    create_topic(source.bootstrap, "orders", partitions=2, config=settings)
    fill(source.bootstrap, "orders", range(20_000))
    # Both would come back for ever.
    create_topic(source.bootstrap, "B.orders", partitions=1)
    create_topic(source.bootstrap, "left.out", partitions=1)
    asked = config(
        "Source", source, kafka,
        **{"topics": "orders,B.orders,left.*", "topics.exclude": "left.*", "refresh.topics.interval.seconds": "2",
           "sync.topic.configs.interval.seconds": "2"},
    )  # fmt: skip
    target = AdminClient({"bootstrap.servers": kafka.bootstrap})
    before = set(target.list_topics(timeout=60).topics)  # other tests mirror to the same broker
    wherry.rest.create("mirror", asked)
    assert eventually(lambda: len(records(kafka.bootstrap, "A.orders")) >= 20_000, LIMIT_S), wherry.log_tail()
    _check_syncs(source, kafka)
    for pid in wherry.workers_of("mirror"):
        send(pid, signal.SIGKILL)
    admin = AdminClient({"bootstrap.servers": source.bootstrap})
    admin.create_partitions([NewPartitions("orders", 3)])["orders"].result(60)
    fill(source.bootstrap, "orders", range(20_000, 21_000))
    producer = Producer({"bootstrap.servers": source.bootstrap})
    producer.produce("orders", b"new", partition=2)
    producer.flush(60)

    def copied() -> bool:
        ours = {told(message) for message in records(kafka.bootstrap, "A.orders")}
        return ours == {told(message) for message in records(source.bootstrap, "orders")}

    assert eventually(copied, LIMIT_S), wherry.log_tail()
    for partition in (0, 1):
        keys = [int(m.key()[1:]) for m in records(kafka.bootstrap, "A.orders") if m.partition() == partition]
        first = list(dict.fromkeys(keys))
        assert first == sorted(first)  # what a killed worker had written comes twice, and in order
    topics = target.list_topics(timeout=60).topics
    assert {name for name in topics if name.startswith("A.")} - before == {"A.orders"}
    place = ({"cluster": "A", "partition": 0, "topic": "orders"}, {"offset": 10_499})
    assert eventually(lambda: place in wherry.rest.offsets("mirror"), LIMIT_S), wherry.rest.offsets("mirror")

    def has_settings() -> bool:
        (resource,) = target.describe_configs([ConfigResource(ResourceType.TOPIC, "A.orders")]).values()
        settings = resource.result(60)
        return (settings["retention.ms"].value, settings["cleanup.policy"].value) == ("777000", "compact")

    assert eventually(has_settings, LIMIT_S), wherry.log_tail()


def _check_syncs(source: EmbeddedKafka, kafka: EmbeddedKafka) -> None:
    """Every sync is true: the record at the one offset is the record at the other."""
    theirs = {(m.partition(), m.offset()): m.key() for m in records(source.bootstrap, "orders")}
    ours = {(m.partition(), m.offset()): m.key() for m in records(kafka.bootstrap, "A.orders")}

    def told() -> list[OffsetSync]:
        return [OffsetSync.parse(m.key(), m.value()) for m in records(source.bootstrap, "mm2-offset-syncs.B.internal")]

    both = {("orders", 0), ("orders", 1)}
    assert eventually(lambda: {(sync.topic, sync.partition) for sync in told()} >= both, LIMIT_S)
    syncs = told()
    assert {(sync.topic, sync.partition) for sync in syncs} == both
    assert min(sync.upstream for sync in syncs) == 0
    for sync in syncs:
        assert theirs[sync.partition, sync.upstream] == ours[sync.partition, sync.downstream]


def test_groups_go_on_in_the_other_cluster_without_missing_a_record(
    source: EmbeddedKafka, kafka: EmbeddedKafka, wherry: Standalone
) -> None:
    commit(source.bootstrap, "shop", [TopicPartition("orders", 0, 10_500), TopicPartition("orders", 1, 60)])
    quick = {"emit.checkpoints.interval.seconds": "1", "sync.group.offsets.interval.seconds": "1"}
    asked = config("Checkpoint", source, kafka, **{"groups": "shop", "sync.group.offsets.enabled": "true", **quick})
    wherry.rest.create("checkpoints", asked)

    def checkpoints() -> dict[int, Checkpoint]:
        found = [Checkpoint.parse(m.key(), m.value()) for m in records(kafka.bootstrap, "A.checkpoints.internal")]
        return {each.partition: each for each in found}

    assert eventually(lambda: len(checkpoints()) == 2, LIMIT_S), wherry.log_tail()
    theirs = {(m.partition(), m.offset()): m.key() for m in records(source.bootstrap, "orders")}
    ours = {(m.partition(), m.offset()): m.key() for m in records(kafka.bootstrap, "A.orders")}
    for partition, found in checkpoints().items():
        assert (found.group, found.topic) == ("shop", "A.orders")
        unread = {key for (p, offset), key in theirs.items() if p == partition and offset >= found.upstream}
        assert unread <= {key for (p, offset), key in ours.items() if p == partition and offset >= found.downstream}
    moved = Consumer({"bootstrap.servers": kafka.bootstrap, "group.id": "shop"})
    expected = [checkpoints()[number].downstream for number in (0, 1)]
    wanted = [TopicPartition("A.orders", 0), TopicPartition("A.orders", 1)]
    assert eventually(lambda: [each.offset for each in moved.committed(wanted, 60)] == expected, LIMIT_S)
    moved.close()


def test_heartbeats_are_those_of_mirrormaker(source: EmbeddedKafka, kafka: EmbeddedKafka, wherry: Standalone) -> None:
    wherry.rest.create("heartbeat", config("Heartbeat", source, kafka))
    assert eventually(lambda: len(records(kafka.bootstrap, "heartbeats")) >= 2, LIMIT_S), wherry.log_tail()
    beats = [Heartbeat.parse(m.key(), m.value()) for m in records(kafka.bootstrap, "heartbeats")]
    assert {(beat.source, beat.target) for beat in beats} == {("A", "B")}
    assert beats[0].timestamp_ms < beats[1].timestamp_ms
    offsets = [({"sourceClusterAlias": "A", "targetClusterAlias": "B"}, {"offset": 0})]
    assert eventually(lambda: wherry.rest.offsets("heartbeat") == offsets, LIMIT_S)
