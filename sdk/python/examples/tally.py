"""A sink, batch by batch: adds up."""

import pyarrow.compute as pc

from wherry.sdk import Batch, Config, Sink, serve


class Tally(Sink[Config]):
    """Adds up numbers."""

    class_name, version, total = "wherry.example.TallySink", "0.1.0", 0

    def write_batch(self, batch: Batch) -> None:
        self.total += pc.sum(batch.value).as_py() or 0

    def flush(self, final: bool) -> None:
        self.metric("tally.total", self.total)
        self.log.info("Added up", total=self.total)


if __name__ == "__main__":
    serve(Tally)
