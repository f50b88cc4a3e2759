"""For long chaos: a source that counts, with transactions of its own where asked."""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa

from wherry.sdk import (
    Batch,
    CaughtUp,
    Config,
    Mark,
    Offsets,
    Plan,
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


if __name__ == "__main__":
    serve(Counting)
