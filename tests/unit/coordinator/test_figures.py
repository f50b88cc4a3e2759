"""What leases count adds up, and is forgotten when it should be."""

from __future__ import annotations

import pytest

from wherry.control.v1 import lease_pb2
from wherry.coordinator.figures import Figures


@pytest.fixture
def used() -> list[tuple[str, int, str]]:
    return []


@pytest.fixture
def figures(used: list[tuple[str, int, str]]) -> Figures:
    figures = Figures(lambda *topic: used.append(topic))
    figures.opened("l", "c", 2, 7, "host:1")
    return figures


def report(read: int = 0, written: int = 0, **fields: object) -> lease_pb2.LeaseReport:
    counts = lease_pb2.LeaseCounts(records_read=read, records_written=written)
    return lease_pb2.LeaseReport(counts=counts, **fields)  # type: ignore[arg-type]


def test_increments_add_up(figures: Figures) -> None:
    figures.reported("l", report(read=3, written=2))
    figures.reported("l", report(read=4))
    found = figures.get("l")
    assert found is not None
    assert (found.records_read, found.records_written, found.task) == (7, 2, 2)


def test_a_lag_that_is_not_known_is_none(figures: Figures) -> None:
    figures.reported("l", report(lag=5))
    figures.reported("l", report())
    found = figures.get("l")
    assert found is not None
    assert found.lag is None


def test_topics_are_passed_on(figures: Figures, used: list[tuple[str, int, str]]) -> None:
    figures.reported("l", report(topics=["a", "b"]))
    assert used == [("c", 2, "a"), ("c", 2, "b")]


def test_topics_that_were_reset_are_told_again_once_records_move(
    figures: Figures, used: list[tuple[str, int, str]]
) -> None:
    figures.reported("l", report(read=1, topics=["b", "a"]))
    used.clear()
    figures.topics_reset("other")
    figures.reported("l", report(read=1))
    figures.topics_reset("c")
    figures.reported("l", report())
    assert used == []
    figures.reported("l", report(read=1))
    figures.reported("l", report(read=1))
    assert used == [("c", 2, "b"), ("c", 2, "a")]


def test_a_lease_that_ended_is_forgotten_but_counts_for_its_task(figures: Figures) -> None:
    figures.reported("l", report(read=3))
    figures.ended("l")
    figures.opened("m", "c", 2, 7, "host:2")
    figures.reported("m", report(read=4))
    assert figures.get("l") is None
    assert {task: (total.records_read, total.leases) for task, total in figures.totals("c").items()} == {2: (7, 2)}


def test_a_report_of_an_unknown_lease_is_ignored(figures: Figures, used: list[tuple[str, int, str]]) -> None:
    figures.reported("stranger", report(read=1, topics=["a"]))
    assert used == []


def test_a_deleted_connector_leaves_nothing(figures: Figures) -> None:
    figures.forget("c")
    assert figures.get("l") is None
    assert figures.totals("c") == {}


def test_what_failed_adds_up_over_the_leases_of_a_task_and_the_last_time_stays(figures: Figures) -> None:
    counts = lease_pb2.LeaseCounts(
        failures=3, errors=2, skipped=2, retries=1, logged=2, dead_letters=1, dead_letter_failures=1, last_error_ms=50
    )
    figures.reported("l", lease_pb2.LeaseReport(counts=counts))
    figures.opened("m", "c", 2, 8, "host:1")
    figures.reported("m", lease_pb2.LeaseReport(counts=counts))
    figures.reported("m", report(read=1))
    found = figures.totals("c")[2]
    assert (found.failures, found.errors, found.skipped, found.retries) == (6, 4, 4, 2)
    assert (found.logged, found.dead_letters, found.dead_letter_failures, found.last_error_ms) == (4, 2, 2, 50)
