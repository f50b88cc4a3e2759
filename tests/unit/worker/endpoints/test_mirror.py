"""Which rows of a mirror have the place of their copy told."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

from wherry.contract.kafka_clients import ClientConfig
from wherry.contract.mirror import OffsetSync
from wherry.contract.position import TopicPartition
from wherry.worker.endpoints.mirror import MirrorWriter, SyncRule

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
        ([list(range(250)), list(range(250, 301))], [0, 100, 200, 300]),
        ([list(range(0, 500, 2))], [0, 100, 200, 300, 400, 498]),
    ],
)
def test_the_first_row_those_behind_gaps_and_one_every_so_often(batches: list[list[int]], expected: list[int]) -> None:
    assert told(SyncRule(100), *batches) == expected


def test_partitions_are_followed_apart() -> None:
    rule = SyncRule(100)
    rule.rows(PLACE, np.array([0, 1]))
    assert rule.rows(TopicPartition("t", 1), np.array([2, 3])) == {0}


class Syncs:
    """Remembers what is told."""

    def __init__(self) -> None:
        self.told: list[OffsetSync] = []

    def tell(self, sync: OffsetSync) -> None:
        self.told.append(sync)

    def poll(self) -> None:
        return

    def close(self) -> None:
        return


@dataclass
class Message:
    """A record that the broker has taken."""

    at: int

    def partition(self) -> int:
        return 0

    def offset(self) -> int:
        return self.at


def writer(syncs: Any, *, at_flush: bool) -> MirrorWriter:
    client = ClientConfig({"bootstrap.servers": "127.0.0.1:1", "client.id": "c"})
    return MirrorWriter(client, {"A.t": "t"}, SyncRule(100), syncs, at_flush=at_flush)


def test_a_place_is_told_when_the_broker_has_it_and_the_last_one_at_a_flush() -> None:
    syncs = Syncs()
    this = writer(syncs, at_flush=False)
    this._acknowledged("t", 5, True, None, Message(9))
    assert syncs.told == [OffsetSync("t", 0, 5, 9)]
    this._acknowledged("t", 6, False, None, Message(10))
    assert len(syncs.told) == 1
    this.flush(lambda: 1.0)
    assert syncs.told[1:] == [OffsetSync("t", 0, 6, 10)]
    this.close()


def test_within_a_transaction_places_are_told_after_its_commit_and_those_rolled_back_never() -> None:
    syncs = Syncs()
    this = writer(syncs, at_flush=True)
    this._acknowledged("t", 5, True, None, Message(9))
    this.forget()
    this.flush(lambda: 1.0)
    assert syncs.told == []
    this._acknowledged("t", 5, True, None, Message(12))
    assert syncs.told == []
    this.flush(lambda: 1.0)
    assert syncs.told == [OffsetSync("t", 0, 5, 12)]
    this.close()
