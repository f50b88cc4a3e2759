"""Exactly-once sources of a whole worker: what stands in the topics after workers, sidecars and coordinator died."""

from __future__ import annotations

import json
import signal
import time
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Consumer, TopicPartition
from tests.support.distributed import Distributed
from tests.support.standalone import send
from tests.support.waiting import eventually

from wherry.contract.offsets_topic import read_positions

pytestmark = [pytest.mark.integration, pytest.mark.promise]

LINES = 150_000
FILES, ROWS = 12, 2_000
LIMIT_S = 120.0
JSON = {"value.converter": "org.apache.kafka.connect.json.JsonConverter", "value.converter.schemas.enable": "false"}


@pytest.fixture(scope="module")
def wherry(kafka) -> Iterator[Distributed]:
    group = f"eos-{uuid.uuid4().hex[:8]}"
    settings = {"exactly.once.source.support": "enabled"}
    with Distributed(bootstrap=kafka.bootstrap, group=group, settings=settings) as running:
        yield running


def committed(bootstrap: str, topic: str) -> list[bytes]:
    """Values that a reader of committed records sees, each partition in its order."""
    consumer = Consumer({
        "bootstrap.servers": bootstrap, "group.id": "check", "enable.partition.eof": True,
        "isolation.level": "read_committed",
    })  # fmt: skip
    try:
        found = consumer.list_topics(topic, timeout=60).topics[topic]
        if found.error is not None:
            return []
        consumer.assign([TopicPartition(topic, number, 0) for number in found.partitions])
        values: list[bytes] = []
        ends, deadline = 0, time.monotonic() + 90
        while ends < len(found.partitions) and time.monotonic() < deadline:
            for message in consumer.consume(10_000, 0.5):
                if message.error() is None:
                    values.append(message.value())
                else:
                    ends += 1
        return values
    finally:
        consumer.close()


def kill(pids: list[int]) -> None:
    """Kill what is still there of them: others may end by themselves meanwhile."""
    for pid in pids:
        send(pid, signal.SIGKILL)


def sidecars(wherry: Distributed, connector: str) -> list[int]:
    listed = wherry.rest.get("/wherry/v1/sidecars")["sidecars"]
    return [each["pid"] for each in listed if each["connector"] == connector]


def test_every_row_stands_there_once_whatever_dies(wherry: Distributed, kafka: Any, tmp_path: Path) -> None:
    lines, rows = f"lines-{uuid.uuid4().hex[:6]}", f"rows-{uuid.uuid4().hex[:6]}"
    source = tmp_path / "lines.txt"
    source.write_text("".join(f"line {number}\n" for number in range(LINES // 2)))
    folder = tmp_path / "in"
    folder.mkdir()
    (tmp_path / "bad").mkdir()
    for number in range(FILES):
        ids = range(number * ROWS, (number + 1) * ROWS)
        (folder / f"{number}.csv").write_text("id\n" + "".join(f"{each}\n" for each in ids))
    creation = {"topic.creation.default.partitions": "1", "topic.creation.default.replication.factor": "1"}
    wherry.rest.create(
        "lines",
        {"connector.class": "FileStreamSource", "file": str(source), "topic": lines, "batch.size": "500",
         "exactly.once.support": "required", **creation},
    )  # fmt: skip
    wherry.rest.create(
        "rows",
        {"connector.class": "wherry.spooldir.SpoolDirSource", "input.path": str(folder), "cleanup.policy": "none",
         "error.path": str(tmp_path / "bad"),
         "topic": rows, "tasks.max": "2", "split.bytes": "4096", "offsets.storage.topic": f"own-{rows}",
         "transaction.boundary": "interval", "transaction.boundary.interval.ms": "200", **JSON, **creation},
    )  # fmt: skip
    assert eventually(lambda: len(committed(kafka.bootstrap, lines)) > 1_000, LIMIT_S), wherry.log_tail()
    kill(wherry.workers_of("lines"))
    assert eventually(lambda: len(committed(kafka.bootstrap, rows)) > 1_000, LIMIT_S), wherry.log_tail()
    kill(wherry.workers_of("rows"))
    with source.open("a") as file:
        file.write("".join(f"line {number}\n" for number in range(LINES // 2, LINES)))
    assert eventually(lambda: len(committed(kafka.bootstrap, lines)) > LINES // 2, LIMIT_S), wherry.log_tail()
    kill(sidecars(wherry, "lines"))
    wherry.kill()
    for process in wherry.processes():
        kill([process.pid])
    wherry.start()
    assert eventually(lambda: len(committed(kafka.bootstrap, lines)) >= LINES, LIMIT_S), wherry.log_tail()
    assert eventually(lambda: len(committed(kafka.bootstrap, rows)) >= FILES * ROWS, LIMIT_S), wherry.log_tail()
    assert committed(kafka.bootstrap, lines) == [b"line %d" % number for number in range(LINES)]
    ids = [json.loads(value)["id"] for value in committed(kafka.bootstrap, rows)]
    assert sorted(ids) == list(range(FILES * ROWS))
    offsets = wherry.rest.offsets("lines")
    assert offsets == [({"filename": str(source)}, {"position": source.stat().st_size})]
    own = read_positions({"bootstrap.servers": kafka.bootstrap}, f"own-{rows}", "rows")
    assert {json.loads(partition)["file"] for partition in own}


def test_offsets_set_by_hand_are_where_it_goes_on(wherry: Distributed, kafka: Any, tmp_path: Path) -> None:
    topic = f"again-{uuid.uuid4().hex[:6]}"
    source = tmp_path / "in.txt"
    source.write_text("one\ntwo\nthree\n")
    wherry.rest.create("again", {"connector.class": "FileStreamSource", "file": str(source), "topic": topic})
    assert eventually(lambda: len(committed(kafka.bootstrap, topic)) == 3, LIMIT_S), wherry.log_tail()
    assert wherry.rest.call("PUT", "/connectors/again/stop").status == 204
    wherry.rest.wait_for_states("again", "STOPPED")
    wanted = [{"partition": {"filename": str(source)}, "offset": {"position": 8}}]
    path = "/connectors/again/offsets"
    assert eventually(lambda: wherry.rest.call("PATCH", path, {"offsets": wanted}).status == 200), wherry.log_tail()
    assert wherry.rest.call("PUT", "/connectors/again/resume").status == 202
    assert eventually(lambda: len(committed(kafka.bootstrap, topic)) == 4, LIMIT_S), wherry.log_tail()
    assert committed(kafka.bootstrap, topic) == [b"one", b"two", b"three", b"three"]


def test_what_a_class_cannot_give_is_refused(wherry: Distributed) -> None:
    config = {"connector.class": "FileStreamSource", "topic": "t", "file": "/x", "transaction.boundary": "connector"}
    answer = wherry.rest.call("PUT", "/connectors/wrong/config", config)
    assert answer.status == 400
    assert "does not support connector-defined transaction boundaries" in answer.body["message"]
