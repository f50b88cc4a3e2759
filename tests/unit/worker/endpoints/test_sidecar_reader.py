"""Reading from a scripted sidecar."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pytest
from tests.support.waiting import eventually

from wherry.connector.v1 import common_pb2, source_pb2
from wherry.contract.batch import Batch, Mark, mark_only, of_value
from wherry.contract.errors import ConnectorBugError, TransientError
from wherry.contract.frame import FrameWriter
from wherry.contract.plan import Work
from wherry.contract.position import Position
from wherry.worker.endpoints.sidecar_reader import SidecarReader, position_lookup

AT_ONE = Position('{"p":1}', '{"n":1}')
KNOWN = {AT_ONE.partition: AT_ONE}


def answer(**kind: Any) -> source_pb2.ReadResponse:
    return source_pb2.ReadResponse(**kind)


OPENED = answer(opened=source_pb2.ReadOpened(encoding=1))  # type: ignore[arg-type]


def batch(text: str) -> Batch:
    return of_value(pa.array([text]), marks=(Mark(1, AT_ONE),))


def reader_of(sidecar: Any, script: Any) -> SidecarReader:
    client = sidecar.start(read=script)
    return SidecarReader(
        client, Work("0", b"d"), (AT_ONE,), generation=7, task=2, split=False, lookup=position_lookup(dict(KNOWN))
    )


def poll(reader: SidecarReader, timeout_s: float = 60.0) -> Batch | None:
    deadline = time.monotonic() + timeout_s
    while not reader.finished and time.monotonic() < deadline:
        got = reader.poll(0.05)
        if got is not None:
            return got
    return None


def test_the_stream_is_opened_with_work_positions_and_credit(sidecar: Any) -> None:
    opened = []

    def script(requests: Iterator[Any]) -> Iterator[Any]:
        opened.append(next(requests).open)
        yield OPENED
        next(requests, None)

    reader_of(sidecar, script).close()
    (message,) = opened
    assert (message.generation, message.task, message.work.descriptor, message.split) == (7, 2, b"d", False)
    assert message.positions[0].partition_json == AT_ONE.partition
    assert (message.credit.frames, message.credit.bytes) == (8, 16 * 1024 * 1024)


def test_frames_come_as_batches_and_the_end_finishes(sidecar: Any) -> None:
    def script(requests: Iterator[Any]) -> Iterator[Any]:
        next(requests)
        yield OPENED
        frames = FrameWriter()
        yield from frames.wire(batch("a"))
        yield from frames.wire(mark_only(AT_ONE))
        yield answer(end=source_pb2.ReadEnd(complete=True))

    reader = reader_of(sidecar, script)
    first, second = poll(reader), poll(reader)
    assert first is not None
    assert second is not None
    assert first.value.to_pylist() == ["a"]
    assert (second.num_rows, second.marks[0].position) == (0, AT_ONE)
    assert poll(reader) is None
    assert reader.finished
    assert reader.caught_up
    reader.close()


def test_credit_goes_back_only_when_the_batch_has_been_passed_on(sidecar: Any) -> None:
    heard: list[Any] = []

    def script(requests: Iterator[Any]) -> Iterator[Any]:
        next(requests)
        yield OPENED
        yield from FrameWriter().wire(batch("a"))
        heard.extend(request for request in requests if request.HasField("credit"))

    reader = reader_of(sidecar, script)
    assert poll(reader) is not None
    time.sleep(0.2)
    assert heard == []
    reader.poll(0.05)
    assert eventually(lambda: bool(heard))
    reader.close()
    sidecar.stop()
    assert [(request.credit.frames, request.credit.bytes > 0) for request in heard] == [(1, True)]


def test_being_caught_up_ends_with_the_next_batch(sidecar: Any) -> None:
    def script(requests: Iterator[Any]) -> Iterator[Any]:
        next(requests)
        yield OPENED
        yield answer(caught_up=source_pb2.CaughtUp())
        next(requests)
        yield from FrameWriter().wire(batch("a"))
        next(requests, None)

    reader = reader_of(sidecar, script)
    deadline = time.monotonic() + 60.0
    while not reader.caught_up and time.monotonic() < deadline:
        assert reader.poll(0.05) is None
    assert reader.caught_up
    reader.committed([AT_ONE])
    assert poll(reader) is not None
    assert not reader.caught_up
    reader.close()


def test_committed_positions_and_drain_are_passed_on(sidecar: Any) -> None:
    heard: list[Any] = []

    def script(requests: Iterator[Any]) -> Iterator[Any]:
        next(requests)
        yield OPENED
        heard.append(next(requests))
        heard.append(next(requests))
        yield answer(end=source_pb2.ReadEnd())

    reader = reader_of(sidecar, script)
    reader.committed([AT_ONE])
    reader.drain(2.5)
    assert poll(reader) is None
    assert reader.finished
    assert heard[0].committed.positions[0].offset_json == AT_ONE.offset
    assert heard[1].drain.deadline_ms == 2500
    reader.close()


def test_a_question_for_positions_is_answered_in_its_order(sidecar: Any) -> None:
    heard: list[Any] = []

    def script(requests: Iterator[Any]) -> Iterator[Any]:
        next(requests)
        yield OPENED
        yield answer(offset_query=source_pb2.OffsetQuery(id=4, partitions_json=['{"x":1}', AT_ONE.partition]))
        heard.append(next(requests).offset_answer)
        yield answer(end=source_pb2.ReadEnd())

    reader = reader_of(sidecar, script)
    assert poll(reader) is None
    assert heard[0].id == 4
    assert [position.HasField("offset_json") for position in heard[0].positions] == [False, True]
    reader.close()


def test_a_stream_that_ends_without_a_word_is_a_fault_to_recover_from(sidecar: Any) -> None:
    def script(requests: Iterator[Any]) -> Iterator[Any]:
        next(requests)
        yield OPENED

    reader = reader_of(sidecar, script)
    with pytest.raises(TransientError, match="without saying so"):
        poll(reader)
    reader.close()


def test_a_frame_out_of_turn_is_the_connectors_fault(sidecar: Any) -> None:
    def script(requests: Iterator[Any]) -> Iterator[Any]:
        next(requests)
        yield from FrameWriter().wire(batch("a"))
        next(requests, None)

    with pytest.raises(ConnectorBugError, match="before it said that the stream is open"):
        reader_of(sidecar, script)


def test_a_poll_ends_in_time_when_the_sidecar_says_nothing(sidecar: Any) -> None:
    def script(requests: Iterator[Any]) -> Iterator[Any]:
        next(requests)
        yield OPENED
        next(requests, None)

    reader = reader_of(sidecar, script)
    begun = time.monotonic()
    assert reader.poll(0.1) is None
    assert time.monotonic() - begun < 30.0
    reader.close()


def test_positions_not_known_are_answered_as_none() -> None:
    assert position_lookup(dict(KNOWN))(['{"q":2}', AT_ONE.partition]) == [Position('{"q":2}', None), AT_ONE]


def test_heartbeats_are_nothing_to_the_reader(sidecar: Any) -> None:
    def script(requests: Iterator[Any]) -> Iterator[Any]:
        next(requests)
        yield OPENED
        yield answer(heartbeat=common_pb2.Heartbeat(time_ms=1))
        yield answer(end=source_pb2.ReadEnd())

    reader = reader_of(sidecar, script)
    assert poll(reader) is None
    assert reader.finished
    reader.close()
