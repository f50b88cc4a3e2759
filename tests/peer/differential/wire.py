"""The broker's side of many cases at once: one client of each kind, one call for all topics of a wave."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from tests.peer.differential.cases import Record
from tests.support.topics import once_led

TIMEOUT_S = 60.0
BATCH_MAX = 10_000
KEPT = {"retention.ms": "-1"}
"""The records are of fixed days that are long gone; a broker would delete them after half a minute."""
_QUIET = {"log_level": 0}


class Wire:
    """Clients of one broker, each made once: a client for each topic takes longer than what is done with it."""

    def __init__(self, bootstrap: str) -> None:
        from confluent_kafka import Consumer, Producer
        from confluent_kafka.admin import AdminClient

        common = {"bootstrap.servers": bootstrap, **_QUIET}
        self._admin = AdminClient(dict(common))
        self._producers = {
            kind: Producer({**common, "linger.ms": 5, "compression.type": kind, "enable.idempotence": True})
            for kind in ("none", "gzip", "lz4", "zstd", "snappy")
        }
        self._consumer = Consumer({
            **common, "group.id": "unused", "enable.auto.commit": False, "isolation.level": "read_committed",
        })  # fmt: skip

    def create(self, topics: Mapping[str, int]) -> None:
        """Makes topics, each with so many partitions."""
        from confluent_kafka.admin import NewTopic  # type: ignore[attr-defined]  # re-exported without saying so

        made = self._admin.create_topics(
            [NewTopic(name, partitions, 1, config=KEPT) for name, partitions in topics.items()]
        )
        for future in made.values():
            future.result(TIMEOUT_S)

    def produce(self, topic: str, records: Sequence[Record], compression: str = "none") -> None:
        """Writes records where they say; `flush` waits for them."""
        producer = self._producers[compression]
        for record in records:
            producer.produce(
                topic + record.topic,
                record.value,
                record.key,
                record.partition,
                timestamp=record.timestamp_ms,
                headers=list(record.headers),
            )

    def flush(self) -> None:
        """Waits until everything is acknowledged."""
        for producer in self._producers.values():
            assert producer.flush(TIMEOUT_S) == 0, "the broker did not acknowledge everything in time"

    def topics(self) -> dict[str, int]:
        """Returns the topics there are, each with its number of partitions."""
        return {
            name: len(topic.partitions) for name, topic in self._admin.list_topics(timeout=TIMEOUT_S).topics.items()
        }

    def ends(self, names: Iterable[str]) -> dict[tuple[str, int], int]:
        """Returns the offset after the last record of every partition of topics."""
        names = list(names)
        return once_led(lambda: self._ends(names))

    def _ends(self, names: Iterable[str]) -> dict[tuple[str, int], int]:
        from confluent_kafka import TopicPartition
        from confluent_kafka.admin import OffsetSpec  # type: ignore[attr-defined]  # re-exported without saying so

        known = self.topics()
        wanted = {
            TopicPartition(name, partition): OffsetSpec.latest()
            for name in names
            for partition in range(known.get(name, 0))
        }
        if not wanted:
            return {}
        asked = self._admin.list_offsets(wanted)  # type: ignore[no-untyped-call]
        return {(place.topic, place.partition): future.result(TIMEOUT_S).offset for place, future in asked.items()}

    def read(self, names: Iterable[str]) -> dict[str, list[Any]]:
        """Returns all records of topics, partition by partition, each in its order."""
        from confluent_kafka import TopicPartition

        left = {place: end for place, end in self.ends(names).items() if end}
        found: dict[tuple[str, int], list[Any]] = {place: [] for place in left}
        self._consumer.assign([TopicPartition(topic, partition, 0) for topic, partition in left])
        deadline = time.monotonic() + TIMEOUT_S
        while left and time.monotonic() < deadline:
            for message in self._consumer.consume(BATCH_MAX, 0.2):
                place = message.topic(), message.partition()
                if message.error() is None and place in left:
                    found[place].append(message)
            for place, end in list(left.items()):
                # The end counts what marks transactions too, which no consumer is given.
                at = self._consumer.position([TopicPartition(*place)])[0].offset
                if at >= end:
                    del left[place]
        assert not left, f"{left} could not be read in time"
        self._consumer.unassign()
        gathered: dict[str, list[Any]] = {}
        for (topic, _), messages in sorted(found.items()):
            gathered.setdefault(topic, []).extend(messages)
        return gathered

    def close(self) -> None:
        """Lets go of the clients."""
        self._consumer.close()
