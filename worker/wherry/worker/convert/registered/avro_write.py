"""Columns into Avro's binary encoding.

Column by column: each field becomes a column of its encoded bytes, and a record joins those of its fields. Fields are
matched to the schema's by name, so that records can be written with a schema of the registry as well.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from wherry.contract.data import DECIMAL
from wherry.contract.payload import unscaled
from wherry.worker.convert import DataError
from wherry.worker.convert.registered.avro_bytes import write_long
from wherry.worker.convert.registered.avro_schema import is_map_of_pairs, logical_of, to_connect
from wherry.worker.convert.registered.avro_types import MISSING, AvroField, AvroKind, AvroType

_EMPTY: Final = pa.scalar(b"", pa.binary())
_TRUE, _FALSE = pa.scalar(b"\x01", pa.binary()), pa.scalar(b"\x00", pa.binary())
_SIZE_STEPS: Final = np.array([1 << (7 * bits) for bits in range(1, 10)], np.uint64)


def write(avro: AvroType, column: pa.Array, path: str = "value") -> pa.Array:
    """Encodes a column.

    Args:
        avro: The schema to write with.
        column: The values.
        path: Where they stand, for messages.

    Returns:
        The bytes of each row. Rows that are null at the top and must not be have none.

    Raises:
        DataError: The column's type doesn't fit the schema, or a value does not.
    """
    part = avro.optional_part
    if part is not None:
        branches = [pa.scalar(write_long(index), pa.binary()) for index in range(2)]
        null = branches[1 - avro.branches.index(part)]
        if pa.types.is_null(column.type):
            return pa.repeat(null, len(column))
        data = pc.binary_join_element_wise(branches[avro.branches.index(part)], write(part, column, path), _EMPTY)
        return pc.if_else(column.is_valid(), data, null) if column.null_count else data
    if avro.kind is AvroKind.UNION:
        return _union(avro, column, path)
    return _required(avro, column, path)


def _required(avro: AvroType, column: pa.Array, path: str) -> pa.Array:
    kind = avro.kind
    if kind is AvroKind.RECORD:
        return _record(avro, column, path)
    if kind is AvroKind.ARRAY:
        return _pairs(avro, column, path) if is_map_of_pairs(avro) else _array(avro, column, path)
    if kind is AvroKind.MAP:
        return _map(avro, column, path)
    if kind is AvroKind.NULL:
        return pa.repeat(_EMPTY, len(column))
    if column.null_count:
        # What stands for the null is never read: it is cut out, or its parent is null too.
        column = _filled(avro, column)
    if kind in {AvroKind.BYTES, AvroKind.FIXED, AvroKind.STRING}:
        return _octets(avro, column, path)
    if kind is AvroKind.BOOLEAN and pa.types.is_boolean(column.type):
        return pc.if_else(column, _TRUE, _FALSE)
    if kind in {AvroKind.FLOAT, AvroKind.DOUBLE} and _is_number(column.type):
        form = "<f4" if kind is AvroKind.FLOAT else "<f8"
        return _fixed_width(column.to_numpy(zero_copy_only=False).astype(form))
    if kind in {AvroKind.INT, AvroKind.LONG}:
        return varints(_whole(avro, column, path))
    if kind is AvroKind.ENUM and pa.types.is_string(column.type):
        numbers = pc.index_in(column, pa.array(avro.symbols, pa.string()))
        if numbers.null_count:
            value = column.filter(numbers.is_null())[0].as_py()
            raise DataError(f"{path}: {value!r} is no symbol of the enum {avro.name}.", reason="WRONG_KIND")
        return varints(numbers.to_numpy().astype(np.int64))
    raise _misfit(avro, column, path)


def varints(values: Any) -> pa.Array:
    """Encodes numbers as Avro and Protobuf do, zigzag, all at once."""
    return unsigned_varints(zigzag(values))


def zigzag(values: Any) -> Any:
    """Returns the unsigned numbers that stand for signed ones: small ones whatever their sign."""
    return (values << 1 ^ values >> 63).view(np.uint64)


def sizes_of(values: Any) -> Any:
    """Returns how many bytes each unsigned number takes."""
    return 1 + np.searchsorted(_SIZE_STEPS, values, side="right")


def unsigned_varints(values: Any) -> pa.Array:
    """Encodes unsigned numbers, seven bits a byte, the lowest first."""
    sizes = sizes_of(values)
    width = int(sizes.max()) if len(sizes) else 1
    shifts = np.arange(0, 7 * width, 7, dtype=np.uint64)
    groups = (values[:, None] >> shifts & np.uint64(0x7F)).astype(np.uint8)
    places = np.arange(width)
    groups[places < (sizes - 1)[:, None]] |= 0x80
    return _binary(groups[places < sizes[:, None]].tobytes(), sizes)


def _binary(data: bytes, sizes: Any) -> pa.Array:
    offsets = np.zeros(len(sizes) + 1, np.int32)
    np.cumsum(sizes, out=offsets[1:])
    return pa.Array.from_buffers(pa.binary(), len(sizes), [None, pa.py_buffer(offsets), pa.py_buffer(data)])


def _fixed_width(values: Any) -> pa.Array:
    return _binary(values.tobytes(), np.full(len(values), values.dtype.itemsize))


def _record(avro: AvroType, column: pa.Array, path: str) -> pa.Array:
    if not pa.types.is_struct(column.type):
        raise _misfit(avro, column, path)
    # A record without any bytes still needs as many rows.
    parts = [pa.repeat(_EMPTY, len(column))]
    known = {child.name: index for index, child in enumerate(column.type)}
    for field in avro.fields:
        inner = f"{path}.{field.name}"
        if field.name not in known:
            parts.append(_default(field, len(column), inner))
            continue
        values = column.field(known[field.name])
        if column.null_count and values.null_count < column.null_count:
            values = pc.if_else(column.is_valid(), values, pa.scalar(None, values.type))
        _require(field, column, values, inner)
        parts.append(write(field.type, values, inner))
    return pc.binary_join_element_wise(*parts, _EMPTY)


def _require(field: AvroField, parent: pa.Array, values: pa.Array, path: str) -> None:
    """Refuses nulls that the schema has no room for; below a null they don't count."""
    if not values.null_count or field.type.kind is AvroKind.NULL or _takes_null(field.type):
        return
    missing = pc.and_(values.is_null(), parent.is_valid()) if parent.null_count else values.is_null()
    if pc.any(missing).as_py():
        raise DataError(f"{path}: null value for a required field.", reason="NOT_NULL", field_path=path)


def _takes_null(avro: AvroType) -> bool:
    return avro.kind is AvroKind.UNION and any(branch.kind is AvroKind.NULL for branch in avro.branches)


def _default(field: AvroField, rows: int, path: str) -> pa.Array:
    if field.default is MISSING:
        raise DataError(f"{path}: the schema has a required field that the record lacks.", reason="MISSING_FIELD")
    from wherry.contract.schema import to_field
    from wherry.worker.convert.json_rows import connect_value
    from wherry.worker.convert.registered.avro_schema import default_value

    if field.default is None:
        return write(field.type, pa.nulls(rows), path)
    schema = to_connect(field.type)
    found = to_field(schema)
    from wherry.contract.payload import to_payload

    value = connect_value(found, to_payload(schema, default_value(field.type, schema, field.default)))
    return write(field.type, pa.array([value] * rows, found.type), path)


def _blocks(column: pa.Array, items: pa.Array) -> pa.Array:
    """Joins the bytes of the items of each row behind their number, with a zero behind them."""
    lengths = pc.fill_null(pc.list_value_length(column), 0)
    counts = lengths.to_numpy(zero_copy_only=False).astype(np.int64)
    offsets = np.zeros(len(counts) + 1, np.int32)
    np.cumsum(counts, out=offsets[1:])
    joined = pc.binary_join(pa.ListArray.from_arrays(pa.array(offsets), items), b"")
    numbers = pc.if_else(pc.greater(lengths, 0), varints(counts), _EMPTY)
    return pc.binary_join_element_wise(numbers, joined, _FALSE, _EMPTY)


def _array(avro: AvroType, column: pa.Array, path: str) -> pa.Array:
    if not (pa.types.is_list(column.type) or pa.types.is_large_list(column.type)) or avro.items is None:
        raise _misfit(avro, column, path)
    items = column.flatten()
    _require(AvroField("item", avro.items), items, items, f"{path}[]")
    return _blocks(column, write(avro.items, items, f"{path}[]"))


def _map(avro: AvroType, column: pa.Array, path: str) -> pa.Array:
    if not pa.types.is_map(column.type) or not pa.types.is_string(column.type.key_type) or avro.items is None:
        raise _misfit(avro, column, path)
    keys, values = _entries(column)
    _require(AvroField("value", avro.items), values, values, f"{path}{{}}")
    parts = (_octets(AvroType(AvroKind.STRING), keys, path), write(avro.items, values, f"{path}{{}}"))
    return _blocks(_as_lists(column), pc.binary_join_element_wise(*parts, _EMPTY))


def _pairs(avro: AvroType, column: pa.Array, path: str) -> pa.Array:
    if not pa.types.is_map(column.type) or avro.items is None:
        return _array(avro, column, path)
    keys, values = _entries(column)
    key, value = avro.items.fields
    parts = (write(key.type, keys, f"{path}{{}}"), write(value.type, values, f"{path}{{}}"))
    return _blocks(_as_lists(column), pc.binary_join_element_wise(*parts, _EMPTY))


def _entries(column: pa.Array) -> tuple[pa.Array, pa.Array]:
    lists = _as_lists(column)
    entries = lists.flatten()
    return entries.field(0), entries.field(1)


def _as_lists(column: pa.Array) -> pa.Array:
    fields = [column.type.key_field, column.type.item_field]
    wanted = pa.list_(pa.struct([pa.field("key", fields[0].type), pa.field("value", fields[1].type)]))
    return pa.array(
        [None if row is None else [{"key": key, "value": value} for key, value in row] for row in column.to_pylist()],
        wanted,
    )


def _union(avro: AvroType, column: pa.Array, path: str) -> pa.Array:
    """Writes a struct of which one field is set as the branch of that field's name."""
    if not pa.types.is_struct(column.type):
        raise _misfit(avro, column, path)
    known = {child.name: index for index, child in enumerate(column.type)}
    data = pa.nulls(len(column), pa.binary())
    for number, branch in enumerate(avro.branches):
        head = pa.scalar(write_long(number), pa.binary())
        if branch.kind is AvroKind.NULL:
            missing = column.is_null()
            data = pc.if_else(missing, head, data)
        elif branch.simple_name in known:
            values = column.field(known[branch.simple_name])
            written = pc.binary_join_element_wise(head, write(branch, values, f"{path}.{branch.simple_name}"), _EMPTY)
            data = pc.if_else(pc.and_(values.is_valid(), data.is_null()), written, data)
    if data.null_count:
        raise DataError(f"{path}: a union has none of its branches set.", reason="WRONG_KIND", field_path=path)
    return data


def _octets(avro: AvroType, column: pa.Array, path: str) -> pa.Array:
    data_type = column.type
    if logical_of(avro) == DECIMAL and pa.types.is_decimal(data_type):
        scale = int(avro.properties.get("scale", 0))
        data = pa.array([unscaled(_rescaled(value, scale, path), scale) for value in column.to_pylist()], pa.binary())
        if avro.kind is AvroKind.FIXED:
            data = pa.array([_widened(value, avro.size, path) for value in data.to_pylist()], pa.binary())
    elif avro.kind is AvroKind.STRING:
        if not (pa.types.is_string(data_type) or pa.types.is_large_string(data_type)):
            raise _misfit(avro, column, path)
        data = column.cast(pa.binary())
    elif (
        pa.types.is_binary(data_type) or pa.types.is_large_binary(data_type) or pa.types.is_fixed_size_binary(data_type)
    ):
        data = column.cast(pa.binary())
    else:
        raise _misfit(avro, column, path)
    if avro.kind is AvroKind.FIXED:
        if not pc.all(pc.equal(pc.binary_length(data), avro.size), min_count=0).as_py():
            raise DataError(f"{path}: a value has not the {avro.size} bytes of {avro.name}.", reason="WRONG_WIDTH")
        return data
    lengths = pc.binary_length(data).to_numpy(zero_copy_only=False).astype(np.int64)
    return pc.binary_join_element_wise(varints(lengths), data, _EMPTY)


def _rescaled(value: Any, scale: int, path: str) -> Any:
    from decimal import Decimal, Inexact, localcontext

    with localcontext() as context:
        context.prec, context.traps[Inexact] = 80, True
        try:
            return value.quantize(Decimal(1).scaleb(-scale))
        except Inexact:
            raise DataError(
                f"{path}: {value} has more than {scale} digits after the point.", reason="WRONG_KIND"
            ) from None


def _widened(value: bytes, size: int, path: str) -> bytes:
    if len(value) > size:
        raise DataError(f"{path}: a decimal takes more than {size} bytes.", reason="OUT_OF_RANGE")
    return (b"\xff" if value[0] & 0x80 else b"\x00") * (size - len(value)) + value


def _whole(avro: AvroType, column: pa.Array, path: str) -> Any:
    data_type = column.type
    if pa.types.is_date32(data_type) or pa.types.is_time32(data_type):
        column = column.cast(pa.int32())
    elif pa.types.is_timestamp(data_type):
        column = column.cast(pa.timestamp("ms", data_type.tz), safe=False).cast(pa.int64())
    elif not pa.types.is_integer(data_type):
        raise _misfit(avro, column, path)
    values = column.to_numpy(zero_copy_only=False).astype(np.int64)
    if avro.kind is AvroKind.INT and len(values) and not -(1 << 31) <= values.min() <= values.max() < 1 << 31:
        raise DataError(f"{path}: a number is out of the range of an int.", reason="OUT_OF_RANGE", field_path=path)
    return values


def _is_number(data_type: pa.DataType) -> bool:
    return bool(pa.types.is_floating(data_type) or pa.types.is_integer(data_type))


def _filled(avro: AvroType, column: pa.Array) -> pa.Array:
    data_type = column.type
    if pa.types.is_null(data_type):
        return column
    if pa.types.is_temporal(data_type):
        zero = pa.scalar(0, pa.int32() if data_type.bit_width == 32 else pa.int64())
        return pc.fill_null(column, zero.cast(data_type))
    if pa.types.is_string(data_type) or pa.types.is_large_string(data_type):
        empty: Any = avro.symbols[0] if avro.symbols else ""
    elif pa.types.is_boolean(data_type):
        empty = False
    elif _is_number(data_type) or pa.types.is_decimal(data_type):
        empty = 0
    elif pa.types.is_nested(data_type):
        return column
    else:
        empty = bytes(avro.size)
    return pc.fill_null(column, pa.scalar(empty, data_type))


def _misfit(avro: AvroType, column: pa.Array, path: str) -> DataError:
    name = avro.name or avro.kind.value
    return DataError(
        f"{path}: values of type {column.type} can't be written as Avro's {name}.", reason="WRONG_TYPE", field_path=path
    )
