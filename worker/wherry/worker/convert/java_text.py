"""The text form Java gives to Connect's values (`toString`), for the StringConverter.

A map is `{a=1, b=x}`, a list `[1, 2]`, a struct `Struct{a=1,b=x}` without its null fields; doubles print in Java's
form. Row by row: nobody needs this fast.
"""

from __future__ import annotations

import datetime
import json
from typing import Any

import pyarrow as pa

from wherry.contract.batch import JSON_TYPE
from wherry.contract.java import in_map_order
from wherry.contract.position import java_double


def java_text(field: pa.Field, column: pa.Array) -> list[str | None]:
    """Returns the text of each row; null stays null."""
    if column.type == JSON_TYPE:
        texts = column.storage.to_pylist()
        return [None if text is None else _top(json.loads(text)) for text in texts]
    return [None if value is None else _typed(field.type, value) for value in column.to_pylist()]


def _top(value: Any) -> str | None:
    return None if value is None else _schemaless(value)


def _schemaless(value: Any) -> str:
    if isinstance(value, dict):
        return "{" + ", ".join(f"{key}={_schemaless(value[key])}" for key in in_map_order(value)) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(map(_schemaless, value)) + "]"
    return _scalar(value)


def _scalar(value: Any) -> str:
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float):
        return java_double(value).strip('"')
    if isinstance(value, datetime.datetime):
        # Java's Date prints like this in UTC.
        return value.strftime("%a %b %d %H:%M:%S UTC %Y")
    if isinstance(value, datetime.date):
        return value.strftime("%a %b %d 00:00:00 UTC %Y")
    if isinstance(value, datetime.time):
        return value.strftime("Thu Jan 01 %H:%M:%S UTC 1970")
    if isinstance(value, bytes):
        return f"java.nio.HeapByteBuffer[pos=0 lim={len(value)} cap={len(value)}]"
    return str(value)


def _typed(data_type: pa.DataType, value: Any) -> str:
    if value is None:
        return "null"
    if pa.types.is_struct(data_type):
        fields = [
            f"{child.name}={_typed(child.type, value[child.name])}"
            for child in data_type
            if value[child.name] is not None
        ]
        return "Struct{" + ",".join(fields) + "}"
    if pa.types.is_list(data_type):
        return "[" + ", ".join(_typed(data_type.value_type, item) for item in value) + "]"
    if pa.types.is_map(data_type):
        items = dict(value)
        keys = in_map_order(items) if pa.types.is_string(data_type.key_type) else list(items)
        pairs = [f"{_typed(data_type.key_type, key)}={_typed(data_type.item_type, items[key])}" for key in keys]
        return "{" + ", ".join(pairs) + "}"
    return _scalar(value)
