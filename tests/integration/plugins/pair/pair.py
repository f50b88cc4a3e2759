"""A source of numbers and a sink that appends them to a file, for tests of leases without Kafka."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

from wherry.sdk import CaughtUp, Config, Offsets, Record, Sink, Source, Work, key, serve

STEP = 20


class NumberConfig(Config):
    count: int = key(default=100, doc="Numbers to give before there are no more.")
    follow: bool = key(default=False, doc="Wait for more at the end instead of ending.")
    rate: int = key(default=0, doc="Numbers a second; 0 means as fast as can be.")
    hold: str = key(default="", doc="Work and number, as in a line, that comes when there is a file at `until`.")
    until: str = key(default="", doc="Path of a file.")


class Numbers(Source[NumberConfig]):
    class_name, version, splits = "wherry.test.NumberSource", "0.1.0", True

    def read(self, work: Work, offsets: Offsets) -> Iterator[Record | CaughtUp]:
        partition = {"numbers": work.id}
        start = (offsets.get(partition) or {"n": 0})["n"]
        for number in range(start + 1, self.config.count + 1):
            if self.config.rate and number % STEP == 0:
                self.wait(STEP / self.config.rate)
            while f"{work.id} {number}" == self.config.hold and not Path(self.config.until).exists():
                self.wait(0.02)
                if self.stopping:
                    return
            if self.stopping:
                return
            yield Record(f"{work.id} {number}", topic="numbers", partition=partition, offset={"n": number})
        while self.config.follow and not self.stopping:
            yield CaughtUp()
            self.wait(0.1)


class FileConfig(Config):
    file: str = key(doc="File to append to.", importance="high")


class File(Sink[FileConfig]):
    class_name, version = "wherry.test.FileSink", "0.1.0"

    def write(self, records: list[Record]) -> None:
        with Path(self.config.file).open("a") as file:
            file.writelines(f"{record.value}\n" for record in records)
        time.sleep(0)


if __name__ == "__main__":
    serve(Numbers, File)
