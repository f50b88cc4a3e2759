"""One Write stream: frames to the author's sink, acks and flushes back.

Invariants: 1. each BATCH frame is acknowledged once, in order; 2. rows in = written + failed + filtered at every
flush; 3. a flush is answered after everything before it was given to the sink and its `flush` has returned.
"""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from typing import Any, Final

from opentelemetry.trace import SpanKind

from wherry.connector.v1 import common_pb2, sink_pb2
from wherry.contract import to_proto, trace
from wherry.contract.batch import RowError
from wherry.contract.errors import ConnectorBugError
from wherry.contract.frame import Encoding, FrameReader, ProtocolError
from wherry.contract.limits import TOKEN_BYTES_MAX, Limits
from wherry.contract.position import Position, compact_json
from wherry.contract.wire import WireFrame
from wherry.sdk._conversation import Conversation
from wherry.sdk.records import Batch
from wherry.sdk.sink import Account, Flushed, Sink, SinkTask

_NO_SPAN: Final = contextlib.nullcontext()


class Writing(Conversation[sink_pb2.WriteRequest | WireFrame, sink_pb2.WriteResponse]):
    """Serves one Write stream."""

    def __init__(self, sink: Sink[Any], opening: sink_pb2.WriteOpen, limits: Limits, encoding: Encoding) -> None:
        super().__init__(sink, f"write {opening.task}")
        self._sink = sink
        self._opening = opening
        self._limits = limits
        self._encoding = encoding
        self._reader = FrameReader(body_bytes_max=limits.row_bytes_max + limits.message_bytes_max)
        # Each written by one thread; their difference are the frames under way.
        self._frames_taken = 0
        self._frames_acked = 0
        self._frames_max = limits.frames_unacked_max
        self._tracing = trace.enabled()
        sink.tell = self._tell

    def beat(self, heartbeat: common_pb2.Heartbeat) -> sink_pb2.WriteResponse:
        """Returns the answer that carries a heartbeat."""
        return sink_pb2.WriteResponse(heartbeat=heartbeat)

    def receive(self, request: sink_pb2.WriteRequest | WireFrame) -> None:
        """Decodes a frame, and passes on flushes and changes of partitions."""
        if isinstance(request, WireFrame):
            self._decode(request)
        elif request.WhichOneof("message") in ("flush", "partitions"):
            self._incoming.put(request)

    def _decode(self, frame: WireFrame) -> None:
        batch = self._reader.feed(frame)
        if batch is None:
            return
        if batch.num_rows:
            self._frames_taken += 1
            if self._frames_taken - self._frames_acked > self._frames_max:
                raise ProtocolError(f"More than {self._frames_max} frames are unacknowledged; no credit was given.")
        self._incoming.put((frame.header.seq, Batch.of(batch)))

    # The author's thread.

    def open(self) -> None:
        """Opens the sink and tells what it has stored."""
        opening = self._opening
        partitions = [Position(text, None).partition_map for text in opening.partitions_json]
        stored = self._sink.open(SinkTask(opening.pipeline, opening.task, opening.generation, partitions))
        credit = common_pb2.Credit(frames=self._limits.frames_unacked_max, bytes=self._limits.bytes_unacked_max)
        opened = sink_pb2.WriteOpened(
            encoding=int(self._encoding),  # type: ignore[arg-type]  # the enums share their numbers
            credit=credit,
            positions=to_proto.positions(stored or ()),
        )
        self._outgoing.put(sink_pb2.WriteResponse(opened=opened))

    def work(self, message: Any) -> None:
        """Writes a batch, flushes, or passes on a change of partitions."""
        if isinstance(message, tuple):
            self._write(*message)
        elif message.WhichOneof("message") == "flush":
            self._flush(message.flush)
        else:
            texts = message.partitions.partitions_json
            self._sink.partitions_changed([Position(text, None).partition_map for text in texts])

    def _write(self, seq: int, batch: Batch) -> None:
        sink = self._sink
        sink.batch_seq = seq
        with self._span(batch) if self._tracing and batch.num_rows else _NO_SPAN:
            errors = sink.write_batch(batch) or []
        if not batch.num_rows:
            return
        _check_rows(errors, batch.num_rows)
        sink.account.taken += batch.num_rows
        sink.account.failed += len(errors)
        self._frames_acked += 1
        ack = sink_pb2.FrameAck(seq=seq, row_errors=map(to_proto.row_error, errors))
        self._outgoing.put(sink_pb2.WriteResponse(ack=ack))

    def _span(self, batch: Batch) -> contextlib.AbstractContextManager[Any]:
        attributes = trace.rpc_attributes("wherry.connector.v1.SinkService", "Write")
        attributes["messaging.batch.message_count"] = batch.num_rows
        parent = batch.traceparent or self._opening.traceparent
        return trace.span("write batch", parent=parent, kind=SpanKind.SERVER, attributes=attributes)

    def _flush(self, flush: sink_pb2.Flush) -> None:
        result = self._sink.flush(flush.final)
        if not isinstance(result, Flushed):
            result = Flushed(tuple(result or ()))
        if len(result.token) > TOKEN_BYTES_MAX:
            raise ConnectorBugError(f"A flush has a token of {len(result.token)} bytes; {TOKEN_BYTES_MAX} are allowed.")
        account = self._sink.account
        flushed = sink_pb2.Flushed(
            id=flush.id,
            positions=to_proto.positions(result.positions),
            token=result.token,
            rows_written=account.written,
            rows_filtered=account.filtered,
            rows_failed=account.failed_in_all,
            failed=[
                sink_pb2.FrameErrors(seq=seq, row_errors=map(to_proto.row_error, errors))
                for seq, errors in account.late.items()
            ],
        )
        self._sink.account = Account()
        self._outgoing.put(sink_pb2.WriteResponse(flushed=flushed))

    def _tell(self, what: str, **values: Any) -> None:
        """Sends what a sink asks for between acks and flushes."""
        if what == "backoff":
            message = sink_pb2.WriteResponse(backoff=sink_pb2.Backoff(**values))
        elif what == "rewind":
            message = sink_pb2.WriteResponse(rewind=sink_pb2.Rewind(positions=to_proto.positions(values["positions"])))
        else:
            texts = [compact_json(partition) for partition in values["partitions"]]
            message = sink_pb2.WriteResponse(pause=sink_pb2.PausePartitions(partitions_json=texts))
        self._outgoing.put(message)


def _check_rows(errors: Sequence[RowError], rows: int) -> None:
    numbers = {error.row for error in errors}
    if len(numbers) != len(errors) or any(not 0 <= number < rows for number in numbers):
        raise ConnectorBugError(
            f"The sink reports errors of the rows {sorted(error.row for error in errors)[:10]}; the batch has {rows} "
            "rows, and each may fail once.",
            reason="BAD_ACCOUNT",
        )
