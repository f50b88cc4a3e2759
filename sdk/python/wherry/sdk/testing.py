"""Runs a connector inside a test: its class behind real gRPC on a Unix socket, driven as the engine would drive it.

run = run_source(Counter, {"topic": "t", "count": "3"})
assert [record.value for record in run.records] == ["0", "1", "2"]
assert run.offsets == {'{"p":0}': {"n": 3}}
"""

from __future__ import annotations

import json
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any

from wherry.connector.v1 import common_pb2, sink_pb2, source_pb2
from wherry.contract import batch as contract
from wherry.contract import from_proto, to_proto
from wherry.contract.batch import RowError
from wherry.contract.client import SidecarClient
from wherry.contract.errors import TransientError
from wherry.contract.frame import Encoding, FrameReader, FrameWriter
from wherry.contract.limits import FRAMES_UNACKED_MAX
from wherry.contract.plan import Plan, Work
from wherry.contract.position import Position
from wherry.contract.stream import ApplyStream, ReadStream, WriteStream
from wherry.contract.wire import WireFrame
from wherry.sdk import _columns
from wherry.sdk.plugin import Plugin
from wherry.sdk.records import Record
from wherry.sdk.server import Server
from wherry.sdk.sink import Sink
from wherry.sdk.source import Source
from wherry.sdk.transform import Transform

CONNECTOR = "test"
DEADLINE_S = 30.0


@dataclass(slots=True)
class SourceRun:
    """What a source did.

    Attributes:
        records: The rows, in order of arrival; partition and offset of a source's own aren't part of what travels.
        positions: Last position of each partition, in order of first appearance.
        row_errors: Rows that could not be read.
        plan: The plan.
        caught_up: Whether it said that there was nothing more.
        complete: Ids of the splits read to their end.
    """

    records: list[Record] = field(default_factory=list)
    positions: list[Position] = field(default_factory=list)
    row_errors: list[RowError] = field(default_factory=list)
    plan: Plan = field(default_factory=Plan)
    caught_up: bool = False
    complete: list[str] = field(default_factory=list)

    @property
    def offsets(self) -> dict[str, Any]:
        """Last offset of each partition, by the partition's compact JSON."""
        return {position.partition: position.offset_map for position in self.positions}

    def take(self, batch: contract.Batch) -> None:
        """Adds what a batch brought."""
        self.records += _columns.rows_of(batch)
        self.row_errors += batch.row_errors
        known = {position.partition: place for place, position in enumerate(self.positions)}
        for mark in batch.marks:
            place = known.setdefault(mark.position.partition, len(self.positions))
            self.positions[place:] = [mark.position, *self.positions[place + 1 :]]


@dataclass(slots=True)
class SinkRun:
    """What a sink did.

    Attributes:
        stored: Positions that it returned when it was opened.
        row_errors: Rows that failed, by their number in the run.
        positions: Positions that the last flush called safe; empty means all.
        tokens: Tokens of the flushes.
        rows_written: Rows written.
        rows_failed: Rows that failed.
        rows_filtered: Rows left out on purpose.
    """

    stored: list[Position] = field(default_factory=list)
    row_errors: list[RowError] = field(default_factory=list)
    positions: list[Position] = field(default_factory=list)
    tokens: list[bytes] = field(default_factory=list)
    rows_written: int = 0
    rows_failed: int = 0
    rows_filtered: int = 0


@contextmanager
def sidecar(
    *classes: type[Plugin[Any]], config: Mapping[str, str] | None = None, generation: int = 1
) -> Iterator[SidecarClient]:
    """Serves classes in this process; with `config`, the first class is configured.

    Yields:
        A client, as the engine has one.
    """
    with tempfile.TemporaryDirectory(prefix="wherry-") as folder:
        server = Server(classes, f"unix://{folder}/s.sock", name="test", version="0")
        server.start()
        try:
            with SidecarClient(server.endpoint) as client:
                if config is not None:
                    configure(client, classes[0], config, generation)
                yield client
        finally:
            server.stop(1.0)


def configure(client: SidecarClient, plugin: type[Plugin[Any]], config: Mapping[str, str], generation: int = 1) -> None:
    """Configures a sidecar with a class."""
    shown, secrets = plugin.definition().split_secrets(config)
    client.configure(CONNECTOR, plugin.describe().class_name, generation, shown, secrets)


def run_source(
    source: type[Source[Any]],
    config: Mapping[str, str],
    offsets: Mapping[str, Mapping[str, Any]] | Sequence[tuple[Mapping[str, Any], Mapping[str, Any]]] = (),
    *,
    limit: int | None = None,
    tasks_max: int = 1,
    deadline_s: float = DEADLINE_S,
) -> SourceRun:
    """Plans a source and reads its tasks and splits, one after another.

    Args:
        source: The class.
        config: Its configuration, secrets included.
        offsets: Stored offsets: pairs of partition and offset, or `run.offsets` of an earlier run.
        limit: Stop after so many rows; None reads splits to their end and tasks until they have caught up.
        tasks_max: Most tasks.
        deadline_s: Time for everything.

    Raises:
        WherryError: What the source raised, as the engine would see it.
    """
    pairs = (
        [(json.loads(text), offset) for text, offset in offsets.items()] if isinstance(offsets, Mapping) else offsets
    )
    stored = [Position.of(partition, offset) for partition, offset in pairs]
    ends = time.monotonic() + deadline_s
    with sidecar(source, config=config) as client:
        run = SourceRun(plan=client.plan(stored, tasks_max))
        for split, work in [*((False, task) for task in run.plan.tasks), *((True, item) for item in run.plan.splits)]:
            if limit is not None and len(run.records) >= limit:
                break
            _read(client, run, work, split, stored, limit, ends)
    if limit is not None:
        del run.records[limit:]
    return run


def _read(
    client: SidecarClient,
    run: SourceRun,
    work: Work,
    split: bool,
    stored: Sequence[Position],
    limit: int | None,
    ends: float,
) -> None:
    wanted = [position for position in stored if not work.partitions or position.partition in work.partitions]
    stream = client.read(generation=1, work=work, split=split, positions=wanted)
    reader = FrameReader()
    drained = False
    while True:
        message = _received(stream, ends)
        if message is None:
            return
        if isinstance(message, WireFrame):
            batch = reader.feed(message)
            if batch is not None:
                run.take(batch)
            if batch is not None and batch.num_rows:
                credit = common_pb2.Credit(frames=1, bytes=message.body.size)
                stream.send(source_pb2.ReadRequest(credit=credit))
        elif message.HasField("offset_query"):
            query = message.offset_query
            by_partition = {position.partition: position for position in stored}
            answer = [by_partition.get(text, Position(text, None)) for text in query.partitions_json]
            stream.send(
                source_pb2.ReadRequest(
                    offset_answer=source_pb2.OffsetAnswer(id=query.id, positions=to_proto.positions(answer))
                )
            )
        elif message.HasField("caught_up"):
            run.caught_up = True
        elif message.HasField("end"):
            if message.end.complete:
                run.complete.append(work.id)
            return
        enough = limit is not None and len(run.records) >= limit
        if not drained and (enough or (run.caught_up and not split)):
            committed = source_pb2.Committed(positions=to_proto.positions(run.positions))
            stream.send(source_pb2.ReadRequest(committed=committed))
            stream.send(source_pb2.ReadRequest(drain=common_pb2.Drain(deadline_ms=5000)))
            drained = True


def run_sink(
    sink: type[Sink[Any]],
    config: Mapping[str, str],
    records: Sequence[Record] | Sequence[contract.Batch],
    *,
    batch_rows: int = 1000,
    deadline_s: float = DEADLINE_S,
    encoding: Encoding = Encoding.ARROW_IPC,
) -> SinkRun:
    """Writes rows to a sink and flushes, as the engine would.

    Args:
        sink: The class.
        config: Its configuration, secrets included.
        records: Rows, or batches.
        batch_rows: Rows in a frame.
        deadline_s: Time for everything.
        encoding: Encoding of the frames.

    Raises:
        WherryError: What the sink raised, as the engine would see it.
    """
    ends = time.monotonic() + deadline_s
    run = SinkRun()
    with sidecar(sink, config=config) as client:
        stream = client.write(pipeline=CONNECTOR, generation=1, encodings=[encoding])
        opened = _received(stream, ends)
        assert isinstance(opened, sink_pb2.WriteResponse)
        run.stored = list(from_proto.positions(opened.opened.positions))
        sender = _Sender(stream, run, FrameWriter(encoding), ends, opened.opened.credit.frames)
        for batch in _batches(records, batch_rows):
            sender.send(batch)
        sender.flush()
        stream.half_close()
        if _received(stream, ends) is not None:
            raise TransientError("The sink went on talking after the last flush.")
    return run


@dataclass(slots=True)
class TransformRun:
    """What a transformation did.

    Attributes:
        records: The new rows.
        lineage: For each new row the index of the row it came from.
        row_errors: Rows that failed, by their index among all.
        batches: The new rows as they travelled.
    """

    records: list[Record] = field(default_factory=list)
    lineage: list[int] = field(default_factory=list)
    row_errors: list[RowError] = field(default_factory=list)
    batches: list[contract.Batch] = field(default_factory=list)


def run_transform(
    transform: type[Transform[Any]],
    config: Mapping[str, str],
    records: Sequence[Record] | Sequence[contract.Batch],
    *,
    batch_rows: int = 1000,
    deadline_s: float = DEADLINE_S,
    encoding: Encoding = Encoding.ARROW_IPC,
) -> TransformRun:
    """Sends rows through a transformation, as the engine would.

    Args:
        transform: The class.
        config: Its configuration, secrets included.
        records: Rows, or batches.
        batch_rows: Rows in a frame.
        deadline_s: Time for everything.
        encoding: Encoding of the frames.

    Raises:
        WherryError: What the transformation raised, as the engine would see it.
    """
    ends = time.monotonic() + deadline_s
    run = TransformRun()
    with sidecar(transform, config=config) as client:
        stream = client.apply(generation=1, encodings=[encoding])
        _received(stream, ends)
        writer, reader, start = FrameWriter(encoding), FrameReader(), 0
        for batch in _batches(records, batch_rows):
            for frame in writer.wire(batch):
                stream.send(frame)
            _take_answer(stream, reader, run, start, batch.num_rows, ends)
            start += batch.num_rows
        stream.half_close()
        if _received(stream, ends) is not None:
            raise TransientError("The transformation went on talking after its last answer.")
    return run


def _take_answer(
    stream: ApplyStream, reader: FrameReader, run: TransformRun, start: int, rows: int, ends: float
) -> None:
    while True:
        message = _received(stream, ends)
        if message is None:
            raise TransientError("The transformation ended the stream before it had answered.")
        batch = reader.feed(message.frame.frame)
        if batch is not None and batch.num_rows:
            run.batches.append(batch)
            run.records += _columns.rows_of(batch)
            run.lineage += [start + row for row in message.frame.lineage or range(rows)]
        for error in map(from_proto.row_error, message.frame.row_errors):
            run.row_errors.append(replace(error, row=start + error.row))
        if message.frame.answers_seq:
            return


class _Sender:
    """The engine's side of a Write stream, with its credit."""

    def __init__(self, stream: WriteStream, run: SinkRun, writer: FrameWriter, ends: float, frames: int) -> None:
        self._stream = stream
        self._run = run
        self._writer = writer
        self._ends = ends
        self._free = min(frames or FRAMES_UNACKED_MAX, FRAMES_UNACKED_MAX)
        self._starts: dict[int, int] = {}
        self._rows = 0

    def send(self, batch: contract.Batch) -> None:
        while not self._free:
            self._take()
        frames = self._writer.wire(batch)
        self._starts[self._writer.next_seq - 1] = self._rows
        self._rows += batch.num_rows
        self._free -= bool(batch.num_rows)
        for frame in frames:
            self._stream.send(frame)

    def flush(self) -> None:
        self._stream.send(sink_pb2.WriteRequest(flush=sink_pb2.Flush(id=1, final=True)))
        while not self._take():
            pass

    def _take(self) -> bool:
        """Takes one message; returns whether it was the answer to the flush."""
        message = _received(self._stream, self._ends)
        if message is None:
            raise TransientError("The sink ended the stream before it was flushed.")
        if message.HasField("ack"):
            self._free += 1
            self._failed(message.ack.seq, message.ack.row_errors)
        if not message.HasField("flushed"):
            return False
        flushed, run = message.flushed, self._run
        for late in flushed.failed:
            self._failed(late.seq, late.row_errors)
        run.positions = list(from_proto.positions(flushed.positions))
        run.tokens += [flushed.token] if flushed.token else []
        run.rows_written += flushed.rows_written
        run.rows_failed += flushed.rows_failed
        run.rows_filtered += flushed.rows_filtered
        return True

    def _failed(self, seq: int, errors: Any) -> None:
        start = self._starts[seq]
        for error in map(from_proto.row_error, errors):
            self._run.row_errors.append(
                RowError(start + error.row, error.error_class, error.reason, error.field_path, error.message, error.raw)
            )


def _batches(records: Sequence[Any], batch_rows: int) -> Iterator[contract.Batch]:
    if records and isinstance(records[0], contract.Batch):
        yield from records
        return
    for start in range(0, len(records), batch_rows):
        yield from _columns.batches(records[start : start + batch_rows], None)


def _received(stream: ReadStream | WriteStream | ApplyStream, ends: float) -> Any:
    message = stream.receive(max(0.0, ends - time.monotonic()))
    if message is None and not stream.ended:
        stream.cancel()
        raise TransientError("The connector took longer than the test allows.", reason="TEST_DEADLINE")
    return message


__all__ = [
    "SinkRun",
    "SourceRun",
    "TransformRun",
    "configure",
    "run_sink",
    "run_source",
    "run_transform",
    "sidecar",
]
