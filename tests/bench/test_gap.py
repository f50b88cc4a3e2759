"""What counts as a gap."""

from __future__ import annotations

import pytest
from tests.bench.flows.gap import gaps_ms
from tests.bench.processes import BenchError

MS = 1_000_000


def arrivals(*pairs: tuple[int, int]) -> list[tuple[int, bytes]]:
    """(sent, arrived) in ms."""
    return [(arrived * MS, f"{sent * MS} x".encode()) for sent, arrived in pairs]


def test_records_that_arrive_at_their_pace_leave_no_gap() -> None:
    assert gaps_ms(arrivals((0, 5), (40, 45), (80, 85)), 0, 100 * MS) == [0, 0]


def test_a_pause_is_a_gap_and_the_harnesss_own_pause_is_none() -> None:
    assert gaps_ms(arrivals((0, 5), (40, 345), (1000, 1005)), 0, 2000 * MS) == [300, 0]


def test_what_arrives_outside_the_time_does_not_count() -> None:
    assert gaps_ms(arrivals((0, 5), (40, 345), (80, 385)), 350 * MS, 400 * MS) == [0]


def test_no_record_at_all_is_an_error_and_not_a_good_figure() -> None:
    with pytest.raises(BenchError, match="No record arrived"):
        gaps_ms([], 0, MS)
