"""The header converters of text, bytes and single numbers, for one value at a time.

Each reads bytes into a value with its schema, writes such a value, and says of whole columns whether reading and
writing surely gives the same bytes again. Refusals have the words of Kafka Connect's own converters.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from wherry.contract.data import DECIMAL, Float32, Kind, Linked, Pairs, Schema, Typed
from wherry.contract.java_charsets import Charset
from wherry.contract.java_text import typed_text
from wherry.worker.convert import DataError
from wherry.worker.convert.numbers import BooleanConverter, NumberConverter
from wherry.worker.convert.plain import ByteArrayConverter, StringConverter
from wherry.worker.javaclass import CLASS_BY_KIND, class_of

_KINDS: Final[Mapping[pa.DataType, Kind]] = {
    pa.bool_(): Kind.BOOLEAN,
    pa.int16(): Kind.INT16,
    pa.int32(): Kind.INT32,
    pa.int64(): Kind.INT64,
    pa.float32(): Kind.FLOAT32,
    pa.float64(): Kind.FLOAT64,
}


def java_class_of(value: Typed) -> str:
    """Returns the Java class that holds a value; for null that of its schema."""
    schema = value.schema
    if isinstance(value.value, Linked | Pairs):
        return "java.util.LinkedHashMap"
    if schema is None:
        return class_of(value.value)
    if schema.logical == DECIMAL:
        return "java.math.BigDecimal"
    return "java.util.Date" if schema.logical is not None else CLASS_BY_KIND[schema.kind]


class TextHeaders:
    """Headers as texts, of whatever kind they are."""

    class_name: ClassVar[str] = StringConverter.class_name

    def __init__(self, charset: Charset) -> None:
        self._charset = charset
        self.keeps_plain = charset.is_utf8

    def keeps(self, data: pa.Array) -> bool:
        """See `HeaderConverter.keeps`."""
        if not self._charset.is_utf8:
            return self._charset.keeps_bytes
        try:
            data.cast(pa.string())
        except pa.ArrowInvalid:
            return False
        return True

    def read(self, data: bytes | None) -> Typed:
        """See `HeaderConverter.read`."""
        return Typed(_OPTIONAL_STRING, None if data is None else self._charset.decode(data))

    def write(self, value: Typed) -> bytes | None:
        """See `HeaderConverter.write`."""
        return None if value.value is None else self._charset.encode(typed_text(value))


class BytesHeaders:
    """Headers as they are; nothing but bytes can be written."""

    class_name: ClassVar[str] = ByteArrayConverter.class_name
    keeps_plain: ClassVar[bool] = True

    def keeps(self, data: pa.Array) -> bool:
        """See `HeaderConverter.keeps`."""
        return True

    def read(self, data: bytes | None) -> Typed:
        """See `HeaderConverter.read`."""
        return Typed(_OPTIONAL_BYTES, data)

    def write(self, value: Typed) -> bytes | None:
        """See `HeaderConverter.write`."""
        _check_kind(value.schema, Kind.BYTES, "ByteArrayConverter")
        data: Any = value.value
        if data is not None and not isinstance(data, bytes):
            raise _incompatible("ByteArrayConverter", value)
        return data


class NumberHeaders:
    """Headers as single numbers."""

    keeps_plain: ClassVar[bool] = False

    def __init__(self, converter: NumberConverter) -> None:
        self.class_name = converter.class_name
        self._converter = converter
        self._schema = Schema(_KINDS[converter.data_type], optional=True)
        self._java_class = CLASS_BY_KIND[self._schema.kind]

    def keeps(self, data: pa.Array) -> bool:
        """See `HeaderConverter.keeps`: a NaN may have many forms, of which Java writes one."""
        read = self._converter.to_connect("", data)
        if read.failures:
            return False
        column = read.runs[0].column
        return not pa.types.is_float64(column.type) or not pc.any(pc.is_nan(column), min_count=0).as_py()

    def read(self, data: bytes | None) -> Typed:
        """See `HeaderConverter.read`."""
        read = self._converter.to_connect("", pa.array([data], pa.binary()))
        if read.failures:
            raise read.failures[0].error
        if data is None or self._schema.kind is not Kind.FLOAT32:
            return Typed(self._schema, read.runs[0].column[0].as_py())
        return Typed(self._schema, Float32(np.frombuffer(data, ">f4")[0]))

    def write(self, value: Typed) -> bytes | None:
        """See `HeaderConverter.write`."""
        if value.value is None:
            return None
        found = java_class_of(value)
        if found != self._java_class:
            raise self._converter.refusal(found)
        column = pa.array([value.value], self._converter.data_type)
        written: bytes | None = (
            self._converter.from_connect("", pa.field("value", column.type), column).runs[0].column[0].as_py()
        )
        return written


class BooleanHeaders(NumberHeaders):
    """Headers as booleans; this one looks at the schema first."""

    def __init__(self, converter: BooleanConverter) -> None:
        super().__init__(converter)

    def write(self, value: Typed) -> bytes | None:
        """See `HeaderConverter.write`."""
        _check_kind(value.schema, Kind.BOOLEAN, "BooleanConverter")
        return super().write(value)


def _check_kind(schema: Schema | None, kind: Kind, name: str) -> None:
    if schema is not None and schema.kind is not kind:
        raise DataError(f"Invalid schema type for {name}: {schema.kind.value}", reason="WRONG_TYPE")


def _incompatible(name: str, value: Typed) -> DataError:
    return DataError(f"{name} is not compatible with objects of type class {java_class_of(value)}", reason="WRONG_TYPE")


_OPTIONAL_STRING: Final = Schema(Kind.STRING, optional=True)
_OPTIONAL_BYTES: Final = Schema(Kind.BYTES, optional=True)
