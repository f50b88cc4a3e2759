"""What a worker file says of the three topics, and how they are created or checked."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from wherry.contract.errors import AuthError, ConfigError, TransientError
from wherry.coordinator.config.worker import WorkerConfig
from wherry.coordinator.store.internal_topics import InternalTopic, ensure, internal_topics

FILE = {
    "bootstrap.servers": "b:1",
    "key.converter": "K",
    "value.converter": "V",
    "group.id": "g",
    "config.storage.topic": "c",
    "offset.storage.topic": "o",
    "status.storage.topic": "s",
}


def topics(**more: str) -> tuple[InternalTopic, ...]:
    values = {**FILE, **{key.replace("__", "."): value for key, value in more.items()}}
    worker = WorkerConfig.of(values, distributed=True)
    return internal_topics(worker.values, worker.parsed)


class Admin:
    """Answers as told, and remembers what it was asked to create."""

    def __init__(self, there: Mapping[str, int], policy: str = "compact", error: Exception | None = None) -> None:
        self.there, self.policy, self.error = there, policy, error
        self.created: list[tuple[str, int, int, dict[str, str]]] = []

    def topics(self) -> dict[str, int]:
        return dict(self.there)

    def topic_config(self, topic: str) -> dict[str, str]:
        if self.error is not None:
            raise self.error
        return {"cleanup.policy": self.policy}

    def create_topic(self, topic: str, partitions: int, replicas: int, config: Mapping[str, str]) -> bool:
        if self.error is not None:
            raise self.error
        self.created.append((topic, partitions, replicas, dict(config)))
        return True


def test_defaults_are_kafka_connects():
    assert [(t.name, t.partitions, t.replicas, dict(t.settings)) for t in topics()] == [
        ("c", 1, 3, {"cleanup.policy": "compact"}),
        ("o", 25, 3, {"cleanup.policy": "compact"}),
        ("s", 5, 3, {"cleanup.policy": "compact"}),
    ]


def test_settings_of_a_topic_go_along_but_its_policy_and_one_partition_stay():
    found = topics(
        config__storage__min__insync__replicas="2",
        config__storage__partitions="9",
        config__storage__cleanup__policy="delete",
        offset__storage__partitions="-1",
        offset__storage__replication__factor="-1",
    )
    assert (found[0].partitions, found[0].settings) == (1, {"cleanup.policy": "compact", "min.insync.replicas": "2"})
    assert (found[1].partitions, found[1].replicas) == (-1, -1)


@pytest.mark.parametrize("same", ["c", "o"])
def test_two_topics_of_one_name_are_refused(same):
    with pytest.raises(ConfigError, match=f"both name {same}"):
        topics(status__storage__topic=same)


def test_a_topic_that_another_has_just_made_is_not_believed_to_be_as_it_should_be():
    class Late(Admin):
        def create_topic(self, topic: str, partitions: int, replicas: int, config: Mapping[str, str]) -> bool:
            return False

    config = topics()[0]
    admin = Late({})
    with pytest.raises(TransientError, match="was made a moment ago and is not known everywhere yet"):
        ensure(admin, config)
    admin.there = {config.name: 3}
    with pytest.raises(ConfigError, match="has 3 partitions"):
        ensure(admin, config)


def test_a_missing_topic_is_created_and_one_that_is_there_is_not():
    wanted = topics()[1]
    admin = Admin({})
    assert ensure(admin, wanted)  # type: ignore[arg-type]
    assert admin.created == [("o", 25, 3, {"cleanup.policy": "compact"})]
    admin = Admin({"o": 7})
    assert not ensure(admin, wanted)  # type: ignore[arg-type]
    assert admin.created == []


@pytest.mark.parametrize("policy", ["delete", "compact,delete", ""])
def test_a_topic_that_forgets_is_refused(policy):
    for topic in topics():
        with pytest.raises(ConfigError, match=rf"\({topic.key}\) has cleanup\.policy={policy}, which would delete"):
            ensure(Admin({topic.name: 1}, policy), topic)  # type: ignore[arg-type]


def test_configurations_want_a_single_partition():
    with pytest.raises(ConfigError, match="has 2 partitions"):
        ensure(Admin({"c": 2}), topics()[0])  # type: ignore[arg-type]


def test_what_may_not_be_looked_at_is_believed():
    assert not ensure(Admin({"c": 1}, error=AuthError("no")), topics()[0])  # type: ignore[arg-type]


def test_what_may_not_be_created_is_told_with_what_to_do():
    with pytest.raises(ConfigError, match=r"Create the topic o \(offset\.storage\.topic\) yourself"):
        ensure(Admin({}, error=AuthError("Kafka refuses.")), topics()[1])  # type: ignore[arg-type]
    with pytest.raises(TransientError, match="more than there are brokers"):
        ensure(Admin({}, error=TransientError("Too few.")), topics()[1])  # type: ignore[arg-type]


def test_where_topics_are_made_by_others_a_missing_one_is_told_and_not_made():
    config, offsets, _ = topics(internal__topics__automatic__creation__enable="false")
    admin = Admin({})
    with pytest.raises(ConfigError, match=r"There is no topic c \(config\.storage\.topic\).* a single partition\.$"):
        ensure(admin, config)  # type: ignore[arg-type]
    with pytest.raises(ConfigError, match=r"=false: create it with cleanup\.policy=compact\.$"):
        ensure(admin, offsets)  # type: ignore[arg-type]
    assert admin.created == []
    assert not ensure(Admin({"o": 7}), offsets)  # type: ignore[arg-type]
