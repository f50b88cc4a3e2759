"""Exactly-once sources: what leases are told, and who is shut out when."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any

import pytest

from wherry.contract.errors import ConfigError, TransientError
from wherry.control.v1 import lease_pb2
from wherry.coordinator.config.worker import WorkerConfig
from wherry.coordinator.events import ConnectorSpec, Kind
from wherry.coordinator.exactly_once import Fencer, is_enabled, terms
from wherry.coordinator.store.local import MemoryConfigStore

DISTRIBUTED = {
    "bootstrap.servers": "broker:9092",
    "group.id": "g",
    "config.storage.topic": "configs",
    "offset.storage.topic": "offsets",
    "status.storage.topic": "statuses",
    "key.converter": "org.apache.kafka.connect.storage.StringConverter",
    "value.converter": "org.apache.kafka.connect.storage.StringConverter",
    "exactly.once.source.support": "enabled",
    "offset.flush.interval.ms": "7000",
}
SPEC = ConnectorSpec("c", Kind.SOURCE, {"producer.override.linger.ms": "9"}, exactly_once=True)


def worker(**changes: str) -> WorkerConfig:
    given = {**DISTRIBUTED, **{key.replace("_", "."): value for key, value in changes.items()}}
    return WorkerConfig.of(given, distributed=True)


class Kafka:
    """Opens transactions, unless it is away."""

    def __init__(self) -> None:
        self.opened: list[str] = []
        self.topics: list[str] = []
        self.settings: Mapping[str, Any] = {}
        self.away = False

    def open(self, settings: Mapping[str, Any], name: str, seconds: float, topic: str) -> None:
        assert seconds > 0
        self.topics.append(topic)
        if self.away:
            raise TransientError("away")
        self.settings = settings
        self.opened.append(name)


@pytest.fixture
def kafka() -> Kafka:
    return Kafka()


@pytest.fixture
def counts() -> MemoryConfigStore:
    return MemoryConfigStore()


@pytest.fixture
def fencer(kafka: Kafka, counts: MemoryConfigStore) -> Fencer:
    return Fencer(worker(), dict, counts, kafka.open)


@pytest.mark.parametrize(("value", "expected"), [("enabled", True), ("ENABLED", True), ("preparing", False)])
def test_only_enabled_enables_it(value: str, expected: bool) -> None:
    assert is_enabled(worker(exactly_once_source_support=value)) is expected


def test_a_standalone_worker_never_has_it() -> None:
    given = {**DISTRIBUTED, "offset.storage.file.filename": "/tmp/offsets"}
    assert not is_enabled(WorkerConfig.of(given))


def test_a_lease_is_told_kafka_connects_names_and_defaults() -> None:
    told = terms(worker(), "my-c", 3, {})
    assert told == lease_pb2.ExactlyOnce(
        transactional_id="g-my-c-3",
        offsets_topic="offsets",
        boundary=lease_pb2.TRANSACTION_BOUNDARY_POLL,
        interval_ms=7000,
    )


def test_a_connector_may_choose_boundary_interval_and_topic() -> None:
    config = {
        "transaction.boundary": "INTERVAL",
        "transaction.boundary.interval.ms": "50",
        "offsets.storage.topic": "own",
    }
    told = terms(worker(), "c", 0, config)
    assert (told.offsets_topic, told.boundary, told.interval_ms) == (
        "own",
        lease_pb2.TRANSACTION_BOUNDARY_INTERVAL,
        50,
    )


def test_an_interval_that_is_no_number_is_refused_by_name() -> None:
    with pytest.raises(ConfigError, match=r"Invalid value soon for configuration transaction\.boundary\.interval\.ms"):
        terms(worker(), "c", 0, {"transaction.boundary.interval.ms": "soon"})


def test_a_first_set_of_tasks_has_nobody_before_it(fencer: Fencer, kafka: Kafka) -> None:
    fencer.owe_round(SPEC)
    fencer.settle("c")
    assert kafka.opened == []


def test_a_new_set_of_tasks_shuts_out_all_that_were(fencer: Fencer, kafka: Kafka) -> None:
    fencer.expect(SPEC, 3, first=True)
    fencer.owe_round(SPEC)
    fencer.settle("c")
    assert kafka.opened == ["g-c-0", "g-c-1", "g-c-2"]
    fencer.settle("c")
    assert len(kafka.opened) == 3
    assert kafka.settings["bootstrap.servers"] == "broker:9092"
    assert "linger.ms" not in kafka.settings
    assert set(kafka.topics) == {"offsets"}


def test_another_cluster_is_asked_for_no_topic_of_ours(fencer: Fencer, kafka: Kafka) -> None:
    elsewhere = dataclasses.replace(SPEC, config={**SPEC.config, "producer.override.bootstrap.servers": "other:9092"})
    fencer.owe(elsewhere, [0])
    fencer.settle("c")
    assert kafka.settings["bootstrap.servers"] == "other:9092"
    assert kafka.topics == [""]


def test_what_could_not_be_shut_out_stays_noted(fencer: Fencer, kafka: Kafka) -> None:
    fencer.owe(SPEC, [1])
    kafka.away = True
    with pytest.raises(TransientError):
        fencer.settle("c")
    kafka.away = False
    fencer.settle("c")
    assert kafka.opened == ["g-c-1"]


def test_the_count_shrinks_only_with_a_new_set_of_tasks(fencer: Fencer, counts: MemoryConfigStore) -> None:
    for count, first, expected in [(3, True, 3), (2, False, 3), (4, False, 4), (1, True, 1)]:
        fencer.expect(SPEC, count, first=first)
        assert counts.task_count("c") == expected
