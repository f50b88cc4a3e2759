"""The stores on Kafka's topics: created or refused, read back at once, closed to whoever leads no more."""

from __future__ import annotations

import time
import uuid
from collections.abc import Iterator

import pytest
from tests.support.stores import Cluster
from tests.support.topics import create_topic
from tests.support.waiting import eventually

from wherry.contract.errors import ConfigError, FencedError, TransientError, WherryError
from wherry.contract.position import Position
from wherry.coordinator.api import State, TargetState, UnavailableError
from wherry.coordinator.kafka import KafkaAdmin
from wherry.coordinator.store import StoredConnector, StoredStatus, StoredTopic, topiclog
from wherry.coordinator.store.configlog import SessionKey
from wherry.coordinator.store.internal_topics import InternalTopic, ensure
from wherry.coordinator.store.kafka import KafkaStores
from wherry.coordinator.store.topiclog import FencedWriter

pytestmark = pytest.mark.integration
POSITION = Position('{"filename":"f"}', '{"position":6}')


@pytest.fixture
def cluster(bootstrap: str) -> Iterator[Cluster]:
    made = Cluster(bootstrap)
    yield made
    made.close()


def test_what_is_written_is_read_back_at_once_and_by_others(cluster):
    writer = cluster.writer()
    writer.claim()
    ours = cluster.stores(writer)
    ours.configs.put_connector("c", {"a": "1"}, TargetState.PAUSED)
    ours.configs.put_task_configs("c", [{"t": "0"}, {"t": "1"}])
    ours.configs.put_logger_level("x.y", "DEBUG")
    ours.configs.put_session_key(SessionKey(b"k" * 32, "HmacSHA256", 5))
    ours.configs.put_task_count("c", 2)
    ours.offsets.write("c", [POSITION, Position('{"filename":"g"}', '{"position":1}')])
    ours.statuses.put(StoredStatus("c", 0, State.RUNNING, "w:1", 1_700_000_000))
    ours.statuses.put(StoredStatus("c", 1, State.FAILED, "w:1", 1_700_000_000, "why"))
    ours.statuses.add_topic(StoredTopic("t", "c", 0, 9))
    theirs = cluster.stores()
    for stores in (ours, theirs):
        assert stores.configs.snapshot().connectors == {
            "c": StoredConnector("c", {"a": "1"}, TargetState.PAUSED, ({"t": "0"}, {"t": "1"}))
        }
        assert stores.configs.session_key() == SessionKey(b"k" * 32, "HmacSHA256", 5)
        assert stores.configs.task_count("c") == 2
        assert set(stores.offsets.load("c")) == {POSITION, Position('{"filename":"g"}', '{"position":1}')}
        assert [(s.state, s.generation, s.trace) for s in stores.statuses.tasks("c")] == [
            (State.RUNNING, 7, ""),
            (State.FAILED, 7, "why"),
        ]
        assert stores.statuses.topics("c") == ["t"]
    assert cluster.levels == [("x.y", "DEBUG")] * 2

    ours.offsets.write("c", [Position('{"filename":"g"}', None)])
    ours.configs.put_target_state("c", TargetState.STOPPED)
    ours.statuses.remove("c", 1)
    theirs.catch_up()
    assert theirs.offsets.load("c") == [POSITION]
    assert theirs.configs.snapshot().connectors["c"].target_state is TargetState.STOPPED
    assert [status.task for status in theirs.statuses.tasks("c")] == [0]

    ours.offsets.reset("c")
    ours.configs.delete_connector("c")
    ours.statuses.remove("c")
    theirs.catch_up()
    assert (theirs.offsets.load("c"), dict(theirs.configs.snapshot().connectors)) == ([], {})
    assert (theirs.statuses.get("c", 0), theirs.statuses.topics("c")) == (None, [])


def test_states_of_what_is_gone_are_taken_away(cluster):
    writer = cluster.writer()
    writer.claim()
    stores = cluster.stores(writer)
    for connector, task in (("a", None), ("a", 0), ("a", 1), ("gone", None), ("gone", 0)):
        stores.statuses.put(StoredStatus(connector, task, State.RUNNING, "w:1", 1))
    stores.statuses.forget_surplus({"a": 1})
    assert [status.task for status in stores.statuses.tasks("a")] == [0]
    assert (stores.statuses.get("gone"), stores.statuses.tasks("gone")) == (None, [])


def test_a_state_of_an_older_generation_of_the_same_process_is_ignored(cluster):
    stores = cluster.stores()
    stores.statuses.put(StoredStatus("c", None, State.RUNNING, "w:1", 11))
    stores.statuses.put(StoredStatus("c", None, State.FAILED, "w:1", 10))
    found = stores.statuses.get("c")
    assert found is not None
    assert found.state is State.RUNNING


def test_a_state_that_a_former_leader_had_under_way_does_not_stay(cluster):
    """It stood in the queue of a process that was frozen, and is sent when that goes on."""
    former, leading = cluster.stores(generation=6), cluster.stores()
    leading.statuses.put(StoredStatus("c", 0, State.PAUSED, "w:2", 20))
    former.statuses.put(StoredStatus("c", 0, State.RUNNING, "w:1", 10))
    for stores in (leading, former):
        assert eventually(lambda: stores.statuses.get("c", 0).state is State.PAUSED)  # noqa: B023


def test_a_deposed_leader_is_fenced_and_leaves_nothing_behind(cluster):
    old_writer, new_writer = cluster.writer(), cluster.writer()
    old_writer.claim()
    old = cluster.stores(old_writer)
    old.configs.put_connector("c", {"a": "1"})
    new_writer.claim()
    with pytest.raises(FencedError, match="Another coordinator leads now"):
        old.configs.put_connector("c", {"a": "2"})
    new = cluster.stores(new_writer)
    new.configs.put_connector("d", {})
    assert {name: dict(c.config) for name, c in new.configs.snapshot().connectors.items()} == {"c": {"a": "1"}, "d": {}}
    with pytest.raises(FencedError):  # and it stays so
        old.configs.put_target_state("c", TargetState.PAUSED)


def test_who_does_not_lead_writes_nothing(cluster):
    writer = cluster.writer()
    stores = cluster.stores(writer)
    with pytest.raises(FencedError, match="does not lead"):
        stores.configs.put_connector("c", {})
    writer.claim()
    cluster.leads = False
    for write in (
        lambda: stores.configs.put_connector("c", {}),
        lambda: stores.offsets.write("c", [POSITION]),
        lambda: stores.statuses.put(StoredStatus("c", None, State.RUNNING, "w:1", 1)),
    ):
        with pytest.raises(FencedError, match="does not lead"):
            write()
    stores.catch_up()
    assert dict(stores.configs.snapshot().connectors) == {}


def test_nothing_is_answered_before_the_topics_are_read(cluster):
    stores = KafkaStores(
        cluster.topics,
        cluster.config,
        cluster.admin,
        cluster.group,
        cluster.writer(),
        leads=lambda: True,
        generation=lambda: 1,
    )
    for ask in (stores.configs.snapshot, lambda: stores.offsets.load("c"), lambda: stores.statuses.get("c")):
        with pytest.raises(UnavailableError, match="still starting"):
            ask()
    stores.close()


def test_records_come_when_others_write_them(cluster):
    writer = cluster.writer()
    writer.claim()
    ours, theirs = cluster.stores(writer), cluster.stores()
    ours.configs.put_connector("c", {"a": "1"})
    assert eventually(lambda: "c" in theirs.configs.snapshot().connectors)


def test_a_configuration_too_large_for_a_record_is_refused_and_nothing_of_it_stays(cluster):
    writer = cluster.writer()
    writer.claim()
    ours = cluster.stores(writer)
    ours.configs.put_connector("c", {"a": "1"})
    absurd = {"a": "x" * 2_000_000}
    with pytest.raises(WherryError, match=r"could not write to .*MSG_SIZE_TOO_LARGE"):
        ours.configs.put_connector("c", absurd, TargetState.PAUSED)
    with pytest.raises(WherryError, match="MSG_SIZE_TOO_LARGE"):
        ours.configs.put_task_configs("c", [{"a": "2"}, absurd])
    ours.configs.put_connector("d", {"b": "2"})  # the next one is as good as ever
    for stores in (ours, cluster.stores()):
        found = stores.configs.snapshot().connectors
        assert {name: (dict(c.config), c.target_state, c.tasks) for name, c in found.items()} == {
            "c": ({"a": "1"}, TargetState.STARTED, ()),
            "d": ({"b": "2"}, TargetState.STARTED, ()),
        }


def test_while_kafka_is_away_a_change_is_refused_in_time_and_nothing_of_it_stays(own_kafka, monkeypatch):
    monkeypatch.setattr(topiclog, "WRITE_TIMEOUT_S", 6.0)
    monkeypatch.setattr(topiclog, "CLAIM_TIMEOUT_S", 6.0)
    made = Cluster(own_kafka.bootstrap)
    try:
        told: list[str] = []
        writer = FencedWriter(made.config, f"connect-cluster-{made.group}", lambda: told.append("lead given up"))
        writer.claim()
        ours = made.stores(writer)
        ours.configs.put_connector("c", {"a": "1"})
        own_kafka.kill()
        began = time.monotonic()
        with pytest.raises(TransientError, match=f"could not write to {made.group}-config"):
            ours.configs.put_connector("c", {"a": "2"}, TargetState.PAUSED)
        assert time.monotonic() - began < 60
        own_kafka.start()
        monkeypatch.undo()
        if told:  # where the transaction could not be ended in time either
            with pytest.raises(TransientError, match=f"could not write to {made.group}-config"):
                ours.configs.put_connector("c", {"a": "3"})
        again = made.writer()
        again.claim()
        theirs = made.stores(again)
        theirs.configs.put_connector("d", {})
        found = theirs.configs.snapshot().connectors
        assert {name: (dict(c.config), c.target_state) for name, c in found.items()} == {
            "c": ({"a": "1"}, TargetState.STARTED),
            "d": ({}, TargetState.STARTED),
        }
    finally:
        made.close()


def test_a_topic_that_cannot_serve_is_refused(bootstrap):
    admin = KafkaAdmin({"bootstrap.servers": bootstrap})
    name = f"internal-{uuid.uuid4().hex[:8]}"
    create_topic(bootstrap, f"{name}-wide", partitions=2, config={"cleanup.policy": "compact"})
    create_topic(bootstrap, f"{name}-deletes", partitions=1, config={"cleanup.policy": "compact,delete"})
    with pytest.raises(ConfigError, match="has 2 partitions"):
        ensure(admin, InternalTopic("config", f"{name}-wide", 1, 1, {}))
    for kind in ("config", "offset", "status"):
        with pytest.raises(ConfigError, match=r"cleanup\.policy=compact,delete"):
            ensure(admin, InternalTopic(kind, f"{name}-deletes", 1, 1, {}))
    assert not ensure(admin, InternalTopic("status", f"{name}-wide", 5, 1, {}))
    with_defaults = InternalTopic(
        "offset", f"{name}-new", -1, -1, {"cleanup.policy": "compact", "segment.bytes": "1048576"}
    )
    assert ensure(admin, with_defaults)
    found = admin.topic_config(f"{name}-new")
    assert (found["cleanup.policy"], found["segment.bytes"]) == ("compact", "1048576")
