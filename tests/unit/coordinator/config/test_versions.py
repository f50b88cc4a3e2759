"""Versions asked for: Maven's ranges, a bare version being exact."""

from __future__ import annotations

import pytest

from wherry.coordinator.config.versions import VersionRange, VersionRangeError, not_found


def holds(text: str, version: str) -> bool:
    wanted = VersionRange.parse(text)
    assert wanted is not None
    return wanted.holds(version)


@pytest.mark.parametrize(
    ("text", "inside", "outside"),
    [
        ("1.0", "1.0", "1.0.1"),
        ("1.0", "1", "2"),
        ("[1.0]", "1.0.0", "1.1"),
        ("[1,2)", "1.9.9", "2.0"),
        ("(1,2]", "2.0", "1"),
        ("[1,)", "99", "0.9"),
        ("(,2)", "0.1", "2"),
        ("[1,2),[3,4]", "3.5", "2.5"),
        ("[1,2)", "2.0-SNAPSHOT", "2"),
        ("[1.10,)", "1.10", "1.9"),
    ],
)
def test_a_range_holds_what_lies_in_it(text: str, inside: str, outside: str) -> None:
    assert (holds(text, inside), holds(text, outside)) == (True, False)


def test_the_latest_is_any() -> None:
    assert VersionRange.parse("latest") is None


def test_an_empty_version_is_none_that_is_installed() -> None:
    assert not holds("", "1.0")


@pytest.mark.parametrize("text", ["[1", "[1,2", "(,", "[1,2)x"])
def test_a_range_without_end_is_refused(text: str) -> None:
    with pytest.raises(VersionRangeError, match="Unbounded range"):
        VersionRange.parse(text)


@pytest.mark.parametrize(("text", "shown"), [("9.9", "[9.9,9.9]"), ("[9,10)", "[9,10)"), ("", "[,]")])
def test_the_sentence_shows_the_range_in_full(text: str, shown: str) -> None:
    wanted = VersionRange.parse(text)
    assert wanted is not None
    assert not_found("a.B", wanted, "1", "1") == (
        f"Plugin a.B not found that matches the version range {shown}, available versions: [1, 1]"
    )
