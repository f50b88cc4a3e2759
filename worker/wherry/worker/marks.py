"""Marks for the pieces of a batch that was cut. Pure.

A destination that stores positions with its rows may make every frame durable by itself. When a batch is cut, because
schemas change in it or because it is too large for one message, only the last piece has the mark of the whole; the rows
before it would be stored without a position, and come again after a crash. Rows read from Kafka say themselves where
they stood, so each piece gets a mark of its own, in the coordinates the rows were read at, whatever topic they go by
since.
"""

from __future__ import annotations

from collections.abc import Sequence

from wherry.contract.batch import OFFSET, PARTITION, TOPIC, Batch, Mark
from wherry.contract.position import kafka_position

# Rows as they are written, and the same rows as they were read.
Piece = tuple[Batch, Batch]
# Topic, partition and offset that a row was read at.
_Place = tuple[str, int, int]


def with_own_marks(pieces: Sequence[Piece]) -> list[Piece]:
    """Returns the pieces of one batch, each with marks up to its end.

    Nothing is added to rows that weren't read from Kafka, nor to a batch without marks: its rows move no position.
    """
    if len(pieces) < 2 or not any(piece.marks for piece, _ in pieces):
        return list(pieces)
    marked: list[Piece] = []
    following: _Place | None = None
    for piece, raw in reversed(pieces):
        marked.append((_with_marks(piece, raw, following), raw))
        following = _place(raw, 0) or following
    return marked[::-1]


def _with_marks(piece: Batch, raw: Batch, following: _Place | None) -> Batch:
    known = {mark.position.partition for mark in piece.marks if mark.row_count == piece.num_rows}
    own = []
    for row in _last_rows(raw):
        place = _place(raw, row)
        if place is None:
            return piece
        topic, partition, offset = place
        # Several rows may come of one record; it is done only after the last of them.
        position = kafka_position(topic, partition, offset if place == following else offset + 1)
        if position.partition not in known:
            own.append(Mark(row + 1, position))
    if not own:
        return piece
    return piece.with_marks(*sorted((*piece.marks, *own), key=lambda mark: mark.row_count))


def _last_rows(raw: Batch) -> list[int]:
    """Returns the last row of each partition, in order."""
    if not raw.num_rows:
        return []
    columns = [column for column in (raw.stored(TOPIC), raw.stored(PARTITION)) if column is not None]
    if not columns:
        return [raw.num_rows - 1]
    last = {key: row for row, key in enumerate(zip(*(column.to_pylist() for column in columns), strict=True))}
    return sorted(last.values())


def _place(raw: Batch, row: int) -> _Place | None:
    """Returns where a row was read; None when that was not in Kafka."""
    if row >= raw.num_rows:
        return None
    constants = raw.constants
    if constants.topic is not None and constants.partition is not None and constants.first_offset is not None:
        return constants.topic, constants.partition, constants.first_offset + row
    one = raw.slice(row, 1)
    found = [one.column(name) for name in (TOPIC, PARTITION, OFFSET)]
    if any(column is None or not column[0].is_valid for column in found):
        return None
    topic, partition, offset = (column[0].as_py() for column in found if column is not None)
    return topic, partition, offset
