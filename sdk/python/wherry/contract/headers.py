"""Headers of records: an ordered list of names, which may repeat, with values; typed where the engine knows the type.

A plain header (`HEADERS_TYPE`) has bytes, as they stand in Kafka or as a sidecar gave them. A typed column
(`TYPED_HEADERS_TYPE`) has a schema beside them: none (null) says that the bytes are plain, `null` that the value has no
schema, and anything else is a schema in JsonConverter's form. The value is then JSON,
of a kind that loses nothing and is nobody else's business. Typed columns live within a
worker, between the transforms that make them and the header converter; they never cross to a sidecar.
"""

from __future__ import annotations

import base64
import datetime
import json
from collections.abc import Callable, Sequence
from decimal import Decimal
from functools import lru_cache
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from wherry.contract.batch import HEADERS_TYPE
from wherry.contract.data import DataError, Float32, Instant, Int8, Int16, Int32, Linked, Pairs, Schema, Typed
from wherry.contract.schema import from_form, to_form
from wherry.contract.values import milliseconds

TYPED_HEADERS_TYPE: Final = pa.list_(
    pa.struct([("name", pa.string()), ("value", pa.binary()), ("schema", pa.string())])
)
SCHEMALESS: Final = "null"
# Schemas whose text is kept parsed.
SCHEMAS_KNOWN_MAX: Final = 1_000
# Name, bytes or JSON, schema.
Entry = tuple[str, bytes | None, str | None]


def entry(name: str, value: Typed) -> Entry:
    """Makes a typed header."""
    data = None if value.value is None else _dumps(_plain(value.value))
    return name, data, SCHEMALESS if value.schema is None else _schema_text(value.schema)


def require(value: Typed) -> Typed:
    """Returns a value that may become a header.

    Raises:
        DataError: It is null, and its schema allows none.
    """
    schema = value.schema
    if value.value is not None or schema is None or schema.optional:
        return value
    name = f"{schema.name}:" if schema.name else ""
    raise DataError(
        f"A null value requires an optional schema but was Schema{{{name}{schema.kind.value}}}", reason="NOT_NULL"
    )


def typed(value: bytes | None, schema_text: str) -> Typed:
    """Returns the value of a typed header."""
    schema = None if schema_text == SCHEMALESS else schema_of_text(schema_text)
    return Typed(schema, None if value is None else _unplain(json.loads(value)))


@lru_cache(SCHEMAS_KNOWN_MAX)
def schema_of_text(text: str) -> Schema:
    """Returns the schema of a typed header's schema text."""
    return from_form(json.loads(text))


def is_typed(column: pa.Array) -> bool:
    """Whether a column may hold typed headers."""
    return bool(
        pa.types.is_list(column.type) and column.type.value_type.num_fields == len(TYPED_HEADERS_TYPE.value_type)
    )


def append(column: pa.Array | None, added: Sequence[Sequence[Entry]]) -> pa.Array:
    """Returns the headers with others after them, row by row.

    Args:
        column: The headers so far; None when no row has any.
        added: For each row what is added to it.
    """
    rows = _rows(column) if column is not None else [None] * len(added)
    joined = [[*(row or ()), *more] or None for row, more in zip(rows, added, strict=True)]
    return pa.array(joined, TYPED_HEADERS_TYPE)


def keep(column: pa.Array, wanted: Callable[[str], bool]) -> pa.Array:
    """Returns the headers whose names are wanted, in their order."""
    names = pc.list_flatten(column).field("name")
    if all(map(wanted, names.unique().to_pylist())):
        return column
    width = column.type.value_type.num_fields
    rows = [None if row is None else [item[:width] for item in row if wanted(item[0])] or None for row in _rows(column)]
    return pa.array(rows, column.type)


def plain(column: pa.Array, values: pa.Array) -> pa.Array:
    """Returns a column of plain headers with the same names and other values, given in order of rows and headers."""
    flat = pc.list_flatten(column)
    fields = list(HEADERS_TYPE.value_type)
    structs = pa.StructArray.from_arrays([flat.field("name"), values], fields=fields)
    lengths = pc.fill_null(pc.list_value_length(column), 0).cast(pa.int64())
    offsets = pa.concat_arrays([pa.array([0], pa.int64()), pc.cumulative_sum(lengths)]).cast(pa.int32())
    mask = column.is_null() if column.null_count else None
    return pa.ListArray.from_arrays(offsets, structs, type=HEADERS_TYPE, mask=mask)


def rows_of_headers(column: pa.Array) -> pa.Array:
    """Returns for each header, in order, the row it belongs to."""
    return pc.list_parent_indices(column)


def _rows(column: pa.Array) -> list[list[Entry] | None]:
    return [
        None if row is None else [(item["name"], _bytes(item["value"]), item.get("schema")) for item in row]
        for row in column.to_pylist()
    ]


def _bytes(value: str | bytes | None) -> bytes | None:
    return value.encode() if isinstance(value, str) else value


@lru_cache(SCHEMAS_KNOWN_MAX)
def _form_text(schema: Schema) -> str:
    return _dumps(to_form(schema)).decode()


def _schema_text(schema: Schema) -> str:
    # Defaults don't take part in the hash, and may be equal without being the same (1 and 1.0).
    return _dumps(to_form(schema)).decode() if _has_defaults(schema) else _form_text(schema)


def _has_defaults(schema: Schema) -> bool:
    parts = [part for part in (schema.key, schema.value) if part is not None]
    parts += [field.schema for field in schema.fields]
    return schema.has_default or any(map(_has_defaults, parts))


def _dumps(value: Any) -> bytes:
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False).encode("utf-8", "replace")


def _plain(value: Any) -> Any:
    """Says in JSON what has no schema; what JSON lacks is an object of one member that starts with a dollar sign."""
    if value is None or isinstance(value, bool | str):
        return value
    if isinstance(value, Instant | datetime.date | datetime.time):
        return {"$date": milliseconds(value)}
    if isinstance(value, float):
        return {"$float" if isinstance(value, Float32) else "$double": repr(float(value))}
    if isinstance(value, int):
        width = _WIDTHS.get(type(value))
        return int(value) if width is None else {width: int(value)}
    if isinstance(value, Decimal):
        return {"$decimal": str(value)}
    if isinstance(value, bytes | bytearray | memoryview):
        return {"$bytes": base64.b64encode(value).decode()}
    if isinstance(value, Pairs):
        return {"$pairs": [[_plain(key), _plain(item)] for key, item in value]}
    if isinstance(value, dict):
        return {
            "$linked" if isinstance(value, Linked) else "$map": [
                [_plain(key), _plain(item)] for key, item in value.items()
            ]
        }
    return [*map(_plain, value)] if isinstance(value, list) else {"$tuple": [*map(_plain, value)]}


_WIDTHS: Final[dict[type, str]] = {Int8: "$int8", Int16: "$int16", Int32: "$int32"}
_READERS: Final[dict[str, Callable[[Any], Any]]] = {
    "$date": Instant,
    "$int8": Int8,
    "$int16": Int16,
    "$int32": Int32,
    "$float": lambda text: Float32(float(text)),
    "$double": float,
    "$decimal": Decimal,
    "$bytes": base64.b64decode,
    "$pairs": lambda pairs: Pairs((_unplain(key), _unplain(item)) for key, item in pairs),
    "$map": lambda pairs: {_unplain(key): _unplain(item) for key, item in pairs},
    "$linked": lambda pairs: Linked((_unplain(key), _unplain(item)) for key, item in pairs),
    "$tuple": lambda items: tuple(map(_unplain, items)),
}


def _unplain(value: Any) -> Any:
    if isinstance(value, list):
        return [*map(_unplain, value)]
    if isinstance(value, dict):
        [(mark, inner)] = value.items()
        return _READERS[mark](inner)
    return value
