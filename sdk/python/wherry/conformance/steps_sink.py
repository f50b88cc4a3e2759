"""Steps about sinks: Write streams, acks, flushes, and what has arrived."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Final

import grpc
import pyarrow as pa

from wherry.conformance.failure import Failure, Inapplicable
from wherry.conformance.rows import PARTITION, SHORT_TEXT, TOPIC, column, sample_batch
from wherry.conformance.running import Running
from wherry.conformance.streams import RECEIVE_DEADLINE_S, Writing, encodings
from wherry.conformance.subject import delivered_rows
from wherry.connector.v1 import plugin_pb2, sink_pb2
from wherry.contract import from_proto
from wherry.contract.batch import Mark, mark_only
from wherry.contract.position import (
    Position,
    TopicPartition,
    kafka_partition_json,
    kafka_position,
    parse_kafka_position,
)

MARKS_MAX: Final = 100_000


def open_write(
    run: Running, stream: str = "write", *, shift: int = 0, encoding: list[str] | None = None, prepare: bool = True
) -> None:
    """Opens a Write stream; a sink that wants a schema is asked for its target first."""
    if prepare:
        _ensure_target(run)
    opening = sink_pb2.WriteOpen(
        pipeline=run.connector,
        generation=run.generation + shift,
        partitions_json=[kafka_partition_json(TOPIC, PARTITION)],
        encodings=encodings(encoding),
    )
    run.keep(stream, Writing(run.session.wire, opening, run.session.message_bytes_max))


def write(
    run: Running,
    stream: str = "write",
    *,
    frames: int = 1,
    rows: int = 10,
    first: int = 0,
    text_bytes: int = 0,
    bad_row: int = -1,
    marked: bool = True,
    renamed: bool = False,
) -> None:
    """Sends frames of sample rows, numbered from `first`, as far as there is credit.

    Without marks they are pieces of a batch that was cut, whose last piece is still to come. Renamed, they say that
    they were read from another topic partition.
    """
    text = "x" * text_bytes or SHORT_TEXT
    if text_bytes > run.session.row_bytes_max:
        raise Inapplicable(f"The sidecar takes rows of at most {run.session.row_bytes_max} bytes.")
    writing = run.writing(stream)
    for index in range(frames):
        start = first + index * rows
        batch = sample_batch(run.subject, run.variables, first=start, count=rows, text=text, bad_row=bad_row)
        if renamed:
            batch = batch.with_constants(replace(batch.constants, original_topic="before", original_partition=7))
        writing.write(batch if marked else batch.with_marks())


def write_rest(run: Running, stream: str = "write", *, until: int, unless_stored: int) -> None:
    """Sends the rows up to a number as the engine does after a crash: from the stored position on.

    Args:
        run: The run.
        stream: The Write stream.
        until: Number of the first row that is not sent.
        unless_stored: Number of the first row for a sink that stores no position.
    """
    writing = run.writing(stream)
    writing.wait_until_opened()
    assert writing.opened is not None
    first = unless_stored
    for position in writing.opened.positions:
        partition, offset = parse_kafka_position(from_proto.position(position))
        if partition == TopicPartition(TOPIC, PARTITION) and offset is not None:
            first = offset
    if first < until:
        write(run, stream, rows=until - first, first=first)


def write_marks(run: Running, stream: str = "write", *, until_seq: int, first: int = 0) -> None:
    """Sends MARK frames until the next frame has a number."""
    writing = run.writing(stream)
    writing.wait_until_opened()
    mark = Mark(0, kafka_position(TOPIC, PARTITION, first))
    for _ in range(MARKS_MAX):
        if writing.writer.next_seq >= until_seq:
            return
        writing.write(mark_only(mark))


def acks(run: Running, stream: str = "write", *, within_s: float = RECEIVE_DEADLINE_S) -> None:
    """Every frame is acknowledged, in order."""
    run.writing(stream).wait_for_acks(within_s)


def flush(
    run: Running,
    stream: str = "write",
    *,
    final: bool = False,
    written: int | None = None,
    failed: int | None = None,
    within_s: float = RECEIVE_DEADLINE_S,
) -> None:
    """Flushes; rows in are rows written, failed and filtered, and the positions are among those that marks told."""
    writing = run.writing(stream)
    flushed = writing.flush(final=final, within_s=within_s)
    if written is not None and flushed.rows_written != written:
        raise Failure(f"{flushed.rows_written} rows were written; it should be {written}.")
    if failed is not None and flushed.rows_failed != failed:
        raise Failure(f"{flushed.rows_failed} rows failed; it should be {failed}.")
    _check_positions(writing, flushed, final)
    if run.description.sink_class == plugin_pb2.SINK_CLASS_TWO_PHASE and flushed.token:
        request = sink_pb2.CommitRequest(generation=run.generation, tokens=[flushed.token], positions=flushed.positions)
        for repeated in (False, True):
            answer = run.call("SinkService.Commit", request)
            if repeated and not answer.repeated_commit:
                raise Failure("Commit did not notice that the tokens had been applied before.")
    writing.failed_rows.clear()


def flush_with_bad_row(run: Running, stream: str = "write", *, row: int, rows: int) -> None:
    """The flush accounts for one failed row and names it; the others are written."""
    writing = run.writing(stream)
    flushed = writing.flush()
    told = sorted(index for _, index in set(writing.failed_rows))
    if told != [row]:
        raise Failure(f"Row {row} is bad; errors were told of the rows {told}.")
    if flushed.rows_written + flushed.rows_filtered != rows - 1:
        raise Failure(f"{flushed.rows_written} rows were written beside the bad one; it should be {rows - 1}.")
    writing.failed_rows.clear()


def close(run: Running, stream: str = "write", *, within_s: float = 10.0) -> None:
    """The stream ends well when the engine half-closes it."""
    writing = run.writing(stream)
    writing.half_close()
    writing.expect_end([], within_s)


def delivered(run: Running, *, rows: int, at_least: bool = False) -> None:
    """So many rows are at the destination."""
    found = delivered_rows(run.subject, run.variables)
    if found < rows or (found > rows and not at_least):
        raise Failure(f"{found} rows are at the destination; it should be {'at least ' if at_least else ''}{rows}.")


def delivered_once(run: Running, *, rows: int) -> None:
    """So many rows are at the destination; more only where a sink stores no positions with its rows."""
    once = run.description.sink_class == plugin_pb2.SINK_CLASS_TRANSACTIONAL
    delivered(run, rows=rows, at_least=not once)


def stored_positions(run: Running, stream: str = "write", *, offsets: Sequence[int]) -> None:
    """`opened` tells a position that may have been stored with the data."""
    writing = run.writing(stream)
    writing.wait_until_opened()
    assert writing.opened is not None
    told = {position.partition_json: position.offset_json for position in writing.opened.positions}
    allowed = [kafka_position(TOPIC, PARTITION, offset) for offset in offsets]
    if told.get(allowed[0].partition) not in [position.offset for position in allowed]:
        raise Failure(f"`opened` tells the positions {told}; {allowed[0].partition} should be at one of {offsets}.")


def ensure_target_twice(run: Running) -> None:
    """EnsureTarget may be repeated, and a dry run changes nothing."""
    for dry_run in (True, False, False):
        _ensure_target(run, dry_run=dry_run)


def _ensure_target(run: Running, *, dry_run: bool = False) -> None:
    request = sink_pb2.EnsureTargetRequest(topic=TOPIC, dry_run=dry_run)
    if run.description.capabilities.typed and run.subject.value.kind == "struct":
        fields = [pa.field("value", column(run.subject.value, []).type)]
        if run.subject.key is not None:
            fields.insert(0, pa.field("key", column(run.subject.key, []).type))
        request.schema = pa.schema(fields).serialize().to_pybytes()
    try:
        run.call("SinkService.EnsureTarget", request)
    except grpc.RpcError as error:
        if error.code() is not grpc.StatusCode.UNIMPLEMENTED:
            raise Failure(f"EnsureTarget failed: {error.code().name}, {error.details()}.") from None


def _check_positions(writing: Writing, flushed: sink_pb2.Flushed, final: bool) -> None:
    for position in flushed.positions:
        last = writing.last_mark.get(position.partition_json)
        if last is None:
            raise Failure(f"`flushed` tells a position of {position.partition_json}, which no mark has told.")
        _, told = parse_kafka_position(from_proto.position(position))
        _, known = parse_kafka_position(Position(position.partition_json, last))
        if told is None or known is None or told > known or (final and told < known):
            raise Failure(
                f"`flushed` tells {position.offset_json} for {position.partition_json}; the last mark told {last}"
                f"{', and the flush was the final one' if final else ''}."
            )
