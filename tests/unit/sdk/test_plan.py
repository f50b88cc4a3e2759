"""Plans and offsets, as authors see them."""

from __future__ import annotations

import pytest

from wherry.contract.errors import ConnectorBugError
from wherry.contract.position import Position
from wherry.sdk import Offsets, Plan, Split, Task
from wherry.sdk.plan import to_author, to_contract


def test_tasks_are_numbered_and_their_data_comes_back() -> None:
    plan = to_contract(Plan(tasks=[Task(data={"a": [1]}), Task(config={"k": "v"})]), 2, (), 0)
    assert [work.id for work in plan.tasks] == ["0", "1"]
    assert to_author(plan.tasks[0], split=False, task=3, frame_bytes_target=9).data == {"a": [1]}
    assert (plan.tasks[1].descriptor, plan.tasks[1].config) == (b"", {"k": "v"})


def test_splits_under_way_are_left_out_and_the_rest_is_rationed() -> None:
    splits = Plan(splits=[Split(name) for name in "abcd"], complete=True)
    plan = to_contract(splits, 1, ["b"], 2)
    assert [work.id for work in plan.splits] == ["a", "c"]
    assert not plan.complete, "d comes in a later plan"
    assert to_contract(splits, 1, ["a", "b", "c", "d"], 2).complete


@pytest.mark.parametrize(
    ("plan", "sentence"),
    [
        (Plan(tasks=[Task(), Task()]), "2 tasks; at most 1"),
        (Plan(splits=[Split("a"), Split("a")]), "two splits 'a'"),
        (Plan(tasks=[Task(data="x" * 70_000)]), "65536 are allowed"),
        (Plan(tasks=[Task(data=object())]), "must be JSON"),
    ],
)
def test_a_plan_that_breaks_the_rules_is_told(plan: Plan, sentence: str) -> None:
    with pytest.raises(ConnectorBugError, match=sentence):
        to_contract(plan, 1, (), 0)


def test_retired_and_reached_positions_are_serialized() -> None:
    plan = to_contract(Plan(retired=[{"p": 1}], reached=[({"p": 2}, {"n": 3})]), 1, (), 0)
    assert plan.retired == (Position('{"p":1}', None),)
    assert plan.reached == (Position('{"p":2}', '{"n":3}'),)


def test_offsets_are_found_by_partition() -> None:
    offsets = Offsets([Position('{"a":1,"b":2}', '{"n":1}'), Position('{"gone":1}', None)])
    assert offsets.get({"a": 1, "b": 2}) == {"n": 1}
    assert offsets.get({"b": 2, "a": 1}) == {"n": 1}, "an operator's order of keys"
    assert offsets.get({"a": 1}) is None
    assert list(offsets) == [({"a": 1, "b": 2}, {"n": 1})]
    assert len(offsets) == 1


def test_what_was_left_out_is_asked_for() -> None:
    asked: list[str] = []

    def query(partition: str) -> Position | None:
        asked.append(partition)
        return Position(partition, '{"n":7}')

    offsets = Offsets([Position('{"p":1}', '{"n":1}')], query)
    assert (offsets.get({"p": 1}), offsets.get({"p": 2})) == ({"n": 1}, {"n": 7})
    assert asked == ['{"p":2}']
