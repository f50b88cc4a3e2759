"""A transactional sink, as small as one can be: rows and the positions after them in one SQLite transaction."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable

from wherry.contract.batch import RowError
from wherry.contract.description import SinkClass
from wherry.contract.position import Position
from wherry.sdk import Batch, Config, Sink, SinkTask, key, serve


class LedgerConfig(Config):
    """Keys of this connector."""

    file: str = key(doc="The database.")
    eager: bool = key(default=False, doc="Whether to store rows before the mark that covers them, which is wrong.")


class Ledger(Sink[LedgerConfig]):
    """Stores rows once."""

    class_name, aliases, version = "wherry.example.LedgerSink", (), "0.1.0"
    sink_class = SinkClass.TRANSACTIONAL

    def open(self, task: SinkTask) -> Iterable[Position]:
        """Tells the positions stored."""
        self._waiting: list[str] = []
        self._reached: dict[str, str | None] = {}
        self._database = sqlite3.connect(self.config.file, check_same_thread=False)
        self._database.execute("CREATE TABLE IF NOT EXISTS entries (entry TEXT)")
        self._database.execute("CREATE TABLE IF NOT EXISTS positions (partition TEXT PRIMARY KEY, position TEXT)")
        return [Position(*stored) for stored in self._database.execute("SELECT partition, position FROM positions")]

    def write_batch(self, batch: Batch) -> list[RowError]:
        """Keeps rows until a mark covers them."""
        self._waiting += [str(value) for value in batch.value.to_pylist()]
        self._reached |= {mark.position.partition: mark.position.offset for mark in batch.marks}
        if batch.marks or self.config.eager:
            self._store()
        return []

    def flush(self, final: bool) -> None:
        """Stores what waits."""
        self._store()

    def close(self) -> None:
        """Lets go of the database."""
        self._database.close()

    def _store(self) -> None:
        with self._database:
            self._database.executemany("INSERT INTO entries VALUES (?)", [(entry,) for entry in self._waiting])
            self._database.executemany("REPLACE INTO positions VALUES (?, ?)", list(self._reached.items()))
        self._waiting.clear()


if __name__ == "__main__":
    serve(Ledger)
