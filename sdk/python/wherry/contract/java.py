"""What of Java shows in what Kafka Connect takes and prints: hash maps, numbers, blanks. Pure."""

from __future__ import annotations

import codecs
import math
import struct
from collections.abc import Callable, Hashable, Iterable
from decimal import Decimal
from functools import lru_cache
from typing import Final, TypeVar

Key = TypeVar("Key", bound=Hashable)

BLANKS: Final = "".join(map(chr, range(0x21)))
"""What `String.trim()` takes away: controls and the space; no other white space, and no C1 control."""

_TABLE_SIZE_MIN: Final = 16
_LOAD_FACTOR: Final = 0.75
_INT_BITS: Final = 0xFFFFFFFF
_LONG_BITS: Final = 0xFFFFFFFFFFFFFFFF
_KEYS_KEPT_MAX: Final = 4096
# The largest single-precision number, and where the next one would be nearer.
_FLOAT_MAX: Final = 2.0**128 - 2.0**104
_FLOAT_END: Final = Decimal(2) ** 128 - Decimal(2) ** 103


@lru_cache(_KEYS_KEPT_MAX)
def string_hash(text: str) -> int:
    """Return `String.hashCode()` as an unsigned number: of UTF-16 units, wrapping at 32 bits."""
    data = text.encode("utf-16-be", "surrogatepass")
    result = 0
    for high, low in zip(data[::2], data[1::2], strict=True):
        result = (31 * result + (high << 8 | low)) & _INT_BITS
    return result


def in_map_order(keys: Iterable[str]) -> list[str]:
    """Return keys in the order in which a `java.util.HashMap` walks over them that was filled in the given order.

    Kafka Connect keeps JSON objects without schema, and maps, in such maps, so this is the order in which they print.
    NB: eight or more keys that share one slot of the table make a tree in Java, which isn't followed here.
    """
    return in_order_of(keys, string_hash)


def in_order_of(keys: Iterable[Key], hash_of: Callable[[Key], int]) -> list[Key]:
    """Return keys of any kind in the order of such a map, by what `hashCode()` says of them, unsigned."""
    distinct = list(dict.fromkeys(keys))
    if len(distinct) < 2:
        return distinct
    size = _TABLE_SIZE_MIN
    while len(distinct) > size * _LOAD_FACTOR:
        size *= 2

    def slot(key: Key) -> int:
        hashed = hash_of(key)
        return (hashed ^ hashed >> 16) & (size - 1)

    return sorted(distinct, key=slot)


def integer_hash(number: int) -> int:
    """Return `Integer.hashCode()`, which is that of Byte and Short too."""
    return number & _INT_BITS


def long_hash(number: int) -> int:
    """Return `Long.hashCode()`, which is that of `java.util.Date` too."""
    bits = number & _LONG_BITS
    return (bits ^ bits >> 32) & _INT_BITS


def double_hash(number: float) -> int:
    """Return `Double.hashCode()`."""
    bits: int = struct.unpack(">q", struct.pack(">d", number))[0]
    return long_hash(bits)


def float_hash(number: float) -> int:
    """Return `Float.hashCode()`."""
    bits: int = struct.unpack(">i", struct.pack(">f", number))[0]
    return bits & _INT_BITS


def boolean_hash(value: bool) -> int:
    """Return `Boolean.hashCode()`."""
    return 1231 if value else 1237


def decode_utf8(data: bytes) -> str:
    """Decode as Java does: U+FFFD stands for what is damaged, one for a surrogate in three bytes."""
    return data.decode("utf-8", _ERRORS)


def _damaged(error: UnicodeError) -> tuple[str, int]:
    assert isinstance(error, UnicodeDecodeError)
    found = error.object[error.start : error.start + 3]
    if len(found) < 2 or found[0] != 0xED or found[1] & 0xE0 != 0xA0:
        return "\ufffd", error.end
    # A surrogate in three bytes, or the first two of them.
    return "\ufffd", error.start + (3 if len(found) == 3 and found[2] & 0xC0 == 0x80 else 2)


_ERRORS: Final = "wherry-java"
codecs.register_error(_ERRORS, _damaged)


def double_text(value: float) -> str:
    """Print a double as Java's `Double.toString` (19 and later) does."""
    return _float_text(value, repr(value), _same_double)


def float_text(value: float) -> str:
    """Print a single-precision number as Java's `Float.toString` (19 and later) does."""
    return _float_text(value, _shortest_float(value), _same_float)


def to_float32(number: Decimal | float) -> float:
    """Round to the nearest single-precision number, once; infinite where it is too large."""
    try:
        double = float(number)
        single: float = struct.unpack("<f", struct.pack("<f", double))[0]
    except OverflowError:
        return math.copysign(_FLOAT_MAX if abs(Decimal(number)) < _FLOAT_END else math.inf, number)
    if isinstance(number, float) or double == number or not math.isfinite(double):
        return single
    # The way through a double rounds twice. That shows only where the double lies halfway between two floats.
    for direction in (-math.inf, math.inf):
        other = _next_float(single, direction)
        if math.isfinite(other) and (single + other) / 2 == double:
            exact = Decimal(number) - Decimal(double)
            return max(single, other) if exact > 0 else min(single, other)
    return single


def _float_text(value: float, shortest: str, same: Callable[[float, float], bool]) -> str:
    if value != value:
        return "NaN"
    if math.isinf(value):
        return "Infinity" if value > 0 else "-Infinity"
    if value == 0:
        return "-0.0" if math.copysign(1.0, value) < 0 else "0.0"
    sign, figures, point = _figures(shortest)
    if -3 < point <= 7:
        if point <= 0:
            return f"{sign}0.{'0' * -point}{figures}"
        return f"{sign}{figures[:point].ljust(point, '0')}.{figures[point:] or '0'}"
    if len(figures) == 1:
        # Java prints two digits at least, and then those that come closest.
        closest = f"{Decimal(value):.1e}"
        if same(float(closest), value):
            sign, figures, point = _figures(closest)
    return f"{sign}{figures[0]}.{figures[1:] or '0'}E{point - 1}"


def _figures(text: str) -> tuple[str, str, int]:
    """Take a number apart: sign, digits without zeros at the end, and how many stand before the point."""
    sign, digits, exponent = Decimal(text).normalize().as_tuple()
    return "-" if sign else "", "".join(map(str, digits)), len(digits) + int(exponent)


def _same_double(text: float, value: float) -> bool:
    return text == value


def _same_float(text: float, value: float) -> bool:
    return to_float32(abs(text)) == abs(value)


def _shortest_float(value: float) -> str:
    for digits in range(1, 10):
        text = f"{value:.{digits - 1}e}"
        if math.isnan(value) or to_float32(float(text)) == value:
            return text
    return repr(value)


def _next_float(value: float, direction: float) -> float:
    """Return the single-precision number next to one."""
    bits: int = struct.unpack("<i", struct.pack("<f", abs(value)))[0]
    if value == 0:
        return math.copysign(struct.unpack("<f", struct.pack("<i", 1))[0], direction)
    bits += 1 if (direction > 0) == (value > 0) else -1
    return math.copysign(struct.unpack("<f", struct.pack("<i", bits))[0], value)
