"""Holds rows back until the source says which position they lead to.

A transactional sink stores positions with the rows of a batch. Rows behind the last mark of a batch would be stored
without a position, and come again after a crash; so they wait for the batch that brings their mark, and are handed on
in one with it. Where no mark comes (the source has nothing more at the moment, or sends ever more without one) they go
on as they are: nothing is lost by that, but they may come twice.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from typing import Final

from wherry.contract.batch import Batch, concat
from wherry.contract.errors import ConnectorBugError
from wherry.contract.limits import MIB
from wherry.contract.position import Position
from wherry.worker.endpoints import Reader

HELD_BYTES_MAX: Final = 64 * MIB


class AlignedReader:
    """A `Reader` whose batches end where a position stands.

    Args:
        inner: The source.
    """

    def __init__(self, inner: Reader) -> None:
        self._inner = inner
        self._held: list[Batch] = []
        self._held_bytes = 0
        self._ready: deque[Batch] = deque()

    def poll(self, timeout_s: float) -> Batch | None:
        """See `Reader.poll`."""
        if self._ready:
            return self._ready.popleft()
        batch = self._inner.poll(timeout_s)
        if batch is None:
            if self._held and (self._inner.caught_up or self._inner.finished):
                self._hand_on()
        else:
            self._take(batch)
        return self._ready.popleft() if self._ready else None

    def _take(self, batch: Batch) -> None:
        end = max((mark.row_count for mark in batch.marks), default=0)
        if batch.marks:
            self._held.append(batch if end == batch.num_rows else batch.slice(0, end))
            self._hand_on()
            batch = batch.slice(end).with_marks()
        if batch.num_rows:
            self._held.append(batch)
            self._held_bytes += batch.nbytes
            if self._held_bytes > HELD_BYTES_MAX:
                self._hand_on()

    def _hand_on(self) -> None:
        held, self._held, self._held_bytes = self._held, [], 0
        try:
            self._ready.append(concat(held))
        except ConnectorBugError:
            # Of different schemas: they can't be one batch.
            self._ready.extend(held)

    def committed(self, positions: Sequence[Position]) -> None:
        """See `Reader.committed`."""
        self._inner.committed(positions)

    def rewind(self, positions: Sequence[Position]) -> None:
        """See `Reader.rewind`."""
        self._inner.rewind(positions)

    def pause(self, partitions: Sequence[str]) -> None:
        """See `Reader.pause`."""
        self._inner.pause(partitions)

    def drain(self, deadline_s: float) -> None:
        """See `Reader.drain`."""
        self._inner.drain(deadline_s)

    def close(self) -> None:
        """See `Reader.close`. Rows held back are read again."""
        self._inner.close()

    @property
    def finished(self) -> bool:
        """See `Reader.finished`."""
        return self._inner.finished and not self._held and not self._ready

    @property
    def caught_up(self) -> bool:
        """See `Reader.caught_up`."""
        return self._inner.caught_up and not self._held and not self._ready

    @property
    def lag(self) -> int | None:
        """See `Reader.lag`."""
        return self._inner.lag

    @property
    def trouble(self) -> str:
        """See `Reader.trouble`."""
        return self._inner.trouble
