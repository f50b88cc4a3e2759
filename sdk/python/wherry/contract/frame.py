"""Batches into frames and back, in all three encodings.

`FrameWriter` numbers frames, sends a schema when it is new and cuts a body that exceeds a message into chunks.
`FrameReader` does the reverse and refuses whatever breaks the rules with one sentence. One of each serves one
direction of one stream, from one thread.

Every frame takes a number, SCHEMA and MARK frames too; the chunks of one batch share theirs.
"""

from __future__ import annotations

import enum
from collections.abc import Iterator
from typing import Final

import pyarrow as pa

from wherry.connector.v1 import frame_pb2
from wherry.contract import columns, from_proto, json_lines, to_proto, wire
from wherry.contract.batch import NO_CONSTANTS, Batch, Mark, mark_only
from wherry.contract.errors import ConnectorBugError, SchemaError
from wherry.contract.limits import (
    FRAME_BYTES_TARGET,
    FRAME_CHUNKS_MAX,
    MESSAGE_BYTES_MAX,
    ROW_BYTES_MAX,
    SCHEMAS_PER_STREAM_MAX,
)
from wherry.contract.pieces import Pieces
from wherry.contract.wire import WireFrame


class Encoding(enum.IntEnum):
    """How the body of a frame is laid out; numbered as in the proto."""

    ARROW_IPC = 1
    COLUMNS = 2
    JSON_LINES = 3


# Tags, lengths and padding around header and body.
_ENVELOPE_BYTES_MAX: Final = 64
ALL_ENCODINGS: Final = (Encoding.ARROW_IPC, Encoding.COLUMNS, Encoding.JSON_LINES)


class ProtocolError(ConnectorBugError):
    """The peer breaks the rules of the contract."""

    def __init__(self, message: str, *, reason: str = "PROTOCOL") -> None:
        super().__init__(message, reason=reason)


class FrameWriter:
    """Makes the frames of one direction of one stream."""

    def __init__(self, encoding: Encoding = Encoding.ARROW_IPC, *, message_bytes_max: int = MESSAGE_BYTES_MAX) -> None:
        self._encoding = encoding
        self._message_bytes_max = message_bytes_max
        self._next_seq = 1
        self._schema: pa.Schema | None = None
        self._schema_id = 0
        self._schema_ids: dict[bytes, int] = {}

    @property
    def encoding(self) -> Encoding:
        """The encoding of the bodies."""
        return self._encoding

    @property
    def next_seq(self) -> int:
        """Number that the next frame will have; after `wire` returned, `next_seq - 1` is the batch's own."""
        return self._next_seq

    def frames(self, batch: Batch) -> Iterator[frame_pb2.Frame]:
        """Makes the frames of a batch as whole messages; `wire` spares the copies."""
        for frame in self.wire(batch):
            yield frame.message()

    def wire(self, batch: Batch) -> list[WireFrame]:
        """Makes the frames of a batch.

        Args:
            batch: The rows; a batch without rows becomes a MARK frame.

        Returns:
            A SCHEMA frame if the schema is new on this stream, then the BATCH frame, or its chunks, in order.

        Raises:
            SchemaError: The encoding doesn't have a type, or marks and row errors alone exceed a message.
        """
        if not batch.num_rows:
            header = self._header(batch, frame_pb2.FRAME_KIND_MARK)
            return [WireFrame(header)]
        records = _without_dictionaries(batch.records)
        frames = [] if self._encoding is Encoding.JSON_LINES else self._schema_frames(records.schema)
        header = self._header(batch, frame_pb2.FRAME_KIND_BATCH)
        if self._encoding is Encoding.ARROW_IPC:
            large = records.nbytes > self._message_bytes_max
            body: pa.Buffer | Pieces = Pieces(records) if large else records.serialize()
        elif self._encoding is Encoding.COLUMNS:
            body = columns.batch_body(records)
        else:
            body = json_lines.batch_body(records)
        return frames + self._chunks(header, body)

    def _schema_frames(self, schema: pa.Schema) -> list[WireFrame]:
        if self._schema is not None and self._schema.equals(schema, check_metadata=True):
            return []
        identity = schema.serialize()
        known = self._schema_ids.get(identity.to_pybytes())
        self._schema = schema
        if known:
            self._schema_id = known
            return []
        body = columns.schema_body(schema) if self._encoding is Encoding.COLUMNS else identity
        if len(self._schema_ids) >= SCHEMAS_PER_STREAM_MAX:
            # Numbers start over; a SCHEMA frame with a known number defines it anew.
            self._schema_ids.clear()
        self._schema_id = len(self._schema_ids) + 1
        self._schema_ids[identity.to_pybytes()] = self._schema_id
        header = frame_pb2.Frame(
            seq=self._take_seq(),
            kind=frame_pb2.FRAME_KIND_SCHEMA,
            schema_id=self._schema_id,
            encoding=int(self._encoding),  # type: ignore[arg-type]  # the enums share their numbers
        )
        return [WireFrame(header, body)]

    def _header(self, batch: Batch, kind: frame_pb2.FrameKind) -> frame_pb2.Frame:
        rows = batch.num_rows
        header = frame_pb2.Frame(
            seq=self._take_seq(),
            kind=kind,
            schema_id=self._schema_id if rows else 0,
            row_count=rows,
            encoding=int(self._encoding) if rows else None,  # type: ignore[arg-type]
            marks=map(to_proto.mark, batch.marks),
            traceparent=batch.traceparent,
            row_errors=map(to_proto.row_error, batch.row_errors),
        )
        if rows and batch.constants != NO_CONSTANTS:
            header.constants.CopyFrom(to_proto.constants(batch.constants))
        return header

    def _chunks(self, header: frame_pb2.Frame, body: pa.Buffer | Pieces) -> list[WireFrame]:
        """Cuts the body where it and the header exceed a message; marks and errors travel with the last chunk.

        Chunks are of the size that frames should have: one can be received while the next is made, and blocks of that
        size are used again by the heap, where each of 16 MiB would be new memory.
        """
        budget = self._message_bytes_max - _ENVELOPE_BYTES_MAX
        header_bytes = header.ByteSize()
        if header_bytes + body.size <= budget:
            return [WireFrame(header, body.slice(0, body.size))]
        if header_bytes >= budget:
            raise SchemaError(
                f"The marks and row errors of one batch take {header_bytes} bytes; a message has "
                f"{self._message_bytes_max}.",
                reason="HEADER_TOO_LARGE",
            )
        small = frame_pb2.Frame()
        small.CopyFrom(header)
        small.ClearField("marks")
        small.ClearField("row_errors")
        room = min(budget - small.ByteSize(), FRAME_BYTES_TARGET)
        front = body.size - min(body.size, budget - header_bytes, FRAME_BYTES_TARGET)
        pieces = [(start, min(start + room, front)) for start in range(0, front, room)] + [(front, body.size)]
        if len(pieces) > FRAME_CHUNKS_MAX:
            raise SchemaError(f"A batch of {body.size} bytes takes more than {FRAME_CHUNKS_MAX} chunks.")
        frames = []
        for index, (start, end) in enumerate(pieces):
            chunk = frame_pb2.Frame()
            chunk.CopyFrom(header if index == len(pieces) - 1 else small)
            chunk.chunk_index, chunk.chunk_count = index, len(pieces)
            frames.append(WireFrame(chunk, body.slice(start, end - start)))
        return frames

    def _take_seq(self) -> int:
        seq = self._next_seq
        self._next_seq += 1
        return seq


class FrameReader:
    """Reads the frames of one direction of one stream.

    Args:
        body_bytes_max: Largest body of a batch, its chunks taken together.
    """

    def __init__(self, *, body_bytes_max: int = ROW_BYTES_MAX + MESSAGE_BYTES_MAX) -> None:
        self._body_bytes_max = body_bytes_max
        self._last_seq = 0
        self._schemas: dict[tuple[int, int], pa.Schema] = {}
        self._chunks: list[pa.Buffer] = []
        self._chunks_bytes = 0
        self._chunk_count = 0

    @property
    def last_seq(self) -> int:
        """Number of the last frame read; 0 before the first."""
        return self._last_seq

    def feed(self, frame: frame_pb2.Frame | WireFrame) -> Batch | None:
        """Takes the next frame.

        Returns:
            A batch when the frame completes one, without rows for a MARK frame; None after a SCHEMA frame or a chunk
            that is not the last.

        Raises:
            ProtocolError: The frame breaks the rules; the stream can't go on.
        """
        if isinstance(frame, frame_pb2.Frame):
            frame = wire.of_message(frame)
        header = frame.header
        self._check_sequence(header)
        if header.kind == frame_pb2.FRAME_KIND_SCHEMA:
            self._define(header, frame.body)
            return None
        if header.kind == frame_pb2.FRAME_KIND_MARK:
            marks = _marks(header, 0)
            batch = mark_only(*marks)
            errors = tuple(map(from_proto.row_error, header.row_errors))
            return Batch(batch.records, marks=marks, row_errors=errors, traceparent=header.traceparent)
        if header.kind != frame_pb2.FRAME_KIND_BATCH:
            raise ProtocolError(f"Frame {header.seq} has the kind {header.kind}, which is none.")
        body = self._joined(header, frame.body)
        return None if body is None else self._batch(header, body)

    def _check_sequence(self, header: frame_pb2.Frame) -> None:
        if self._chunk_count:
            index = len(self._chunks)
            if header.seq != self._last_seq or header.chunk_index != index or header.chunk_count != self._chunk_count:
                raise ProtocolError(
                    f"Chunk {index} of {self._chunk_count} of frame {self._last_seq} was due; there came chunk "
                    f"{header.chunk_index} of {header.chunk_count} of frame {header.seq}."
                )
            return
        if header.seq != self._last_seq + 1:
            raise ProtocolError(f"Frame {self._last_seq + 1} was due; there came frame {header.seq}.")
        if header.chunk_index or header.chunk_count > FRAME_CHUNKS_MAX:
            raise ProtocolError(
                f"Frame {header.seq} starts with chunk {header.chunk_index} of {header.chunk_count}; chunks start at 0 "
                f"and are at most {FRAME_CHUNKS_MAX}."
            )
        self._last_seq = header.seq

    def _define(self, header: frame_pb2.Frame, body: pa.Buffer) -> None:
        encoding = _encoding(header)
        if not header.schema_id or len(self._schemas) >= 2 * SCHEMAS_PER_STREAM_MAX:
            raise ProtocolError(f"Frame {header.seq} defines schema {header.schema_id}; schemas are numbered from 1.")
        if encoding is Encoding.ARROW_IPC:
            try:
                schema = pa.ipc.read_schema(body)
            except (pa.ArrowException, OSError) as error:
                raise ProtocolError(f"Frame {header.seq} isn't an Arrow schema message ({error}).") from error
        elif encoding is Encoding.COLUMNS:
            schema = columns.read_schema(body)
        else:
            raise ProtocolError(f"Frame {header.seq} defines a schema in JSON_LINES, which needs none.")
        self._schemas[(encoding, header.schema_id)] = schema

    def _joined(self, header: frame_pb2.Frame, body: pa.Buffer) -> pa.Buffer | None:
        """Returns the whole body once it is there."""
        if header.chunk_count <= 1:
            return body
        self._chunk_count = header.chunk_count
        self._chunks.append(body)
        self._chunks_bytes += body.size
        if self._chunks_bytes > self._body_bytes_max:
            raise ProtocolError(
                f"Frame {header.seq} has more than {self._body_bytes_max} bytes in its chunks.", reason="ROW_TOO_LARGE"
            )
        if len(self._chunks) < header.chunk_count:
            return None
        whole = pa.py_buffer(b"".join(map(memoryview, self._chunks)))
        self._chunks, self._chunks_bytes, self._chunk_count = [], 0, 0
        return whole

    def _batch(self, header: frame_pb2.Frame, body: pa.Buffer) -> Batch:
        records = self._records(header, body)
        if records.num_rows != header.row_count:
            raise ProtocolError(f"Frame {header.seq} says {header.row_count} rows and has {records.num_rows}.")
        return Batch(
            records,
            from_proto.constants(header.constants) if header.HasField("constants") else NO_CONSTANTS,
            _marks(header, header.row_count),
            tuple(map(from_proto.row_error, header.row_errors)),
            header.traceparent,
        )

    def _records(self, header: frame_pb2.Frame, body: pa.Buffer) -> pa.RecordBatch:
        encoding = _encoding(header)
        if encoding is Encoding.JSON_LINES:
            return json_lines.read_batch(body, header.row_count)
        schema = self._schemas.get((encoding, header.schema_id))
        if schema is None:
            raise ProtocolError(f"Frame {header.seq} follows schema {header.schema_id}, which has not been sent.")
        if encoding is Encoding.COLUMNS:
            return columns.read_batch(body, schema, header.row_count)
        try:
            records = pa.ipc.read_record_batch(body, schema)
            # Arrow would follow damaged offsets out of its buffers; whoever sent them shall not take us along.
            records.validate(full=True)
        except (pa.ArrowException, OSError) as error:
            raise ProtocolError(f"Frame {header.seq} isn't a sound Arrow record batch message ({error}).") from error
        return records


def _marks(header: frame_pb2.Frame, row_count: int) -> tuple[Mark, ...]:
    """Reads and checks the marks of a frame.

    Raises:
        ProtocolError: They are out of order or behind the last row.
    """
    marks = tuple(map(from_proto.mark, header.marks))
    last = 0
    for mark in marks:
        if not last <= mark.row_count <= row_count:
            raise ProtocolError(
                f"Frame {header.seq} has {row_count} rows and a mark at row {mark.row_count} after one at {last}; "
                "marks rise and stay within the frame."
            )
        last = mark.row_count
    return marks


def _encoding(header: frame_pb2.Frame) -> Encoding:
    try:
        return Encoding(header.encoding)
    except ValueError:
        raise ProtocolError(f"Frame {header.seq} has the encoding {header.encoding}, which is none.") from None


def _without_dictionaries(records: pa.RecordBatch) -> pa.RecordBatch:
    """Spells out dictionary columns: a frame is one message, and their dictionaries would be others."""
    schema = records.schema
    if not any(pa.types.is_dictionary(data_type) for data_type in schema.types):
        return records
    for index, field in enumerate(schema):
        if pa.types.is_dictionary(field.type):
            plain = field.with_type(field.type.value_type)
            records = records.set_column(index, plain, records.column(index).dictionary_decode())
    return records
