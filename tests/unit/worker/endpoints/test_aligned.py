"""Rows wait for the mark that covers them, unless none will come."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

from wherry.contract.batch import Batch, Mark, mark_only, of_value
from wherry.contract.position import Position
from wherry.worker.endpoints import aligned
from wherry.worker.endpoints.aligned import AlignedReader


class Source:
    """Gives what it was given; caught up when that is over."""

    def __init__(self, *batches: Batch | None) -> None:
        self.batches = list(batches)
        self.finished = False

    @property
    def caught_up(self) -> bool:
        return not self.batches

    def poll(self, timeout_s: float) -> Batch | None:
        return self.batches.pop(0) if self.batches else None


def batch_of(text: str, *marks: int) -> Batch:
    """A batch of one-letter rows, with marks behind so many of them."""
    values = pa.array([letter.encode() for letter in text], pa.binary())
    return of_value(values, marks=[Mark(mark, Position("{}", f'{{"n":{mark}}}')) for mark in marks])


def read(*batches: Batch | None) -> list[tuple[str, list[int]]]:
    """Rows and marks of what comes out, until nothing does and the reader is caught up."""
    source: Any = Source(*batches)
    reader = AlignedReader(source)
    out = []
    for _ in range(20):
        batch = reader.poll(0.0)
        if batch is not None:
            out.append((b"".join(batch.value.to_pylist()).decode(), [mark.row_count for mark in batch.marks]))
    assert reader.caught_up
    return out


@pytest.mark.parametrize(
    ("batches", "expected"),
    [
        ([batch_of("abc", 3)], [("abc", [3])]),
        ([batch_of("abc", 1, 3)], [("abc", [1, 3])]),
        ([batch_of("ab"), batch_of("cd", 2)], [("abcd", [4])]),
        ([batch_of("abc", 1), batch_of("de", 2)], [("a", [1]), ("bcde", [4])]),
        ([batch_of("ab"), None, batch_of("c", 1)], [("abc", [3])]),
        ([batch_of("a", 1), batch_of("bc")], [("a", [1]), ("bc", [])]),
    ],
)
def test_batches_end_where_a_position_stands(
    batches: list[Batch | None], expected: list[tuple[str, list[int]]]
) -> None:
    assert read(*batches) == expected


def test_a_mark_without_rows_covers_those_before_it() -> None:
    source: Any = Source(batch_of("ab"), mark_only(Position("{}", '{"n":2}')))
    reader = AlignedReader(source)
    assert reader.poll(0.0) is None
    batch = reader.poll(0.0)
    assert batch is not None
    assert (batch.num_rows, batch.marks) == (2, (Mark(2, Position("{}", '{"n":2}')),))


def test_more_than_can_be_held_goes_on_without_its_mark(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(aligned, "HELD_BYTES_MAX", 300)
    assert read(batch_of("a" * 40), batch_of("b" * 40), batch_of("c", 1)) == [("a" * 40 + "b" * 40, []), ("c", [1])]


def test_rows_of_different_schemas_keep_their_order() -> None:
    texts = of_value(pa.array(["x"]))
    source: Any = Source(texts, batch_of("y", 1))
    reader = AlignedReader(source)
    reader.poll(0.0)
    first, second = reader.poll(0.0), reader.poll(0.0)
    assert first is not None
    assert second is not None
    assert (first.value.to_pylist(), second.value.to_pylist()) == (["x"], [b"y"])
