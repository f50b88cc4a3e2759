"""The coordinator's admin client, as far as no broker is needed."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
from confluent_kafka import KafkaError

from wherry.contract.errors import AuthError, ConfigError
from wherry.contract.position import TopicPartition
from wherry.coordinator.kafka import KafkaAdmin


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        (
            {"security.protocol": "SASL_PLAINTEXT", "sasl.mechanism": "GSSAPI", "sasl.kerberos.service.name": "k"},
            r"No provider for SASL mechanism GSSAPI.*has no Kerberos: install one",
        ),
        ({"ssl.ca.location": "/none.pem", "security.protocol": "SSL"}, r"ssl\.ca\.location failed.*Check the producer"),
        ({"linger.ms": "soon"}, r"Invalid value for configuration property"),
    ],
)
def test_settings_no_client_can_be_made_with_are_refused_with_a_remedy(settings: dict[str, str], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        KafkaAdmin({"bootstrap.servers": "127.0.0.1:1", **settings}).cluster_id()


def group(state: str, **members: int | None) -> Any:
    """A group as the client describes it: its members, each with the partition of topic `c` that it shows."""
    from confluent_kafka import ConsumerGroupState
    from confluent_kafka import TopicPartition as Native

    described = [
        SimpleNamespace(
            member_id=name,
            assignment=SimpleNamespace(topic_partitions=[] if partition is None else [Native("c", partition)]),
        )
        for name, partition in members.items()
    ]
    return SimpleNamespace(state=ConsumerGroupState[state], members=described)


@pytest.mark.parametrize(
    ("described", "wanted"),
    [
        (None, None),
        (group("STABLE", old=0, other=None), "old"),
        (group("STABLE", old=None, other=0), "other"),
        (group("STABLE", other=1), None),
        # Its members join anew: what nobody has given up is where it was, though no assignment is shown.
        (group("PREPARING_REBALANCING", old=None, new=None), "old"),
        (group("PREPARING_REBALANCING", new=None), None),
        # They all have joined, and one of them hands the partitions out.
        (group("COMPLETING_REBALANCING", old=None), None),
    ],
)
def test_a_partition_stays_with_whoever_had_it_until_the_group_has_decided(
    described: Any, wanted: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    admin = KafkaAdmin({})
    monkeypatch.setattr(admin, "_described", lambda name: described)
    assert admin.holder("g", TopicPartition("c", 0), "old") == wanted


def consumer_of(offsets: list[Any]) -> Any:
    """A class of consumers whose group has these offsets: partition of topic `t`, offset, error."""

    class Told:
        def __init__(self, settings: Any) -> None:
            pass

        def committed(self, natives: Any, timeout: float) -> list[Any]:
            return [
                SimpleNamespace(topic="t", partition=number, offset=offset, error=error)
                for number, offset, error in offsets
            ]

        def close(self) -> None:
            pass

    return Told


def test_offsets_of_a_group_leave_out_partitions_without_one(monkeypatch: pytest.MonkeyPatch) -> None:
    admin = KafkaAdmin({"bootstrap.servers": "127.0.0.1:1"})
    monkeypatch.setattr(admin, "_described", lambda name: group("EMPTY"))
    monkeypatch.setattr("confluent_kafka.Consumer", consumer_of([(0, 7, None), (1, -1001, None)]))
    asked = [TopicPartition("t", 0), TopicPartition("t", 1)]
    assert admin.group_offsets("g", asked) == {TopicPartition("t", 0): 7}


def test_a_partition_whose_offset_is_not_told_is_not_taken_for_one_without(monkeypatch: pytest.MonkeyPatch) -> None:
    admin = KafkaAdmin({"bootstrap.servers": "127.0.0.1:1"})
    refused = KafkaError(KafkaError.TOPIC_AUTHORIZATION_FAILED)
    monkeypatch.setattr(admin, "_described", lambda name: group("EMPTY"))
    monkeypatch.setattr("confluent_kafka.Consumer", consumer_of([(0, 7, None), (1, -1001, refused)]))
    with pytest.raises(AuthError, match="could not read the offsets of group g"):
        admin.group_offsets("g", [TopicPartition("t", 0), TopicPartition("t", 1)])
