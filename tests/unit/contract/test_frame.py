"""Frames: what goes in comes out, in every encoding and at every size; what breaks the rules does not."""

from __future__ import annotations

import contextlib
import datetime
import string

import pyarrow as pa
import pytest
from google.protobuf.message import DecodeError
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from wherry.connector.v1 import frame_pb2
from wherry.contract import wire
from wherry.contract.batch import HEADERS_TYPE, JSON_TYPE, TIMESTAMP_TYPE, Batch, Constants, Mark, mark_only, of_value
from wherry.contract.errors import SchemaError
from wherry.contract.frame import ALL_ENCODINGS, Encoding, FrameReader, FrameWriter, ProtocolError
from wherry.contract.position import kafka_position

SCALARS: list[tuple[pa.DataType, st.SearchStrategy[object]]] = [
    (pa.bool_(), st.booleans()),
    *(
        (pa.type_for_alias(f"int{bits}"), st.integers(-(2 ** (bits - 1)), 2 ** (bits - 1) - 1))
        for bits in (8, 16, 32, 64)
    ),
    (pa.float32(), st.floats(width=32, allow_nan=False)),
    (pa.float64(), st.floats(allow_nan=False)),
    (pa.string(), st.text(max_size=20)),
    (pa.binary(), st.binary(max_size=20)),
    (pa.date32(), st.dates(datetime.date(1600, 1, 1), datetime.date(9999, 1, 1))),
    (TIMESTAMP_TYPE, st.integers(0, 2**40).map(lambda ms: datetime.datetime.fromtimestamp(ms // 1000, datetime.UTC))),
]


def types(depth: int = 2) -> st.SearchStrategy[tuple[pa.DataType, st.SearchStrategy[object]]]:
    scalar = st.sampled_from(SCALARS)
    if not depth:
        return scalar
    inner = types(depth - 1)
    lists = inner.map(lambda t: (pa.list_(t[0]), st.none() | st.lists(st.none() | t[1], max_size=4)))
    names = st.lists(st.sampled_from(string.ascii_lowercase), min_size=1, max_size=3, unique=True)
    structs = st.tuples(names, st.lists(inner, min_size=3, max_size=3)).map(
        lambda drawn: (
            pa.struct([pa.field(name, t[0]) for name, t in zip(drawn[0], drawn[1], strict=False)]),
            st.none() | st.fixed_dictionaries({n: st.none() | t[1] for n, t in zip(drawn[0], drawn[1], strict=False)}),
        )
    )
    return scalar | lists | structs


@st.composite
def batches(draw: st.DrawFn) -> Batch:
    data_type, cells = draw(types())
    values = draw(st.lists(st.none() | cells, min_size=1, max_size=30))
    array = pa.array(values, data_type)
    start = draw(st.integers(0, len(values) - 1))
    marks = sorted(draw(st.lists(st.integers(0, len(values) - start), max_size=3)))
    whole = of_value(array, key=pa.array([str(n) if n % 3 else None for n in range(len(values))], pa.string()))
    cut = whole.slice(start)
    constants = Constants(topic=draw(st.none() | st.text(max_size=5)), first_offset=draw(st.none() | st.integers(0, 9)))
    return cut.with_marks(*(Mark(row, kafka_position("t", 0, row)) for row in marks)).with_constants(constants)


def passed(batch: Batch, encoding: Encoding, message_bytes_max: int = 1 << 24) -> Batch:
    writer, reader = FrameWriter(encoding, message_bytes_max=message_bytes_max), FrameReader()
    out = None
    for frame in writer.wire(batch):
        message = wire.encode(frame)
        assert len(message) <= message_bytes_max
        decoded = wire.decode(message)
        assert decoded is not None
        assert out is None, "nothing comes after the last frame of a batch"
        out = reader.feed(decoded)
    assert out is not None
    return out


@given(batches(), st.sampled_from([Encoding.ARROW_IPC, Encoding.COLUMNS]), st.sampled_from([1 << 24, 900]))
@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.too_slow])
def test_any_batch_comes_out_as_it_went_in(batch: Batch, encoding: Encoding, message_bytes_max: int) -> None:
    out = passed(batch, encoding, message_bytes_max)
    out.records.validate(full=True)
    assert out.records.schema == batch.records.schema
    assert out.records.to_pylist() == batch.records.to_pylist()
    assert (out.marks, out.constants) == (batch.marks, batch.constants)


@given(st.binary(max_size=300), st.integers(0, 2))
@settings(max_examples=150, deadline=None)
def test_damaged_bytes_are_refused_or_left_to_protobuf_and_never_crash(noise: bytes, cut: int) -> None:
    good = wire.encode(FrameWriter().wire(of_value(pa.array(["a", "b"])))[1])
    for data in (noise, b"\x12" + noise, good[: len(good) - cut] + noise[:1], good[:8] + noise + good[8:]):
        with contextlib.suppress(ProtocolError, DecodeError):
            frame = wire.decode(data)
            if frame is not None:
                FrameReader().feed(frame)


@pytest.mark.parametrize("encoding", ALL_ENCODINGS)
def test_rows_of_json_and_headers_survive_every_encoding(encoding: Encoding) -> None:
    json_text = pa.ExtensionArray.from_storage(JSON_TYPE, pa.array(['{"a":1}', None]))
    out = passed(of_value(json_text, constants=Constants(topic="t")), encoding)
    assert out.value.type == JSON_TYPE
    assert out.value.to_pylist() == ['{"a":1}', None]
    assert out.constants.topic == "t"


@pytest.mark.parametrize("encoding", [Encoding.ARROW_IPC, Encoding.COLUMNS])
def test_header_bytes_are_untouched(encoding: Encoding) -> None:
    headers = pa.array([[{"name": "h", "value": b"\xff\x00"}], None, []], HEADERS_TYPE)
    out = passed(of_value(pa.array([b"1", b"2", b"3"]), headers=headers), encoding)
    assert out.headers is not None
    assert out.headers.equals(headers)


def test_field_metadata_travels_in_columns() -> None:
    field = pa.field("value", pa.int32(), nullable=False, metadata={"connect.name": "x"})
    records = pa.RecordBatch.from_arrays([pa.array([1], pa.int32())], schema=pa.schema([field]))
    out = passed(Batch(records), Encoding.COLUMNS)
    assert out.records.schema.equals(records.schema, check_metadata=True)


def test_a_type_that_columns_lack_is_refused_with_the_way_out() -> None:
    with pytest.raises(SchemaError, match=r"value has the type decimal128\(5, 2\).*use ARROW_IPC"):
        FrameWriter(Encoding.COLUMNS).wire(of_value(pa.nulls(1, pa.decimal128(5, 2))))


def test_a_schema_is_sent_once_and_named_again_when_it_comes_back() -> None:
    writer = FrameWriter()
    text, number = of_value(pa.array(["a"])), of_value(pa.array([1]))
    kinds = [[(f.header.kind, f.header.schema_id) for f in writer.wire(batch)] for batch in (text, text, number, text)]
    schema, rows = frame_pb2.FRAME_KIND_SCHEMA, frame_pb2.FRAME_KIND_BATCH
    assert kinds == [[(schema, 1), (rows, 1)], [(rows, 1)], [(schema, 2), (rows, 2)], [(rows, 1)]]


def test_every_frame_takes_a_number_and_chunks_share_theirs() -> None:
    writer = FrameWriter(message_bytes_max=600)
    seqs = [frame.header.seq for frame in writer.wire(of_value(pa.array(["x" * 1000])))]
    assert seqs[0] == 1
    assert set(seqs[1:]) == {2}
    assert len(seqs) > 3
    assert writer.next_seq == 3


def test_dictionaries_are_spelled_out() -> None:
    out = passed(of_value(pa.array(["a", "a", None]).dictionary_encode()), Encoding.ARROW_IPC)
    assert out.value.type == pa.string()
    assert out.value.to_pylist() == ["a", "a", None]


def test_a_batch_without_rows_becomes_a_mark_frame() -> None:
    (frame,) = FrameWriter().wire(mark_only(kafka_position("t", 0, 3)))
    assert frame.header.kind == frame_pb2.FRAME_KIND_MARK
    batch = FrameReader().feed(frame)
    assert batch is not None
    assert batch.num_rows == 0
    assert batch.marks == (Mark(0, kafka_position("t", 0, 3)),)


@pytest.mark.parametrize("rows", range(1, 20))
def test_bodies_start_at_multiples_of_eight(rows: int) -> None:
    writer = FrameWriter()
    batch = of_value(pa.array(["v" * rows] * rows), constants=Constants(topic="t" * rows))
    for frame in writer.wire(batch):
        data = wire.encode(frame)
        assert data.endswith(frame.body.to_pybytes())
        assert (len(data) - frame.body.size) % 8 == 0


def test_more_marks_than_a_walk_takes_are_left_to_protobuf_with_the_same_result() -> None:
    batch = of_value(pa.array(["x"] * 200), marks=[Mark(n, kafka_position("t", 0, n)) for n in range(1, 201)])
    frame = FrameWriter().wire(batch)[1]
    data = wire.encode(frame)
    assert wire.decode(data) is None
    from wherry.connector.v1 import sink_pb2

    item = wire.deserializer(sink_pb2.WriteRequest.FromString)(data)
    assert isinstance(item, wire.WireFrame)
    assert item.body.equals(frame.body)
    assert len(item.header.marks) == 200


def test_chunks_larger_than_allowed_together_are_refused() -> None:
    frames = FrameWriter(message_bytes_max=1000).wire(of_value(pa.array(["x" * 5000])))
    reader = FrameReader(body_bytes_max=3000)
    assert [reader.feed(frame) for frame in frames[:3]] == [None] * 3
    with pytest.raises(ProtocolError, match="more than 3000 bytes"):
        [reader.feed(frame) for frame in frames[3:]]


def test_marks_too_many_for_a_message_are_refused() -> None:
    marks = [Mark(1, kafka_position("t" * 50, n, n)) for n in range(100)]
    with pytest.raises(SchemaError, match="marks and row errors"):
        FrameWriter(message_bytes_max=2000).wire(of_value(pa.array(["x" * 3000]), marks=marks))
