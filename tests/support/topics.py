"""Kafka in a line: make a topic, fill it, read it, ask where it ends."""

from __future__ import annotations

import time
import uuid
from collections.abc import Callable, Iterable, Sequence
from typing import Any, TypeVar

TIMEOUT_S = 60.0
AGAIN_S = 0.2
_QUIET = {"log_level": 0}

T = TypeVar("T")


def create_topic(bootstrap: str, name: str, *, partitions: int = 1, config: dict[str, str] | None = None) -> str:
    """Create a topic and return its name once it can be written to."""
    from confluent_kafka.admin import AdminClient, NewTopic  # type: ignore[attr-defined]  # re-exported without saying so

    admin = AdminClient({"bootstrap.servers": bootstrap, **_QUIET})
    admin.create_topics([NewTopic(name, partitions, 1, config=config or {})])[name].result(TIMEOUT_S)
    return name


def produce(bootstrap: str, topic: str, records: Iterable[bytes | tuple[bytes | None, bytes | None]]) -> int:
    """Write records, each a value or (key, value), and return their number once all are acknowledged."""
    from confluent_kafka import Producer

    failures: list[Any] = []
    producer = Producer({"bootstrap.servers": bootstrap, "linger.ms": 5, **_QUIET})
    count = 0
    for record in records:
        key, value = record if isinstance(record, tuple) else (None, record)
        while True:
            try:
                producer.produce(
                    topic, value, key, on_delivery=lambda error, _: failures.append(error) if error else None
                )
                break
            except BufferError:
                producer.poll(0.1)
        count += 1
    assert producer.flush(TIMEOUT_S) == 0, "the broker did not acknowledge everything in time"
    assert not failures, failures[:3]
    return count


def consume(
    bootstrap: str, topic: str, count: int, *, timeout_s: float = TIMEOUT_S, committed_only: bool = True
) -> list[Any]:
    """Read a topic from its beginning until `count` records are there, or the time is over."""
    from confluent_kafka import Consumer

    consumer = Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": f"test-{uuid.uuid4().hex}",
            "auto.offset.reset": "earliest",
            "enable.auto.commit": False,
            "isolation.level": "read_committed" if committed_only else "read_uncommitted",
            **_QUIET,
        }
    )
    consumer.subscribe([topic])
    messages: list[Any] = []
    deadline = time.monotonic() + timeout_s
    try:
        while len(messages) < count and time.monotonic() < deadline:
            messages += [message for message in consumer.consume(10_000, 0.2) if message.error() is None]
    finally:
        consumer.close()
    return messages


def values(messages: Sequence[Any]) -> list[bytes | None]:
    """Return the values of consumed records."""
    return [message.value() for message in messages]


def end_offsets(bootstrap: str, topic: str) -> dict[int, int]:
    """Return the offset after the last record of each partition of a topic."""
    from confluent_kafka import TopicPartition
    from confluent_kafka.admin import AdminClient, OffsetSpec  # type: ignore[attr-defined]  # re-exported without saying so

    def ask() -> dict[int, int]:
        # A client of its own each time: one that has seen a leader of old stays with it.
        admin = AdminClient({"bootstrap.servers": bootstrap, **_QUIET})
        partitions = admin.list_topics(topic, timeout=TIMEOUT_S).topics[topic].partitions
        asked = admin.list_offsets({TopicPartition(topic, number): OffsetSpec.latest() for number in partitions})  # type: ignore[no-untyped-call]
        return {partition.partition: future.result(TIMEOUT_S).offset for partition, future in asked.items()}

    return once_led(ask)


def once_led(ask: Callable[[], T]) -> T:
    """Ask until the partitions have leaders: those of a topic that has just been made have none for a moment."""
    from confluent_kafka import KafkaError, KafkaException

    leaderless = {
        KafkaError.NOT_LEADER_FOR_PARTITION, KafkaError.LEADER_NOT_AVAILABLE,
        KafkaError.FENCED_LEADER_EPOCH, KafkaError.UNKNOWN_LEADER_EPOCH,
        KafkaError._NOENT,  # "No leaders found"
    }  # fmt: skip
    deadline = time.monotonic() + TIMEOUT_S
    while True:
        try:
            return ask()
        except KafkaException as error:
            if error.args[0].code() not in leaderless or time.monotonic() >= deadline:
                raise
        time.sleep(AGAIN_S)


def commit(bootstrap: str, group: str, offsets: Sequence[Any]) -> None:
    """Commit offsets, given as `TopicPartition`s, as a group without members does.

    A broker that has just begun finds its group coordinator only after a while.
    """
    from confluent_kafka import Consumer, KafkaException

    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": group, **_QUIET})
    deadline = time.monotonic() + TIMEOUT_S
    try:
        while True:
            try:
                consumer.commit(offsets=list(offsets), asynchronous=False)
                return
            except KafkaException:
                if time.monotonic() >= deadline:
                    raise
            time.sleep(AGAIN_S)
    finally:
        consumer.close()


def topic_names(bootstrap: str) -> set[str]:
    """Return the names of all topics there are."""
    from confluent_kafka.admin import AdminClient

    return set(AdminClient({"bootstrap.servers": bootstrap, **_QUIET}).list_topics(timeout=TIMEOUT_S).topics)


def group_offsets(bootstrap: str, group: str, topic: str) -> dict[tuple[str, int], int]:
    """Return what a consumer group has committed of a topic, by topic and partition."""
    from confluent_kafka import Consumer, TopicPartition

    # The admin client's answer to the same question ends the process when the broker does not answer in time.
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": group, **_QUIET})
    try:
        partitions = consumer.list_topics(topic, timeout=TIMEOUT_S).topics[topic].partitions
        found = consumer.committed([TopicPartition(topic, number) for number in partitions], timeout=TIMEOUT_S)
    finally:
        consumer.close()
    return {(each.topic, each.partition): each.offset for each in found if each.offset >= 0}
