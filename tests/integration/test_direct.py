"""Direct pipelines: a source straight into a sink, no topic between, under everything that may be killed."""

from __future__ import annotations

import signal
import sqlite3
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.support.pumps import everything
from tests.support.standalone import Standalone, send
from tests.support.topics import topic_names
from tests.support.waiting import eventually

pytestmark = [pytest.mark.integration, pytest.mark.promise]

ROWS = 60_000
LIMIT_S = 120.0


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
    with sqlite3.connect(f"file:{database}?mode=ro", uri=True, timeout=60) as connection:
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
        send(each["pid"], signal.SIGKILL)
    before = rows_in(database)
    assert eventually(lambda: rows_in(database) >= min(before + 2_000, ROWS), LIMIT_S), wherry.log_tail()
    for pid in wherry.workers_of("once"):
        send(pid, signal.SIGKILL)
    assert eventually(lambda: rows_in(database) >= ROWS, LIMIT_S), wherry.log_tail()
    assert rows_in(database) == ROWS
    halves = [({"task": task}, {"count": ROWS // 2}) for task in (0, 1)]
    # REST shows them when the lease has reported.
    assert eventually(lambda: sorted(wherry.rest.offsets("once"), key=str) == halves, LIMIT_S)
    wherry.rest.wait_for_states("once", "RUNNING", "RUNNING", "RUNNING")
    assert wherry.rest.get("/connectors/once/status")["type"] == "source"


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


def test_records_that_fail_go_to_a_dead_letter_queue_and_the_others_on(
    wherry: Standalone, bootstrap: str, tmp_path: Path
) -> None:
    (tmp_path / "in").write_text("1\nnone\n3\n")
    config = {
        "connector.class": "FileStreamSource",
        "topic": "t",
        "file": str(tmp_path / "in"),
        "transforms": "number",
        "transforms.number.type": "org.apache.kafka.connect.transforms.Cast$Value",
        "transforms.number.spec": "int32",
        "errors.tolerance": "all",
        "errors.deadletterqueue.topic.name": f"letters-{tmp_path.name}",
        "errors.deadletterqueue.topic.replication.factor": "1",
        "errors.deadletterqueue.context.headers.enable": "true",
        "sink.connector.class": "FileStreamSink",
        "sink.file": str(tmp_path / "out"),
    }
    wherry.rest.create("letters", config)
    out = tmp_path / "out"
    assert eventually(lambda: out.exists() and out.read_text() == "1\n3\n", LIMIT_S), wherry.log_tail()
    dead = f"letters-{tmp_path.name}"
    assert eventually(lambda: dead in topic_names(bootstrap) and everything(bootstrap, dead) != [], LIMIT_S)
    [letter] = everything(bootstrap, dead)
    assert letter.value() == b'"none"'
    headers = dict(letter.headers())
    assert headers["__connect.errors.stage"] == b"TRANSFORMATION"
    assert headers["__connect.errors.connector.name"] == b"letters"
    wherry.rest.wait_for_states("letters", "RUNNING", "RUNNING")


def test_a_pipeline_is_paused_resumed_stopped_and_begun_anew_like_any_connector(
    wherry: Standalone, tmp_path: Path
) -> None:
    database = tmp_path / "t.sqlite"
    wherry.rest.create("life", pipeline(database, count=1_000_000, rate="2000", **{"tasks.max": "1"}))
    assert eventually(lambda: rows_in(database) > 500, LIMIT_S), wherry.log_tail()

    def states() -> list[str]:
        status = wherry.rest.get("/connectors/life/status")
        return [status["connector"]["state"], *(task["state"] for task in status["tasks"])]

    wherry.rest.call("PUT", "/connectors/life/pause")
    assert eventually(lambda: states() == ["PAUSED", "PAUSED"], LIMIT_S)
    rested = rows_in(database)
    time.sleep(1.0)
    assert rows_in(database) == rested
    wherry.rest.call("PUT", "/connectors/life/resume")
    assert eventually(lambda: rows_in(database) > rested, LIMIT_S), wherry.log_tail()
    wherry.rest.call("PUT", "/connectors/life/stop")
    assert eventually(lambda: states() == ["STOPPED"], LIMIT_S)
    stopped = rows_in(database)
    assert eventually(lambda: wherry.rest.offsets("life") == [({"task": 0}, {"count": stopped})], LIMIT_S)
    answer = wherry.rest.call("DELETE", "/connectors/life/offsets")
    assert answer.status == 200, answer.body
    assert wherry.rest.offsets("life") == []
    wherry.rest.call("PUT", "/connectors/life/resume")
    # The table still holds the first rows, and gets them once more: nothing remembers that they were there.
    assert eventually(lambda: rows_in(database) > stopped + 500, LIMIT_S), wherry.log_tail()
    with sqlite3.connect(f"file:{database}?mode=ro", uri=True, timeout=60) as connection:
        [(most,)] = connection.execute(
            "SELECT max(n) FROM (SELECT count(*) AS n FROM into_users GROUP BY userid, registertime)"
        ).fetchall()
    assert most >= 2
    wherry.rest.call("DELETE", "/connectors/life")


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
