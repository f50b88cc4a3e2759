"""Which rows of a mirror have the place of their copy told."""

from __future__ import annotations

import numpy as np
import pytest

from wherry.contract.position import TopicPartition
from wherry.worker.endpoints.mirror import SyncRule

PLACE = TopicPartition("t", 0)


def told(rule: SyncRule, *batches: list[int]) -> list[int]:
    """Offsets told of."""
    return [batch[row] for batch in batches for row in sorted(rule.rows(PLACE, np.array(batch)))]


@pytest.mark.parametrize(
    ("batches", "expected"),
    [
        ([[0, 1, 2]], [0]),
        ([[0, 1, 2], [3, 4]], [0]),
        ([[0, 1], [5, 6]], [0, 5]),
        ([[0, 2, 3, 9, 10]], [0, 9]),
        ([list(range(101))], [0, 100]),
        ([list(range(100)), [100], [101]], [0, 100]),
        ([list(range(250)), list(range(250, 300))], [0, 249]),
    ],
)
def test_the_first_row_those_behind_gaps_and_one_every_so_often(batches: list[list[int]], expected: list[int]) -> None:
    assert told(SyncRule(100), *batches) == expected


def test_partitions_are_followed_apart() -> None:
    rule = SyncRule(100)
    rule.rows(PLACE, np.array([0, 1]))
    assert rule.rows(TopicPartition("t", 1), np.array([2, 3])) == {0}
