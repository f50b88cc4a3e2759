"""Variables of Kafka Connect's Docker images."""

from __future__ import annotations

import pytest

from wherry.coordinator.config.environment import settings


@pytest.mark.parametrize(
    ("name", "key"),
    [
        ("CONNECT_GROUP_ID", "group.id"),
        ("CONNECT_CONFIG_STORAGE_TOPIC", "config.storage.topic"),
        ("CONNECT_REST_ADVERTISED_HOST_NAME", "rest.advertised.host.name"),
        ("CONNECT_A__B", "a-b"),
        ("CONNECT_A___B_C", "a_b.c"),
        ("CONNECT_WHERRY_SPARK_MASTER", "wherry.spark.master"),
    ],
)
def test_a_variable_is_a_setting(name: str, key: str) -> None:
    assert settings({name: "Value=1"}) == {key: "Value=1"}


@pytest.mark.parametrize("name", ["CONNECT_", "CONNECT_LOG4J_ROOT_LOGLEVEL", "CONNECT_OPTS", "KAFKA_OPTS", "connect_a"])
def test_other_variables_are_none(name: str) -> None:
    assert settings({name: "x"}) == {}
