"""Converters of single numbers and booleans: the bytes of Kafka's serializers, big-endian and of one width.

Null is null both ways. Bytes of another width fail, empty ones too. Written are only values of the very type (a number
without schema is a long or a double, as JSON has them); Kafka Connect widens nothing here.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, ClassVar, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from wherry.contract.batch import JSON_TYPE
from wherry.worker.convert import Converted, DataError, Failure, Run
from wherry.worker.javaclass import class_of, class_of_type

_PACKAGE: Final = "org.apache.kafka.connect.converters."
# By the Python type of a JSON value: what it is in Kafka Connect without a schema.
_JSON_TYPES: Final[Mapping[type, pa.DataType]] = {
    bool: pa.bool_(),
    int: pa.int64(),
    float: pa.float64(),
    str: pa.string(),
}


class NumberConverter:
    """Base of the converters: one Arrow type, one width."""

    class_name: ClassVar[str]
    word: ClassVar[str]
    data_type: ClassVar[pa.DataType]
    stored: ClassVar[str]

    def __init__(self, config: Mapping[str, str], *, is_key: bool) -> None:
        """Takes no setting."""

    def to_connect(self, topic: str, column: pa.Array) -> Converted:
        """See `Converter.to_connect`."""
        width = np.dtype(self.stored).itemsize
        fits = pc.fill_null(pc.equal(pc.binary_length(column), width), True)
        if not pc.all(fits, min_count=0).as_py():
            return self._without(column, fits, topic)
        data = b"".join(value or bytes(width) for value in column.to_pylist()) if column.null_count else _joined(column)
        numbers = np.frombuffer(data, self.stored)
        return self._read(column, numbers)

    def from_connect(self, topic: str, field: pa.Field, column: pa.Array) -> Converted:
        """See `Converter.from_connect`."""
        if pa.types.is_null(column.type) or column.null_count == len(column):
            return Converted((Run.of(pa.nulls(len(column), pa.binary())),))
        if column.type == JSON_TYPE:
            return self._from_json(column)
        if column.type != self.data_type:
            return _refused(column, self.refusal(class_of_type(column.type)))
        return Converted((Run.of(self._written(column)),))

    def _read(self, column: pa.Array, numbers: Any) -> Converted:
        mask = column.is_null().to_numpy(zero_copy_only=False) if column.null_count else None
        native = numbers.astype(numbers.dtype.newbyteorder("="))
        return Converted((Run.of(pa.array(native, self.data_type, mask=mask)),))

    def _written(self, column: pa.Array) -> pa.Array:
        width = np.dtype(self.stored).itemsize
        filled = pc.fill_null(column, pa.scalar(0, self.data_type)) if column.null_count else column
        numbers = filled.to_numpy(zero_copy_only=False)
        if self.data_type == pa.float64():
            # Of the many forms that a NaN may have Java writes one.
            numbers = np.where(np.isnan(numbers), np.nan, numbers)
        data = numbers.astype(self.stored).tobytes()
        offsets = pa.py_buffer(np.arange(0, len(data) + 1, width, dtype=np.int32))
        written = pa.Array.from_buffers(pa.binary(), len(column), [None, offsets, pa.py_buffer(data)])
        return pc.if_else(column.is_valid(), written, pa.scalar(None, pa.binary())) if column.null_count else written

    def _without(self, column: pa.Array, fits: pa.Array, topic: str) -> Converted:
        error = DataError(f"Failed to deserialize {self.word}: ", reason="WRONG_WIDTH")
        failures = [Failure(row, error) for row, fit in enumerate(fits.to_pylist()) if not fit]
        rest = self.to_connect(topic, column.filter(fits))
        # What is left may have failures of its own, told by their places in what is left.
        places = np.flatnonzero(fits.to_numpy(zero_copy_only=False))
        failures += [Failure(int(places[failure.row]), failure.error) for failure in rest.failures]
        return Converted(rest.runs, tuple(sorted(failures, key=lambda failure: failure.row)))

    def refusal(self, found: str) -> DataError:
        """Returns what is said of a value of another class."""
        return DataError(f"Failed to serialize to {self.word} (was class {found}): ", reason="WRONG_TYPE")

    def _from_json(self, column: pa.Array) -> Converted:
        values: list[Any] = []
        failures: list[Failure] = []
        for row, text in enumerate(column.storage.to_pylist()):
            value = None if text is None else json.loads(text)
            if value is None or _JSON_TYPES.get(type(value)) == self.data_type:
                values.append(value)
            else:
                failures.append(Failure(row, self.refusal(class_of(value))))
        return Converted((Run.of(self._written(pa.array(values, self.data_type))),), tuple(failures))


class ShortConverter(NumberConverter):
    """INT16 in two bytes."""

    class_name = f"{_PACKAGE}ShortConverter"
    word = "short"
    data_type = pa.int16()
    stored = ">i2"


class IntegerConverter(NumberConverter):
    """INT32 in four bytes."""

    class_name = f"{_PACKAGE}IntegerConverter"
    word = "integer"
    data_type = pa.int32()
    stored = ">i4"


class LongConverter(NumberConverter):
    """INT64 in eight bytes."""

    class_name = f"{_PACKAGE}LongConverter"
    word = "long"
    data_type = pa.int64()
    stored = ">i8"


class FloatConverter(NumberConverter):
    """FLOAT32 in four bytes."""

    class_name = f"{_PACKAGE}FloatConverter"
    word = "float"
    data_type = pa.float32()
    stored = ">f4"


class DoubleConverter(NumberConverter):
    """FLOAT64 in eight bytes."""

    class_name = f"{_PACKAGE}DoubleConverter"
    word = "double"
    data_type = pa.float64()
    stored = ">f8"


class BooleanConverter(NumberConverter):
    """BOOLEAN in a byte of 0 or 1; alone among these it also minds the schema of a null."""

    class_name = f"{_PACKAGE}BooleanConverter"
    word = "boolean"
    data_type = pa.bool_()
    stored = "u1"

    def from_connect(self, topic: str, field: pa.Field, column: pa.Array) -> Converted:
        """See `Converter.from_connect`."""
        if not pa.types.is_null(column.type) and column.type not in {JSON_TYPE, self.data_type}:
            return _refused(column, self._refusal_of_schema(column.type), nulls_too=True)
        return super().from_connect(topic, field, column)

    def _read(self, column: pa.Array, numbers: Any) -> Converted:
        if not len(numbers) or numbers.max() <= 1:
            mask = column.is_null().to_numpy(zero_copy_only=False) if column.null_count else None
            return Converted((Run.of(pa.array(numbers.astype(bool), pa.bool_(), mask=mask)),))
        fits = pa.array(numbers <= 1)
        return self._without(column, fits, "")

    def _written(self, column: pa.Array) -> pa.Array:
        one, zero = pa.scalar(b"\x01", pa.binary()), pa.scalar(b"\x00", pa.binary())
        return pc.if_else(column, one, zero)

    def refusal(self, found: str) -> DataError:
        """Returns what is said of a value of another class."""
        return DataError(f"BooleanConverter is not compatible with objects of type class {found}", reason="WRONG_TYPE")

    def _refusal_of_schema(self, data_type: pa.DataType) -> DataError:
        from wherry.worker.convert.plain import connect_name

        return DataError(f"Invalid schema type for BooleanConverter: {connect_name(data_type)}", reason="WRONG_TYPE")


def _refused(column: pa.Array, error: DataError, *, nulls_too: bool = False) -> Converted:
    """Fails all rows but those that are null."""
    present = [True] * len(column) if nulls_too else column.is_valid().to_pylist()
    nulls = pa.nulls(len(column) - sum(present), pa.binary())
    return Converted((Run.of(nulls),), tuple(Failure(row, error) for row, is_set in enumerate(present) if is_set))


def _joined(column: pa.Array) -> pa.Buffer | bytes:
    """Returns the bytes of all rows one after another; none is null."""
    if not len(column):
        return b""
    offsets = np.frombuffer(column.buffers()[1], np.int32)[column.offset : column.offset + len(column) + 1]
    start, end = int(offsets[0]), int(offsets[-1])
    data = column.buffers()[2]
    return b"" if data is None else data.slice(start, end - start)
