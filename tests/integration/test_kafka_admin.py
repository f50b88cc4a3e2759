"""The coordinator's admin client against a real broker: topics, end offsets, groups."""

from __future__ import annotations

import time
import uuid
from collections.abc import Callable, Iterator

import pytest
from confluent_kafka import Consumer, Producer
from tests.support.topics import create_topic
from tests.support.waiting import eventually

from wherry.contract.errors import TransientError, WherryError
from wherry.contract.position import TopicPartition
from wherry.coordinator import kafka
from wherry.coordinator.dev.kafka import EmbeddedKafka
from wherry.coordinator.kafka import KafkaAdmin

pytestmark = pytest.mark.integration


@pytest.fixture
def admin(bootstrap: str) -> KafkaAdmin:
    return KafkaAdmin({"bootstrap.servers": bootstrap})


@pytest.fixture
def group() -> str:
    return f"connect-{uuid.uuid4().hex[:8]}"


@pytest.fixture
def member(bootstrap: str, topic: str, group: str) -> Iterator[Consumer]:
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": group, "session.timeout.ms": 30_000})
    consumer.subscribe([topic])
    deadline = time.monotonic() + 90
    while not consumer.assignment() and time.monotonic() < deadline:
        consumer.poll(0.1)
    yield consumer
    consumer.close()


def fill(bootstrap: str, topic: str, records: int) -> None:
    producer = Producer({"bootstrap.servers": bootstrap})
    for _ in range(records):
        producer.produce(topic, b"x", partition=0)
    assert producer.flush(60) == 0


def test_topics_are_listed_with_their_partitions(admin: KafkaAdmin, new_topic: Callable[..., str]) -> None:
    name = new_topic(partitions=3)
    topics = admin.topics()
    assert topics[name] == 3
    assert "__consumer_offsets" not in topics


def test_end_offsets_leave_out_what_does_not_exist(admin: KafkaAdmin, bootstrap: str, topic: str) -> None:
    fill(bootstrap, topic, 7)
    there, missing = TopicPartition(topic, 0), TopicPartition("never-made", 0)
    assert admin.end_offsets([there, missing]) == {there: 7}


def test_a_group_without_members_is_written_read_and_forgotten(admin: KafkaAdmin, topic: str, group: str) -> None:
    partition = TopicPartition(topic, 0)
    assert admin.group_offsets(group) == {}
    admin.commit_group(group, {partition: 5})
    assert admin.group_offsets(group) == {partition: 5}
    assert admin.group_offsets(group, [partition]) == {partition: 5}
    admin.delete_group(group)
    assert admin.group_offsets(group, [partition]) == {}


def test_a_group_nobody_knows_has_no_members_and_may_be_deleted(admin: KafkaAdmin, group: str) -> None:
    assert admin.group_members(group) == []
    admin.delete_group(group)


def test_a_group_nobody_knows_has_no_offsets_and_costs_no_consumer(
    admin: KafkaAdmin, topic: str, group: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    made: list[str] = []
    monkeypatch.setattr("confluent_kafka.Consumer", lambda settings: made.append(settings["group.id"]))
    assert admin.group_offsets(group, [TopicPartition(topic, 0)]) == {}
    assert made == []


def test_live_members_are_named_and_keep_others_from_committing(
    admin: KafkaAdmin, topic: str, group: str, member: Consumer
) -> None:
    (described,) = admin.group_members(group)
    assert "127.0.0.1" in described
    with pytest.raises(TransientError, match="live members"):
        admin.commit_group(group, {TopicPartition(topic, 0): 1})


def test_a_broker_that_is_away_is_told_in_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kafka, "CALL_TIMEOUT_S", 0.5)
    began = time.monotonic()
    with pytest.raises(TransientError, match="Kafka could not list topics"):
        KafkaAdmin({"bootstrap.servers": "127.0.0.1:9"}).topics()
    assert time.monotonic() - began < 30


def test_a_broker_that_was_away_is_used_again(own_kafka: EmbeddedKafka, monkeypatch: pytest.MonkeyPatch) -> None:
    """librdkafka's admin client stays with the leaders it knew, and aborts the process over an answer that is late."""
    partition = TopicPartition(create_topic(own_kafka.bootstrap, "watched"), 0)
    fill(own_kafka.bootstrap, "watched", 5)
    admin = KafkaAdmin({"bootstrap.servers": own_kafka.bootstrap})
    admin.commit_group("before", {partition: 1})
    assert admin.end_offsets([partition]) == {partition: 5}
    own_kafka.kill()
    monkeypatch.setattr(kafka, "CALL_TIMEOUT_S", 2.0)
    for _ in range(2):
        with pytest.raises(WherryError):
            admin.commit_group("before", {partition: 2})
        with pytest.raises(WherryError):
            admin.group_members("before")
    own_kafka.start()
    monkeypatch.setattr(kafka, "CALL_TIMEOUT_S", 10.0)

    failures: list[str] = []

    def works() -> bool:
        try:
            admin.commit_group("before", {partition: 3})
            return admin.end_offsets([partition]) == {partition: 5}
        except WherryError as error:
            failures.append(str(error))
            return False

    assert eventually(works, 90.0), failures
    assert admin.group_offsets("before") == {partition: 3}
