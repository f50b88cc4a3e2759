"""Frames as bytes: the body is spliced in and out without a copy by protobuf.

A stream message that carries a frame is `tag(field 2) length Frame`, and the body is the last field of the Frame. So a
writer puts the body behind the serialized small fields, and a reader walks the fields, tag by tag, to where the body
lies. It walks and never searches: any value may look like a tag. Messages of another make (fields in another order,
many marks) go through protobuf itself with the same result.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final, Protocol, TypeVar

import pyarrow as pa

from wherry.connector.v1 import frame_pb2

BODY_FIELD: Final = 1000
# ReadResponse, WriteRequest and ApplyRequest all carry their frame in field 2.
FRAME_FIELD: Final = 2
_FRAME_TAG: Final = FRAME_FIELD << 3 | 2
_BODY_TAG: Final = b"\xc2\x3e"
_PADDING_TAG: Final = b"\x7a"
_ALIGNMENT: Final = 8
# Python walks slowly; beyond this many fields (that is, marks) protobuf's parser and its copy are cheaper.
_FIELDS_WALKED_MAX: Final = 64
_NO_BODY: Final = pa.py_buffer(b"")


@dataclass(frozen=True, slots=True)
class WireFrame:
    """A frame as the streams of this package hand it over.

    Attributes:
        header: All fields but padding and body.
        body: The body, most often a view into the message received.
    """

    header: frame_pb2.Frame
    body: pa.Buffer = field(default_factory=lambda: _NO_BODY)

    def message(self) -> frame_pb2.Frame:
        """Returns the whole frame as one message, with its own copy of the body, aligned in the frame."""
        header = self.header.SerializeToString()
        padding = _padding(len(header), self.body.size, enclosed=False)
        body = _body_head(self.body.size) + self.body.to_pybytes()
        message: frame_pb2.Frame = frame_pb2.Frame.FromString(header + padding + body)
        return message


def of_message(frame: frame_pb2.Frame) -> WireFrame:
    """Parts a whole frame into header and body."""
    header = frame_pb2.Frame()
    header.CopyFrom(frame)
    header.ClearField("body")
    header.ClearField("padding")
    return WireFrame(header, pa.py_buffer(frame.body))


def encode(frame: WireFrame) -> bytes:
    """Serializes a stream message that holds a frame; its body starts at a multiple of 8 bytes from its start."""
    header = frame.header.SerializeToString()
    size = frame.body.size
    if not size:
        return b"".join((bytes((_FRAME_TAG,)), varint(len(header)), header))
    head = _body_head(size)
    padding = _padding(len(header), size, enclosed=True)
    length = varint(len(header) + len(padding) + len(head) + size)
    return b"".join((bytes((_FRAME_TAG,)), length, header, padding, head, memoryview(frame.body)))


def decode(data: bytes) -> WireFrame | None:
    """Reads a stream message that holds a frame and nothing else.

    Returns:
        The frame, its body a view into `data`; None when the message is of another make and is protobuf's to parse.
    """
    if not data or data[0] != _FRAME_TAG:
        return None
    try:
        length, start = _read_varint(data, 1)
        if start + length != len(data):
            return None
        place = _walk(data, start)
    except IndexError:
        return None
    if place is None:
        return None
    tag_start, body_start, body_end = place
    header = frame_pb2.Frame.FromString(data[start:tag_start] + data[body_end:])
    header.ClearField("padding")
    return WireFrame(header, pa.py_buffer(data).slice(body_start, body_end - body_start))


class _Message(Protocol):
    @property
    def frame(self) -> frame_pb2.Frame: ...

    def HasField(self, field_name: str) -> bool: ...  # noqa: N802  # protobuf's name

    def SerializeToString(self) -> bytes: ...  # noqa: N802  # protobuf's name


_Parsed = TypeVar("_Parsed", bound=_Message)


def serializer(item: _Message | WireFrame) -> bytes:
    """Serializes what goes on a stream: a message, or a frame in its envelope."""
    return encode(item) if isinstance(item, WireFrame) else item.SerializeToString()


def deserializer(parse: Callable[[bytes], _Parsed]) -> Callable[[bytes], _Parsed | WireFrame]:
    """Returns what reads a stream: frames come as `WireFrame`, anything else as parsed by `parse`."""

    def deserialize(data: bytes) -> _Parsed | WireFrame:
        frame = decode(data)
        if frame is not None:
            return frame
        message = parse(data)
        return of_message(message.frame) if message.HasField("frame") else message

    return deserialize


def _walk(data: bytes, position: int) -> tuple[int, int, int] | None:
    """Finds the body of the frame whose fields start at `position` and end with the data.

    Returns:
        Where the body's tag starts, where the body starts and where it ends; both the end of the data for a frame
        without a body; None when it should rather be parsed by protobuf.

    Raises:
        IndexError: The message is cut off.
    """
    end = len(data)
    for _ in range(_FIELDS_WALKED_MAX):
        if position == end:
            return end, end, end
        tag_start = position
        tag, position = _read_varint(data, position)
        wire_type = tag & 7
        if wire_type == 2:
            length, position = _read_varint(data, position)
            if tag >> 3 == BODY_FIELD:
                # A second body would be the one that counts; only protobuf knows that. So the first must be last.
                return (tag_start, position, end) if position + length == end else None
            position += length
        elif wire_type == 0:
            _, position = _read_varint(data, position)
        elif wire_type == 1:
            position += 8
        elif wire_type == 5:
            position += 4
        else:
            return None
        if position > end:
            return None
    return None


def _read_varint(data: bytes, position: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        byte = data[position]
        position += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, position
        shift += 7
        if shift > 63:
            raise IndexError("a varint of more than 10 bytes")


def varint(value: int) -> bytes:
    """Writes an unsigned number, seven bits a byte, the lowest first."""
    parts = bytearray()
    while value > 0x7F:
        parts.append(value & 0x7F | 0x80)
        value >>= 7
    parts.append(value)
    return bytes(parts)


def _body_head(size: int) -> bytes:
    return _BODY_TAG + varint(size) if size else b""


def _padding(header_bytes: int, body_bytes: int, *, enclosed: bool) -> bytes:
    """Returns the padding field that makes the body start at a multiple of 8 bytes."""
    if not body_bytes:
        return b""
    tail = len(_body_head(body_bytes))
    for length in (0, *range(2, 2 + _ALIGNMENT)):
        before = header_bytes + length + tail
        envelope = 1 + len(varint(before + body_bytes)) if enclosed else 0
        if (envelope + before) % _ALIGNMENT == 0:
            return _PADDING_TAG + bytes((length - 2,)) + bytes(length - 2) if length else b""
    # Only where the envelope's length grows by a byte on the way; being aligned is a help, not a duty.
    return b""
