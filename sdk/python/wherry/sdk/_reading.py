"""One Read stream: the author's generator in a thread of its own, its rows into frames, within the credit.

The generator's thread puts what it yields into a bounded queue. The stream's own thread takes what is there, makes
frames and sends them. At low load a row goes out at once; under load, as long as rows keep coming, it waits up to
5 ms for more, and for as long as the engine gives no credit, up to the frame's target size. A third thread reads what
the engine says.

Invariants: 1. frames go out in the order of yielding; 2. no BATCH frame starts without credit; 3. rows that were
yielded before a drain, an end or an error go out before it is told.
"""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Generator, Iterator
from typing import Any, Final

from opentelemetry.trace import Span, SpanKind

from wherry.connector.v1 import common_pb2, source_pb2
from wherry.contract import batch as contract
from wherry.contract import from_proto, trace
from wherry.contract.batch import Mark as ContractMark
from wherry.contract.batch import RowError
from wherry.contract.errors import ConnectorBugError, RecordRejectedError, TransientError
from wherry.contract.frame import Encoding, FrameWriter
from wherry.contract.limits import (
    FRAME_BYTES_TARGET,
    HEARTBEAT_INTERVAL_S,
    STOP_DEADLINE_S,
    STREAM_SILENCE_MAX_S,
    Limits,
)
from wherry.contract.position import Position
from wherry.contract.wire import WireFrame
from wherry.sdk import _columns
from wherry.sdk._intake import (
    DONE,
    ROW_OBJECT_BYTES,
    ROW_OVERHEAD_BYTES,
    ROWS_QUEUED_MAX,
    SIZED,
    STOPPED,
    Failure,
    Intake,
    quietly,
    told,
)
from wherry.sdk.plan import Offsets, to_author
from wherry.sdk.records import CaughtUp, Record
from wherry.sdk.source import Source

GATHER_S: Final = 0.005
QUERY_DEADLINE_S: Final = 30.0
# The rest of a drain's time is for what must still be sent and answered.
_DRAIN_SHARE: Final = 0.8
# Yielded batches below this share of the target are joined while they wait for credit.
_JOIN_BELOW: Final = FRAME_BYTES_TARGET // 4

# How long a wait lasts at most before silence, heartbeats and deadlines are looked at again.
_POLL_S: Final = 0.5


class Reading:
    """Serves one Read stream."""

    def __init__(self, source: Source[Any], opening: source_pb2.ReadOpen, limits: Limits, encoding: Encoding) -> None:
        self._source = source
        self._limits = limits
        self._encoding = encoding
        self._writer = FrameWriter(encoding, message_bytes_max=limits.message_bytes_max)
        self._intake = Intake()
        self._wake = self._intake.condition
        self._credit_frames = opening.credit.frames
        self._credit_bytes = opening.credit.bytes
        self._target = min(opening.frame_bytes_target or FRAME_BYTES_TARGET, limits.message_bytes_max)
        self._piece_bytes_max = min(max(self._target, limits.message_bytes_max // 2), limits.row_bytes_max)
        self._split = opening.split
        self._topic = _default_topic(source)
        self._heard_at = self._said_at = time.monotonic()
        self._drain_by: float | None = None
        self._gone = False
        self._abandoned = False
        self._exhausted = False
        self._answers: dict[int, list[Position]] = {}
        self._query_id = 0
        self._queries: deque[source_pb2.ReadResponse] = deque()
        self._caught_up = False
        self._sent_at = 0.0
        self._parent = opening.traceparent
        self._tracing = trace.enabled()
        work = from_proto.work(opening.work)
        self._work = to_author(work, split=opening.split, task=opening.task, frame_bytes_target=self._target)
        self._offsets = Offsets(from_proto.positions(opening.positions), self._query if work.partitions else None)

    def run(self, requests: Iterator[source_pb2.ReadRequest]) -> Iterator[source_pb2.ReadResponse | WireFrame]:
        """Yields what goes to the engine.

        Raises:
            WherryError: What the author's code raised, or a broken rule.
        """
        threading.Thread(target=self._listen, args=(requests,), name="read requests", daemon=True).start()
        yield source_pb2.ReadResponse(opened=source_pb2.ReadOpened(encoding=int(self._encoding)))  # type: ignore[arg-type]
        threading.Thread(target=self._generate, name=f"read {self._work.id}", daemon=True).start()
        try:
            for item in self._serve():
                self._said_at = time.monotonic()
                yield item
        finally:
            self._intake.close()
            quietly(self._source.end)

    def _generate(self) -> None:
        try:
            generator = self._source.read(self._work, self._offsets)
            iterator = iter(generator)
        except Exception as error:
            self._intake.fail(error)
            return
        self._intake.run(iterator)

    def _serve(self) -> Iterator[source_pb2.ReadResponse | WireFrame]:
        while True:
            yield from self._beat()
            item = yield from self._next()
            if item is None:
                # Drained, or the engine is gone.
                if not self._gone:
                    yield source_pb2.ReadResponse(end=source_pb2.ReadEnd(complete=False))
                return
            if isinstance(item, Failure):
                raise told(item.error)
            if item is STOPPED or (item is DONE and self._split):
                yield source_pb2.ReadResponse(end=source_pb2.ReadEnd(complete=item is DONE))
                return
            if item is DONE:
                self._exhausted = True
                # A task that has nothing more for good stays, caught up, until it is drained.
                item = CaughtUp()
            if isinstance(item, CaughtUp):
                if not self._caught_up:
                    self._caught_up = True
                    caught_up = source_pb2.CaughtUp(retry_after_ms=item.retry_after_ms)
                    yield source_pb2.ReadResponse(caught_up=caught_up)
                continue
            self._caught_up = False
            yield from self._send(item)
            if self._abandoned:
                yield source_pb2.ReadResponse(end=source_pb2.ReadEnd(complete=False))
                return

    def _next(self) -> Generator[source_pb2.ReadResponse, None, Any]:
        """Waits for the next thing to do: a batch, CaughtUp, DONE, a Failure; None when the stream is to end."""
        items = self._intake.items
        while not items:
            if self._gone:
                return None
            with self._wake:
                self._intake.waiting = True
                if not items and not self._queries and not self._must_end():
                    self._wake.wait(self._patience())
                self._intake.waiting = False
            yield from self._queued()
            if not items and self._must_end():
                return None
            yield from self._beat()
        kind = type(items[0])
        if kind is Record or isinstance(items[0], (contract.Mark, RecordRejectedError)):
            return self._gathered_rows()
        return self._gathered_batch()

    def _patience(self) -> float:
        """How long a wait may last before something has to be looked at again."""
        return _POLL_S if self._drain_by is None else max(0.0, min(_POLL_S, self._drain_by - time.monotonic()))

    def _must_end(self) -> bool:
        """Whether a drain has nothing to wait for, or no time."""
        return self._drain_by is not None and (self._exhausted or time.monotonic() >= self._drain_by)

    def _gathered_rows(self) -> contract.Batch | list[contract.Batch]:
        """Takes rows, marks and row errors from the queue: all that are there, and under load those that follow."""
        self._gather()
        items = self._intake.items
        rows: list[Record] = []
        marks: list[tuple[int, Position]] = []
        errors: list[RowError] = []
        size = data = 0
        while items and data < self._target:
            item = items[0]
            if type(item) is Record:
                rows.append(item)
                value = item.value
                if type(value) in SIZED:
                    data += len(value)
                    size += len(value) + ROW_OVERHEAD_BYTES
                else:
                    size += ROW_OBJECT_BYTES
            elif isinstance(item, contract.Mark):
                marks.append((len(rows), item.position))
            elif isinstance(item, RecordRejectedError):
                errors.append(RowError.of(len(rows), item))
            else:
                break
            items.popleft()
        self._intake.taken(size)
        made = list(_columns.batches(rows, self._topic, every_mark=self._source.transaction_boundaries)) if rows else []
        self._learn(made, len(rows))
        return _with_extras(made, marks, errors)

    def _gather(self) -> None:
        """Under load, waits a little while rows keep coming."""
        started = time.monotonic()
        if started - self._sent_at > GATHER_S and self._credit_frames > 0:
            return
        items = self._intake.items
        while not self._intake.closed and len(items) < self._intake.rows_max and time.monotonic() - started < GATHER_S:
            before = len(items)
            time.sleep(0.0003)
            if len(items) == before:
                return

    def _gathered_batch(self) -> Any:
        """Takes one item that isn't a row; small batches of one make are joined while they wait."""
        items = self._intake.items
        item = items.popleft()
        if not isinstance(item, contract.Batch):
            if item is not DONE and item is not STOPPED and not isinstance(item, (CaughtUp, Failure)):
                raise ConnectorBugError(
                    f"read yielded a {type(item).__name__}; it may yield Record, Batch, Mark, CaughtUp and "
                    "RecordRejectedError.",
                    reason="BAD_YIELD",
                )
            return item
        size = item.nbytes
        joined = [item]
        while size < _JOIN_BELOW and items and isinstance(items[0], contract.Batch):
            other = items[0]
            if other.constants != item.constants or not other.records.schema.equals(item.records.schema):
                break
            items.popleft()
            joined.append(other)
            size += other.nbytes
        self._intake.taken(size)
        batch = contract.concat(joined) if len(joined) > 1 else item
        if batch.constants.topic is None and self._topic and batch.stored(contract.TOPIC) is None:
            constants = contract.Constants(
                self._topic, batch.constants.partition, batch.constants.first_offset, batch.constants.timestamp_ms
            )
            batch = batch.with_constants(constants)
        return batch

    def _learn(self, made: list[contract.Batch], rows: int) -> None:
        """Lets the queue hold about a frame's worth of rows."""
        if rows:
            average = max(1, sum(batch.nbytes for batch in made) // rows)
            self._intake.rows_max = max(16, min(ROWS_QUEUED_MAX, self._target // average))

    def _send(self, item: contract.Batch | list[contract.Batch]) -> Iterator[source_pb2.ReadResponse | WireFrame]:
        """Sends batches in frames of bearable size, each once there is credit for it."""
        for whole in item if isinstance(item, list) else [item]:
            if whole.num_rows == 0:
                yield from self._writer.wire(whole)
                continue
            for batch in whole.split(self._piece_bytes_max):
                if batch.num_rows == 1 and batch.nbytes > self._limits.row_bytes_max:
                    yield from self._writer.wire(_too_large(batch, self._limits.row_bytes_max))
                    continue
                yield from self._await_credit()
                if self._gone or self._abandoned:
                    return
                span = self._span(batch.num_rows) if self._tracing else None
                frames = self._writer.wire(batch if span is None else _within(span, batch))
                self._credit_frames -= 1
                self._credit_bytes -= sum(frame.body.size for frame in frames if frame.header.row_count)
                self._sent_at = time.monotonic()
                yield from frames
                if span is not None:
                    span.end()

    def _span(self, rows: int) -> Span:
        attributes = trace.rpc_attributes("wherry.connector.v1.SourceService", "Read")
        attributes["messaging.batch.message_count"] = rows
        return trace.started("read batch", parent=self._parent, kind=SpanKind.SERVER, attributes=attributes)

    def _await_credit(self) -> Iterator[source_pb2.ReadResponse]:
        while (self._credit_frames <= 0 or self._credit_bytes <= 0) and not self._gone:
            with self._wake:
                if (self._credit_frames <= 0 or self._credit_bytes <= 0) and not self._queries:
                    self._wake.wait(self._patience())
            yield from self._queued()
            if self._must_end():
                # What isn't sent is read again: its marks aren't sent either.
                self._abandoned = True
                return
            yield from self._beat()

    def _queued(self) -> Iterator[source_pb2.ReadResponse]:
        while self._queries:
            yield self._queries.popleft()

    def _beat(self) -> Iterator[source_pb2.ReadResponse]:
        """Says a heartbeat when nothing else was said for long; listens for the engine's.

        NB: a source that says CaughtUp again and again says nothing to the engine.
        """
        now = time.monotonic()
        if now - self._heard_at > STREAM_SILENCE_MAX_S:
            raise TransientError(f"The engine has been silent for {STREAM_SILENCE_MAX_S:.0f} s.", reason="SILENT")
        if now - self._said_at >= HEARTBEAT_INTERVAL_S:
            yield source_pb2.ReadResponse(heartbeat=common_pb2.Heartbeat(time_ms=int(time.time() * 1000)))

    # What the engine says.

    def _listen(self, requests: Iterator[source_pb2.ReadRequest]) -> None:
        try:
            for request in requests:
                self._hear(request)
        except Exception:  # gRPC says in its own way that the call is over
            with self._wake:
                self._gone = True
                self._intake.closed = True
                self._wake.notify_all()
            quietly(self._source.end)
        else:
            # Nothing more will come, not even credit: the engine waits for the end.
            self.drain(STOP_DEADLINE_S)

    def drain(self, deadline_s: float) -> None:
        """Comes to an end: what was yielded is sent, the generator is told to return."""
        with self._wake:
            if self._drain_by is None:
                self._drain_by = time.monotonic() + _DRAIN_SHARE * deadline_s
            self._intake.closed = True
            self._wake.notify_all()
        quietly(self._source.end)

    def _hear(self, request: source_pb2.ReadRequest) -> None:
        self._heard_at = time.monotonic()
        message = request.WhichOneof("message")
        if message == "committed":
            positions = from_proto.positions(request.committed.positions)
            try:
                self._source.committed(positions)
            except Exception as error:
                # Invariant 3 doesn't hold for this one: the author's bookkeeping is broken, so the stream breaks off.
                self._intake.fail(error)
            return
        with self._wake:
            if message == "credit":
                self._credit_frames += request.credit.frames
                self._credit_bytes += request.credit.bytes
            elif message == "offset_answer":
                self._answers[request.offset_answer.id] = list(from_proto.positions(request.offset_answer.positions))
            self._wake.notify_all()
        if message == "drain":
            self.drain(request.drain.deadline_ms / 1000)

    def _query(self, partition: str) -> Position | None:
        """Asks the engine for a stored position; called by the author's thread."""
        with self._wake:
            self._query_id += 1
            mine = self._query_id
            query = source_pb2.OffsetQuery(id=mine, partitions_json=[partition])
            self._queries.append(source_pb2.ReadResponse(offset_query=query))
            self._wake.notify_all()
            came = self._wake.wait_for(lambda: mine in self._answers or self._gone, QUERY_DEADLINE_S)
            answer = self._answers.pop(mine, [])
        if not came:
            raise TransientError(f"The engine didn't answer a query for the offset of {partition}.")
        return answer[0] if answer and answer[0].offset is not None else None


def _with_extras(
    made: list[contract.Batch], marks: list[tuple[int, Position]], errors: list[RowError]
) -> list[contract.Batch]:
    """Puts marks and row errors, numbered through all rows, to the batches they stand in."""
    if not marks and not errors:
        return made
    if not made:
        empty = contract.mark_only(*(ContractMark(0, position) for _, position in marks))
        return [contract.Batch(empty.records, marks=empty.marks, row_errors=tuple(errors))]
    out = []
    start = 0
    for place, batch in enumerate(made):
        end = start + batch.num_rows
        first = place == 0

        def mine(row: int, start: int = start, end: int = end, first: bool = first) -> bool:
            return start < row <= end or (first and row == 0)

        own = [ContractMark(row - start, position) for row, position in marks if mine(row)]
        both = sorted([*batch.marks, *own], key=lambda mark: mark.row_count)
        mine_errors = tuple(
            RowError(error.row - start, error.error_class, error.reason, error.field_path, error.message, error.raw)
            for error in errors
            if mine(error.row)
        )
        out.append(contract.Batch(batch.records, batch.constants, tuple(both), mine_errors, batch.traceparent))
        start = end
    return out


def _within(span: Span, batch: contract.Batch) -> contract.Batch:
    """Lets what becomes of a batch belong to a span."""
    parent = trace.traceparent_of(span)
    return contract.Batch(batch.records, batch.constants, batch.marks, batch.row_errors, parent)


def _too_large(batch: contract.Batch, bytes_max: int) -> contract.Batch:
    """Makes a row error of a row over the limit; never a silent drop."""
    rejected = RecordRejectedError(
        f"The row has {batch.nbytes} bytes; {bytes_max} are allowed.", reason="ROW_TOO_LARGE"
    )
    marks = tuple(ContractMark(0, mark.position) for mark in batch.marks)
    empty = contract.mark_only()
    return contract.Batch(empty.records, marks=marks, row_errors=(RowError.of(0, rejected), *batch.row_errors))


def _default_topic(source: Source[Any]) -> str | None:
    topic = getattr(source.config, "topic", None)
    return topic if isinstance(topic, str) and topic else None
