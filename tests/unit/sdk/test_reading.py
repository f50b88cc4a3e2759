"""Read streams: credit, order, marks, the end in all its forms."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pyarrow as pa
import pytest
from sdk_connectors import Lines
from tests.support.waiting import eventually

from wherry.connector.v1 import common_pb2, source_pb2
from wherry.contract import batch as contract
from wherry.contract import stream as stream_module
from wherry.contract import to_proto
from wherry.contract.batch import Mark
from wherry.contract.errors import (
    ConfigError,
    ConnectorBugError,
    FencedError,
    ThrottledError,
    TransientError,
    WherryError,
)
from wherry.contract.frame import Encoding, FrameReader
from wherry.contract.plan import Work
from wherry.contract.position import Position
from wherry.contract.stream import ReadStream
from wherry.contract.wire import WireFrame
from wherry.sdk import Batch, Offsets, Record, _intake, _reading
from wherry.sdk.testing import run_source, sidecar

WAIT_S = 60.0


class Engine:
    """The engine's side of one Read stream: keeps what came."""

    def __init__(self, stream: ReadStream) -> None:
        self.stream = stream
        self.reader = FrameReader()
        self.batches: list[contract.Batch] = []
        self.messages: list[str] = []
        self.end: source_pb2.ReadEnd | None = None

    def step(self, timeout_s: float = WAIT_S) -> bool:
        """Takes one message; returns whether one came."""
        message = self.stream.receive(timeout_s)
        if message is None:
            return False
        if isinstance(message, WireFrame):
            batch = self.reader.feed(message)
            if batch is not None:
                self.batches.append(batch)
        else:
            self.messages.append(str(message.WhichOneof("message")))
            if message.HasField("end"):
                self.end = message.end
        return True

    def until(self, done: Any) -> None:
        ends = time.monotonic() + WAIT_S
        while not done():
            assert time.monotonic() < ends, "it took too long"
            if not self.step(1.0) and self.stream.ended:
                return

    def credit(self, frames: int, size: int = 1 << 20) -> None:
        self.stream.send(source_pb2.ReadRequest(credit=common_pb2.Credit(frames=frames, bytes=size)))

    def drain(self, deadline_ms: int = 60_000) -> None:
        self.stream.send(source_pb2.ReadRequest(drain=common_pb2.Drain(deadline_ms=deadline_ms)))

    @property
    def values(self) -> list[Any]:
        return [value for batch in self.batches for value in batch.value.to_pylist() if batch.num_rows]

    @property
    def rows(self) -> int:
        return sum(batch.num_rows for batch in self.batches)


@contextmanager
def reading(
    script: Any, *, split: bool = False, config: dict[str, str] | None = None, **options: Any
) -> Iterator[Engine]:
    if callable(script):
        Lines.scripts["own"] = script
        script = "own"
    with sidecar(Lines, config={"script": script, **(config or {})}) as client:
        engine = Engine(client.read(generation=1, work=options.pop("work", Work("0")), split=split, **options))
        yield engine
        engine.stream.cancel()


def test_a_split_is_read_to_its_end() -> None:
    with reading("count", split=True) as engine:
        engine.until(lambda: engine.end)
        assert engine.messages == ["opened", "end"]
        assert engine.end is not None
        assert engine.end.complete
        assert engine.values == [str(n) for n in range(10)]
        assert engine.batches[-1].marks[-1].position == Position('{"p":0}', '{"n":10}')


def test_a_task_that_returns_stays_caught_up_and_ends_at_once_when_drained() -> None:
    with reading("count") as engine:
        engine.until(lambda: "caught_up" in engine.messages)
        started = time.monotonic()
        engine.drain()
        engine.until(lambda: engine.end)
        assert time.monotonic() - started < 30.0, "long before the drain's deadline"
        assert engine.end is not None


def test_reading_goes_on_from_the_offset_given() -> None:
    with reading("count", split=True, positions=[Position('{"p":0}', '{"n":8}')]) as engine:
        engine.until(lambda: engine.end)
        assert engine.values == ["8", "9"]


@pytest.mark.parametrize("script", ["endless", "endless_batches"])
def test_no_batch_comes_without_credit_and_the_next_with_it(script: str) -> None:
    with reading(script, credit_frames=2, credit_bytes=1 << 30) as engine:
        engine.until(lambda: len(engine.batches) == 2)
        assert not engine.step(0.3)
        engine.credit(1)
        engine.until(lambda: len(engine.batches) == 3)
        assert not engine.step(0.3)


def test_bytes_of_credit_bind_too() -> None:
    with reading("endless_batches", credit_frames=1000, credit_bytes=1) as engine:
        engine.until(lambda: engine.batches)
        engine.credit(0, 1)
        assert not engine.step(0.3), "the first frame overshot, and that is still owed"
        engine.credit(0, 1 << 20)
        engine.until(lambda: len(engine.batches) == 2)


def test_a_starved_source_holds_a_bounded_number_of_rows() -> None:
    with reading("endless", credit_frames=0, credit_bytes=0) as engine:
        assert engine.step()
        held = -1
        deadline = time.monotonic() + 120.0
        while held != (held := len(Lines.yielded)):
            assert time.monotonic() < deadline, f"the generator doesn't wait: {held} rows"
            time.sleep(1.0)
        assert held <= 2 * _intake.ROWS_QUEUED_MAX, "one frame made, and a queue full"


def test_frames_grow_under_load() -> None:
    with reading("endless", credit_frames=1, credit_bytes=1 << 30) as engine:
        engine.until(lambda: engine.batches)
        assert eventually(lambda: len(Lines.yielded) > 4 * 1000)
        engine.credit(20)
        engine.until(lambda: len(engine.batches) > 10)
        assert max(batch.num_rows for batch in engine.batches) > 1000


def test_small_batches_that_wait_are_joined_with_their_marks() -> None:
    with reading("endless_batches", credit_frames=1, credit_bytes=1 << 30) as engine:
        engine.until(lambda: engine.batches)
        # More than the next frame takes, so that others wait for the one after it.
        assert eventually(lambda: len(Lines.yielded) >= engine.rows // 100 + 30)
        # One frame may have been made before others waited; the one after it can't have been.
        engine.credit(2)
        engine.until(lambda: len(engine.batches) == 3)
        joined = engine.batches[2]
        assert joined.num_rows > 100
        assert [mark.row_count for mark in joined.marks] == list(range(100, joined.num_rows + 1, 100))


def test_a_drain_brings_all_that_was_yielded_and_a_split_is_not_complete() -> None:
    with reading("follow", split=True, config={"count": "500"}) as engine:
        engine.until(lambda: "caught_up" in engine.messages)
        engine.drain()
        engine.until(lambda: engine.end)
        assert engine.end is not None
        assert not engine.end.complete
        assert engine.values == [str(n) for n in range(500)]
        assert Lines.calls.count("stop") == 1


def test_a_drain_in_full_flow_loses_nothing_that_was_yielded() -> None:
    with reading("endless", credit_frames=10_000, credit_bytes=1 << 40) as engine:
        engine.until(lambda: engine.rows > 5000)
        engine.drain()
        engine.until(lambda: engine.end)
        assert engine.rows == len(Lines.yielded)
        assert engine.batches[-1].marks[-1].position.offset_map == {"n": engine.rows}


def test_a_generator_that_hangs_does_not_hold_up_a_drain_beyond_its_deadline() -> None:
    with reading("stuck") as engine:
        engine.until(lambda: engine.rows == 1)
        started = time.monotonic()
        engine.drain(1000)
        engine.until(lambda: engine.end)
        assert time.monotonic() - started < 30.0, "the generator hangs for longer"


def test_a_drain_without_credit_ends_by_its_deadline_and_marks_nothing_unsent() -> None:
    with reading("endless", credit_frames=0, credit_bytes=0) as engine:
        engine.drain(1000)
        engine.until(lambda: engine.end)
        assert engine.end is not None
        assert engine.batches == []


def test_half_closing_counts_as_a_drain() -> None:
    with reading("follow") as engine:
        engine.until(lambda: engine.rows == 10)
        engine.stream.half_close()
        engine.until(lambda: engine.end)
        assert engine.end is not None


def test_a_cancelled_stream_stops_the_generator() -> None:
    with reading("follow") as engine:
        engine.until(lambda: "caught_up" in engine.messages)
        engine.stream.cancel()
        ends = time.monotonic() + WAIT_S
        while "stop" not in Lines.calls and time.monotonic() < ends:
            time.sleep(0.01)
        assert Lines.calls == ["stop"]


@pytest.mark.parametrize(
    ("error", "expected", "text"),
    [
        (TransientError("The server is away."), TransientError, "The server is away."),
        (ConfigError("No such table.", key="table"), ConfigError, "No such table."),
        (ThrottledError("Slow down.", retry_after_ms=50), ThrottledError, "Slow down."),
        (
            ZeroDivisionError("by nothing"),
            ConnectorBugError,
            r"ZeroDivisionError: by nothing \(at test_reading.py:\d+\)",
        ),
    ],
)
def test_an_exception_ends_the_stream_with_its_class_after_what_was_yielded(
    error: Exception, expected: type[WherryError], text: str
) -> None:
    def failing(source: Lines, work: Work, offsets: Offsets) -> Iterator[Any]:
        yield Record("before")
        raise error

    with reading(failing) as engine:
        with pytest.raises(expected, match=text):
            engine.until(lambda: False)
        assert engine.values == ["before"]


def test_an_exception_before_the_first_yield_ends_the_stream_too() -> None:
    def failing(source: Lines, work: Work, offsets: Offsets) -> Iterator[Any]:
        raise ConfigError("No such file.", key="file")

    with reading(failing) as engine, pytest.raises(ConfigError, match="No such file"):
        engine.until(lambda: False)


def test_something_strange_yielded_is_told() -> None:
    def strange(source: Lines, work: Work, offsets: Offsets) -> Iterator[Any]:
        yield {"a": "dict"}

    with reading(strange) as engine, pytest.raises(ConnectorBugError, match="read yielded a dict; it may yield Record"):
        engine.until(lambda: False)


def test_rows_that_cannot_be_read_travel_beside_the_others() -> None:
    run = run_source(Lines, {"script": "rejected"})
    assert [record.value for record in run.records] == ["a", "c"]
    assert [(error.row, error.reason, error.raw) for error in run.row_errors] == [(1, "BAD_LINE", b"\xff")]
    assert run.offsets == {'{"p":0}': {"n": 3}}


def test_rows_of_many_kinds_keep_their_order() -> None:
    run = run_source(Lines, {"script": "mixed"})
    assert [record.value for record in run.records] == ["text", {"a": 1}, b"bytes", {"a": 1}, None]
    assert [record.key for record in run.records] == ["k", None, None, 7, "k"]
    third = run.records[2]
    assert (third.topic, third.headers, third.timestamp_ms, third.kafka_partition) == ("other", [("h", b"v")], 5, 2)


@pytest.mark.parametrize("encoding", Encoding)
def test_the_engine_chooses_the_encoding(encoding: Encoding) -> None:
    with reading("count", split=True, encodings=[encoding]) as engine:
        engine.until(lambda: engine.end)
        expected = [f'"{n}"' if encoding is Encoding.JSON_LINES else str(n) for n in range(10)]
        assert engine.values == expected


def test_committed_positions_reach_the_source() -> None:
    with reading("follow") as engine:
        engine.until(lambda: engine.rows == 10)
        committed = source_pb2.Committed(positions=to_proto.positions([Position('{"p":0}', '{"n":10}')]))
        engine.stream.send(source_pb2.ReadRequest(committed=committed))
        engine.drain()
        engine.until(lambda: engine.end)
        assert ("committed", [{"n": 10}]) in Lines.calls


def test_an_offset_left_out_is_asked_for_and_answered() -> None:
    found: list[Any] = []

    def asking(source: Lines, work: Work, offsets: Offsets) -> Iterator[Any]:
        found.extend([offsets.get({"p": 1}), offsets.get({"p": 2})])
        yield Record("x")

    with reading(asking, split=True, work=Work("0", partitions=('{"p":1}',))) as engine:
        engine.until(lambda: engine.messages.count("offset_query") == 1)
        answer = source_pb2.OffsetAnswer(id=1, positions=to_proto.positions([Position('{"p":1}', '{"n":1}')]))
        engine.stream.send(source_pb2.ReadRequest(offset_answer=answer))
        engine.until(lambda: engine.messages.count("offset_query") == 2)
        nothing = source_pb2.OffsetAnswer(id=2, positions=to_proto.positions([Position('{"p":2}', None)]))
        engine.stream.send(source_pb2.ReadRequest(offset_answer=nothing))
        engine.until(lambda: engine.end)
    assert found == [{"n": 1}, None]


def test_a_row_larger_than_a_message_comes_in_chunks() -> None:
    def large(source: Lines, work: Work, offsets: Offsets) -> Iterator[Any]:
        yield Record("x" * (20 << 20))

    with reading(large, split=True, credit_bytes=1 << 30) as engine:
        engine.until(lambda: engine.end)
        assert [len(value) for value in engine.values] == [20 << 20]


def test_a_row_over_the_limit_is_an_error_and_never_dropped_silently(monkeypatch: pytest.MonkeyPatch) -> None:
    def large(source: Lines, work: Work, offsets: Offsets) -> Iterator[Any]:
        yield Record("a")
        yield Record("x" * 3000, partition={"p": 0}, offset={"n": 2})
        yield Record("c")

    with sidecar(Lines, config={"script": "own"}) as client:
        from wherry.connector.v1 import plugin_pb2, plugin_pb2_grpc

        stub = plugin_pb2_grpc.PluginServiceStub(client.channel)  # type: ignore[no-untyped-call]
        limits = common_pb2.Limits(row_bytes_max=1000)
        stub.Hello(plugin_pb2.HelloRequest(revision_min=1, revision_max=1, limits=limits))
        Lines.scripts["own"] = large
        engine = Engine(client.read(generation=1, work=Work("0"), split=True, frame_bytes_target=1000))
        engine.until(lambda: engine.end)
        assert engine.values == ["a", "c"]
        errors = [error for batch in engine.batches for error in batch.row_errors]
        assert [error.reason for error in errors] == ["ROW_TOO_LARGE"]
        assert [mark for batch in engine.batches for mark in batch.marks] == [Mark(0, Position('{"p":0}', '{"n":2}'))]


def test_a_batch_larger_than_a_frame_is_cut_with_its_marks() -> None:
    def large(source: Lines, work: Work, offsets: Offsets) -> Iterator[Any]:
        rows = pa.array([b"x" * 1000] * 30_000)
        marks = [contract.Mark(n, Position.of({"p": 0}, {"n": n})) for n in range(1000, 30_001, 1000)]
        yield Batch(value=rows, marks=marks)

    with reading(large, split=True, credit_bytes=1 << 30) as engine:
        engine.until(lambda: engine.end)
        assert engine.rows == 30_000
        assert len(engine.batches) > 2
        reached = []
        before = 0
        for batch in engine.batches:
            reached += [before + mark.row_count for mark in batch.marks]
            before += batch.num_rows
        assert reached == list(range(1000, 30_001, 1000))


def test_a_silent_side_says_a_heartbeat(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_reading, "HEARTBEAT_INTERVAL_S", 0.1)
    monkeypatch.setattr(stream_module, "HEARTBEAT_INTERVAL_S", 0.1)
    at_sidecar: list[float] = []
    hear = _reading.Reading._hear

    def heard(self: Any, request: source_pb2.ReadRequest) -> None:
        hear(self, request)
        if request.HasField("heartbeat"):
            at_sidecar.append(self._heard_at)

    monkeypatch.setattr(_reading.Reading, "_hear", heard)
    with reading("follow") as engine:
        engine.until(lambda: "caught_up" in engine.messages)
        at_engine, ends = {engine.stream._heard_at}, time.monotonic() + WAIT_S
        while (len(at_engine) < 5 or len(set(at_sidecar)) < 5) and time.monotonic() < ends:
            assert not engine.step(0.02), "heartbeats aren't handed out"
            at_engine.add(engine.stream._heard_at)
        assert len(at_engine) >= 5, "the engine hears the sidecar"
        assert len(set(at_sidecar)) >= 5, "the sidecar hears the engine"
        assert not engine.stream.ended


def test_a_silent_engine_ends_the_stream(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_reading, "STREAM_SILENCE_MAX_S", 0.3)
    with reading("follow") as engine, pytest.raises(TransientError, match="The engine has been silent"):
        engine.until(lambda: False)


def test_a_silent_sidecar_ends_the_stream(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stream_module, "STREAM_SILENCE_MAX_S", 0.5)
    with reading("stuck") as engine, pytest.raises(TransientError, match="has been silent for"):
        engine.until(lambda: False)


def test_a_stream_of_another_generation_is_fenced() -> None:
    with sidecar(Lines, config={}, generation=5) as client, pytest.raises(FencedError, match="generation 4"):
        list(client.read(generation=4, work=Work("0")))


def test_a_new_generation_ends_the_streams_of_the_old_one() -> None:
    with sidecar(Lines, config={"script": "follow"}) as client:
        engine = Engine(client.read(generation=1, work=Work("0")))
        engine.until(lambda: engine.rows == 10)
        client.configure("test", "test.Lines", 2, {"script": "follow"})
        engine.until(lambda: engine.end)
        assert engine.end is not None


def test_two_streams_have_objects_and_rows_of_their_own() -> None:
    seen: set[int] = set()
    gate = threading.Barrier(2)

    def own(source: Lines, work: Work, offsets: Offsets) -> Iterator[Any]:
        seen.add(id(source))
        gate.wait(WAIT_S)
        yield Record(work.id)

    Lines.scripts["own"] = own
    with sidecar(Lines, config={"script": "own"}) as client:
        engines = [Engine(client.read(generation=1, work=Work(name), split=True)) for name in "ab"]
        for engine in engines:
            engine.until(lambda engine=engine: engine.end)
        assert [engine.values for engine in engines] == [["a"], ["b"]]
    assert len(seen) == 2
