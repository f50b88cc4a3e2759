"""Avro's binary encoding, value by value: the exact way, for what the columns' way can't prove. Pure.

Values come as plain Python: a record is a list of its fields' values, an enum the number of its symbol, a value of a
union a pair of the branch's number and the value, a map a list of pairs. Bytes after the value are ignored, as Java's
decoder ignores them. What is damaged raises ValueError, whatever it is.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from typing import Any, Final

from wherry.contract.wire import varint
from wherry.worker.convert.registered.avro_types import AvroKind, AvroType

# Reads a value from a place in some bytes; answers with the value and where it ends.
Decoder = Callable[[bytes, int], tuple[Any, int]]

_LONG_BYTES_MAX: Final = 10
_INT_SIGN: Final = 1 << 31
_LONG_MASK: Final = (1 << 64) - 1


def decoder(avro: AvroType) -> Decoder:
    """Makes the decoder of a type."""
    kind = avro.kind
    if kind is AvroKind.RECORD:
        return _record([decoder(field.type) for field in avro.fields])
    if kind is AvroKind.UNION:
        return _union([decoder(branch) for branch in avro.branches])
    if kind is AvroKind.ARRAY:
        assert avro.items is not None
        return _blocks(decoder(avro.items))
    if kind is AvroKind.MAP:
        assert avro.items is not None
        return _blocks(_pair(decoder(avro.items)))
    if kind is AvroKind.FIXED:
        return _fixed(avro.size)
    if kind is AvroKind.ENUM:
        return _enum(len(avro.symbols))
    return _SIMPLE[kind]


def read_long(data: bytes, place: int) -> tuple[int, int]:
    """Reads a number of one to ten bytes."""
    value, shift = 0, 0
    for end in range(place, place + _LONG_BYTES_MAX):
        if end >= len(data):
            raise ValueError("it ends too early")
        byte = data[end]
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            value &= _LONG_MASK
            return value >> 1 ^ -(value & 1), end + 1
        shift += 7
    raise ValueError("a number has more than ten bytes")


def write_long(value: int) -> bytes:
    """Writes a number in as few bytes as it takes."""
    return varint(value << 1 ^ value >> 63)


def _int(data: bytes, place: int) -> tuple[int, int]:
    value, end = read_long(data, place)
    if not -_INT_SIGN <= value < _INT_SIGN or end - place > 5:
        raise ValueError("a number is no int")
    return value, end


def _take(data: bytes, place: int, size: int) -> tuple[bytes, int]:
    end = place + size
    if size < 0 or end > len(data):
        raise ValueError("it ends too early")
    return data[place:end], end


def _bytes(data: bytes, place: int) -> tuple[bytes, int]:
    size, place = read_long(data, place)
    return _take(data, place, size)


def _boolean(data: bytes, place: int) -> tuple[bool, int]:
    value, end = _take(data, place, 1)
    return value == b"\x01", end


def _number(form: str) -> Decoder:
    packed = struct.Struct(form)

    def read(data: bytes, place: int) -> tuple[float, int]:
        value, end = _take(data, place, packed.size)
        return packed.unpack(value)[0], end

    return read


def _null(data: bytes, place: int) -> tuple[None, int]:
    return None, place


def _fixed(size: int) -> Decoder:
    return lambda data, place: _take(data, place, size)


def _enum(symbols: int) -> Decoder:
    def read(data: bytes, place: int) -> tuple[int, int]:
        value, end = read_long(data, place)
        if not 0 <= value < symbols:
            raise ValueError("an enum has no such symbol")
        return value, end

    return read


def _record(fields: list[Decoder]) -> Decoder:
    def read(data: bytes, place: int) -> tuple[list[Any], int]:
        values = []
        for field in fields:
            value, place = field(data, place)
            values.append(value)
        return values, place

    return read


def _union(branches: list[Decoder]) -> Decoder:
    def read(data: bytes, place: int) -> tuple[tuple[int, Any], int]:
        branch, place = read_long(data, place)
        if not 0 <= branch < len(branches):
            raise ValueError("a union has no such branch")
        value, place = branches[branch](data, place)
        return (branch, value), place

    return read


def _pair(value: Decoder) -> Decoder:
    def read(data: bytes, place: int) -> tuple[tuple[bytes, Any], int]:
        key, place = _bytes(data, place)
        found, place = value(data, place)
        return (key, found), place

    return read


def _blocks(item: Decoder) -> Decoder:
    def read(data: bytes, place: int) -> tuple[list[Any], int]:
        values: list[Any] = []
        while True:
            count, place = read_long(data, place)
            if count < 0:
                # The size of the block follows; it is only for those who skip it.
                count, (_, place) = -count, read_long(data, place)
            if not count:
                return values, place
            if count > len(data) - place:
                # Each item takes a byte at least: types without any are refused beforehand.
                raise ValueError("an array is longer than its bytes")
            for _ in range(count):
                value, place = item(data, place)
                values.append(value)

    return read


_SIMPLE: Final[dict[AvroKind, Decoder]] = {
    AvroKind.NULL: _null,
    AvroKind.BOOLEAN: _boolean,
    AvroKind.INT: _int,
    AvroKind.LONG: read_long,
    AvroKind.FLOAT: _number("<f"),
    AvroKind.DOUBLE: _number("<d"),
    AvroKind.BYTES: _bytes,
    AvroKind.STRING: _bytes,
}


def takes_no_bytes(avro: AvroType) -> bool:
    """Whether values of a type have no bytes, so that a damaged count could ask for any number of them."""
    if avro.kind is AvroKind.RECORD:
        return all(takes_no_bytes(field.type) for field in avro.fields)
    return avro.kind is AvroKind.NULL or (avro.kind is AvroKind.FIXED and not avro.size)
