"""The orders that Java's collections give; the expected ones were taken from a JVM."""

from __future__ import annotations

import pytest

from wherry.contract.java import in_map_order, string_hash


@pytest.mark.parametrize(
    ("text", "expected"),
    [("", 0), ("a", 97), ("Aa", 2112), ("BB", 2112), ("polygenelubricants", 0x80000000)],
)
def test_texts_hash_as_in_java(text: str, expected: int) -> None:
    assert string_hash(text) == expected


@pytest.mark.parametrize(
    ("keys", "walked"),
    [
        ([], []),
        (["y", "x"], ["x", "y"]),
        (["zebra", "apple", "Mango"], ["zebra", "apple", "Mango"]),
        (
            ["id", "name", "created_at", "amount", "\u20ac", "\U0001f600", "Aa", "BB"],
            ["Aa", "BB", "amount", "name", "\U0001f600", "created_at", "id", "\u20ac"],
        ),
    ],
)
def test_keys_are_walked_as_a_hash_map_walks_them(keys: list[str], walked: list[str]) -> None:
    assert in_map_order(keys) == walked


def test_a_key_that_comes_twice_keeps_its_first_place() -> None:
    assert in_map_order(["BB", "Aa", "BB"]) == ["BB", "Aa"]


def test_a_map_that_grows_spreads_its_keys_anew() -> None:
    keys = [chr(ord("a") + index) for index in range(26)]
    # 26 keys need 64 slots, in which the code points of letters keep their order; in 16 slots they would mix.
    assert in_map_order(reversed(keys)) == keys
