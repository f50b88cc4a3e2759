"""A source that counts, quickly, and goes on from its offset. For the pump's tests."""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa

from wherry.sdk import Batch, CaughtUp, Config, Mark, Offsets, Source, Work, key, serve


class CountingConfig(Config):
    topic: str = key(doc="Topic to write to.")
    count: int = key(default=1_000, type="long", doc="Numbers to emit.")
    rows: int = key(default=500, doc="Rows of a batch.")
    mark_every: int = key(default=0, doc="Numbers between marks; 0 marks the end of each batch.")
    size: int = key(default=0, doc="Characters each number is padded to.")
    pause: float = key(default=0.0, doc="Seconds between batches.")


class Counting(Source[CountingConfig]):
    """Counts from zero."""

    class_name, version = "test.Counting", "1"

    def read(self, work: Work, offsets: Offsets) -> Iterator[Batch | CaughtUp]:
        start = (offsets.get({"p": 0}) or {"n": 0})["n"]
        for first in range(start, self.config.count, self.config.rows):
            if self.stopping:
                return
            end = min(first + self.config.rows, self.config.count)
            values = pa.array([str(number).ljust(self.config.size) for number in range(first, end)])
            every = self.config.mark_every
            ends = (
                [n for n in range(first + 1, end + 1) if n % every == 0 or n == self.config.count] if every else [end]
            )
            marks = [Mark(n - first, {"p": 0}, {"n": n}) for n in ends]
            yield Batch(value=values, topic=self.config.topic, marks=marks)
            if self.config.pause:
                self.wait(self.config.pause)
        while not self.stopping:
            yield CaughtUp()
            self.wait(0.1)


if __name__ == "__main__":
    serve(Counting)
