"""Values without a schema, as the JsonConverter hands them on: whole numbers are longs that wrap, others doubles.

JSON is read as leniently as Kafka Connect reads it: what follows the first value is ignored, and leading zeros are
taken. The text of a value is kept as it came until somebody looks inside, so whoever does needs the same leniency.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable
from decimal import Decimal, InvalidOperation
from typing import Any, Final

import orjson
import pyarrow as pa

from wherry.contract.batch import JSON_TYPE

BAD_JSON: Final = "Converting byte[] to Kafka Connect data failed due to serialization error: "
SPACE: Final = " \t\r\n"
_LONG: Final = 1 << 63
_SURPRISING: Final = re.compile(r"\d{19}|-0|\d[eE]")
"""What the fast parser reads otherwise: numbers beyond a long, negative zero, numbers beyond a double."""
_STRING_OR_ZEROS: Final = re.compile(r'"(?:[^"\\]|\\.)*"|(?<![\d.eE+\-])(-?)0+(?=\d)', re.DOTALL)


def loads(text: str, *, non_finite: type[float] = float, keep_halves: bool = False) -> Any:
    """Returns the value of a JSON text.

    Whole numbers beyond 64 bits keep their lowest 64, numbers beyond a double are infinite, and there is no negative
    zero.

    Args:
        text: The text.
        non_finite: What infinite numbers become.
        keep_halves: Whether half a pair of surrogates stays, which no UTF-8 can hold; otherwise it becomes a question
            mark, as when Java writes it.

    Raises:
        ValueError: It is no JSON; where there are only blanks, it is null.
    """
    if _SURPRISING.search(text) is None:
        try:
            return orjson.loads(text)
        except orjson.JSONDecodeError:
            if not text.strip(SPACE):
                return None
    return _narrowed(parse(text), non_finite, str if keep_halves else valid_text)


def parse(text: str, *, whole: bool = False, exact: bool = False) -> Any:
    """Parses one JSON value as leniently as Kafka Connect, its numbers as wide as they are written.

    Args:
        text: The text.
        whole: Whether nothing but blanks may follow the value.
        exact: Whether fractions become `Decimal` instead of `float`.

    Raises:
        ValueError: It is no JSON.
    """
    try:
        return _decode(text, whole, exact)
    except RecursionError:
        raise ValueError("nested too deeply") from None
    except ValueError:
        bare = _STRING_OR_ZEROS.sub(lambda match: match[0] if match[0][0] == '"' else match[1] or "", text)
        return _decode(bare, whole, exact)


def refuse(constant: str) -> Any:
    """What is done about NaN and the infinities, which Python's parser would take.

    Raises:
        ValueError: Always.
    """
    raise ValueError(f"{constant} is no JSON")


def valid_text(value: str) -> str:
    """Returns a text that can be written as UTF-8: Java writes a question mark for half a pair of surrogates."""
    try:
        value.encode()
    except UnicodeEncodeError:
        return value.encode("utf-8", "replace").decode()
    return value


def bad_json(column: pa.Array) -> dict[int, str]:
    """Returns why rows of a column of JSON texts can't be read, by row; nothing for a column of another type."""
    found: dict[int, str] = {}
    for row, text in enumerate(column.storage.to_pylist() if column.type == JSON_TYPE else ()):
        try:
            loads(text or "null")
        except ValueError as error:
            found[row] = f"{BAD_JSON}{error}"
    return found


def _decode(text: str, whole: bool, exact: bool) -> Any:
    text = text.lstrip(SPACE)
    value, end = (EXACT_DECODER if exact else DECODER).raw_decode(text)
    if end < len(text) and text[end] not in SPACE:
        # A number must be set off from what follows; this is also how leading zeros show (0 in front of 07).
        number = isinstance(value, int | float | Decimal) and not isinstance(value, bool)
        word = (value is None or isinstance(value, bool)) and (text[end].isalnum() or text[end] in "_$")
        if whole or number or word:
            raise ValueError("more follows")
    elif whole and text[end:].strip(SPACE):
        raise ValueError("more follows")
    return value


def _narrowed(value: Any, non_finite: type[float], text: Callable[[str], str]) -> Any:
    """Gives numbers the width that Java's have."""
    if isinstance(value, dict):
        return {text(key): _narrowed(item, non_finite, text) for key, item in value.items()}
    if isinstance(value, list):
        return [_narrowed(item, non_finite, text) for item in value]
    if isinstance(value, float):
        return value + 0.0 if math.isfinite(value) else non_finite(value)
    if isinstance(value, int) and not isinstance(value, bool):
        return (value + _LONG) % (2 * _LONG) - _LONG
    return text(value) if isinstance(value, str) else value


def fraction(text: str) -> Decimal:
    """A number as exact as it is written.

    Raises:
        ValueError: A decimal of Java can't hold it: its power of ten, or how many digits it has behind the point.
    """
    try:
        number = Decimal(text)
    except InvalidOperation:
        raise ValueError(_OUT_OF_RANGE) from None
    if len(text) >= _HUGE_SIZE_MIN and ("e" in text or "E" in text) and number.is_finite():
        power = int(text.lower().partition("e")[2])
        if max(abs(power), -int(number.as_tuple().exponent)) > _POWER_MAX:
            raise ValueError(_OUT_OF_RANGE)
    return number


def _double(text: str) -> float:
    """A number as a double.

    Raises:
        ValueError: See `fraction`.
    """
    return float(text) if len(text) < _HUGE_SIZE_MIN else float(fraction(text))


_OUT_OF_RANGE: Final = "the exponent is out of range"
_POWER_MAX: Final = (1 << 31) - 1
_HUGE_SIZE_MIN: Final = len("1e2147483648")
DECODER: Final = json.JSONDecoder(parse_constant=refuse, parse_float=_double)
"""Reads JSON, its fractions as doubles."""
EXACT_DECODER: Final = json.JSONDecoder(parse_constant=refuse, parse_float=fraction)
"""Reads JSON without losing digits."""
