"""The table sink: one table for each topic in a DuckDB or SQLite file, with positions in the same transaction."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa

from wherry.contract.batch import RowError
from wherry.contract.description import SinkClass
from wherry.contract.errors import ConnectorBugError, FencedError
from wherry.contract.position import Position, compact_json
from wherry.sdk import Batch, Config, Sink, SinkTask, key
from wherry_table.files import POSITIONS, TableFile, open_file, quoted
from wherry_table.rows import rows_of

GATHERED_BYTES_MAX = 8 << 20
# What a source sends in one piece at most before the engine lets it go on without a position, and a little more.
UNMARKED_BYTES_MAX = 80 << 20
SUFFIXES_OF_SQLITE = (".sqlite", ".sqlite3", ".db")


class TableConfig(Config):
    """Keys of this connector."""

    database: str = key(doc="File that holds the tables; made if it isn't there.", importance="high", non_empty=True)
    format: str = key(
        default="auto",
        doc="Kind of file; auto goes by its name: .sqlite, .sqlite3 and .db are SQLite, others DuckDB.",
        one_of=("auto", "duckdb", "sqlite"),
    )
    table_name_format: str = key(
        default="${topic}", doc="Name of the table; ${topic} stands for the topic.", non_empty=True
    )


class _Shared:
    """The one connection to a file that all tasks of the process use in turn."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.file: TableFile | None = None
        self.users = 0
        self.holders: dict[str, object] = {}
        """Who writes a partition: the stream opened last. One that a dead worker left behind may be there still."""


_shared = _Shared()


class TableSink(Sink[TableConfig]):
    """Writes records into tables of a DuckDB or SQLite file, exactly once."""

    class_name = "wherry.table.TableSink"
    aliases = ("TableSink", "Table")
    sink_class = SinkClass.TRANSACTIONAL
    _is_open = False

    @classmethod
    def validate(cls, config: TableConfig, connect: bool) -> Mapping[str, str]:
        """The file's folder must be there."""
        path = Path(config.database)
        if not path.is_absolute():
            return {"database": f"{path} is not an absolute path; a sidecar has no working directory of yours."}
        if not path.parent.is_dir():
            return {"database": f"There is no folder {path.parent}; create it, or name another file."}
        return {}

    def open(self, task: SinkTask) -> Iterable[Position]:
        """Opens the file and tells the positions in it."""
        self._pipeline = task.pipeline
        self._gathered: list[tuple[str, pa.RecordBatch]] = []
        self._gathered_bytes = 0
        self._reached: dict[str, Position] = {}
        with _shared.lock:
            if _shared.file is None:
                _shared.file = open_file(self.config.database, _kind_of(self.config))
            _shared.users += 1
            self._is_open = True
            stored = _shared.file.execute(
                f"SELECT partition, position FROM {POSITIONS} WHERE pipeline = ?", (self._pipeline,)
            )
            mine = {compact_json(partition) for partition in task.partitions}
            _shared.holders |= dict.fromkeys(mine, self)
        return [Position(partition, position) for partition, position in stored if partition in mine]

    def write_batch(self, batch: Batch) -> list[RowError]:
        """Gathers rows: a transaction for each batch would take longer than the rows."""
        errors: list[RowError] = []
        for topic, first, part in _by_topic(batch):
            rows = rows_of(part, first)
            errors += rows.errors
            if rows.columns.num_rows:
                self._gathered.append((self.config.table_name_format.replace("${topic}", topic), rows.columns))
                self._gathered_bytes += rows.columns.nbytes
        self._reached |= {mark.position.partition: mark.position for mark in batch.marks}
        # Rows that no mark covers yet are pieces of a batch that was cut: written out alone they would come again after
        # a crash. They wait for their mark, as long as there is room.
        if self._gathered_bytes >= (GATHERED_BYTES_MAX if batch.marks else UNMARKED_BYTES_MAX):
            self._write_out()
        return errors

    def flush(self, final: bool) -> None:
        """Writes out what was gathered."""
        self._write_out()

    @classmethod
    def alter_offsets(
        cls,
        config: TableConfig,
        offsets: Sequence[tuple[Mapping[str, Any], Mapping[str, Any] | None]],
        validate_only: bool,
    ) -> bool:
        """Positions in the file win over the engine's, so an operator's change has to reach them."""
        if validate_only or not Path(config.database).exists():
            return not validate_only
        pipeline = config.originals.get("name", "")
        with _shared.lock:
            file = _shared.file or open_file(config.database, _kind_of(config))
            try:
                with file.transaction():
                    for partition, offset in offsets:
                        position = Position.of(partition, offset)
                        if position.offset is None:
                            file.execute(
                                f"DELETE FROM {POSITIONS} WHERE pipeline = ? AND partition = ?",
                                (pipeline, position.partition),
                            )
                        else:
                            file.execute(
                                f"INSERT OR REPLACE INTO {POSITIONS} VALUES (?, ?, ?)",
                                (pipeline, position.partition, position.offset),
                            )
            finally:
                if file is not _shared.file:
                    file.close()
        return True

    def _write_out(self) -> None:
        """Writes the gathered rows and their positions in one transaction."""
        if not self._gathered and not self._reached:
            return
        with _shared.lock:
            file = self._file()
            self._require_held(self._reached)
            with file.transaction():
                for table, rows in self._gathered:
                    self._insert(file, table, rows)
                for position in self._reached.values():
                    file.execute(
                        f"INSERT OR REPLACE INTO {POSITIONS} VALUES (?, ?, ?)",
                        (self._pipeline, position.partition, position.offset),
                    )
        self._gathered, self._gathered_bytes, self._reached = [], 0, {}

    def _require_held(self, partitions: Iterable[str]) -> None:
        if lost := [p for p in partitions if _shared.holders.setdefault(p, self) is not self]:
            raise FencedError(f"A newer stream writes {lost[0]} of {self._pipeline}.")

    def close(self) -> None:
        """The last task closes the file, so that others can read it."""
        with _shared.lock:
            if not self._is_open:
                return
            self._is_open = False
            _shared.users -= 1
            if _shared.users == 0 and _shared.file is not None:
                _shared.file.close()
                _shared.file = None

    def _file(self) -> TableFile:
        if _shared.file is None:
            raise ConnectorBugError("The file was closed while a task was writing.")
        return _shared.file

    def _insert(self, file: TableFile, table: str, rows: pa.RecordBatch) -> None:
        known = file.columns(table)
        columns = [f"{quoted(field.name)} {file.type_of(field.type)}" for field in rows.schema]
        if not known:
            file.execute(f"CREATE TABLE {quoted(table)} ({', '.join(columns)})")
        else:
            for name, column in zip(rows.schema.names, columns, strict=True):
                if name not in known:
                    file.execute(f"ALTER TABLE {quoted(table)} ADD COLUMN {column}")
        file.insert(table, rows)


def _kind_of(config: TableConfig) -> str:
    if config.format != "auto":
        return config.format
    return "sqlite" if Path(config.database).suffix.lower() in SUFFIXES_OF_SQLITE else "duckdb"


def _by_topic(batch: Batch) -> Iterator[tuple[str, int, Batch]]:
    """Runs of rows of one topic."""
    for topic, first, count in batch.topic_runs():
        if topic is None:
            raise ConnectorBugError("The records have no topic, so no table can be named.")
        yield topic, first, batch if count == batch.num_rows else Batch.of(batch.slice(first, count))
