"""Kafka Connect's text form of typed values, both ways: what its `Values` reads and writes. Pure; times are UTC.

The SimpleHeaderConverter and InsertHeader speak it. Reading infers the type: `1` is an INT8, `[1,300]` an array of
INT16, `2020-01-02` a Date. It never fails: what can't be read as anything else is a STRING, whole and untouched.

It is no exact inverse: the parser stops at the first token and drops what follows (`1,000` is 1), whole decimals
become integers (`1.0` is 1), a Timestamp at midnight is written as a bare date.
"""

from __future__ import annotations

import base64
import datetime
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, Final

from wherry.contract.calendars import calendar_day, day_of
from wherry.contract.data import (
    BOOLEAN_SCHEMA,
    DATE,
    DATE_SCHEMA,
    DAY_MS,
    FLOAT32_SCHEMA,
    FLOAT64_SCHEMA,
    INT8_SCHEMA,
    INT16_SCHEMA,
    INT32_SCHEMA,
    INT64_SCHEMA,
    STRING_SCHEMA,
    TEMPORAL,
    TIME_SCHEMA,
    TIMESTAMP_SCHEMA,
    DataError,
    Float32,
    Instant,
    Kind,
    Linked,
    Pairs,
    Schema,
    Typed,
    decimal_schema,
)
from wherry.contract.java import decode_utf8, double_text, float_text, to_float32

# Deeper arrays and maps are left as text, which they are written as in either case.
DEPTH_MAX: Final = 100
_EXPONENT_MAX: Final = 2**31 - 1
# What Java's `trim` takes away.
_BLANKS: Final = "".join(map(chr, range(0x21)))
_PLAIN: Final = re.compile(r'[^{}\[\],:"]+')
_QUOTED: Final = re.compile(r'"((?:[^"\\]|\\.)*)"', re.DOTALL)
_NUMBER: Final = re.compile(
    r"[+-]?(?:\d+(?:\.(?P<fraction>\d*))?|(?<=[+-])\.(?P<bare>\d+))(?:[eE](?P<exponent>[+-]?\d+))?"
)
_DATE_LENGTH, _TIME_LENGTH, _TIMESTAMP_LENGTH = 10, 13, 24
# As lenient as Java's SimpleDateFormat: any number of digits, blanks and a sign before a number.
_PART: Final = r"[ \t]*(-?\d+)"
_DATE_FORM: Final = re.compile(rf"{_PART}-{_PART}-{_PART}")
_TIME_FORM: Final = re.compile(rf"{_PART}:{_PART}:{_PART}\.{_PART}Z")
_TIMESTAMP_FORM: Final = re.compile(rf"{_PART}-{_PART}-{_PART}T{_PART}:{_PART}:{_PART}\.{_PART}Z")
_DIGITS: Final = frozenset("0123456789")
_TOKENS: Final = re.compile(r"[]\[{},:]|(?:\\.|[^]\[{},:\\])+", re.DOTALL)
_SIZES: Final = ((7, INT8_SCHEMA), (15, INT16_SCHEMA), (31, INT32_SCHEMA), (63, INT64_SCHEMA))
_INT64_DIGITS: Final = 19
_EPOCH: Final = datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC)
_MS: Final = datetime.timedelta(milliseconds=1)
_BYTES: Final = (bytes, bytearray, memoryview)
_CONSTANTS: Final[Mapping[str, Typed]] = {
    "true": Typed(BOOLEAN_SCHEMA, True),
    "false": Typed(BOOLEAN_SCHEMA, False),
    "null": Typed(None, None),
}


def parse(text: str) -> Typed:
    """Reads a value from its text form.

    Args:
        text: Any text.

    Returns:
        The value and its schema; Date, Time and Timestamp are an `Instant`. The text itself as a STRING where it is
        nothing else; no schema and None for `null`.
    """
    trimmed = text.strip(_BLANKS)
    constant = _CONSTANTS.get(trimmed)
    if constant is not None:
        return constant
    if trimmed[:1] in {"[", "{"}:
        try:
            return _Parser(trimmed).value(0)
        except _NoValueError:
            # The parser starts over at its first token, which is the blanks where there are some.
            return Typed(STRING_SCHEMA, text[: len(text) - len(text.lstrip(_BLANKS))] or text)
    found = _token(text.lstrip(_BLANKS), 0)
    return found[0] if found else Typed(STRING_SCHEMA, text)


def format(value: Any, schema: Schema | None = None) -> str | None:  # noqa: A001 (the word for it)
    """Writes the text form of a value.

    Args:
        value: The value. Texts inside of lists and maps are quoted; bytes are written as base64.
        schema: Its schema, which tells apart what Python doesn't: single precision, and the moments of logical types
            given as numbers of ms.

    Returns:
        The text; None for None.

    Raises:
        DataError: The value is of a type that Connect doesn't know.
    """
    if value is None:
        return None
    if isinstance(value, str):
        return value
    if isinstance(value, _BYTES):
        return base64.b64encode(value).decode()
    parts: list[str] = []
    _write(value, schema, parts)
    return "".join(parts)


def read(data: bytes | None) -> Typed:
    """Reads a header's bytes as the SimpleHeaderConverter does; damaged UTF-8 becomes U+FFFD."""
    return Typed(None, None) if data is None else parse(decode_utf8(data))


class _NoValueError(Exception):
    """The text is no value; nobody outside sees this."""


@dataclass(slots=True)
class _Parser:
    """A reader of arrays and maps."""

    text: str
    place: int = 0

    def value(self, depth: int) -> Typed:
        """Reads any value inside of an array or map."""
        if depth > DEPTH_MAX:
            raise _NoValueError
        self._skip()
        first = self.text[self.place : self.place + 1]
        if first == "[":
            return self._array(depth)
        if first == "{":
            return self._map(depth)
        if first == '"':
            return self._quoted()
        found = _token(self.text, self.place)
        if found is not None:
            self.place = found[1]
            return found[0]
        plain = _PLAIN.match(self.text, self.place)
        constant = _CONSTANTS.get(plain[0].strip(_BLANKS)) if plain else None
        if plain is None or constant is None:
            raise _NoValueError
        self.place = plain.end()
        return constant

    def _array(self, depth: int) -> Typed:
        self.place += 1
        items: list[Typed] = []
        while not self._take("]"):
            items.append(self.value(depth + 1))
            if not self._take(",") and not self._next_is("]"):
                raise _NoValueError
        common = _common(iter(items))
        return Typed(Schema(Kind.ARRAY, value=common), [_converted(common, item.value) for item in items])

    def _map(self, depth: int) -> Typed:
        self.place += 1
        entries: list[tuple[Typed, Typed]] = []
        while not self._take("}"):
            key = self.value(depth + 1)
            if key.value is None or not self._take(":"):
                raise _NoValueError
            entries.append((key, self.value(depth + 1)))
            self._take(",")
        key_schema = _common(key for key, _ in entries)
        # Beside keys that share nothing, nobody looks at the values.
        value_schema = None if key_schema is None else _common(value for _, value in entries)
        # To Python true is 1, and a byte is any number that equals it; to Java they are different keys.
        found: dict[Any, tuple[Typed, Typed]] = {}
        for key, value in entries:
            same = (key.schema, hashable(key.value))
            found[same] = (found[same][0] if same in found else key, value)
        items = [
            (hashable(_converted(key_schema, key.value)), _converted(value_schema, value.value))
            for key, value in found.values()
        ]
        plain = Linked(items)
        whole = key_schema is not None or len(plain) == len(items)
        return Typed(Schema(Kind.MAP, key=key_schema, value=value_schema), plain if whole else Pairs(items))

    def _quoted(self) -> Typed:
        quoted = _QUOTED.match(self.text, self.place)
        if quoted is None:
            raise _NoValueError
        self.place = quoted.end()
        # Escapes stay as they are written. Blanks that are a token of their own get lost.
        text = "".join(token for token in _TOKENS.findall(quoted[1]) if token.strip(_BLANKS))
        moment = _moment(text)
        return moment or Typed(STRING_SCHEMA, text)

    def _skip(self) -> None:
        while self.text[self.place : self.place + 1] and self.text[self.place] in _BLANKS:
            self.place += 1

    def _next_is(self, sign: str) -> bool:
        self._skip()
        return self.text.startswith(sign, self.place)

    def _take(self, sign: str) -> bool:
        found = self._next_is(sign)
        self.place += found
        return found


def _token(text: str, start: int) -> tuple[Typed, int] | None:
    """Reads the number or moment that starts at a place; also returns where it ends."""
    plain = _PLAIN.match(text, start)
    if plain is None:
        return None
    end = plain.end()
    # A time of day has colons, at which tokens end.
    if text.startswith(":", end):
        second = _PLAIN.match(text, end + 1)
        third = _PLAIN.match(text, second.end() + 1) if second and text.startswith(":", second.end()) else None
        joined = f"{plain[0].strip(_BLANKS)}{text[end : third.end()]}" if third else ""
        moment = _moment(joined) if third and joined[0] in _DIGITS else None
        if third and moment:
            return moment, third.end()
    token = plain[0].strip(_BLANKS)
    # Outside of quotes a moment begins with a digit.
    found = (_moment(token) if token[:1] in _DIGITS else None) or _number(token)
    return (found, end) if found else None


def _number(token: str) -> Typed | None:
    match = _NUMBER.fullmatch(token)
    if match is None:
        return None
    fraction = match["fraction"] or match["bare"] or ""
    exponent = Decimal(match["exponent"] or 0)
    scale = len(fraction) - exponent
    if abs(exponent) > _EXPONENT_MAX or scale > _EXPONENT_MAX:
        return None
    number = Decimal(token)
    if not number or (number.adjusted() < _INT64_DIGITS and number == number.to_integral_value()):
        whole = int(number)
        for bits, schema in _SIZES:
            if -1 << bits <= whole < 1 << bits:
                return Typed(schema, whole)
    if scale != 0:
        single = to_float32(number)
        if abs(single) != float("inf"):
            return Typed(FLOAT32_SCHEMA, Float32(single))
        double = float(number)
        if abs(double) != float("inf"):
            return Typed(FLOAT64_SCHEMA, double)
    return Typed(decimal_schema(int(scale)), number)


def _moment(text: str) -> Typed | None:
    """Reads a date, time or timestamp; its length decides which."""
    if len(text) == _DATE_LENGTH:
        match = _DATE_FORM.match(text)
        return Typed(DATE_SCHEMA, Instant(day_of(*map(int, match.groups())) * DAY_MS)) if match else None
    if len(text) == _TIME_LENGTH:
        match = _TIME_FORM.match(text)
        return Typed(TIME_SCHEMA, Instant(_of_day(*map(int, match.groups())))) if match else None
    if len(text) == _TIMESTAMP_LENGTH:
        match = _TIMESTAMP_FORM.match(text)
        if match:
            numbers = list(map(int, match.groups()))
            return Typed(TIMESTAMP_SCHEMA, Instant(day_of(*numbers[:3]) * DAY_MS + _of_day(*numbers[3:])))
    return None


def _of_day(hours: int, minutes: int, seconds: int, ms: int) -> int:
    return ((hours * 60 + minutes) * 60 + seconds) * 1000 + ms


def _common(items: Iterator[Typed]) -> Schema | None:
    """Returns the schema that all elements but nulls share; None when they share none."""
    common: Schema | None = None
    for schema in (item.schema for item in items if item.schema is not None):
        common = schema if common is None else _merged(common, schema)
        if common is None:
            return None
    return common


def _merged(left: Schema, right: Schema) -> Schema | None:
    if left.kind is right.kind:
        # The last one wins, whatever it says about its own elements.
        return right
    if left.kind.rank >= 0 and right.kind.rank >= 0:
        return max(left, right, key=lambda schema: schema.kind.rank)
    return None


def _converted(schema: Schema | None, value: Any) -> Any:
    """Converts an element to the type that all share.

    Raises:
        _NoValueError: It can't be, as null can't.
    """
    if schema is not None and value is None:
        raise _NoValueError
    if schema is None or schema.kind.rank < 0:
        return value
    if schema.name in TEMPORAL:
        if isinstance(value, Instant):
            return value
        return Instant(value * DAY_MS if schema.name == DATE else value)
    if isinstance(value, Instant):
        raise _NoValueError
    if schema.kind is Kind.FLOAT32:
        return Float32(to_float32(float(value)))
    return float(value) if schema.kind is Kind.FLOAT64 else value


def hashable(key: Any) -> Any:
    """Returns a value so that it can be the key of a map."""
    if isinstance(key, list):
        return tuple(map(hashable, key))
    if isinstance(key, dict):
        return Pairs((name, hashable(value)) for name, value in key.items())
    return key


def _write(value: Any, schema: Schema | None, parts: list[str]) -> None:
    """Appends the text form of a value; texts are quoted, because they stand inside of something."""
    if value is None or isinstance(value, bool):
        parts.append({None: "null", True: "true", False: "false"}[value])
    elif isinstance(value, str):
        escaped = value.replace("\\", "\\\\").replace('"', '\\"')
        parts.append(f'"{escaped}"')
    elif isinstance(value, Instant | datetime.date | datetime.time):
        parts.append(_moment_text(milliseconds(value)))
    elif isinstance(value, int):
        parts.append(_moment_text(value) if schema is not None and schema.name in TEMPORAL else str(value))
    elif isinstance(value, float):
        single = isinstance(value, Float32) or (schema is not None and schema.kind is Kind.FLOAT32)
        parts.append(float_text(to_float32(value)) if single else double_text(value))
    elif isinstance(value, Decimal):
        parts.append(str(value))
    elif isinstance(value, _BYTES):
        parts.append(f'"{base64.b64encode(value).decode()}"')
    elif isinstance(value, Pairs):
        _write_map(value, schema, parts)
    elif isinstance(value, list | tuple):
        item = schema.value if schema is not None else None
        _write_all(value, lambda element: _write(element, item, parts), "[]", parts)
    elif isinstance(value, Mapping):
        _write_map(value.items(), schema, parts)
    else:
        raise DataError(f"Failed to serialize unexpected value type {type(value).__name__}.", reason="WRONG_KIND")


def _write_map(items: Iterable[tuple[Any, Any]], schema: Schema | None, parts: list[str]) -> None:
    key_schema = schema.key if schema is not None else None
    value_schema = schema.value if schema is not None else None
    fields = schema is not None and schema.kind is Kind.STRUCT

    def write(item: tuple[Any, Any]) -> None:
        key, value = item
        _write(key, key_schema, parts)
        parts.append(":")
        _write(value, schema.field_of(key) if fields and schema is not None else value_schema, parts)

    _write_all(items, write, "{}", parts)


def _write_all(items: Iterable[Any], write: Callable[[Any], None], signs: str, parts: list[str]) -> None:
    parts.append(signs[0])
    for index, item in enumerate(items):
        if index:
            parts.append(",")
        write(item)
    parts.append(signs[1])


def milliseconds(value: Instant | datetime.date | datetime.time) -> int:
    """Returns what `java.util.Date` holds for a moment, a day at midnight or a time of the first day; UTC."""
    if isinstance(value, Instant):
        return int(value)
    if isinstance(value, datetime.time):
        return _of_day(value.hour, value.minute, value.second, value.microsecond // 1000)
    if isinstance(value, datetime.datetime):
        aware = value if value.tzinfo else value.replace(tzinfo=datetime.UTC)
        return (aware - _EPOCH) // _MS
    return (value - _EPOCH.date()).days * DAY_MS


def _moment_text(ms: int) -> str:
    """Writes a moment of the first day or before it as a time, one at midnight as a date, others in full."""
    day, rest = divmod(ms, DAY_MS)
    hours, rest = divmod(rest, 3_600_000)
    minutes, rest = divmod(rest, 60_000)
    time = f"{hours:02d}:{minutes:02d}:{rest // 1000:02d}.{rest % 1000:03d}Z"
    if ms < DAY_MS:
        return time
    year, month, day_of_month = calendar_day(day)
    date = f"{year:04d}-{month:02d}-{day_of_month:02d}"
    return date if ms % DAY_MS == 0 else f"{date}T{time}"
