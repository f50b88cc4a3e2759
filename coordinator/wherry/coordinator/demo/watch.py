"""What a person sees while the demonstration runs: rows sent and landed, their rates, and what is still on its way."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from wherry.coordinator.demo.stage import TOPIC

RATE_WINDOW_S = 2.0
QUERY_TIMEOUT_S = 10.0


@dataclass(frozen=True, slots=True)
class Sample:
    """What Kafka knows at one moment."""

    at_s: float
    sent: int
    landed: Mapping[str, int]
    """Rows landed, by sink connector: the committed offsets of its consumer group."""


class Probe:
    """Asks the broker; one admin client for the whole demonstration."""

    def __init__(self, bootstrap: str, sinks: Sequence[str]) -> None:
        """Connects lazily.

        Args:
            bootstrap: The broker.
            sinks: Names of the sink connectors.
        """
        from confluent_kafka import Consumer
        from confluent_kafka.admin import AdminClient

        self._admin = AdminClient({"bootstrap.servers": bootstrap})
        settings = {"bootstrap.servers": bootstrap, "enable.auto.commit": False}
        self._readers = {sink: Consumer(settings | {"group.id": f"connect-{sink}"}) for sink in sinks}

    def create_topic(self, partitions: int) -> None:
        """Makes the topic; one that exists is fine."""
        from confluent_kafka import KafkaException
        from confluent_kafka.admin import NewTopic

        try:
            self._admin.create_topics([NewTopic(TOPIC, partitions, 1)])[TOPIC].result(QUERY_TIMEOUT_S)
        except KafkaException as error:
            if error.args[0].name() != "TOPIC_ALREADY_EXISTS":
                raise
        self._partitions = partitions

    def sample(self) -> Sample:
        """Counts rows sent and landed."""
        from confluent_kafka import KafkaException, TopicPartition
        from confluent_kafka.admin import OffsetSpec

        places = [TopicPartition(TOPIC, i) for i in range(self._partitions)]
        ends = self._admin.list_offsets({place: OffsetSpec.latest() for place in places})
        try:
            sent = sum(end.result(QUERY_TIMEOUT_S).offset for end in ends.values())
        except KafkaException:
            sent = 0  # a new topic has no leader for a moment
        landed = {}
        for sink, consumer in self._readers.items():
            try:
                offsets = consumer.committed(places, QUERY_TIMEOUT_S)
            except KafkaException:
                offsets = []  # the broker is still loading its group; nothing has been committed yet
            landed[sink] = sum(max(0, place.offset) for place in offsets)
        return Sample(time.monotonic(), sent, landed)


@dataclass(slots=True)
class View:
    """Samples of the last seconds, drawn as a table."""

    expected: int | None
    """Rows that will come, if known."""
    samples: deque[Sample] = field(default_factory=lambda: deque(maxlen=100))

    def add(self, sample: Sample) -> None:
        """Takes a new sample in."""
        self.samples.append(sample)

    def rate(self, count: Any) -> float:
        """Rows a second over the last moments, of whatever `count` takes from a sample."""
        newest = self.samples[-1]
        window = [s for s in self.samples if newest.at_s - s.at_s <= RATE_WINDOW_S]
        span_s = newest.at_s - window[0].at_s
        return (count(newest) - count(window[0])) / span_s if span_s > 0 else 0.0

    def rows(self) -> list[tuple[str, str, str, str]]:
        """What to show: name, rows, rate, still on the way."""
        newest = self.samples[-1]
        left = "" if self.expected is None else f"{max(0, self.expected - newest.sent):,}"
        shown = [("file → topic", f"{newest.sent:,}", f"{self.rate(lambda s: s.sent):,.0f}/s", left)]
        for sink, landed in newest.landed.items():
            rate = self.rate(lambda s, sink=sink: s.landed[sink])
            shown.append(
                (f"topic → {sink.removeprefix('demo-')}", f"{landed:,}", f"{rate:,.0f}/s", f"{newest.sent - landed:,}")
            )
        return shown
