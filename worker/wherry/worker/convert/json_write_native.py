"""Columns as JSON texts by the compiled helper: all rows of a struct, or none.

What it doesn't know (decimals, bytes, lists, maps) is written by Python, column by column, and joined by the helper; so
is what stands in the place of null. See `worker/native/src/json_write.c`.
"""

from __future__ import annotations

import ctypes
import dataclasses
from collections.abc import Callable, Sequence
from typing import Any, Final

import pyarrow as pa

from wherry.contract.position import json_string
from wherry.worker import native

# Fewer rows than this are written as quickly without asking.
ROWS_MIN: Final = 8
# A type with more fields than this, inner ones included, isn't worth the walk.
FIELDS_MAX: Final = 1_000
# Bytes of a column of texts: its offsets are 32 bits wide.
ROOM_MAX: Final = 2**31 - 1
# Room for texts that grow by their escapes: what is tried first, and what is always enough.
ESCAPES_FEW, ESCAPES_MOST = 1.25, 6.0
_STRUCT, _BOOL, _TEXT, _RAW = 0, 1, 8, 9
_TEXT_SLACK: Final = 64
# Kind and the most bytes of a printed value, by the type that is stored.
_NUMBERS: Final = {
    pa.bool_(): (_BOOL, 5), pa.int8(): (2, 4), pa.int16(): (3, 6), pa.int32(): (4, 11), pa.int64(): (5, 20),
    pa.float32(): (6, 32), pa.float64(): (7, 32),
}  # fmt: skip
_NULL: Final = b"null"

# The text that stands in the place of null in a field, and the texts of its values where the helper can't write them.
NullText = Callable[[pa.Field], bytes]
Texts = Callable[[pa.Field, pa.Array], pa.Array]


class _Written(ctypes.Structure):
    """`wherry_written_t`."""

    _fields_ = (
        ("kind", ctypes.c_int32),
        ("first_child", ctypes.c_int32),
        ("children", ctypes.c_int32),
        ("head_size", ctypes.c_int32),
        ("head", ctypes.c_char_p),
        ("null_text", ctypes.c_char_p),
        ("null_size", ctypes.c_int64),
        ("validity", ctypes.c_void_p),
        ("values", ctypes.c_void_p),
        ("text", ctypes.c_void_p),
        ("offset", ctypes.c_int64),
        ("there", ctypes.c_void_p),
        ("there_offset", ctypes.c_int64),
    )


@dataclasses.dataclass(slots=True)
class _Column:
    """A column to be written; its children stand side by side."""

    array: pa.Array
    kind: int
    width: int
    head: bytes = b""
    null_text: bytes = _NULL
    first_child: int = 0
    children: int = 0
    there: pa.BooleanArray | None = None


def struct_texts(
    column: pa.Array, null_text: NullText, texts: Texts, there: Sequence[pa.BooleanArray | None] = ()
) -> pa.Array | None:
    """Writes structs.

    Args:
        column: The structs; what stands where one is null doesn't matter.
        null_text: Tells what is written for a null of a field.
        texts: Writes the values of a field that the helper can't write; what it answers for nulls doesn't matter.
        there: Which rows have the fields at all; None, or nothing said, where all rows do.

    Returns:
        A text for each row; None when the helper isn't there or met a value that it leaves to others.
    """
    library = native.library()
    if library is None or len(column) < ROWS_MIN:
        return None
    columns = _columns(column, null_text, texts)
    if not columns:
        return None
    for part, mask in zip(columns[1:], there, strict=False):
        part.there = mask
    fields = (_Written * len(columns))()
    for field, part in zip(fields, columns, strict=True):
        _fill(field, part)
    beside = sum(len(part.head) + max(part.width, len(part.null_text)) for part in columns) + _TEXT_SLACK
    text_bytes = sum(part.array.nbytes for part in columns if part.kind in {_TEXT, _RAW})
    for growth in (ESCAPES_FEW, ESCAPES_MOST):
        room = int(beside * len(column) + text_bytes * growth) + _largest(columns)
        if room > ROOM_MAX:
            return None
        written, texts_column = _write(library, fields, len(column), beside, room)
        if written >= 0:
            return texts_column
    return None


def _write(library: Any, fields: Any, rows: int, beside: int, room: int) -> tuple[int, pa.Array | None]:
    offsets, data = pa.allocate_buffer(4 * (rows + 1)), pa.allocate_buffer(room, resizable=True)
    written = library.wherry_json_write(
        fields,
        ctypes.c_int32(len(fields)),
        ctypes.c_int32(rows),
        ctypes.c_int64(beside),
        ctypes.c_void_p(offsets.address),
        ctypes.c_void_p(data.address),
        ctypes.c_int64(room),
    )
    if written != rows:
        return written, None
    end = ctypes.c_int32.from_address(offsets.address + 4 * rows).value
    data.resize(end, shrink_to_fit=True)
    return written, pa.Array.from_buffers(pa.string(), rows, [None, offsets, data], null_count=0)


def _largest(columns: list[_Column]) -> int:
    """Returns the room that the escapes of one row may take: it has to be there before the row is begun."""
    total = 0
    for part in columns:
        if part.kind in {_TEXT, _RAW} and len(part.array):
            total += int(ESCAPES_MOST * part.array.nbytes / len(part.array)) * 2
    return total


def _columns(column: pa.Array, null_text: NullText, texts: Texts) -> list[_Column]:
    """Lays a struct out as a list, itself first; empty when it has too many fields."""
    columns = [_Column(column, _STRUCT, 2)]
    for part in columns:
        if part.kind != _STRUCT:
            continue
        children = list(part.array.type)
        part.first_child, part.children = len(columns), len(children)
        if len(columns) + len(children) > FIELDS_MAX:
            return []
        for index, child in enumerate(children):
            written = _column(child, part.array.field(index), texts)
            written.head = f",{json_string(child.name)}:".encode()
            written.null_text = null_text(child)
            columns.append(written)
    return columns


def _column(field: pa.Field, array: pa.Array, texts: Texts) -> _Column:
    data_type = array.type
    if pa.types.is_struct(data_type):
        return _Column(array, _STRUCT, 2)
    if pa.types.is_string(data_type):
        return _Column(array, _TEXT, 2)
    if pa.types.is_date32(data_type) or pa.types.is_time32(data_type):
        array = array.cast(pa.int32())
    elif pa.types.is_timestamp(data_type):
        array = array.cast(pa.timestamp("ms", data_type.tz)).cast(pa.int64())
    known = _NUMBERS.get(array.type)
    if known is not None:
        return _Column(array, *known)
    # Its own nulls are told by the texts, which say null there already.
    written = texts(field, array)
    return _Column(written.combine_chunks() if isinstance(written, pa.ChunkedArray) else written, _RAW, 0)


def _fill(field: Any, part: _Column) -> None:
    buffers = part.array.buffers()
    field.kind, field.first_child, field.children = part.kind, part.first_child, part.children
    field.head, field.head_size = part.head, len(part.head)
    field.null_text, field.null_size = part.null_text, len(part.null_text)
    field.offset = part.array.offset
    field.validity = _address(buffers[0]) if part.array.null_count else None
    if part.there is not None:
        field.there, field.there_offset = _address(part.there.buffers()[1]), part.there.offset
    if part.kind != _STRUCT:
        field.values = _address(buffers[1])
    if part.kind in {_TEXT, _RAW}:
        field.text = _address(buffers[2])


def _address(buffer: pa.Buffer | None) -> int | None:
    return None if buffer is None else buffer.address
