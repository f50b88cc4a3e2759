"""The status topic: the real worker's records taken in order, and ours against them."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from wherry.coordinator.api import State
from wherry.coordinator.store import StoredStatus, StoredTopic
from wherry.coordinator.store.statuslog import StatusLog, may_put, status_key, status_record, topic_key, topic_record

GOLDEN = json.loads((Path(__file__).parents[3] / "cases/internal_topics.json").read_text())["connect-status"]
ONE = StoredStatus("c", 0, State.RUNNING, "w1:8083", 5, "", "1.0")


def replayed(rows: list[dict[str, str | None]]) -> StatusLog:
    log = StatusLog()
    for row in rows:
        key, value = row["key"], row["value"]
        assert key is not None
        assert log.apply(key.encode(), None if value is None else value.encode())
    return log


def test_the_real_workers_topic_is_understood_as_it_stood_at_its_end():
    log = replayed(GOLDEN)
    assert sorted(log.connectors()) == ["snk \u00fc", "src"]
    src = log.get("src")
    assert src is not None
    assert (src.state, src.worker_id, src.generation, src.version) == (State.UNASSIGNED, "worker-1:8083", 13, "4.3.1")
    assert [(s.task, s.state) for s in log.tasks("snk \u00fc")] == [(0, State.UNASSIGNED), (1, State.UNASSIGNED)]
    assert [topic.name for topic in log.topics("src")] == ["t1"]


def test_a_failed_task_shows_its_trace():
    log = replayed([row for row in GOLDEN if row["key"] == "status-task-bad-0" and row["value"] is not None])
    failed = log.get("bad", 0)
    assert failed is not None
    assert failed.state is State.FAILED
    assert "FileStreamSinkTask" in failed.trace


def test_our_records_are_the_real_workers_byte_for_byte():
    for row in GOLDEN:
        if row["value"] is None:
            continue
        log = replayed([row])
        name = log.connectors()[0]
        if row["key"].startswith("status-topic-"):
            record = topic_record(log.topics(name)[0])
        else:
            record = status_record(log.get(name) or log.tasks(name)[0])
        assert record == (row["key"], row["value"].encode())


def test_null_takes_a_state_away():
    log = StatusLog()
    for record in (status_record(ONE), (status_key("c", 0), None)):
        assert log.apply(record[0].encode(), record[1])
    assert (log.get("c", 0), log.connectors()) == (None, [])


def test_the_first_discovery_of_a_topic_stays_until_it_is_forgotten():
    log = StatusLog()
    for ms in (5, 9):
        key, value = topic_record(StoredTopic("t", "c", 1, ms))
        log.apply(key.encode(), value)
    assert log.topics("c") == [StoredTopic("t", "c", 1, 5)]
    log.apply(topic_key("c", "t").encode(), None)
    assert log.topics("c") == []


def test_a_connector_named_like_the_key_is_told_from_its_topic():
    log = StatusLog()
    key, value = topic_record(StoredTopic("t", "a:connector-b", 0, 1))
    log.apply(key.encode(), value)
    assert [topic.name for topic in log.topics("a:connector-b")] == ["t"]


@pytest.mark.parametrize(
    ("told", "stays"),
    [
        (replace(ONE, state=State.UNASSIGNED, worker_id="w2:8083", generation=5), True),
        (replace(ONE, state=State.UNASSIGNED, worker_id="w2:8083", generation=6), False),
        (replace(ONE, state=State.UNASSIGNED), False),
        (replace(ONE, state=State.FAILED, worker_id="w2:8083", generation=1), False),
    ],
)
def test_a_worker_that_has_lost_a_part_does_not_talk_over_the_one_that_has_it(told, stays):
    log = StatusLog()
    for status in (ONE, told):
        key, value = status_record(status)
        log.apply(key.encode(), value)
    assert log.get("c", 0) == (ONE if stays else told)


@pytest.mark.parametrize(
    ("status", "before", "may"),
    [
        (ONE, None, True),
        (ONE, ONE, True),
        (ONE, replace(ONE, worker_id="w2", generation=5), True),
        (ONE, replace(ONE, worker_id="w2", generation=6), False),
        (ONE, replace(ONE, generation=6), True),
    ],
)
def test_a_state_written_with_care_yields_to_a_later_worker(status, before, may):
    assert may_put(status, before) is may


@pytest.mark.parametrize(
    ("key", "value"),
    [
        (None, b"{}"),
        (b"else", b"{}"),
        (b"status-topic-t", b"{}"),
        (b"status-task-c-x", b"{}"),
        (b"status-connector-c", b'{"state":"DANCING","worker_id":"w","generation":1}'),
        (b"status-connector-c", b'{"state":"RUNNING"}'),
        (b"status-connector-c", b"{"),
    ],
)
def test_what_is_damaged_or_unknown_changes_nothing(key, value):
    log = StatusLog()
    assert not log.apply(key, value)
    assert log.connectors() == []
