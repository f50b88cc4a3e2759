"""Sources that write exactly once: what they are given, and what a reader of committed records sees of them."""

from __future__ import annotations

import json
import uuid
from pathlib import Path
from typing import Any

from tests.chaos.flows import JSON, QUIET, STRING, parse
from tests.support.rest import Rest
from tests.support.topics import create_topic

ROWS, PAUSE_S = 20, 0.04
HURRYING = {"rows": "1000", "pause": "0"}
FILE_ROWS = 600
SPLIT_BYTES = 1024


def committed_reader(bootstrap: str, topic: str) -> Any:
    """A consumer of a topic's only partition, from its beginning."""
    from confluent_kafka import Consumer, TopicPartition

    reader = Consumer({
        "bootstrap.servers": bootstrap, "group.id": "unused", "enable.auto.commit": False,
        "isolation.level": "read_committed", **QUIET,
    })  # fmt: skip
    reader.assign([TopicPartition(topic, 0, 0)])
    return reader


class Counted:
    """The counting source, in one of the kinds of transaction."""

    partitions, exactly_once = 1, True

    def __init__(self, boundary: str, bootstrap: str, total: int) -> None:
        self.name = f"count-{boundary}-{uuid.uuid4().hex[:6]}"
        self._boundary, self._total = boundary, total
        self._topic = create_topic(bootstrap, self.name)
        self._reader = committed_reader(bootstrap, self._topic)
        self._seen: list[int] = []

    def config(self) -> dict[str, str]:
        config = {
            "connector.class": "wherry.chaos.CountingSource", "topic": self._topic, "count": str(self._total),
            "rows": str(ROWS), "pause": str(PAUSE_S), "tasks.max": "1", "value.converter": STRING,
            "transaction.boundary": self._boundary,
        }  # fmt: skip
        if self._boundary == "interval":
            config |= {"transaction.boundary.interval.ms": "300", "offsets.storage.topic": f"own-{self.name}"}
        return config

    def feed(self, start: int, stop: int) -> None:
        """It feeds itself."""

    def delivered(self) -> int:
        for message in self._reader.consume(100_000, 0):
            if message.error() is None:
                self._seen.append(parse(message.value() or b"")[1])
        return len(self._seen)

    def committed(self, rest: Rest) -> dict[int, int]:
        return {0: max((offset["n"] for _, offset in rest.offsets(self.name) if offset is not None), default=0)}

    def arrived(self) -> dict[int, list[int]]:
        self.delivered()
        return {0: self._seen}

    def close(self) -> None:
        self._reader.close()


class Spooled:
    """Files of a folder, each cut into splits that two tasks share: work that goes from one worker to another."""

    partitions, exactly_once = 1, True

    def __init__(self, bootstrap: str, folder: Path, total: int) -> None:
        self.name = f"spool-{uuid.uuid4().hex[:6]}"
        self._total = total
        self._topic = create_topic(bootstrap, self.name, partitions=1)
        self._reader = committed_reader(bootstrap, self._topic)
        self._seen: list[int] = []
        self._folders = [folder / f"{self.name}-{part}" for part in ("in", "bad", "new")]
        for each in self._folders:
            each.mkdir()
        self._filed = 0

    def config(self) -> dict[str, str]:
        inbox, bad, _ = self._folders
        return {
            "connector.class": "wherry.spooldir.SpoolDirSource", "topic": self._topic, "tasks.max": "2",
            "input.path": str(inbox), "error.path": str(bad), "cleanup.policy": "delete", "csv.types": "n:long",
            "split.bytes": str(SPLIT_BYTES), "offsets.storage.topic": f"own-{self.name}",
            "value.converter": JSON, "value.converter.schemas.enable": "false",
            "transaction.boundary": "interval", "transaction.boundary.interval.ms": "300",
        }  # fmt: skip

    def feed(self, start: int, stop: int) -> None:
        """Files are whole from the moment they are there."""
        while stop - self._filed >= FILE_ROWS or (stop == self._total and self._filed < stop):
            numbers = range(self._filed, min(stop, self._filed + FILE_ROWS))
            inbox, _, new = self._folders
            fresh = new / f"{self._filed:09d}.csv"
            fresh.write_text("n\n" + "".join(f"{number}\n" for number in numbers))
            fresh.rename(inbox / fresh.name)
            self._filed = numbers.stop

    def delivered(self) -> int:
        for message in self._reader.consume(100_000, 0):
            if message.error() is None:
                self._seen.append(json.loads(message.value() or b"")["n"])
        return len(self._seen)

    def committed(self, rest: Rest) -> dict[int, int]:
        return {0: 0}  # by splits, not by numbers

    def arrived(self) -> dict[int, list[int]]:
        """Splits are read side by side, so the numbers have no order."""
        self.delivered()
        return {0: sorted(self._seen)}

    def close(self) -> None:
        self._reader.close()
