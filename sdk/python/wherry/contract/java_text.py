"""The text form Java gives to Connect's values (`toString`), for the StringConverter and for FileStreamSink.

A map is `{a=1, b=x}` in the order of Java's hash maps, a list `[1, 2]`, a struct `Struct{a=1,b=x}` without its null
fields; numbers and dates print in Java's form. Row by row: nobody needs this fast. Pure.
"""

from __future__ import annotations

import datetime
from typing import Any, Final

import pyarrow as pa

from wherry.contract.batch import JSON_TYPE
from wherry.contract.calendars import calendar_day
from wherry.contract.data import DAY_MS, Float32, Instant, Kind, Pairs, Typed
from wherry.contract.java import double_text, float_text, in_map_order
from wherry.contract.schemaless import loads
from wherry.contract.values import milliseconds

_DAYS: Final = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")
_MONTHS: Final = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")
_EPOCH_WEEKDAY: Final = 3


def java_texts(column: pa.Array) -> list[str | None]:
    """Returns the text of each row of a column; null stays null."""
    if column.type == JSON_TYPE:
        values = [None if text is None else loads(text) for text in column.storage.to_pylist()]
        return [None if value is None else java_text(value) for value in values]
    return [None if value is None else java_text(value, column.type) for value in column.to_pylist()]


def java_text(value: Any, data_type: pa.DataType | None = None) -> str:
    """Returns the text of one value; null is `null`.

    Args:
        value: As pyarrow hands it out, or of JSON.
        data_type: Its type; None for a value without a schema.
    """
    match value:
        case None:
            return "null"
        case bool():
            return "true" if value else "false"
        case str():
            return value
        case float():
            single = isinstance(value, Float32) or (data_type is not None and pa.types.is_float32(data_type))
            return float_text(value) if single else double_text(value)
        case Instant() | datetime.date() | datetime.time():
            return date_text(milliseconds(value))
        case bytes():
            return f"java.nio.HeapByteBuffer[pos=0 lim={len(value)} cap={len(value)}]"
        case dict():
            return _fields(value, data_type)
        case Pairs():
            return _fields(dict(value), data_type)
        case list() | tuple():
            return _items(value, data_type)
        case _:
            return str(value)


def typed_text(value: Typed) -> str:
    """Returns the text of a value that stands alone, with its schema; its maps come in the order they have."""
    schema, found = value
    if isinstance(found, dict | Pairs):
        items = found.items() if isinstance(found, dict) else found
        if schema is not None and schema.kind is Kind.STRUCT:
            parts = [
                f"{name}={typed_text(Typed(schema.field_of(name), item))}" for name, item in items if item is not None
            ]
            return "Struct{" + ",".join(parts) + "}"
        key, item = (None, None) if schema is None else (schema.key, schema.value)
        texts = [f"{typed_text(Typed(key, name))}={typed_text(Typed(item, each))}" for name, each in items]
        return "{" + ", ".join(texts) + "}"
    if isinstance(found, list | tuple):
        item = None if schema is None else schema.value
        return "[" + ", ".join(typed_text(Typed(item, each)) for each in found) + "]"
    if isinstance(found, float) and schema is not None and schema.kind is Kind.FLOAT32:
        return float_text(found)
    return java_text(found)


def date_text(ms: int) -> str:
    """`java.util.Date.toString()` in UTC: Julian before 1582-10-15; years before 1 are counted backwards, unmarked."""
    day, of_day = divmod(ms, DAY_MS)
    year, month, day_of_month = calendar_day(day)
    seconds = of_day // 1000
    clock = f"{seconds // 3600:02}:{seconds // 60 % 60:02}:{seconds % 60:02}"
    shown = year if year > 0 else 1 - year
    return f"{_DAYS[(day + _EPOCH_WEEKDAY) % 7]} {_MONTHS[month - 1]} {day_of_month:02} {clock} UTC {shown}"


def _fields(value: dict[Any, Any], data_type: pa.DataType | None) -> str:
    if data_type is not None and pa.types.is_struct(data_type):
        parts = [
            f"{name}={java_text(item, data_type.field(name).type)}" for name, item in value.items() if item is not None
        ]
        return "Struct{" + ",".join(parts) + "}"
    keys = in_map_order(value) if all(isinstance(key, str) for key in value) else list(value)
    return "{" + ", ".join(f"{java_text(key)}={java_text(value[key])}" for key in keys) + "}"


def _items(value: list[Any] | tuple[Any, ...], data_type: pa.DataType | None) -> str:
    if data_type is not None and pa.types.is_map(data_type):
        items = dict(value)
        keys = in_map_order(items) if pa.types.is_string(data_type.key_type) else list(items)
        parts = [f"{java_text(key, data_type.key_type)}={java_text(items[key], data_type.item_type)}" for key in keys]
        return "{" + ", ".join(parts) + "}"
    inner = data_type.value_type if data_type is not None and pa.types.is_list(data_type) else None
    return "[" + ", ".join(java_text(item, inner) for item in value) + "]"
