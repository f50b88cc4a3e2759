"""Sql: the value of a record becomes a row of `SELECT … FROM records`, run by DuckDB over the batch.

The columns of `records` are the fields of the value; where the value has no fields, or no schema, there is one column
`value`, which is JSON text without a schema. A record that the query leaves out is dropped, one that it unnests becomes
several rows; key, headers, topic and position stay those of the record. Null values pass as they are.

Types go both ways without loss or are refused: DuckDB has types that Kafka Connect has not, and the sentence says which
cast would do. A row that can't be computed fails alone.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final

import numpy as np
import pyarrow as pa

from wherry.contract import selects
from wherry.contract.batch import TIMESTAMP_TYPE
from wherry.contract.data import DataError
from wherry.worker.transform.base import required
from wherry.worker.transform.columns import Positions
from wherry.worker.transform.failing import RowsFailedError
from wherry.worker.transform.own import OWN_PACKAGE
from wherry.worker.transform.rows import Loose, Rows, Side, Typed

MEMORY_MAX: Final = "256MB"
_FILL: Final = f"CREATE OR REPLACE TEMP TABLE {selects.TABLE} AS SELECT * FROM given"  # noqa: S608  # names of our own
_SAME: Final = frozenset(
    {
        pa.int8(), pa.int16(), pa.int32(), pa.int64(), pa.float32(), pa.float64(), pa.bool_(), pa.string(), pa.binary(),
        pa.date32(),
    }
)  # fmt: skip
# Types of DuckDB that Arrow gets as something else, or at a loss.
_REFUSED_TYPES: Final = ("HUGEINT", "UHUGEINT", "UUID", "BIT", "INTERVAL", "ENUM", "UNION", "JSON", "BIGNUM", "VARINT")


_UNKNOWN_COLUMN: Final = re.compile(
    r'Referenced (?:column|table) "(.+?)" not found|Column "(.+?)" in \w+ list not found'
)
_UNKNOWN_MEMBER: Final = re.compile(r'Could not find key "(.+?)" in struct')


class Sql:
    """See the module. Setting: query."""

    class_name = f"{OWN_PACKAGE}Sql"

    def __init__(self, config: Mapping[str, str]) -> None:
        self._select = selects.prepare(required(config, "query"))
        self._connection: Any = None

    def close(self) -> None:
        """Releases the database."""
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def apply(self, rows: Rows) -> Rows:
        """See `Transform.apply`."""
        nulls = rows.value.is_null()
        present = np.flatnonzero(~nulls)
        if not len(present):
            return rows
        failures: dict[int, DataError] = {}
        parts: list[tuple[Positions, pa.Table]] = []
        self._select_from(rows, present, parts, failures)
        if failures:
            raise RowsFailedError(failures)
        origins = np.concatenate([origin for origin, _ in parts])
        values = pa.concat_tables([table for _, table in parts]).combine_chunks()
        fields = [self._field(rows, field) for field in values.schema]
        struct = pa.StructArray.from_arrays(
            [_whole(values.column(place)) for place in range(len(fields))], fields=fields
        )
        order, column = _with_nulls(origins, struct, np.flatnonzero(nulls))
        field = pa.field("value", struct.type, nullable=bool(nulls.any()))
        return rows.take(order).with_side(False, Typed(field, column))

    def _select_from(
        self,
        rows: Rows,
        places: Positions,
        parts: list[tuple[Positions, pa.Table]],
        failures: dict[int, DataError],
    ) -> None:
        """Runs the query over some rows; by halves where it fails, so that others don't fail with one."""
        import duckdb

        try:
            origins, table = self._run(rows.take(places))
        except (duckdb.Error, pa.ArrowException) as error:
            if len(places) == 1 or _concerns_all(error):
                failures.update(dict.fromkeys(places.tolist(), DataError(_told(error, rows.value), reason="SQL")))
                return
            middle = len(places) // 2
            self._select_from(rows, places[:middle], parts, failures)
            self._select_from(rows, places[middle:], parts, failures)
        except DataError as error:
            failures.update(dict.fromkeys(places.tolist(), error))
        else:
            parts.append((places[origins], table))

    def _run(self, rows: Rows) -> tuple[Positions, pa.Table]:
        """Returns the answer, with the place of the record that each of its rows comes from."""
        connection = self._database()
        connection.register("given", self._table(rows))
        try:
            connection.execute(_FILL)
        finally:
            connection.unregister("given")
        relation = connection.sql(self._select.sql)
        for name, kind in zip(relation.columns[:-1], relation.types[:-1], strict=True):
            _check_type(name, str(kind))
        answer = relation.to_arrow_table()
        origins = np.asarray(answer.column(answer.num_columns - 1).combine_chunks(), np.int64)
        names = relation.columns[:-1]
        if len(set(names)) < len(names):
            raise DataError(f"The query has several columns of one name: {', '.join(names)}", reason="SQL")
        arrays = [_whole(answer.column(place)) for place in range(len(names))]
        converted = [array.cast(_connect_type(name, array.type)) for name, array in zip(names, arrays, strict=True)]
        table = pa.table(converted, names=list(names))
        order = np.argsort(origins, kind="stable")
        return origins[order], table if (order == np.arange(len(order))).all() else table.take(pa.array(order))

    def _database(self) -> Any:
        if self._connection is None:
            import duckdb

            settings: dict[str, str | bool | int | float | list[str]] = {
                "threads": 1,
                "memory_limit": MEMORY_MAX,
                "enable_external_access": False,
            }
            self._connection = duckdb.connect(":memory:", config=settings)
            self._connection.execute("SET TimeZone = 'UTC'")
            self._connection.execute("SET lock_configuration = true")
        return self._connection

    def _table(self, rows: Rows) -> pa.Table:
        side = rows.value
        if isinstance(side, Loose):
            names, arrays = ["value"], [side.column_of()[1].storage]
        elif side.is_struct:
            names = [field.name for field in side.field.type]
            arrays = list(side.column.flatten())
        else:
            names, arrays = ["value"], [side.column]
        folded = [name.lower() for name in names]
        if selects.ROW in folded or len(set(folded)) < len(folded):
            raise DataError(
                f"Sql can't tell the fields apart: names are equal whatever their case, and {selects.ROW} is taken",
                reason="SQL",
            )
        for name in self._select.record_columns:
            if name in folded:
                raise DataError(f"The value has a field {name}, which is what a query names the record's own by")
            array = _record_column(rows, selects.RECORD_COLUMNS[name])
            names.append(name)
            arrays.append(array)
        if any(pa.types.is_decimal256(array.type) for array in arrays):
            raise DataError("Sql has no decimals of more than 38 digits", reason="SQL")
        return pa.table([_bare(array) for array in arrays], names=names)

    def _field(self, rows: Rows, field: pa.Field) -> pa.Field:
        """A field that comes out as it went in keeps its documentation, its default and its logical name."""
        side = rows.value
        if isinstance(side, Typed) and side.is_struct:
            place = side.field.type.get_field_index(field.name)
            if place >= 0 and _bare_type(side.field.type[place].type) == field.type:
                return side.field.type[place].with_nullable(True)
        return field


def _record_column(rows: Rows, name: str) -> pa.Array:
    if name == "key":
        key = rows.key
        return key.column_of()[1].storage if isinstance(key, Loose) else key.column
    column = rows.rest.column(name)
    return pa.nulls(len(rows)) if column is None else column


def _with_nulls(origins: Positions, struct: pa.StructArray, nulls: Positions) -> tuple[Positions, pa.Array]:
    """Puts rows that are null among the others, in the order of their records."""
    if not len(nulls):
        return origins, struct
    together = np.concatenate([origins, nulls])
    order = np.argsort(together, kind="stable")
    column = pa.concat_arrays([struct, pa.nulls(len(nulls), struct.type)])
    return together[order], column.take(pa.array(order))


def _told(error: Exception, side: Side) -> str:
    """What went wrong, in a sentence; what a query names and a record lacks is told with what there is."""
    text = str(error)
    first = text.splitlines()[0] if text else type(error).__name__
    unknown = _UNKNOWN_COLUMN.search(first)
    if unknown is not None:
        name = unknown[1] or unknown[2]
        if isinstance(side, Loose):
            return (
                f"There is no column {name}: a value without a schema is the one column value, JSON text, and its "
                f"members are taken out of it, as value->>'$.{name}' does"
            )
        names = ", ".join(field.name for field in side.field.type) if side.is_struct else "value"
        return f"The value has no field {name}; it has {names or 'no field at all'}"
    inner = _UNKNOWN_MEMBER.search(first)
    if inner is not None:
        there = text.partition("Candidate Entries: ")[2].replace('"', "").strip()
        return f"A struct that the query looks into has no field {inner[1]}" + (f"; it has {there}" if there else "")
    return first


def _concerns_all(error: Exception) -> bool:
    """Whether the query doesn't fit the schema, so that no record would fare better alone."""
    import duckdb

    return isinstance(error, duckdb.BinderException | duckdb.CatalogException | duckdb.ParserException)


def _check_type(name: str, kind: str) -> None:
    for refused in _REFUSED_TYPES:
        if refused in kind.replace('"', " ").replace("(", " ").replace(")", " ").replace("[", " ").split():
            raise DataError(
                f"The column {name} is of the type {kind}, which Kafka Connect does not have: cast it, say to VARCHAR",
                reason="SQL",
            )


def _connect_type(name: str, kind: pa.DataType) -> pa.DataType:
    """Returns the type that a column of DuckDB has in Kafka Connect's model.

    Raises:
        DataError: There is none that would hold its values.
    """
    if kind in _SAME or pa.types.is_decimal128(kind):
        return kind
    if pa.types.is_large_string(kind) or pa.types.is_string_view(kind):
        return pa.string()
    if pa.types.is_large_binary(kind) or pa.types.is_binary_view(kind):
        return pa.binary()
    if pa.types.is_time(kind):
        return pa.time32("ms")
    if pa.types.is_timestamp(kind):
        return TIMESTAMP_TYPE
    if pa.types.is_map(kind):
        return pa.map_(_connect_type(name, kind.key_type), _connect_type(name, kind.item_type))
    if pa.types.is_list(kind) or pa.types.is_large_list(kind):
        return pa.list_(_connect_type(name, kind.value_type))
    if pa.types.is_struct(kind):
        return pa.struct([pa.field(field.name, _connect_type(name, field.type)) for field in kind])
    raise DataError(
        f"The column {name} is of the type {kind}, which Kafka Connect does not have: cast it", reason="SQL"
    )


def _whole(column: pa.ChunkedArray) -> pa.Array:
    joined = column.combine_chunks()
    return joined.chunk(0) if isinstance(joined, pa.ChunkedArray) else joined


def _bare(array: pa.Array) -> pa.Array:
    bare = _bare_type(array.type)
    return array if bare.equals(array.type, check_metadata=True) else array.cast(bare)


def _bare_type(kind: pa.DataType) -> pa.DataType:
    """The type with the metadata of its fields left out, which would only be in the way."""
    if pa.types.is_struct(kind):
        return pa.struct([pa.field(field.name, _bare_type(field.type)) for field in kind])
    if pa.types.is_map(kind):
        return pa.map_(_bare_type(kind.key_type), _bare_type(kind.item_type))
    if pa.types.is_list(kind):
        return pa.list_(_bare_type(kind.value_type))
    return kind
