"""Writing to a scripted sidecar."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pytest
from tests.support.waiting import eventually

from wherry.connector.v1 import common_pb2, sink_pb2
from wherry.contract import to_proto
from wherry.contract.batch import Batch, Constants, Mark, mark_only, of_value
from wherry.contract.errors import ConnectorBugError, ErrorClass, TransientError
from wherry.contract.frame import FrameReader
from wherry.contract.limits import MIB, ROW_BYTES_MAX
from wherry.contract.position import Position, kafka_position
from wherry.contract.wire import WireFrame
from wherry.worker.endpoints import sidecar_writer
from wherry.worker.endpoints.sidecar_writer import RETAINED_BYTES_MAX, SidecarWriter

POSITION = kafka_position("t", 0, 3)


def answer(**kind: Any) -> sink_pb2.WriteResponse:
    return sink_pb2.WriteResponse(**kind)


def opened(frames: int = 8, octets: int = 1 << 24, positions: tuple[Position, ...] = ()) -> sink_pb2.WriteResponse:
    credit = common_pb2.Credit(frames=frames, bytes=octets)
    return answer(opened=sink_pb2.WriteOpened(encoding=1, credit=credit, positions=to_proto.positions(positions)))  # type: ignore[arg-type]


def ack(frame: WireFrame, *errors: common_pb2.RowError) -> sink_pb2.WriteResponse:
    return answer(ack=sink_pb2.FrameAck(seq=frame.header.seq, row_errors=errors))


def row_error(row: int) -> common_pb2.RowError:
    return common_pb2.RowError(row=row, error_class=common_pb2.ERROR_CLASS_SCHEMA, reason="TOO_LONG")


def batch(*texts: str) -> Batch:
    return of_value(pa.array(texts), constants=Constants("t", 0, 0), marks=(Mark(len(texts), POSITION),))


def is_rows(message: Any) -> bool:
    return isinstance(message, WireFrame) and message.header.row_count > 0


def taking(requests: Iterator[Any], **credit: int) -> Iterator[Any]:
    """A sink that takes everything."""
    next(requests)
    yield opened(**credit)
    frames, written = FrameReader(), 0
    for message in requests:
        if isinstance(message, WireFrame):
            got = frames.feed(message)
            if got is not None and got.num_rows:
                written += got.num_rows
                yield ack(message)
        elif message.HasField("flush"):
            yield answer(flushed=sink_pb2.Flushed(id=message.flush.id, rows_written=written))
            written = 0


def accounting(**flushed: Any) -> Any:
    """A sink that takes everything, and says at every flush that this became of it."""

    def script(requests: Iterator[Any]) -> Iterator[Any]:
        next(requests)
        yield opened()
        for message in requests:
            if is_rows(message):
                yield ack(message)
            elif not isinstance(message, WireFrame):
                yield answer(flushed=sink_pb2.Flushed(id=message.flush.id, **flushed))

    return script


def writer_of(sidecar: Any, script: Any, *, keep_raw: bool = True) -> SidecarWriter:
    client = sidecar.start(write=script)
    return SidecarWriter(client, "c", generation=7, task=2, partitions=(POSITION.partition,), keep_raw=keep_raw)


def seconds() -> float:
    return 60.0


def write(writer: SidecarWriter, *texts: str) -> Batch:
    rows = batch(*texts)
    writer.write(rows, rows)
    return rows


def test_rows_are_written_and_a_flush_says_so(sidecar: Any) -> None:
    writer = writer_of(sidecar, taking)
    assert writer.ready(60.0)
    write(writer, "a", "b")
    write(writer, "c")
    flushed = writer.flush(seconds)
    assert (flushed.rows_written, flushed.rows_failed, flushed.positions, flushed.token) == (3, 0, None, b"")
    assert writer.flush(seconds, final=True).rows_written == 0
    writer.close()


def test_positions_stored_with_the_data_are_told(sidecar: Any) -> None:
    def script(requests: Iterator[Any]) -> Iterator[Any]:
        next(requests)
        yield opened(positions=(POSITION,))
        next(requests, None)

    writer = writer_of(sidecar, script)
    assert writer.stored == (POSITION,)
    writer.close()


def test_safe_positions_and_token_of_a_flush_are_handed_on(sidecar: Any) -> None:
    def script(requests: Iterator[Any]) -> Iterator[Any]:
        next(requests)
        yield opened()
        flush = next(requests).flush
        assert flush.final
        yield answer(flushed=sink_pb2.Flushed(id=flush.id, positions=to_proto.positions([POSITION]), token=b"t"))

    writer = writer_of(sidecar, script)
    flushed = writer.flush(seconds, final=True)
    assert (flushed.positions, flushed.token) == ((POSITION,), b"t")
    writer.close()


def test_without_credit_the_writer_is_not_ready_until_an_ack_gives_it_back(sidecar: Any) -> None:
    may_ack = threading.Event()

    def script(requests: Iterator[Any]) -> Iterator[Any]:
        next(requests)
        yield opened(frames=1)
        frames = [message for message in (next(requests), next(requests)) if is_rows(message)]
        assert may_ack.wait(60.0)
        yield ack(frames[0])
        next(requests, None)

    writer = writer_of(sidecar, script)
    write(writer, "a")
    assert not writer.ready(0.05)
    may_ack.set()
    assert writer.ready(60.0)
    writer.close()


def test_bytes_are_credit_too(sidecar: Any) -> None:
    def script(requests: Iterator[Any]) -> Iterator[Any]:
        next(requests)
        yield opened(octets=10)
        next(requests)
        next(requests)
        yield answer(credit=common_pb2.Credit(bytes=1 << 20))
        next(requests, None)

    writer = writer_of(sidecar, script)
    write(writer, "more than ten bytes")
    assert writer.ready(60.0)
    writer.close()


def test_a_backoff_keeps_the_writer_waiting_and_tells_why(sidecar: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    def script(requests: Iterator[Any]) -> Iterator[Any]:
        next(requests)
        yield opened()
        yield answer(backoff=sink_pb2.Backoff(delay_ms=3_600_000, reason="The database is busy."))
        next(requests, None)

    writer = writer_of(sidecar, script)
    ahead_s = 0.0
    monkeypatch.setattr(sidecar_writer, "time", SimpleNamespace(monotonic=lambda: time.monotonic() + ahead_s))
    assert eventually(lambda: not writer.ready(0.01))
    assert writer.trouble == "The database is busy."
    assert not writer.ready(0.05)
    ahead_s = 3600.0
    assert writer.ready(60.0)
    assert writer.trouble == ""
    writer.close()


def test_rows_that_fail_in_an_ack_or_a_flush_are_found_again(sidecar: Any) -> None:
    def script(requests: Iterator[Any]) -> Iterator[Any]:
        next(requests)
        yield opened()
        seqs = []
        for message in requests:
            if is_rows(message):
                seqs.append(message.header.seq)
                yield ack(message, *([row_error(1)] if len(seqs) == 1 else []))
            elif not isinstance(message, WireFrame):
                late = sink_pb2.FrameErrors(seq=seqs[1], row_errors=[row_error(0)])
                yield answer(
                    flushed=sink_pb2.Flushed(id=message.flush.id, rows_written=1, rows_failed=2, failed=[late])
                )

    writer = writer_of(sidecar, script)
    first, second = write(writer, "a", "b"), write(writer, "c")
    flushed = writer.flush(seconds)
    assert (flushed.rows_written, flushed.rows_failed) == (1, 2)
    failed = writer.failed_rows()
    assert [(one.raw, one.row, one.error.reason) for one in failed] == [(first, 1, "TOO_LONG"), (second, 0, "TOO_LONG")]
    assert failed[0].error.error_class is ErrorClass.SCHEMA
    assert writer.failed_rows() == []
    writer.close()


# What was acknowledged is kept until the flush only for a dead letter queue.
@pytest.mark.parametrize(("when", "keep_raw"), [("ack", True), ("ack", False), ("flush", True)])
def test_a_row_that_fails_for_now_comes_with_what_was_sent_after_it(sidecar: Any, keep_raw: bool, when: str) -> None:
    busy = common_pb2.RowError(row=1, error_class=common_pb2.ERROR_CLASS_TRANSIENT, reason="BUSY")

    def script(requests: Iterator[Any]) -> Iterator[Any]:
        next(requests)
        yield opened()
        frames = []
        for message in requests:
            if is_rows(message):
                frames.append(message)
                if len(frames) == 4:
                    for number, frame in enumerate(frames):
                        yield ack(frame, *([busy] if number == 1 and when == "ack" else []))
            elif not isinstance(message, WireFrame):
                late = [sink_pb2.FrameErrors(seq=frames[1].header.seq, row_errors=[busy])]
                yield answer(
                    flushed=sink_pb2.Flushed(
                        id=message.flush.id, rows_written=7, rows_failed=1, failed=late if when == "flush" else []
                    )
                )

    writer = writer_of(sidecar, script, keep_raw=keep_raw)
    sent = [write(writer, "a", "b") for _ in range(4)]
    writer.flush(seconds)
    (failed,) = writer.failed_rows()
    assert (failed.raw, failed.row) == (sent[1], 1)
    assert list(failed.after) == sent[2:]
    writer.close()


@pytest.mark.parametrize("flushed", [{"rows_written": 1}, {"rows_written": 3}, {"rows_written": 1, "rows_filtered": 2}])
def test_a_sink_that_can_not_account_for_its_rows_is_at_fault(sidecar: Any, flushed: dict[str, int]) -> None:
    writer = writer_of(sidecar, accounting(**flushed))
    write(writer, "a", "b")
    with pytest.raises(ConnectorBugError, match="was given 2 rows and says what became of"):
        writer.flush(seconds)
    writer.close()


def test_filtered_rows_are_accounted_for(sidecar: Any) -> None:
    writer = writer_of(sidecar, accounting(rows_written=1, rows_filtered=1))
    write(writer, "a", "b")
    assert writer.flush(seconds).rows_filtered == 1
    writer.close()


def test_a_flush_that_is_not_answered_ends_in_time(sidecar: Any) -> None:
    def script(requests: Iterator[Any]) -> Iterator[Any]:
        next(requests)
        yield opened()
        next(requests)
        next(requests, None)

    writer = writer_of(sidecar, script)
    deadline = time.monotonic() + 0.3
    with pytest.raises(TransientError, match="did not make its rows durable"):
        writer.flush(lambda: deadline - time.monotonic())
    writer.close()


def test_an_ack_for_nothing_is_the_connectors_fault(sidecar: Any) -> None:
    def script(requests: Iterator[Any]) -> Iterator[Any]:
        next(requests)
        yield opened()
        yield answer(ack=sink_pb2.FrameAck(seq=9))
        next(requests, None)

    writer = writer_of(sidecar, script)
    with pytest.raises(ConnectorBugError, match="frame 9, which is not under way"):
        writer.flush(seconds)
    writer.close()


def test_a_rewind_and_a_pause_are_handed_on_once(sidecar: Any) -> None:
    def script(requests: Iterator[Any]) -> Iterator[Any]:
        next(requests)
        yield opened()
        yield answer(rewind=sink_pb2.Rewind(positions=to_proto.positions([POSITION])))
        yield answer(pause=sink_pb2.PausePartitions(partitions_json=[POSITION.partition]))
        flush = next(requests).flush
        yield answer(flushed=sink_pb2.Flushed(id=flush.id))

    writer = writer_of(sidecar, script)
    writer.flush(seconds)
    assert writer.rewinds() == (POSITION,)
    assert writer.rewinds() == ()
    assert writer.paused_partitions() == (POSITION.partition,)
    writer.close()


def test_marks_without_rows_need_no_credit_and_no_ack(sidecar: Any) -> None:
    writer = writer_of(sidecar, lambda requests: taking(requests, frames=0))
    marks = mark_only(POSITION)
    writer.write(marks, marks)
    assert writer.flush(seconds).rows_written == 0
    writer.close()


def test_too_much_kept_for_dead_letters_asks_for_a_flush(sidecar: Any) -> None:
    writer = writer_of(sidecar, taking)
    big = "x" * (1 << 20)
    while not writer.needs_flush:
        assert writer.ready(60.0)
        write(writer, big)
    assert RETAINED_BYTES_MAX < writer._retained_bytes <= RETAINED_BYTES_MAX + (2 << 20)
    writer.flush(seconds)
    assert not writer.needs_flush
    writer.close()


def test_a_sidecar_that_goes_away_is_a_fault_to_recover_from(sidecar: Any) -> None:
    def script(requests: Iterator[Any]) -> Iterator[Any]:
        next(requests)
        yield opened()

    writer = writer_of(sidecar, script)
    with pytest.raises(TransientError):
        writer.flush(seconds)
    writer.close()


def test_a_batch_of_large_rows_goes_as_frames_that_fit_a_message(sidecar: Any) -> None:
    got: list[tuple[int, int]] = []

    def script(requests: Iterator[Any]) -> Iterator[Any]:
        next(requests)
        yield opened()
        frames = FrameReader()
        for message in requests:
            if isinstance(message, WireFrame):
                rows = frames.feed(message)
                if rows is not None and rows.num_rows:
                    got.append((rows.num_rows, len(rows.marks)))
                    yield ack(message)
            elif message.HasField("flush"):
                yield answer(flushed=sink_pb2.Flushed(id=message.flush.id, rows_written=5))

    writer = writer_of(sidecar, script)
    write(writer, *["x" * (10 * MIB)] * 5)
    assert writer.flush(seconds).rows_written == 5
    assert got == [(1, 1)] * 5
    writer.close()


def test_a_row_beyond_the_limit_is_refused_with_its_bytes_and_the_others_go(sidecar: Any) -> None:
    writer = writer_of(sidecar, taking)
    rows = write(writer, "a", "y" * (ROW_BYTES_MAX + 1), "b")
    assert writer.flush(seconds).rows_written == 2
    (failed,) = writer.failed_rows()
    assert failed.error.reason == "ROW_TOO_LARGE"
    assert failed.raw is not None
    assert failed.raw.value[failed.row].as_py() == rows.value[1].as_py()
    writer.close()


def test_rows_that_a_transformation_has_moved_say_where_they_were_read(sidecar: Any) -> None:
    seen: list[Constants] = []

    def script(requests: Iterator[Any]) -> Iterator[Any]:
        next(requests)
        yield opened()
        frames = FrameReader()
        for message in requests:
            got = frames.feed(message) if isinstance(message, WireFrame) else None
            if got is not None and got.num_rows:
                seen.append(got.constants)
                yield ack(message)

    writer = writer_of(sidecar, script)
    read = batch("a", "b")
    writer.write(read.with_constants(Constants("new", 0, 0)), read)
    writer.write(read, read)
    assert eventually(lambda: len(seen) == 2)
    assert [(each.topic, each.original_topic, each.original_partition) for each in seen] == [
        ("new", "t", 0), ("t", None, None),
    ]  # fmt: skip
    writer.close()
