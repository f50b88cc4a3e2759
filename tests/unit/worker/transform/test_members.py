"""The members that objects have are learned from some of them, in an order that all of these have."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

from wherry.contract.batch import JSON_TYPE
from wherry.worker.transform.members import MEMBERS_MAX, Members


def learned(*values: Any) -> dict[str, pa.DataType]:
    members = Members()
    for value in values:
        members.learn(value)
    return {field.name: field.type for field in members.fields()}


@pytest.mark.parametrize(
    ("values", "names"),
    [
        ([{"a": 1, "c": 1}, {"a": 1, "b": 1, "c": 1}], "abc"),
        ([{"a": 1}, {"b": 1}], "ba"),
        ([{"c": 1}, {"a": 1, "b": 1, "c": 1, "d": 1}], "abcd"),
        ([{"a": 1, "b": 1}, {"b": 1, "a": 1, "c": 1}], "ab"),
        ([{"a": 1}, [1], None, "x", {'"': 1}], "a"),
    ],
    ids=["between", "apart", "around", "another order", "no objects"],
)
def test_members_keep_the_order_they_come_in(values: list[Any], names: str) -> None:
    assert list(learned(*values)) == list(names)


def test_members_are_of_the_kind_of_all_their_values_or_kept_as_text() -> None:
    found = learned(
        {"i": 1, "f": 1.5, "t": "x", "b": True, "n": None, "m": None}, {"i": 2.5, "m": 3}, {"f": {}, "t": []}
    )
    assert list(found.values()) == [JSON_TYPE, JSON_TYPE, JSON_TYPE, pa.bool_(), pa.string(), pa.int64()]


def test_no_more_members_are_learned_than_are_worth_it() -> None:
    members = Members()
    assert members.learn({f"m{place}": 1 for place in range(MEMBERS_MAX)})
    assert not members.learn({"another": 1})
    assert len(members.fields()) == MEMBERS_MAX


def test_what_is_known_already_is_nothing_new() -> None:
    members = Members()
    assert not members
    assert members.learn({})
    assert members
    assert not members.learn({})
    assert members.learn({"a": None})
    assert members.learn({"a": 1})
    assert not members.learn({"a": None})
