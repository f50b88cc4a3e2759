"""Avro's binary encoding into columns.

The quick way: rows of one schema are put together as one Avro file in memory, which polars reads into columns. Nothing
in such a file says where a row ends, so each row's length is worked out from its values and compared with the bytes it
had. A number written with more bytes than it needs could still lend some of the next row's, and all rows behind would
be shifted: a last row of known value, which is read wrongly then, tells. When all agree, every row began where it
should have, by induction, and the values are the right ones. A batch that doesn't agree, or that holds what polars
doesn't know (maps, unions of many), is read row by row.
"""

from __future__ import annotations

import dataclasses
import io
import json
from collections.abc import Callable
from decimal import Decimal
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from wherry.contract.arrays import array_of
from wherry.contract.data import DECIMAL, Kind, Schema
from wherry.contract.java import decode_utf8
from wherry.contract.payload import scaled
from wherry.contract.schema import to_field
from wherry.worker.convert import Converted, DataError, Failure, Run
from wherry.worker.convert.registered.avro_bytes import decoder, takes_no_bytes, write_long
from wherry.worker.convert.registered.avro_schema import is_map_of_pairs, to_connect
from wherry.worker.convert.registered.avro_types import AvroKind, AvroType
from wherry.worker.convert.registered.avro_write import sizes_of, zigzag

# Below this many rows putting a file together costs more than it saves.
QUICK_ROWS_MIN: Final = 8
# Rows of a batch with an odd one among them that are no longer cut in halves.
HALVED_ROWS_MIN: Final = 32
_SYNC: Final = bytes(16)
# Behind the rows, so that one that lacks a few bytes at the end finds zeros: polars panics where bytes end, and Rust
# writes a page to the log for each panic.
_PADDING: Final = bytes(4_096)
_WIDTHS: Final = {AvroKind.BOOLEAN: 1, AvroKind.FLOAT: 4, AvroKind.DOUBLE: 8, AvroKind.NULL: 0}
# What polars shall read a type as: without logical types, and enums as the numbers of their symbols.
_PLAIN: Final = {
    AvroKind.ENUM: "int",
    **{
        kind: kind.value
        for kind in AvroKind
        if kind.value in {"boolean", "int", "long", "float", "double", "bytes", "string"}
    },
}
_Value = Callable[[Any], Any]


class AvroReader:
    """Reads records of one writer's schema."""

    def __init__(self, avro: AvroType, *, version: int | None = None) -> None:
        """Prepares.

        Args:
            avro: The schema the records were written with.
            version: Version of the schema in the registry; the Connect schema says it where it says no other.

        Raises:
            DataError: Columns can't hold what the schema describes.
        """
        _check_arrays(avro)
        schema = to_connect(avro)
        if version is not None and schema.version is None:
            schema = _with_version(schema, version)
        self.field = to_field(schema)
        self._avro = avro
        self._decode = decoder(avro)
        self._value = _value(avro, schema)
        plain = _plain(avro, [0])
        self._witness = b"" if plain is None else _witness(avro)
        # A row of zeros alone would tell nothing: they stand behind it, too.
        self._head = _file_head(plain) if any(self._witness) else None
        self._expected: Any = None
        self._build = _build(avro, schema, self.field.type)

    def read(self, payloads: pa.Array) -> Converted:
        """Reads a column of payloads, none of which is null."""
        arrays: list[pa.Array] = []
        failures: list[Failure] = []
        self._read(payloads, 0, arrays, failures)
        column = arrays[0] if len(arrays) == 1 else pa.concat_arrays(arrays or [pa.array([], self.field.type)])
        return Converted((Run(self.field, column),), tuple(failures))

    def _read(self, payloads: pa.Array, start: int, arrays: list[pa.Array], failures: list[Failure]) -> None:
        """Reads rows at once, or in halves down to a few that are read one by one."""
        rows = len(payloads)
        if self._head is None or rows < QUICK_ROWS_MIN:
            self._row_by_row(payloads, start, arrays, failures)
            return
        column = self._quickly(payloads)
        if column is not None:
            arrays.append(column)
        elif rows <= HALVED_ROWS_MIN:
            self._row_by_row(payloads, start, arrays, failures)
        else:
            middle = rows // 2
            self._read(payloads.slice(0, middle), start, arrays, failures)
            self._read(payloads.slice(middle), start + middle, arrays, failures)

    def _quickly(self, payloads: pa.Array) -> pa.Array | None:
        """Reads all rows at once; None when it can't be proven that this gives the right answer."""
        import polars as pl

        data = pc.binary_join(pa.ListArray.from_arrays(pa.array([0, len(payloads)], pa.int32()), payloads), b"")[0]
        try:
            if self._expected is None:
                self._expected = self._polars(b"", 1)[0].as_py()
            column = self._polars(data.as_py(), len(payloads) + 1)
            if len(column) != len(payloads) + 1 or column[-1].as_py() != self._expected:
                return None
            column = column.slice(0, len(payloads))
            lengths = pc.binary_length(payloads).to_numpy(zero_copy_only=False)
            if not np.array_equal(_sizes(self._avro, column), lengths):
                return None
            return self._build(column)
        except (OSError, pl.exceptions.PolarsError, pl.exceptions.PanicException, pa.ArrowException, _OddError):
            return None

    def _polars(self, body: bytes, rows: int) -> pa.Array:
        """Has polars read rows, the last of which is the witness."""
        import polars as pl

        size = write_long(len(body) + len(self._witness) + len(_PADDING))
        parts = (self._head or b"", write_long(rows), size, body, self._witness, _PADDING, _SYNC)
        return _one_chunk(
            pl.read_avro(io.BytesIO(b"".join(parts))).to_arrow(compat_level=pl.CompatLevel.oldest()).column(0)
        )

    def _row_by_row(self, payloads: pa.Array, start: int, arrays: list[pa.Array], failures: list[Failure]) -> None:
        values: list[Any] = []
        for row, data in enumerate(payloads.to_pylist(), start):
            try:
                values.append(self._value(self._decode(data, 0)[0]))
            except (ValueError, OverflowError) as error:
                failures.append(Failure(row, _bad(error)))
        arrays.append(array_of(values, self.field.type))


class _OddError(Exception):
    """Something only the exact way knows what to make of."""


def _bad(error: Exception) -> DataError:
    return DataError(f"The bytes don't fit their schema: {error}.", reason="BAD_AVRO")


def _with_version(schema: Schema, version: int) -> Schema:
    return dataclasses.replace(schema, version=version)


def _check_arrays(avro: AvroType) -> None:
    for part in (*(field.type for field in avro.fields), *avro.branches, *([avro.items] if avro.items else ())):
        _check_arrays(part)
    if avro.kind is AvroKind.ARRAY and avro.items is not None and takes_no_bytes(avro.items):
        raise DataError("An array of what takes no bytes can't be read.", reason="BAD_SCHEMA")


def _plain(avro: AvroType, names: list[int]) -> Any:
    """Returns the schema polars shall read with; None when it can't."""
    names[0] += 1
    number = names[0]
    part = avro.optional_part
    if part is not None:
        inner = _plain(part, names)
        return None if inner is None else [("null" if branch is not part else inner) for branch in avro.branches]
    if avro.kind in _PLAIN:
        return _PLAIN[avro.kind]
    if avro.kind is AvroKind.FIXED:
        return {"type": "fixed", "name": f"n{number}", "size": avro.size} if avro.size else None
    if avro.kind is AvroKind.ARRAY and avro.items is not None:
        items = _plain(avro.items, names)
        return None if items is None else {"type": "array", "items": items}
    if avro.kind is AvroKind.RECORD and avro.fields:
        fields = [_plain(field.type, names) for field in avro.fields]
        if any(field is None for field in fields):
            return None
        parts = [{"name": f"f{index}", "type": field} for index, field in enumerate(fields)]
        return {"type": "record", "name": f"n{number}", "fields": parts}
    return None


def _witness(avro: AvroType) -> bytes:
    """Returns a value that reads otherwise from any later place, if zeros follow: nothing in it needs two bytes."""
    part = avro.optional_part
    if part is not None:
        return write_long(avro.branches.index(part)) + _witness(part)
    if avro.kind is AvroKind.RECORD:
        return b"".join(_witness(field.type) for field in avro.fields)
    if avro.kind is AvroKind.ARRAY and avro.items is not None:
        return write_long(1) + _witness(avro.items) + write_long(0)
    if avro.kind is AvroKind.ENUM:
        return write_long(min(1, len(avro.symbols) - 1))
    if avro.kind in {AvroKind.BYTES, AvroKind.STRING}:
        return _text(b"x")
    if avro.kind in {AvroKind.INT, AvroKind.LONG}:
        return write_long(1)
    return b"\x01" * (avro.size if avro.kind is AvroKind.FIXED else _WIDTHS[avro.kind])


def _file_head(plain: Any) -> bytes:
    schema = json.dumps({"type": "record", "name": "n0", "fields": [{"name": "v", "type": plain}]}).encode()
    codec, key = b"avro.codec", b"avro.schema"
    entries = b"".join(_text(part) for part in (key, schema, codec, b"null"))
    return b"".join((b"Obj\x01", write_long(2), entries, write_long(0), _SYNC))


def _text(data: bytes) -> bytes:
    return write_long(len(data)) + data


def _sizes(avro: AvroType, column: pa.Array) -> Any:
    """Returns how many bytes each value takes in Avro; what stands where a value is null doesn't matter."""
    part = avro.optional_part
    if part is not None:
        sizes = _sizes(part, column)
        return 1 + (
            np.where(column.is_valid().to_numpy(zero_copy_only=False), sizes, 0) if column.null_count else sizes
        )
    rows, kind = len(column), avro.kind
    if column.null_count and kind is not AvroKind.RECORD:
        column = _without_nulls(column)
    if kind in _WIDTHS:
        return np.full(rows, _WIDTHS[kind], np.int64)
    if kind is AvroKind.FIXED:
        return np.full(rows, avro.size, np.int64)
    if kind in {AvroKind.INT, AvroKind.LONG, AvroKind.ENUM}:
        return _number_sizes(column.to_numpy(zero_copy_only=False).astype(np.int64))
    if kind in {AvroKind.BYTES, AvroKind.STRING}:
        lengths = pc.binary_length(column).to_numpy(zero_copy_only=False).astype(np.int64)
        return _number_sizes(lengths) + lengths
    if kind is AvroKind.RECORD:
        return sum((_sizes(field.type, column.field(index)) for index, field in enumerate(avro.fields)), np.int64(0))
    assert avro.items is not None
    items = _sizes(avro.items, column.flatten())
    counts = pc.list_value_length(column).to_numpy(zero_copy_only=False).astype(np.int64)
    ends = np.cumsum(counts)
    sums = np.concatenate([[0], np.cumsum(items)])
    return sums[ends] - sums[ends - counts] + np.where(counts > 0, _number_sizes(counts), 0) + 1


def _number_sizes(values: Any) -> Any:
    return sizes_of(zigzag(values)).astype(np.int64)


def _without_nulls(column: pa.Array) -> pa.Array:
    if pa.types.is_list(column.type) or pa.types.is_large_list(column.type):
        return pa.array([value or [] for value in column.to_pylist()], column.type)
    empty: Any = 0
    if pa.types.is_large_string(column.type) or pa.types.is_string(column.type):
        empty = ""
    elif pa.types.is_large_binary(column.type) or pa.types.is_binary(column.type):
        empty = b""
    elif not pa.types.is_integer(column.type):
        return column
    return pc.fill_null(column, pa.scalar(empty, column.type))


def _build(avro: AvroType, schema: Schema, wanted: pa.DataType) -> Callable[[pa.Array], pa.Array]:
    """Returns what turns a column of polars into one of the wanted type.

    The result raises ArrowException or _OddError where only the exact way knows the answer.
    """
    part = avro.optional_part
    if part is not None:
        return _build(part, schema, wanted)
    if avro.kind is AvroKind.RECORD:
        children = [
            _build(field.type, child.schema, wanted.field(index).type)
            for index, (field, child) in enumerate(zip(avro.fields, schema.fields, strict=True))
        ] if len(avro.fields) == len(schema.fields) else []  # fmt: skip
        return lambda column: pa.StructArray.from_arrays(
            [build(column.field(index)) for index, build in enumerate(children)],
            fields=list(wanted),
            mask=column.is_null() if column.null_count else None,
        )
    if avro.kind is AvroKind.ARRAY and schema.kind is Kind.ARRAY:
        assert avro.items is not None
        assert schema.value is not None
        items = _build(avro.items, schema.value, wanted.value_type)
        return lambda column: _list(column, items, wanted)
    if schema.logical == DECIMAL:
        return lambda column: pa.array(
            [None if value is None else scaled(value, schema.scale) for value in column.to_pylist()], wanted
        )
    if avro.kind is AvroKind.ENUM:
        symbols = pa.array(avro.symbols, pa.string())
        return lambda column: _symbols(column, symbols)
    if avro.kind is AvroKind.STRING:
        return _texts
    if avro.kind is AvroKind.INT and wanted in {pa.int8(), pa.int16()}:
        return lambda column: column.cast(wanted)
    return lambda column: column if column.type == wanted else column.cast(wanted)


def _list(column: pa.Array, build: Callable[[pa.Array], pa.Array], wanted: pa.DataType) -> pa.Array:
    lengths = pc.fill_null(pc.list_value_length(column), 0).cast(pa.int64())
    offsets = pa.concat_arrays([pa.array([0], pa.int64()), pc.cumulative_sum(lengths)]).cast(pa.int32())
    mask = column.is_null() if column.null_count else None
    return pa.ListArray.from_arrays(offsets, build(column.flatten()), type=wanted, mask=mask)


def _symbols(column: pa.Array, symbols: pa.Array) -> pa.Array:
    bounds = pc.min_max(column).as_py()
    if bounds["min"] is not None and not 0 <= bounds["min"] <= bounds["max"] < len(symbols):
        raise _OddError
    return symbols.take(column)


def _texts(column: pa.Array) -> pa.Array:
    texts = column.cast(pa.string())
    texts.validate(full=True)
    return texts


def _value(avro: AvroType, schema: Schema) -> _Value:
    """Returns what turns a decoded value into one that Arrow takes."""
    part = avro.optional_part
    if part is not None:
        inner, branch = _value(part, schema), avro.branches.index(part)
        return lambda pair: inner(pair[1]) if pair[0] == branch else None
    kind = avro.kind
    if kind is AvroKind.UNION:
        return _union_value(avro, schema)
    if kind is AvroKind.RECORD:
        parts = [
            (child.name, _value(field.type, child.schema))
            for field, child in zip(avro.fields, schema.fields, strict=True)
        ]
        return lambda values: {name: read(value) for (name, read), value in zip(parts, values, strict=True)}
    if is_map_of_pairs(avro) and avro.items is not None and schema.key is not None and schema.value is not None:
        key, item = (
            _value(field.type, found)
            for field, found in zip(avro.items.fields, (schema.key, schema.value), strict=True)
        )
        return lambda values: list({repr(name): (key(name), item(found)) for name, found in values}.values())
    if kind is AvroKind.ARRAY and avro.items is not None and schema.value is not None:
        element = _value(avro.items, schema.value)
        return lambda values: [element(value) for value in values]
    if kind is AvroKind.MAP and avro.items is not None and schema.value is not None:
        element = _value(avro.items, schema.value)
        # The last of two entries with one key wins, as in Java's maps.
        return lambda pairs: list({name: (decode_utf8(name), element(value)) for name, value in pairs}.values())
    if schema.logical == DECIMAL:
        return lambda data: _decimal(data, schema)
    if kind is AvroKind.ENUM:
        return avro.symbols.__getitem__
    if kind is AvroKind.STRING:
        return decode_utf8
    return _narrowed(schema.kind)


def _union_value(avro: AvroType, schema: Schema) -> _Value:
    readers: list[tuple[str, _Value] | None] = []
    children = iter(schema.fields)
    for branch in avro.branches:
        if branch.kind is AvroKind.NULL:
            readers.append(None)
        else:
            child = next(children)
            readers.append((child.name, _value(branch, child.schema)))

    def read(pair: tuple[int, Any]) -> dict[str, Any] | None:
        found = readers[pair[0]]
        return None if found is None else {found[0]: found[1](pair[1])}

    return read


def _narrowed(kind: Kind) -> _Value:
    if kind is Kind.INT8:
        return lambda value: (value + 128) % 256 - 128
    if kind is Kind.INT16:
        return lambda value: (value + 32_768) % 65_536 - 32_768
    return lambda value: value


def _decimal(data: bytes, schema: Schema) -> Decimal:
    value = scaled(data, schema.scale)
    precision = to_field(schema).type.precision
    if len(value.as_tuple().digits) > precision:
        raise ValueError(f"a decimal has more than {precision} digits")
    return value


def _one_chunk(column: pa.ChunkedArray) -> pa.Array:
    return column.chunk(0) if column.num_chunks == 1 else column.combine_chunks()
