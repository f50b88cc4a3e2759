"""Executors are loaded evenly, and leases are moved rarely: single rules first, then whole histories by chance."""

from __future__ import annotations

import random

import pytest

from wherry.coordinator.events import Executor
from wherry.coordinator.spread import MOVE_MS_MAX, MOVES_AT_ONCE_MAX, RETURNS_MAX, SHUN_MS, Spread, SpreadTimes

TIMES = SpreadTimes(window_ms=10_000, rest_ms=60_000)


def spread_over(*executors: str, slots: int = 16) -> Spread:
    spread = Spread(TIMES)
    spread.executors_seen([Executor(each, slots) for each in executors])
    return spread


def run(spread: Spread, lease: str, executor: str, connector: str = "c", *, movable: bool = True) -> None:
    """A lease, opened where Spark put it, whatever was asked for."""
    spread.launch(lease, (connector, int(lease[1:])), 0)
    spread.opened(lease, executor, movable=movable)


def uneven() -> Spread:
    """Four leases on a, none on b."""
    spread = spread_over("a", "b")
    for number in range(4):
        run(spread, f"l{number}", "a")
    return spread


def test_new_leases_go_where_there_is_least_to_do() -> None:
    spread = spread_over("a", "b", "c")
    for number in range(7):
        spread.launch(f"l{number}", (f"c{number}", 0), 0)
    assert sorted(spread.loads().values()) == [2, 2, 3]


def test_among_equals_a_connector_goes_where_it_has_less() -> None:
    spread = spread_over("a", "b")
    run(spread, "l0", "a", "mine")
    run(spread, "l1", "b", "other")
    assert spread.launch("l2", ("mine", 2), 0) == "b"


def test_an_executor_with_more_slots_gets_more() -> None:
    spread = Spread(TIMES)
    spread.executors_seen([Executor("small", 2), Executor("big", 6)])
    for number in range(8):
        spread.launch(f"l{number}", ("c", number), 0)
    assert spread.loads() == {"small": 2, "big": 6}
    assert spread.launch("l8", ("c", 8), 0) == "", "all is full: left to Spark"


@pytest.mark.parametrize("executors", [(), ("only",)])
def test_with_one_executor_or_none_nothing_is_decided(executors: tuple[str, ...]) -> None:
    spread = spread_over(*executors)
    assert spread.launch("l0", ("c", 0), 0) == ""
    assert spread.moves(10**9) == []
    assert spread.due_ms() is None


def test_nothing_moves_before_the_window_is_over_and_then_a_few_at_once() -> None:
    spread = uneven()
    assert spread.moves(0) == []
    assert spread.due_ms() == 10_000
    assert spread.moves(9_999) == []
    moved = spread.moves(10_000)
    assert len(moved) == MOVES_AT_ONCE_MAX
    assert spread.moves(10_001) == [], "these must arrive first"


def test_a_difference_of_one_is_even() -> None:
    spread = spread_over("a", "b")
    run(spread, "l0", "a")
    assert spread.moves(0) == []
    assert spread.due_ms() is None


def test_what_becomes_even_by_itself_moves_nothing() -> None:
    spread = uneven()
    assert spread.moves(0) == []
    spread.over("l0")
    run(spread, "l9", "b")
    run(spread, "l8", "b")
    assert spread.moves(5_000) == []
    spread.over("l8")
    assert spread.moves(10_000) == [], "uneven again, but only since now"
    assert spread.due_ms() == 20_000


def test_a_change_among_executors_begins_the_window_anew() -> None:
    spread = uneven()
    spread.moves(0)
    spread.executors_seen([Executor(each, 16) for each in "abc"])
    assert spread.moves(9_000) == []
    assert spread.moves(10_000) == []
    assert spread.moves(19_000)


def test_runners_of_splits_stay_where_they_are() -> None:
    spread = spread_over("a", "b")
    for number in range(4):
        run(spread, f"l{number}", "a", movable=False)
    spread.moves(0)
    assert spread.moves(10_000) == []
    assert spread.due_ms() == 20_000, "looked at again, not all the time"


def test_a_moved_task_rests() -> None:
    spread = spread_over("a", "b")
    for number in range(3):
        run(spread, f"l{number}", "a")
    spread.moves(0)
    ((lease, key),) = spread.moves(10_000)
    spread.over(lease)
    assert spread.launch("m0", key, 10_000) == "b"
    spread.opened("m0", "b", movable=True)
    assert spread.moves(10_500) == []
    for other in ("l0", "l1", "l2"):
        spread.over(other)
    for number in range(20, 22):
        run(spread, f"l{number}", "b", "d")
    assert spread.moves(20_000) == []
    assert [key for _, key in spread.moves(30_000)] == [("d", 21)], "the one that came before is left alone"


def test_a_task_that_spark_put_back_is_tried_again_without_a_rest_and_not_for_ever() -> None:
    spread = spread_over("a", "b")
    for number in range(3):
        run(spread, f"l{number}", "a", movable=number == 0)
    now_ms = 0
    spread.moves(now_ms)
    for attempt in range(RETURNS_MAX + 1):
        now_ms += TIMES.window_ms
        ((lease, key),) = spread.moves(now_ms)
        spread.over(lease)
        assert spread.launch(f"m{attempt}", key, now_ms) == "b"
        spread.opened(f"m{attempt}", "a", movable=True)
        assert spread.moves(now_ms) == [], "not before another window"
    assert spread.moves(now_ms + TIMES.window_ms) == [], "it rests"
    assert [key for _, key in spread.moves(now_ms + TIMES.rest_ms + TIMES.window_ms)] == [("c", 0)]


def test_a_task_that_comes_to_rest_instead_is_not_waited_for() -> None:
    spread = uneven()
    spread.moves(0)
    for lease, key in spread.moves(10_000):
        spread.over(lease)
        spread.rests(key)
    assert spread.loads() == {"a": 2, "b": 0}
    assert len(spread.moves(10_001)) == 1, "still uneven: it goes on"


def test_a_move_that_never_ends_is_not_waited_for_for_ever() -> None:
    spread = uneven()
    spread.moves(0)
    spread.moves(10_000)
    assert spread.due_ms() == 10_000 + MOVE_MS_MAX
    assert spread.moves(10_000 + MOVE_MS_MAX) != [], "the others may go"


def test_an_executor_that_fell_silent_is_left_alone_until_something_opens_there() -> None:
    spread = spread_over("a", "b")
    run(spread, "l0", "a")
    spread.silent("l0", 0)
    spread.over("l0")
    assert [spread.launch(f"n{number}", ("c", number), number) for number in range(3)] == ["b", "b", "b"]
    assert spread.moves(1) == []
    assert spread.due_ms() is None, "nor does anything move there"
    assert spread.launch("n3", ("c", 3), SHUN_MS) == "a"
    spread.silent("n3", SHUN_MS)
    assert spread.launch("n4", ("c", 4), SHUN_MS + 1) == "b"
    spread.opened("n3", "a", movable=True)
    assert spread.launch("n5", ("c", 5), SHUN_MS + 2) == "a", "it lives"


def test_where_all_have_fallen_silent_one_is_as_good_as_another() -> None:
    spread = spread_over("a", "b")
    for number, executor in enumerate("ab"):
        run(spread, f"l{number}", executor)
        spread.silent(f"l{number}", 0)
    assert spread.launch("l2", ("c", 2), 1) in ("a", "b")


class Cluster:
    """Executors that come and go, and a Spark that puts leases where it likes; time by chance, all from one seed."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.spread = Spread(TIMES)
        self.executors = {"0", "1"}
        self.where: dict[str, str] = {}
        self.keys: dict[str, tuple[str, int]] = {}
        self.moved_ms: dict[tuple[str, int], int] = {}
        """When tasks were moved, of those that came elsewhere."""
        self.disturbed_ms = 0
        self.now_ms = 0
        self.leases = 0
        self.seen()

    def seen(self) -> None:
        self.disturbed_ms = self.now_ms
        self.spread.executors_seen([Executor(each, 64) for each in self.executors])

    def start(self, key: tuple[str, int]) -> None:
        self.leases += 1
        lease = f"l{self.leases}"
        wish = self.spread.launch(lease, key, self.now_ms)
        obeys = wish in self.executors and self.random.random() < 0.9
        self.where[lease] = wish if obeys else self.random.choice(sorted(self.executors))
        self.keys[lease] = key
        self.spread.opened(lease, self.where[lease], movable=True)

    def end(self, lease: str) -> None:
        self.spread.over(lease)
        del self.where[lease], self.keys[lease]

    def disturb(self) -> None:
        chance = self.random.random()
        if chance < 0.4 or not self.where:
            self.start((f"c{self.random.randrange(4)}", self.leases))
        elif chance < 0.7:
            self.end(self.random.choice(sorted(self.where)))
        elif chance < 0.85:
            self.executors.add(str(max(map(int, self.executors)) + 1))
            self.seen()
        elif len(self.executors) > 1:
            lost = self.random.choice(sorted(self.executors))
            self.executors.discard(lost)
            self.seen()
            for lease, executor in list(self.where.items()):
                if executor == lost:  # Spark runs it again, anywhere
                    self.where[lease] = self.random.choice(sorted(self.executors))
                    self.spread.opened(lease, self.where[lease], movable=True)

    def move(self) -> int:
        moves = self.spread.moves(self.now_ms)
        assert len(moves) <= MOVES_AT_ONCE_MAX
        for lease, key in moves:
            assert self.now_ms - self.disturbed_ms >= TIMES.window_ms, "executors have changed a moment ago"
            assert self.now_ms - self.moved_ms.get(key, -TIMES.rest_ms) >= TIMES.rest_ms, f"{key} has just been moved"
            source = self.where[lease]
            self.end(lease)
            self.start(key)
            if self.where[f"l{self.leases}"] != source:
                self.moved_ms[key] = self.now_ms
        return len(moves)

    def difference(self) -> int:
        loads = [list(self.where.values()).count(each) for each in self.executors]
        assert self.spread.loads() == {each: list(self.where.values()).count(each) for each in self.executors}
        return max(loads) - min(loads)


@pytest.mark.parametrize("seed", range(30))
def test_whatever_happens_the_load_becomes_even_and_then_nothing_moves(seed: int) -> None:
    cluster = Cluster(seed)
    for _ in range(200):
        cluster.now_ms += cluster.random.randrange(1, 8_000)
        cluster.disturb()
        cluster.move()
    for _ in range(400):
        cluster.now_ms += 1_000
        cluster.move()
    assert cluster.difference() <= 1
    for _ in range(100):
        cluster.now_ms += 1_000
        assert cluster.move() == 0
