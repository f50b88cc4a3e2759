"""The loop inside a lease: reader, steps, writer, with commits.

What it decides: when to read, when to flush, which positions to report. What it never does: start processes, call the
coordinator, look at a clock of its own. Invariants it keeps:

1. A position is reported only after `Writer.flush` has said that every record before it is durable, and after every
   record that was given up is in the dead letter queue, durably as well.
2. A fenced lease reports and commits nothing more.
3. Nothing waits without an end: every call to an endpoint has a time-out, and signals are looked at in between.

It forwards at once what is there: a batch is as large as what the reader has at the moment.
"""

from __future__ import annotations

import dataclasses
import gc
import time
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from typing import Final

from opentelemetry.trace import Span, SpanKind

from wherry.contract import trace
from wherry.contract.batch import Batch
from wherry.contract.errors import ConnectorBugError, FencedError, TransientError, WherryError
from wherry.contract.position import Position
from wherry.worker import memory
from wherry.worker.again import Again
from wherry.worker.convert.step import StageFailure
from wherry.worker.counts import Counts
from wherry.worker.endpoints import Flushed, Remaining
from wherry.worker.marks import with_own_marks
from wherry.worker.pipeline import Pipeline, Transactions
from wherry.worker.policy import (
    BEHIND_WAIT_S,
    POLL_TIMEOUT_S,
    SIGNAL_WAIT_S,
    CommitTiming,
    Idleness,
    LeasePolicy,
)
from wherry.worker.reports import Reports
from wherry.worker.retry import BrokenOffError, Retrying
from wherry.worker.signals import Assignment, EndReason, Phase, Reporter, Signals
from wherry.worker.tolerance import DeadLetterError, row_failure, unread_failure
from wherry.worker.transform.step import Transforms

__all__ = ["Assignment", "EndReason", "LeasePolicy", "Phase", "Reporter", "Signals", "run"]

Clock = Callable[[], float]

# Share of the time for a drain that reading to the end may take; the rest is for the last flush.
DRAIN_READ_SHARE: Final = 0.5
# A drained source is told what was committed, so that it can settle; the coordinator has so long to say it.
SETTLE_WAIT_S: Final = 1.0
SETTLE_STEP_S: Final = 0.02
# A lease that has moved so much gives memory back when it comes to rest.
REST_AFTER_BYTES: Final = 64 * 1024 * 1024
# A destination gets so long to come to itself before rows are offered once more.
OFFER_AGAIN_S: Final = 0.2
# A batch of messages is tens of thousands of short-lived objects without cycles. Looking for cycles every 700 of them,
# as Python does by itself, costs more than reading them.
GC_THRESHOLDS: Final = (100_000, 20, 50)
# A flush after the reader or a step has failed, so that less has to be read again.
SALVAGE_FLUSH_S: Final = 5.0


def run(
    pipeline: Pipeline, policy: LeasePolicy, signals: Signals, reporter: Reporter, clock: Clock = time.monotonic
) -> EndReason:
    """Pumps until the lease ends.

    `pipeline.positions` holds the durable positions at any time, also after an error: a new pipeline goes on from
    there. The caller closes the pipeline.

    Returns:
        Why the lease ended in good order.

    Raises:
        WherryError: Its class says what is to be done.
    """
    memory.bound_allocator()
    thresholds = gc.get_threshold()
    gc.set_threshold(*GC_THRESHOLDS)
    try:
        return _Pump(pipeline, policy, signals, reporter, clock).run()
    finally:
        gc.set_threshold(*thresholds)


class _Pump:
    def __init__(
        self, pipeline: Pipeline, policy: LeasePolicy, signals: Signals, reporter: Reporter, clock: Clock
    ) -> None:
        self._pipeline = pipeline
        self._policy = policy
        self._signals = signals
        self._clock = clock
        self._commits = CommitTiming(policy.commit_interval_s)
        self._idleness = Idleness(policy.idle_park_s)
        self._counts = Counts()
        self._reports = Reports(reporter, pipeline, self._counts, policy.report_interval_s, clock)
        self._pending: dict[str, Position] = {}
        self._paused_partitions: tuple[str, ...] = ()
        self._bytes_since_rest = 0
        self._again = Again()
        self._tokens: list[bytes] = []
        self._tracing = trace.enabled()
        self._retrying = Retrying(pipeline.retry, clock, self._wait_to_retry)
        self._broken_off = False

    def run(self) -> EndReason:
        while True:
            end = self._step()
            if end is not None:
                return end

    def _step(self) -> EndReason | None:
        self._check_fence()
        if self._signals.drain_seconds is not None:
            return self._drain(self._signals.drain_seconds)
        now = self._clock()
        self._reports.settle()
        if self._due(now):
            self._commit()
        self._reports.tell_if_due(now, Phase.PAUSED if self._signals.paused else Phase.RUNNING)
        if self._signals.paused:
            self._rest()
            return None
        self._obey_writer()
        if not self._pipeline.writer.ready(POLL_TIMEOUT_S):
            return None
        self._take_failed_rows()
        if self._again:
            # Nothing may overtake rows that are to be offered again.
            self._commit()
            return None
        transactions = self._pipeline.transactions
        hurries, wait_s = False, POLL_TIMEOUT_S
        if transactions is not None and transactions.boundaries.hurries:
            # While rows are still on their way a commit would only wait for them: more may come as well.
            hurries = not transactions.writer.behind
            wait_s = 0.0 if hurries else BEHIND_WAIT_S
        try:
            moved = self._move(wait_s)
        except BrokenOffError:
            # Nothing of the batch was given on, so nothing may be read after it: it is read again.
            self._broken_off = True
            return None
        if hurries and not moved:
            self._commit()
        return None if moved else self._nothing_came()

    def _due(self, now: float) -> bool:
        """Whether to commit now."""
        if self._pipeline.transactions is not None:
            return self._pipeline.transactions.boundaries.due(now)
        return self._commits.due(now) or self._pipeline.writer.needs_flush

    def _move(self, timeout_s: float) -> bool:
        """Moves one batch; False when none came."""
        begun = self._clock()
        try:
            batch = self._pipeline.reader.poll(timeout_s)
        except TransientError:
            self._salvage()
            raise
        if batch is None:
            return False
        read = self._clock()
        self._counts.read_time_us += int((read - begun) * 1e6)
        self._counts.records_read += batch.num_rows
        size = batch.nbytes
        self._counts.bytes_read += size
        self._counts.batches += 1
        self._bytes_since_rest += size
        self._idleness.busy()
        if self._tracing:
            with _span(batch, size, sends=self._pipeline.work is not None):
                self._forward(dataclasses.replace(batch, traceparent=trace.current_traceparent()))
        else:
            self._forward(batch)
        return True

    def _forward(self, batch: Batch) -> None:
        self._pipeline.tolerance.saw(batch.num_rows)
        for error in batch.row_errors:
            self._give_up([unread_failure(batch, error, self._pipeline.connector_class)])
        transactions = self._pipeline.transactions
        if transactions is None:
            self._take_over(batch)
        else:
            for piece in transactions.boundaries.pieces(batch):
                self._take_over(piece.batch)
                transactions.boundaries.wrote(piece, self._clock())
                if transactions.boundaries.due(self._clock()):
                    self._commit()
        self._pipeline.latency(batch, self._counts)
        self._take_failed_rows()

    def _take_over(self, batch: Batch) -> None:
        begun = self._clock()
        try:
            pieces = self._stepped(batch)
        except (FencedError, DeadLetterError):
            # A letter that was refused may be one of a batch before: its position must not be reported.
            raise
        except WherryError:
            # Nothing of this batch has reached the writer, and no mark of it is pending.
            self._salvage()
            raise
        self._write(pieces, begun)
        for mark in batch.marks:
            self._pending[mark.position.partition] = mark.position
        self._commits.wrote(self._clock())

    def _stepped(self, batch: Batch, *, again: bool = False) -> list[tuple[Batch, Batch]]:
        """Takes a batch through the steps; returns what becomes of it, each piece with the rows it was made of.

        Args:
            batch: The rows.
            again: They went through before and are offered to the writer once more.
        """
        pieces: list[tuple[Batch, Batch]] = [(batch, batch)]
        failures: list[StageFailure] = []
        for step in self._pipeline.steps:
            following: list[tuple[Batch, Batch]] = []
            for piece, raw in pieces:
                apply = step.again if again and isinstance(step, Transforms) else step.apply
                stepped = self._retrying.apply(apply, piece, raw, self._counts)
                failures += stepped.failures
                following += stepped.pieces
                self._counts.records_filtered += stepped.filtered
            pieces = following
        if failures:
            self._give_up(failures)
        return pieces

    def _write(self, pieces: list[tuple[Batch, Batch]], begun: float) -> None:
        """Hands to the writer what the steps, which began at that time, have made."""
        converted = self._clock()
        self._counts.convert_time_us += int((converted - begun) * 1e6)
        for piece, raw in with_own_marks(pieces):
            if piece.num_rows or piece.marks:
                self._pipeline.writer.write(piece, raw)
                # What a sink has used is what it has read, whatever a transformation calls it since.
                self._reports.note_topics(raw if self._pipeline.work is None else piece)
                self._counts.bytes_written += piece.nbytes
        self._counts.write_time_us += int((self._clock() - converted) * 1e6)

    def _commit(self, *, final: bool = False, deadline_s: float | None = None) -> None:
        """Flushes, and reports the positions that are durable now."""
        begun = self._clock()
        remaining = self._remaining(deadline_s)
        transactions = self._pipeline.transactions
        if transactions is not None:
            if not transactions.boundaries.clean:
                self._roll_back(transactions)
                return
            # The positions become visible with the rows, so what was given up must be safe before.
            self._flush_letters(remaining)
            transactions.writer.stage(tuple(self._pending.values()))
        flushed = self._flush(remaining, final=final)
        self._flush_letters(remaining)
        self._check_fence()
        # Invariant 1: the writer has flushed, and what was given up is safe in the dead letter queue.
        positions = tuple(self._pending.values()) if flushed.positions is None else flushed.positions
        for position in positions:
            self._pipeline.positions[position.partition] = position
            if self._pending.get(position.partition) == position:
                del self._pending[position.partition]
        if flushed.positions is None:
            self._pending.clear()
        now = self._clock()
        self._commits.committed(now)
        if transactions is not None:
            transactions.boundaries.ended(now, now - begun)
        if self._pending:
            # The destination keeps rows back: ask again later.
            self._commits.wrote(now)
        counts = self._counts
        counts.commits += 1
        counts.commit_time_us += int((now - begun) * 1e6)
        tokens, self._tokens = tuple(self._tokens), []
        if positions or tokens:
            self._reports.tell(Phase.DRAINING if final else Phase.RUNNING, positions=positions, tokens=tokens)

    def _roll_back(self, transactions: Transactions) -> None:
        """Takes back the open transaction: rows in it are behind the last mark. Nothing may be read after this."""
        transactions.writer.abort()
        self._pending.clear()
        transactions.boundaries.ended(self._clock())
        self._commits.committed(self._clock())

    def _flush(self, remaining: Remaining, *, final: bool) -> Flushed:
        """Flushes the writer; rows it asks to be offered once more are, and are flushed as well."""
        writer = self._pipeline.writer
        flushed = writer.flush(remaining, final=final)
        self._count(flushed)
        self._take_failed_rows()
        while self._again:
            if self._again.exhausted:
                raise TransientError("The destination asks again and again for rows to be offered once more.")
            self._offer_again()
            flushed = writer.flush(remaining, final=final)
            self._count(flushed)
            self._take_failed_rows()
        self._again.settled()
        return flushed

    def _offer_again(self) -> None:
        self._counts.retries += len(self._again)
        self._wait_to_retry(OFFER_AGAIN_S, "the destination could not take some rows")
        try:
            for batch in self._again.take():
                begun = self._clock()
                self._write(self._stepped(batch, again=True), begun)
        except BrokenOffError:
            raise TransientError("A row to be offered again could not be converted before the end.") from None

    def _flush_letters(self, remaining: Remaining) -> None:
        try:
            self._pipeline.tolerance.flush(remaining)
        except DeadLetterError as error:
            self._counts.dead_letter_failures += error.count
            self._reports.tell(Phase.RUNNING)
            raise

    def _count(self, flushed: Flushed) -> None:
        self._counts.records_written += flushed.rows_written
        self._counts.records_filtered += flushed.rows_filtered
        if flushed.token:
            self._tokens.append(flushed.token)

    def _remaining(self, deadline_s: float | None = None) -> Remaining:
        """Returns what tells the seconds left for a flush; a drain that comes meanwhile shortens them."""
        deadline = self._clock() + (deadline_s or self._policy.flush_timeout_s)
        shortened = deadline_s is not None

        def remaining() -> float:
            nonlocal deadline, shortened
            self._check_fence()
            drain_s = self._signals.drain_seconds
            if drain_s is not None and not shortened:
                deadline, shortened = min(deadline, self._clock() + drain_s), True
            return deadline - self._clock()

        return remaining

    def _nothing_came(self) -> EndReason | None:
        reader = self._pipeline.reader
        if reader.finished:
            return self._next_split()
        if not reader.caught_up or self._commits.dirty or self._reports.waiting:
            self._idleness.busy()
            return None
        if self._bytes_since_rest > REST_AFTER_BYTES:
            self._bytes_since_rest = 0
            memory.give_back()
        if not self._idleness.rest(self._clock()):
            return None
        self._finish(self._policy.drain_timeout_s)
        return EndReason.IDLE

    def _next_split(self) -> EndReason | None:
        """The split is read to its end: makes it durable, asks for the next one and opens it."""
        split = self._pipeline.work if self._pipeline.split else None
        transactions = self._pipeline.transactions
        if transactions is not None and split is not None and not transactions.boundaries.clean:
            raise ConnectorBugError(
                f"The split {split.id} ended with rows behind its last mark, which can't be delivered exactly once."
            )
        self._commit(final=split is None)
        if split is None:
            return EndReason.SPLITS_DONE
        self._reports.tell(Phase.RUNNING, splits_done=(split.id,), want_split=True)
        assignment = self._await_assignment()
        if assignment is None:
            return None
        if assignment.work is None:
            self._finish(self._policy.drain_timeout_s)
            return EndReason.SPLITS_DONE
        self._reports.settle()
        self._pipeline.open_split(assignment)
        return None

    def _await_assignment(self) -> Assignment | None:
        """Waits for the next split; None when a drain came first."""
        while True:
            assignment = self._signals.take_assignment()
            if assignment is not None:
                return assignment
            self._check_fence()
            if self._signals.drain_seconds is not None:
                return None
            self._reports.settle()
            self._reports.tell_if_due(self._clock(), Phase.RUNNING)
            self._signals.wait(POLL_TIMEOUT_S)

    def _rest(self) -> None:
        """Paused: commits what there is and sleeps until something changes."""
        if self._commits.dirty:
            transactions = self._pipeline.transactions
            whole = transactions is None or transactions.boundaries.clean
            self._commit()
            if not whole:
                raise TransientError("Paused within a transaction: it was rolled back, and its rows are read again.")
        self._signals.wait(SIGNAL_WAIT_S)

    def _drain(self, seconds: float) -> EndReason:
        """Comes to an end: gives on what was read, flushes, reports."""
        deadline = self._clock() + seconds
        self._reports.tell(Phase.DRAINING)
        reader = self._pipeline.reader
        reader.drain(seconds * DRAIN_READ_SHARE)
        until = self._clock() + seconds * DRAIN_READ_SHARE
        while not self._broken_off and not reader.finished and self._clock() < until:
            self._check_fence()
            if self._again:
                self._commit()
            if self._pipeline.writer.ready(POLL_TIMEOUT_S):
                try:
                    self._move(POLL_TIMEOUT_S)
                except BrokenOffError:
                    self._broken_off = True
        # What could not be given on in time is read again: its marks were never taken.
        self._finish(max(0.1, deadline - self._clock()))
        return EndReason.DRAINED

    def _finish(self, seconds: float) -> None:
        deadline = self._clock() + seconds
        self._commit(final=True, deadline_s=seconds)
        self._reports.tell(Phase.DRAINING)
        if not self._pipeline.settles:
            return
        until = min(deadline, self._clock() + SETTLE_WAIT_S)
        while self._reports.waiting and self._clock() < until:
            self._reports.settle()
            self._signals.wait(SETTLE_STEP_S)

    def _wait_to_retry(self, seconds: float, reason: str) -> bool:
        """Waits before a step is tried again; False when the lease is to end, which wakes the sleeper at once."""
        until = self._clock() + seconds
        while True:
            self._check_fence()
            if self._signals.drain_seconds is not None:
                return False
            now = self._clock()
            if now >= until:
                return True
            self._reports.tell_if_due(now, Phase.RUNNING, trouble=f"Trying again: {reason}")
            self._signals.wait(min(SIGNAL_WAIT_S, until - now))

    def _obey_writer(self) -> None:
        """Goes back or pauses partitions where the destination asks for it."""
        writer = self._pipeline.writer
        positions = writer.rewinds()
        if positions:
            for position in positions:
                # What lies beyond is read again, so it must not be committed.
                self._pending.pop(position.partition, None)
            self._pipeline.reader.rewind(positions)
            for step in self._pipeline.steps:
                if isinstance(step, Transforms):
                    step.forget()
        paused = writer.paused_partitions()
        if paused != self._paused_partitions:
            self._paused_partitions = paused
            self._pipeline.reader.pause(paused)

    def _take_failed_rows(self) -> None:
        """Gives up the rows the writer refused, but for those to be offered once more."""
        pipeline = self._pipeline
        refused = self._again.sort(pipeline.writer.failed_rows())
        if refused:
            names = pipeline.write_stage, pipeline.connector_class
            self._give_up([row_failure(failed.raw, failed.error, *names) for failed in refused])

    def _give_up(self, failures: Sequence[StageFailure]) -> None:
        """Hands failed rows to the tolerance, and ends where it says so; what was counted is told before."""
        counts = self._counts
        counts.last_error_ms = int(time.time() * 1000)
        try:
            told = self._pipeline.tolerance.give_up(failures)
        except WherryError:
            self._reports.tell(Phase.RUNNING)
            raise
        counts.failures += told.failed
        counts.errors += told.failed
        counts.skipped += told.skipped
        counts.dead_letters += told.dead_letters
        counts.logged += told.logged
        if told.error is not None:
            counts.dead_letter_failures += told.error.count if isinstance(told.error, DeadLetterError) else 0
            self._reports.tell(Phase.RUNNING)
            raise told.error

    def _salvage(self) -> None:
        """The reader or a step has failed: makes durable what was read before, so that it isn't read twice."""
        if not self._commits.dirty:
            return
        try:
            self._commit(deadline_s=SALVAGE_FLUSH_S)
        except FencedError:
            raise
        except WherryError:
            # The first error is the one to tell; what wasn't flushed is read again.
            return

    def _check_fence(self) -> None:
        if self._signals.fenced is not None:
            # Invariant 2.
            raise FencedError(self._signals.fenced)


def _span(batch: Batch, size: int, *, sends: bool) -> AbstractContextManager[Span]:
    """The span of a batch on its way, named as OpenTelemetry names those of messages."""
    topic = batch.constants.topic
    operation = "send" if sends else "process"
    attributes: dict[str, str | int | float | bool] = {
        "messaging.system": "kafka",
        "messaging.operation.type": operation,
        "messaging.operation.name": operation,
        "messaging.batch.message_count": batch.num_rows,
        "wherry.bytes": size,
    }
    if topic:
        attributes["messaging.destination.name"] = topic
    kind = SpanKind.PRODUCER if sends else SpanKind.CONSUMER
    name = f"{operation} {topic}" if topic else operation
    return trace.span(name, parent=batch.traceparent, kind=kind, attributes=attributes)
