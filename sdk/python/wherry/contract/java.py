"""Orders that come from Java's collections, for what Kafka Connect prints by walking over them. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache
from typing import Final

_TABLE_SIZE_MIN: Final = 16
_LOAD_FACTOR: Final = 0.75
_INT_BITS: Final = 0xFFFFFFFF
_KEYS_KEPT_MAX: Final = 4096


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
    distinct = list(dict.fromkeys(keys))
    if len(distinct) < 2:
        return distinct
    size = _TABLE_SIZE_MIN
    while len(distinct) > size * _LOAD_FACTOR:
        size *= 2

    def slot(key: str) -> int:
        hashed = string_hash(key)
        return (hashed ^ hashed >> 16) & (size - 1)

    return sorted(distinct, key=slot)
