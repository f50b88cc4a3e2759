"""A source of splits: ranges of numbers, a position after every tenth."""

from __future__ import annotations

from collections.abc import Iterator

from wherry.sdk import Config, Offsets, Plan, Record, Source, Split, Work, key, serve


class RangesConfig(Config):
    topic: str = key(doc="Topic to write to.", importance="high")
    splits: int = key(default=3, min=1, doc="Number of ranges.")
    size: int = key(default=50, min=1, doc="Numbers in each.")


class Ranges(Source[RangesConfig]):
    """Emits ranges of numbers."""

    class_name, version, splits = "wherry.test.RangesSource", "0.1.0", True

    def plan(self, offsets: Offsets, max_tasks: int) -> Plan:
        left = [n for n in range(self.config.splits) if self._done(offsets, n) < self.config.size]
        return Plan(splits=[Split(str(n), data=n, partitions=[{"range": n}]) for n in left], complete=True)

    def read(self, work: Work, offsets: Offsets) -> Iterator[Record]:
        for n in range(self._done(offsets, work.data), self.config.size):
            done = {"partition": {"range": work.data}, "offset": {"done": n + 1}}
            marked = (n + 1) % 10 == 0 or n + 1 == self.config.size
            yield Record(work.data * self.config.size + n, **(done if marked else {}))

    def _done(self, offsets: Offsets, number: int) -> int:
        return (offsets.get({"range": number}) or {"done": 0})["done"]


if __name__ == "__main__":
    serve(Ranges)
