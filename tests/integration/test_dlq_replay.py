"""`wherry dlq replay` on a real broker: back to where records came from, once, in order."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
from confluent_kafka import Producer
from tests.support.pumps import everything

from wherry.coordinator.cli.app import run

Run = Callable[..., tuple[int, dict[str, Any]]]


@pytest.fixture
def replay(bootstrap: str, capsys: pytest.CaptureFixture[str]) -> Run:
    def run_it(*arguments: str) -> tuple[int, dict[str, Any]]:
        code = run(["dlq", "replay", *arguments, "--bootstrap", bootstrap, "-o", "json"])
        told = capsys.readouterr()
        return code, json.loads(told.out or told.err)

    return run_it


def letters(bootstrap: str, dead: str, goal: str, numbers: range, connector: str = "c", **headers: str) -> None:
    producer = Producer({"bootstrap.servers": bootstrap})
    for number in numbers:
        context = {"topic": goal, "partition": str(number % 2), "connector.name": connector, "stage": "TASK_PUT"}
        own = [("own", b"%d" % number)]
        told = [(f"__connect.errors.{name}", text.encode()) for name, text in (context | headers).items()]
        producer.produce(dead, b"v%d" % number, b"k%d" % number, headers=own + told, timestamp=1000 + number)
    assert producer.flush(60) == 0


def test_records_go_back_to_their_partitions_as_they_were_and_a_second_run_sends_nothing(
    bootstrap: str, new_topic: Callable[..., str], replay: Run
) -> None:
    dead, goal = new_topic(), new_topic(partitions=2)
    letters(bootstrap, dead, goal, range(1200))
    code, dry = replay(dead, "--dry-run")
    assert (code, dry["sent"], everything(bootstrap, goal)) == (0, 1200, [])
    code, done = replay(dead)
    assert (code, done["sent"], done["topics"]) == (0, 1200, {goal: 1200})
    messages = everything(bootstrap, goal)
    for partition in range(2):
        mine = [message for message in messages if message.partition() == partition]
        assert [message.value() for message in mine] == [b"v%d" % number for number in range(partition, 1200, 2)]
    first = next(message for message in messages if message.value() == b"v7")
    assert (first.key(), first.headers(), first.timestamp()[1]) == (b"k7", [("own", b"7")], 1007)
    code, again = replay(dead)
    assert (code, again["read"], again["sent"]) == (0, 0, 0)
    letters(bootstrap, dead, goal, range(1200, 1203))
    assert replay(dead)[1]["sent"] == 3
    assert len(everything(bootstrap, goal)) == 1203


def test_filters_and_limits_take_some_and_keep_the_progress_of_each_filter(
    bootstrap: str, new_topic: Callable[..., str], replay: Run
) -> None:
    dead, goal = new_topic(), new_topic(partitions=2)
    letters(bootstrap, dead, goal, range(4), connector="a")
    letters(bootstrap, dead, goal, range(4, 6), connector="b")
    assert replay(dead, "--connector", "b")[1] | {"group": ""} == {
        "topic": dead, "group": "", "dry_run": False, "read": 6, "sent": 2, "filtered": 4, "left": 0,
        "topics": {goal: 2}, "reasons": {},
    }  # fmt: skip
    assert replay(dead, "--connector", "a", "--limit", "3")[1]["sent"] == 3
    assert replay(dead, "--connector", "a")[1]["sent"] == 1
    assert sorted(message.value() for message in everything(bootstrap, goal)) == [b"v%d" % n for n in range(6)]


def test_a_letter_that_can_not_be_sent_stops_the_replay_before_it_until_it_is_told_where(
    bootstrap: str, new_topic: Callable[..., str], replay: Run
) -> None:
    dead, goal = new_topic(), new_topic(partitions=2)
    letters(bootstrap, dead, goal, range(2))
    producer = Producer({"bootstrap.servers": bootstrap})
    producer.produce(dead, b"bare")
    assert producer.flush(60) == 0
    code, stopped = replay(dead)
    assert (code, stopped["sent"], stopped["left"]) == (7, 2, 1)
    assert replay(dead)[1]["sent"] == 0
    code, done = replay(dead, "--to", goal)
    assert (code, done["sent"]) == (0, 1)
    assert sorted(message.value() for message in everything(bootstrap, goal)) == [b"bare", b"v0", b"v1"]


def test_a_topic_that_does_not_exist_is_told_and_not_made(
    bootstrap: str, new_topic: Callable[..., str], replay: Run
) -> None:
    dead = new_topic()
    letters(bootstrap, dead, "no-such-topic", range(1))
    code, told = replay(dead)
    assert code == 1
    assert told["message"].startswith("There is no topic no-such-topic to send to")
    code, told = replay("no-such-queue")
    assert (code, told["message"][:30]) == (1, "There is no topic no-such-queu")
