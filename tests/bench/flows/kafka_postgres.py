"""Kafka to PostgreSQL: Debezium's JDBC sink, tuned as well as it can be, against Wherry given the same connector JSON.

Rows are stamped by the database itself: with `track_commit_timestamp` every row tells when its transaction committed,
so nothing polls the table while it fills and the rate is of *durable* rows.
"""

from __future__ import annotations

import time
from collections.abc import Callable

import psycopg
from tests.bench import limits, load
from tests.bench.connect_plugins import DEBEZIUM_JDBC
from tests.bench.figures import OTHER_CPU, Figure
from tests.bench.flows.flow import Flow, Outcome, costs, detail
from tests.bench.measure import Point, Sampler, rate, watch
from tests.bench.processes import BenchError
from tests.bench.site import Site
from tests.bench.systems import Connector, WorkerSettings

from wherry.coordinator.dev.postgres import LocalPostgres

TASKS = 2
BATCH_SIZE = 3000
TABLE_POLL_SECONDS = 0.1
CONNECT_SECONDS = 10

FIGURES = (
    Figure("rows_per_second", "rows, first to last commit", "1/s", 0, ratio_min=4.0),
    Figure("rows_per_second_all_in", "rows, creation to last commit", "1/s", 0),
    Figure("cpu_us", "CPU of the system, steady", "µs/row", 2, ratio_max=0.25),
    Figure("cpu_us_all_in", "CPU of the system, all in", "µs/row", 2),
    Figure("broker_cpu_us", "CPU of the broker, steady", "µs/row", 2),
    Figure("postgres_cpu_us", "CPU of PostgreSQL, steady", "µs/row", 2),
    Figure("pss_mb", "memory of the system, peak", "MB", 0),
    Figure("first_commit_seconds", "creation to first commit", "s", 2),
    OTHER_CPU,
)


def run_once(site: Site, name: str, label: str, records: int) -> Outcome:
    """Moves the whole topic into an empty table."""
    postgres = site.postgres
    topic = site.topic_of_records(records)
    table = f"orders_{label}".replace("-", "_")
    with _connect(postgres) as connection:
        connection.execute(f"CREATE TABLE {table} ({load.RECORD_COLUMNS})")
        connection.execute("CHECKPOINT")
    system = site.running(name)
    connector = _connector(f"postgres-{label}", topic, table, postgres)
    time.sleep(limits.SETTLE_SECONDS)
    with Sampler(site.trees(system), pss_of=["system"]) as sampler:
        created_at = time.time()
        system.rest.create(connector.name, connector.config)
        _wait_for_rows(postgres, table, records, lambda: system.rest.failure(connector.name))
    points = _commits(postgres, table)
    _check(postgres, table, records)
    system.rest.delete(connector.name)
    with _connect(postgres) as connection:
        connection.execute(f"DROP TABLE {table}")
    figures = {
        "rows_per_second": rate(points),
        "rows_per_second_all_in": records / (points[-1].at - created_at),
        "first_commit_seconds": points[0].at - created_at,
        **costs(sampler, points, created_at, with_postgres=True),
    }
    return Outcome(figures, {"commits": len(points), **detail(sampler, points)})


def _wait_for_rows(postgres: LocalPostgres, table: str, records: int, failure: Callable[[], str | None]) -> None:
    """Returns when the table holds all rows.

    While the table's size grows, the size alone is looked at: that costs next to nothing, and as it counts rows not yet
    committed it serves only to see that something moves. A quiet table is counted.
    """
    size = seen = 0
    with _connect(postgres) as connection:

        def count() -> int:
            nonlocal size, seen
            before, size = size, _number(connection, f"SELECT pg_relation_size('{table}')")
            seen = _number(connection, f"SELECT count(*) FROM {table}") if size == before > 0 else seen + 1
            return min(seen, records) if size == before else min(seen, records - 1)

        watch(count, target=records, failure=failure, poll_seconds=TABLE_POLL_SECONDS)


def _commits(postgres: LocalPostgres, table: str) -> list[Point]:
    """The rows in the table after each transaction that put some there, at the time of its commit."""
    query = (
        "SELECT extract(epoch FROM pg_xact_commit_timestamp(writer))::float8, rows FROM "
        f"(SELECT xmin AS writer, count(*) AS rows FROM {table} GROUP BY xmin) AS writers ORDER BY 1"
    )
    points, total = [], 0
    with _connect(postgres) as connection:
        for at, rows in connection.execute(query.encode()):
            total += int(str(rows))
            points.append(Point(at=float(str(at)), count=total))
    return points


def _check(postgres: LocalPostgres, table: str, records: int) -> None:
    """Every record once, and its values the ones that were produced."""
    query = (
        "SELECT count(*), count(DISTINCT id), sum(id), round(sum(amount)::numeric, 2), count(*) FILTER (WHERE express) "
        f"FROM {table}"
    )
    cents = sum(index % 100_000 for index in range(records))
    expected = (records, records, records * (records - 1) // 2, cents, (records + 2) // 3)
    with _connect(postgres) as connection:
        row = connection.execute(query.encode()).fetchone()
    assert row is not None
    found = (*(int(str(cell)) for cell in row[:3]), round(float(str(row[3])) * 100), int(str(row[4])))
    if found != expected:
        raise BenchError(f"{table} holds rows, distinct ids, sum of ids, cents, express {found}, not {expected}.")


def _connect(postgres: LocalPostgres) -> psycopg.Connection[tuple[object, ...]]:
    return psycopg.connect(postgres.url, autocommit=True, connect_timeout=CONNECT_SECONDS)


def _number(connection: psycopg.Connection[tuple[object, ...]], query: str) -> int:
    row = connection.execute(query.encode()).fetchone()
    assert row is not None
    return int(str(row[0]))


def _connector(name: str, topic: str, table: str, postgres: LocalPostgres) -> Connector:
    return Connector(
        name,
        {
            "connector.class": "io.debezium.connector.jdbc.JdbcSinkConnector",
            "tasks.max": str(TASKS),
            "topics": topic,
            "connection.url": f"jdbc:postgresql://{postgres.host}:{postgres.port}/postgres?reWriteBatchedInserts=true",
            "connection.username": "postgres",
            "connection.password": "unused",
            "insert.mode": "insert",
            "primary.key.mode": "none",
            "schema.evolution": "none",
            "collection.name.format": table,
            "batch.size": str(BATCH_SIZE),
            "consumer.override.max.poll.records": str(BATCH_SIZE),
            "value.converter": "org.apache.kafka.connect.json.JsonConverter",
            "value.converter.schemas.enable": "true",
            "value.converter.schema.content": load.schema_text(),
        },
    )


FLOW = Flow(
    name="kafka-postgres",
    summary="200 B JSON records, 2 partitions, 2 tasks, into a PostgreSQL table without index",
    figures=FIGURES,
    records=1_000_000,
    warm_up_records=500_000,
    settings=WorkerSettings(),
    run_once=run_once,
    plugins=(DEBEZIUM_JDBC,),
)
