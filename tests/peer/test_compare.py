"""A comparison that finds nothing proves nothing: here it has to find."""

from __future__ import annotations

from typing import Any

from tests.peer.compare import Accepted, Difference, differences, unwanted
from tests.support.rest import Answer


def answer(body: Any, status: int = 200, **headers: str) -> Answer:
    return Answer(status, body, headers)


def test_equal_answers_do_not_differ() -> None:
    assert differences(answer({"a": [1, None]}), answer({"a": [1, None]})) == []


def test_status_header_and_nested_fields_are_compared() -> None:
    found = differences(answer({"a": [{"b": 1}]}, Location="x"), answer({"a": [{"b": 2}]}, 404))
    assert [difference.field for difference in found] == ["status", "Location", "body.a[0].b"]


def test_a_field_that_is_null_differs_from_one_that_is_missing() -> None:
    assert differences(answer({"a": None}), answer({})) == [Difference("body.a", None, "(missing)")]


def test_a_number_differs_from_its_text_and_true_from_one() -> None:
    assert len(differences(answer(["1", True]), answer([1, 1]))) == 2


def test_lists_of_other_length_differ_as_a_whole() -> None:
    assert differences(answer([1]), answer([1, 2])) == [Difference("body", [1], [1, 2])]


def test_only_the_accepted_field_of_the_accepted_step_is_accepted() -> None:
    accepted = [Accepted("step one", r"body\.a.*", "because")]
    wanted, other = Difference("body.ab", 1, 2), Difference("body.b", 1, 2)
    assert unwanted("step one", [wanted, other], accepted) == [other]
    assert unwanted("step two", [wanted], accepted) == [wanted]
