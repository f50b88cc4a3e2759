"""The coordinator's admin client, as far as no broker is needed."""

from __future__ import annotations

from concurrent.futures import Future
from types import SimpleNamespace
from typing import Any

import pytest
from confluent_kafka import KafkaError, KafkaException

from wherry.contract.errors import AuthError, ConfigError, TransientError
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


class Ends:
    """An admin client that tells the end of a partition, or why not."""

    def __init__(self, told: dict[int, int | Any]) -> None:
        self.told = told

    def list_offsets(self, asked: Any, **_: Any) -> dict[Any, Future[Any]]:
        futures = {}
        for native in asked:
            told, future = self.told[native.partition], Future[Any]()
            if isinstance(told, int):
                future.set_result(SimpleNamespace(offset=told))
            else:
                future.set_exception(KafkaException(told))
            futures[native] = future
        return futures


UNLED, GONE = KafkaError(KafkaError.LEADER_NOT_AVAILABLE), KafkaError(KafkaError.UNKNOWN_TOPIC_OR_PART)


@pytest.mark.parametrize(
    ("told", "ends"),
    [({0: 5, 1: 0}, {0: 5, 1: 0}), ({0: 5, 1: GONE}, {0: 5}), ({0: 5, 1: UNLED}, {0: 5}), ({0: GONE, 1: GONE}, {})],
)
def test_ends_are_told_of_partitions_that_have_one(
    told: dict[int, Any], ends: dict[int, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    admin = KafkaAdmin({})
    monkeypatch.setattr(admin, "_admin", lambda: Ends(told))
    found = admin.end_offsets([TopicPartition("t", number) for number in told])
    assert found == {TopicPartition("t", number): end for number, end in ends.items()}


@pytest.mark.parametrize("other", [UNLED, GONE])
def test_where_no_end_is_told_and_one_may_come_that_is_raised(other: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    admin = KafkaAdmin({})
    monkeypatch.setattr(admin, "_admin", lambda: Ends({0: UNLED, 1: other}))
    with pytest.raises(TransientError, match="LEADER_NOT_AVAILABLE"):
        admin.end_offsets([TopicPartition("t", 0), TopicPartition("t", 1)])
