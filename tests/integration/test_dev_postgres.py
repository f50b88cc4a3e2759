"""The local PostgreSQL: real, unprivileged, restartable."""

from __future__ import annotations

from pathlib import Path

import psycopg
import pytest

from wherry.coordinator.dev.errors import DevServerError, PortTakenError, ServerStartError
from wherry.coordinator.dev.postgres import LocalPostgres


def test_a_client_reads_what_it_wrote(database: str) -> None:
    with psycopg.connect(database) as connection:
        connection.execute("CREATE TABLE t (a int)")
        connection.execute("INSERT INTO t VALUES (1), (2)")
    with psycopg.connect(database) as connection:
        assert connection.execute("SELECT sum(a) FROM t").fetchone() == (3,)


def test_it_never_runs_as_root(postgres: LocalPostgres) -> None:
    assert Path(f"/proc/{postgres.pid}").stat().st_uid != 0


def test_committed_rows_survive_a_crash() -> None:
    with LocalPostgres() as server:
        server.run_sql("CREATE TABLE t (a int)")
        server.run_sql("INSERT INTO t VALUES (7)")
        server.kill()
        assert not server.is_running
        server.start()
        assert server.run_sql("SELECT a FROM t") == ["7"]
    assert not server.data_dir.exists()


def test_a_refused_statement_is_told(postgres: LocalPostgres) -> None:
    with pytest.raises(DevServerError, match='relation "nothing" does not exist'):
        postgres.run_sql("SELECT * FROM nothing")


def test_a_taken_port_is_told(postgres: LocalPostgres) -> None:
    refused = LocalPostgres(port=postgres.port)
    with pytest.raises(PortTakenError, match=f"Port {postgres.port} for PostgreSQL is already in use"):
        refused.start()
    refused.close()


def test_a_wrong_setting_shows_the_servers_last_words() -> None:
    server = LocalPostgres(options={"max_connections": "many"})
    with pytest.raises(ServerStartError, match='invalid value for parameter "max_connections"'):
        server.start()
    server.close()
