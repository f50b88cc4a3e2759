"""Settings of a connector's clients."""

from __future__ import annotations

import pytest

from wherry.contract.config import ConfigType
from wherry.contract.description import Role
from wherry.coordinator.config import clientkeys


@pytest.mark.parametrize(
    ("role", "config", "clients"),
    [
        (Role.SOURCE, {}, ("producer",)),
        (Role.SOURCE, {"topic.creation.default.partitions": "1"}, ("producer", "admin")),
        (Role.SINK, {}, ("consumer",)),
        (Role.SINK, {"errors.deadletterqueue.topic.name": " "}, ("consumer",)),
        (Role.SINK, {"errors.deadletterqueue.topic.name": "d"}, ("producer", "consumer", "admin")),
    ],
)
def test_a_connector_has_the_clients_its_settings_ask_for(role, config, clients) -> None:
    assert clientkeys.clients_of(role, config) == clients


def test_overrides_come_in_javas_order_without_their_prefix() -> None:
    given = {f"producer.override.{key}": "1" for key in ("linger.ms", "acks", "zzz", "bootstrap.servers")}
    found = clientkeys.overridden("producer", {**given, "admin.override.retries": "3", "name": "x"})
    assert [key for key, _ in found] == ["acks", "bootstrap.servers", "zzz", "linger.ms"]


def test_a_definition_has_the_clients_type_and_default_under_the_connectors_name() -> None:
    key = clientkeys.definition("consumer", "max.poll.records")
    assert key is not None
    assert (key.name, key.type, key.default_value, key.required) == (
        "consumer.override.max.poll.records",
        ConfigType.INT,
        "500",
        False,
    )


def test_a_required_setting_is_so() -> None:
    key = clientkeys.definition("producer", "key.serializer")
    assert key is not None
    assert key.required


def test_a_setting_kafka_does_not_know_is_shown_as_it_is() -> None:
    assert clientkeys.definition("producer", "foo") is None
    assert clientkeys.shown("producer", "foo", " x ") == " x "


def test_a_password_is_hidden() -> None:
    assert clientkeys.shown("admin", "ssl.key.password", "secret") == "[hidden]"


def test_a_value_of_another_type_is_told_by_the_clients_own_name() -> None:
    with pytest.raises(clientkeys.OverrideError, match=r"Invalid value x for configuration linger\.ms: Not a number"):
        clientkeys.shown("producer", "linger.ms", "x")


@pytest.mark.parametrize("client", ["producer", "consumer", "admin"])
def test_the_table_knows_each_client(client: str) -> None:
    assert clientkeys.definition(client, "bootstrap.servers") is not None
    assert clientkeys.definition(client, "sasl.jaas.config") is not None
