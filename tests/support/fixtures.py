"""Fixtures of real servers. A `conftest.py` imports those it offers; each starts when the first test asks for it."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterator

import pytest
from tests.support.topics import create_topic

from wherry.coordinator.dev.kafka import EmbeddedKafka
from wherry.coordinator.dev.ports import free_ports
from wherry.coordinator.dev.postgres import LocalPostgres
from wherry.coordinator.dev.registry import LocalRegistry


@pytest.fixture(scope="session")
def kafka() -> Iterator[EmbeddedKafka]:
    """One real broker for the whole run; leave it running."""
    with EmbeddedKafka() as broker:
        yield broker


@pytest.fixture
def bootstrap(kafka: EmbeddedKafka) -> str:
    """Address of the run's broker."""
    return kafka.bootstrap


@pytest.fixture
def new_topic(bootstrap: str) -> Callable[..., str]:
    """Makes topics with names of their own on the run's broker: `new_topic(partitions=2)`."""

    def create(*, partitions: int = 1, prefix: str = "topic", config: dict[str, str] | None = None) -> str:
        return create_topic(bootstrap, f"{prefix}-{uuid.uuid4().hex[:12]}", partitions=partitions, config=config)

    return create


@pytest.fixture
def topic(new_topic: Callable[..., str]) -> str:
    """A new topic with one partition on the run's broker."""
    return new_topic()


@pytest.fixture
def own_kafka() -> Iterator[EmbeddedKafka]:
    """A running broker of the test's own, to kill and start again."""
    with EmbeddedKafka() as broker:
        yield broker


@pytest.fixture(scope="session")
def registry() -> Iterator[LocalRegistry]:
    """One real schema registry for the whole run; leave it running, and use subjects of your own."""
    with LocalRegistry() as server:
        yield server


@pytest.fixture(scope="session")
def postgres() -> Iterator[LocalPostgres]:
    """One real PostgreSQL for the whole run; leave it running."""
    # No test cuts the power, and fsync would triple their time.
    with LocalPostgres(options={"fsync": "off", "max_connections": "200"}) as server:
        yield server


@pytest.fixture
def database(postgres: LocalPostgres) -> Iterator[str]:
    """The libpq address of an empty database of the test's own."""
    name = f"test_{uuid.uuid4().hex[:12]}"
    postgres.run_sql(f"CREATE DATABASE {name}")
    yield postgres.url_of(name)
    postgres.run_sql(f"DROP DATABASE {name} WITH (FORCE)")


@pytest.fixture
def free_port() -> int:
    """A port nobody listens on."""
    return free_ports(1)[0]
