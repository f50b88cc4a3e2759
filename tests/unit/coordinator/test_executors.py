"""Spark's executors as its driver sees them, on a JVM made of Python."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from wherry.coordinator import events as ev
from wherry.coordinator.executors import (
    EXECUTORS_ABSENT_S,
    EXECUTORS_ABSENT_S_MAX,
    SETTLED_S,
    SETTLED_S_MAX,
    Executors,
    Found,
    own_address,
    placed,
)


class Listed:
    """What Spark's status store tells of one."""

    def __init__(self, executor: str, host_port: str, cores: int) -> None:
        self._told = (executor, host_port, cores)

    def id(self) -> str:
        return self._told[0]

    def hostPort(self) -> str:
        return self._told[1]

    def totalCores(self) -> int:
        return self._told[2]


class Jvm:
    """The few calls of a SparkContext that are made; stands for everything on the way to them."""

    def __init__(self) -> None:
        self.ids: list[str] = []
        self.listed: list[Listed] = []
        self.cpus = "1"

    _jsc = sc = statusStore = property(lambda self: self)

    def __call__(self) -> Jvm:
        return self

    def getExecutorIds(self) -> Jvm:
        return self

    def mkString(self, separator: str) -> str:
        return separator.join(self.ids)

    def executorList(self, active: bool) -> Sequence[Any]:
        assert active
        return _Scala(self.listed)

    def getConf(self) -> Any:
        return {"spark.task.cpus": self.cpus}


class _Scala(list[Any]):
    def size(self) -> int:
        return len(self)

    def apply(self, number: int) -> Any:
        return self[number]


class Watched:
    """Executors with a clock of their own."""

    def __init__(self) -> None:
        self.events: list[ev.Event] = []
        self.now_s = 0.0
        self.jvm = Jvm()
        self.executors = Executors(self.events.append, clock=lambda: self.now_s)

    def there(self, *told: tuple[str, str, int]) -> list[Found]:
        self.jvm.ids = [executor for executor, _, _ in told]
        self.jvm.listed = [Listed("driver", "10.0.0.9:1", 0), *(Listed(*each) for each in told)]
        return self.executors.look(self.jvm)


def test_executors_are_told_once_with_their_slots() -> None:
    watched = Watched()
    assert watched.there(("0", "10.0.0.1:4001", 8)) == [Found("0", "10.0.0.1", 8)]
    assert watched.there(("0", "10.0.0.1:4001", 8)) == []
    assert watched.events == [ev.ExecutorsSeen((ev.Executor("0", 8),))]


def test_one_that_is_gone_is_told_and_no_longer_a_place() -> None:
    watched = Watched()
    watched.there(("0", "a:1", 8), ("1", "b:1", 4))
    assert watched.executors.place("1") == "executor_b_1"
    assert watched.there(("0", "a:1", 8)) == []
    assert watched.events[-1] == ev.ExecutorsSeen((ev.Executor("0", 8),))
    assert watched.executors.place("1") == ""


def test_one_whose_address_is_not_known_to_all_yet_is_looked_at_again() -> None:
    watched = Watched()
    watched.jvm.ids = ["0"]
    assert watched.executors.look(watched.jvm) == []
    assert watched.events == []
    assert watched.there(("0", "10.0.0.1", 8)) == [Found("0", "10.0.0.1", 8)], "nor is its port"


def test_slots_are_cores_by_what_a_task_takes() -> None:
    watched = Watched()
    watched.jvm.cpus = "3"
    watched.there(("0", "a:1", 8), ("1", "a:2", 2))
    assert watched.events == [ev.ExecutorsSeen((ev.Executor("0", 2), ev.Executor("1", 1)))]


def test_a_session_without_executors_is_given_up_less_and_less_often() -> None:
    watched = Watched()
    given_up = []
    for second in range(2_000):
        watched.now_s = float(second)
        if watched.executors.given_up("spark://a:7077"):
            given_up.append(second)
            watched.executors.new_session()
    waits = [later - earlier for earlier, later in zip([0, *given_up], given_up, strict=False)]
    assert waits[0] == EXECUTORS_ABSENT_S
    assert waits[-1] == EXECUTORS_ABSENT_S_MAX
    assert waits == sorted(waits)


def test_an_executor_that_came_makes_the_wait_short_again() -> None:
    watched = Watched()
    watched.now_s = EXECUTORS_ABSENT_S
    assert "spark://a:7077" in watched.executors.given_up("spark://a:7077")
    watched.executors.new_session()
    watched.there(("0", "a:1", 8))
    watched.now_s += EXECUTORS_ABSENT_S - 1
    assert not watched.executors.given_up("spark://a:7077")
    watched.now_s += 1
    assert watched.executors.given_up("spark://a:7077")


def test_leases_wait_until_no_more_executors_come_or_it_takes_long() -> None:
    watched = Watched()
    assert not watched.executors.settled
    watched.there(("0", "a:1", 8))
    watched.now_s = SETTLED_S - 0.5
    watched.there(("0", "a:1", 8), ("1", "b:1", 8))
    watched.now_s = SETTLED_S
    assert not watched.executors.settled, "another one has come"
    watched.now_s = 2 * SETTLED_S
    assert watched.executors.settled
    watched.executors.new_session()
    assert watched.events[-1] == ev.ExecutorsSeen(()), "those of the last session are forgotten"
    watched.now_s += SETTLED_S_MAX - 0.1
    assert not watched.executors.settled
    watched.now_s += 0.1
    assert watched.executors.settled, "leases are told that there is no slot"


def test_without_wishes_leases_are_dealt_as_spark_does() -> None:
    class Context:
        def parallelize(self, specs: Sequence[Any], slices: int) -> tuple[Any, int]:
            return specs, slices

    specs = [("a", b""), ("b", b"")]
    assert placed(Context(), specs, []) == (specs, 2)
    assert placed(Context(), specs, ["", ""]) == (specs, 2)


@pytest.mark.parametrize(
    ("master", "address"),
    [
        ("spark://127.0.0.1:7077", "127.0.0.1"),
        ("spark://127.0.0.1:7077,10.9.9.9:7077", "127.0.0.1"),
        ("spark://[::1]:7077", "[::1]"),
        ("spark://no.such.host.invalid:7077", "fallback"),
        ("yarn", "fallback"),
        ("k8s://https://api:6443", "fallback"),
    ],
)
def test_executors_find_us_by_the_address_on_the_way_to_the_master(master: str, address: str) -> None:
    assert own_address(master, "fallback") == address
