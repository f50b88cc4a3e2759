"""Fixtures of the SDK's tests."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

# The connectors are plain modules beside the tests; importlib mode doesn't put their folder on the path.
sys.path.insert(0, str(Path(__file__).parent))

import sdk_connectors


@pytest.fixture(autouse=True)
def _forget() -> None:
    sdk_connectors.forget()
