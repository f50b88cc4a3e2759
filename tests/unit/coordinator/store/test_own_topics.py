"""Offsets in a connector's own topic and in the worker's store: which of the two is told first."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from wherry.contract.position import Position
from wherry.coordinator.store.own_topics import OwnTopicOffsets

WORKER = {"bootstrap.servers": "here:9092", "offset.storage.topic": "offsets"}
KEPT, FORGOTTEN = Position('{"p":0}', '{"n":1}'), Position('{"p":1}', None)


class Writes:
    """Both places, and what was written to them in order."""

    def __init__(self) -> None:
        self.done: list[tuple[str, list[Position]]] = []

    def write(self, connector: str, positions: Sequence[Position]) -> None:
        self.done.append(("inner", list(positions)))

    def to_own(self, settings: Any, topic: str, connector: str, positions: Sequence[Position]) -> None:
        self.done.append((topic, list(positions)))


@pytest.fixture
def writes() -> Writes:
    return Writes()


def store_of(writes: Writes, monkeypatch: pytest.MonkeyPatch, **config: str) -> OwnTopicOffsets:
    given = {key.replace("_", "."): value for key, value in config.items()}
    store = OwnTopicOffsets(writes, WORKER, lambda name: given)  # type: ignore[arg-type]
    monkeypatch.setattr(store, "_write", writes.to_own)
    return store


@pytest.mark.parametrize(
    ("positions", "expected"),
    [
        ([KEPT, FORGOTTEN], [("inner", [FORGOTTEN]), ("own", [KEPT, FORGOTTEN]), ("inner", [KEPT])]),
        ([KEPT], [("own", [KEPT]), ("inner", [KEPT])]),
        ([FORGOTTEN], [("inner", [FORGOTTEN]), ("own", [FORGOTTEN])]),
    ],
)
def test_what_is_forgotten_is_first_forgotten_where_gaps_are_filled_from(
    writes: Writes,
    monkeypatch: pytest.MonkeyPatch,
    positions: list[Position],
    expected: list[tuple[str, list[Position]]],
) -> None:
    store_of(writes, monkeypatch, offsets_storage_topic="own").write("c", positions)
    assert writes.done == expected


def test_without_a_topic_of_its_own_all_is_written_at_once(writes: Writes, monkeypatch: pytest.MonkeyPatch) -> None:
    store_of(writes, monkeypatch).write("c", [KEPT, FORGOTTEN])
    assert writes.done == [("inner", [KEPT, FORGOTTEN])]


@pytest.mark.parametrize(
    ("config", "expected"),
    [
        ({}, ""),
        ({"offsets_storage_topic": "offsets"}, ""),
        ({"offsets_storage_topic": "own"}, "own"),
        ({"producer_override_bootstrap_servers": "there:9092"}, "offsets"),
    ],
)
def test_the_workers_topic_is_ones_own_only_on_another_cluster(
    writes: Writes, monkeypatch: pytest.MonkeyPatch, config: dict[str, str], expected: str
) -> None:
    given = {key.replace("_", "."): value for key, value in config.items()}
    assert store_of(writes, monkeypatch).own_topic(given) == expected
