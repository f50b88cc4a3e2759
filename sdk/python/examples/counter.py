"""A source, row by row: counts."""

from wherry.sdk import Config, Offsets, Record, Source, Work, key, serve


class CounterConfig(Config):
    topic: str = key(doc="Topic to write to.", importance="high")
    count: int = key(default=10, type="long", min=0, doc="Numbers to emit.")


class Counter(Source[CounterConfig]):
    """Counts from one."""

    class_name, aliases, version = "wherry.example.CounterSource", ("Counter",), "0.1.0"

    def read(self, work: Work, offsets: Offsets):
        start = (offsets.get({"counter": 0}) or {"n": 0})["n"]
        for n in range(start + 1, self.config.count + 1):
            yield Record({"n": n}, key=str(n), partition={"counter": 0}, offset={"n": n})


if __name__ == "__main__":
    serve(Counter)
