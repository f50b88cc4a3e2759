"""Every test here runs against real servers and bears the marker `integration`."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.support.fixtures import (
    bootstrap,
    database,
    free_port,
    kafka,
    new_topic,
    own_kafka,
    postgres,
    registry,
    topic,
)
from tests.support.pumps import sidecar

__all__ = [
    "bootstrap",
    "database",
    "free_port",
    "kafka",
    "new_topic",
    "own_kafka",
    "postgres",
    "registry",
    "sidecar",
    "topic",
]

_HERE = Path(__file__).parent


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark the tests of this folder."""
    for item in items:
        if _HERE in item.path.parents:
            item.add_marker(pytest.mark.integration)
