"""Where the transactions of an exactly-once source end: pure, given the time.

A transaction holds rows and the position after them, so it may only end where every row is covered by a mark: rows
behind the last mark would come again after a restart. Batches are cut there.
"""

from __future__ import annotations

import dataclasses
import enum
from typing import Final

from wherry.contract.batch import Batch, mark_only
from wherry.contract.limits import MIB
from wherry.worker.policy import CommitTiming

# Under load a transaction holds several polls, because each commit is a few round trips in which nothing is sent: it
# lasts so many times as long as the last commit took, and commits cost a twentieth of the time. Readers of committed
# records see them later by the longest of these times at most.
JOIN_COMMITS: Final = 20
JOIN_S: Final = 0.1
JOIN_MAX_S: Final = 0.5
JOIN_BYTES: Final = 64 * MIB


class Boundary(enum.IntEnum):
    """Where a transaction ends; the numbers are those of the wire's TransactionBoundary."""

    POLL = 1
    INTERVAL = 2
    CONNECTOR = 3


@dataclasses.dataclass(frozen=True, slots=True)
class Piece:
    """Part of a batch. It `closes` if everything up to its end is covered by marks."""

    batch: Batch
    closes: bool


class Boundaries:
    """Follows what goes into the open transaction and says when it is to end.

    Args:
        boundary: The connector's choice.
        interval_s: Length of a transaction, for INTERVAL; positions that move without rows are stored so often, too.
    """

    def __init__(self, boundary: Boundary, interval_s: float) -> None:
        self._boundary = boundary
        self._interval_s = interval_s
        self._quiet = CommitTiming(interval_s)
        self._rows = 0
        self._bytes = 0
        self._since: float | None = None
        # The first transaction ends with its first rows: whoever has started a source waits for them.
        self._join_s = 0.0
        self.clean = True
        """Every row so far is covered by a mark: the transaction may end here."""

    @property
    def dirty(self) -> bool:
        """Whether there is anything to commit."""
        return self._since is not None

    @property
    def hurries(self) -> bool:
        """Whether the transaction is to end as soon as the source has nothing more at hand."""
        return self._boundary is Boundary.POLL and self.clean and self._rows > 0

    def pieces(self, batch: Batch) -> list[Piece]:
        """Cuts a batch where a transaction may end, and with CONNECTOR wherever one has to."""
        rows = batch.num_rows
        if not batch.marks:
            return [Piece(batch, closes=False)] if rows else [Piece(batch, closes=self.clean)]
        ends = sorted({mark.row_count for mark in batch.marks})
        if self._boundary is not Boundary.CONNECTOR:
            ends = ends[-1:]
        if ends == [rows]:
            return [Piece(batch, closes=True)]
        pieces = []
        start = 0
        for end in ends:
            if end == 0:
                pieces.append(Piece(mark_only(*(m.position for m in batch.marks if not m.row_count)), closes=True))
                batch = batch.with_marks(*(mark for mark in batch.marks if mark.row_count))
            else:
                pieces.append(Piece(batch.slice(start, end - start), closes=True))
            start = end
        if start < rows:
            pieces.append(Piece(batch.slice(start), closes=False))
        return pieces

    def wrote(self, piece: Piece, now: float) -> None:
        """A piece went to the writer."""
        self.clean = piece.closes
        self._rows += piece.batch.num_rows
        self._bytes += piece.batch.nbytes
        self._quiet.wrote(now)
        if self._since is None:
            self._since = now

    def due(self, now: float) -> bool:
        """Whether the transaction is to end now."""
        if self._since is None or not self.clean:
            return False
        if self._boundary is Boundary.INTERVAL:
            return now - self._since >= self._interval_s
        if self._rows and self._boundary is Boundary.CONNECTOR:
            return True
        if self._rows and (now - self._since >= self._join_s or self._bytes >= JOIN_BYTES):
            return True
        return self._quiet.due(now)

    def ended(self, now: float, took_s: float = 0.0) -> None:
        """The transaction was committed, which took so long, or rolled back."""
        self._join_s = min(JOIN_MAX_S, max(JOIN_S, JOIN_COMMITS * took_s))
        self.clean = True
        self._rows = self._bytes = 0
        self._since = None
        self._quiet.committed(now)
