"""The config topic: the real worker's records taken in order, and ours against them."""

from __future__ import annotations

import json
import random
from pathlib import Path

import pytest

from wherry.coordinator.api import TargetState
from wherry.coordinator.store import StoredConnector
from wherry.coordinator.store.configlog import (
    ConfigLog,
    SessionKey,
    connector_records,
    deletion_records,
    logger_records,
    session_key_records,
    target_records,
    task_count_records,
    task_records,
)

GOLDEN = json.loads((Path(__file__).parents[3] / "cases/internal_topics.json").read_text())["connect-configs"]
SNK = "snk \u00fc"


def replayed(rows: list[dict[str, str | None]], log: ConfigLog | None = None) -> ConfigLog:
    log = log or ConfigLog()
    for row in rows:
        key, value = row["key"], row["value"]
        assert log.apply(None if key is None else key.encode(), None if value is None else value.encode()) or (
            key is not None and key.startswith("restart-")
        )
    return log


def put(log: ConfigLog, records: list[tuple[str, bytes | None]]) -> None:
    for key, value in records:
        assert log.apply(key.encode(), value)


def test_the_real_workers_topic_is_understood_as_it_stood_at_its_end():
    levels: list[tuple[str, str]] = []
    log = replayed(GOLDEN, ConfigLog(lambda logger, level: levels.append((logger, level))))
    connectors = log.snapshot().connectors
    assert list(connectors) == ["src", SNK]
    src, snk = connectors["src"], connectors[SNK]
    assert src.config["batch.size"] == "7"
    assert (src.target_state, len(src.tasks), snk.target_state, len(snk.tasks)) == (
        *(TargetState.STARTED, 1),
        *(TargetState.STARTED, 2),
    )
    assert src.tasks[0]["task.class"] == "org.apache.kafka.connect.file.FileStreamSourceTask"
    assert levels == [("org.apache.kafka.connect", "WARN")]
    assert log.session_key is not None
    assert (log.session_key.algorithm, len(log.session_key.key)) == ("HmacSHA256", 32)


@pytest.mark.parametrize(
    ("records", "connector", "target", "tasks"),
    [
        (4, SNK, TargetState.PAUSED, 0),  # created PAUSED: the target state came first
        (5, "src", TargetState.STARTED, 0),  # its task is written, not yet committed
        (6, "src", TargetState.STARTED, 1),
        (11, "src", TargetState.PAUSED, 1),
        (22, "src", TargetState.STOPPED, 0),
    ],
)
def test_the_real_workers_topic_is_understood_at_every_moment(records, connector, target, tasks):
    found = replayed(GOLDEN[:records]).snapshot().connectors[connector]
    assert (found.target_state, len(found.tasks)) == (target, tasks)


def test_our_records_are_the_real_workers_byte_for_byte():
    golden = [(row["key"], None if row["value"] is None else row["value"].encode()) for row in GOLDEN]
    configs = {n: replayed(GOLDEN[:n]).snapshot().connectors for n in (4, 10, len(GOLDEN))}
    assert connector_records(SNK, configs[4][SNK].config, TargetState.PAUSED) == golden[2:4]
    assert target_records("src", TargetState.STOPPED) == [golden[21]]
    assert target_records("src", TargetState.STARTED) == [golden[11]]
    assert task_records(SNK, configs[10][SNK].tasks) == golden[7:10]
    assert task_records("src", []) == [golden[20]]
    assert deletion_records("bad") == golden[22:24]
    assert logger_records("org.apache.kafka.connect", "WARN") == [golden[13]]
    key = replayed(GOLDEN).session_key
    assert key is not None
    assert session_key_records(key) == [golden[0]]
    assert task_count_records("src", 3) == [("tasks-fencing-src", b'{"task-count":3}')]


def test_a_configuration_alone_leaves_the_target_state():
    log = ConfigLog()
    put(log, connector_records("c", {"a": "1"}, TargetState.STOPPED))
    put(log, connector_records("c", {"a": "2"}, before=log.snapshot().connectors["c"]))
    found = log.snapshot().connectors["c"]
    assert found == StoredConnector("c", {"a": "2"}, TargetState.STOPPED)


def test_a_deleted_connector_takes_all_that_was_known_of_it():
    log = ConfigLog()
    put(log, [*connector_records("c", {}, TargetState.PAUSED), *task_records("c", [{"t": "1"}])])
    put(log, deletion_records("c"))
    assert dict(log.snapshot().connectors) == {}
    put(log, connector_records("c", {"a": "1"}))
    assert log.snapshot().connectors["c"] == StoredConnector("c", {"a": "1"})


def test_task_configurations_that_compaction_has_torn_do_not_count():
    log = ConfigLog()
    put(log, [*connector_records("c", {}), *task_records("c", [{"t": "0"}, {"t": "1"}])[1:]])
    assert (log.snapshot().connectors["c"].tasks, log.inconsistent) == ((), {"c"})
    put(log, task_records("c", [{"t": "0"}]))
    assert (log.snapshot().connectors["c"].tasks, log.inconsistent) == (({"t": "0"},), set())


def test_fewer_tasks_leave_none_of_the_old_ones():
    log = ConfigLog()
    put(log, [*connector_records("c", {}), *task_records("c", [{"t": "0"}, {"t": "1"}]), *task_records("c", [{}])])
    assert log.snapshot().connectors["c"].tasks == ({},)


def test_names_that_look_like_keys_are_names():
    log = ConfigLog()
    for name in ("task-1", "commit-x-2", "a-0", "connector-", "tasks-fencing-y"):
        put(log, [*connector_records(name, {"n": name}), *task_records(name, [{"n": name}])])
    put(log, task_count_records("a-0", 2))
    assert {name: c.tasks for name, c in log.snapshot().connectors.items()} == {
        name: ({"n": name},) for name in ("task-1", "commit-x-2", "a-0", "connector-", "tasks-fencing-y")
    }
    assert log.task_counts == {"a-0": 2}


def test_a_target_state_of_an_old_worker_counts():
    log = ConfigLog()
    put(log, [("connector-c", b'{"properties":{}}'), ("target-state-c", b'{"state":"PAUSED"}')])
    assert log.snapshot().connectors["c"].target_state is TargetState.PAUSED
    put(log, [("target-state-c", None)])
    assert log.snapshot().connectors["c"].target_state is TargetState.STARTED


@pytest.mark.parametrize(
    ("key", "value"),
    [
        (None, b"{}"),
        (b"\xff", b"{}"),
        (b"something-else", b"{}"),
        (b"restart-connector-c", b'{"include-tasks":true,"only-failed":false}'),
        (b"connector-c", b"{"),
        (b"connector-c", b"[]"),
        (b"connector-c", b'{"props":{}}'),
        (b"connector-c", b'{"properties":{"a":1}}'),
        (b"target-state-c", b'{"state":"DANCING"}'),
        (b"task-c-x", b'{"properties":{}}'),
        (b"commit-c", b'{"tasks":"many"}'),
        (b"session-key", b'{"key":"*","algorithm":"HmacSHA256","creation-timestamp":1}'),
        (b"logger-cluster-x", b"{}"),
    ],
)
def test_what_is_damaged_or_unknown_changes_nothing(key, value):
    log = ConfigLog()
    put(log, connector_records("c", {"a": "1"}))
    before = log.snapshot()
    assert not log.apply(key, value)
    assert log.snapshot() is before


def test_the_version_rises_with_every_change():
    log = ConfigLog()
    versions = []
    for records in (connector_records("c", {}), target_records("c", TargetState.PAUSED), deletion_records("c")):
        put(log, records)
        versions.append(log.snapshot().version)
    assert versions == sorted(set(versions))


def test_a_session_key_survives_its_record():
    log = ConfigLog()
    key = SessionKey(bytes(range(32)), "HmacSHA256", 1_700_000_000_000)
    put(log, session_key_records(key))
    assert log.session_key == key


@pytest.mark.parametrize("seed", range(5))
def test_a_snapshot_is_the_same_whenever_it_is_taken(seed: int) -> None:
    """One log is asked after every record, another only at the end: neither what is told nor its order differs."""
    chance = random.Random(seed)
    asked, last = ConfigLog(), ConfigLog()
    for number in range(300):
        name = f"c{chance.randrange(8)}"
        records = chance.choice(
            [
                connector_records(name, {"name": name, "number": str(number)}),
                connector_records(name, {"name": name}, TargetState.PAUSED),
                target_records(name, chance.choice(list(TargetState))),
                task_records(name, [{"task": str(number)}] * chance.randrange(3)),
                deletion_records(name),
                [(f"commit-{name}", b'{"tasks":9}')],
                [(f"target-state-{name}", None)],
            ]
        )
        for key, value in records:
            asked.apply(key.encode(), value)
            last.apply(key.encode(), value)
            before = asked.snapshot()
        assert asked.snapshot() is before
    told = last.snapshot().connectors
    assert list(before.connectors.items()) == list(told.items())
    assert {name: kept.config for name, kept in told.items()} == last._configs
    assert {name: kept.tasks for name, kept in told.items() if kept.tasks} == {
        name: tasks for name, tasks in last._tasks.items() if tasks and name in told
    }
    assert all(kept.target_state is last._targets.get(name, TargetState.STARTED) for name, kept in told.items())
