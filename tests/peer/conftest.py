"""The same steps on the real Kafka Connect and on Wherry."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.support.fixtures import kafka

from wherry.coordinator.dev.kafka import EmbeddedKafka

__all__ = ["kafka"]

_HERE = Path(__file__).parent
_WITHOUT_SERVERS = frozenset({"test_accepted.py", "test_compare.py", "test_draws.py"})


@pytest.fixture(scope="session")
def kafka_address(kafka: EmbeddedKafka) -> str:
    """Address of the run's broker."""
    return kafka.bootstrap


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark the tests that start servers."""
    for item in items:
        if _HERE in item.path.parents and item.path.name not in _WITHOUT_SERVERS:
            item.add_marker(pytest.mark.integration)
