"""The rules that are watched at every message of a stream."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from typing import Any

import grpc
import pyarrow as pa
import pytest

from wherry.conformance.failure import Failure
from wherry.conformance.streams import Reading, Writing, encodings, expect_compact
from wherry.connector.v1 import common_pb2, frame_pb2, sink_pb2, source_pb2
from wherry.contract.batch import Batch, Mark, mark_only, of_value
from wherry.contract.frame import Encoding, FrameWriter
from wherry.contract.position import Position

ARROW = common_pb2.ENCODING_ARROW_IPC
WAIT_S = 60.0


class Script:
    """A sidecar that says what it was told to, whatever it hears."""

    def __init__(self, messages: list[Any]) -> None:
        self._messages = messages
        self.heard: list[Any] = []

    def stream(self, _: str, requests: Iterator[Any]) -> Script:
        self._requests = requests
        return self

    def __iter__(self) -> Iterator[Any]:
        return iter(self._messages)

    def cancel(self) -> None:
        pass


def batch(rows: int = 2, *marks: Mark) -> Batch:
    return of_value(pa.array([f"row {index}" for index in range(rows)]), marks=marks)


def at(row: int, offset: str = '{"o":1}') -> Mark:
    return Mark(row, Position('{"p":0}', offset))


def opened() -> source_pb2.ReadResponse:
    return source_pb2.ReadResponse(opened=source_pb2.ReadOpened(encoding=ARROW))


def frames(*batches: Batch) -> list[source_pb2.ReadResponse]:
    writer = FrameWriter(Encoding.ARROW_IPC)
    return [source_pb2.ReadResponse(frame=frame) for one in batches for frame in writer.frames(one)]


def read(*messages: source_pb2.ReadResponse, credit: int = 8) -> Reading:
    opening = source_pb2.ReadOpen(encodings=encodings(None), credit=common_pb2.Credit(frames=credit, bytes=1 << 20))
    reading = Reading(Script(list(messages)), opening, give_back=False)  # type: ignore[arg-type]
    read_on(reading, WAIT_S)
    return reading


def read_on(reading: Reading, within_s: float) -> None:
    deadline = time.monotonic() + within_s
    while reading.step(deadline):
        pass


def test_rows_and_positions_are_gathered() -> None:
    reading = read(opened(), *frames(batch(2, at(1, '{"o":1}'), at(2, '{"o":2}')), batch(1, at(1, '{"o":3}'))))
    assert [row.value for row in reading.rows] == ["'row 0'", "'row 1'", "'row 0'"]
    assert reading.positions(2) == {'{"p":0}': '{"o":2}'}
    assert reading.positions() == {'{"p":0}': '{"o":3}'}


def test_more_frames_than_credit_are_a_failure() -> None:
    with pytest.raises(Failure, match="Frame 3 came without credit"):
        read(opened(), *frames(batch(), batch()), credit=1)


def test_mark_frames_need_no_credit() -> None:
    assert read(opened(), *frames(batch(), mark_only(at(0))), credit=1).positions() == {'{"p":0}': '{"o":1}'}


def test_a_gap_in_the_numbers_of_frames_is_a_failure() -> None:
    messages = frames(batch(), batch(), batch())
    with pytest.raises(Failure, match="Frame 3 was due; there came frame 4"):
        read(opened(), *messages[:2], *messages[3:])


def test_marks_that_go_back_are_a_failure() -> None:
    messages = frames(batch(2, at(1), at(2)))
    marks = messages[-1].frame.marks
    marks[0].row_count, marks[1].row_count = 2, 1
    with pytest.raises(Failure, match="marks rise and stay within the frame"):
        read(opened(), *messages)


def test_a_position_with_spaces_is_a_failure() -> None:
    messages = frames(batch(2, at(2)))
    messages[-1].frame.marks[0].position.partition_json = '{"p": 0}'
    with pytest.raises(Failure, match="The partition of a mark has to be a compact JSON object"):
        read(opened(), *messages)


def test_a_frame_before_opened_is_a_failure() -> None:
    with pytest.raises(Failure, match="`opened` comes first and once on a Read stream; there came frame"):
        read(*frames(batch()))


def test_a_second_opened_is_a_failure() -> None:
    with pytest.raises(Failure, match="there came opened"):
        read(opened(), opened())


def test_a_frame_after_end_is_a_failure() -> None:
    end = source_pb2.ReadResponse(end=source_pb2.ReadEnd())
    with pytest.raises(Failure, match="After `end` came frame"):
        read(opened(), end, *frames(batch()))


def test_an_encoding_that_was_not_offered_is_a_failure() -> None:
    wrong = source_pb2.ReadResponse(opened=source_pb2.ReadOpened(encoding=9))  # type: ignore[arg-type]
    with pytest.raises(Failure, match="chose the encoding 9"):
        read(wrong)


def test_silence_is_a_failure_that_tells_what_had_come() -> None:
    class Silent(Script):
        def __iter__(self) -> Iterator[Any]:
            yield opened()
            over.wait(WAIT_S)

    over = threading.Event()
    opening = source_pb2.ReadOpen(encodings=encodings(None))
    reading = Reading(Silent([]), opening, give_back=False)  # type: ignore[arg-type]
    with pytest.raises(Failure, match="0 rows in 0 frames had come"):
        read_on(reading, 0.05)
    over.set()


def test_a_failed_stream_is_a_failure_with_its_status() -> None:
    class Broken(grpc.RpcError):
        def code(self) -> grpc.StatusCode:
            return grpc.StatusCode.UNAVAILABLE

        def details(self) -> str:
            return "gone"

    class Failing(Script):
        def __iter__(self) -> Iterator[Any]:
            yield opened()
            raise Broken

    opening = source_pb2.ReadOpen(encodings=encodings(None))
    reading = Reading(Failing([]), opening, give_back=False)  # type: ignore[arg-type]
    with pytest.raises(Failure, match="The Read stream failed: UNAVAILABLE, gone"):
        read_on(reading, WAIT_S)


def write_opened(frames_max: int = 8) -> sink_pb2.WriteResponse:
    credit = common_pb2.Credit(frames=frames_max, bytes=1 << 20)
    return sink_pb2.WriteResponse(opened=sink_pb2.WriteOpened(encoding=ARROW, credit=credit))


def ack(seq: int, *rows: int) -> sink_pb2.WriteResponse:
    errors = [common_pb2.RowError(row=row, error_class=common_pb2.ERROR_CLASS_SCHEMA, message="no") for row in rows]
    return sink_pb2.WriteResponse(ack=sink_pb2.FrameAck(seq=seq, row_errors=errors))


def flushed(**members: Any) -> sink_pb2.WriteResponse:
    return sink_pb2.WriteResponse(flushed=sink_pb2.Flushed(id=1, **members))


def writing(*messages: sink_pb2.WriteResponse) -> Writing:
    opening = sink_pb2.WriteOpen(encodings=encodings(None))
    return Writing(Script(list(messages)), opening, 1 << 20)  # type: ignore[arg-type]


def _whole_frame(request: sink_pb2.WriteRequest) -> int:
    """The number of the frame that is whole with this request; 0 when none is."""
    frame = request.frame
    return frame.seq if frame.chunk_index + 1 >= frame.chunk_count else 0


def late(*messages: sink_pb2.WriteResponse) -> Writing:
    """A sidecar whose answers come only when the engine has spoken."""

    class Late(Script):
        def __iter__(self) -> Iterator[Any]:
            yield self._messages[0]
            sent = 0
            for message in self._messages[1:]:
                while not (message.HasField("flushed") or sent >= message.ack.seq):
                    sent = _whole_frame(next(self._requests))
                while message.HasField("flushed") and not next(self._requests).HasField("flush"):
                    pass
                yield message

    return Writing(Late(list(messages)), sink_pb2.WriteOpen(encodings=encodings(None)), 1 << 20)  # type: ignore[arg-type]


def test_a_flush_that_accounts_for_every_row_passes() -> None:
    stream = late(write_opened(), ack(2, 1), flushed(rows_written=1, rows_failed=1))
    assert stream.write(batch(2)) == 2
    assert stream.flush().rows_written == 1
    assert stream.failed_rows == [(2, 1)]


def test_a_row_that_is_missing_in_the_account_is_a_failure() -> None:
    stream = late(write_opened(), ack(2), flushed(rows_written=1))
    stream.write(batch(2))
    with pytest.raises(Failure, match=r"2 rows were sent, but 1 written \+ 0 failed \+ 0 filtered are 1"):
        stream.flush()


def test_failed_rows_that_are_not_named_are_a_failure() -> None:
    stream = late(write_opened(), ack(2), flushed(rows_written=1, rows_failed=1))
    stream.write(batch(2))
    with pytest.raises(Failure, match="0 row errors were told, but rows_failed is 1"):
        stream.flush()


def test_an_ack_out_of_order_is_a_failure() -> None:
    stream = late(write_opened(), ack(3), ack(2))
    stream.write(batch())
    stream.write(batch())
    with pytest.raises(Failure, match="There came the ack of frame 3; frame 2 was due"):
        stream.wait_for_acks(WAIT_S)


def test_flushed_before_an_ack_is_a_failure() -> None:
    stream = late(write_opened(), flushed(rows_written=2))
    stream.write(batch())
    with pytest.raises(Failure, match="`flushed` came before the ack of frame 2"):
        stream.flush()


def test_a_row_error_behind_the_last_row_is_a_failure() -> None:
    stream = late(write_opened(), ack(2, 7))
    stream.write(batch(2))
    with pytest.raises(Failure, match="an error of row 7; it has 2 rows"):
        stream.wait_for_acks(WAIT_S)


def test_credit_that_never_comes_back_is_a_failure() -> None:
    stream = writing(write_opened(frames_max=1))
    stream.write(batch())
    with pytest.raises(Failure, match="credit for frame 3"):
        stream.write(batch(), within_s=0.3)


def test_opened_without_credit_is_a_failure() -> None:
    with pytest.raises(Failure, match="gives no credit"):
        writing(write_opened(frames_max=0)).wait_until_opened(WAIT_S)


def test_a_stream_that_ends_well_is_not_one_that_was_refused() -> None:
    with pytest.raises(Failure, match="it should have failed with FENCED"):
        writing(write_opened()).expect_end(["FENCED"], WAIT_S)


def test_spaces_within_texts_of_a_position_are_fine() -> None:
    expect_compact('{"file name":"a \\" b"}', "it")
    for text in ('{"a": 1}', '["a"]', '{"a":1}\n', ""):
        with pytest.raises(Failure, match="compact JSON object"):
            expect_compact(text, "it")


def test_frames_are_cut_into_chunks_that_share_a_credit() -> None:
    stream = late(write_opened(), ack(2), flushed(rows_written=1))
    stream.write(of_value(pa.array(["x" * (3 << 20)])))
    assert stream.unacked == 1
    assert stream.flush().rows_written == 1


def test_kinds_of_frames_are_those_of_the_contract() -> None:
    kinds = [message.frame.kind for message in frames(batch(), mark_only(at(0)))]
    assert kinds == [frame_pb2.FRAME_KIND_SCHEMA, frame_pb2.FRAME_KIND_BATCH, frame_pb2.FRAME_KIND_MARK]
