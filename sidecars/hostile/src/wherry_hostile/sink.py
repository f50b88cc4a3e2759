"""The sink: writes a line for each row, keeps the rules, and breaks those that it was asked to break."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import grpc
import pyarrow as pa

from wherry.connector.v1 import common_pb2, sink_pb2, sink_pb2_grpc
from wherry.contract import rpc
from wherry.contract.batch import Batch
from wherry.contract.description import Role
from wherry.contract.errors import ConnectorBugError, FencedError
from wherry.contract.frame import FrameReader
from wherry.contract.limits import BYTES_UNACKED_MAX, FRAMES_UNACKED_MAX, HEARTBEAT_INTERVAL_S
from wherry_hostile.binding import Binding, Bound
from wherry_hostile.inbox import CLOSED, Inbox
from wherry_hostile.modes import HANG_S, Wishes

POLL_S: Final = 0.02
BAD_VALUE: Final = "bad"
FAR_OFFSET: Final = '{"kafka_offset":999999999}'


class HostileSink(sink_pb2_grpc.SinkServiceServicer):
    """SinkService."""

    def __init__(self, binding: Binding) -> None:
        self._binding = binding

    def EnsureTarget(  # noqa: N802 - gRPC's names
        self, _: sink_pb2.EnsureTargetRequest, context: grpc.ServicerContext
    ) -> sink_pb2.EnsureTargetResponse | None:
        """Any schema will do."""
        try:
            self._binding.wishes.at("ensure")
        except Exception as error:
            rpc.abort(context, error)
        return sink_pb2.EnsureTargetResponse(target="lines")

    def Commit(  # noqa: N802
        self, _: sink_pb2.CommitRequest, context: grpc.ServicerContext
    ) -> sink_pb2.CommitResponse | None:
        """There are no tokens."""
        try:
            self._binding.wishes.at("commit")
        except Exception as error:
            rpc.abort(context, error)
        return sink_pb2.CommitResponse()

    def AlterOffsets(  # noqa: N802
        self, _: sink_pb2.SinkServiceAlterOffsetsRequest, context: grpc.ServicerContext
    ) -> sink_pb2.SinkServiceAlterOffsetsResponse | None:
        """Any position will do."""
        try:
            self._binding.wishes.at("alter")
        except Exception as error:
            rpc.abort(context, error)
        return sink_pb2.SinkServiceAlterOffsetsResponse()

    def Write(  # noqa: N802
        self, requests: Iterator[sink_pb2.WriteRequest], context: grpc.ServicerContext
    ) -> Iterator[sink_pb2.WriteResponse]:
        """Takes rows."""
        entered = False
        try:
            inbox = Inbox(requests)
            first = inbox.get(HEARTBEAT_INTERVAL_S)
            if not isinstance(first, sink_pb2.WriteRequest) or not first.HasField("open"):
                raise ConnectorBugError("The first message of a Write stream has to be open.")
            bound = self._binding.enter(Role.SINK, first.open.generation)
            entered = True
            bound.settings.wishes.at("write")
            yield from _Writer(self._binding, bound, first.open, inbox, context).messages()
        except Exception as error:
            rpc.abort(context, error)
        finally:
            if entered:
                self._binding.leave()


class _Writer:
    """One Write stream."""

    def __init__(
        self,
        binding: Binding,
        bound: Bound,
        opening: sink_pb2.WriteOpen,
        inbox: Inbox,
        context: grpc.ServicerContext,
    ) -> None:
        self._binding = binding
        self._bound = bound
        self._wishes: Wishes = bound.settings.wishes
        self._inbox = inbox
        self._context = context
        self._encoding = opening.encodings[0]
        self._reader = FrameReader()
        self._taken = 0
        self._lines: list[str] = []
        self._rows = self._failed = 0
        self._positions: dict[str, str | None] = {}
        self._pair: sink_pb2.WriteResponse | None = None
        self._said_at = time.monotonic()

    def messages(self) -> Iterator[sink_pb2.WriteResponse]:
        """What the stream says, to its end."""
        if "no-opened" not in self._wishes:
            frames = 0 if "no-credit" in self._wishes else FRAMES_UNACKED_MAX
            credit = common_pb2.Credit(frames=frames, bytes=BYTES_UNACKED_MAX if frames else 0)
            yield sink_pb2.WriteResponse(opened=sink_pb2.WriteOpened(encoding=self._encoding, credit=credit))
        while self._context.is_active():
            if self._bound.fenced.is_set():
                raise FencedError(f"Generation {self._bound.generation} was replaced.")
            if self._binding.stopping.is_set() or self._wishes.midway(self._taken):
                return
            request = self._inbox.get(POLL_S)
            if request is CLOSED:
                if "ignore-close" not in self._wishes:
                    return
                time.sleep(HANG_S)
            yield from self._answers(request)

    def _answers(self, request: sink_pb2.WriteRequest | None) -> Iterator[sink_pb2.WriteResponse]:
        silent = "silence" in self._wishes and self._taken >= self._wishes.after_rows
        kind = request.WhichOneof("message") if request is not None else None
        if request is not None and kind == "frame":
            batch = self._reader.feed(request.frame)
            answers = self._take(self._reader.last_seq, batch) if batch is not None else iter(())
        elif request is not None and kind == "flush":
            self._wishes.at("flush")
            answers = self._flush(request.flush)
        elif kind is None and time.monotonic() - self._said_at >= HEARTBEAT_INTERVAL_S:
            beat = common_pb2.Heartbeat(time_ms=int(time.time() * 1000))
            answers = iter((sink_pb2.WriteResponse(heartbeat=beat),))
        else:
            return
        for answer in answers:
            if not silent:
                self._said_at = time.monotonic()
                yield answer

    def _take(self, seq: int, batch: Batch) -> Iterator[sink_pb2.WriteResponse]:
        self._positions |= {mark.position.partition: mark.position.offset for mark in batch.marks}
        if not batch.num_rows:
            return
        values = _texts(batch.value)
        errors = [
            common_pb2.RowError(
                row=index, error_class=common_pb2.ERROR_CLASS_SCHEMA, reason="BAD_ROW", message=f"Row {index} is bad."
            )
            for index, value in enumerate(values)
            if value.strip('"') == BAD_VALUE or ("bad-rows" in self._wishes and index % 10 == 9)
        ]
        failed = {error.row for error in errors}
        self._lines += [value for index, value in enumerate(values) if index not in failed]
        self._rows += len(values)
        self._failed += len(failed)
        self._taken += len(values)
        if "error-beyond" in self._wishes:
            errors.append(
                common_pb2.RowError(row=len(values), error_class=common_pb2.ERROR_CLASS_SCHEMA, message="None.")
            )
        yield from self._acks(sink_pb2.WriteResponse(ack=sink_pb2.FrameAck(seq=seq, row_errors=errors)))

    def _acks(self, ack: sink_pb2.WriteResponse) -> Iterator[sink_pb2.WriteResponse]:
        wishes = self._wishes
        if "no-ack" in wishes:
            return
        if "slow-ack" in wishes:
            time.sleep(wishes.delay_ms / 1000)
        if "ack-unknown" in wishes:
            ack.ack.seq += 1000
        if "ack-order" in wishes:
            if self._pair is None:
                self._pair = ack
                return
            yield ack
            ack, self._pair = self._pair, None
        yield ack
        if "ack-twice" in wishes:
            yield ack
        if "backoff" in wishes:
            yield sink_pb2.WriteResponse(backoff=sink_pb2.Backoff(delay_ms=wishes.delay_ms, reason="I was asked to."))

    def _flush(self, flush: sink_pb2.Flush) -> Iterator[sink_pb2.WriteResponse]:
        if self._bound.settings.file and "lied-rows" not in self._wishes:
            _append(Path(self._bound.settings.file), self._lines)
        flushed = sink_pb2.Flushed(id=flush.id, rows_written=self._rows - self._failed, rows_failed=self._failed)
        for partition, offset in self._positions.items():
            far = "far-positions" in self._wishes
            flushed.positions.add(partition_json=partition, offset_json=FAR_OFFSET if far else offset)
        if "lost-rows" in self._wishes and flushed.rows_written:
            flushed.rows_written -= 1
        if "flush-id" in self._wishes:
            flushed.id += 7
        self._lines, self._rows, self._failed = [], 0, 0
        yield sink_pb2.WriteResponse(flushed=flushed)


def _texts(values: pa.Array) -> list[str]:
    storage: Any = values.storage if isinstance(values, pa.ExtensionArray) else values
    return [str(value).replace("\n", " ") for value in storage.to_pylist()]


def _append(path: Path, lines: list[str]) -> None:
    with path.open("a", encoding="utf-8") as out:
        out.writelines(f"{line}\n" for line in lines)
        out.flush()
        os.fsync(out.fileno())
