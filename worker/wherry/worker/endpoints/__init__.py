"""The two ends of a pump: where batches come from and where they go.

Four endpoints (Kafka and sidecar, reading and writing) make all pipelines: source, sink, direct and mirror. The pump
knows these Protocols only. Nothing here waits without an end: `poll` and `ready` take the time they may wait, `flush`
and `drain` have deadlines of their own.

Positions are only ever reported after `Writer.flush` has said that everything before them is durable (invariant 1).
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from typing import Final, Protocol

from wherry.contract.batch import Batch, RowError
from wherry.contract.position import Position

# Seconds left for something; may raise to break the wait off (a fenced lease).
Remaining = Callable[[], float]
# A wait is cut into pieces of this length, so that `Remaining` is asked again.
WAIT_SLICE_S: Final = 0.5


@dataclasses.dataclass(frozen=True, slots=True)
class FailedRow:
    """A row the destination refused.

    Attributes:
        raw: The batch the row was read as, before conversion; None when it was not kept.
        row: Its index in `raw`.
        error: What was wrong with it.
        after: What was sent after that batch, as it was read and in order; only of a row that failed for now.
    """

    raw: Batch | None
    row: int
    error: RowError
    after: tuple[Batch, ...] = ()


@dataclasses.dataclass(frozen=True, slots=True)
class Flushed:
    """Everything written before the flush is durable.

    Attributes:
        positions: The positions that are safe; None means all that the marks of the written batches said.
        rows_written: Rows the destination took since the last flush.
        rows_failed: Rows it refused since the last flush.
        rows_filtered: Rows it left out on purpose since the last flush.
        token: What a two-phase sink needs for its commit; empty otherwise.
    """

    positions: tuple[Position, ...] | None = None
    rows_written: int = 0
    rows_failed: int = 0
    rows_filtered: int = 0
    token: bytes = b""


class Reader(Protocol):
    """Where batches come from."""

    def poll(self, timeout_s: float) -> Batch | None:
        """Waits for the first record, then takes what is there without waiting.

        The batch before counts as passed on when `poll` is called again.

        Raises:
            WherryError: The class says what is to be done.
        """

    def committed(self, positions: Sequence[Position]) -> None:
        """Tells that positions are durable and stored, so that the source may settle."""

    def rewind(self, positions: Sequence[Position]) -> None:
        """Goes back to positions; what was read after them is read again."""

    def pause(self, partitions: Sequence[str]) -> None:
        """Pauses these partitions (compact JSON), and no others."""

    def drain(self, deadline_s: float) -> None:
        """Asks for an end within so many seconds; `poll` still gives what was read, then `finished` is true."""

    def close(self) -> None:
        """Releases everything; harmless when repeated."""

    @property
    def finished(self) -> bool:
        """A split has been read to its end, or the drain is over, and `poll` has given everything."""

    @property
    def caught_up(self) -> bool:
        """There is nothing more at the moment."""

    @property
    def lag(self) -> int | None:
        """Records not yet read; None when unknown."""

    @property
    def trouble(self) -> str:
        """One sentence on what is being retried; empty when all is well."""


class Writer(Protocol):
    """Where batches go."""

    def ready(self, timeout_s: float) -> bool:
        """Waits until a batch can be taken without blocking for long."""

    def write(self, batch: Batch, raw: Batch) -> None:
        """Takes a batch; `raw` is the same rows as they were read, for the dead letter queue.

        Raises:
            WherryError: The class says what is to be done.
        """

    def flush(self, remaining: Remaining, *, final: bool = False) -> Flushed:
        """Makes everything written durable.

        Args:
            remaining: Tells the seconds left; asked again at least every half second, because a drain shortens them.
            final: Nothing more will be written.

        Raises:
            TransientError: The destination did not answer in time.
        """

    def failed_rows(self) -> list[FailedRow]:
        """Hands over the rows refused since the last call."""

    def rewinds(self) -> tuple[Position, ...]:
        """Hands over positions the destination wants to go back to; empty when it doesn't."""

    def paused_partitions(self) -> tuple[str, ...]:
        """Partitions the destination can't take now."""

    @property
    def needs_flush(self) -> bool:
        """More is kept for the next flush than should be."""

    @property
    def stored(self) -> tuple[Position, ...]:
        """Positions the destination stores with its data; they win over all others."""

    @property
    def trouble(self) -> str:
        """One sentence on what is being retried; empty when all is well."""

    def close(self) -> None:
        """Releases everything without flushing; harmless when repeated."""
