"""Offsets of sources that have an offsets topic of their own, over the worker's store.

As in Kafka Connect, a connector's own topic (`offsets.storage.topic`) is read first and the worker's store fills in
what it does not hold; both are written, so that the connector can leave its topic again.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from wherry.contract import kafka_clients
from wherry.contract.connect_topics import PRODUCER_SETTINGS, offset_records
from wherry.contract.errors import TransientError
from wherry.contract.offsets_topic import read_positions
from wherry.contract.position import Position, kept_and_forgotten
from wherry.coordinator.exactly_once import OFFSETS_TOPIC
from wherry.coordinator.store import OffsetStore

WRITE_TIMEOUT_S: Final = 10.0
CREATE_TIMEOUT_S: Final = 10.0
_PREFIX: Final = "offset.storage."
_NOT_TOPIC_CONFIGS: Final = frozenset({"topic", "partitions", "replication.factor", "file.filename", "cleanup.policy"})

Settings = Mapping[str, kafka_clients.ClientValue]


class OwnTopicOffsets:
    """An `OffsetStore` that knows of own topics.

    Args:
        inner: The worker's store.
        worker: The worker's configuration, resolved.
        config_of: A connector's configuration, resolved; empty for one that is unknown.
    """

    def __init__(
        self, inner: OffsetStore, worker: Mapping[str, str], config_of: Callable[[str], Mapping[str, str]]
    ) -> None:
        self._inner = inner
        self._worker = worker
        self._config_of = config_of

    def load(self, connector: str) -> list[Position]:
        """All positions of a connector: those of its own topic, then what only the worker's store holds."""
        stored = {position.partition: position for position in self._inner.load(connector)}
        config = self._config_of(connector)
        topic = self.own_topic(config)
        if topic:
            found = read_positions(self._settings("consumer", config), topic, connector)
            stored.update({name: position for name, position in found.items() if position.offset is not None})
        return list(stored.values())

    def write(self, connector: str, positions: Sequence[Position]) -> None:
        """Write positions: where there are any, to the connector's own topic first, which is read first.

        What is forgotten is forgotten in the worker's store first, or that would fill in what its own topic lacks.
        """
        config = self._config_of(connector)
        topic = self.own_topic(config)
        if not topic:
            self._inner.write(connector, positions)
            return
        kept, forgotten = kept_and_forgotten(positions)
        if forgotten:
            self._inner.write(connector, forgotten)
        self._write(self._settings("producer", config), topic, connector, positions)
        if kept:
            self._inner.write(connector, kept)

    def write_behind(self, connector: str, positions: Sequence[Position]) -> None:
        """Take positions that a transaction has already stored where they count."""
        if self.own_topic(self._config_of(connector)):
            self._inner.write(connector, positions)

    def reset(self, connector: str) -> None:
        """Forget all positions of a connector, in both places."""
        self._inner.reset(connector)
        config = self._config_of(connector)
        topic = self.own_topic(config)
        if topic:
            found = read_positions(self._settings("consumer", config), topic, connector)
            gone = [Position(name, None) for name, position in found.items() if position.offset is not None]
            self._write(self._settings("producer", config), topic, connector, gone)

    def own_topic(self, config: Mapping[str, str]) -> str:
        """The offsets topic a connector has to itself; empty if it shares the worker's store."""
        topic = config.get(OFFSETS_TOPIC, "").strip()
        servers = config.get("producer.override.bootstrap.servers", self._worker.get("bootstrap.servers"))
        if servers != self._worker.get("bootstrap.servers"):
            # The worker's topic of another cluster is a topic of its own.
            return topic or self._worker.get("offset.storage.topic", "")
        return "" if topic == self._worker.get("offset.storage.topic") else topic

    def _settings(self, kind: kafka_clients.ClientKind, config: Mapping[str, str]) -> Settings:
        found = dict(kafka_clients.resolve(kind, worker=self._worker, connector=config).values)
        if kind == "consumer":
            producer = kafka_clients.resolve("producer", worker=self._worker, connector=config).values
            found["bootstrap.servers"] = producer["bootstrap.servers"]
        return found

    def _write(self, settings: Settings, topic: str, connector: str, positions: Sequence[Position]) -> None:
        from confluent_kafka import KafkaException, Producer

        if not positions:
            return
        failures: list[Any] = []

        def delivered(error: Any, _: Any) -> None:
            if error is not None:
                failures.append(error)

        try:
            producer = Producer({"log_level": 0, **settings, **PRODUCER_SETTINGS, "acks": "all"})
            self._ensure(producer, settings, topic)
            for record in offset_records(connector, positions):
                producer.produce(topic, record.value, record.key, on_delivery=delivered)
            left = producer.flush(WRITE_TIMEOUT_S)
        except KafkaException as error:
            raise TransientError(f"Offsets could not be written to {topic}: {error.args[0].str()}.") from error
        if left or failures:
            reason = failures[0].str() if failures else "no answer in time"
            if left:
                producer.purge()
            raise TransientError(f"Offsets could not be written to {topic}: {reason}.")

    def _ensure(self, producer: Any, settings: Settings, topic: str) -> None:
        """Create the topic as the worker's is created, unless it exists."""
        from confluent_kafka import KafkaError, KafkaException
        from confluent_kafka.admin import AdminClient, NewTopic

        metadata = producer.list_topics(topic, timeout=CREATE_TIMEOUT_S)
        missing = metadata.topics[topic].error
        if missing is None or missing.code() not in (KafkaError.UNKNOWN_TOPIC_OR_PART, KafkaError._UNKNOWN_TOPIC):
            return
        own = {k.removeprefix(_PREFIX): v for k, v in self._worker.items() if k.startswith(_PREFIX)}
        new = NewTopic(
            topic,
            int(own.get("partitions", "25")),
            int(own.get("replication.factor", "3")),
            config={**{k: v for k, v in own.items() if k not in _NOT_TOPIC_CONFIGS}, "cleanup.policy": "compact"},
        )
        connection = {key: value for key, value in settings.items() if key.startswith(("bootstrap.", "s"))}
        admin = AdminClient({"log_level": 0, **connection})
        deadline = time.monotonic() + CREATE_TIMEOUT_S
        try:
            admin.create_topics([new])[topic].result(CREATE_TIMEOUT_S)
        except KafkaException as error:
            if error.args[0].code() != KafkaError.TOPIC_ALREADY_EXISTS:
                raise
        except TimeoutError as error:
            raise TransientError(f"The offsets topic {topic} could not be created in time.") from error
        while producer.list_topics(topic, timeout=CREATE_TIMEOUT_S).topics[topic].error is not None:
            if time.monotonic() > deadline:
                raise TransientError(f"The offsets topic {topic} did not appear in time.")
            time.sleep(0.1)
