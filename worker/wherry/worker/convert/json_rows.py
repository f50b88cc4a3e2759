"""One parsed JSON value into a value of a Connect schema, under one of two sets of rules.

`connect_value` is Kafka Connect's JsonConverter to the letter: integers narrow by wrapping, fractions are cut, a wrong
kind gives 0, 0.0, false, an empty list or null instead of an error; only null, maps, structs, the text of bytes and
temporal types are checked. `strict_value` is for typed sinks fed with bare JSON: a value that doesn't fit is an error
of its row.
"""

from __future__ import annotations

import base64
import binascii
import datetime
import functools
import json
import math
import re
from collections.abc import Callable
from decimal import Decimal, InvalidOperation, localcontext
from typing import Any, Final

import pyarrow as pa

from wherry.contract.batch import JSON_TYPE
from wherry.contract.data import DATE, TIME, TIMESTAMP
from wherry.contract.payload import BAD_DECIMAL, unbase64
from wherry.contract.schema import default_of
from wherry.contract.schemaless import valid_text
from wherry.worker.convert import DataError

# What Jackson finds where nothing is: 0, false and an empty list to those that ask for one.
MISSING: Final = object()
# Converts a parsed value into one that Arrow takes for the field.
RowRules = Callable[[pa.Field, Any], Any]

REQUIRED_NULL: Final = "Invalid null value for required field"
_DAY_MS: Final = 86_400_000
_EPOCH: Final = datetime.datetime(1970, 1, 1, tzinfo=datetime.timezone.utc)  # noqa: UP017 (3.11 has both)
# More than any decimal has, so that what doesn't fit is told and not rounded.
_DECIMAL_DIGITS: Final = 160
_NUMERIC: Final = (int, float, Decimal, str)
_INT32: Final = 1 << 31
_INT64_DIGITS: Final = 20
_WHOLE_DIGITS_MAX: Final = 4_300
_KINDS: Final = {
    "double": "FLOAT64",
    "float": "FLOAT32",
    "bool": "BOOLEAN",
    "binary": "BYTES",
    "decimal128": "BYTES",
    "decimal256": "BYTES",
    "date32": "INT32",
    "time32": "INT32",
    "timestamp": "INT64",
    "list": "ARRAY",
}


def connect_value(field: pa.Field, value: Any, *, defaults: bool = True) -> Any:
    """Converts a payload by Kafka Connect's rules.

    Args:
        field: What it becomes a value of.
        value: The payload; numbers may be `Decimal`, so that none of their digits is lost.
        defaults: Whether a null becomes the default, where there is one.

    Raises:
        DataError: Kafka Connect would fail too.
    """
    if value is None:
        has_default, default = default_of(field)
        if defaults and has_default and default is not None:
            return connect_value(field.with_metadata(None), default)
        if field.nullable:
            return None
        raise DataError(
            f"Invalid null value for required {_kind(field.type)} field", reason="NOT_NULL", field_path=field.name
        )
    data_type = field.type
    if pa.types.is_boolean(data_type):
        return value is True
    if pa.types.is_integer(data_type):
        return _wrapped(_whole(value), data_type.bit_width)
    if pa.types.is_floating(data_type):
        return _floating(value)
    if pa.types.is_string(data_type):
        return valid_text(value) if isinstance(value, str) else None
    if pa.types.is_struct(data_type):
        if not isinstance(value, dict):
            raise DataError(f"Structs should be encoded as JSON objects, but found {_node(value)}", reason="WRONG_KIND")
        return {child.name: _member(child, value.get(child.name), defaults) for child in data_type}
    if pa.types.is_list(data_type):
        # Whatever Jackson can walk over: the members of an object too, and nothing in any other value.
        items = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
        return [connect_value(data_type.value_field, item, defaults=defaults) for item in items]
    if pa.types.is_map(data_type):
        return _map(data_type, value, functools.partial(connect_value, defaults=defaults))
    return _logical(data_type, value)


def keep_null(field: pa.Field, value: Any) -> Any:
    """Converts a payload as `connect_value`, but leaves a null a null."""
    return connect_value(field, value, defaults=False)


def _member(field: pa.Field, value: Any, defaults: bool) -> Any:
    """A value of a wrong kind may have become null; in a struct that is noticed."""
    converted = connect_value(field, value, defaults=defaults)
    _require(field, converted, field.name, "field")
    return converted


def _require(field: pa.Field, value: Any, name: str, place: str) -> None:
    """Refuses a null below a field of a struct where there must be none; structs within have been looked at."""
    if value is None:
        if not field.nullable:
            raise DataError(
                f'Invalid value: null used for required {place}: "{name}", schema type: {_kind(field.type)}',
                reason="NOT_NULL",
                field_path=name,
            )
    elif pa.types.is_list(field.type):
        for item in value:
            _require(field.type.value_field, item, name, f"element of array {place}")
    elif pa.types.is_map(field.type):
        for key, item in value:
            _require(field.type.key_field, key, name, f"key of map {place}")
            _require(field.type.item_field, item, name, f"value of map {place}")


def strict_value(field: pa.Field, value: Any) -> Any:
    """Converts a value of bare JSON for a typed sink.

    Raises:
        DataError: It doesn't fit; the sentence names field, value and type.
    """
    if value is None:
        if field.nullable:
            return None
        raise _unfit(field, value, "a value is required")
    data_type = field.type
    if data_type == JSON_TYPE:
        return _json(value)
    if pa.types.is_boolean(data_type) and isinstance(value, bool):
        return value
    if pa.types.is_integer(data_type):
        return _strict_integer(field, value)
    if pa.types.is_floating(data_type) and isinstance(value, int | float | Decimal) and not isinstance(value, bool):
        return float(value)
    if pa.types.is_string(data_type):
        if isinstance(value, str):
            return valid_text(value)
        return _json(value)
    if pa.types.is_struct(data_type) and isinstance(value, dict):
        return {child.name: strict_value(child, value.get(child.name)) for child in data_type}
    if pa.types.is_list(data_type) and isinstance(value, list):
        return [strict_value(data_type.value_field, item) for item in value]
    if pa.types.is_map(data_type):
        return _map(data_type, value, strict_value)
    return _strict_scalar(field, value)


def _strict_integer(field: pa.Field, value: Any) -> int:
    if isinstance(value, float | Decimal):
        wide = Decimal(value)
        if wide.is_finite() and wide.adjusted() < _INT64_DIGITS and wide == wide.to_integral_value():
            value = int(wide)
    if not isinstance(value, int) or isinstance(value, bool):
        raise _unfit(field, value, "a whole number is needed")
    if not -(1 << (field.type.bit_width - 1)) <= value < 1 << (field.type.bit_width - 1):
        raise _unfit(field, value, "it is out of range")
    return value


def _strict_scalar(field: pa.Field, value: Any) -> Any:
    """Decimals, bytes and temporal types: numbers as Connect encodes them, or text."""
    data_type = field.type
    try:
        if pa.types.is_decimal(data_type) and isinstance(value, _NUMERIC) and not isinstance(value, bool):
            return _scaled(Decimal(str(value)), data_type)
        if pa.types.is_binary(data_type) and isinstance(value, str):
            return base64.b64decode(value, validate=True)
        if isinstance(value, str):
            if pa.types.is_date(data_type):
                return datetime.date.fromisoformat(value[:10]) if len(value) == 10 else _instant(value).date()
            if pa.types.is_time(data_type):
                return datetime.time.fromisoformat(value)
            if pa.types.is_timestamp(data_type):
                instant = _instant(value)
                return instant if data_type.tz else instant.replace(tzinfo=None)
        elif isinstance(value, int) and not isinstance(value, bool):
            if pa.types.is_timestamp(data_type):
                moment = _EPOCH + datetime.timedelta(milliseconds=value)
                return moment if data_type.tz else moment.replace(tzinfo=None)
            if pa.types.is_date(data_type):
                return (_EPOCH + datetime.timedelta(days=value)).date()
            if pa.types.is_time(data_type):
                return (_EPOCH + datetime.timedelta(milliseconds=value % _DAY_MS)).time()
    except (ValueError, OverflowError, InvalidOperation, binascii.Error):
        raise _unfit(field, value, "it can't be read as such") from None
    raise _unfit(field, value, "it is of another kind")


def _instant(text: str) -> datetime.datetime:
    moment = datetime.datetime.fromisoformat(text)
    return moment if moment.tzinfo else moment.replace(tzinfo=_EPOCH.tzinfo)


def _json(value: Any) -> str:
    """A part of a JSON text as JSON again."""
    return json.dumps(_plain(value), separators=(",", ":"), ensure_ascii=False)


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _plain(item) for key, item in value.items()}
    if isinstance(value, list):
        return [*map(_plain, value)]
    return float(value) if isinstance(value, Decimal) else value


def _unfit(field: pa.Field, value: Any, why: str) -> DataError:
    shown = json.dumps(_plain(value), ensure_ascii=False, default=str)
    shown = shown if len(shown) <= 60 else f"{shown[:57]}…"
    return DataError(
        f"Field {field.name} is of type {field.type} and got {shown}: {why}.",
        reason="WRONG_KIND",
        field_path=field.name,
    )


def _whole(value: Any) -> int:
    """The integer Java reads: fractions are cut, any other kind is 0."""
    if isinstance(value, bool) or not isinstance(value, int | float | Decimal):
        return 0
    if isinstance(value, float | Decimal) and not math.isfinite(value):
        return 0
    if isinstance(value, Decimal) and value.adjusted() > _WHOLE_DIGITS_MAX:
        # A multiple of 2**64, unless somebody has written out more digits than any reader takes.
        return 0
    return int(value)


def _wrapped(value: int, bits: int) -> int:
    value &= (1 << bits) - 1
    return value - (1 << bits) if value >> (bits - 1) else value


def _floating(value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float | Decimal):
        return 0.0
    try:
        # Numbers pass through BigDecimal in Kafka Connect, which knows no negative zero.
        return float(value) + 0.0
    except OverflowError:
        return math.inf if value > 0 else -math.inf


def _map(data_type: pa.DataType, value: Any, rules: RowRules) -> list[tuple[Any, Any]]:
    if pa.types.is_string(data_type.key_type):
        if not isinstance(value, dict):
            raise DataError(
                f"Maps with string fields should be encoded as JSON objects, but found {_node(value)}",
                reason="WRONG_KIND",
            )
        return [(key, rules(data_type.item_field, item)) for key, item in value.items()]
    if not isinstance(value, list):
        raise DataError(
            f"Maps with non-string fields should be encoded as JSON array of tuples, but found {_node(value)}",
            reason="WRONG_KIND",
        )
    pairs: dict[str, tuple[Any, Any]] = {}
    for entry in value:
        if not isinstance(entry, list):
            raise DataError(f"Found invalid map entry instead of array tuple: {_node(entry)}", reason="WRONG_KIND")
        if len(entry) != 2:
            raise DataError(f"Found invalid map entry, expected length 2 but found :{len(entry)}", reason="WRONG_KIND")
        key = rules(data_type.key_field, entry[0])
        # Of equal keys the last counts, as with names.
        pairs[repr(key)] = (key, rules(data_type.item_field, entry[1]))
    return list(pairs.values())


def _logical(data_type: pa.DataType, value: Any) -> Any:
    if pa.types.is_decimal(data_type):
        return _decimal(data_type, value)
    if pa.types.is_binary(data_type):
        if not isinstance(value, str):
            return None  # Jackson's binaryValue of a node that isn't text
        return unbase64(value, "Invalid bytes field")
    name = DATE if pa.types.is_date(data_type) else TIME if pa.types.is_time(data_type) else TIMESTAMP
    if not isinstance(value, int) or isinstance(value, bool) or (name != TIMESTAMP and not -_INT32 <= value < _INT32):
        short, kind = name.rpartition(".")[2], "integral" if name == TIMESTAMP else "integer"
        raise DataError(
            f"Invalid type for {short}, underlying representation should be {kind} but was {_node(value)}",
            reason="WRONG_KIND",
        )
    if name == DATE:
        return pa.scalar(value, pa.int32()).cast(data_type)
    if name == TIME:
        if not 0 <= value <= _DAY_MS:
            raise DataError(
                "Time values must use number of milliseconds greater than 0 and less than 86400000", reason="WRONG_KIND"
            )
        return pa.scalar(value, pa.int32()).cast(data_type)
    return pa.scalar(_wrapped(value, 64), pa.int64()).cast(data_type)


def _decimal(data_type: pa.DataType, value: Any) -> Decimal:
    if isinstance(value, bool) or not isinstance(value, int | float | str | Decimal):
        raise DataError(
            f"Invalid type for Decimal, underlying representation should be numeric or bytes but was {_node(value)}",
            reason="WRONG_KIND",
        )
    if isinstance(value, str):
        data = unbase64(value, BAD_DECIMAL)
        if not data:
            raise DataError(BAD_DECIMAL, reason="WRONG_KIND")
        unscaled = int.from_bytes(data, "big", signed=True)
        with localcontext() as context:
            context.prec = _DECIMAL_DIGITS
            return _scaled(Decimal(unscaled).scaleb(-data_type.scale), data_type)
    return _scaled(Decimal(repr(value)) if isinstance(value, float) else Decimal(value), data_type)


def _scaled(value: Decimal, data_type: pa.DataType) -> Decimal:
    with localcontext() as context:
        context.prec = _DECIMAL_DIGITS
        try:
            scaled = value.quantize(Decimal(1).scaleb(-data_type.scale))
        except InvalidOperation:
            scaled = None
    if scaled is None or len(scaled.as_tuple().digits) > data_type.precision:
        raise DataError(f"{value} has more than {data_type.precision} digits.", reason="OUT_OF_RANGE")
    if scaled != value:
        # Kafka Connect hands it on with a scale that its schema doesn't have; here it would lose digits.
        raise DataError(f"{value} has more than {data_type.scale} digits after the point.", reason="OUT_OF_RANGE")
    return scaled


def _node(value: Any) -> str:
    """Jackson's name of a node's kind."""
    if value is MISSING:
        return "MISSING"
    if value is None:
        return "NULL"
    if isinstance(value, bool):
        return "BOOLEAN"
    if isinstance(value, int | float | Decimal):
        return "NUMBER"
    if isinstance(value, str):
        return "STRING"
    return "ARRAY" if isinstance(value, list) else "OBJECT"


def _kind(data_type: pa.DataType) -> str:
    """Kafka Connect's name of a type; logical types go by the type that holds them."""
    text = str(data_type)
    return _KINDS.get(text) or _KINDS.get(re.split(r"[\[(<]", text)[0]) or text.upper().partition("<")[0]
