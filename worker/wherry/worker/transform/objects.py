"""JSON texts to Python values and back, as Kafka Connect's JsonConverter reads and writes them without schema.

Whole numbers are 64 bits wide and wrap, fractions are doubles without negative zero, the last of equal names wins. Most
texts go through orjson; those in which it could differ are found beforehand, or afterwards, and go one by one.
"""

from __future__ import annotations

import datetime
import re
from typing import Any, Final

import numpy as np
import orjson
import pyarrow as pa
import pyarrow.compute as pc

from wherry.contract.data import DAY_MS, Float32, Instant
from wherry.contract.java import float_text
from wherry.contract.position import java_double, json_string
from wherry.contract.schemaless import loads
from wherry.worker.javaclass import NonFinite

# Numbers that orjson may read otherwise: long ones, and negative zero.
_ODD_NUMBER: Final = r"\d{19}|-0"
# What orjson writes otherwise: numbers that Java prints with an exponent, control characters, pairs of surrogates.
_ODD_OUTPUT: Final = r"\d{8}\.|0\.000\d|\de-?\d|\de\+|\\u00|-0\.0|[\x{10000}-\x{10ffff}]"
_HALVES: Final = re.compile("([\ud800-\udfff])")
_EPOCH: Final = datetime.datetime(1970, 1, 1)  # without a zone, for its text shall have no offset
# The calendar repeats itself every 400 years; Python's own ends with the year 9999.
_CYCLE_YEARS: Final = 400
_CYCLE_MS: Final = 146_097 * DAY_MS
_YEAR_MAX: Final = 9999


def parse_objects(texts: pa.Array) -> tuple[list[Any], list[int]]:
    """Parses texts.

    Returns:
        A value for each row, and the rows that hold no JSON.
    """
    rows = texts.to_pylist()
    odd = pc.any(pc.match_substring_regex(texts, _ODD_NUMBER)).as_py()
    if not odd:
        try:
            return [None if text is None else orjson.loads(text) for text in rows], []
        except orjson.JSONDecodeError:
            pass
    values: list[Any] = []
    bad: list[int] = []
    for row, text in enumerate(rows):
        try:
            values.append(None if text is None else _parse(text))
        except ValueError:
            values.append(None)
            bad.append(row)
    return values, bad


def write_objects(values: list[Any]) -> pa.Array:
    """Writes values as texts; None is null."""
    texts = pa.array([None if value is None else _text(value) for value in values], pa.string())
    odd = pc.match_substring_regex(texts, _ODD_OUTPUT)
    if not pc.any(odd).as_py():
        return texts
    flags = odd.to_pylist()
    return pa.array(
        [
            json_text(value) if flag else text
            for value, text, flag in zip(values, texts.to_pylist(), flags, strict=True)
        ],
        pa.string(),
    )


def json_text(value: Any) -> str:
    """Writes one value, number by number."""
    parts: list[str] = []
    _write(value, parts)
    return "".join(parts)


def _parse(text: str) -> Any:
    return loads(text, non_finite=NonFinite, keep_halves=True) if text else None


def _text(value: Any) -> str:
    try:
        return orjson.dumps(value, default=_plain, option=orjson.OPT_PASSTHROUGH_SUBCLASS).decode()
    except TypeError:
        return json_text(value)


def _plain(value: Any) -> int | float | str:
    """Gives orjson what it would not take, or would take for a number though it is a moment.

    A float becomes the double of the fewest digits that tell it apart; where Java prints an exponent, both of them show
    that they are odd output.
    """
    if isinstance(value, Instant):
        return instant_text(value)
    if isinstance(value, int):
        return int(value)
    if not isinstance(value, Float32) or value - value != 0:
        raise TypeError
    return float(str(np.float32(value)))


def _write(value: Any, parts: list[str]) -> None:
    if isinstance(value, str):
        parts.append(_quoted(value))
    elif value is None or isinstance(value, bool):
        parts.append("null" if value is None else "true" if value else "false")
    elif isinstance(value, Instant):
        parts.append(f'"{instant_text(value)}"')
    elif isinstance(value, int):
        parts.append(str(int(value)))
    elif isinstance(value, Float32):
        parts.append(float_text(value) if value - value == 0 else java_double(value))
    elif isinstance(value, float):
        parts.append(java_double(value))
    elif isinstance(value, dict):
        parts.append("{")
        for place, (key, item) in enumerate(value.items()):
            parts.append(f"{',' if place else ''}{_quoted(key)}:")
            _write(item, parts)
        parts.append("}")
    else:
        parts.append("[")
        for place, item in enumerate(value):
            parts.append("," if place else "")
            _write(item, parts)
        parts.append("]")


def instant_text(value: int) -> str:
    """Returns the text of a moment; years that are not of four digits have a sign, as in ISO 8601.

    NB: Kafka Connect fails here; its JSON has no form for a date without schema.
    """
    cycles, rest = divmod(int(value), _CYCLE_MS)
    moment = _EPOCH + datetime.timedelta(milliseconds=rest)
    year = moment.year + cycles * _CYCLE_YEARS
    years = f"{year:04d}" if 0 <= year <= _YEAR_MAX else f"{year:+05d}"
    return f"{years}{moment.isoformat(timespec='milliseconds')[4:]}Z"


def _quoted(value: str) -> str:
    try:
        value.encode()
    except UnicodeEncodeError:
        # Half a pair of surrogates can only be escaped.
        parts = _HALVES.split(value)
        halves = (f"\\u{ord(part):04X}" if place % 2 else json_string(part)[1:-1] for place, part in enumerate(parts))
        return f'"{"".join(halves)}"'
    return json_string(value)
