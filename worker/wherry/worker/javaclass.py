"""Names of the Java classes that stand for our values, as Kafka Connect's messages print them."""

from __future__ import annotations

import datetime
from collections.abc import Mapping
from decimal import Decimal
from typing import Any, Final

import pyarrow as pa

from wherry.contract.data import KINDS_BY_JSON_NAME, Float32, Instant, Int8, Int16, Int32, Kind
from wherry.contract.schema import PRIMITIVES


class NonFinite(float):
    """A double that is no number or infinite, which JSON can't say as a number."""

    __slots__ = ()


_BY_TYPE: Final[Mapping[type, str]] = {
    str: "java.lang.String",
    bool: "java.lang.Boolean",
    int: "java.lang.Long",
    Int8: "java.lang.Byte",
    Int16: "java.lang.Short",
    Int32: "java.lang.Integer",
    float: "java.lang.Double",
    NonFinite: "java.lang.Double",
    Float32: "java.lang.Float",
    Instant: "java.util.Date",
    datetime.datetime: "java.util.Date",
    datetime.date: "java.util.Date",
    datetime.time: "java.util.Date",
    Decimal: "java.math.BigDecimal",
    bytes: "[B",
    list: "java.util.ArrayList",
    dict: "java.util.HashMap",
}
CLASS_BY_KIND: Final[Mapping[Kind, str]] = {
    Kind.BOOLEAN: "java.lang.Boolean",
    Kind.INT8: "java.lang.Byte",
    Kind.INT16: "java.lang.Short",
    Kind.INT32: "java.lang.Integer",
    Kind.INT64: "java.lang.Long",
    Kind.FLOAT32: "java.lang.Float",
    Kind.FLOAT64: "java.lang.Double",
    Kind.STRING: "java.lang.String",
    Kind.BYTES: "[B",
    Kind.ARRAY: "java.util.ArrayList",
    Kind.MAP: "java.util.HashMap",
    Kind.STRUCT: "org.apache.kafka.connect.data.Struct",
}
_BY_ARROW: Final[Mapping[pa.DataType, str]] = {
    arrow: CLASS_BY_KIND[KINDS_BY_JSON_NAME[name]] for name, arrow in PRIMITIVES.items()
}


def class_of(value: Any) -> str:
    """Returns the class of a schemaless value; `null` for None."""
    return "null" if value is None else _BY_TYPE.get(type(value), type(value).__name__)


def class_of_type(data_type: pa.DataType) -> str:
    """Returns the class of the values of an Arrow type."""
    found = _BY_ARROW.get(data_type)
    if found is not None:
        return found
    if pa.types.is_struct(data_type):
        return CLASS_BY_KIND[Kind.STRUCT]
    if pa.types.is_map(data_type):
        return CLASS_BY_KIND[Kind.MAP]
    if pa.types.is_list(data_type) or pa.types.is_large_list(data_type):
        return CLASS_BY_KIND[Kind.ARRAY]
    if pa.types.is_decimal(data_type):
        return "java.math.BigDecimal"
    return "java.util.Date" if pa.types.is_temporal(data_type) else str(data_type)
