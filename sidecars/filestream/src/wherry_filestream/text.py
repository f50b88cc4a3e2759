"""The text form Java gives to a value, because FileStreamSink prints values by `toString`. Pure."""

from __future__ import annotations

import math
from datetime import date, datetime, time
from decimal import Decimal
from typing import Any

import pyarrow as pa

from wherry.contract.java import in_map_order
from wherry.contract.schemaless import loads

# Between these, Java writes a double without an exponent.
PLAIN_MIN = 1e-3
PLAIN_MAX = 1e7


def texts_of(values: pa.Array) -> list[str]:
    """One text for each value.

    Args:
        values: A column of any type. Structs print as `Struct{a=1,b=x}` without their null fields; schemaless objects
            and maps as `{a=1, b=null}`; null as `null`.
    """
    if pa.types.is_string(values.type) and values.null_count == 0:
        return list(values.to_pylist())
    if isinstance(values, pa.ExtensionArray):
        return ["null" if text is None else java_text(loads(text)) for text in values.storage.to_pylist()]
    return [java_text(value, values.type) for value in values.to_pylist()]


def java_text(value: Any, arrow: pa.DataType | None = None) -> str:
    """Text of one value; `arrow` is its type where it has one."""
    match value:
        case None:
            return "null"
        case bool():
            return "true" if value else "false"
        case str():
            return value
        case float():
            return java_double(value, single=arrow is not None and pa.types.is_float32(arrow))
        case bytes():
            return value.decode("utf-8", "replace")
        case dict():
            return _fields(value, arrow)
        case list():
            return _list(value, arrow)
        case datetime() | date() | time() | Decimal() | int():
            return str(value)
        case _:
            return str(value)


def java_double(number: float, *, single: bool = False) -> str:
    """`Double.toString`, or `Float.toString` for a single-precision number."""
    if math.isnan(number):
        return "NaN"
    if math.isinf(number):
        return "Infinity" if number > 0 else "-Infinity"
    text = _shortest_single(number) if single else repr(number)
    magnitude = abs(number)
    if number == 0 or PLAIN_MIN <= magnitude < PLAIN_MAX:
        plain = format(Decimal(text), "f")
        return plain if "." in plain else plain + ".0"
    sign, digits, exponent = Decimal(text).as_tuple()
    shown = "".join(map(str, digits)).rstrip("0") or "0"
    power = len(digits) + int(exponent) - 1
    return f"{'-' if sign else ''}{shown[0]}.{shown[1:] or '0'}E{power}"


def _shortest_single(number: float) -> str:
    exact = pa.scalar(number, pa.float32())
    for digits in range(1, 10):
        text = f"{number:.{digits}g}"
        if pa.scalar(float(text), pa.float32()) == exact:
            return text
    return repr(number)


def _fields(value: dict[str, Any], arrow: pa.DataType | None) -> str:
    if arrow is not None and pa.types.is_struct(arrow):
        parts = [f"{k}={java_text(v, arrow.field(k).type)}" for k, v in value.items() if v is not None]
        return "Struct{" + ",".join(parts) + "}"
    return "{" + ", ".join(f"{key}={java_text(value[key])}" for key in in_map_order(value)) + "}"


def _list(value: list[Any], arrow: pa.DataType | None) -> str:
    if arrow is not None and pa.types.is_map(arrow):
        items = dict(value)
        keys = in_map_order(items) if pa.types.is_string(arrow.key_type) else list(items)
        parts = [f"{java_text(k, arrow.key_type)}={java_text(items[k], arrow.item_type)}" for k in keys]
        return "{" + ", ".join(parts) + "}"
    inner = arrow.value_type if arrow is not None and pa.types.is_list(arrow) else None
    return "[" + ", ".join(java_text(item, inner) for item in value) + "]"
