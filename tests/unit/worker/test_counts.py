"""What a lease counts."""

from __future__ import annotations

import pytest

from wherry.worker.counts import LATENCY_BUCKETS, Counts


def test_taking_counts_leaves_zeros_behind_and_shares_nothing() -> None:
    counts = Counts(records_read=3)
    counts.latency(0, 3)
    taken = counts.take()
    counts.latency(0, 1)
    assert (taken.records_read, taken.latency_buckets[0]) == (3, 3)
    assert (counts.records_read, counts.latency_buckets[0]) == (0, 1)


@pytest.mark.parametrize(
    ("milliseconds", "bucket"), [(-5, 0), (0, 0), (1, 1), (2, 2), (3, 2), (4, 3), (1 << 40, LATENCY_BUCKETS - 1)]
)
def test_latencies_fall_into_powers_of_two(milliseconds: int, bucket: int) -> None:
    counts = Counts()
    counts.latency(milliseconds, 7)
    assert counts.latency_buckets[bucket] == 7
    assert sum(counts.latency_buckets) == 7
