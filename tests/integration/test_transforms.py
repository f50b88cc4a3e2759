"""Transformations beyond Kafka Connect's in a real Wherry: in workers, in sidecars that are killed, to sinks, from
sources, in direct pipelines."""

from __future__ import annotations

import json
import signal
import sqlite3
import threading
import time
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from tests.support.pumps import everything
from tests.support.standalone import Standalone, send
from tests.support.topics import create_topic, produce
from tests.support.waiting import eventually

pytestmark = pytest.mark.integration

LIMIT_S = 120.0
ROWS = 3_000
FIRST = {
    "FileStreamSource": {"topic": "t", "file": "/nowhere"},
    "Datagen": {"topic": "t", "schema": "users", "sink.connector.class": "Table", "sink.database": "/tmp/first.sqlite"},
}
OWN = "wherry.transforms."
# Slow enough to be killed amidst.
SLOW = "(time.sleep(0.001), {changed})[1]"


@pytest.fixture(scope="module")
def wherry(kafka) -> Iterator[Standalone]:
    with Standalone(bootstrap=kafka.bootstrap, settings={"wherry.transforms.python.enabled": "true"}) as running:
        # The first question to a plugin may have to wait until its environment is made.
        for name, config in FIRST.items():
            path, asked = (
                f"/connector-plugins/{name}/config/validate",
                {"name": "first", "connector.class": name, **config},
            )
            ready = eventually(
                lambda path=path, asked=asked: running.rest.call("PUT", path, asked, timeout_s=180.0).status == 200,
                180.0,
            )
            assert ready, running.log_tail()
        yield running


def chain(**links: dict[str, str]) -> dict[str, str]:
    keys = {f"transforms.{alias}.{name}": text for alias, link in links.items() for name, text in link.items()}
    return {"transforms": ",".join(links), **keys}


def slow(changed: str, **more: str) -> dict[str, str]:
    return {"type": "Python", "imports": "time", "expression": SLOW.format(changed=changed), **more}


def transformer_of(wherry: Standalone, connector: str) -> int:
    """Process id of the sidecar of a connector's Python transformation; 0 while there is none."""
    sidecars = wherry.rest.get("/wherry/v1/sidecars")["sidecars"]
    return next((each["pid"] for each in sidecars if (each["connector"], each["plugin"]) == (connector, "python")), 0)


def kill_transformer(wherry: Standalone, connector: str, done: Callable[[], bool] = lambda: False) -> None:
    """Kills it and waits for another one, or until all is done and no other one is needed."""
    assert eventually(lambda: transformer_of(wherry, connector) > 0, LIMIT_S), wherry.log_tail()
    pid = transformer_of(wherry, connector)
    send(pid, signal.SIGKILL)
    assert eventually(lambda: transformer_of(wherry, connector) not in (0, pid) or done(), LIMIT_S), wherry.log_tail()


def feed(bootstrap: str, topic: str) -> None:
    """Writes the rows bit by bit, so that they don't make one batch."""
    for start in range(0, ROWS, 50):
        produce(bootstrap, topic, [f"row {number}".encode() for number in range(start, start + 50)])
        time.sleep(0.1)


def lines(path: Path) -> list[str]:
    return path.read_text().splitlines() if path.exists() else []


def test_a_sink_loses_nothing_when_the_sidecar_of_its_transformation_is_killed(
    wherry: Standalone, bootstrap: str, tmp_path: Path
) -> None:
    topic, out = f"in-{uuid.uuid4().hex[:8]}", tmp_path / "out"
    create_topic(bootstrap, topic)
    config = {
        "connector.class": "FileStreamSink", "topics": topic, "file": str(out),
        **chain(up=slow("value.upper()", filter="value != 'row 7'")),
    }  # fmt: skip
    wanted = {f"ROW {number}" for number in range(ROWS) if number != 7}
    wherry.rest.create("upper", config)
    wherry.rest.wait_for_states("upper", "RUNNING", "RUNNING")
    # Not before, so that something is still to come when the sidecar is killed.
    fed = threading.Thread(target=feed, args=(bootstrap, topic))
    fed.start()
    for share in (10, 3):
        assert eventually(lambda share=share: len(lines(out)) > ROWS // share, LIMIT_S), wherry.log_tail()
        kill_transformer(wherry, "upper", lambda: set(lines(out)) == wanted)
    fed.join()
    assert eventually(lambda: set(lines(out)) == wanted, LIMIT_S), wherry.log_tail()
    # At least once: what was not durable comes again, in order.
    firsts = list(dict.fromkeys(lines(out)))
    assert firsts == [f"ROW {number}" for number in range(ROWS) if number != 7]
    wherry.rest.wait_for_states("upper", "RUNNING", "RUNNING")


def test_a_source_explodes_what_a_killed_sidecar_made_and_its_bad_records_are_dead_letters(
    wherry: Standalone, bootstrap: str, tmp_path: Path
) -> None:
    topic, given = f"out-{uuid.uuid4().hex[:8]}", tmp_path / "in"
    records = [f"{number}:a:b" if number % 500 else f"bad {number}" for number in range(1, ROWS + 1)]
    given.write_text("".join(f"{record}\n" for record in records))
    split = slow("[value.split(':')[0] + part for part in value.split(':')[1:]] or 1 / 0")
    config = {
        "connector.class": "FileStreamSource", "file": str(given), "topic": topic, "batch.size": "200",
        "errors.tolerance": "all", "wherry.errors.deadletterqueue.topic.name": f"{topic}-bad",
        "wherry.errors.deadletterqueue.topic.replication.factor": "1",
        "wherry.errors.deadletterqueue.context.headers.enable": "true",
        **chain(split=split, each={"type": "Explode"}, once={"type": f"{OWN}Dedupe"}),
        "value.converter": "org.apache.kafka.connect.json.JsonConverter", "value.converter.schemas.enable": "false",
    }  # fmt: skip
    wherry.rest.create("split", config)
    wanted = {f"{number}{part}" for number in range(1, ROWS + 1) if number % 500 for part in "ab"}

    def found() -> list[str]:
        return [json.loads(message.value()) for message in everything(bootstrap, topic)]

    assert eventually(lambda: transformer_of(wherry, "split") > 0, LIMIT_S), wherry.log_tail()
    time.sleep(0.5)
    kill_transformer(wherry, "split", lambda: set(found()) >= wanted)
    assert eventually(lambda: set(found()) >= wanted, LIMIT_S), wherry.log_tail()
    assert set(found()) == wanted
    bad = {f'"bad {number}"'.encode() for number in range(500, ROWS + 1, 500)}
    # The last of all records is a bad one, so its letter may come after all others have arrived.
    assert eventually(lambda: {letter.value() for letter in everything(bootstrap, f"{topic}-bad")} >= bad, LIMIT_S)
    letters = everything(bootstrap, f"{topic}-bad")
    assert {letter.value() for letter in letters} == bad
    headers = dict(letters[0].headers())
    assert headers["__connect.errors.class.name"] == b"wherry.transforms.Python"
    assert headers["__connect.errors.exception.message"] == b"ZeroDivisionError: division by zero"


def test_a_direct_pipeline_selects_by_sql(wherry: Standalone, tmp_path: Path) -> None:
    database = tmp_path / "t.sqlite"
    config = {
        "connector.class": "Datagen", "topic": "users", "schema": "users", "count": "1000", "tasks.max": "1",
        "sink.connector.class": "Table", "sink.database": str(database), "sink.table.name.format": "picked",
        **chain(pick={"type": "Sql", "query": "SELECT *, 6 * 7 AS answer FROM records"}),
    }  # fmt: skip
    wherry.rest.create("picked", config)

    def rows() -> list[tuple[int, int]]:
        if not database.exists():
            return []
        with sqlite3.connect(f"file:{database}?mode=ro", uri=True, timeout=60) as connection:
            try:
                return connection.execute("SELECT count(*), sum(answer) FROM picked").fetchall()
            except sqlite3.OperationalError:
                return []  # no table yet, or locked

    assert eventually(lambda: rows() == [(1000, 42_000)], LIMIT_S), (rows(), wherry.log_tail())


def test_they_are_listed_with_their_settings_and_checked_before_anything_runs(wherry: Standalone) -> None:
    listed = wherry.rest.get("/connector-plugins?connectorsOnly=false")
    kinds = {each["class"]: each["type"] for each in listed}
    for name in ("Dedupe", "Explode", "Python", "Sql"):
        assert kinds[f"{OWN}{name}"] == "transformation"
    keys = [key["name"] for key in wherry.rest.get(f"/connector-plugins/{OWN}Python/config")]
    assert keys[:2] == ["expression", "filter"]
    links = chain(
        a={"type": "Python", "expression": "value +"}, b={"type": "Sql", "query": "SELECT max(x) FROM records"}
    )
    config = {"name": "wrong", "connector.class": "FileStreamSource", "topic": "t", "file": "/nowhere", **links}

    def wrong() -> dict[str, list[str]]:
        answer = wherry.rest.call("PUT", "/connector-plugins/FileStreamSource/config/validate", config)
        values = [each["value"] for each in answer.body["configs"]]
        return {value["name"]: value["errors"] for value in values if value["errors"]}

    assert "max() needs other records than the one at hand" in wrong()["transforms.b.query"][0]
    # A plugin is asked when nothing else is wrong.
    config["transforms.b.query"] = "SELECT * FROM records"
    assert wrong() == {"transforms.a.expression": ["expression is no expression in Python: invalid syntax."]}
