"""A sink that asks for everything a sink may ask for: rewinds, pauses, back-off. For the pump's tests.

It writes a line per record as soon as it comes, so that the file tells the order of what the engine sent.
"""

from __future__ import annotations

import json
import time
from pathlib import Path

from wherry.sdk import Config, ErrorClass, Position, Record, RowError, Sink, key, serve


class MoodyConfig(Config):
    file: str = key(doc="File to append to.")
    rewind_at: str = key(default="", doc="Value at which it goes back to the beginning, once.")
    pause_at: str = key(default="", doc="Value at which its partition is paused.")
    resume_at: str = key(default="", doc="Value, of another partition, at which all go on.")
    backoff_at: str = key(default="", doc="Value after which nothing may come for a while, once.")
    backoff_ms: int = key(default=1500, doc="How long.")
    refuse_once: str = key(default="", doc="Value that fails the first time and may be offered again.")


class Moody(Sink[MoodyConfig]):
    """Appends `partition:value time`, a line each."""

    class_name, version = "test.Moody", "1"

    def open(self, task: object) -> None:
        self.done: set[str] = set()

    def write(self, records: list[Record]) -> list[RowError] | None:
        errors = []
        with Path(self.config.file).open("a", encoding="utf-8") as file:
            for row, record in enumerate(records):
                value = "null" if record.value is None else str(record.value)
                if value == self.config.refuse_once and self._first("refuse"):
                    errors.append(RowError(row, ErrorClass.TRANSIENT, "BUSY", "", "Locked by another."))
                    continue
                file.write(f"{record.kafka_partition}:{value[:40]}:{len(value)} {time.monotonic()}\n")
                self._ask(record, value)
        return errors

    def _ask(self, record: Record, value: str) -> None:
        config = self.config
        partition = {"kafka_topic": record.topic, "kafka_partition": record.kafka_partition}
        if value == config.rewind_at and self._first("rewind"):
            place = json.dumps(partition, separators=(",", ":"))
            self.rewind([Position(place, '{"kafka_offset":0}')])
        if value == config.pause_at:
            self.pause([partition])
        if value == config.resume_at:
            self.pause([])
        if value == config.backoff_at and self._first("backoff"):
            self.backoff(config.backoff_ms, "Too much at once.")

    def _first(self, what: str) -> bool:
        first = what not in self.done
        self.done.add(what)
        return first


if __name__ == "__main__":
    serve(Moody)
