"""Direct pipelines: a source straight into a sink, no topic between, under everything that may be killed."""

from __future__ import annotations

import os
import signal
import sqlite3
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.support.standalone import Standalone
from tests.support.waiting import eventually

pytestmark = pytest.mark.integration

ROWS = 60_000
LIMIT_S = 60.0


def pipeline(database: Path, *, count: int = ROWS, **more: str) -> dict[str, str]:
    return {
        "connector.class": "Datagen",
        "topic": "users",
        "schema": "users",
        "count": str(count),
        "tasks.max": "2",
        "sink.connector.class": "Table",
        "sink.database": str(database),
        "sink.table.name.format": "into_${topic}",
        **more,
    }


def rows_in(database: Path) -> int:
    if not database.exists():
        return 0
    with sqlite3.connect(f"file:{database}?mode=ro", uri=True) as connection:
        try:
            return int(connection.execute("SELECT count(*) FROM into_users").fetchone()[0])
        except sqlite3.OperationalError:
            return 0  # no table yet, or locked


@pytest.fixture(scope="module")
def wherry(kafka) -> Iterator[Standalone]:
    with Standalone(bootstrap=kafka.bootstrap) as running:
        # The first question to a plugin may have to wait until its environment is made.
        first = {"name": "first", **pipeline(Path("/tmp/first.sqlite"))}
        running.rest.call("PUT", "/connector-plugins/Datagen/config/validate", first, timeout_s=180.0)
        yield running


def test_rows_arrive_once_though_sidecars_and_workers_are_killed(wherry: Standalone, tmp_path: Path) -> None:
    database = tmp_path / "t.sqlite"
    # Slow enough to be killed amidst.
    wherry.rest.create("once", pipeline(database, rate="10000"))
    assert eventually(lambda: rows_in(database) > 2_000, LIMIT_S), wherry.log_tail()
    sidecars = wherry.rest.get("/wherry/v1/sidecars")["sidecars"]
    for each in [each for each in sidecars if each["connector"] == "once" and each["plugin"] == "table"]:
        os.kill(each["pid"], signal.SIGKILL)
    before = rows_in(database)
    assert eventually(lambda: rows_in(database) > before + 2_000, LIMIT_S), wherry.log_tail()
    for pid in wherry.workers_of("once"):
        os.kill(pid, signal.SIGKILL)
    assert eventually(lambda: rows_in(database) >= ROWS, LIMIT_S), wherry.log_tail()
    assert rows_in(database) == ROWS
    halves = [({"task": task}, {"count": ROWS // 2}) for task in (0, 1)]
    # REST shows them when the lease has reported.
    assert eventually(lambda: sorted(wherry.rest.offsets("once"), key=str) == halves, LIMIT_S)
    status = wherry.rest.get("/connectors/once/status")
    assert (status["type"], [task["state"] for task in status["tasks"]]) == ("source", ["RUNNING", "RUNNING"])


def test_a_file_goes_straight_into_another(wherry: Standalone, tmp_path: Path) -> None:
    lines = "".join(f"line {number}\n" for number in range(1_000))
    (tmp_path / "in").write_text(lines)
    config = {
        "connector.class": "FileStreamSource",
        "topic": "t",
        "file": str(tmp_path / "in"),
        "sink.connector.class": "FileStreamSink",
        "sink.file": str(tmp_path / "out"),
    }
    wherry.rest.create("copy", config)
    out = tmp_path / "out"
    assert eventually(lambda: out.exists() and out.read_text() == lines, LIMIT_S), wherry.log_tail()


def test_what_is_no_pipeline_is_refused_with_the_keys_at_fault(wherry: Standalone, tmp_path: Path) -> None:
    def errors(**changes: str) -> dict[str, str]:
        config = {"name": "wrong", **pipeline(tmp_path / "t"), **{k.replace("__", "."): v for k, v in changes.items()}}
        answer = wherry.rest.call("PUT", "/connector-plugins/Datagen/config/validate", config).body
        found = {each["value"]["name"]: each["value"]["errors"] for each in answer["configs"]}
        return {name: texts[0] for name, texts in found.items() if texts}

    assert errors() == {}
    assert "Class could not be found" in errors(sink__connector__class="Nowhere")["sink.connector.class"]
    assert "is not an absolute path" in errors(sink__database="relative")["sink.database"]
    assert "writes nothing there" in errors(transaction__boundary="poll")["transaction.boundary"]
