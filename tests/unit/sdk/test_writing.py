"""Write streams: acks in order, every row accounted for, every end told."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pyarrow as pa
import pytest
from sdk_connectors import Basket

from wherry.connector.v1 import sink_pb2
from wherry.contract import from_proto
from wherry.contract.batch import JSON_TYPE, Batch, Constants, Mark, mark_only, of_value
from wherry.contract.errors import ConfigError, ConnectorBugError, FencedError, RecordRejectedError, TransientError
from wherry.contract.frame import Encoding, FrameWriter
from wherry.contract.position import Position, kafka_position
from wherry.contract.stream import WriteStream
from wherry.sdk import Batch as AuthorsBatch
from wherry.sdk import Config, Record, Sink, _conversation
from wherry.sdk._columns import rows_of
from wherry.sdk.testing import run_sink, sidecar

WAIT_S = 60.0


class Engine:
    """The engine's side of one Write stream."""

    def __init__(self, stream: WriteStream) -> None:
        self.stream = stream
        self.writer = FrameWriter()
        self.opened = self.next("opened").opened

    def next(self, expected: str) -> Any:
        message = self.stream.receive(WAIT_S)
        assert message is not None, f"{expected} was due; the stream has ended"
        assert message.WhichOneof("message") == expected
        return message

    def send(self, *values: Any) -> int:
        for frame in self.writer.wire(of_value(pa.array(values))):
            self.stream.send(frame)
        return self.writer.next_seq - 1

    def flush(self, number: int = 1, *, final: bool = False) -> Any:
        self.stream.send(sink_pb2.WriteRequest(flush=sink_pb2.Flush(id=number, final=final)))

    def failure(self) -> None:
        """Takes what comes until the stream breaks off."""
        while self.stream.receive(WAIT_S) is not None:
            pass
        assert self.stream.ended, "the stream should have ended"


@contextmanager
def writing(script: str = "", **options: Any) -> Iterator[Engine]:
    with sidecar(Basket, config={"script": script}) as client:
        engine = Engine(client.write(pipeline="orders", generation=1, **options))
        yield engine
        engine.stream.cancel()


def test_opening_gives_credit_and_stored_positions() -> None:
    with writing(task=3, partitions=['{"p":0}']) as engine:
        assert engine.opened.encoding == Encoding.ARROW_IPC
        assert (engine.opened.credit.frames, engine.opened.credit.bytes) == (8, 16 << 20)
        assert from_proto.positions(engine.opened.positions) == (Position('{"p":0}', '{"n":5}'),)
        assert Basket.calls[0] == ("open", "orders", 3, [{"p": 0}])


def test_frames_are_acknowledged_once_each_and_in_order() -> None:
    with writing() as engine:
        sent = [engine.send(f"{n}") for n in range(8)]
        assert [engine.next("ack").ack.seq for _ in sent] == sent


def test_a_flush_accounts_for_every_row() -> None:
    with writing() as engine:
        first = engine.send("good", "bad", "skip", "late")
        second = engine.send("good", "late")
        engine.flush(7)
        acks = [engine.next("ack").ack for _ in range(2)]
        assert [(ack.seq, [error.row for error in ack.row_errors]) for ack in acks] == [(first, [1]), (second, [])]
        flushed = engine.next("flushed").flushed
        assert flushed.id == 7
        assert (flushed.rows_written, flushed.rows_failed, flushed.rows_filtered) == (2, 3, 1)
        late = [(told.seq, [(error.row, error.reason) for error in told.row_errors]) for told in flushed.failed]
        assert late == [(first, [(3, "LATE")]), (second, [(1, "LATE")])]
        engine.flush(8)
        assert engine.next("flushed").flushed.rows_written == 0, "each flush counts from the one before"


def test_a_flush_may_say_less_or_give_a_token() -> None:
    with writing("less") as engine:
        engine.flush()
        assert from_proto.positions(engine.next("flushed").flushed.positions) == (Position('{"p":0}', '{"n":1}'),)
    with writing("token") as engine:
        engine.flush()
        assert engine.next("flushed").flushed.token == b"token"


def test_half_closing_after_the_last_flush_ends_well() -> None:
    with writing() as engine:
        engine.send("a")
        engine.flush(final=True)
        engine.next("ack")
        engine.next("flushed")
        engine.stream.half_close()
        assert engine.stream.receive(WAIT_S) is None
        assert engine.stream.ended
    assert Basket.calls[1:] == [("flush", True), "close"]


def test_marks_alone_reach_the_sink_and_need_no_ack() -> None:
    seen: list[Batch] = []

    class Seeing(Sink[Config]):
        class_name = "test.Seeing"

        def write_batch(self, batch: Batch) -> None:
            seen.append(batch)

    run = run_sink(Seeing, {}, [mark_only(kafka_position("t", 0, 3)), of_value(pa.array(["a"]))])
    assert [(batch.num_rows, len(batch.marks)) for batch in seen] == [(0, 1), (1, 0)]
    assert run.rows_written == 1


def test_a_batch_arrives_with_its_constants_and_marks() -> None:
    seen: list[Record] = []

    class Seeing(Sink[Config]):
        class_name = "test.Seeing"

        def write_record(self, record: Record) -> None:
            seen.append(record)

    batch = of_value(
        pa.array(["a", None]),
        key=pa.array([b"k", None]),
        constants=Constants("t", 2, 40, 1000),
        marks=[Mark(2, kafka_position("t", 2, 42))],
    )
    run_sink(Seeing, {}, [batch])
    told = [(row.topic, row.kafka_partition, row.kafka_offset, row.timestamp_ms, row.key, row.value) for row in seen]
    assert told == [("t", 2, 40, 1000, b"k", "a"), ("t", 2, 41, 1000, None, None)]


@pytest.mark.parametrize("encoding", Encoding)
def test_every_encoding_is_taken(encoding: Encoding) -> None:
    run = run_sink(Basket, {}, [Record({"a": n}) for n in range(3)], encoding=encoding)
    assert run.rows_written == 3
    assert [row.value for row in Basket.rows] == [{"a": 0}, {"a": 1}, {"a": 2}]


@pytest.mark.parametrize(
    ("script", "expected", "text"),
    [
        ("raise", ConnectorBugError, "ZeroDivisionError: by nothing"),
        ("account", ConnectorBugError, "0 rows failed and 1000 were filtered, of 1 that came"),
    ],
)
def test_a_failing_sink_ends_the_stream_with_its_class(script: str, expected: type[Exception], text: str) -> None:
    with writing(script) as engine:
        engine.send("x")
        engine.flush()
        with pytest.raises(expected, match=text):
            engine.failure()
    assert Basket.calls[-1] == "close"


def test_a_row_that_fails_twice_is_a_bug_of_the_sink() -> None:
    with writing("twice") as engine:
        engine.send("bad")
        with pytest.raises(ConnectorBugError, match="each may fail once"):
            engine.failure()


def test_a_sink_that_cannot_open_tells_why() -> None:
    with sidecar(Basket, config={"script": "open"}) as client:
        stream = client.write(pipeline="p", generation=1)
        with pytest.raises(ConfigError, match="No such table") as refused:
            stream.receive(WAIT_S)
        assert refused.value.key == "table"


def test_frames_without_credit_are_refused() -> None:
    with writing("slow") as engine:
        for n in range(12):
            engine.send(str(n))
        with pytest.raises(ConnectorBugError, match="no credit was given"):
            engine.failure()


def test_a_gap_in_the_numbers_is_refused() -> None:
    with writing() as engine:
        engine.writer.wire(of_value(pa.array(["lost"])))
        engine.send("x")
        with pytest.raises(ConnectorBugError, match="Frame 1 was due"):
            engine.failure()


def test_changed_partitions_reach_the_sink_in_order() -> None:
    with writing() as engine:
        changed = sink_pb2.PartitionsChanged(partitions_json=['{"p":1}', '{"p":2}'])
        engine.stream.send(sink_pb2.WriteRequest(partitions=changed))
        engine.flush()
        engine.next("flushed")
        assert Basket.calls[1:] == [("partitions", [{"p": 1}, {"p": 2}]), ("flush", False)]


def test_a_sink_may_ask_for_a_pause_a_rewind_and_patience() -> None:
    with writing("tell") as engine:
        engine.send("x")
        backoff = engine.next("backoff").backoff
        assert (backoff.delay_ms, backoff.reason) == (100, "Too fast.")
        assert from_proto.positions(engine.next("rewind").rewind.positions) == (Position('{"p":0}', '{"n":1}'),)
        assert list(engine.next("pause").pause.partitions_json) == ['{"p":0}']
        engine.next("ack")


def test_a_slow_sink_keeps_the_stream_alive(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_conversation, "HEARTBEAT_INTERVAL_S", 0.1)
    Basket.let.clear()
    with writing("held") as engine:
        engine.send("x")
        heard, ends = set(), time.monotonic() + WAIT_S
        try:
            while len(heard) < 4 and time.monotonic() < ends:
                assert engine.stream.receive(0.02) is None
                heard.add(engine.stream._heard_at)
        finally:
            Basket.let.set()
        assert len(heard) == 4, "heartbeats are heard while the sink is busy"
        engine.next("ack")


def test_a_cancelled_stream_closes_the_sink() -> None:
    with writing() as engine:
        engine.send("x")
        engine.next("ack")
        engine.stream.cancel()
        ends = time.monotonic() + WAIT_S
        while "close" not in Basket.calls and time.monotonic() < ends:
            time.sleep(0.01)
    assert Basket.calls[-1] == "close"


def test_stopping_the_sidecar_ends_the_stream_with_a_transient_error() -> None:
    with sidecar(Basket, config={}) as client:
        engine = Engine(client.write(pipeline="p", generation=1))
        client.stop(deadline_s=10.0)
        with pytest.raises(TransientError, match="stopping"):
            engine.failure()


def test_another_generation_is_fenced() -> None:
    with sidecar(Basket, config={}) as client, pytest.raises(FencedError):
        list(client.write(pipeline="p", generation=2))


def test_no_thread_is_left_behind() -> None:
    run_sink(Basket, {}, [Record("a")])
    ends = time.monotonic() + WAIT_S

    def left() -> list[str]:
        names = ("write", "receive /wherry")
        return [thread.name for thread in threading.enumerate() if thread.name.startswith(names)]

    while left() and time.monotonic() < ends:
        time.sleep(0.01)
    assert left() == []


class Collecting(Sink[Config]):
    class_name = "test.Collecting"

    def __init__(self) -> None:
        self.seen: list[Any] = []

    def write_record(self, record: Record) -> None:
        if record.value == "refused":
            raise RecordRejectedError("It is refused.", reason="REFUSED")
        self.seen.append(record.value)


def test_a_row_that_is_no_json_is_rejected_and_the_others_are_written() -> None:
    sink = Collecting()
    texts = pa.array(['{"a":1}', "{", '"refused"', "2"])
    errors = sink.write_batch(AuthorsBatch(value=pa.ExtensionArray.from_storage(JSON_TYPE, texts)))
    assert sink.seen == [{"a": 1}, 2]
    assert sorted((error.row, error.reason) for error in errors or ()) == [(1, "BAD_JSON"), (2, "REFUSED")]


def test_a_day_beyond_pythons_years_is_rejected_and_the_others_are_written() -> None:
    sink = Collecting()
    days = pa.array([0, 2_147_483_647, 1], pa.int32()).cast(pa.date32())
    errors = sink.write_batch(AuthorsBatch(value=days))
    assert [(error.row, error.reason) for error in errors or ()] == [(1, "OUT_OF_RANGE")]
    assert [day.isoformat() for day in sink.seen] == ["1970-01-01", "1970-01-02"]


def test_a_record_that_was_moved_tells_where_it_was_read() -> None:
    moved = Constants(topic="new", partition=0, first_offset=4, original_topic="old", original_partition=2)
    stayed = Constants(topic="t", partition=1, first_offset=4)
    told = [
        (row.topic, row.original_topic, row.original_partition, row.kafka_offset)
        for constants in (moved, stayed)
        for row in rows_of(of_value(pa.array(["v"]), constants=constants))
    ]
    assert told == [("new", "old", 2, 4), ("t", None, None, 4)]
