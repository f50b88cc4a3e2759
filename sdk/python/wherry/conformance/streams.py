"""The engine's side of a Read or a Write stream, which watches the rules of the contract at every message.

Whatever a case is about, a broken rule fails it: these checks are made on each message that comes by.
"""

from __future__ import annotations

import contextlib
import queue
import re
import threading
import time
from collections.abc import Iterator
from typing import Any, Final

import grpc

from wherry.conformance.failure import Failure
from wherry.conformance.rows import Row, rows_of
from wherry.conformance.wire import Wire, expect_error
from wherry.connector.v1 import common_pb2, frame_pb2, sink_pb2, source_pb2
from wherry.contract.batch import Batch
from wherry.contract.errors import WherryError
from wherry.contract.frame import ALL_ENCODINGS, Encoding, FrameReader, FrameWriter

QUEUE_MESSAGES_MAX: Final = 4096
RECEIVE_DEADLINE_S: Final = 20.0
CREDIT_FRAMES: Final = 8
CREDIT_BYTES: Final = 16 * 1024 * 1024
_STRINGS: Final = re.compile(r'"(?:[^"\\]|\\.)*"')


class Closed:
    """The end of a stream: None for OK, otherwise its status."""

    def __init__(self, error: grpc.RpcError | None) -> None:
        self.error = error


class Stream:
    """Both directions of a stream as queues, so that every wait has a deadline."""

    def __init__(self, wire: Wire, name: str, first: Any) -> None:
        self._outgoing: queue.SimpleQueue[Any] = queue.SimpleQueue()
        self._incoming: queue.Queue[Any] = queue.Queue(QUEUE_MESSAGES_MAX)
        self._outgoing.put(first)
        self._call = wire.stream(name, self._requests())
        self._closed: Closed | None = None
        threading.Thread(target=self._pump, daemon=True).start()

    def send(self, message: Any) -> None:
        """Sends a message; never waits."""
        self._outgoing.put(message)

    def half_close(self) -> None:
        """Says that nothing more will be sent."""
        self._outgoing.put(None)

    def cancel(self) -> None:
        """Breaks the stream off."""
        self._call.cancel()
        self._outgoing.put(None)
        # The pump may be waiting for room.
        with contextlib.suppress(queue.Empty):
            while True:
                self._incoming.get_nowait()

    def get(self, deadline: float) -> Any:
        """Returns the next message, or a `Closed`; None when the deadline passes first."""
        if self._closed is not None:
            return self._closed
        try:
            message = self._incoming.get(timeout=max(0.0, deadline - time.monotonic()))
        except queue.Empty:
            return None
        if isinstance(message, Closed):
            self._closed = message
        return message

    def pass_time(self, seconds: float) -> None:
        """Takes in what comes in some time.

        Raises:
            Failure: The stream ended, or a message breaks a rule.
        """
        deadline = time.monotonic() + seconds
        while (message := self.get(deadline)) is not None:
            if isinstance(message, Closed):
                if message.error is None and self.may_end:
                    return
                how = "well" if message.error is None else f"with {told(message.error)}"
                raise Failure(f"The stream ended {how} by itself.")
            self.look_at(message)
            if time.monotonic() >= deadline:
                return

    def expect_end(self, errors: list[str], within_s: float, *, or_well: bool = False) -> None:
        """Waits for the end of the stream and passes over what comes before it.

        Raises:
            Failure: It didn't end, or not in the way that was expected: with one of `errors`, or well if there are none
                (or if `or_well`).
        """
        deadline = time.monotonic() + within_s
        while True:
            message = self.get(deadline)
            if message is None:
                raise Failure(f"The stream did not end within {within_s:g} s.")
            if isinstance(message, Closed):
                break
            self.look_at(message)
        if message.error is None:
            if errors and not or_well:
                raise Failure(f"The stream ended well; it should have failed with {' or '.join(errors)}.")
        elif not errors:
            raise Failure(f"The stream failed: {told(message.error)}.")
        else:
            expect_error(message.error, errors)

    @property
    def may_end(self) -> bool:
        """Whether the sidecar has said that it is about to close the stream."""
        return False

    def look_at(self, message: Any) -> None:
        """Checks a message that a case has no interest in."""

    def _requests(self) -> Iterator[Any]:
        while (message := self._outgoing.get()) is not None:
            yield message

    def _pump(self) -> None:
        try:
            for message in self._call:
                self._incoming.put(message)
        except grpc.RpcError as error:
            self._incoming.put(Closed(error))
        else:
            self._incoming.put(Closed(None))


class Reading(Stream):
    """A Read stream.

    Attributes:
        rows: Rows that have come.
        marks: Positions that have come, with the number of rows before each.
        frames: BATCH frames that have come, whole ones.
        caught_up: Whether the sidecar has said so since the last row.
        end: The last message; None before.
        give_back: Whether credit is returned for every frame, as the engine does.
    """

    def __init__(self, wire: Wire, opening: source_pb2.ReadOpen, *, give_back: bool) -> None:
        super().__init__(wire, "SourceService.Read", source_pb2.ReadRequest(open=opening))
        self.rows: list[Row] = []
        self.marks: list[tuple[int, str, str | None]] = []
        self.frames = 0
        self.row_errors = 0
        self.caught_up = False
        self.end: source_pb2.ReadEnd | None = None
        self.give_back = give_back
        self._spent_bytes = 0
        self._asked = list(opening.encodings)
        self._encoding: int | None = None
        self._frames_left = opening.credit.frames
        self._bytes_left = opening.credit.bytes
        self._reader = FrameReader()

    @property
    def may_end(self) -> bool:
        """Whether `end` has come."""
        return self.end is not None

    def grant(self, frames: int, size: int) -> None:
        """Gives credit."""
        self._frames_left += frames
        self._bytes_left += size
        self.send(source_pb2.ReadRequest(credit=common_pb2.Credit(frames=frames, bytes=size)))

    def step(self, deadline: float) -> bool:
        """Takes the next message.

        Returns:
            False when the stream has ended.

        Raises:
            Failure: The deadline passed, the stream failed, or the message breaks a rule.
        """
        message = self.get(deadline)
        if message is None:
            raise Failure(
                f"Nothing more came from the source in time; {len(self.rows)} rows in {self.frames} frames had come."
            )
        if isinstance(message, Closed):
            if message.error is not None:
                raise Failure(f"The Read stream failed: {told(message.error)}.")
            return False
        self.look_at(message)
        return True

    def positions(self, rows: int | None = None) -> dict[str, str | None]:
        """Returns where each partition stood after some rows; None means after all that came."""
        return {partition: offset for before, partition, offset in self.marks if rows is None or before <= rows}

    def look_at(self, message: source_pb2.ReadResponse) -> None:
        """Takes a message in and checks it."""
        kind = message.WhichOneof("message")
        if (self._encoding is None) != (kind == "opened"):
            raise Failure(f"`opened` comes first and once on a Read stream; there came {kind or 'an empty message'}.")
        if self.end is not None and kind != "heartbeat":
            raise Failure(f"After `end` came {kind}.")
        if kind == "opened":
            self._encoding = message.opened.encoding
            if self._encoding not in self._asked:
                raise Failure(f"The source chose the encoding {self._encoding}, which was not among {self._asked}.")
        elif kind == "frame":
            self._take(message.frame)
        elif kind == "caught_up":
            self.caught_up = True
        elif kind == "end":
            self.end = message.end
        elif kind == "offset_query":
            for partition in message.offset_query.partitions_json:
                expect_compact(partition, "a partition of offset_query")
            answer = source_pb2.OffsetAnswer(id=message.offset_query.id)
            answer.positions.extend(
                common_pb2.Position(partition_json=partition) for partition in message.offset_query.partitions_json
            )
            self.send(source_pb2.ReadRequest(offset_answer=answer))

    def _take(self, frame: frame_pb2.Frame) -> None:
        size = len(frame.body)
        batch_frame = frame.kind == frame_pb2.FRAME_KIND_BATCH
        if batch_frame:
            self._spend(frame, size)
        for mark in frame.marks:
            expect_compact(mark.position.partition_json, "the partition of a mark")
            if mark.position.HasField("offset_json"):
                expect_compact(mark.position.offset_json, "the offset of a mark")
        batch = read_frame(self._reader, frame)
        if batch is None:
            return
        before = len(self.rows)
        self.rows += rows_of(batch)
        self.row_errors += len(batch.row_errors)
        for row_error in batch.row_errors:
            if not row_error.message:
                raise Failure(f"The row error of row {row_error.row} in frame {frame.seq} has no message.")
        self.marks += [(before + mark.row_count, mark.position.partition, mark.position.offset) for mark in batch.marks]
        if batch.num_rows:
            self.caught_up = False

    def _spend(self, frame: frame_pb2.Frame, size: int) -> None:
        """Checks that there was credit. A chunked batch is one frame; the bytes of every chunk count."""
        if frame.encoding != self._encoding:
            raise Failure(f"Frame {frame.seq} has the encoding {frame.encoding}; `opened` said {self._encoding}.")
        if frame.chunk_index == 0:
            if self._frames_left <= 0 or self._bytes_left <= 0:
                raise Failure(
                    f"Frame {frame.seq} came without credit; {self._frames_left} frames and {self._bytes_left} bytes "
                    "were left."
                )
            self._frames_left -= 1
            self.frames += 1
        self._bytes_left -= size
        self._spent_bytes += size
        if frame.chunk_index + 1 >= frame.chunk_count:
            spent, self._spent_bytes = self._spent_bytes, 0
            if self.give_back:
                self.grant(1, spent)


class Writing(Stream):
    """A Write stream.

    Attributes:
        opened: The sidecar's first message; None before.
        sent_rows: Rows sent since the last flush.
        failed_rows: Row errors since the last flush, by frame and row.
        writer: Makes the frames once the encoding is known.
    """

    def __init__(self, wire: Wire, opening: sink_pb2.WriteOpen, message_bytes_max: int) -> None:
        super().__init__(wire, "SinkService.Write", sink_pb2.WriteRequest(open=opening))
        self.opened: sink_pb2.WriteOpened | None = None
        self.sent_rows = 0
        self.failed_rows: list[tuple[int, int]] = []
        self.last_mark: dict[str, str | None] = {}
        self._asked = list(opening.encodings)
        self._message_bytes_max = message_bytes_max
        self._waiting: list[tuple[int, int, int]] = []
        self._frames_left = 0
        self._bytes_left = 0
        self._flushed: sink_pb2.Flushed | None = None
        self._flush_id = 0
        self.writer = FrameWriter()

    @property
    def unacked(self) -> int:
        """Frames that have not been acknowledged."""
        return len(self._waiting)

    def wait_until_opened(self, within_s: float = RECEIVE_DEADLINE_S) -> None:
        """Waits for `opened`.

        Raises:
            Failure: It didn't come.
        """
        deadline = time.monotonic() + within_s
        while self.opened is None:
            self._step(deadline, "`opened`")

    def write(self, batch: Batch, within_s: float = RECEIVE_DEADLINE_S) -> int:
        """Sends a batch when there is credit for it.

        Returns:
            The number of its frame.

        Raises:
            Failure: The credit never came.
        """
        self.wait_until_opened(within_s)
        deadline = time.monotonic() + within_s
        frames = list(self.writer.frames(batch))
        for frame in frames:
            if frame.kind == frame_pb2.FRAME_KIND_BATCH and frame.chunk_index == 0:
                while self._frames_left <= 0 or self._bytes_left <= 0:
                    self._step(deadline, f"credit for frame {frame.seq}")
                self._frames_left -= 1
            if frame.kind == frame_pb2.FRAME_KIND_BATCH:
                self._bytes_left -= len(frame.body)
            self.send(sink_pb2.WriteRequest(frame=frame))
        seq = self.writer.next_seq - 1
        if batch.num_rows:
            size = sum(len(frame.body) for frame in frames if frame.kind == frame_pb2.FRAME_KIND_BATCH)
            self._waiting.append((seq, size, batch.num_rows))
        self.sent_rows += batch.num_rows
        self.last_mark |= {mark.position.partition: mark.position.offset for mark in batch.marks}
        return seq

    def wait_for_acks(self, within_s: float = RECEIVE_DEADLINE_S) -> None:
        """Waits until every frame is acknowledged.

        Raises:
            Failure: An ack is missing or out of order.
        """
        deadline = time.monotonic() + within_s
        while self._waiting:
            self._step(deadline, f"the ack of frame {self._waiting[0][0]}")

    def flush(self, *, final: bool = False, within_s: float = RECEIVE_DEADLINE_S) -> sink_pb2.Flushed:
        """Flushes and checks the account: rows in = rows written + failed + filtered.

        Raises:
            Failure: The answer is missing or the account is wrong.
        """
        self.wait_until_opened(within_s)
        self._flush_id += 1
        self._flushed = None
        self.send(sink_pb2.WriteRequest(flush=sink_pb2.Flush(id=self._flush_id, final=final)))
        deadline = time.monotonic() + within_s
        while (flushed := self._flushed) is None:
            self._step(deadline, "`flushed`")
        if self._waiting:
            raise Failure(f"`flushed` came before the ack of frame {self._waiting[0][0]}.")
        if flushed.id != self._flush_id:
            raise Failure(f"`flushed` answers the flush {flushed.id}; it was {self._flush_id}.")
        self.failed_rows += [(frame.seq, error.row) for frame in flushed.failed for error in frame.row_errors]
        if len(set(self.failed_rows)) != flushed.rows_failed:
            raise Failure(
                f"{len(set(self.failed_rows))} row errors were told, but rows_failed is {flushed.rows_failed}."
            )
        accounted = flushed.rows_written + flushed.rows_failed + flushed.rows_filtered
        if accounted != self.sent_rows:
            raise Failure(
                f"{self.sent_rows} rows were sent, but {flushed.rows_written} written + {flushed.rows_failed} failed + "
                f"{flushed.rows_filtered} filtered are {accounted}."
            )
        for position in flushed.positions:
            expect_compact(position.partition_json, "the partition of a safe position")
        self.sent_rows = 0
        return flushed

    def look_at(self, message: sink_pb2.WriteResponse) -> None:
        """Takes a message in and checks it."""
        kind = message.WhichOneof("message")
        if (self.opened is None) != (kind == "opened"):
            raise Failure(f"`opened` comes first and once on a Write stream; there came {kind or 'an empty message'}.")
        if kind == "opened":
            self._open(message.opened)
        elif kind == "ack":
            self._acknowledge(message.ack)
        elif kind == "flushed":
            if self._flushed is not None or not self._flush_id:
                raise Failure(f"`flushed` {message.flushed.id} came without a flush.")
            self._flushed = message.flushed
        elif kind == "credit":
            self._frames_left += message.credit.frames
            self._bytes_left += message.credit.bytes

    def _open(self, opened: sink_pb2.WriteOpened) -> None:
        if opened.encoding not in self._asked:
            raise Failure(f"The sink chose the encoding {opened.encoding}, which was not among {self._asked}.")
        if not opened.credit.frames or not opened.credit.bytes:
            raise Failure("`opened` gives no credit, so that nothing could ever be sent.")
        self.opened = opened
        self._frames_left, self._bytes_left = opened.credit.frames, opened.credit.bytes
        self.writer = FrameWriter(Encoding(opened.encoding), message_bytes_max=self._message_bytes_max)

    def _acknowledge(self, ack: sink_pb2.FrameAck) -> None:
        if not self._waiting or self._waiting[0][0] != ack.seq:
            due = f"frame {self._waiting[0][0]} was due" if self._waiting else "none was due"
            raise Failure(f"There came the ack of frame {ack.seq}; {due}.")
        _, size, rows = self._waiting.pop(0)
        self._frames_left += 1
        self._bytes_left += size
        for error in ack.row_errors:
            if error.row >= rows:
                raise Failure(f"The ack of frame {ack.seq} tells an error of row {error.row}; it has {rows} rows.")
            if not error.message or not error.error_class:
                raise Failure(f"The error of row {error.row} of frame {ack.seq} lacks its class or message.")
            self.failed_rows.append((ack.seq, error.row))

    def _step(self, deadline: float, awaited: str) -> None:
        message = self.get(deadline)
        if message is None:
            raise Failure(f"{awaited[0].upper()}{awaited[1:]} did not come in time.")
        if isinstance(message, Closed):
            how = "well" if message.error is None else f"with {told(message.error)}"
            raise Failure(f"The Write stream ended {how} while {awaited} was awaited.")
        self.look_at(message)


def encodings(names: list[str] | None) -> list[common_pb2.Encoding]:
    """Returns encodings by their names; None means all."""
    chosen = [one.name for one in ALL_ENCODINGS] if names is None else names
    return [common_pb2.Encoding.Value(f"ENCODING_{name}") for name in chosen]


def expect_compact(text: str, what: str) -> None:
    """Checks that a text is a JSON object without spaces, as positions are compared byte for byte.

    Raises:
        Failure: It isn't.
    """
    bare = _STRINGS.sub("", text)
    if not (text.startswith("{") and text.endswith("}")) or re.search(r"\s", bare):
        raise Failure(f"{what[0].upper()}{what[1:]} has to be a compact JSON object; it is {text!r}.")


def read_frame(reader: FrameReader, frame: frame_pb2.Frame) -> Batch | None:
    """Reads a frame.

    Raises:
        Failure: It breaks a rule.
    """
    try:
        return reader.feed(frame)
    except WherryError as error:
        raise Failure(error.message) from error


def told(error: grpc.RpcError) -> str:
    """A status as a message shows it."""
    return f"{error.code().name}, {error.details()}"
