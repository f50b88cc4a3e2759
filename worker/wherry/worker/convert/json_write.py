"""Columns as JSON text, byte for byte as Kafka Connect's JsonConverter writes it.

Column by column: each field becomes a column of JSON texts, and a struct joins those of its fields. Only texts that
need escaping, doubles outside of the plain range, decimals and bytes are looked at one by one. Before that the compiled
helper is asked, where it is there: it writes whole structs.
"""

from __future__ import annotations

import base64
import dataclasses
from collections.abc import Callable, Sequence
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from wherry.contract.batch import JSON_TYPE
from wherry.contract.payload import to_payload
from wherry.contract.position import compact_json, java_double, json_string
from wherry.contract.schema import default_of, from_form, schema_of
from wherry.worker.convert import Converted, DataError, Failure, Run
from wherry.worker.convert.json_write_native import struct_texts

_EMPTY: Final = pa.scalar("", pa.string())
_COMMA: Final = pa.scalar(",", pa.string())
_OPEN: Final = pa.scalar("[", pa.string())
_CLOSE: Final = pa.scalar("]", pa.string())
_QUOTE: Final = pa.scalar('"', pa.string())
# Java prints doubles of these magnitudes without an exponent, and so does Python.
_PLAIN_MIN, _PLAIN_MAX = 1e-3, 1e7
REQUIRED_NULL: Final = "Conversion error: null value for field that is required and has no default value"


@dataclasses.dataclass(frozen=True, slots=True)
class WriteOptions:
    """Settings of the JsonConverter.

    Attributes:
        numeric_decimals: Decimals as JSON numbers instead of base64.
        replace_null_with_default: A null where the schema has a default becomes the default.
    """

    numeric_decimals: bool = False
    replace_null_with_default: bool = True


def write_json(field: pa.Field, column: pa.Array, options: WriteOptions) -> Converted:
    """Converts a column into JSON bytes; null stays null."""
    if pa.types.is_null(column.type):
        return Converted((Run.of(pa.nulls(len(column), pa.binary())),))
    if column.type == JSON_TYPE:
        return Converted((Run.of(column.storage.cast(pa.binary())),))
    texts, failed = json_texts(field, column, options)
    if column.null_count:
        texts = pc.if_else(column.is_valid(), texts, pa.scalar(None, pa.string()))
    return _without(texts.cast(pa.binary()), failed)


def json_texts(field: pa.Field, column: pa.Array, options: WriteOptions) -> tuple[pa.Array, list[int]]:
    """Returns the JSON text of each row (`null` for null) and the rows that have none."""
    failed = required_nulls(field, column, options)
    return _texts(field, column, options), failed


def members_texts(column: pa.Array, there: Sequence[pa.BooleanArray | None], options: WriteOptions) -> pa.Array:
    """Returns the JSON text of each row of structs that don't all have all fields.

    Args:
        column: The structs, none of which is null.
        there: For each field, which rows have it; None where all do.
        options: How to write it.
    """
    written = struct_texts(
        column,
        lambda field: _null_text(field, options).encode(),
        lambda field, values: _texts(field, values, options),
        there,
    )
    if written is not None:
        return written
    parts: list[Any] = []
    for index, (child, mask) in enumerate(zip(column.type, there, strict=True)):
        head = pa.scalar(f",{json_string(child.name)}:", pa.string())
        text = pc.binary_join_element_wise(head, _texts(child, column.field(index), options), _EMPTY)
        parts.append(text if mask is None else pc.if_else(mask, text, _EMPTY))
    # Without the first comma.
    inner = pc.utf8_slice_codeunits(pc.binary_join_element_wise(*parts, _EMPTY), 1)
    return pc.binary_join_element_wise(pa.scalar("{", pa.string()), inner, pa.scalar("}", pa.string()), _EMPTY)


def required_nulls(field: pa.Field, column: pa.Array, options: WriteOptions) -> list[int]:
    """Returns the rows that hold a null where the schema allows none. Null at the top is a tombstone and fine."""
    if not _suspect(column.type, column, options, top=True):
        return []
    return [row for row, value in enumerate(column.to_pylist()) if not _sound(field, value, options, top=True)]


def _without(column: pa.Array, failed: list[int]) -> Converted:
    if not failed:
        return Converted((Run.of(column),))
    bad = set(failed)
    kept = column.take(pa.array([row for row in range(len(column)) if row not in bad], pa.int64()))
    error = DataError(REQUIRED_NULL, reason="NOT_NULL")
    return Converted((Run.of(kept),), tuple(Failure(row, error) for row in failed))


def _texts(field: pa.Field, column: pa.Array, options: WriteOptions) -> pa.Array:
    texts = _present_texts(field, column, options)
    if not column.null_count:
        return texts
    return pc.if_else(column.is_valid(), texts, pa.scalar(_null_text(field, options), pa.string()))


def _null_text(field: pa.Field, options: WriteOptions) -> str:
    """Returns what is written for a null."""
    has_default, default = default_of(field)
    if default is not None and options.numeric_decimals:
        schema = from_form(schema_of(field))
        default = to_payload(schema, schema.default, numeric_decimals=True)
    return compact_json(default) if has_default and options.replace_null_with_default else "null"


def _present_texts(field: pa.Field, column: pa.Array, options: WriteOptions) -> pa.Array:
    """Returns the texts of a column; what stands where it is null doesn't matter, but is never null."""
    data_type = column.type
    if data_type == JSON_TYPE:
        return pc.fill_null(column.storage, "null")
    if pa.types.is_boolean(data_type) or pa.types.is_integer(data_type):
        return pc.fill_null(column.cast(pa.string()), "null")
    if pa.types.is_string(data_type) or pa.types.is_large_string(data_type):
        return _strings(column.cast(pa.string()))
    if pa.types.is_floating(data_type):
        return _floats(column)
    if pa.types.is_date32(data_type) or pa.types.is_time32(data_type):
        return pc.fill_null(column.cast(pa.int32()).cast(pa.string()), "null")
    if pa.types.is_timestamp(data_type):
        return pc.fill_null(column.cast(pa.timestamp("ms", data_type.tz)).cast(pa.int64()).cast(pa.string()), "null")
    if pa.types.is_decimal(data_type):
        return _each(column, str if options.numeric_decimals else _decimal_base64)
    if pa.types.is_struct(data_type):
        return _structs(column, options)
    if pa.types.is_map(data_type):
        return _maps(column, options)
    if pa.types.is_list(data_type) or pa.types.is_large_list(data_type):
        return _lists(column, options)
    if pa.types.is_binary(data_type) or pa.types.is_large_binary(data_type) or pa.types.is_fixed_size_binary(data_type):
        return _each(column, lambda value: f'"{base64.b64encode(value).decode()}"')
    raise DataError(f"Connect has no type for {data_type}, the type of {field.name}.", reason="WRONG_TYPE")


def _strings(column: pa.Array) -> pa.Array:
    if _needs_escape(column):
        return _each(column, json_string)
    return pc.fill_null(pc.binary_join_element_wise(_QUOTE, column, _QUOTE, _EMPTY), "null")


def _needs_escape(column: pa.Array) -> bool:
    """Whether any text may hold a quote, a backslash, a control character, or one beyond the basic plane."""
    data = column.buffers()[2]
    if data is None or not len(column):
        return False
    offsets = np.frombuffer(column.buffers()[1], np.int32)[column.offset : column.offset + len(column) + 1]
    octets = np.frombuffer(data, np.uint8)[offsets[0] : offsets[-1]]
    return bool(((octets < 0x20) | (octets == 0x22) | (octets == 0x5C) | (octets >= 0xF0)).any())


def _floats(column: pa.Array) -> pa.Array:
    plain = plain_doubles(column)
    if plain is not None:
        return pc.fill_null(plain, "null")
    values = column.to_pylist()
    if pa.types.is_float32(column.type):
        # The shortest digits that tell a float apart, not those of the double it is held in.
        values = [None if value is None else float(str(np.float32(value))) for value in values]
    return pa.array(list(map(_double_text, values)), pa.string())


def plain_doubles(column: pa.Array) -> pa.Array | None:
    """Returns the texts of doubles as Java prints them; None unless all are of a size that needs no exponent."""
    if column.type != pa.float64():
        return None
    size = pc.abs(column)
    plain = pc.or_(pc.and_(pc.greater_equal(size, _PLAIN_MIN), pc.less(size, _PLAIN_MAX)), pc.equal(size, 0.0))
    if not pc.all(plain).as_py():
        return None
    texts = column.cast(pa.string())
    # Java never leaves the fraction out.
    whole = pc.equal(pc.floor(column), column)
    return (
        pc.if_else(whole, pc.binary_join_element_wise(texts, ".0", _EMPTY), texts) if pc.any(whole).as_py() else texts
    )


def _double_text(value: float | None) -> str:
    if value is None:
        return "null"
    return repr(value) if _PLAIN_MIN <= abs(value) < _PLAIN_MAX or value == 0.0 else java_double(value)


def _decimal_base64(value: Any) -> str:
    sign, digits, _ = value.as_tuple()
    unscaled = int("".join(map(str, digits))) * (-1 if sign else 1)
    size = (unscaled + (unscaled < 0)).bit_length() // 8 + 1
    return f'"{base64.b64encode(unscaled.to_bytes(size, "big", signed=True)).decode()}"'


def _structs(column: pa.Array, options: WriteOptions) -> pa.Array:
    written = struct_texts(
        column,
        lambda field: _null_text(field, options).encode(),
        lambda field, values: _texts(field, values, options),
    )
    if written is not None:
        return written
    parts: list[Any] = []
    head = "{"
    for index, child in enumerate(column.type):
        parts.append(pa.scalar(f"{head}{json_string(child.name)}:", pa.string()))
        parts.append(_texts(child, column.field(index), options))
        head = ","
    if not parts:
        return pa.repeat(pa.scalar("{}", pa.string()), len(column))
    parts.append(pa.scalar("}", pa.string()))
    return pc.binary_join_element_wise(*parts, _EMPTY)


def _lists(column: pa.Array, options: WriteOptions) -> pa.Array:
    items = _texts(column.type.value_field, column.flatten(), options)
    lengths = pc.fill_null(pc.list_value_length(column), 0).cast(pa.int64())
    return _joined(lengths, items, "[", "]")


def _maps(column: pa.Array, options: WriteOptions) -> pa.Array:
    """A map with text keys is an object; any other is a list of pairs."""
    data_type, rows = column.type, column.to_pylist()
    keys = pa.array([key for row in rows for key, _ in row or ()], data_type.key_type)
    values = pa.array([value for row in rows for _, value in row or ()], data_type.item_type)
    lengths = pa.array([len(row or ()) for row in rows], pa.int64())
    key_texts, value_texts = _texts(data_type.key_field, keys, options), _texts(data_type.item_field, values, options)
    if pa.types.is_string(data_type.key_type):
        members = pc.binary_join_element_wise(key_texts, value_texts, pa.scalar(":", pa.string()))
        return _joined(lengths, members, "{", "}")
    pairs = pc.binary_join_element_wise(_OPEN, key_texts, _COMMA, value_texts, _CLOSE, _EMPTY)
    return _joined(lengths, pairs, "[", "]")


def _joined(lengths: pa.Array, items: pa.Array, opening: str, closing: str) -> pa.Array:
    """Joins the texts of items, so many for each row, to a text for each row."""
    offsets = np.concatenate([[0], np.cumsum(lengths.to_numpy(zero_copy_only=False))]).astype(np.int32)
    lists = pa.ListArray.from_arrays(pa.array(offsets, pa.int32()), items)
    joined = pc.binary_join(lists, ",")
    return pc.binary_join_element_wise(pa.scalar(opening, pa.string()), joined, pa.scalar(closing, pa.string()), _EMPTY)


def _each(column: pa.Array, text: Callable[[Any], str]) -> pa.Array:
    return pa.array(["null" if value is None else text(value) for value in column.to_pylist()], pa.string())


def _suspect(data_type: pa.DataType, column: pa.Array, options: WriteOptions, *, top: bool) -> bool:
    """Whether anything below may be null without being allowed to; cheap, and errs on the side of looking."""
    if pa.types.is_struct(data_type):
        for index, child in enumerate(data_type):
            values = column.field(index)
            if not child.nullable and values.null_count:
                return True
            if _suspect(child.type, values, options, top=False):
                return True
        return False
    if pa.types.is_map(data_type):
        return bool(column.items.null_count and not data_type.item_field.nullable) or _suspect(
            data_type.item_type, column.items, options, top=False
        )
    if pa.types.is_list(data_type):
        items = column.flatten()
        return bool(items.null_count and not data_type.value_field.nullable) or _suspect(
            data_type.value_type, items, options, top=False
        )
    return False


def _sound(field: pa.Field, value: Any, options: WriteOptions, *, top: bool) -> bool:
    if value is None:
        has_default = default_of(field)[0] and options.replace_null_with_default
        return top or field.nullable or has_default
    data_type = field.type
    if pa.types.is_struct(data_type):
        return all(_sound(child, value[child.name], options, top=False) for child in data_type)
    if pa.types.is_map(data_type):
        return all(_sound(data_type.item_field, item, options, top=False) for _, item in value)
    if pa.types.is_list(data_type):
        return all(_sound(data_type.value_field, item, options, top=False) for item in value)
    return True
