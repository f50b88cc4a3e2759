"""Objects of known members into columns, by the compiled helper (`worker/native/src/json_lift.c`)."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from typing import Any, Final

import numpy as np
import pyarrow as pa

from wherry.contract.batch import JSON_TYPE
from wherry.worker import native
from wherry.worker.transform.columns import Columns, Positions

_BOOL, _TEXT, _RAW = 0, 3, 4
_KINDS: Final = {pa.bool_(): _BOOL, pa.int64(): 1, pa.float64(): 2, pa.string(): _TEXT, JSON_TYPE: _RAW}
# Text is copied eight bytes at a time.
_TEXT_SLACK: Final = 64
# What a byte may become at most where JSON is written anew: one of the four of a character beyond the basic plane.
_RAW_GROWTH: Final = 3
_ROOM_MAX: Final = 2**31 - 1
# Each column of texts is given room for all that the rows hold, most of which is never touched.
_ROOM_ALL_MAX: Final = 2**31


class _Member(ctypes.Structure):
    """`wherry_member_t`."""

    _fields_ = (
        ("kind", ctypes.c_int32),
        ("name_size", ctypes.c_int32),
        ("name", ctypes.c_char_p),
        ("there", ctypes.c_void_p),
        ("validity", ctypes.c_void_p),
        ("values", ctypes.c_void_p),
        ("text", ctypes.c_void_p),
        ("text_size", ctypes.c_int64),
    )


# Which objects have it, validity, values or offsets, and text.
_Held = tuple[pa.Buffer, pa.Buffer, pa.Buffer, pa.Buffer | None]


def read(texts: pa.Array, fields: Sequence[pa.Field]) -> tuple[Columns, Positions] | None:
    """Reads the texts that are objects of some members, in their order, into columns.

    Args:
        texts: Text; null is left out.
        fields: The members: booleans, 64-bit numbers, texts, and JSON for those of no single kind.

    Returns:
        The columns of all rows, and which rows they hold; where they don't hold one, they have no member of it. None
        when the helper isn't there.
    """
    library = native.library()
    _, offsets, data = texts.buffers()
    if library is None or data is None:
        return None
    rooms = [_room(field, texts.nbytes) for field in fields]
    if max(rooms, default=0) > _ROOM_MAX or sum(rooms) > _ROOM_ALL_MAX:
        return None
    rows, validity = len(texts), texts.buffers()[0] if texts.null_count else None
    members = (_Member * len(fields))()
    held = [_prepare(member, field, rows, room) for member, field, room in zip(members, fields, rooms, strict=True)]
    taken = np.zeros(rows, np.uint8)
    count = library.wherry_json_lift(
        ctypes.c_void_p(offsets.address + 4 * texts.offset),
        ctypes.c_void_p(data.address),
        ctypes.c_void_p(None if validity is None else validity.address),
        ctypes.c_int64(texts.offset),
        ctypes.c_int32(rows),
        members,
        ctypes.c_int32(len(fields)),
        ctypes.c_void_p(taken.ctypes.data),
    )
    if count < 0:
        return None
    arrays, there = [], []
    for member, field, buffers in zip(members, fields, held, strict=True):
        arrays.append(_column(member, field, buffers, rows))
        mask = pa.Array.from_buffers(pa.bool_(), rows, [None, buffers[0]], null_count=0)
        there.append(None if mask.true_count == rows else mask)
    return Columns(tuple(fields), tuple(arrays), None, rows, tuple(there)), np.flatnonzero(taken)


def _room(field: pa.Field, text_bytes: int) -> int:
    """Returns the bytes that a member's texts may take; 0 for one that is none."""
    growth = {_TEXT: 1, _RAW: _RAW_GROWTH}.get(_KINDS[field.type])
    return 0 if growth is None else growth * text_bytes + _TEXT_SLACK


def _prepare(member: Any, field: pa.Field, rows: int, room: int) -> _Held:
    """Fills in what the library is told of a member; returns the buffers, which must outlive the call."""
    bits = (rows + 7) // 8
    there, validity = _clear(bits), _clear(bits)
    kind, text = _KINDS[field.type], None
    if kind == _BOOL:
        values = _clear(bits)
    elif kind in {_TEXT, _RAW}:
        values = pa.allocate_buffer(4 * (rows + 1))
        text = pa.allocate_buffer(room)
    else:
        values = pa.allocate_buffer(8 * rows)
    name = field.name.encode()
    member.kind, member.name, member.name_size = kind, name, len(name)
    member.there, member.validity, member.values = there.address, validity.address, values.address
    member.text = None if text is None else text.address
    return there, validity, values, text


def _clear(size: int) -> pa.Buffer:
    buffer = pa.allocate_buffer(size)
    ctypes.memset(buffer.address, 0, size)
    return buffer


def _column(member: Any, field: pa.Field, held: _Held, rows: int) -> pa.Array:
    _, validity, values, text = held
    buffers = [validity, values]
    if text is not None:
        buffers.append(text.slice(0, member.text_size))
    if field.type != JSON_TYPE:
        return pa.Array.from_buffers(field.type, rows, buffers)
    return pa.ExtensionArray.from_storage(JSON_TYPE, pa.Array.from_buffers(JSON_TYPE.storage_type, rows, buffers))
