"""One Write stream: frames to the author's sink, acks and flushes back.

Three threads: one receives and decodes, so that the next frame comes in while the last is written; one runs the
author's code, frame after frame; the stream's own sends answers and heartbeats. What waits between them is bounded by
the credit given.

Invariants: 1. each BATCH frame is acknowledged once, in order; 2. rows in = written + failed + filtered at every
flush; 3. a flush is answered after everything before it was given to the sink and its `flush` has returned.
"""

from __future__ import annotations

import contextlib
import queue
import threading
import time
from collections.abc import Iterator, Sequence
from typing import Any, Final

from opentelemetry.trace import SpanKind

from wherry.connector.v1 import common_pb2, sink_pb2
from wherry.contract import to_proto, trace
from wherry.contract.batch import RowError
from wherry.contract.errors import ConnectorBugError, TransientError
from wherry.contract.frame import Encoding, FrameReader, ProtocolError
from wherry.contract.handover import Handover
from wherry.contract.limits import HEARTBEAT_INTERVAL_S, STREAM_SILENCE_MAX_S, TOKEN_BYTES_MAX, Limits
from wherry.contract.position import Position, compact_json
from wherry.contract.wire import WireFrame
from wherry.sdk._intake import Failure, told
from wherry.sdk.records import Batch
from wherry.sdk.sink import Account, Flushed, Sink, SinkTask

# Messages waiting between the threads, beyond the frames that credit allows.
QUEUE_MAX: Final = 1024
_END: Final = object()
_NO_SPAN: Final = contextlib.nullcontext()


class Writing:
    """Serves one Write stream."""

    def __init__(self, sink: Sink[Any], opening: sink_pb2.WriteOpen, limits: Limits, encoding: Encoding) -> None:
        self._sink = sink
        self._opening = opening
        self._limits = limits
        self._encoding = encoding
        self._reader = FrameReader(body_bytes_max=limits.row_bytes_max + limits.message_bytes_max)
        self._incoming: Handover[Any] = Handover(QUEUE_MAX)
        self._outgoing: Handover[Any] = Handover(QUEUE_MAX)
        self._heard_at = time.monotonic()
        self._gone = False
        # Each written by one thread; their difference are the frames under way.
        self._frames_taken = 0
        self._frames_acked = 0
        self._frames_max = limits.frames_unacked_max
        self._tracing = trace.enabled()
        sink.tell = self._tell

    def run(self, requests: Iterator[sink_pb2.WriteRequest | WireFrame]) -> Iterator[sink_pb2.WriteResponse]:
        """Yields what goes to the engine.

        Raises:
            WherryError: What the author's code raised, or a broken rule.
        """
        threading.Thread(target=self._listen, args=(requests,), name="write requests", daemon=True).start()
        worker = threading.Thread(target=self._work, name=f"write {self._opening.task}", daemon=True)
        worker.start()
        try:
            while True:
                try:
                    message = self._outgoing.get(timeout=HEARTBEAT_INTERVAL_S)
                except queue.Empty:
                    if time.monotonic() - self._heard_at > STREAM_SILENCE_MAX_S:
                        raise TransientError(
                            f"The engine has been silent for {STREAM_SILENCE_MAX_S:.0f} s.", reason="SILENT"
                        ) from None
                    message = sink_pb2.WriteResponse(heartbeat=common_pb2.Heartbeat(time_ms=int(time.time() * 1000)))
                if message is _END:
                    return
                if isinstance(message, Failure):
                    raise told(message.error)
                yield message
        finally:
            self._leave()

    def end(self) -> None:
        """Tells the sink to end and refuses further frames."""
        self._incoming.put(Failure(TransientError("The sidecar is stopping.", reason="STOPPING")))
        self._sink.end()

    def _leave(self) -> None:
        self._gone = True
        # Both queues may be full and their threads waiting on them.
        _drop(self._incoming)
        with contextlib.suppress(queue.Full):
            self._incoming.put(_END, timeout=1.0)
        _drop(self._outgoing)

    def _listen(self, requests: Iterator[sink_pb2.WriteRequest | WireFrame]) -> None:
        last: Any = _END
        try:
            for request in requests:
                self._heard_at = time.monotonic()
                if isinstance(request, WireFrame):
                    self._decode(request)
                elif request.WhichOneof("message") in ("flush", "partitions"):
                    self._incoming.put(request)
                if self._gone:
                    return
        except Exception as error:  # a broken frame; or gRPC says in its own way that the call is over
            last = Failure(error) if isinstance(error, ConnectorBugError) else _END
        if not self._gone:
            self._incoming.put(last)

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

    def _work(self) -> None:
        try:
            self._open()
            while self._step(self._incoming.get()):
                pass
        except Exception as error:
            self._outgoing.put(Failure(error))
        finally:
            try:
                self._sink.close()
            except Exception as error:
                self._sink.log.warning("close failed", error=error)
            self._outgoing.put(_END)

    def _open(self) -> None:
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

    def _step(self, message: Any) -> bool:
        """Does what one message asks for; returns whether more may come."""
        if message is _END:
            return False
        if isinstance(message, Failure):
            raise message.error
        if isinstance(message, tuple):
            self._write(*message)
        elif message.WhichOneof("message") == "flush":
            self._flush(message.flush)
        else:
            texts = message.partitions.partitions_json
            self._sink.partitions_changed([Position(text, None).partition_map for text in texts])
        return True

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


def _drop(waiting: Handover[Any]) -> None:
    while True:
        try:
            waiting.get_nowait()
        except queue.Empty:
            return
