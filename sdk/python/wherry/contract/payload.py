"""Values of a Connect schema as JSON payloads, as Kafka Connect's JsonConverter has them. Pure.

Bytes are base64, decimals the base64 of their unscaled number, Date counts days, Time and Timestamp ms; a map with text
keys is an object and any other a list of pairs. Reading is as lenient as Kafka Connect's: integers wrap, fractions are
cut, and a wrong kind of scalar is 0, 0.0, false or null.
"""

from __future__ import annotations

import base64
import binascii
import datetime
import math
import re
from collections.abc import Mapping
from decimal import Decimal
from functools import partial
from typing import Any, Final

from wherry.contract.data import DATE, DAY_MS, DECIMAL, TIME, DataError, Float32, Instant, Kind, Schema
from wherry.contract.java import float_text, to_float32
from wherry.contract.values import hashable, milliseconds

_BITS: Final = {Kind.INT8: 8, Kind.INT16: 16, Kind.INT32: 32, Kind.INT64: 64}
BAD_DECIMAL: Final = "Invalid bytes for Decimal field"
_BLANKS: Final = re.compile(r"[\x00-\x20]")
_BASE64_GROUP: Final = re.compile(r"[A-Za-z0-9+/]{4}|[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=")
_BASE64: Final = re.compile(rf"(?:[\x00-\x20]*(?:{_BASE64_GROUP.pattern}))*[\x00-\x20]*")
_CLASSES: Final = {Instant: "java.util.Date", Decimal: "java.math.BigDecimal"}
_MOMENTS: Final = (Instant, datetime.date, datetime.time)


def to_payload(schema: Schema, value: Any, *, numeric_decimals: bool = False, defaults: bool = True) -> Any:
    """Returns the JSON of a value.

    Args:
        schema: Its schema.
        value: The value.
        numeric_decimals: Decimals as numbers.
        defaults: Whether a null becomes the default, where there is one.

    Raises:
        DataError: The value doesn't fit its schema.
    """
    if value is None:
        if defaults and schema.has_default and schema.default is not None:
            return to_payload(schema, schema.default, numeric_decimals=numeric_decimals)
        if schema.optional:
            return None
        raise DataError(
            "Conversion error: null value for field that is required and has no default value", reason="NOT_NULL"
        )

    def inner(part: Schema | None, item: Any) -> Any:
        if part is None:
            return schemaless_payload(item)
        return to_payload(part, item, numeric_decimals=numeric_decimals, defaults=defaults)

    logical = schema.logical
    if logical == DECIMAL:
        return (
            value
            if numeric_decimals and isinstance(value, Decimal)
            else base64.b64encode(unscaled(value, schema.scale)).decode()
        )
    if logical is not None:
        return _count(logical, value)
    kind = schema.kind
    if kind is Kind.BYTES and isinstance(value, bytes | bytearray | memoryview):
        return base64.b64encode(value).decode()
    if kind is Kind.ARRAY and isinstance(value, list | tuple):
        return [inner(schema.value, item) for item in value]
    if kind is Kind.MAP and isinstance(value, Mapping):
        key = _part(schema.key)
        pairs = [[inner(key, name), inner(schema.value, found)] for name, found in value.items()]
        return dict(pairs) if key.kind is Kind.STRING else pairs
    if kind is Kind.STRUCT and isinstance(value, Mapping):
        return {field.name: inner(field.schema, value.get(field.name)) for field in schema.fields}
    if _is_scalar(kind, value):
        # The shortest digits that tell a float apart, not those of the double it is held in.
        return float(float_text(value)) if kind is Kind.FLOAT32 and math.isfinite(value) else value
    raise DataError(f"A {type(value).__name__} is no value of type {kind.value}.", reason="WRONG_KIND")


def schemaless_payload(value: Any) -> Any:
    """Returns the JSON of a value that has no schema.

    Raises:
        DataError: Connect knows its type only by a schema.
    """
    if value is None or isinstance(value, bool | str):
        return value
    if isinstance(value, bytes | bytearray | memoryview):
        return base64.b64encode(value).decode()
    if isinstance(value, Float32):
        return float(float_text(value)) if math.isfinite(value) else float(value)
    if isinstance(value, int | float) and not isinstance(value, Instant):
        return value
    if isinstance(value, list | tuple):
        return [*map(schemaless_payload, value)]
    if isinstance(value, Mapping):
        pairs = [[schemaless_payload(key), schemaless_payload(item)] for key, item in value.items()]
        return dict(pairs) if all(isinstance(key, str) for key in value) else pairs
    raise DataError(
        f"Java class class {_CLASSES.get(type(value), type(value).__name__)} does not have corresponding schema type.",
        reason="WRONG_KIND",
    )


def from_payload(schema: Schema, value: Any, *, defaults: bool = True) -> Any:
    """Returns the value that a JSON payload stands for.

    Args:
        schema: Its schema.
        value: The payload; numbers may be `Decimal`, so that none of their digits is lost.
        defaults: Whether a null becomes the default, where there is one.

    Raises:
        DataError: Kafka Connect would refuse it too.
    """
    if value is None:
        if defaults and schema.has_default and schema.default is not None:
            return schema.default
        if schema.optional:
            return None
        raise DataError(f"Invalid null value for required {schema.kind.value} field", reason="NOT_NULL")
    kind = schema.kind
    if schema.logical == DECIMAL:
        return _decimal(schema, value)
    if schema.logical is not None:
        return _instant(schema.logical, value)
    if kind in _BITS:
        return _wrapped(_whole(value), _BITS[kind])
    if kind in {Kind.FLOAT32, Kind.FLOAT64}:
        return _floating(value, single=kind is Kind.FLOAT32)
    if kind is Kind.BOOLEAN:
        return value is True
    if kind is Kind.STRING:
        return value if isinstance(value, str) else None
    if kind is Kind.BYTES:
        # What is no text has no bytes to Jackson.
        return unbase64(value, "Invalid bytes field") if isinstance(value, str) else None
    return _nested(schema, value, defaults)


def unbase64(value: str, problem: str) -> bytes:
    """Decodes as Jackson does: blanks may stand between groups of four characters.

    Raises:
        DataError: It is no base64; `problem` is what it says.
    """
    try:
        if len(value) % 4 == 0:
            return base64.b64decode(value, validate=True)
        groups = _BASE64_GROUP.findall(value)
        if "".join(groups) == _BLANKS.sub("", value) and _BASE64.fullmatch(value):
            return b"".join(map(base64.b64decode, groups))
    except (binascii.Error, ValueError):
        pass
    raise DataError(problem, reason="WRONG_KIND")


def unscaled(value: Any, scale: int) -> bytes:
    """Returns the big-endian two's complement of a decimal without its point.

    Raises:
        DataError: Its scale is another one.
    """
    if not isinstance(value, Decimal):
        raise DataError(f"A {type(value).__name__} is no value of type Decimal.", reason="WRONG_KIND")
    sign, digits, exponent = value.as_tuple()
    if exponent != -scale:
        raise DataError(
            "Decimal value has mismatching scale for given Decimal schema. "
            f"Schema has scale {scale}, value has scale {-int(exponent)}.",
            reason="WRONG_KIND",
        )
    number = int(Decimal((sign, digits, 0)))
    return number.to_bytes((number + (number < 0)).bit_length() // 8 + 1, "big", signed=True)


def scaled(data: bytes, scale: int) -> Decimal:
    """Returns the decimal of an unscaled number."""
    number = int.from_bytes(data, "big", signed=True)
    return Decimal((int(number < 0), tuple(map(int, str(abs(number)))), -scale))


def _is_scalar(kind: Kind, value: Any) -> bool:
    if kind is Kind.BOOLEAN:
        return isinstance(value, bool)
    if kind in _BITS:
        bits = _BITS[kind] - 1
        return isinstance(value, int) and not isinstance(value, bool | Instant) and -1 << bits <= value < 1 << bits
    if kind in {Kind.FLOAT32, Kind.FLOAT64}:
        return isinstance(value, float)
    return kind is Kind.STRING and isinstance(value, str)


def _part(schema: Schema | None) -> Schema:
    if schema is None:
        raise DataError("The elements of the array or map have no schema in common.", reason="BAD_SCHEMA")
    return schema


def _count(logical: str, value: Any) -> int:
    if not isinstance(value, _MOMENTS):
        raise DataError(
            f"A {type(value).__name__} is no value of type {logical.rpartition('.')[2]}.", reason="WRONG_KIND"
        )
    ms = milliseconds(value)
    if logical == DATE:
        if ms % DAY_MS:
            raise DataError(
                "Kafka Connect Date type should not have any time fields set to non-zero values.", reason="WRONG_KIND"
            )
        return ms // DAY_MS
    if logical == TIME and not 0 <= ms < DAY_MS:
        raise DataError(
            "Kafka Connect Time type should not have any date fields set to non-zero values.", reason="WRONG_KIND"
        )
    return ms


def _instant(logical: str, value: Any) -> Instant:
    limit = 1 << 63 if logical not in {DATE, TIME} else 1 << 31
    if not isinstance(value, int) or isinstance(value, bool) or not -limit <= value < limit:
        short = logical.rpartition(".")[2]
        raise DataError(f"Invalid type for {short}, expected integer but was {node_name(value)}", reason="WRONG_KIND")
    return Instant(value * DAY_MS if logical == DATE else value)


def _decimal(schema: Schema, value: Any) -> Decimal:
    if isinstance(value, str):
        data = unbase64(value, BAD_DECIMAL)
        if not data:
            raise DataError(BAD_DECIMAL, reason="WRONG_KIND")
        return scaled(data, schema.scale)
    if isinstance(value, int | float | Decimal) and not isinstance(value, bool):
        return Decimal(repr(value)) if isinstance(value, float) else Decimal(value)
    raise DataError(
        f"Invalid type for Decimal, expected numeric or text but was {node_name(value)}", reason="WRONG_KIND"
    )


def _whole(value: Any) -> int:
    if isinstance(value, bool) or not isinstance(value, int | float | Decimal) or not math.isfinite(value):
        return 0
    return int(value)


def _wrapped(value: int, bits: int) -> int:
    value &= (1 << bits) - 1
    return value - (1 << bits) if value >> (bits - 1) else value


def _floating(value: Any, *, single: bool) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float | Decimal):
        return 0.0
    if single:
        return Float32(to_float32(value) + 0.0)
    try:
        return float(value) + 0.0
    except OverflowError:
        return math.inf if value > 0 else -math.inf


def _nested(schema: Schema, value: Any, defaults: bool) -> Any:
    read = partial(from_payload, defaults=defaults)
    if schema.kind is Kind.STRUCT:
        if not isinstance(value, dict):
            raise DataError(
                f"Structs should be encoded as JSON objects, but found {node_name(value)}", reason="WRONG_KIND"
            )
        return {field.name: read(field.schema, value.get(field.name)) for field in schema.fields}
    if schema.kind is Kind.ARRAY:
        # Whatever Jackson can walk over: the members of an object too, and nothing in any other value.
        items = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
        return [read(_part(schema.value), item) for item in items]
    key, item = _part(schema.key), _part(schema.value)
    if key.kind is Kind.STRING:
        if not isinstance(value, dict):
            raise DataError(
                f"Maps with string fields should be encoded as JSON objects, but found {node_name(value)}",
                reason="WRONG_KIND",
            )
        return {name: read(item, found) for name, found in value.items()}
    if not isinstance(value, list) or not all(isinstance(pair, list) and len(pair) == 2 for pair in value):
        raise DataError("Maps with non-string fields should be encoded as JSON arrays of tuples", reason="WRONG_KIND")
    return {hashable(read(key, name)): read(item, found) for name, found in value}


def node_name(value: Any) -> str:
    """Returns the name that Kafka Connect's messages give to a kind of JSON value."""
    if value is None:
        return "NULL"
    if isinstance(value, bool):
        return "BOOLEAN"
    if isinstance(value, int | float | Decimal):
        return "NUMBER"
    if isinstance(value, str):
        return "STRING"
    return "ARRAY" if isinstance(value, list) else "OBJECT"
