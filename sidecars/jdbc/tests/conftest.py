"""A real PostgreSQL, one clean schema for each test."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from wherry.coordinator.dev.postgres import LocalPostgres
from wherry_jdbc.database import Database


@pytest.fixture(scope="session")
def server() -> Iterator[str]:
    with LocalPostgres(options={"fsync": "off"}) as postgres:
        yield f"postgresql://postgres@{postgres.host}:{postgres.port}/postgres"


@pytest.fixture
def database(server: str) -> Iterator[Database]:
    with Database(server) as connection:
        connection.execute("DROP SCHEMA public CASCADE")
        connection.execute("CREATE SCHEMA public")
        connection.commit()
        yield connection
