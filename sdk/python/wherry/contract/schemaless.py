"""Values without a schema, as the JsonConverter hands them on: whole numbers are longs that wrap, others doubles."""

from __future__ import annotations

import json
import re
from typing import Any, Final

import orjson
import pyarrow as pa

from wherry.contract.batch import JSON_TYPE

BAD_JSON: Final = "Converting byte[] to Kafka Connect data failed due to serialization error: "
_LONG: Final = 1 << 63
_SURPRISING: Final = re.compile(r"\d{19}|-0|\d[eE]")
"""What the fast parser reads otherwise: numbers beyond a long, negative zero, numbers beyond a double."""


def loads(text: str) -> Any:
    """Returns the value of a JSON text.

    Whole numbers beyond 64 bits keep their lowest 64, numbers beyond a double are infinite, and there is no negative
    zero.

    Raises:
        ValueError: It is no JSON.
    """
    if _SURPRISING.search(text) is None:
        return orjson.loads(text)
    return json.loads(text, parse_int=_long, parse_float=_double, parse_constant=_refuse)


def bad_json(column: pa.Array) -> dict[int, str]:
    """Returns why rows of a column of JSON texts can't be read, by row; nothing for a column of another type."""
    found: dict[int, str] = {}
    for row, text in enumerate(column.storage.to_pylist() if column.type == JSON_TYPE else ()):
        try:
            loads(text or "null")
        except ValueError as error:
            found[row] = f"{BAD_JSON}{error}"
    return found


def _long(text: str) -> int:
    return (int(text) + _LONG) % (2 * _LONG) - _LONG


def _double(text: str) -> float:
    return float(text) + 0.0


def _refuse(constant: str) -> Any:
    raise ValueError(f"{constant} is no JSON")
