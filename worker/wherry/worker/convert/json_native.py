"""JSON objects into columns by the compiled helper: all rows of a column, or none.

It reads a row only if pyarrow's parser and the exact rules would both say the same (see `worker/native/src/json.c`), so
whoever calls goes on by himself with what it leaves.
"""

from __future__ import annotations

import ctypes
import dataclasses
from collections.abc import Sequence
from typing import Any, Final

import pyarrow as pa

from wherry.worker import native

# A type with more fields than this, inner ones included, isn't worth the walk.
FIELDS_MAX: Final = 1_000
_TEXT_SLACK: Final = 8
_STRUCT, _BOOL, _TEXT, _TIME = 0, 1, 8, 9
# Kind and bytes of a value, by the type that is stored.
_NUMBERS: Final = {
    pa.int8(): (2, 1), pa.int16(): (3, 2), pa.int32(): (4, 4), pa.int64(): (5, 8), pa.float32(): (6, 4),
    pa.float64(): (7, 8), pa.date32(): (4, 4), pa.time32("ms"): (_TIME, 4),
}  # fmt: skip


class _Field(ctypes.Structure):
    """`wherry_field_t`."""

    _fields_ = (
        ("kind", ctypes.c_int32),
        ("null_allowed", ctypes.c_int32),
        ("first_child", ctypes.c_int32),
        ("children", ctypes.c_int32),
        ("name", ctypes.c_char_p),
        ("name_size", ctypes.c_int64),
        ("validity", ctypes.c_void_p),
        ("values", ctypes.c_void_p),
        ("text", ctypes.c_void_p),
        ("text_size", ctypes.c_int64),
        ("nulls", ctypes.c_int32),
        ("seen", ctypes.c_int32),
    )


def read_objects(texts: pa.Array, data_type: pa.DataType, *, head: int = 0, tail: int = 0) -> pa.Array | None:
    """Reads texts into structs.

    Args:
        texts: Text or bytes known to be valid UTF-8; null stays null.
        data_type: The struct wanted.
        head: Bytes to leave out at the beginning of each text.
        tail: Bytes to leave out at its end.

    Returns:
        The rows; None when the helper isn't there, doesn't know the type or met a row that it leaves to others.
    """
    library = native.library()
    if library is None or not len(texts):
        return None
    nodes = _nodes(data_type)
    if not nodes:
        return None
    rows, (validity, offsets, data) = len(texts), texts.buffers()
    if data is None:
        return None
    fields = (_Field * len(nodes))()
    held = [_prepare(field, node, rows, texts.nbytes) for field, node in zip(fields, nodes, strict=True)]
    read = library.wherry_json_read(
        ctypes.c_void_p(offsets.address + 4 * texts.offset),
        ctypes.c_void_p(data.address),
        ctypes.c_void_p(validity.address if validity is not None and texts.null_count else None),
        ctypes.c_int64(texts.offset),
        ctypes.c_int32(rows),
        ctypes.c_int32(head),
        ctypes.c_int32(tail),
        fields,
        ctypes.c_int32(len(nodes)),
    )
    return _column(0, nodes, fields, held, rows) if read == rows else None


def all_sound(texts: pa.Array) -> bool | None:
    """Whether every text is one JSON value, other than the word null; None when the helper can't tell."""
    library = native.library()
    if library is None or not len(texts):
        return None
    validity, offsets, data = texts.buffers()
    if data is None:
        return None
    checked = library.wherry_json_check(
        ctypes.c_void_p(offsets.address + 4 * texts.offset),
        ctypes.c_void_p(data.address),
        ctypes.c_void_p(validity.address if validity is not None and texts.null_count else None),
        ctypes.c_int64(texts.offset),
        ctypes.c_int32(len(texts)),
    )
    return True if checked == len(texts) else None


@dataclasses.dataclass(slots=True)
class _Node:
    """A field of the type wanted; its children stand side by side."""

    data_type: pa.DataType
    kind: int
    size: int
    null_allowed: bool
    name: bytes
    first_child: int = 0
    children: int = 0


# Validity, values or offsets, and text.
_Held = tuple[pa.Buffer, pa.Buffer | None, pa.Buffer | None]


def _nodes(data_type: pa.DataType) -> list[_Node]:
    """Lays a type out as a list, itself first; empty when a part of it isn't known here."""
    nodes = [_Node(data_type, _STRUCT, 0, True, b"")]
    for node in nodes:
        if node.kind != _STRUCT:
            continue
        children = list(node.data_type)
        node.first_child, node.children = len(nodes), len(children)
        if len({child.name for child in children}) != len(children) or len(nodes) + len(children) > FIELDS_MAX:
            return []
        for child in children:
            known = _kind(child.type)
            if known is None:
                return []
            # A default would take the place of null.
            null_allowed = child.nullable and not (child.metadata and b"connect.default" in child.metadata)
            nodes.append(_Node(child.type, *known, null_allowed, child.name.encode()))
    return nodes


def _kind(data_type: pa.DataType) -> tuple[int, int] | None:
    if pa.types.is_struct(data_type):
        return _STRUCT, 0
    if pa.types.is_boolean(data_type):
        return _BOOL, 0
    if pa.types.is_string(data_type):
        return _TEXT, 4
    if pa.types.is_timestamp(data_type):
        return _NUMBERS[pa.int64()] if data_type.unit == "ms" else None
    return _NUMBERS.get(data_type)


def _prepare(field: Any, node: _Node, rows: int, text_bytes: int) -> _Held:
    """Fills in what the library is told of a field; returns the buffers, which must outlive the call."""
    bits = (rows + 7) // 8
    validity = pa.allocate_buffer(bits)
    ctypes.memset(validity.address, 0xFF, bits)
    values = text = None
    if node.kind == _BOOL:
        values = pa.allocate_buffer(bits)
        ctypes.memset(values.address, 0, bits)
    elif node.kind != _STRUCT:
        values = pa.allocate_buffer(node.size * (rows + 1))
    if node.kind == _TEXT:
        text = pa.allocate_buffer(text_bytes + _TEXT_SLACK)
    field.kind, field.null_allowed = node.kind, node.null_allowed
    field.first_child, field.children = node.first_child, node.children
    field.name, field.name_size = node.name, len(node.name)
    field.validity = validity.address
    field.values = values.address if values is not None else None
    field.text = text.address if text is not None else None
    return validity, values, text


def _column(index: int, nodes: Sequence[_Node], fields: Any, held: Sequence[_Held], rows: int) -> pa.Array:
    node, field, (validity, values, text) = nodes[index], fields[index], held[index]
    buffers = [validity if field.nulls else None]
    if node.kind == _STRUCT:
        inner = range(node.first_child, node.first_child + node.children)
        children = [_column(child, nodes, fields, held, rows) for child in inner]
        return pa.Array.from_buffers(node.data_type, rows, buffers, null_count=field.nulls, children=children)
    buffers.append(values)
    if text is not None:
        buffers.append(text.slice(0, field.text_size))
    return pa.Array.from_buffers(node.data_type, rows, buffers, null_count=field.nulls)
