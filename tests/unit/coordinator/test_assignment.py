"""Partitions are dealt evenly and move little; splits come in order, each to one reader."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from wherry.contract.plan import Work
from wherry.coordinator.assignment import SplitQueue, assign_partitions

names = st.lists(st.integers(0, 60).map(lambda n: f"t-{n}"), unique=True, max_size=40)


def queue(*splits: str) -> SplitQueue:
    found = SplitQueue()
    found.planned(Work(name, order_group=group) for name, _, group in (split.partition(":") for split in splits))
    return found


def taken(splits: SplitQueue, now_ms: int = 0) -> str | None:
    split = splits.take(now_ms)
    return None if split is None else split.id


def test_partitions_are_dealt_in_turn() -> None:
    assert assign_partitions(["a", "b", "c"], 2) == {0: ("a", "c"), 1: ("b",)}


def test_more_tasks_than_partitions_leaves_some_with_nothing() -> None:
    assert assign_partitions(["a"], 3) == {0: ("a",), 1: (), 2: ()}


@given(names, st.integers(1, 9), names, st.integers(1, 9))
def test_every_partition_has_one_task_and_no_task_two_more_than_another(
    partitions: list[str], tasks_max: int, earlier: list[str], earlier_tasks: int
) -> None:
    dealt = assign_partitions(partitions, tasks_max, assign_partitions(earlier, earlier_tasks))
    assert sorted(p for kept in dealt.values() for p in kept) == sorted(partitions)
    assert dealt.keys() == set(range(tasks_max))
    sizes = [len(kept) for kept in dealt.values()]
    assert max(sizes) - min(sizes) <= 1


@given(names, st.integers(1, 9))
def test_dealing_the_same_again_moves_nothing(partitions: list[str], tasks_max: int) -> None:
    dealt = assign_partitions(partitions, tasks_max)
    assert assign_partitions(list(reversed(partitions)), tasks_max, dealt) == dealt


@given(names, st.integers(1, 9))
def test_one_partition_more_changes_one_task(partitions: list[str], tasks_max: int) -> None:
    before = assign_partitions(partitions, tasks_max)
    after = assign_partitions([*partitions, "new"], tasks_max, before)
    assert sum(before[task] != after[task] for task in before) == 1


def test_splits_are_taken_in_the_order_of_the_plan() -> None:
    splits = queue("a", "b")
    assert [taken(splits), taken(splits), taken(splits)] == ["a", "b", None]


def test_splits_of_a_group_wait_for_the_one_before() -> None:
    splits = queue("a:g", "b:g", "c")
    assert [taken(splits), taken(splits), taken(splits)] == ["a", "c", None]
    splits.done("a")
    assert taken(splits) == "b"


def test_a_failed_split_waits_and_holds_its_group_back() -> None:
    splits = queue("a:g", "b:g")
    assert taken(splits) == "a"
    splits.put_back("a", retry_at_ms=1_000)
    assert taken(splits, 999) is None
    assert splits.next_due_ms(999) == 1_000
    assert taken(splits, 1_000) == "a"
    assert splits.failures == {"a": 1}


def test_a_split_put_back_comes_first() -> None:
    splits = queue("a", "b", "c")
    taken(splits)
    splits.put_back("a")
    assert taken(splits) == "a"


def test_a_plan_does_not_bring_back_what_was_handed_out_since_it_was_asked_for() -> None:
    splits = queue("a", "b")
    assert splits.plan_asked() == ()
    taken(splits)
    splits.done("a")
    splits.planned([Work("a"), Work("b")])
    assert [split.id for split in splits.pending] == ["b"]


def test_a_later_plan_may_list_a_split_again() -> None:
    splits = queue("a")
    taken(splits)
    splits.done("a")
    splits.plan_asked()
    splits.planned([Work("a")])
    assert taken(splits) == "a"


@pytest.mark.parametrize(("most", "count"), [(1, 1), (2, 2), (9, 3)])
def test_ready_splits_are_counted_up_to_what_is_asked(most: int, count: int) -> None:
    assert queue("a", "b:g", "c:g", "d").ready_count(0, most) == count
