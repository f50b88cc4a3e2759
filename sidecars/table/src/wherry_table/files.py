"""The two kinds of file, behind one Protocol. A file is written by one thread at a time; the caller holds the lock."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, date, datetime, time
from decimal import Decimal
from typing import Any, Protocol

import orjson
import pyarrow as pa

from wherry.contract.errors import ConfigError, TransientError

POSITIONS = "wherry_positions"
SCHEMA_OF_POSITIONS = "(pipeline VARCHAR, partition VARCHAR, position VARCHAR, PRIMARY KEY (pipeline, partition))"


class TableFile(Protocol):
    """A file of tables."""

    def transaction(self) -> Any:
        """A context in which everything is written or nothing."""
        ...

    def execute(self, sql: str, parameters: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
        """Runs one statement."""
        ...

    def columns(self, table: str) -> set[str]:
        """Names of a table's columns; none when it isn't there."""
        ...

    def type_of(self, arrow: pa.DataType) -> str:
        """Type of a column for values of an Arrow type."""
        ...

    def insert(self, table: str, rows: pa.RecordBatch) -> None:
        """Appends rows; their columns exist."""
        ...

    def close(self) -> None:
        """Closes the file."""
        ...


def open_file(path: str, kind: str) -> TableFile:
    """Opens a file, made if it isn't there.

    Args:
        path: Where it is.
        kind: `duckdb` or `sqlite`.

    Raises:
        ConfigError: The file can't be opened, or is something else.
        TransientError: Another process is writing to it.
    """
    return DuckFile(path) if kind == "duckdb" else SqliteFile(path)


def quoted(name: str) -> str:
    """Quotes an identifier; any text is safe."""
    return '"' + name.replace('"', '""') + '"'


class DuckFile:
    """A DuckDB file: Arrow goes in as it is."""

    def __init__(self, path: str) -> None:
        """Opens the file."""
        import duckdb  # a heavy import that SQLite users need not bear

        self._error = duckdb.Error
        try:
            self._connection = duckdb.connect(path)
        except duckdb.Error as error:
            text = str(error).splitlines()[0]
            if "lock" in text.lower():
                raise TransientError(f"{path} is in use by another process: {text}") from None
            raise ConfigError(f"{path} can't be opened as a DuckDB file: {text}", key="database") from None
        self._connection.execute(f"CREATE TABLE IF NOT EXISTS {POSITIONS} {SCHEMA_OF_POSITIONS}")

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """Everything or nothing."""
        try:
            self._connection.begin()
            yield
            self._connection.commit()
        except BaseException as error:
            with suppress(self._error):  # it may be gone with the error itself
                self._connection.rollback()
            if isinstance(error, self._error):
                raise TransientError(f"the file refused the rows: {str(error).splitlines()[0]}") from None
            raise

    def execute(self, sql: str, parameters: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
        """Runs one statement."""
        return list(self._connection.execute(sql, list(parameters)).fetchall())

    def columns(self, table: str) -> set[str]:
        """Names of a table's columns."""
        query = "SELECT column_name FROM information_schema.columns WHERE table_name = ?"
        return {row[0] for row in self.execute(query, (table,))}

    def type_of(self, arrow: pa.DataType) -> str:
        """DuckDB's type."""
        if pa.types.is_timestamp(arrow):
            return "TIMESTAMPTZ" if arrow.tz else "TIMESTAMP"
        if pa.types.is_decimal(arrow):
            return f"DECIMAL({min(arrow.precision, 38)},{arrow.scale})"
        return _duck_type(arrow)

    def insert(self, table: str, rows: pa.RecordBatch) -> None:
        """Appends rows."""
        arrays = [_nested_as_json(rows.column(i)) for i in range(rows.num_columns)]
        incoming = pa.Table.from_arrays(arrays, names=rows.schema.names)
        self._connection.register("incoming", incoming)
        try:
            self._connection.execute(f"INSERT INTO {quoted(table)} BY NAME SELECT * FROM incoming")
        finally:
            self._connection.unregister("incoming")

    def close(self) -> None:
        """Closes the file."""
        self._connection.close()


class SqliteFile:
    """An SQLite file: rows go in as tuples."""

    def __init__(self, path: str) -> None:
        """Opens the file."""
        try:
            self._connection = sqlite3.connect(path, isolation_level=None, check_same_thread=False, timeout=30)
            self._connection.execute("PRAGMA journal_mode=WAL")
            self._connection.execute(f"CREATE TABLE IF NOT EXISTS {POSITIONS} {SCHEMA_OF_POSITIONS}")
        except sqlite3.Error as error:
            raise ConfigError(f"{path} can't be opened as an SQLite file: {error}", key="database") from None

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """Everything or nothing."""
        try:
            self._connection.execute("BEGIN IMMEDIATE")
            yield
            self._connection.execute("COMMIT")
        except BaseException as error:
            if self._connection.in_transaction:
                self._connection.execute("ROLLBACK")
            if isinstance(error, sqlite3.Error):
                raise TransientError(f"the file refused the rows: {error}") from None
            raise

    def execute(self, sql: str, parameters: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
        """Runs one statement."""
        return list(self._connection.execute(sql, parameters).fetchall())

    def columns(self, table: str) -> set[str]:
        """Names of a table's columns."""
        return {row[1] for row in self.execute(f"PRAGMA table_info({quoted(table)})")}

    def type_of(self, arrow: pa.DataType) -> str:
        """SQLite's affinity."""
        if pa.types.is_integer(arrow) or pa.types.is_boolean(arrow):
            return "INTEGER"
        if pa.types.is_floating(arrow):
            return "REAL"
        return "BLOB" if pa.types.is_binary(arrow) else "TEXT"

    def insert(self, table: str, rows: pa.RecordBatch) -> None:
        """Appends rows."""
        names = rows.schema.names
        holes = ", ".join("?" * len(names))
        columns = [map(_sqlite_value, rows.column(i).to_pylist()) for i in range(len(names))]
        self._connection.executemany(
            f"INSERT INTO {quoted(table)} ({', '.join(map(quoted, names))}) VALUES ({holes})",
            zip(*columns, strict=True),
        )

    def close(self) -> None:
        """Closes the file."""
        self._connection.close()


def _duck_type(arrow: pa.DataType) -> str:
    exact = {
        pa.bool_(): "BOOLEAN",
        pa.int8(): "TINYINT",
        pa.int16(): "SMALLINT",
        pa.int32(): "INTEGER",
        pa.int64(): "BIGINT",
        pa.float32(): "FLOAT",
        pa.float64(): "DOUBLE",
        pa.binary(): "BLOB",
        pa.date32(): "DATE",
        pa.time32("ms"): "TIME",
    }
    if pa.types.is_nested(arrow):
        return "JSON"
    return exact.get(arrow, "VARCHAR")


def _nested_as_json(array: pa.Array) -> pa.Array:
    if not pa.types.is_nested(array.type):
        return array
    texts = [None if v is None else orjson.dumps(v, default=str).decode() for v in array.to_pylist()]
    return pa.array(texts, pa.string())


def _sqlite_value(value: Any) -> Any:
    match value:
        case None | str() | bytes() | float() | int():
            return value
        case datetime():
            return value.astimezone(UTC).isoformat() if value.tzinfo else value.isoformat()
        case date() | time():
            return value.isoformat()
        case Decimal():
            return str(value)
        case _:
            return orjson.dumps(value, default=str).decode()
