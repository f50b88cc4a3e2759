"""The stores of standalone mode."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

from wherry.contract.errors import ConfigError, TransientError
from wherry.contract.position import Position
from wherry.coordinator.api import State, TargetState
from wherry.coordinator.store import StoredStatus, StoredTopic
from wherry.coordinator.store.local import FileOffsetStore, MemoryConfigStore, MemoryStatusStore

REAL = Path(__file__).parent / "data/kafka-connect-4.3.1.offsets"
A0, A1 = Position('{"f":"a"}', '{"n":0}'), Position('{"f":"a"}', '{"n":1}')
B0 = Position('{"f":"é"}', '{"n":0}')


@pytest.fixture
def path(tmp_path):
    return tmp_path / "offsets"


def test_a_missing_or_empty_file_holds_nothing(path):
    assert FileOffsetStore(path).load("c") == []
    path.touch()
    assert FileOffsetStore(path).load("c") == []


def test_positions_survive_the_process(path):
    FileOffsetStore(path).write("c", [A0, B0])
    assert FileOffsetStore(path).load("c") == [A0, B0]


def test_the_real_workers_positions_are_found_by_name(path):
    shutil.copy(REAL, path)
    store = FileOffsetStore(path)
    assert store.load("c1") == [Position('{"filename":"/var/log/access.log"}', '{"position":3}')]
    assert store.load("c") == []


def test_a_later_position_takes_the_place_of_an_earlier(path):
    store = FileOffsetStore(path)
    store.write("c", [A0, B0])
    store.write("c", [A1])
    assert store.load("c") == [A1, B0]


def test_a_position_without_offset_forgets_its_partition(path):
    store = FileOffsetStore(path)
    store.write("c", [A0, B0])
    store.write("c", [Position(A0.partition, None)])
    assert FileOffsetStore(path).load("c") == [B0]


def test_connectors_do_not_see_one_another(path):
    store = FileOffsetStore(path)
    for name in ("c", 'c"x', "c,d", "é"):
        store.write(name, [A0])
    store.reset("c")
    assert store.load("c") == []
    assert [store.load(name) for name in ('c"x', "c,d", "é")] == [[A0]] * 3


def test_a_damaged_file_is_refused_with_its_path_and_a_remedy(path):
    path.write_bytes(REAL.read_bytes()[:-20])
    with pytest.raises(ConfigError, match=r"offsets file .*/offsets is damaged.*Put back a copy"):
        FileOffsetStore(path)


def test_a_position_that_is_no_json_is_refused(path):
    path.write_bytes(REAL.read_bytes().replace(b'"position"', b'"position\xff'))
    with pytest.raises(ConfigError, match="not JSON"):
        FileOffsetStore(path)


def test_a_folder_that_does_not_exist_is_refused_at_start(tmp_path):
    with pytest.raises(ConfigError, match=r"make .*nowhere"):
        FileOffsetStore(tmp_path / "nowhere/offsets")


def test_a_folder_in_the_place_of_the_file_is_refused(tmp_path):
    with pytest.raises(ConfigError, match="cannot be read: Is a directory"):
        FileOffsetStore(tmp_path)


def test_a_write_that_fails_leaves_file_and_memory_as_they_were(path, monkeypatch):
    store = FileOffsetStore(path)
    store.write("c", [A0])
    before = path.read_bytes()

    def full(descriptor):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(TransientError, match="No space left on device"):
        store.write("c", [A1])
    assert path.read_bytes() == before
    assert store.load("c") == [A0]
    assert list(path.parent.iterdir()) == [path]


def test_a_link_stays_a_link_and_the_mode_is_kept(tmp_path):
    target, link = tmp_path / "real", tmp_path / "link"
    target.touch(0o640)
    target.chmod(0o640)
    link.symlink_to(target)
    FileOffsetStore(link).write("c", [A0])
    assert link.is_symlink()
    assert target.stat().st_mode & 0o777 == 0o640
    assert FileOffsetStore(target).load("c") == [A0]


def test_a_configuration_keeps_its_target_state_and_tasks():
    store = MemoryConfigStore()
    store.put_connector("c", {"a": "1"}, TargetState.PAUSED)
    store.put_task_configs("c", [{"t": "0"}])
    store.put_connector("c", {"a": "2"})
    kept = store.snapshot().connectors["c"]
    assert (kept.config, kept.target_state, kept.tasks) == ({"a": "2"}, TargetState.PAUSED, ({"t": "0"},))


def test_a_new_connector_is_wanted_to_run():
    store = MemoryConfigStore()
    store.put_connector("c", {})
    assert store.snapshot().connectors["c"].target_state is TargetState.STARTED


def test_a_snapshot_does_not_change_and_its_version_rises():
    store = MemoryConfigStore()
    store.put_connector("c", {})
    before = store.snapshot()
    store.put_target_state("c", TargetState.STOPPED)
    store.delete_connector("c")
    store.delete_connector("unknown")
    assert set(before.connectors) == {"c"}
    assert store.snapshot().version == before.version + 2


def test_what_nobody_knows_is_not_invented():
    store = MemoryConfigStore()
    store.put_target_state("x", TargetState.PAUSED)
    store.put_task_configs("x", [{}])
    assert store.snapshot().connectors == {}


def _status(task, state, generation=1):
    return StoredStatus("c", task, state, "w", generation)


def test_states_of_tasks_are_listed_by_number():
    store = MemoryStatusStore()
    for task in (2, None, 0, 10):
        store.put(_status(task, State.RUNNING))
    assert [status.task for status in store.tasks("c")] == [0, 2, 10]
    assert store.get("c").task is None


def test_a_state_of_an_older_generation_is_ignored():
    store = MemoryStatusStore()
    store.put(_status(0, State.RUNNING, 2))
    store.put(_status(0, State.FAILED, 1))
    assert store.get("c", 0).state is State.RUNNING


def test_removing_a_connector_removes_its_tasks_and_topics():
    store = MemoryStatusStore()
    store.put(_status(None, State.RUNNING))
    store.put(_status(0, State.RUNNING))
    store.add_topic(StoredTopic("t", "c", 0, 1))
    store.remove("c")
    assert (store.get("c"), store.tasks("c"), store.topics("c")) == (None, [], [])


def test_topics_are_kept_in_order_of_discovery_until_reset():
    store = MemoryStatusStore()
    for name in ("b", "a", "b"):
        store.add_topic(StoredTopic(name, "c", 0, 1))
    assert store.topics("c") == ["b", "a"]
    store.reset_topics("c")
    assert store.topics("c") == []
