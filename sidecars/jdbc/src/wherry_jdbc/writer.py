"""Writes batches of one task into tables.

One transaction for a batch, with its positions; bad rows are found by halving.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence

import pyarrow as pa
import pyarrow.compute as pc

from wherry.contract.batch import Batch, RowError
from wherry.contract.errors import ErrorClass, RecordRejectedError, SchemaError
from wherry.contract.position import Position
from wherry_jdbc import tables
from wherry_jdbc.database import Database, RowsRefusedError
from wherry_jdbc.positions import PositionTable
from wherry_jdbc.rows import Rows, cast, rows_of
from wherry_jdbc.settings import InsertMode, Settings
from wherry_jdbc.tables import Column, TableName

STAGE = "wherry_stage"
KNOWN_TABLES_MAX = 10_000


class TableWriter:
    """Writes to the tables of one connection."""

    def __init__(self, database: Database, settings: Settings, positions: PositionTable | None) -> None:
        """A writer that stores positions with the rows when it is given a table for them."""
        self._database = database
        self._settings = settings
        self._positions = positions
        self._known: dict[TableName, list[Column]] = {}
        self._stages: dict[tuple[Column, ...], str] = {}

    def write(self, batch: Batch | None, reached: Iterable[Position] = (), *, commit: bool = True) -> list[RowError]:
        """Writes a batch and positions in one transaction.

        Args:
            batch: The rows; None writes only positions.
            reached: The position of each partition after these rows.
            commit: Whether the transaction ends; otherwise it goes on with the next batch.

        Returns:
            The rows that can't be written; all others are.

        Raises:
            WherryError: Nothing of the batch was written, nor of those whose transaction it went on with.
        """
        errors: list[RowError] = []
        try:
            for topic, first, part in _by_topic(batch, self._settings.rows_per_copy_max) if batch else ():
                errors += self._write_part(topic, part, first)
            if self._positions:
                self._positions.store(reached)
            if commit:
                self._database.commit()
        except BaseException:
            self._database.rollback()
            # What a rolled-back transaction made isn't there any more.
            self._known.clear()
            self._stages.clear()
            raise
        return errors

    def ensure(self, topic: str, wanted: Sequence[Column], key: Sequence[str]) -> tuple[TableName, list[str]]:
        """Creates or widens the table of a topic where that is allowed.

        Returns:
            The table, and what was done.

        Raises:
            SchemaError: The table can't take the columns and may not be changed.
        """
        name = tables.table_name(topic, self._settings)
        found = self._columns(name)
        if not found and not self._database.exists(name):
            if not self._settings.create:
                raise SchemaError(
                    f"table {name.sql} doesn't exist; create it, or set auto.create=true (schema.evolution=basic)"
                )
            return name, [self._change(name, tables.create_statement(name, wanted, key))]
        names = {column.name for column in found}
        missing = [column for column in wanted if column.name not in names]
        if not missing:
            return name, []
        if not self._settings.evolve:
            raise SchemaError(
                f"table {name.sql} has no column {', '.join(c.name for c in missing)}; add it, or set "
                "auto.evolve=true (schema.evolution=basic)"
            )
        return name, [self._change(name, tables.add_columns_statement(name, missing))]

    def columns(self, topic: str) -> list[Column]:
        """The columns of a topic's table as it is; none when it doesn't exist."""
        return self._columns(tables.table_name(topic, self._settings))

    def _write_part(self, topic: str, part: Batch, first: int) -> list[RowError]:
        """Rows of one topic; halved when one of them can't even become a row."""
        try:
            rows = rows_of(part, self._settings, lambda: self.columns(topic))
        except RecordRejectedError as error:
            if part.num_rows == 1:
                return [RowError(first, ErrorClass.SCHEMA, "NOT_A_ROW", message=str(error))]
            half = part.num_rows // 2
            left = self._write_part(topic, part.slice(0, half), first)
            return left + self._write_part(topic, part.slice(half, part.num_rows - half), first + half)
        name, _ = self.ensure(topic, rows.table_columns(), rows.key)
        by_key = bool(rows.key) and (self._settings.insert_mode is not InsertMode.INSERT or self._settings.deletes)
        if by_key:
            rows = rows.last_by_key()
        columns = [column for column in self._columns(name) if column.name in rows.columns.schema.names]
        errors: list[RowError] = []
        for statement, chosen in self._plan(name, rows, columns):
            errors += self._halving(chosen, statement, first)
        return errors

    def _plan(
        self, name: TableName, rows: Rows, columns: list[Column]
    ) -> Iterator[tuple[Callable[[Rows], None], Rows]]:
        """The ways in which the rows go: deleted, copied, merged. Stages are made here, before any savepoint."""
        gone = (
            [i for i, deleted in enumerate(rows.deleted.to_pylist()) if deleted] if pc.any(rows.deleted).as_py() else []
        )
        if gone:
            key = [column for column in columns if column.name in rows.key]
            yield self._staged(key, lambda stage: tables.delete_from_stage(name, stage, key)), rows.take(gone)
            rows = rows.take(sorted(set(range(len(rows.index))) - set(gone)))
        if not rows.index:
            return
        mode = self._settings.insert_mode
        if mode is InsertMode.INSERT and all(column.arrow is not None for column in columns):
            yield (lambda some: self._database.copy(name, cast(some, columns))), rows
            return
        merge = {
            InsertMode.INSERT: lambda stage: tables.insert_from_stage(name, stage, columns),
            InsertMode.UPSERT: lambda stage: tables.upsert_from_stage(name, stage, columns, rows.key),
            InsertMode.UPDATE: lambda stage: tables.update_from_stage(name, stage, columns, rows.key),
        }[mode]
        yield self._staged(columns, merge), rows

    def _halving(self, rows: Rows, write: Callable[[Rows], None], first: int) -> list[RowError]:
        """Writes rows; when the server refuses one, halves until it stands alone."""
        self._database.execute("SAVEPOINT wherry")
        try:
            write(rows)
        except (RowsRefusedError, RecordRejectedError, pa.ArrowInvalid, pa.ArrowTypeError) as error:
            self._database.execute("ROLLBACK TO SAVEPOINT wherry")
            self._database.execute("RELEASE SAVEPOINT wherry")
            if len(rows.index) == 1:
                reason = f"SQLSTATE_{error.sqlstate}" if isinstance(error, RowsRefusedError) else "DOES_NOT_FIT"
                return [RowError(first + rows.index[0], ErrorClass.SCHEMA, reason, message=str(error))]
            half = len(rows.index) // 2
            left = self._halving(rows.slice(0, half), write, first)
            return left + self._halving(rows.slice(half, len(rows.index) - half), write, first)
        self._database.execute("RELEASE SAVEPOINT wherry")
        return []

    def _staged(self, columns: list[Column], merge: Callable[[str], str]) -> Callable[[Rows], None]:
        """A way to write: copy into a stage, then one statement from there."""
        stage = self._stage(columns)

        def write(rows: Rows) -> None:
            self._database.copy(TableName(None, stage), cast(rows, columns), temporary=True)
            self._database.execute(merge(stage))
            self._database.execute(f"TRUNCATE {tables.quoted(stage)}")

        return write

    def _stage(self, columns: list[Column]) -> str:
        shape = tuple(columns)
        if shape not in self._stages:
            name = f"{STAGE}_{abs(hash(shape)):x}"
            self._database.execute(tables.stage_statement(name, columns))
            self._stages[shape] = name
        return self._stages[shape]

    def _columns(self, name: TableName) -> list[Column]:
        if name not in self._known:
            if len(self._known) >= KNOWN_TABLES_MAX:
                self._known.clear()
            found = self._database.columns(name)
            if not found:
                return []
            self._known[name] = found
        return self._known[name]

    def _change(self, name: TableName, statement: str) -> str:
        """Runs a statement that changes a table, one task at a time; it commits with the rows."""
        self._database.lock(name.sql)
        self._database.execute(statement)
        self._known.pop(name, None)
        return statement


def _by_topic(batch: Batch, rows_max: int) -> Iterator[tuple[str, int, Batch]]:
    """Runs of rows of one topic, none longer than the limit."""
    for topic, start, length in batch.topic_runs():
        if topic is None:
            raise SchemaError("the records have no topic, so no table can be named")
        for first in range(start, start + length, rows_max):
            count = min(rows_max, start + length - first)
            yield topic, first, batch.slice(first, count) if count < batch.num_rows else batch
