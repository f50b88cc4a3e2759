"""The text form Java gives to Connect's values (`toString`), for the StringConverter and for FileStreamSink.

A map is `{a=1, b=x}` in the order of Java's hash maps, a list `[1, 2]`, a struct `Struct{a=1,b=x}` without its null
fields; numbers and dates print in Java's form. Row by row: nobody needs this fast. Pure.
"""

from __future__ import annotations

import datetime
from typing import Any, Final

import pyarrow as pa

from wherry.contract.batch import JSON_TYPE
from wherry.contract.data import Float32, Instant, Pairs
from wherry.contract.java import double_text, float_text, in_map_order
from wherry.contract.schemaless import loads

_DAYS: Final = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")
_MONTHS: Final = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")
_EPOCH: Final = datetime.date(1970, 1, 1)
_START: Final = datetime.datetime(1970, 1, 1)  # UTC


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
        case Instant():
            moment = _START + datetime.timedelta(milliseconds=value)
            return _instant(moment.date(), moment.time())
        case datetime.datetime():
            return _instant(value.date(), value.time())
        case datetime.date():
            return _instant(value, datetime.time())
        case datetime.time():
            return _instant(_EPOCH, value)
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


def _instant(date: datetime.date, time: datetime.time) -> str:
    """`java.util.Date.toString()` in UTC."""
    day, month = _DAYS[date.weekday()], _MONTHS[date.month - 1]
    return f"{day} {month} {date.day:02} {time:%H:%M:%S} UTC {date.year:04}"


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
