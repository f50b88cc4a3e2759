"""Names, types and statements of PostgreSQL tables. Pure: texts and Arrow types in, texts and Arrow types out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import pyarrow as pa

from wherry_jdbc.settings import Settings

# Arrow types that COPY can write in binary to a column of the type, after a cast where it isn't this one already.
DIRECT: Mapping[str, pa.DataType] = {
    "smallint": pa.int16(),
    "integer": pa.int32(),
    "bigint": pa.int64(),
    "real": pa.float32(),
    "double precision": pa.float64(),
    "boolean": pa.bool_(),
    "text": pa.string(),
    "character varying": pa.string(),
    "character": pa.string(),
    "bytea": pa.binary(),
    "date": pa.date32(),
    "timestamp without time zone": pa.timestamp("us"),
    "timestamp with time zone": pa.timestamp("us", "UTC"),
}


@dataclass(frozen=True, slots=True)
class TableName:
    """A table, with its schema where one is given."""

    schema: str | None
    table: str

    @property
    def sql(self) -> str:
        """The name, quoted."""
        return ".".join(quoted(part) for part in (self.schema, self.table) if part)


@dataclass(frozen=True, slots=True)
class Column:
    """A column as it is, or as it should be."""

    name: str
    type: str
    nullable: bool = True

    @property
    def arrow(self) -> pa.DataType | None:
        """What binary COPY needs; None when the value has to be written as text and cast by the server."""
        return DIRECT.get(self.type.partition("(")[0])


def quoted(name: str) -> str:
    """Quotes an identifier; any text is safe."""
    return '"' + name.replace('"', '""') + '"'


def table_name(topic: str, settings: Settings) -> TableName:
    """The table that the records of a topic go to."""
    if mapped := settings.table_by_topic.get(topic):
        text = mapped
    else:
        inner = topic.replace(".", "_") if settings.dots_to_underscores else topic
        text = settings.table_format.replace("${topic}", inner)
    if settings.fold_case:
        text = text.lower()
    schema, dot, table = text.partition(".")
    if dot and schema and table:
        return TableName(_unquoted(schema), _unquoted(table))
    return TableName(None, _unquoted(text))


def column_name(field: str, settings: Settings) -> str:
    """The column that a field goes to."""
    return field.lower() if settings.fold_case else field


def column_type(arrow: pa.DataType) -> str:
    """PostgreSQL type of a column created for values of an Arrow type; nested values become jsonb."""
    exact = {
        pa.int8(): "smallint",
        pa.int16(): "smallint",
        pa.int32(): "integer",
        pa.int64(): "bigint",
        pa.uint8(): "smallint",
        pa.uint16(): "integer",
        pa.uint32(): "bigint",
        pa.float32(): "real",
        pa.float64(): "double precision",
        pa.bool_(): "boolean",
        pa.string(): "text",
        pa.large_string(): "text",
        pa.binary(): "bytea",
        pa.large_binary(): "bytea",
        pa.date32(): "date",
    }
    if arrow in exact:
        return exact[arrow]
    if pa.types.is_timestamp(arrow):
        return "timestamp without time zone"
    if pa.types.is_time(arrow):
        return "time without time zone"
    if pa.types.is_decimal(arrow):
        return "numeric"
    return "text" if pa.types.is_null(arrow) else "jsonb"


def create_statement(name: TableName, columns: Sequence[Column], key: Sequence[str]) -> str:
    """CREATE TABLE with its primary key."""
    parts = [f"{quoted(c.name)} {c.type}{'' if c.nullable and c.name not in key else ' NOT NULL'}" for c in columns]
    if key:
        parts.append(f"PRIMARY KEY ({', '.join(map(quoted, key))})")
    return f"CREATE TABLE IF NOT EXISTS {name.sql} ({', '.join(parts)})"


def add_columns_statement(name: TableName, columns: Sequence[Column]) -> str:
    """ALTER TABLE; a new column is nullable, whatever the schema says, because old rows have no value for it."""
    return f"ALTER TABLE {name.sql} " + ", ".join(
        f"ADD COLUMN IF NOT EXISTS {quoted(c.name)} {c.type}" for c in columns
    )


def stage_statement(stage: str, columns: Sequence[Column]) -> str:
    """CREATE TEMP TABLE that takes rows by binary COPY: types COPY can't write are text here."""
    parts = ", ".join(
        f"{quoted(c.name)} {c.type.partition('(')[0] if c.arrow is not None else 'text'}" for c in columns
    )
    return f"CREATE TEMP TABLE IF NOT EXISTS {quoted(stage)} ({parts}) ON COMMIT DELETE ROWS"


def insert_from_stage(name: TableName, stage: str, columns: Sequence[Column]) -> str:
    """INSERT … SELECT, cast to the table's types."""
    names = ", ".join(quoted(c.name) for c in columns)
    return f"INSERT INTO {name.sql} ({names}) SELECT {', '.join(map(_cast, columns))} FROM {quoted(stage)}"


def upsert_from_stage(name: TableName, stage: str, columns: Sequence[Column], key: Sequence[str]) -> str:
    """INSERT … ON CONFLICT … DO UPDATE; DO NOTHING when the key is all there is."""
    others = [c.name for c in columns if c.name not in key]
    action = ", ".join(f"{quoted(n)} = EXCLUDED.{quoted(n)}" for n in others)
    conflict = f" ON CONFLICT ({', '.join(map(quoted, key))}) DO "
    return insert_from_stage(name, stage, columns) + conflict + (f"UPDATE SET {action}" if others else "NOTHING")


def update_from_stage(name: TableName, stage: str, columns: Sequence[Column], key: Sequence[str]) -> str:
    """UPDATE … FROM: rows that aren't there stay away."""
    action = ", ".join(f"{quoted(c.name)} = {_cast(c, 's')}" for c in columns if c.name not in key)
    where = " AND ".join(f"t.{quoted(c.name)} = {_cast(c, 's')}" for c in columns if c.name in key)
    return f"UPDATE {name.sql} AS t SET {action} FROM {quoted(stage)} AS s WHERE {where}"


def delete_from_stage(name: TableName, stage: str, key: Sequence[Column]) -> str:
    """DELETE … USING."""
    where = " AND ".join(f"t.{quoted(c.name)} = {_cast(c, 's')}" for c in key)
    return f"DELETE FROM {name.sql} AS t USING {quoted(stage)} AS s WHERE {where}"


def _cast(column: Column, alias: str = "") -> str:
    name = f"{alias}.{quoted(column.name)}" if alias else quoted(column.name)
    return name if column.arrow is not None else f"{name}::{column.type}"


def _unquoted(text: str) -> str:
    return text[1:-1].replace('""', '"') if len(text) > 1 and text[0] == text[-1] == '"' else text
