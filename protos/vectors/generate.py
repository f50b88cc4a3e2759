"""Writes `frames.json`, the golden byte vectors of Frame, for implementations in any language.

Each case has the serialized Frame messages of one stream direction, base64, and what a reader must make of them: the
rows, marks and row errors of each batch, or part of the sentence it must refuse them with. Vectors never change once
released: a new rule gets a new case. Run it after adding one: `python protos/vectors/generate.py`.
"""

from __future__ import annotations

import base64
import json
import sys
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import pyarrow as pa

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "sdk" / "python"))

from wherry.connector.v1 import frame_pb2  # noqa: E402
from wherry.contract.batch import (  # noqa: E402
    HEADERS_TYPE,
    JSON_TYPE,
    TIMESTAMP_TYPE,
    Batch,
    Constants,
    Mark,
    RowError,
    mark_only,
    of_value,
)
from wherry.contract.errors import ErrorClass  # noqa: E402
from wherry.contract.frame import ALL_ENCODINGS, Encoding, FrameReader, FrameWriter  # noqa: E402
from wherry.contract.position import kafka_position  # noqa: E402

TARGET = Path(__file__).with_name("frames.json")


def full_batch() -> Batch:
    """A batch that uses everything a frame has."""
    texts = pa.array(['{"a":1}', None, '{"b":[1,2]}'])
    return Batch(
        of_value(
            pa.ExtensionArray.from_storage(JSON_TYPE, texts),
            key=pa.array(["k1", "k2", None]),
            headers=pa.array([[{"name": "h", "value": b"x"}], None, []], HEADERS_TYPE),
            timestamp=pa.array([0, 1, 1_700_000_000_000], pa.int64()).cast(TIMESTAMP_TYPE),
        ).records,
        Constants(topic="orders", partition=3, first_offset=40),
        (Mark(1, kafka_position("orders", 3, 41)), Mark(3, kafka_position("orders", 3, 43))),
        (RowError(1, ErrorClass.SCHEMA, "BAD_LINE", "", "Line 2 isn't JSON.", b"\xc2\x3e\x03{x}"),),
        "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
    )


def columns_batch() -> Batch:
    """A batch of every type that the COLUMNS encoding has."""
    struct = pa.struct([pa.field("n", pa.int16(), nullable=False), pa.field("list", pa.list_(pa.string()))])
    value = pa.struct(
        [
            *(pa.field(str(kind), kind) for kind in (pa.bool_(), pa.int8(), pa.int16(), pa.int32(), pa.int64())),
            *(pa.field(str(kind), kind) for kind in (pa.float32(), pa.float64(), pa.string(), pa.binary())),
            *(pa.field(name, kind) for name, kind in (("date", pa.date32()), ("time", pa.time32("ms")))),
            pa.field("at", TIMESTAMP_TYPE, metadata={"connect.name": "org.apache.kafka.connect.data.Timestamp"}),
            pa.field("nested", struct),
        ]
    )
    rows = [
        dict(zip(value.names, cells, strict=True))
        for cells in (
            (True, -1, 2, 3, 4, 0.5, 1.5, "é", b"\x00\xff", 1, 2, 3, {"n": 1, "list": ["a", None]}),
            (None,) * 13,
            (False, 127, -32768, 0, 2**62, -0.0, 1e300, "", b"", 0, 0, 0, {"n": 2, "list": []}),
        )
    ]
    return of_value(_typed(rows, value))


def _typed(rows: list[dict[str, Any]], value: pa.StructType) -> pa.Array:
    children = []
    for field in value:
        cells = [row[field.name] for row in rows]
        if pa.types.is_date(field.type) or pa.types.is_time(field.type):
            children.append(pa.array(cells, pa.int32()).cast(field.type))
        elif pa.types.is_timestamp(field.type):
            children.append(pa.array(cells, pa.int64()).cast(field.type))
        else:
            children.append(pa.array(cells, field.type))
    mask = pa.array([False, True, False])
    return pa.StructArray.from_arrays(children, fields=list(value), mask=mask)


def long_batch() -> Batch:
    """A batch of some 2 kB."""
    return of_value(pa.array(["0123456789" * 20] * 10), marks=[Mark(10, kafka_position("t", 0, 10))])


def lookalike_batch() -> Batch:
    """A batch whose row count and raw bytes look like the tag of the body, C2 3E."""
    error = RowError(8002, ErrorClass.BUG, raw=b"\xc2\x3e\xc2\x3e\x01")
    return Batch(of_value(pa.nulls(8002, pa.int8())).records, row_errors=(error,))


def written(*batches: Batch, encoding: Encoding = Encoding.ARROW_IPC, message_bytes_max: int = 1 << 24) -> list[bytes]:
    """The frames of batches on one stream."""
    writer = FrameWriter(encoding, message_bytes_max=message_bytes_max)
    return [frame.SerializeToString() for batch in batches for frame in writer.frames(batch)]


def changed(frames: Iterable[bytes], index: int, change: Callable[[frame_pb2.Frame], object]) -> list[bytes]:
    """Frames of which one was tampered with."""
    made = [frame_pb2.Frame.FromString(data) for data in frames]
    change(made[index])
    return [frame.SerializeToString() for frame in made]


def body_first(data: bytes) -> bytes:
    """The same frame with its fields in another order, as protobuf allows."""
    frame = frame_pb2.Frame.FromString(data)
    body = frame_pb2.Frame(body=frame.body).SerializeToString()
    frame.ClearField("body")
    return body + frame.SerializeToString()


def good_cases() -> Iterable[tuple[str, list[bytes]]]:
    """Names and frames that a reader must understand."""
    plain = of_value(pa.array([b"a", None, b"ccc"]))
    other = of_value(pa.array(["x"]), key=pa.array([1]))
    for encoding in ALL_ENCODINGS:
        name = encoding.name.lower()
        yield f"{name}: everything a frame has", written(full_batch(), encoding=encoding)
        yield f"{name}: chunks", written(long_batch(), encoding=encoding, message_bytes_max=700)
    yield "columns: every type", written(columns_batch(), encoding=Encoding.COLUMNS)
    yield "arrow_ipc: every type", written(columns_batch())
    yield "values that look like the body's tag", written(lookalike_batch())
    yield "a schema changes and comes back", written(plain, other, plain)
    yield "marks alone", written(mark_only(kafka_position("t", 0, 7)), plain)
    yield "the body comes first", [body_first(data) for data in written(plain)]


def bad_cases() -> Iterable[tuple[str, list[bytes], str]]:
    """Names, frames, and part of the sentence that refuses them."""
    plain = of_value(pa.array([b"a", None, b"ccc"]))
    frames = written(plain)
    chunks = written(long_batch(), message_bytes_max=700)
    two_marks = changed(frames, 1, lambda f: f.marks.extend([_mark(3), _mark(2)]))
    yield "a number is left out", [frames[0], *changed(frames, 1, lambda f: setattr(f, "seq", 3))[1:]], "was due"
    yield "a number comes twice", [frames[0], frames[0]], "was due"
    yield "an unknown schema", changed(frames, 1, lambda f: setattr(f, "schema_id", 9)), "has not been sent"
    yield "too few rows", changed(frames, 1, lambda f: setattr(f, "row_count", 4)), "rows"
    yield "marks that go back", two_marks, "marks rise"
    yield "a mark behind the rows", changed(frames, 1, lambda f: f.marks.extend([_mark(4)])), "stay within"
    yield "a chunk is left out", [*chunks[:2], *chunks[3:]], "was due"
    yield "a body cut off", changed(frames, 1, lambda f: setattr(f, "body", f.body[:-20])), "Arrow record batch"
    yield "no kind", changed(frames, 0, lambda f: setattr(f, "kind", 0)), "kind"
    yield "no encoding", changed(frames, 1, lambda f: setattr(f, "encoding", 0)), "encoding"
    columns = written(plain, encoding=Encoding.COLUMNS)
    yield "columns: offsets out of the data", changed(columns, 1, _break_offsets), "COLUMNS"


def _mark(rows: int) -> Any:
    from wherry.contract import to_proto

    return to_proto.mark(Mark(rows, kafka_position("t", 0, rows)))


def _break_offsets(frame: frame_pb2.Frame) -> None:
    columns = frame_pb2.Columns.FromString(frame.body)
    columns.columns[0].offsets = b"".join(n.to_bytes(4, "little") for n in (0, 999, 0, 4))
    frame.body = columns.SerializeToString()


def read(frames: Iterable[bytes]) -> list[dict[str, Any]]:
    """What a reader makes of frames, as plain JSON."""
    reader = FrameReader()
    batches = [reader.feed(frame_pb2.Frame.FromString(data)) for data in frames]
    return [plain(batch) for batch in batches if batch is not None]


def plain(batch: Batch) -> dict[str, Any]:
    """A batch as plain JSON: bytes as base64 behind "base64:", times as text."""
    constants = {name: getattr(batch.constants, name) for name in Constants.__slots__}
    return {
        "types": {field.name: str(field.type) for field in batch.records.schema} if batch.num_rows else {},
        "row_count": batch.num_rows,
        "rows": [_json(row) for row in batch.records.slice(0, 5).to_pylist()],
        "constants": {name: value for name, value in constants.items() if value is not None},
        "marks": [[mark.row_count, mark.position.partition, mark.position.offset] for mark in batch.marks],
        "row_errors": [
            [error.row, error.error_class.name, error.reason, error.message, _json(error.raw)]
            for error in batch.row_errors
        ],
        "traceparent": batch.traceparent,
    }


def _json(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _json(item) for name, item in value.items()}
    if isinstance(value, list):
        return [_json(item) for item in value]
    if isinstance(value, bytes):
        return f"base64:{base64.b64encode(value).decode()}"
    return value if value is None or isinstance(value, (bool, int, float, str)) else str(value)


def vectors() -> list[dict[str, Any]]:
    """All cases."""
    good = [
        {"name": name, "frames": [base64.b64encode(f).decode() for f in frames], "batches": read(frames)}
        for name, frames in good_cases()
    ]
    bad = [
        {"name": name, "frames": [base64.b64encode(f).decode() for f in frames], "refused": sentence}
        for name, frames, sentence in bad_cases()
    ]
    return good + bad


if __name__ == "__main__":
    TARGET.write_text(json.dumps(vectors(), indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
