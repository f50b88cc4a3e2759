"""Parked tasks are woken by records and by nothing else; sinks are planned anew when their topics change."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Mapping

import pytest

from wherry.contract.errors import AuthError, TransientError
from wherry.contract.position import TopicPartition, kafka_partition_json
from wherry.coordinator import events as ev
from wherry.coordinator.watcher import LOOK_INTERVAL_S, LOOK_INTERVAL_S_MAX, Watcher

P0, P1 = TopicPartition("t", 0), TopicPartition("t", 1)
J0, J1 = kafka_partition_json("t", 0), kafka_partition_json("t", 1)


class Cluster:
    def __init__(self) -> None:
        self.ends: dict[TopicPartition, int] = {P0: 10, P1: 5}
        self.committed: dict[TopicPartition, int] = {P0: 10, P1: 5}
        self.topics: dict[str, int] = {"t": 2}
        self.posted: list[ev.Event] = []
        self.calls = 0
        self.asked = 0
        self.watcher = Watcher(self.end_offsets, self.offsets, lambda: self.topics, self.posted.append)

    def end_offsets(self, partitions: Iterable[TopicPartition]) -> dict[TopicPartition, int]:
        self.calls += 1
        return {partition: self.ends[partition] for partition in partitions if partition in self.ends}

    def offsets(self, name: str, partitions: tuple[TopicPartition, ...]) -> Mapping[TopicPartition, int]:
        self.asked += 1
        return {p: self.committed[p] for p in partitions if p in self.committed}


@pytest.fixture
def cluster() -> Cluster:
    return Cluster()


def test_a_task_sleeps_while_nothing_arrives(cluster: Cluster) -> None:
    cluster.watcher.watch("sink", 0, [J0, J1])
    assert cluster.watcher.look() == 0
    assert cluster.posted == []


def test_a_record_wakes_its_task_once(cluster: Cluster) -> None:
    cluster.watcher.watch("sink", 0, [J0])
    cluster.watcher.watch("sink", 1, [J1])
    cluster.ends[P1] += 1
    assert [cluster.watcher.look(), cluster.watcher.look()] == [1, 0]
    assert cluster.posted == [ev.Woken("sink", 1)]


def test_records_that_came_while_it_was_being_parked_wake_it(cluster: Cluster) -> None:
    cluster.committed[P0] = 9
    cluster.watcher.watch("sink", 0, [J0])
    assert cluster.watcher.look() == 1


def test_a_control_record_at_the_end_wakes_a_task_only_once(cluster: Cluster) -> None:
    cluster.ends[P0] = 11
    cluster.watcher.watch("sink", 0, [J0])
    assert cluster.watcher.look() == 1
    cluster.watcher.watch("sink", 0, [J0])  # it found nothing to commit and was parked again
    assert cluster.watcher.look() == 0
    cluster.ends[P0] = 12
    assert cluster.watcher.look() == 1


def test_a_task_that_was_woken_otherwise_is_left_alone(cluster: Cluster) -> None:
    cluster.watcher.watch("sink", 0, [J0])
    cluster.watcher.unwatch("sink", 0)
    cluster.ends[P0] = 99
    assert cluster.watcher.look() == 0


def test_all_parked_tasks_cost_one_call(cluster: Cluster) -> None:
    for task in range(50):
        cluster.watcher.watch(f"sink-{task}", task, [J0, J1])
    cluster.watcher.look()
    assert cluster.calls == 1


def test_a_deleted_topic_wakes_nobody(cluster: Cluster) -> None:
    cluster.watcher.watch("sink", 0, [J0])
    del cluster.ends[P0]
    assert cluster.watcher.look() == 0


@pytest.mark.parametrize("ends", [3, 12])
def test_a_topic_that_was_made_anew_wakes_its_task_however_little_it_holds(cluster: Cluster, ends: int) -> None:
    cluster.committed[P0] = 9
    cluster.watcher.watch("sink", 0, [J0])
    assert cluster.watcher.look() == 1
    cluster.committed[P0] = 10
    cluster.watcher.watch("sink", 0, [J0])
    assert cluster.watcher.look() == 0
    cluster.ends[P0] = 0
    assert cluster.watcher.look() == 0
    cluster.ends[P0] = ends
    assert cluster.watcher.look() == 1
    cluster.watcher.watch("sink", 0, [J0])
    assert cluster.watcher.look() == 0


def test_a_group_that_can_not_be_asked_now_does_not_keep_other_tasks_asleep(cluster: Cluster) -> None:
    offsets = cluster.watcher.committed

    def refusing(name: str, partitions: tuple[TopicPartition, ...]) -> Mapping[TopicPartition, int]:
        if name == "first":
            raise TransientError("not now")
        return offsets(name, partitions)

    cluster.watcher.committed = refusing
    for name in ("first", "second"):
        cluster.watcher.watch(name, 0, [J0])
    cluster.ends[P0] += 1
    with pytest.raises(TransientError, match="not now"):
        cluster.watcher.look()
    assert cluster.posted == [ev.Woken("second", 0)]
    cluster.watcher.committed = offsets
    assert cluster.watcher.look() == 1


def test_a_group_that_may_not_be_asked_wakes_its_task_which_tells_why(cluster: Cluster) -> None:
    def refusing(name: str, partitions: tuple[TopicPartition, ...]) -> Mapping[TopicPartition, int]:
        raise AuthError("no right to read")

    cluster.watcher.committed = refusing
    cluster.watcher.watch("sink", 0, [J0])
    assert [cluster.watcher.look(), cluster.watcher.look()] == [1, 0]
    assert cluster.posted == [ev.Woken("sink", 0)]


def test_a_new_partition_has_the_sink_planned_anew(cluster: Cluster) -> None:
    cluster.watcher.follow("sink", {"topics": "t"}, (J0, J1))
    cluster.watcher.look_at_topics()
    assert cluster.posted == []
    cluster.topics["t"] = 3
    cluster.watcher.look_at_topics()
    assert [type(event) for event in cluster.posted] == [ev.PlanChanged]


def test_a_sink_whose_topics_have_changed_is_planned_once_for_each_change(cluster: Cluster) -> None:
    cluster.watcher.follow("sink", {"topics": "t"}, (J0, J1))
    cluster.topics = {"t": 3}
    cluster.watcher.look_at_topics()
    cluster.watcher.look_at_topics()
    assert len(cluster.posted) == 1
    cluster.watcher.follow("sink", {"topics": "t"}, (J0, J1))  # planned by what was known before
    cluster.watcher.look_at_topics()
    assert len(cluster.posted) == 2


def test_the_group_of_an_empty_topic_is_never_asked(cluster: Cluster) -> None:
    cluster.ends = {P0: 0, P1: 0}
    cluster.asked = 0
    cluster.watcher.watch("sink", 0, [J0, J1])
    assert cluster.watcher.look() == 0
    assert cluster.asked == 0
    cluster.ends[P0] = 1
    cluster.committed = {}
    assert cluster.watcher.look() == 1
    assert cluster.asked == 1


def test_looks_that_take_long_come_less_often(cluster: Cluster) -> None:
    assert cluster.watcher._look_wait_s(0.001) == LOOK_INTERVAL_S
    assert cluster.watcher._look_wait_s(0.02) == pytest.approx(1.0)
    assert cluster.watcher._look_wait_s(5.0) == LOOK_INTERVAL_S_MAX


def test_a_forgotten_sink_is_not_looked_at(cluster: Cluster) -> None:
    cluster.watcher.follow("sink", {"topics": "t"}, ())
    cluster.watcher.watch("sink", 0, [J0])
    cluster.watcher.forget("sink")
    cluster.ends[P0] = 99
    cluster.watcher.look_at_topics()
    assert (cluster.watcher.look(), cluster.posted) == (0, [])


def test_a_broker_that_is_away_is_borne(cluster: Cluster) -> None:
    def away(partitions: Iterable[TopicPartition]) -> dict[TopicPartition, int]:
        cluster.calls += 1
        raise TransientError("no broker")

    cluster.watcher.end_offsets = away
    cluster.watcher.look_interval_s = 0.01
    cluster.watcher.watch("sink", 0, [J0])
    cluster.watcher.start()
    try:
        for _ in range(300):
            if cluster.calls >= 2:
                break
            cluster.watcher._stopping.wait(0.01)
    finally:
        cluster.watcher.stop()
    assert cluster.calls >= 2, "it looked again after the failure"


def test_topics_are_looked_at_also_while_parked_tasks_can_not_be(cluster: Cluster) -> None:
    planned = threading.Event()

    def unknown(partitions: Iterable[TopicPartition]) -> dict[TopicPartition, int]:
        raise TransientError("no leader")

    cluster.watcher = Watcher(unknown, cluster.offsets, lambda: cluster.topics, lambda event: planned.set())
    cluster.watcher.watch("parked", 0, [J0])
    cluster.watcher.follow("sink", {"topics": "t"}, (J0,))
    cluster.watcher.start()
    assert planned.wait(30)
    cluster.watcher.stop()
