"""Sinks that get in one another's way are pointed out, and others are not."""

from __future__ import annotations

import pytest

from wherry.coordinator.overlaps import PAIRS_MAX, Sink, overlaps

KEYS = frozenset({"file", "connection.url", "table.name.format", "batch.size", "connection.user"})


def sink(name: str, plugin: str = "files", **config: str) -> Sink:
    given = {"topics": "a,b", "file": "/out", **{key.replace("__", "."): value for key, value in config.items()}}
    return Sink(name, plugin, {key: value for key, value in given.items() if value}, KEYS)


def test_two_sinks_of_one_topic_and_one_target_are_pointed_out_by_name() -> None:
    [found] = overlaps([sink("x"), sink("y", topics="b, c", batch__size="9", connection__user="other")])
    assert found.connectors == ("x", "y")
    assert found.message == "x and y write the same topics (b) into one target (by file): every record comes twice."


@pytest.mark.parametrize(
    "other",
    [
        sink("y", file="/other"),
        sink("y", topics="c"),
        sink("y", plugin="jdbc"),
        sink("y", table__name__format="t"),
        sink("y", topics="", topics__regex="c.*"),
        sink("y", topics="", topics__regex="("),
    ],
    ids=["another target", "other topics", "another plugin", "another table", "a pattern beside", "a broken pattern"],
)
def test_sinks_that_do_not_meet_are_left_alone(other: Sink) -> None:
    assert overlaps([sink("x"), other]) == []


def test_patterns_meet_names_and_themselves() -> None:
    pattern = sink("p", topics="", topics__regex="a|z")
    [found] = overlaps([sink("x"), pattern])
    assert "(a)" in found.message
    [found] = overlaps([pattern, sink("q", topics="", topics__regex="a|z")])
    assert "(a|z)" in found.message


def test_sinks_that_do_not_say_where_they_write_are_left_alone() -> None:
    assert overlaps([sink("x", file=""), sink("y", file="")]) == []


def test_one_group_for_two_sinks_is_pointed_out_whatever_they_write() -> None:
    one = sink("x", plugin="jdbc", topics="q", consumer__override__group__id="connect-y")
    [found] = overlaps([one, sink("y")])
    assert "both commit to the consumer group connect-y" in found.message


def test_one_connector_can_be_asked_about() -> None:
    three = [sink("x"), sink("y"), sink("z")]
    assert [found.connectors for found in overlaps(three, "z")] == [("z", "x"), ("z", "y")]
    assert overlaps(three, "gone") == []


def test_there_is_an_end_to_it() -> None:
    assert len(overlaps([sink(str(number)) for number in range(60)])) == PAIRS_MAX
