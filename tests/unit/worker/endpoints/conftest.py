"""A broker inside the test's own process: librdkafka's mock cluster. No server is started."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from confluent_kafka import Producer


class MockCluster:
    """Brokers that live as long as one producer."""

    def __init__(self) -> None:
        self.producer = Producer(
            {"bootstrap.servers": "none", "test.mock.num.brokers": 1, "linger.ms": 0, "log_level": 0}
        )
        broker = next(iter(self.producer.list_topics(timeout=10).brokers.values()))
        self.bootstrap = f"{broker.host}:{broker.port}"

    def produce(self, topic: str, *values: bytes | None, partition: int = 0, **more: object) -> None:
        for value in values:
            self.producer.produce(topic, value, partition=partition, **more)  # type: ignore[arg-type]
        assert self.producer.flush(10) == 0


@pytest.fixture
def cluster() -> Iterator[MockCluster]:
    yield MockCluster()
