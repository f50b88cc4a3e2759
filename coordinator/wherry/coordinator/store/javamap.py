"""Java's serialised form of a `HashMap<byte[], byte[]>`, both ways.

Kafka Connect's standalone mode keeps offsets in a file of exactly this stream, so that a file may go from it to us and
back. Decides the bytes; never what keys and values mean. Reads whatever `ObjectOutputStream` writes for such a map
(handles, repeated arrays, nulls) and nothing else: no class is ever looked up.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping

_HEADER = b"\xac\xed\x00\x05"
_NULL, _REFERENCE, _CLASS, _OBJECT, _ARRAY, _BLOCK, _END = 0x70, 0x71, 0x72, 0x73, 0x75, 0x77, 0x78
_FIRST_HANDLE = 0x7E0000
_MAP_CLASS = (
    b"\x72\x00\x11java.util.HashMap\x05\x07\xda\xc1\xc3\x16\x60\xd1\x03"  # name, serial version, flags
    b"\x00\x02F\x00\x0aloadFactorI\x00\x09threshold\x78\x70"  # two fields, no annotations, no superclass
)
_BYTES_CLASS = b"\x72\x00\x02[B\xac\xf3\x17\xf8\x06\x08\x54\xe0\x02\x00\x00\x78\x70"
_BYTES_CLASS_HANDLE = _FIRST_HANDLE + 2  # after the map's class and the map itself
_LOAD_FACTOR = 0.75
_BUCKETS_MIN = 16
ENTRIES_MAX = 10_000_000
"""Entries a file may claim; more is taken for damage."""


class JavaStreamError(ValueError):
    """The bytes are not a serialised map of byte arrays."""


def dumps(entries: Mapping[bytes | None, bytes | None]) -> bytes:
    """The stream `ObjectOutputStream.writeObject` makes of a `HashMap` with these entries."""
    buckets = _BUCKETS_MIN
    while buckets * _LOAD_FACTOR < len(entries):
        buckets *= 2
    parts = [_HEADER, bytes([_OBJECT]), _MAP_CLASS]
    threshold = int(buckets * _LOAD_FACTOR) if entries else 0  # Java allots no table before the first entry
    parts.append(struct.pack(">fi", _LOAD_FACTOR, threshold))
    parts.append(struct.pack(">BBii", _BLOCK, 8, buckets, len(entries)))
    class_part = _BYTES_CLASS
    for pair in entries.items():
        for item in pair:
            if item is None:
                parts.append(bytes([_NULL]))
                continue
            parts += [bytes([_ARRAY]), class_part, struct.pack(">i", len(item)), item]
            class_part = struct.pack(">BI", _REFERENCE, _BYTES_CLASS_HANDLE)
    parts.append(bytes([_END]))
    return b"".join(parts)


def loads(stream: bytes) -> dict[bytes | None, bytes | None]:
    """The entries of a serialised map.

    Raises:
        JavaStreamError: The stream is cut short, damaged, or of another class.
    """
    return _Reader(stream).read_map()


class _Reader:
    """One pass over a stream; `_handles` numbers what later references may name."""

    def __init__(self, stream: bytes) -> None:
        self._stream = stream
        self._at = 0
        self._handles: list[bytes | None] = []  # the array, or None for a class or the map

    def read_map(self) -> dict[bytes | None, bytes | None]:
        self._expect(_HEADER, "the magic number of a Java object stream")
        self._expect(bytes([_OBJECT]), "an object")
        self._expect(_MAP_CLASS, "class java.util.HashMap")
        self._handles += [None, None]
        self._take(8)  # load factor and threshold: Java ignores them too
        self._expect(bytes([_BLOCK, 8]), "the map's size")
        self._take(4)
        count = self._int()
        if not 0 <= count <= ENTRIES_MAX:
            raise JavaStreamError(f"a map of {count} entries")
        entries = {self._read_bytes(): self._read_bytes() for _ in range(count)}
        self._expect(bytes([_END]), "the map's end")
        return entries

    def _read_bytes(self) -> bytes | None:
        tag = self._take(1)[0]
        if tag == _NULL:
            return None
        if tag == _REFERENCE:
            found = self._handle()
            if found is None:
                raise JavaStreamError(f"a reference at byte {self._at - 4} that is no byte array")
            return found
        if tag != _ARRAY:
            raise JavaStreamError(f"tag 0x{tag:02x} at byte {self._at - 1} where a byte array should be")
        self._read_bytes_class()
        length = self._int()
        if length < 0:
            raise JavaStreamError(f"an array of {length} bytes")
        content: bytes = self._take(length)
        self._handles.append(content)
        return content

    def _read_bytes_class(self) -> None:
        if self._stream[self._at : self._at + 1] == bytes([_REFERENCE]):
            self._at += 1
            if self._handle() is not None:
                raise JavaStreamError(f"a reference at byte {self._at - 4} that is no class")
            return
        self._expect(_BYTES_CLASS, "class byte[]")
        self._handles.append(None)

    def _int(self) -> int:
        return int.from_bytes(self._take(4), "big", signed=True)

    def _handle(self) -> bytes | None:
        handle = int.from_bytes(self._take(4), "big")
        index = handle - _FIRST_HANDLE
        if not 0 <= index < len(self._handles):
            raise JavaStreamError(f"an unknown reference 0x{handle:x} at byte {self._at - 4}")
        return self._handles[index]

    def _expect(self, wanted: bytes, what: str) -> None:
        at = self._at
        if self._take(len(wanted)) != wanted:
            raise JavaStreamError(f"something else than {what} at byte {at}")

    def _take(self, count: int) -> bytes:
        end = self._at + count
        if end > len(self._stream):
            raise JavaStreamError(f"the end after {len(self._stream)} bytes")
        piece = self._stream[self._at : end]
        self._at = end
        return piece
