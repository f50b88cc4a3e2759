"""Starting side by side: bounded, in turn, and never for the sake of one that hangs."""

from __future__ import annotations

from wherry.coordinator.starts import PLACE_HELD_MS_MAX, Starts


def test_places_are_taken_by_starts_and_given_back_when_they_are_done() -> None:
    starts = Starts(2)
    starts.begin("a", 0)
    starts.begin("b", 0)
    assert starts.free == 0
    starts.done("a")
    starts.done("a")
    starts.done("stranger")
    assert starts.free == 1


def test_each_machine_has_places_of_its_own() -> None:
    starts = Starts(2, machines=3)
    for lease in "abcde":
        starts.begin(lease, 0)
    assert starts.free == 1
    starts.machines = 0  # leases run beside the driver
    assert starts.free == 0


def test_one_that_hangs_loses_its_place() -> None:
    starts = Starts(1)
    starts.begin("hangs", 0)
    starts.block("next")
    assert starts.due_ms() == PLACE_HELD_MS_MAX
    starts.expire(PLACE_HELD_MS_MAX - 1)
    assert starts.next_connector() is None
    starts.expire(PLACE_HELD_MS_MAX)
    assert starts.next_connector() == "next"


def test_nothing_is_due_while_nobody_waits() -> None:
    starts = Starts(1)
    starts.begin("a", 0)
    assert starts.due_ms() is None


def test_connectors_go_on_in_the_order_in_which_they_came() -> None:
    starts = Starts(1)
    starts.begin("a", 0)
    for connector in ("first", "second", "first"):
        starts.block(connector)
    assert starts.next_connector() is None
    starts.done("a")
    assert [starts.next_connector() for _ in range(3)] == ["first", "second", None]


def test_it_is_contended_as_long_as_somebody_waits() -> None:
    starts = Starts(1)
    starts.begin("a", 0)
    assert not starts.contended
    starts.block("next")
    assert starts.contended
    starts.done("a")
    assert starts.next_connector() == "next"
    assert not starts.contended
