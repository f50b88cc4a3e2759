"""What a converter learns of the registry, and does not take for an answer."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
from confluent_kafka.schema_registry import Schema
from confluent_kafka.schema_registry.common._httpx_compat import httpx
from confluent_kafka.schema_registry.error import SchemaRegistryError

from wherry.contract.errors import TransientError
from wherry.worker.convert.registered.client import Registry, RegistrySettings

SETTINGS = RegistrySettings.of({"schema.registry.url": "mock://registry"}, is_key=False)


class OneSchema:
    """A registry with one schema, whose versions fail as told, and then are 3."""

    def __init__(self, *failures: Exception) -> None:
        self.failures = list(failures)

    def get_schema(self, *_: Any) -> Schema:
        return Schema('"int"', "AVRO")

    def lookup_schema(self, *_: Any) -> Any:
        if self.failures:
            raise self.failures.pop()
        return SimpleNamespace(version=3)


def registry(*failures: Exception) -> Registry:
    made = Registry(SETTINGS)
    made._made = OneSchema(*failures)
    return made


@pytest.mark.parametrize(
    "failure", [SchemaRegistryError(503, 50301, "no leader"), httpx.ConnectError("connection refused")]
)
def test_a_version_that_is_not_told_now_is_asked_for_again(failure: Exception) -> None:
    """It stays with the schema for as long as the converter lives."""
    asked = registry(failure)
    with pytest.raises(TransientError, match="the version of schema 7"):
        asked.schema(7, "t-value")
    assert asked.schema(7, "t-value").version == 3


@pytest.mark.parametrize(
    "failure",
    [SchemaRegistryError(404, 40401, "no such subject"), SchemaRegistryError(403, 40301, "no"), KeyError("version")],
)
def test_a_version_that_can_not_be_known_is_none(failure: Exception) -> None:
    assert registry(failure).schema(7, "t-value").version is None
