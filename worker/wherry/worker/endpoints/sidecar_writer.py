"""Writes to a sidecar's Write stream: frames out within the credit, acks and flushes in.

An ack returns credit and may name rows that failed; it says nothing about durability. Only `flushed` does, and its
numbers must add up: rows in = rows written + failed + filtered, or the sidecar has lost some.

What was sent is kept until the flush after it when failed rows are wanted with their bytes (a dead letter queue); when
that grows too large an early flush is asked for. Otherwise it is kept until its ack, to tell where a row came from.
"""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Sequence
from typing import Final

from wherry.connector.v1 import common_pb2, sink_pb2
from wherry.contract import from_proto
from wherry.contract.batch import Batch, RowError, mark_only
from wherry.contract.client import SidecarClient
from wherry.contract.errors import ConnectorBugError, ErrorClass, TransientError
from wherry.contract.frame import Encoding, FrameWriter
from wherry.contract.limits import MESSAGE_BYTES_MAX, MIB, ROW_BYTES_MAX, STREAM_OPEN_DEADLINE_S
from wherry.contract.position import Position
from wherry.contract.wire import WireFrame
from wherry.worker.endpoints import WAIT_SLICE_S, FailedRow, Flushed, Remaining
from wherry.worker.marks import with_own_marks
from wherry.worker.origins import with_origins

RETAINED_BYTES_MAX: Final = 32 * MIB
RETAINED_FRAMES_MAX: Final = 10_000
CREDIT_WAIT_S: Final = 60.0
CLOSE_WAIT_S: Final = 1.0


class SidecarWriter:
    """A `Writer` of one task.

    Args:
        client: The sidecar.
        pipeline: Name under which a transactional sink stores positions: the connector.
        generation: Generation of the lease.
        task: Number of the task.
        partitions: Partitions the task will write, as compact JSON.
        keep_raw: Whether failed rows are wanted with their bytes.
    """

    def __init__(
        self,
        client: SidecarClient,
        pipeline: str,
        *,
        generation: int,
        task: int,
        partitions: Sequence[str],
        keep_raw: bool,
    ) -> None:
        self._keep_raw = keep_raw
        self._credit_frames = 0
        self._credit_bytes = 0
        self._unacked: dict[int, int] = {}
        self._retained: dict[int, Batch] = {}
        self._retained_bytes = 0
        # Rows refused since they were last asked for, and the frames of those that failed for now.
        self._failed: list[FailedRow] = []
        self._suspects: list[tuple[int, int]] = []
        self._rows = 0
        self._flush_id = 0
        self._flushed: sink_pb2.Flushed | None = None
        self._backoff_until = 0.0
        self._backoff_reason = ""
        self._rewinds: tuple[Position, ...] = ()
        self._paused: tuple[str, ...] = ()
        self._stored: tuple[Position, ...] = ()
        self._closed = False
        self._stream = client.write(pipeline=pipeline, generation=generation, task=task, partitions=partitions)
        self._frames = FrameWriter(self._await_opened())

    def ready(self, timeout_s: float) -> bool:
        """See `Writer.ready`."""
        deadline = time.monotonic() + timeout_s
        while self._receive(0.0):
            pass
        while not self._may_send():
            remaining = deadline - time.monotonic()
            if remaining <= 0:
                return False
            self._receive(
                min(remaining, max(0.001, self._backoff_until - time.monotonic())) if self._backing_off() else remaining
            )
        return True

    def write(self, batch: Batch, raw: Batch) -> None:
        """See `Writer.write`. A batch of very large rows goes as several frames, at worst one for each row."""
        done = 0
        pieces = []
        for piece in batch.split(MESSAGE_BYTES_MAX):
            pieces.append((piece, raw if piece is batch else raw.slice(done, piece.num_rows)))
            done += piece.num_rows
        for piece, cut in with_own_marks(with_origins(pieces)):
            if piece.num_rows == 1 and piece.nbytes > ROW_BYTES_MAX:
                self._refuse(piece, cut)
            else:
                self._send(piece, cut)

    def _refuse(self, batch: Batch, raw: Batch) -> None:
        """A row beyond the contract's limit is an error of that row; the sidecar never sees it."""
        message = f"The row has {batch.nbytes} bytes; a sidecar takes {ROW_BYTES_MAX} at most."
        self._failed.append(FailedRow(raw, 0, RowError(0, ErrorClass.SCHEMA, "ROW_TOO_LARGE", message=message)))
        if batch.marks:
            self._send(mark_only(*(mark.position for mark in batch.marks)), raw)

    def _send(self, batch: Batch, raw: Batch) -> None:
        if batch.num_rows:
            self._await_credit()
        frames = self._frames.wire(batch)
        for frame in frames:
            self._stream.send(frame)
        if not batch.num_rows:
            return
        seq, size = int(frames[-1].header.seq), sum(frame.body.size for frame in frames)
        self._credit_frames -= 1
        self._credit_bytes -= size
        self._unacked[seq] = size
        self._rows += batch.num_rows
        self._retained[seq] = raw
        if self._keep_raw:
            self._retained_bytes += raw.nbytes

    def flush(self, remaining: Remaining, *, final: bool = False) -> Flushed:
        """See `Writer.flush`."""
        begun = time.monotonic()
        self._flush_id += 1
        self._flushed = None
        self._stream.send(sink_pb2.WriteRequest(flush=sink_pb2.Flush(id=self._flush_id, final=final)))
        while self._flushed is None:
            left = remaining()
            if left <= 0:
                waited = time.monotonic() - begun
                raise TransientError(f"The sidecar did not make its rows durable within {waited:.0f} s.")
            self._receive(min(left, WAIT_SLICE_S))
        return self._account(self._flushed)

    def failed_rows(self) -> list[FailedRow]:
        """See `Writer.failed_rows`."""
        self._look_behind()
        failed, self._failed = self._failed, []
        return failed

    def rewinds(self) -> tuple[Position, ...]:
        """See `Writer.rewinds`."""
        positions, self._rewinds = self._rewinds, ()
        return positions

    def paused_partitions(self) -> tuple[str, ...]:
        """See `Writer.paused_partitions`."""
        return self._paused

    @property
    def needs_flush(self) -> bool:
        """See `Writer.needs_flush`."""
        return self._retained_bytes > RETAINED_BYTES_MAX or len(self._retained) > RETAINED_FRAMES_MAX

    @property
    def stored(self) -> tuple[Position, ...]:
        """See `Writer.stored`."""
        return self._stored

    @property
    def trouble(self) -> str:
        """Why nothing may be sent now."""
        return self._backoff_reason if self._backing_off() else ""

    def close(self) -> None:
        """See `Writer.close`. After a last flush the stream ends in good order."""
        if self._closed:
            return
        self._closed = True
        if self._rows or self._stream.ended:
            self._stream.cancel()
            return
        self._stream.half_close()
        deadline = time.monotonic() + CLOSE_WAIT_S
        while not self._stream.ended and time.monotonic() < deadline:
            self._stream.receive(deadline - time.monotonic())
        if not self._stream.ended:
            self._stream.cancel()

    def _await_opened(self) -> Encoding:
        deadline = time.monotonic() + STREAM_OPEN_DEADLINE_S
        while True:
            message = self._stream.receive(max(0.0, deadline - time.monotonic()))
            if message is None:
                self._stream.cancel()
                raise TransientError(
                    f"The sidecar did not open its Write stream within {STREAM_OPEN_DEADLINE_S:.0f} s."
                )
            if isinstance(message, WireFrame) or not message.HasField("opened"):
                self._stream.cancel()
                raise ConnectorBugError("The sidecar spoke before it said that the Write stream is open.")
            opened = message.opened
            self._add_credit(opened.credit)
            self._stored = from_proto.positions(opened.positions)
            encoding = from_proto.known(Encoding, opened.encoding, None)
            if encoding is None:
                self._stream.cancel()
                raise ConnectorBugError(
                    f"The sidecar chose encoding {opened.encoding}, which is none of the contract's."
                )
            return encoding

    def _may_send(self) -> bool:
        return self._credit_frames > 0 and self._credit_bytes > 0 and not self._backing_off()

    def _backing_off(self) -> bool:
        return self._backoff_until > 0.0 and time.monotonic() < self._backoff_until

    def _await_credit(self) -> None:
        if not self.ready(0.0) and not self.ready(CREDIT_WAIT_S):
            raise TransientError(
                f"The sidecar has taken nothing for {CREDIT_WAIT_S:.0f} s. {self._backoff_reason}".strip()
            )

    def _receive(self, timeout_s: float) -> bool:
        """Takes one message in; False when none came."""
        message = self._stream.receive(timeout_s)
        if message is None:
            if self._stream.ended:
                raise TransientError("The sidecar has ended its Write stream.")
            return False
        if isinstance(message, WireFrame):
            raise ConnectorBugError("The sidecar sent a frame on a Write stream.")
        kind = message.WhichOneof("message")
        if kind == "ack":
            self._take_ack(message.ack)
        elif kind == "flushed":
            if message.flushed.id == self._flush_id:
                self._flushed = message.flushed
        elif kind == "credit":
            self._add_credit(message.credit)
        elif kind == "backoff":
            self._backoff_until = time.monotonic() + message.backoff.delay_ms / 1000
            self._backoff_reason = message.backoff.reason
        elif kind == "rewind":
            self._rewinds = from_proto.positions(message.rewind.positions)
        elif kind == "pause":
            self._paused = tuple(message.pause.partitions_json)
        return True

    def _take_ack(self, ack: sink_pb2.FrameAck) -> None:
        size = self._unacked.pop(ack.seq, None)
        if size is None:
            raise ConnectorBugError(f"The sidecar acknowledged frame {ack.seq}, which is not under way.")
        self._credit_frames += 1
        self._credit_bytes += size
        self._note(ack.seq, ack.row_errors)
        # What comes after a row that failed for now may have to be sent again.
        if not self._keep_raw and not self._suspects:
            del self._retained[ack.seq]

    def _note(self, seq: int, errors: Sequence[common_pb2.RowError]) -> None:
        if not errors:
            return
        raw = self._retained.get(seq)
        for error in errors:
            if (self._keep_raw and raw is None) or (raw is not None and error.row >= raw.num_rows):
                raise ConnectorBugError(f"The sidecar says that row {error.row} of frame {seq} failed; there is none.")
            known = from_proto.row_error(error)
            if known.error_class is ErrorClass.TRANSIENT and raw is not None:
                self._suspects.append((len(self._failed), seq))
            self._failed.append(FailedRow(raw, error.row, known))

    def _look_behind(self) -> None:
        """Adds to the rows that failed for now what was sent after them."""
        if not self._suspects:
            return
        suspects, self._suspects = self._suspects, []
        for place, seq in suspects:
            after = tuple(raw for later, raw in self._retained.items() if later > seq)
            self._failed[place] = dataclasses.replace(self._failed[place], after=after)
        if not self._keep_raw:
            self._retained = {seq: raw for seq, raw in self._retained.items() if seq in self._unacked}

    def _add_credit(self, credit: common_pb2.Credit) -> None:
        self._credit_frames += credit.frames
        self._credit_bytes += credit.bytes

    def _account(self, flushed: sink_pb2.Flushed) -> Flushed:
        for frame in flushed.failed:
            self._note(frame.seq, frame.row_errors)
        total = flushed.rows_written + flushed.rows_filtered + flushed.rows_failed
        if total != self._rows:
            raise ConnectorBugError(
                f"The sidecar was given {self._rows} rows and says what became of {total}: {flushed.rows_written} "
                f"written, {flushed.rows_failed} failed, {flushed.rows_filtered} left out.",
                reason="ROWS_LOST",
            )
        self._rows = 0
        self._look_behind()
        self._retained.clear()
        self._retained_bytes = 0
        return Flushed(
            positions=from_proto.positions(flushed.positions) or None,
            rows_written=int(flushed.rows_written),
            rows_failed=int(flushed.rows_failed),
            rows_filtered=int(flushed.rows_filtered),
            token=flushed.token,
        )
