"""The pieces of a record batch message are, one behind the other, the message."""

from __future__ import annotations

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from wherry.contract.batch import JSON_TYPE, of_value
from wherry.contract.frame import FrameReader, FrameWriter
from wherry.contract.limits import FRAME_BYTES_TARGET, MESSAGE_BYTES_MAX
from wherry.contract.pieces import Pieces

COLUMNS = {
    "numbers": pa.array([1, None, 3, 4], pa.int64()),
    "texts": pa.array(["a", "", None, "x" * 500]),
    "bytes": pa.array([b"z" * 300, None, b"", b"y"], pa.binary()),
    "flags": pa.array([True, None, False, True]),
    "lists": pa.array([[1, 2], None, [], [3]], pa.list_(pa.int32())),
    "structs": pa.array([{"a": "x", "b": 1.5}, None, {"a": None, "b": None}, {"a": "q", "b": 2.0}]),
    "json": pa.ExtensionArray.from_storage(JSON_TYPE, pa.array(["{}", None, "[1]", "2"])),
}
RECORDS = pa.RecordBatch.from_arrays(list(COLUMNS.values()), names=list(COLUMNS))


@given(start=st.integers(0, 4), length=st.integers(0, 4), cut=st.integers(1, 700))
@settings(max_examples=60, deadline=None)
def test_pieces_joined_are_the_message_of_arrow(start: int, length: int, cut: int) -> None:
    records = RECORDS.slice(start, length)
    pieces = Pieces(records)
    whole = records.serialize().to_pybytes()
    assert pieces.size == len(whole)
    assert pieces.slice(0, pieces.size).to_pybytes() == whole
    parts = [pieces.slice(at, min(cut, len(whole) - at)).to_pybytes() for at in range(0, len(whole), cut)]
    assert b"".join(parts) == whole


def test_what_lies_in_one_place_is_not_copied() -> None:
    data = pa.array([b"x" * 5_000_000], pa.binary())
    pieces = Pieces(pa.RecordBatch.from_arrays([data], names=["value"]))
    held = data.buffers()[2]
    inner = pieces.slice(1_000_000, 2_000_000)
    assert held.address <= inner.address < held.address + held.size


@pytest.mark.parametrize("size", [MESSAGE_BYTES_MAX - 2000, MESSAGE_BYTES_MAX + 1, 3 * MESSAGE_BYTES_MAX + 5])
def test_a_large_row_goes_through_frames_and_comes_out_the_same(size: int) -> None:
    batch = of_value(pa.array([bytes(range(256)) * (size // 256) + b"z" * (size % 256)], pa.binary()))
    frames, reader = FrameWriter().wire(batch), FrameReader()
    chunks = [frame for frame in frames if frame.header.chunk_count > 1]
    assert all(frame.body.size <= FRAME_BYTES_TARGET for frame in chunks)
    assert bool(chunks) == (size > MESSAGE_BYTES_MAX)
    read = [found for found in map(reader.feed, frames) if found is not None]
    assert len(read) == 1
    assert read[0].value.equals(batch.value)
