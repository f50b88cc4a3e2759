"""Walks are drawn alike each time, and what is accepted of them is no more than its reason says."""

from __future__ import annotations

from typing import Any

import pytest
from tests.peer.compare import Difference
from tests.peer.walks.accepted import plain, reason_for
from tests.peer.walks.draw import Walk, told, walks
from tests.support.rest import Answer


def names(walk: Walk) -> list[str]:
    return [told(move) for move in walk.moves]


def test_a_walk_is_drawn_from_its_seed_and_number_alone() -> None:
    one, *_, five = walks(3, 5)
    (again,) = walks(3, 1, first=4, tag="again")
    assert names(again) == names(five)
    assert {place.name for place in again.places}.isdisjoint(place.name for place in five.places)
    assert names(one) != names(next(walks(4, 1)))


def test_a_walk_has_as_many_steps_as_are_asked_for() -> None:
    assert {len(walk.moves) for walk in walks(1, 20, steps=5)} == {5}
    assert {8, 15} <= {len(walk.moves) for walk in walks(1, 100)} <= set(range(8, 16))


@pytest.mark.parametrize(
    ("step", "lived", "field", "connect", "wherry", "accepted"),
    [
        ("resume source", ["alter source: to 500"], "body.a.offsets[0].offset.position", 500, 24, True),
        ("resume source", ["alter source: to 8"], "body.a.offsets[0].offset.position", 500, 24, False),
        ("put sink: plain", [], "body.a.status.tasks[1].state", "FAILED", "RUNNING", True),
        ("put sink: plain", [], "body.a.status.tasks[0].state", "FAILED", "RUNNING", False),
        ("put source: plain", [], "body.a.status.tasks[1].state", "FAILED", "RUNNING", False),
        ("put sink: plain", [], "body.a.status.tasks[1].state", "RUNNING", "FAILED", False),
        ("put sink: plain", [], "body.a.status.tasks[0].version", None, "4.3.1", True),
        ("put sink: plain", [], "body.a.status.tasks[0].version", "4.3.1", None, False),
    ],
)
def test_what_is_shown_may_differ_for_a_reason_only(
    step: str, lived: list[str], field: str, connect: Any, wherry: Any, accepted: bool
) -> None:
    assert (reason_for(step, Difference(field, connect, wherry), lived, shown=True) is not None) == accepted


def test_what_is_wrong_in_a_regex_is_told_by_each_in_its_way() -> None:
    def message(text: str) -> Any:
        return plain(Answer(400, {"message": f"1 error(s):\nInvalid regex: {text}\nYou can also"}, {})).body

    assert message("Unclosed group near index 3\nt(a") == message("there is none")
    assert message("x") != plain(Answer(400, {"message": "1 error(s):\nInvalid regex: x\nOther"}, {})).body
