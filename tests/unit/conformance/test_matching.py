"""Comparison of answers with expectations."""

from __future__ import annotations

import pytest

from wherry.conformance.failure import Failure
from wherry.conformance.matching import expect_match


def test_members_that_are_not_mentioned_are_free() -> None:
    expect_match({"a": {"b": 1, "c": 2}, "d": [{"e": 1}]}, {"a": {"b": 1}, "d": [{}]}, "answer")


def test_long_integers_may_be_texts() -> None:
    expect_match({"seq": "8002"}, {"seq": 8002}, "answer")


@pytest.mark.parametrize(
    ("found", "sentence"),
    [
        ({"a": {"b": 2}}, "answer.a.b is 2; it should be 1"),
        ({}, "answer.a is None; it should have b"),
        (None, "answer is None"),
    ],
)
def test_a_difference_is_told_with_its_place(found: object, sentence: str) -> None:
    with pytest.raises(Failure, match=sentence):
        expect_match(found, {"a": {"b": 1}}, "answer")


def test_lists_have_equal_length() -> None:
    with pytest.raises(Failure, match="should have 1 members"):
        expect_match([1, 2], [1], "answer")
