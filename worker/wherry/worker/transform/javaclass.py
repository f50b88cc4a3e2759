"""Names of the Java classes that stand for our values, as Kafka Connect's messages print them."""

from __future__ import annotations

import datetime
from collections.abc import Mapping
from decimal import Decimal
from typing import Any, Final

import pyarrow as pa

from wherry.contract.data import Float32, Instant, Int8, Int16, Int32


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
_BY_ARROW: Final[Mapping[pa.DataType, str]] = {
    pa.int8(): "java.lang.Byte",
    pa.int16(): "java.lang.Short",
    pa.int32(): "java.lang.Integer",
    pa.int64(): "java.lang.Long",
    pa.float32(): "java.lang.Float",
    pa.float64(): "java.lang.Double",
    pa.bool_(): "java.lang.Boolean",
    pa.string(): "java.lang.String",
    pa.binary(): "[B",
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
        return "org.apache.kafka.connect.data.Struct"
    if pa.types.is_map(data_type):
        return "java.util.HashMap"
    if pa.types.is_list(data_type) or pa.types.is_large_list(data_type):
        return "java.util.ArrayList"
    if pa.types.is_decimal(data_type):
        return "java.math.BigDecimal"
    return "java.util.Date" if pa.types.is_temporal(data_type) else str(data_type)
