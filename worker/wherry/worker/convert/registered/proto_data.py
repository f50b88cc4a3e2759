"""Protobuf messages into columns and back.

Reading: protobuf's own parser makes a message of each row, and each field's values are gathered into a column. Writing:
each field becomes a column of its encoded bytes, and a message joins those of its fields.
"""

from __future__ import annotations

import datetime
from collections.abc import Callable, Sequence
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from google.protobuf.descriptor import Descriptor, FieldDescriptor
from google.protobuf.message import DecodeError  # type: ignore[import-untyped]  # it publishes no types
from google.protobuf.message_factory import GetMessageClass

from wherry.contract.data import DataError, Schema
from wherry.contract.payload import scaled, unscaled
from wherry.contract.schema import to_field
from wherry.worker.convert import Converted, Failure, Run
from wherry.worker.convert.registered.avro_bytes import read_long
from wherry.worker.convert.registered.avro_write import unsigned_varints, varints
from wherry.worker.convert.registered.proto_types import (
    DATE_MESSAGE,
    DECIMAL_MESSAGE,
    LOGICAL,
    TIME_MESSAGE,
    TIMESTAMP_MESSAGE,
    is_map,
    oneof_field,
    real_oneof,
    to_connect,
)

_INDEXES_MAX: Final = 64
_EMPTY: Final = pa.scalar(b"", pa.binary())
_EPOCH: Final = datetime.date(1970, 1, 1)
_INT64_HALF, _INT64_SPAN = 1 << 63, 1 << 64
_UNSIGNED: Final = frozenset({FieldDescriptor.TYPE_UINT64, FieldDescriptor.TYPE_FIXED64})
_FIXED: Final = {
    FieldDescriptor.TYPE_DOUBLE: (1, "<f8"),
    FieldDescriptor.TYPE_FLOAT: (5, "<f4"),
    FieldDescriptor.TYPE_FIXED64: (1, "<i8"),
    FieldDescriptor.TYPE_SFIXED64: (1, "<i8"),
    FieldDescriptor.TYPE_FIXED32: (5, "<u4"),
    FieldDescriptor.TYPE_SFIXED32: (5, "<i4"),
}
_ZIGZAG: Final = frozenset({FieldDescriptor.TYPE_SINT32, FieldDescriptor.TYPE_SINT64})
_BYTES_WIRE: Final = 2
# Values of a field out of the messages that hold it, None where the message is missing.
_Gather = Callable[[Sequence[Any]], pa.Array]


class ProtobufReader:
    """Reads records of one schema, by the first message at its top level."""

    def __init__(self, message: Descriptor) -> None:
        """Prepares.

        Raises:
            DataError: Columns can't hold what the schema describes.
        """
        schema = to_connect(message)
        self.field = to_field(schema)
        self._class = GetMessageClass(message)
        self._gather = _message(message, schema, self.field.type)

    def read(self, payloads: pa.Array) -> Converted:
        """Reads a column of payloads, none of which is null."""
        found: list[Any] = []
        failures: list[Failure] = []
        parse = self._class.FromString
        for row, data in enumerate(payloads.to_pylist()):
            try:
                found.append(parse(_of_first_message(data)))
            except (DecodeError, ValueError) as error:
                told = DataError(f"The bytes don't fit their schema: {error}.", reason="BAD_PROTOBUF")
                failures.append(Failure(row, told))
        return Converted((Run(self.field, self._gather(found)),), tuple(failures))


def _of_first_message(data: bytes) -> bytes:
    """The bytes of a message, without those that say which of its schema it is."""
    if data[:1] == b"\0":  # the usual way to say that it is the first
        return data[1:]
    indexes, start = _indexes(data)
    if indexes != [0]:
        raise ValueError(f"it is message {'.'.join(map(str, indexes))} of its schema, and only the first is read")
    return data[start:]


def _indexes(data: bytes) -> tuple[list[int], int]:
    """Reads which message of a schema follows, and where it starts."""
    count, place = read_long(data, 0)
    if not 0 <= count <= _INDEXES_MAX:
        raise ValueError("it doesn't say which message it is")
    indexes = []
    for _ in range(count):
        index, place = read_long(data, place)
        indexes.append(index)
    return indexes or [0], place


def _message(message: Descriptor, schema: Schema, data_type: pa.DataType) -> _Gather:
    gathers: list[_Gather] = []
    seen: set[str] = set()
    children = iter(zip(schema.fields, data_type, strict=True))
    for field in message.fields:
        oneof = real_oneof(field)
        if oneof is None:
            child, arrow = next(children)
            gathers.append(_field(field, child.schema, arrow.type))
        elif oneof.name not in seen:
            seen.add(oneof.name)
            child, arrow = next(children)
            gathers.append(_oneof(oneof, child.schema, arrow.type))

    def gather(found: Sequence[Any]) -> pa.Array:
        missing = pa.array([one is None for one in found], pa.bool_())
        if not gathers:
            return pa.array([None if one is None else {} for one in found], data_type)
        columns = [each(found) for each in gathers]
        return pa.StructArray.from_arrays(columns, fields=list(data_type), mask=missing)

    return gather


def _field(field: FieldDescriptor, schema: Schema, data_type: pa.DataType) -> _Gather:
    name = field.name
    if is_map(field):
        value = _plain(field.message_type.fields_by_name["value"], schema.value)
        return lambda found: pa.array(
            [
                None if one is None else [(key, value(item)) for key, item in getattr(one, name).items()]
                for one in found
            ],
            data_type,
        )
    if field.is_repeated:
        each = _plain(field, schema.value)
        return lambda found: pa.array(
            [None if one is None else [each(item) for item in getattr(one, name)] for one in found], data_type
        )
    if field.message_type is not None and schema.logical is None:
        inner = _message(field.message_type, schema, data_type)
        return lambda found: inner(
            [getattr(one, name) if one is not None and one.HasField(name) else None for one in found]
        )
    if field.has_presence:
        convert = _plain(field, schema)
        return lambda found: pa.array(
            [convert(getattr(one, name)) if one is not None and one.HasField(name) else None for one in found],
            data_type,
        )
    if field.enum_type is not None or field.type in _UNSIGNED:
        convert = _plain(field, schema)
        return lambda found: pa.array(
            [None if one is None else convert(getattr(one, name)) for one in found], data_type
        )
    return lambda found: pa.array([None if one is None else getattr(one, name) for one in found], data_type)


def _oneof(oneof: Any, schema: Schema, data_type: pa.DataType) -> _Gather:
    converts = {
        field.name: _plain(field, child.schema) for field, child in zip(oneof.fields, schema.fields, strict=True)
    }

    def value(one: Any) -> dict[str, Any] | None:
        which = None if one is None else one.WhichOneof(oneof.name)
        return None if which is None else {which: converts[which](getattr(one, which))}

    return lambda found: pa.array([value(one) for one in found], data_type)


def _plain(field: FieldDescriptor, schema: Schema | None) -> Callable[[Any], Any]:
    """Returns what turns a single value into one that Arrow takes."""
    assert schema is not None
    if field.enum_type is not None:
        names = {value.number: value.name for value in field.enum_type.values}
        return lambda number: names.get(number, str(number))
    if field.type in _UNSIGNED:
        return lambda value: value - _INT64_SPAN if value >= _INT64_HALF else value
    if field.message_type is None:
        return lambda value: value
    name = field.message_type.full_name
    if name in LOGICAL or name == DECIMAL_MESSAGE:
        return _logical(name, schema)
    parts = _message(field.message_type, schema, to_field(schema).type)
    return lambda value: parts([value])[0].as_py()


def _logical(name: str, schema: Schema) -> Callable[[Any], Any]:
    if name == TIMESTAMP_MESSAGE:
        return lambda value: value.seconds * 1000 + value.nanos // 1_000_000
    if name == TIME_MESSAGE:
        return lambda value: ((value.hours * 60 + value.minutes) * 60 + value.seconds) * 1000 + value.nanos // 1_000_000
    if name == DATE_MESSAGE:
        return lambda value: (datetime.date(value.year or 1970, value.month or 1, value.day or 1) - _EPOCH).days
    return lambda value: scaled(value.value, schema.scale)


def write(message: Descriptor, column: pa.Array) -> pa.Array:
    """Encodes a column of structs as messages, without what says which message it is.

    Raises:
        DataError: A value doesn't fit.
    """
    parts: list[Any] = [pa.repeat(_EMPTY, len(column))]
    known = {child.name: index for index, child in enumerate(column.type)}
    for field in message.fields:
        oneof = real_oneof(field)
        if oneof is not None:
            place = known.get(oneof_field(oneof))
            if place is None:
                continue
            union = column.field(place)
            index = union.type.get_field_index(field.name)
            if index >= 0:
                values = union.field(index)
                masked = pc.if_else(union.is_valid(), values, pa.scalar(None, values.type))
                parts.append(_encoded(field, masked, keep_zero=True))
        elif field.name in known:
            values = column.field(known[field.name])
            if column.null_count:
                values = pc.if_else(column.is_valid(), values, pa.scalar(None, values.type))
            parts.append(_encoded(field, values, keep_zero=field.has_presence))
    return pc.binary_join_element_wise(*parts, _EMPTY)


def _encoded(field: FieldDescriptor, column: pa.Array, *, keep_zero: bool) -> pa.Array:
    """Encodes a field with its tag; nothing where it is null or, unless that shows, zero."""
    if is_map(field):
        return _repeated(column, _entries(field, column), field.number)
    if field.is_repeated:
        items = column.flatten()
        return _repeated(column, _delimited(field, items), field.number, inner=field)
    data = _value(field, column)
    tag = pa.scalar(_tag(field.number, _wire(field)), pa.binary())
    tagged = pc.binary_join_element_wise(tag, data, _EMPTY)
    absent = column.is_null()
    if not keep_zero and field.message_type is None:
        absent = pc.or_(absent, _is_zero(field, data))
    return pc.if_else(absent, _EMPTY, tagged) if pc.any(absent, min_count=0).as_py() else tagged


def _repeated(column: pa.Array, items: pa.Array, number: int, *, inner: FieldDescriptor | None = None) -> pa.Array:
    wire = _BYTES_WIRE if inner is None else _wire(inner)
    tagged = pc.binary_join_element_wise(pa.scalar(_tag(number, wire), pa.binary()), items, _EMPTY)
    if pa.types.is_map(column.type):
        lengths = np.array([len(row or ()) for row in column.to_pylist()], np.int64)
    else:
        lengths = pc.fill_null(pc.list_value_length(column), 0).to_numpy(zero_copy_only=False).astype(np.int64)
    offsets = np.zeros(len(lengths) + 1, np.int32)
    np.cumsum(lengths, out=offsets[1:])
    return pc.binary_join(pa.ListArray.from_arrays(pa.array(offsets), tagged), b"")


def _entries(field: FieldDescriptor, column: pa.Array) -> pa.Array:
    parts = field.message_type.fields_by_name
    pairs = [pair for row in column.to_pylist() for pair in row or ()]
    keys = pa.array([key for key, _ in pairs], column.type.key_type)
    values = pa.array([value for _, value in pairs], column.type.item_type)
    data = pc.binary_join_element_wise(
        _encoded(parts["key"], keys, keep_zero=True), _encoded(parts["value"], values, keep_zero=True), _EMPTY
    )
    return _prefixed(data)


def _delimited(field: FieldDescriptor, items: pa.Array) -> pa.Array:
    if items.null_count:
        raise DataError(f"{field.name}: Protobuf has no null among the items of an array.", reason="NOT_NULL")
    return _value(field, items)


def _value(field: FieldDescriptor, column: pa.Array) -> pa.Array:
    """Encodes values without their tag; what stands for a null doesn't matter."""
    kind = field.type
    if field.message_type is not None:
        if field.message_type.full_name in LOGICAL or field.message_type.full_name == DECIMAL_MESSAGE:
            return _prefixed(_logical_bytes(field, column))
        if not pa.types.is_struct(column.type):
            raise _misfit(field, column)
        return _prefixed(write(field.message_type, column))
    if field.enum_type is not None:
        numbers = {value.name: value.number for value in field.enum_type.values}
        try:
            found = [0 if name is None else numbers[name] for name in column.to_pylist()]
        except KeyError as error:
            raise DataError(f"{field.name}: {error} is no value of the enum.", reason="WRONG_KIND") from None
        return unsigned_varints(np.array(found, np.int64).view(np.uint64))
    if kind in {FieldDescriptor.TYPE_STRING, FieldDescriptor.TYPE_BYTES}:
        matches = pa.types.is_string if kind == FieldDescriptor.TYPE_STRING else pa.types.is_binary
        if not matches(column.type):
            raise _misfit(field, column)
        return _prefixed(pc.fill_null(column.cast(pa.binary()), b""))
    if pa.types.is_boolean(column.type) != (kind == FieldDescriptor.TYPE_BOOL) or not (
        pa.types.is_boolean(column.type) or pa.types.is_integer(column.type) or pa.types.is_floating(column.type)
    ):
        raise _misfit(field, column)
    filled = pc.fill_null(column, pa.scalar(False if pa.types.is_boolean(column.type) else 0, column.type))
    values = filled.to_numpy(zero_copy_only=False)
    if kind in _FIXED:
        data = values.astype(_FIXED[kind][1])
        return pa.FixedSizeBinaryArray.from_buffers(
            pa.binary(data.dtype.itemsize), len(data), [None, pa.py_buffer(data.tobytes())]
        ).cast(pa.binary())
    if pa.types.is_floating(column.type):
        raise _misfit(field, column)
    whole = values.astype(np.int64)
    return varints(whole) if kind in _ZIGZAG else unsigned_varints(whole.view(np.uint64))


def _logical_bytes(field: FieldDescriptor, column: pa.Array) -> pa.Array:
    made = GetMessageClass(field.message_type)
    name = field.message_type.full_name

    def one(value: Any) -> bytes:
        if value is None:
            return b""
        if name == TIMESTAMP_MESSAGE:
            seconds, ms = divmod(value, 1000)
            message = made(seconds=seconds, nanos=ms * 1_000_000)
        elif name == TIME_MESSAGE:
            minutes, ms = divmod(value, 60_000)
            message = made(hours=minutes // 60, minutes=minutes % 60, seconds=ms // 1000, nanos=ms % 1000 * 1_000_000)
        elif name == DATE_MESSAGE:
            day = _EPOCH + datetime.timedelta(days=value)
            message = made(year=day.year, month=day.month, day=day.day)
        else:
            digits, scale = len(value.as_tuple().digits), -value.as_tuple().exponent
            message = made(value=unscaled(value, scale), precision=digits, scale=scale)
        data: bytes = message.SerializeToString()
        return data

    if pa.types.is_timestamp(column.type):
        values = column.cast(pa.timestamp("ms", column.type.tz), safe=False).cast(pa.int64()).to_pylist()
    elif pa.types.is_date32(column.type) or pa.types.is_time32(column.type):
        values = column.cast(pa.int32()).to_pylist()
    elif pa.types.is_decimal(column.type) and name == DECIMAL_MESSAGE:
        values = column.to_pylist()
    else:
        raise _misfit(field, column)
    return pa.array([one(value) for value in values], pa.binary())


def _prefixed(data: pa.Array) -> pa.Array:
    lengths = pc.binary_length(data).to_numpy(zero_copy_only=False).astype(np.uint64)
    return pc.binary_join_element_wise(unsigned_varints(lengths), data, _EMPTY)


def _is_zero(field: FieldDescriptor, data: pa.Array) -> pa.Array:
    size = np.dtype(_FIXED[field.type][1]).itemsize if field.type in _FIXED else 1
    return pc.equal(data, pa.scalar(bytes(size), pa.binary()))


def _wire(field: FieldDescriptor) -> int:
    if field.type in _FIXED:
        return _FIXED[field.type][0]
    strings = {FieldDescriptor.TYPE_STRING, FieldDescriptor.TYPE_BYTES, FieldDescriptor.TYPE_MESSAGE}
    return _BYTES_WIRE if field.type in strings else 0


def _tag(number: int, wire: int) -> bytes:
    data: bytes = unsigned_varints(np.array([number << 3 | wire], np.uint64))[0].as_py()
    return data


def _misfit(field: FieldDescriptor, column: pa.Array) -> DataError:
    of = field.containing_type.full_name
    return DataError(
        f"{field.name}: values of type {column.type} can't be written as that field of {of}.",
        reason="WRONG_TYPE",
        field_path=field.name,
    )
