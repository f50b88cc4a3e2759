"""Pure decisions of the pump: how much to read at once, when to commit, report, park, try again, give up.

Each policy is given the time; none looks at a clock, sleeps or touches an endpoint. Times are seconds of a monotonic
clock whose zero doesn't matter.
"""

from __future__ import annotations

import dataclasses
import random
from collections import deque
from collections.abc import Callable, Mapping
from typing import Final

from wherry.contract.limits import MIB

BATCH_BYTES_TARGET: Final = 2 * MIB
BATCH_ROWS_MAX: Final = 65_536
BATCH_ROWS_MIN: Final = 64
# What a batch may hold before anything is known about the size of records.
BATCH_ROWS_FIRST: Final = 1_000

# A commit this long after the last record, so that lag tools and restarts are exact without waiting for the interval.
IDLE_COMMIT_S: Final = 0.5
# Never commit more often than this when idle: a slow trickle must not turn into a commit per record.
IDLE_COMMIT_GAP_S: Final = 1.0
# Waiting for a record is cut into pieces so that signals are noticed.
POLL_TIMEOUT_S: Final = 0.25
# How long to wait for more rows at a time while those before are still on their way.
BEHIND_WAIT_S: Final = 0.002
# Piece of waiting where a signal wakes the waiter.
SIGNAL_WAIT_S: Final = 0.5

# Kafka Connect's first wait before a failed operation is tried again; each further one is twice as long.
RETRY_DELAY_FIRST_S: Final = 0.3
# Doublings after which the wait is beyond any limit that can be set in milliseconds.
RETRY_DOUBLINGS_MAX: Final = 64

DEFAULT_REPORT_INTERVAL_S: Final = 1.0
DEFAULT_COMMIT_INTERVAL_S: Final = 60.0
DEFAULT_FLUSH_TIMEOUT_S: Final = 60.0
DEFAULT_DRAIN_TIMEOUT_S: Final = 5.0


@dataclasses.dataclass(frozen=True, slots=True)
class LeasePolicy:
    """Numbers that steer a lease, in seconds; see the wire's LeasePolicy.

    Attributes:
        report_interval_s: Reports at least so often.
        commit_interval_s: Commits so often under load.
        idle_park_s: Ends the lease after so long without a record; 0 never parks.
        drain_timeout_s: Time to come to an end.
        flush_timeout_s: Time the destination has to make things durable.
    """

    report_interval_s: float = DEFAULT_REPORT_INTERVAL_S
    commit_interval_s: float = DEFAULT_COMMIT_INTERVAL_S
    idle_park_s: float = 0.0
    drain_timeout_s: float = DEFAULT_DRAIN_TIMEOUT_S
    flush_timeout_s: float = DEFAULT_FLUSH_TIMEOUT_S

    @classmethod
    def of(
        cls,
        worker_config: Mapping[str, str],
        *,
        report_interval_ms: int = 0,
        commit_interval_ms: int = 0,
        idle_park_ms: int = 0,
        drain_timeout_ms: int = 0,
    ) -> LeasePolicy:
        """Reads the wire's numbers, where 0 means the default."""
        interval_ms = commit_interval_ms or int(worker_config.get("offset.flush.interval.ms", "60000"))
        return cls(
            report_interval_s=report_interval_ms / 1000 or DEFAULT_REPORT_INTERVAL_S,
            commit_interval_s=interval_ms / 1000,
            idle_park_s=idle_park_ms / 1000,
            drain_timeout_s=drain_timeout_ms / 1000 or DEFAULT_DRAIN_TIMEOUT_S,
        )


@dataclasses.dataclass(slots=True)
class BatchSize:
    """How many rows to ask for, learnt from the rows seen: batches aim at a number of bytes, not of rows.

    Attributes:
        bytes_target: Bytes a batch should have under load.
        rows_max: Rows it never exceeds.
    """

    bytes_target: int = BATCH_BYTES_TARGET
    rows_max: int = BATCH_ROWS_MAX
    _row_bytes: float = 0.0

    @property
    def rows(self) -> int:
        """Rows to ask for now."""
        if self._row_bytes == 0.0:
            return min(BATCH_ROWS_FIRST, self.rows_max)
        return max(BATCH_ROWS_MIN, min(self.rows_max, int(self.bytes_target / self._row_bytes)))

    def saw(self, rows: int, size: int) -> None:
        """Learns from a batch: at once from larger rows, slowly from smaller ones, so that memory is bounded."""
        if rows <= 0:
            return
        row_bytes = max(1.0, size / rows)
        if row_bytes >= self._row_bytes:
            self._row_bytes = row_bytes
        else:
            self._row_bytes += (row_bytes - self._row_bytes) / 4


@dataclasses.dataclass(slots=True)
class CommitTiming:
    """When the writer is to be flushed and positions reported.

    Under load every `interval_s`. When nothing has come for a moment, soon after the last record, but never more
    often than the idle gap, and never later than the interval asks.
    """

    interval_s: float
    idle_after_s: float = IDLE_COMMIT_S
    idle_gap_s: float = IDLE_COMMIT_GAP_S
    _dirty_since: float | None = None
    _last_write: float = 0.0
    _last_commit: float = float("-inf")

    @property
    def dirty(self) -> bool:
        """Whether anything was written since the last commit."""
        return self._dirty_since is not None

    def wrote(self, now: float) -> None:
        """A batch, or marks, went to the writer."""
        if self._dirty_since is None:
            self._dirty_since = now
        self._last_write = now

    def committed(self, now: float) -> None:
        """Everything written is durable."""
        self._dirty_since = None
        self._last_commit = now

    def due(self, now: float) -> bool:
        """Whether to commit now."""
        if self._dirty_since is None:
            return False
        if now - self._dirty_since >= self.interval_s:
            return True
        idle = now - self._last_write >= min(self.idle_after_s, self.interval_s)
        return idle and now - self._last_commit >= min(self.idle_gap_s, self.interval_s)


@dataclasses.dataclass(slots=True)
class Every:
    """Something that is due at an interval."""

    interval_s: float
    _last: float = float("-inf")

    def due(self, now: float) -> bool:
        """Whether it is time."""
        return now - self._last >= self.interval_s

    def done(self, now: float) -> None:
        """It was done."""
        self._last = now


@dataclasses.dataclass(slots=True)
class Idleness:
    """When a lease has had nothing to do for so long that its task is to be parked.

    Attributes:
        park_after_s: Time without a record; 0 never parks.
    """

    park_after_s: float
    _since: float | None = None

    def busy(self) -> None:
        """A record came, or something is still open."""
        self._since = None

    def rest(self, now: float) -> bool:
        """Nothing is there and nothing is open; True when this has lasted long enough."""
        if self.park_after_s <= 0:
            return False
        if self._since is None:
            self._since = now
        return now - self._since >= self.park_after_s


@dataclasses.dataclass(frozen=True, slots=True)
class RetryPolicy:
    """How long an operation on records is tried again: Kafka Connect's `errors.retry.*`.

    The wait doubles from 0.3 s. One that would be longer than the limit becomes a random part of the limit, and none
    reaches beyond the end of all tries.

    Attributes:
        timeout_s: Time from the first attempt within which another one may begin; 0 is none, below 0 without end.
        delay_max_s: Longest wait between two attempts.
    """

    timeout_s: float = 0.0
    delay_max_s: float = 60.0

    def delay_s(
        self, attempt: int, begun: float, now: float, chance: Callable[[], float] = random.random
    ) -> float | None:
        """Returns how long to wait before the next attempt; None to give up.

        Args:
            attempt: Number of the attempt that has just failed, from 1.
            begun: When the first attempt began.
            now: The time.
            chance: Gives a number from 0 up to, not including, 1.
        """
        left = float("inf") if self.timeout_s < 0 else begun + self.timeout_s - now
        if left <= 0:
            return None
        delay = RETRY_DELAY_FIRST_S * 2.0 ** min(attempt - 1, RETRY_DOUBLINGS_MAX)
        if delay > self.delay_max_s:
            delay = chance() * max(0.0, self.delay_max_s)
        return min(delay, left)


@dataclasses.dataclass(slots=True)
class StopThreshold:
    """Whether so many records fail that tolerance ends: `failures` of the last `records`.

    Attributes:
        failures: Failed records that are too many; 0 never stops.
        records: Among how many records.
    """

    failures: int = 0
    records: int = 1
    _seen: int = 0
    _batch: int = 0
    _failed_at: deque[int] = dataclasses.field(default_factory=deque)

    def saw(self, rows: int) -> None:
        """A batch of so many records was read."""
        self._seen += rows
        self._batch = rows

    def failed(self, row: int) -> bool:
        """A record of the batch read last has failed, at this index in it; True when that is one too many."""
        if self.failures <= 0:
            return False
        begin = self._seen - self._batch
        self._failed_at.append(begin + min(max(row, 0), max(self._batch - 1, 0)))
        while len(self._failed_at) > self.failures:
            self._failed_at.popleft()
        # Rows a destination refuses later than they were read stand a little out of order.
        distance = abs(self._failed_at[-1] - self._failed_at[0])
        return len(self._failed_at) == self.failures and distance < self.records
