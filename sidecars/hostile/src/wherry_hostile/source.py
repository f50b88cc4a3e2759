"""The source: counts from 1, keeps the rules, and breaks those that it was asked to break."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from typing import Final

import grpc
import pyarrow as pa

from wherry.connector.v1 import common_pb2, frame_pb2, source_pb2, source_pb2_grpc
from wherry.contract import rpc
from wherry.contract.batch import Batch, Constants, Mark, RowError, of_value
from wherry.contract.description import Role
from wherry.contract.errors import ConnectorBugError, ErrorClass, FencedError
from wherry.contract.frame import Encoding, FrameWriter
from wherry.contract.limits import HEARTBEAT_INTERVAL_S, MESSAGE_BYTES_MAX
from wherry.contract.position import Position
from wherry_hostile.binding import Binding, Bound
from wherry_hostile.inbox import CLOSED, Inbox
from wherry_hostile.modes import Wishes

PARTITION: Final = '{"hostile":0}'
ROW_BYTES: Final = 100
FRAME_ROWS_MAX: Final = 10_000
FRAME_BYTES_TARGET: Final = 2 * 1024 * 1024
POLL_S: Final = 0.02
UNKNOWN_SCHEMA: Final = 99


class HostileSource(source_pb2_grpc.SourceServiceServicer):
    """SourceService."""

    def __init__(self, binding: Binding) -> None:
        self._binding = binding

    def Plan(  # noqa: N802 - gRPC's names
        self, _: source_pb2.PlanRequest, context: grpc.ServicerContext
    ) -> source_pb2.PlanResponse | None:
        """One task."""
        try:
            self._binding.wishes.at("plan")
            self._binding.current(Role.SOURCE)
        except Exception as error:
            rpc.abort(context, error)
        return source_pb2.PlanResponse(tasks=[source_pb2.Work(id="0", partitions_json=[PARTITION])])

    def AlterOffsets(  # noqa: N802
        self, _: source_pb2.AlterOffsetsRequest, context: grpc.ServicerContext
    ) -> source_pb2.AlterOffsetsResponse | None:
        """Any position will do."""
        try:
            self._binding.wishes.at("alter")
        except Exception as error:
            rpc.abort(context, error)
        return source_pb2.AlterOffsetsResponse()

    def Read(  # noqa: N802
        self, requests: Iterator[source_pb2.ReadRequest], context: grpc.ServicerContext
    ) -> Iterator[source_pb2.ReadResponse]:
        """Streams rows."""
        entered = False
        try:
            inbox = Inbox(requests)
            first = inbox.get(HEARTBEAT_INTERVAL_S)
            if not isinstance(first, source_pb2.ReadRequest) or not first.HasField("open"):
                raise ConnectorBugError("The first message of a Read stream has to be open.")
            bound = self._binding.enter(Role.SOURCE, first.open.generation)
            entered = True
            bound.settings.wishes.at("read")
            yield from _Reader(self._binding, bound, first.open, inbox, context).messages()
        except Exception as error:
            rpc.abort(context, error)
        finally:
            if entered:
                self._binding.leave()


class _Reader:
    """One Read stream."""

    def __init__(
        self,
        binding: Binding,
        bound: Bound,
        opening: source_pb2.ReadOpen,
        inbox: Inbox,
        context: grpc.ServicerContext,
    ) -> None:
        self._binding = binding
        self._bound = bound
        self._wishes: Wishes = bound.settings.wishes
        self._inbox = inbox
        self._context = context
        self._encoding = Encoding(opening.encodings[0])
        message_bytes_max = 1 << 30 if "big-message" in self._wishes else MESSAGE_BYTES_MAX
        self._writer = FrameWriter(self._encoding, message_bytes_max=message_bytes_max)
        self._frames_left, self._bytes_left = opening.credit.frames, opening.credit.bytes
        target = opening.frame_bytes_target or FRAME_BYTES_TARGET
        self._rows_target = max(1, min(target // ROW_BYTES, FRAME_ROWS_MAX))
        self._row = next((_row_of(known) for known in opening.positions if known.partition_json == PARTITION), 0)
        self._sent = 0
        self._gap = 0
        self._draining = self._closed = self._caught_up = False
        self._said_at = time.monotonic()

    def messages(self) -> Iterator[source_pb2.ReadResponse]:
        """What the stream says, to its end."""
        if "no-opened" not in self._wishes:
            opened = source_pb2.ReadOpened(encoding=int(self._encoding))  # type: ignore[arg-type]
            yield source_pb2.ReadResponse(opened=opened)
        while self._context.is_active():
            self._listen(0)
            if self._over():
                yield from self._end()
                return
            if self._wishes.midway(self._sent):
                return
            if self._silent:
                self._listen(POLL_S)
            elif self._exhausted:
                yield from self._wait()
            elif (self._frames_left > 0 and self._bytes_left > 0) or "over-credit" in self._wishes:
                yield from self._batch()
            else:
                yield from self._wait()

    @property
    def _silent(self) -> bool:
        return "silence" in self._wishes and self._sent >= self._wishes.after_rows

    @property
    def _exhausted(self) -> bool:
        return 0 < self._bound.settings.count <= self._row

    def _over(self) -> bool:
        """Whether the stream is to end.

        Raises:
            FencedError: A newer generation has taken over.
        """
        if self._bound.fenced.is_set():
            raise FencedError(f"Generation {self._bound.generation} was replaced.")
        draining = self._draining and "ignore-drain" not in self._wishes and not self._silent
        return self._closed or draining or self._binding.stopping.is_set()

    def _end(self) -> Iterator[source_pb2.ReadResponse]:
        yield source_pb2.ReadResponse(end=source_pb2.ReadEnd())
        if "after-end" in self._wishes:
            yield from self._batch()

    def _wait(self) -> Iterator[source_pb2.ReadResponse]:
        """Says that there is no more, or a heartbeat, or nothing."""
        if self._exhausted and not self._caught_up and "never-caught-up" not in self._wishes:
            self._caught_up = True
            yield source_pb2.ReadResponse(caught_up=source_pb2.CaughtUp())
        elif time.monotonic() - self._said_at >= HEARTBEAT_INTERVAL_S:
            self._said_at = time.monotonic()
            yield source_pb2.ReadResponse(heartbeat=common_pb2.Heartbeat(time_ms=int(time.time() * 1000)))
        self._listen(POLL_S)

    def _listen(self, timeout_s: float) -> None:
        """Takes in what the engine has said."""
        while (request := self._inbox.get(timeout_s)) is not None:
            if request is CLOSED:
                self._closed = True
                return
            kind = request.WhichOneof("message")
            if kind == "credit":
                self._frames_left += request.credit.frames
                self._bytes_left += request.credit.bytes
            elif kind == "drain":
                self._draining = True
            timeout_s = 0

    def _batch(self) -> Iterator[source_pb2.ReadResponse]:
        rows = self._rows_target
        if self._bound.settings.count:
            rows = min(rows, self._bound.settings.count - self._row)
        if self._sent < self._wishes.after_rows:
            # The misbehaviour begins after exactly so many rows.
            rows = min(rows, self._wishes.after_rows - self._sent)
        big = not {"big-row", "big-message", "lost-chunk"}.isdisjoint(self._wishes.modes)
        rows = 1 if big else max(1, rows)
        batch = self._rows(rows, self._wishes.big_bytes if big else 0)
        self._row += rows
        self._sent += rows
        frames = list(self._writer.frames(batch))
        self._damage(frames, rows)
        for frame in frames:
            if frame.kind == frame_pb2.FRAME_KIND_BATCH:
                self._frames_left -= frame.chunk_index == 0
                self._bytes_left -= len(frame.body)
            yield source_pb2.ReadResponse(frame=frame)
        self._said_at = time.monotonic()

    def _rows(self, count: int, row_bytes: int) -> Batch:
        """Makes the next rows, with whatever may be wrong in them."""
        numbers = range(self._row + 1, self._row + 1 + count)
        errors: list[RowError] = []
        if "row-errors" in self._wishes:
            errors = [
                RowError(index, ErrorClass.SCHEMA, "BAD_ROW", "", f"Row {n} can't be read.", f"row {n}".encode())
                for index, n in enumerate(numbers)
                if n % 10 == 0
            ]
            numbers_read = [n for n in numbers if n % 10]
        else:
            numbers_read = [n for n in numbers for _ in range(2 if "repeat-rows" in self._wishes else 1)]
        values = [f"row {n}".ljust(row_bytes, "x") for n in numbers_read]
        mark = Mark(len(values), Position(PARTITION, f'{{"row":{numbers[-1]}}}'))
        return Batch(
            of_value(pa.array(values, pa.string())).records,
            Constants(topic=self._bound.settings.topic),
            () if "no-marks" in self._wishes else (mark,),
            tuple(errors),
        )

    def _damage(self, frames: list[frame_pb2.Frame], rows: int) -> None:
        """Breaks what was asked to be broken, in frames that are in order."""
        wishes = self._wishes
        if "unknown-schema" in wishes:
            frames[:] = [frame for frame in frames if frame.kind != frame_pb2.FRAME_KIND_SCHEMA]
            self._gap -= 1 if self._sent == rows else 0
        if "lost-chunk" in wishes and frames[-1].chunk_count > 2:
            frames[:] = [frame for frame in frames if frame.chunk_index != 1]
        if "seq-gap" in wishes and self._sent > rows:
            self._gap += 1
        for frame in frames:
            frame.seq += self._gap
            if frame.kind == frame_pb2.FRAME_KIND_BATCH:
                self._damage_batch(frame)

    def _damage_batch(self, frame: frame_pb2.Frame) -> None:
        wishes = self._wishes
        if "unknown-schema" in wishes:
            frame.schema_id = UNKNOWN_SCHEMA
        if "garbage" in wishes:
            frame.body = b"\xff" * len(frame.body)
        if "row-count" in wishes:
            frame.row_count += 1
        if not frame.marks:
            return
        if "marks-back" in wishes:
            frame.marks.add(row_count=0, position=frame.marks[0].position)
        if "marks-beyond" in wishes:
            frame.marks[0].row_count += 5
        if "loose-json" in wishes:
            frame.marks[0].position.partition_json = PARTITION.replace(":", ": ")


def _row_of(position: common_pb2.Position) -> int:
    try:
        return int(json.loads(position.offset_json)["row"]) if position.HasField("offset_json") else 0
    except (ValueError, KeyError, TypeError) as error:
        raise ConnectorBugError(f"{position.offset_json} is no offset of the hostile source.") from error
