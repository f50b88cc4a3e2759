"""Turns a batch of records into columns of a table.

Pure: no connection. A row that can't be turned is an error of its own.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import orjson
import pyarrow as pa
import pyarrow.compute as pc

from wherry.contract.batch import Batch
from wherry.contract.errors import RecordRejectedError
from wherry_jdbc.settings import KAFKA_KEY_COLUMNS, KeyMode, Settings
from wherry_jdbc.tables import Column, column_name, column_type

CHANGE_EVENT_FIELDS = frozenset(("before", "after", "op", "source"))


@dataclass(frozen=True, slots=True)
class Rows:
    """Rows for one table, still in the types of the records."""

    columns: pa.RecordBatch
    """Key columns first. Rows to delete have nulls in the others."""
    key: tuple[str, ...]
    deleted: pa.BooleanArray
    """True where the row with the key is to be deleted."""
    index: Sequence[int]
    """For each row, its index in the batch it came from."""

    def table_columns(self) -> list[Column]:
        """The columns a table made for these rows would have."""
        schema = self.columns.schema
        return [Column(f.name, column_type(f.type), f.nullable and f.name not in self.key) for f in schema]

    def take(self, positions: Sequence[int]) -> Rows:
        """Some of the rows, in the order given."""
        where = pa.array(positions, pa.int64())
        return Rows(self.columns.take(where), self.key, self.deleted.take(where), [self.index[i] for i in positions])

    def slice(self, start: int, length: int) -> Rows:
        """A run of rows; no copy."""
        return Rows(
            self.columns.slice(start, length),
            self.key,
            self.deleted.slice(start, length),
            self.index[start : start + length],
        )

    def last_by_key(self) -> Rows:
        """Of rows with equal keys only the last, because one statement can't touch a row twice."""
        keys = [self.columns.column(name).to_pylist() for name in self.key]
        last = {key: i for i, key in enumerate(zip(*keys, strict=True))}
        return self if len(last) == len(self.index) else self.take(sorted(last.values()))


def rows_of(batch: Batch, settings: Settings, known: Callable[[], Sequence[Column]]) -> Rows:
    """Flattens keys and values into columns.

    Args:
        batch: Records whose values are structs, or JSON objects without a schema.
        settings: Key mode, fields wanted, deletes.
        known: The columns of the table as it is; asked for only when values have no schema.

    Returns:
        The rows, deletions among them.

    Raises:
        RecordRejectedError: The batch holds a record that can't become a row (slice it to find which).
    """
    value, gone, no_schema = _value_struct(batch, settings)
    fields: dict[str, pa.Array] = {}
    if value is not None:
        for i, field in enumerate(value.type):
            if settings.wants(field.name):
                fields[column_name(field.name, settings)] = _field(value, i)
    key = _key_columns(batch, settings, fields)
    if settings.deletes and _any_null(key.values()):
        raise RecordRejectedError("the record has no key, and delete.enabled=true needs one")
    if not settings.deletes and pc.any(gone).as_py():
        raise RecordRejectedError("the value is null; set delete.enabled=true with a record key to delete the row")
    columns = key | {name: array for name, array in fields.items() if name not in key}
    if no_schema:
        columns = _typed(columns, {c.name: c for c in known()})
    required = set() if value is None else {field.name for field in value.type if not field.nullable}
    schema = pa.schema([pa.field(name, array.type, name not in required) for name, array in columns.items()])
    records = pa.RecordBatch.from_arrays(list(columns.values()), schema=schema)
    return Rows(records, tuple(key), gone, range(batch.num_rows))


def cast(rows: Rows, columns: Sequence[Column]) -> pa.RecordBatch:
    """Casts rows to what binary COPY needs for the table's columns, in their order.

    Raises:
        pa.ArrowInvalid: A value doesn't fit.
        RecordRejectedError: A value has no counterpart in the column's type.
    """
    arrays = [_to_column(rows.columns.column(column.name), column) for column in columns]
    return pa.RecordBatch.from_arrays(arrays, names=[column.name for column in columns])


def _to_column(array: pa.Array, column: Column) -> pa.Array:
    target = column.arrow
    if target is None:
        return _text(array, as_json=column.type in ("json", "jsonb"))
    if array.type == target:
        return array
    if pa.types.is_nested(array.type):
        if pa.types.is_string(target):
            return _text(array, as_json=True)
        raise RecordRejectedError(f"column {column.name} is {column.type}, the value is {array.type}")
    if pa.types.is_timestamp(target) and pa.types.is_integer(array.type):
        array = array.cast(pa.int64()).cast(pa.timestamp("ms", "UTC"))
    if pa.types.is_string(target) and pa.types.is_binary(array.type):
        return array.cast(target)
    try:
        return array.cast(target)
    except pa.ArrowNotImplementedError:
        raise RecordRejectedError(f"column {column.name} is {column.type}, the value is {array.type}") from None


def _text(array: pa.Array, *, as_json: bool) -> pa.Array:
    """Values as text that the server casts."""
    if isinstance(array, pa.ExtensionArray):
        array = array.storage
    if pa.types.is_nested(array.type) or (as_json and not pa.types.is_string(array.type)):
        texts = [None if v is None else orjson.dumps(v, default=str).decode() for v in array.to_pylist()]
        return pa.array(texts, pa.string())
    if as_json:
        texts = [v if v is None or _is_json(v) else orjson.dumps(v).decode() for v in array.to_pylist()]
        return pa.array(texts, pa.string())
    return array.cast(pa.string())


def _is_json(text: str) -> bool:
    try:
        orjson.loads(text)
    except orjson.JSONDecodeError:
        return False
    return True


def _value_struct(batch: Batch, settings: Settings) -> tuple[pa.StructArray | None, pa.BooleanArray, bool]:
    """The values as one struct array, which rows are deletions, and whether their types were guessed."""
    value = batch.value
    if pa.types.is_null(value.type):
        return None, pa.array([True] * batch.num_rows), False
    no_schema = not pa.types.is_struct(value.type)
    if no_schema:
        value = _parse_json(value)
    names = {field.name for field in value.type}
    if settings.unwrap_change_events and names >= CHANGE_EVENT_FIELDS:
        after = value.field(value.type.get_field_index("after"))
        return after, pc.or_(pc.is_null(value), pc.is_null(after)), no_schema
    return value, pc.is_null(value), no_schema


def _parse_json(value: pa.Array) -> pa.StructArray:
    storage = value.storage if isinstance(value, pa.ExtensionArray) else value
    if not (pa.types.is_string(storage.type) or pa.types.is_binary(storage.type)):
        raise RecordRejectedError(f"the value is {storage.type}, not a structure; a table needs fields")
    try:
        parsed = [None if text is None else orjson.loads(text) for text in storage.to_pylist()]
    except orjson.JSONDecodeError as error:
        raise RecordRejectedError(f"the value is not JSON: {error}") from None
    if any(row is not None and not isinstance(row, dict) for row in parsed):
        raise RecordRejectedError("the value is not a JSON object; a table needs fields")
    names = dict.fromkeys(name for row in parsed if row for name in row)
    columns = {name: _guessed([None if row is None else row.get(name) for row in parsed], name) for name in names}
    missing = pa.array([row is None for row in parsed])
    return pa.StructArray.from_arrays(list(columns.values()), names=list(columns), mask=missing)


def _guessed(values: list[Any], name: str) -> pa.Array:
    try:
        return pa.array(values)
    except (pa.ArrowInvalid, pa.ArrowTypeError):
        pass
    try:
        return pa.array([None if v is None else float(v) for v in values], pa.float64())
    except (TypeError, ValueError):
        raise RecordRejectedError(f"field {name} holds values of different types") from None


def _typed(columns: dict[str, pa.Array], known: dict[str, Column]) -> dict[str, pa.Array]:
    """Leaves out fields without a value and without a column: nothing tells their type."""
    return {name: array for name, array in columns.items() if not pa.types.is_null(array.type) or name in known}


def _field(value: pa.StructArray, index: int) -> pa.Array:
    # NB: `field` ignores the struct's own nulls, `flatten` applies them.
    return value.field(index) if value.null_count == 0 else value.flatten()[index]


def _key_columns(batch: Batch, settings: Settings, fields: dict[str, pa.Array]) -> dict[str, pa.Array]:
    wanted = settings.key_fields
    match settings.key_mode:
        case KeyMode.NONE:
            return {}
        case KeyMode.KAFKA:
            names = wanted or KAFKA_KEY_COLUMNS
            arrays = [batch.column(name) for name in ("topic", "partition", "offset")]
            if any(array is None for array in arrays):
                raise RecordRejectedError("the record doesn't come from Kafka; choose another primary key mode")
            return dict(zip(names, arrays, strict=True))
        case KeyMode.RECORD_VALUE:
            names = tuple(column_name(name, settings) for name in wanted) or tuple(fields)
            return _pick(fields, names, "value")
        case KeyMode.RECORD_KEY:
            return _record_key(batch.key, wanted, settings)


def _record_key(key: pa.Array | None, wanted: tuple[str, ...], settings: Settings) -> dict[str, pa.Array]:
    if key is None or key.null_count == len(key):
        raise RecordRejectedError("the record has no key, and the primary key is to come from it")
    if not pa.types.is_struct(key.type) and len(wanted) != 1:
        key = _parse_json(key)
    if not pa.types.is_struct(key.type):
        storage = key.storage if isinstance(key, pa.ExtensionArray) else key
        return {column_name(wanted[0], settings): storage}
    fields = {column_name(f.name, settings): _field(key, i) for i, f in enumerate(key.type)}
    return _pick(fields, tuple(column_name(n, settings) for n in wanted) or tuple(fields), "key")


def _pick(fields: dict[str, pa.Array], names: tuple[str, ...], where: str) -> dict[str, pa.Array]:
    if missing := [name for name in names if name not in fields]:
        raise RecordRejectedError(f"the {where} has no field {', '.join(missing)}, which is part of the primary key")
    return {name: fields[name] for name in names}


def _any_null(arrays: Iterable[pa.Array]) -> bool:
    return any(array.null_count for array in arrays)
