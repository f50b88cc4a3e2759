"""Where rows were read, told to a destination where a transformation has given them another topic or partition. Pure.

Kafka Connect's sinks know both (KIP-793): marks, retries and whatever a sink keeps of its own go by the record as it
stands in Kafka, whatever it is called by now. An offset is never changed, so it has no other one.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import replace

from wherry.contract.batch import OFFSET, PARTITION, TOPIC, Batch

# Rows as they are written, and the same rows as they were read.
Piece = tuple[Batch, Batch]


def with_origins(pieces: Sequence[Piece]) -> list[Piece]:
    """Returns the pieces, those of rows that were moved cut where the topic partition changes that they were read from.

    Nothing is told of rows that weren't moved, nor of rows that weren't read from Kafka.
    """
    return [told for piece, raw in pieces for told in _told(piece, raw)]


def _told(piece: Batch, raw: Batch) -> list[Piece]:
    if not piece.num_rows or piece is raw or not _is_moved(piece, raw) or raw.column(OFFSET) is None:
        return [(piece, raw)]
    told: list[Piece] = []
    start = 0
    for (topic, partition), rows in itertools.groupby(_places(raw)):
        count = sum(1 for _ in rows)
        part, cut = (piece, raw) if count == piece.num_rows else (piece.slice(start, count), raw.slice(start, count))
        constants = replace(part.constants, original_topic=topic, original_partition=partition)
        told.append((part.with_constants(constants), cut))
        start += count
    return told


def _is_moved(piece: Batch, raw: Batch) -> bool:
    mine, read = piece.constants, raw.constants
    if all(batch.stored(name) is None for batch in (piece, raw) for name in (TOPIC, PARTITION)):
        return (mine.topic, mine.partition) != (read.topic, read.partition)
    return _places(piece) != _places(raw)


def _places(batch: Batch) -> list[tuple[str | None, int | None]]:
    """Topic and partition of each row."""
    nothing = [None] * batch.num_rows
    topics, partitions = batch.column(TOPIC), batch.column(PARTITION)
    return list(
        zip(
            nothing if topics is None else topics.to_pylist(),
            nothing if partitions is None else partitions.to_pylist(),
            strict=True,
        )
    )
