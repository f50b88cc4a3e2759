"""A Spark cluster of two Workers: leases on both, and whatever of it is killed, every line goes on.

One worker and one cluster for all stories, told in order; lines run all the while.
"""

from __future__ import annotations

import os
import signal
import socket
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from tests.support.pairs import WRITE_SECONDS, Pair, Traffic, lost_and_repeated, moving_again
from tests.support.standalone import Standalone
from tests.support.topics import create_topic
from tests.support.waiting import eventually

from wherry.coordinator.dev.kafka import EmbeddedKafka
from wherry.coordinator.dev.spark import SparkCluster

PAIRS = 3
WINDOW_S = 3.0
START_TIMEOUT_S = 180.0
MOVING_S_MAX = 90.0
"""Generous: two seconds and less on a machine that does nothing else."""
NEW_SESSION_S_MAX = 180.0
KILLS = 5
REPEATED_S_MAX = 12.0
"""What a pair may carry again after each kill: what its source and its sink had not committed, once a second each."""
REPEATED_MAX = int(KILLS * PAIRS * REPEATED_S_MAX / WRITE_SECONDS)


class Site:
    """The cluster, the worker, and the lines between them."""

    def __init__(self, cluster: SparkCluster, worker: Standalone, pairs: list[Pair]) -> None:
        self.cluster = cluster
        self.worker = worker
        self.pairs = pairs

    def leases(self) -> dict[int, int]:
        """How many leases each executor runs, by its process id; one without any counts too."""
        found = Counter({executor.pid: 0 for executor in self.cluster.executors()})
        for lease in self.worker.rest.get("/wherry/v1/leases")["leases"]:
            pid = int(lease["worker"].rpartition(":")[2] or 0)
            found[_parent_of(_parent_of(pid))] += 1
        return dict(found)

    def is_even(self) -> bool:
        loads = self.leases()
        executors = {executor.pid for executor in self.cluster.executors()}
        return loads.keys() == executors and len(loads) == 2 and max(loads.values()) - min(loads.values()) <= 1

    def all_move_within(self, seconds: float) -> float:
        """Wait until every pair has moved a line written from now on; answers how long the last one took."""
        moved = moving_again(self.pairs, lambda true: self.until(true, seconds, "every task moves again"))
        return max(moved.values())

    def until(self, true: Callable[[], bool], seconds: float, what: str) -> None:
        if not eventually(true, seconds):
            executors, leases = self.cluster.executors(), self.worker.rest.get("/wherry/v1/leases")["leases"]
            told = f"executors: {executors}\nleases: {leases}\n{self.worker.log_tail()}"
            pytest.fail(f"waited {seconds:g} s in vain until {what}\n{told}")


def _parent_of(pid: int) -> int:
    try:
        return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])
    except (OSError, IndexError):
        return 0


@pytest.fixture(scope="module")
def site(kafka: EmbeddedKafka, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    directory = tmp_path_factory.mktemp("lines")
    pairs = [Pair(directory, "spark", "cluster", number) for number in range(PAIRS)]
    for pair in pairs:
        create_topic(kafka.bootstrap, pair.topic)
        pair.write()
    connectors = {name: config for pair in pairs for name, config in pair.connectors.items()}
    with (
        SparkCluster(slots=8, memory="1g") as cluster,
        Standalone(
            bootstrap=kafka.bootstrap,
            connectors=connectors,
            settings={
                "wherry.spark.master": cluster.url,
                "wherry.rebalance.window.ms": str(int(WINDOW_S * 1000)),
                "wherry.idle.park.ms": "0",
            },
        ) as worker,
    ):
        found = Site(cluster, worker, pairs)
        found.until(lambda: all(pair.last() >= 0 for pair in pairs), START_TIMEOUT_S, "every pair moves")
        with Traffic(pairs):
            yield found
        found.until(lambda: all(pair.last() == pair.sent - 1 for pair in pairs), 120, "everything has come")
        lost, repeated = lost_and_repeated(pairs)
        assert lost == 0
        assert repeated <= REPEATED_MAX


def test_leases_run_on_both_workers_and_reach_their_sidecars_there(site: Site) -> None:
    site.until(lambda: len(site.cluster.executors()) == 2, 120, "both Workers have an executor")
    site.until(site.is_even, 120, "the load is even")
    assert sum(site.leases().values()) == 2 * PAIRS
    told = site.worker.rest.get("/wherry/v1/leases")["leases"]
    by_executor = Counter(lease["executor"] for lease in told)
    assert sorted(by_executor.values()) == sorted(site.leases().values())
    assert "" not in by_executor
    assert {lease["host"] for lease in told} == {socket.gethostname()}
    assert site.all_move_within(MOVING_S_MAX) < MOVING_S_MAX


def test_a_killed_executors_tasks_move_again_and_the_load_becomes_even(site: Site) -> None:
    site.until(site.is_even, 120, "the load is even")
    victim = site.cluster.executors()[0]
    os.kill(victim.pid, signal.SIGKILL)
    took_s = site.all_move_within(MOVING_S_MAX)
    print(f"every task moved again after {took_s:.2f} s")
    site.until(lambda: len(site.cluster.executors()) == 2, 120, "a new executor is there")
    site.until(site.is_even, WINDOW_S + 120, "the load is even again")
    time.sleep(WINDOW_S)
    before = site.leases()
    time.sleep(WINDOW_S + 1)
    assert site.leases() == before, "once even, nothing moves"

    def states() -> set[str]:
        statuses = site.worker.rest.get("/connectors?expand=status").values()
        return {task["state"] for each in statuses for task in each["status"]["tasks"]}

    site.until(lambda: states() == {"RUNNING"}, 60, "all tasks run")


def test_a_killed_worker_of_spark_takes_its_executor_along_and_its_tasks_move_elsewhere(site: Site) -> None:
    site.cluster.kill_worker(0)
    site.all_move_within(MOVING_S_MAX)
    assert {executor.worker for executor in site.cluster.executors()} <= {1}
    site.cluster.start_worker(0)
    site.until(site.is_even, WINDOW_S + 120, "the load is even again")


def test_a_killed_master_disturbs_nobody_and_once_back_gives_new_executors(site: Site) -> None:
    before = {executor.pid for executor in site.cluster.executors()}
    site.cluster.kill_master()
    site.all_move_within(MOVING_S_MAX)
    site.cluster.start_master()
    site.cluster.wait_for_workers(2)
    assert {executor.pid for executor in site.cluster.executors()} == before
    os.kill(site.cluster.executors()[0].pid, signal.SIGKILL)
    site.all_move_within(MOVING_S_MAX)
    site.until(lambda: len(site.cluster.executors()) == 2, 120, "the Master has given a new executor")


def test_a_driver_that_was_killed_is_started_anew_with_executors_of_its_own(site: Site) -> None:
    (driver,) = site.worker.processes("spark")
    before = {executor.pid for executor in site.cluster.executors()}
    os.kill(driver.pid, signal.SIGKILL)
    site.all_move_within(NEW_SESSION_S_MAX)
    site.until(lambda: not before & {executor.pid for executor in site.cluster.executors()}, 120, "the old ones end")
