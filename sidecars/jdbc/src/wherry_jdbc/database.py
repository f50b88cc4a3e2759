"""A connection to PostgreSQL through ADBC, with errors by what happens next.

One for each task; never shared between threads.
"""

from __future__ import annotations

from collections.abc import Sequence
from types import TracebackType
from typing import Any

import adbc_driver_manager
import adbc_driver_postgresql.dbapi
import pyarrow as pa

from wherry.contract.errors import (
    AuthError,
    ConfigError,
    ConnectorBugError,
    SchemaError,
    TransientError,
    WherryError,
)
from wherry_jdbc.tables import Column, TableName

# Classes of SQLSTATE, its first two letters, by what the engine should do.
DATA_CLASSES = frozenset(("22", "23"))
TRANSIENT_CLASSES = frozenset(("08", "40", "53", "55", "57", "58"))
ERROR_BY_CLASS: dict[str, type[WherryError]] = {
    "28": AuthError,
    "3D": ConfigError,
    "42": SchemaError,
    "0A": SchemaError,
}

COLUMNS_QUERY = """
SELECT a.attname, format_type(a.atttypid, a.atttypmod), NOT a.attnotnull
FROM pg_attribute a WHERE a.attrelid = to_regclass($1) AND a.attnum > 0 AND NOT a.attisdropped
AND a.attgenerated = '' ORDER BY a.attnum
"""


class RowsRefusedError(Exception):
    """The server refused at least one row for its content; the transaction has to go back to a savepoint."""

    def __init__(self, message: str, sqlstate: str) -> None:
        super().__init__(message)
        self.sqlstate = sqlstate


class Database:
    """One connection; a transaction is open from the first statement to commit or rollback.

    NB: the transaction is said in SQL and the driver is left in autocommit mode, because the driver's own transactions
    refuse to go back to a savepoint after an error.
    """

    def __init__(self, uri: str) -> None:
        """Connects.

        Args:
            uri: libpq connection string; never shown in errors, it may hold a password.

        Raises:
            WherryError: AUTH, CONFIG or TRANSIENT, by the server's answer.
        """
        try:
            self._connection = adbc_driver_postgresql.dbapi.connect(uri, autocommit=True)
        except adbc_driver_manager.Error as error:
            raise _connect_error(error) from None
        self._cursor = self._connection.cursor()
        self._open = False

    def __enter__(self) -> Database:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()

    def execute(self, sql: str, parameters: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
        """Runs one statement and returns its rows.

        Raises:
            RowsRefusedError: The content of a row was refused.
            WherryError: Everything else.
        """
        try:
            self._begin()
            self._cursor.execute(sql, tuple(parameters) or None)
            return list(self._cursor.fetchall()) if self._cursor.description else []
        except adbc_driver_manager.Error as error:
            raise _error(error) from None

    def copy(self, table: TableName, rows: pa.RecordBatch, *, temporary: bool = False) -> None:
        """Writes rows by binary COPY.

        Raises:
            RowsRefusedError: The content of a row was refused.
            WherryError: Everything else.
        """
        try:
            self._begin()
            self._cursor.adbc_ingest(
                table.table,
                rows,
                mode="append",
                temporary=temporary,
                db_schema_name=None if temporary else table.schema,
            )
        except adbc_driver_manager.Error as error:
            raise _error(error) from None

    def commit(self) -> None:
        """Commits; when the connection breaks meanwhile nobody knows the outcome, and the stored positions tell."""
        if not self._open:
            return
        self._open = False
        try:
            self._cursor.execute("COMMIT")
        except adbc_driver_manager.Error as error:
            failure = _error(error)
            raise TransientError(str(failure)) if isinstance(failure, RowsRefusedError) else failure from None

    def rollback(self) -> None:
        """Gives the transaction up; a broken connection has done so already."""
        if not self._open:
            return
        self._open = False
        try:
            self._cursor.execute("ROLLBACK")
        except adbc_driver_manager.Error:
            return

    def _begin(self) -> None:
        if not self._open:
            self._cursor.execute("BEGIN")
            self._open = True

    def columns(self, table: TableName) -> list[Column]:
        """The columns of a table; none when it doesn't exist."""
        return [Column(name, kind, nullable) for name, kind, nullable in self.execute(COLUMNS_QUERY, (table.sql,))]

    def exists(self, table: TableName) -> bool:
        """Whether a table is there, be it without any column."""
        return bool(self.execute("SELECT to_regclass($1) IS NOT NULL", (table.sql,))[0][0])

    def lock(self, name: str) -> None:
        """Waits until no other task changes tables; ends with the transaction."""
        self.execute("SELECT pg_advisory_xact_lock(hashtext($1))", (name,))

    def version(self) -> str:
        """The server's version."""
        return str(self.execute("SELECT current_setting('server_version')")[0][0])

    def close(self) -> None:
        """Closes the connection; an open transaction is given up."""
        for part in (self._cursor, self._connection):
            try:
                part.close()
            except adbc_driver_manager.Error:
                continue


def _sentence(error: adbc_driver_manager.Error) -> str:
    """The server's own words, without the driver's prefix and context lines."""
    text = str(error)
    for marker in ("ERROR:", "FATAL:"):
        if marker in text:
            text = text.split(marker, 1)[1]
    return text.strip().splitlines()[0].removesuffix(".").strip()


def _error(error: adbc_driver_manager.Error) -> RowsRefusedError | WherryError:
    state = (error.sqlstate or "").strip("\x00 ")
    if not state:
        return TransientError(f"the connection to the database broke: {_sentence(error)}")
    if state[:2] in DATA_CLASSES:
        return RowsRefusedError(_detailed(error), state)
    if state[:2] in TRANSIENT_CLASSES:
        return TransientError(f"the database can't do it now: {_sentence(error)} (SQLSTATE {state})")
    kind = ERROR_BY_CLASS.get(state[:2], ConnectorBugError)
    return kind(f"the database refused: {_sentence(error)} (SQLSTATE {state})")


def _detailed(error: adbc_driver_manager.Error) -> str:
    detail = [line.removeprefix("DETAIL:").strip() for line in str(error).splitlines() if line.startswith("DETAIL:")]
    return ". ".join([_sentence(error), *detail])


def _connect_error(error: adbc_driver_manager.Error) -> WherryError:
    text = _sentence(error)
    lowered = text.lower()
    if "password" in lowered or "authentication" in lowered or "role" in lowered or "pg_hba" in lowered:
        return AuthError(f"the database refused the login: {text}")
    if "database" in lowered and "does not exist" in lowered:
        return ConfigError(f"connection.url names a database that isn't there: {text}", key="connection.url")
    if "invalid" in lowered and ("option" in lowered or "parameter" in lowered or "uri" in lowered):
        return ConfigError(f"connection.url can't be understood: {text}", key="connection.url")
    return TransientError(f"the database can't be reached: {text}")
