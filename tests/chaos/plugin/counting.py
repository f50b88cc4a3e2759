"""For long chaos: a source that counts, with transactions of its own where asked, and a sink in two phases."""

from __future__ import annotations

import os
import uuid
from collections.abc import Iterator, Sequence
from pathlib import Path

import pyarrow as pa

from wherry.sdk import (
    Batch,
    CaughtUp,
    Config,
    Flushed,
    Mark,
    Offsets,
    Plan,
    Position,
    Record,
    Sink,
    SinkClass,
    Source,
    Task,
    Work,
    key,
    serve,
)

PARTITION = {"count": 0}


class CountingConfig(Config):
    topic: str = key(doc="Topic to write to.", importance="high")
    count: int = key(default=1_000, type="long", doc="Numbers to give.")
    rows: int = key(default=20, doc="Rows of a batch.")
    pause: float = key(default=0.02, doc="Seconds between batches.")


class Counting(Source[CountingConfig]):
    """Counts from zero, and ends a transaction after each batch where the connector may."""

    class_name, version = "wherry.chaos.CountingSource", "0.1.0"
    transaction_boundaries, parkable = True, False

    def plan(self, offsets: Offsets, max_tasks: int) -> Plan:
        return Plan(tasks=[Task(partitions=[PARTITION])])

    def read(self, work: Work, offsets: Offsets) -> Iterator[Batch | CaughtUp]:
        start = int((offsets.get(PARTITION) or {"n": 0})["n"])
        while start < self.config.count and not self.stopping:
            end = min(start + self.config.rows, self.config.count)
            values = pa.array([f"0-{number:09d}" for number in range(start, end)])
            yield Batch(value=values, topic=self.config.topic, marks=[Mark(end - start, PARTITION, {"n": end})])
            start = end
            self.wait(self.config.pause)
        while not self.stopping:
            yield CaughtUp()
            self.wait(0.1)


class StagingConfig(Config):
    folder: str = key(doc="Folder with the folders staged and done.", importance="high")


class Staging(Sink[StagingConfig]):
    """A flush writes a file that nobody sees, a commit moves it to where it is seen."""

    class_name, version, sink_class = "wherry.chaos.StagingSink", "0.1.0", SinkClass.TWO_PHASE

    def open(self, task: object) -> None:
        self.lines: list[str] = []

    def write(self, records: list[Record]) -> None:
        self.lines += [f"{record.value}\n" for record in records]

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
        folder, again = Path(self.config.folder), True
        for token in tokens:
            staged = folder / "staged" / token.decode()
            if staged.exists():
                staged.rename(folder / "done" / token.decode())
                again = False
        return again


if __name__ == "__main__":
    serve(Counting, Staging)
