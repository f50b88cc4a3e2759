"""A source, batch by batch: splits of numbers as Arrow columns."""

import pyarrow as pa

from wherry.sdk import Batch, Config, Mark, Offsets, Plan, Source, Split, Work, key, serve


class RangesConfig(Config):
    topic: str = key(doc="Topic to write to.", importance="high")
    splits: int = key(default=4, min=1, doc="Pieces of a hundred thousand numbers each.")


class Ranges(Source[RangesConfig]):
    """Emits a hundred thousand numbers per split."""

    class_name, version, splits = "wherry.example.RangesSource", "0.1.0", True

    def plan(self, offsets: Offsets, max_tasks: int) -> Plan:
        left = [n for n in range(self.config.splits) if offsets.get({"split": n}) is None]
        return Plan(splits=[Split(str(n), data=n) for n in left], complete=True)

    def read(self, work: Work, offsets: Offsets):
        numbers = pa.arange(work.data * 100_000, (work.data + 1) * 100_000)
        yield Batch(value=numbers, marks=[Mark(100_000, {"split": work.data}, {"done": True})])


if __name__ == "__main__":
    serve(Ranges)
