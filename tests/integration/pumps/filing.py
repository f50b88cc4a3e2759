"""A sink that appends to a file what it was given when it is flushed. For the pump's tests."""

from __future__ import annotations

import os
from pathlib import Path

from wherry.sdk import Config, ErrorClass, Record, RowError, Sink, key, serve


class FilingConfig(Config):
    file: str = key(doc="File to append to.")
    refuse: str = key(default="", doc="Value that is refused.")


class Filing(Sink[FilingConfig]):
    """Appends values, a line each."""

    class_name, version = "test.Filing", "1"

    def open(self, task: object) -> None:
        self.waiting: list[str] = []

    def write(self, records: list[Record]) -> list[RowError] | None:
        errors = []
        for row, record in enumerate(records):
            if self.config.refuse and str(record.value) == self.config.refuse:
                errors.append(RowError(row, ErrorClass.SCHEMA, "REFUSED", "", "It is refused by name."))
            else:
                self.waiting.append(f"{record.kafka_partition}:{record.value}")
        return errors

    def flush(self, final: bool) -> None:
        with Path(self.config.file).open("a", encoding="utf-8") as file:
            file.writelines(f"{line}\n" for line in self.waiting)
            file.flush()
            os.fsync(file.fileno())
        self.waiting = []


if __name__ == "__main__":
    serve(Filing)
