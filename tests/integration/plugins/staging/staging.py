"""Sinks for tests. A two-phase one: a flush stages a file nobody sees, a commit moves it to where it is seen.

Its commit can be told to hang, before or after it has moved the file, so that a test can kill whoever asked for it.
And one that takes bytes as they are.
"""

from __future__ import annotations

import os
import time
import uuid
from collections.abc import Sequence
from pathlib import Path

from wherry.sdk import Config, Flushed, Position, Record, Sink, SinkClass, key, serve

HANG_S = 15.0


class StagingConfig(Config):
    folder: str = key(doc="Folder with the folders staged and done.", importance="high")


class Staging(Sink[StagingConfig]):
    """Writes a file for each flush."""

    class_name, version, sink_class = "wherry.test.StagingSink", "0.1.0", SinkClass.TWO_PHASE

    def open(self, task: object) -> None:
        self.lines: list[str] = []

    def write(self, records: list[Record]) -> None:
        self.lines += [f"{record.kafka_partition}:{record.value}\n" for record in records]

    def flush(self, final: bool) -> Flushed:
        if not self.lines:
            return Flushed()
        name = uuid.uuid4().hex
        with (Path(self.config.folder) / "staged" / name).open("w") as file:
            file.writelines(self.lines)
            file.flush()
            os.fsync(file.fileno())
        self.lines = []
        return Flushed(token=name.encode())

    def commit(self, tokens: Sequence[bytes], positions: Sequence[Position]) -> bool:
        folder = Path(self.config.folder)
        self._hang("before")
        again = True
        for token in tokens:
            staged = folder / "staged" / token.decode()
            if staged.exists():
                staged.rename(folder / "done" / token.decode())
                again = False
        self._hang("after")
        return again

    def _hang(self, moment: str) -> None:
        order = Path(self.config.folder) / f"hang-{moment}"
        if order.exists():
            order.rename(order.with_name(f"hanging-{moment}"))
            time.sleep(HANG_S)


class PlainConfig(Config):
    file: str = key(doc="File to append to.", importance="high")


class Plain(Sink[PlainConfig]):
    """Shows the bytes it gets."""

    class_name, version, raw = "wherry.test.PlainSink", "0.1.0", True

    def write(self, records: list[Record]) -> None:
        with Path(self.config.file).open("a") as file:
            file.writelines(f"{(record.key, record.value, record.headers)}\n" for record in records)


if __name__ == "__main__":
    serve(Staging, Plain)
