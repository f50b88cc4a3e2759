"""The servers that some sidecars write to, named to their `conformance.yaml` by environment variables."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest

from wherry.coordinator.dev.postgres import LocalPostgres


@pytest.fixture(scope="session", autouse=True)
def servers() -> Iterator[None]:
    with LocalPostgres(options={"fsync": "off"}) as postgres:
        os.environ["WHERRY_TEST_POSTGRES"] = postgres.jdbc_url
        yield
