"""Where transactions end: only behind a mark, and when the connector's choice says so."""

from __future__ import annotations

import pyarrow as pa
import pytest

from wherry.contract.batch import Batch, Mark, mark_only, of_value
from wherry.contract.position import Position
from wherry.worker.boundaries import JOIN_BYTES, JOIN_COMMITS, JOIN_MAX_S, JOIN_S, Boundaries, Boundary


def batch_of(rows: int, *marks: int, size: int = 1) -> Batch:
    values = pa.array([b"x" * size] * rows, pa.binary())
    return of_value(values, marks=[Mark(mark, Position("{}", f'{{"n":{mark}}}')) for mark in marks])


def cuts(boundaries: Boundaries, batch: Batch) -> list[tuple[int, tuple[int, ...], bool]]:
    """Rows, marks and whether it closes, of each piece."""
    return [
        (piece.batch.num_rows, tuple(mark.row_count for mark in piece.batch.marks), piece.closes)
        for piece in boundaries.pieces(batch)
    ]


def put(boundaries: Boundaries, batch: Batch, now: float) -> None:
    for piece in boundaries.pieces(batch):
        boundaries.wrote(piece, now)


@pytest.mark.parametrize(
    ("boundary", "marks", "expected"),
    [
        (Boundary.POLL, (5,), [(5, (5,), True)]),
        (Boundary.POLL, (2, 5), [(5, (2, 5), True)]),
        (Boundary.POLL, (), [(5, (), False)]),
        (Boundary.POLL, (3,), [(3, (3,), True), (2, (), False)]),
        (Boundary.INTERVAL, (1, 3), [(3, (1, 3), True), (2, (), False)]),
        (Boundary.POLL, (0,), [(0, (0,), True), (5, (), False)]),
        (Boundary.CONNECTOR, (2, 5), [(2, (2,), True), (3, (3,), True)]),
        (Boundary.CONNECTOR, (2, 2, 4), [(2, (2, 2), True), (2, (2,), True), (1, (), False)]),
        (Boundary.CONNECTOR, (0, 5), [(0, (0,), True), (5, (5,), True)]),
    ],
)
def test_a_batch_is_cut_behind_marks(
    boundary: Boundary, marks: tuple[int, ...], expected: list[tuple[int, tuple[int, ...], bool]]
) -> None:
    assert cuts(Boundaries(boundary, 60.0), batch_of(5, *marks)) == expected


def test_rows_and_their_order_survive_every_cut() -> None:
    values = pa.array([str(number).encode() for number in range(20)], pa.binary())
    marks = [Mark(row, Position("{}", f'{{"n":{row}}}')) for row in (0, 3, 3, 9, 17)]
    pieces = Boundaries(Boundary.CONNECTOR, 1.0).pieces(of_value(values, marks=marks))
    assert [value for piece in pieces for value in piece.batch.value.to_pylist()] == values.to_pylist()
    assert [mark.position for piece in pieces for mark in piece.batch.marks] == [mark.position for mark in marks]


def test_the_first_transaction_ends_with_its_first_rows() -> None:
    boundaries = Boundaries(Boundary.POLL, 60.0)
    put(boundaries, mark_only(Position("{}", "{}")), 0.0)
    assert not boundaries.due(0.0)
    put(boundaries, batch_of(3, 3), 0.0)
    assert boundaries.due(0.0)
    boundaries.ended(0.0)
    put(boundaries, batch_of(3, 3), 0.0)
    assert not boundaries.due(0.0)


def test_a_poll_ends_the_transaction_when_nothing_more_is_at_hand() -> None:
    boundaries = Boundaries(Boundary.POLL, 60.0)
    boundaries.ended(0.0)
    assert not boundaries.hurries
    put(boundaries, batch_of(3, 3), 0.0)
    assert boundaries.hurries
    assert not boundaries.due(0.0)
    boundaries.ended(0.0)
    assert not boundaries.hurries
    assert not boundaries.dirty


@pytest.mark.parametrize(("size", "now"), [(1, JOIN_S), (JOIN_BYTES // 3 + 1, 0.0)])
def test_under_load_polls_share_a_transaction_up_to_a_bound(size: int, now: float) -> None:
    boundaries = Boundaries(Boundary.POLL, 60.0)
    boundaries.ended(0.0)
    put(boundaries, batch_of(3, 3, size=size), 0.0)
    assert boundaries.due(now)


@pytest.mark.parametrize(
    ("took_s", "length_s"),
    [(0.0, JOIN_S), (JOIN_S / 50, JOIN_S), (0.02, 0.02 * JOIN_COMMITS), (3.0, JOIN_MAX_S)],
)
def test_the_longer_commits_take_the_fewer_there_are(took_s: float, length_s: float) -> None:
    boundaries = Boundaries(Boundary.POLL, 60.0)
    boundaries.ended(0.0, took_s)
    put(boundaries, batch_of(3, 3), 10.0)
    assert not boundaries.due(10.0 + length_s - 0.001)
    assert boundaries.due(10.0 + length_s + 0.001)


def test_no_transaction_ends_behind_rows_without_a_mark() -> None:
    for boundary in Boundary:
        boundaries = Boundaries(boundary, 1.0)
        put(boundaries, batch_of(3), 0.0)
        assert not boundaries.clean
        assert not boundaries.due(1e9)
        assert not boundaries.hurries
        put(boundaries, mark_only(Position("{}", "{}")), 1.0)
        assert boundaries.clean
        assert boundaries.due(1e9)


def test_an_interval_is_kept_even_when_the_source_rests() -> None:
    boundaries = Boundaries(Boundary.INTERVAL, 10.0)
    put(boundaries, batch_of(3, 3), 0.0)
    assert not boundaries.due(9.9)
    assert boundaries.due(10.0)


def test_a_connectors_mark_ends_a_transaction_at_once() -> None:
    boundaries = Boundaries(Boundary.CONNECTOR, 60.0)
    first, rest = boundaries.pieces(batch_of(5, 2))
    boundaries.wrote(first, 0.0)
    assert boundaries.due(0.0)
    boundaries.ended(0.0)
    boundaries.wrote(rest, 0.0)
    assert not boundaries.due(1e9)


@pytest.mark.parametrize("boundary", [Boundary.POLL, Boundary.CONNECTOR])
def test_positions_that_move_without_rows_wait_a_moment(boundary: Boundary) -> None:
    boundaries = Boundaries(boundary, 60.0)
    put(boundaries, mark_only(Position("{}", "{}")), 0.0)
    assert boundaries.dirty
    assert not boundaries.hurries
    assert not boundaries.due(0.1)
    assert boundaries.due(1.0)
