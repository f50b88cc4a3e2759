"""Small connectors that the SDK's tests drive."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, ClassVar

import pyarrow as pa

from wherry.sdk import (
    Batch,
    CaughtUp,
    Config,
    ConfigError,
    Flushed,
    Mark,
    Offsets,
    Plan,
    Position,
    Record,
    RecordRejectedError,
    RowError,
    Secret,
    Sink,
    SinkClass,
    SinkTask,
    Source,
    Split,
    Target,
    Task,
    Work,
    key,
)


class LinesConfig(Config):
    topic: str = key(default="lines")
    count: int = key(default=10)
    password: Secret | None = key(default=None)
    script: str = key(default="", doc="What the test wants.")


class Lines(Source[LinesConfig]):
    """Yields what a test's script says; `yielded` and `calls` tell what happened."""

    class_name = "test.Lines"
    aliases = ("Lines",)
    splits = True
    watches = True
    scripts: ClassVar[dict[str, Any]] = {}
    yielded: ClassVar[list[Any]] = []
    calls: ClassVar[list[Any]] = []

    def plan(self, offsets: Offsets, max_tasks: int) -> Plan:
        if self.config.script == "splits":
            return Plan(splits=[Split(str(n), data=n) for n in range(3)], complete=True)
        return Plan(tasks=[Task(data={"n": n}, config={"n": str(n)}) for n in range(min(max_tasks, 2))])

    def read(self, work: Work, offsets: Offsets) -> Iterator[Any]:
        script = self.scripts[self.config.script or "count"]
        for item in script(self, work, offsets):
            self.yielded.append(item)
            yield item

    def committed(self, positions: Sequence[Position]) -> None:
        self.calls.append(("committed", [position.offset_map for position in positions]))

    def stop(self) -> None:
        self.calls.append("stop")

    def on_delete(self) -> None:
        self.calls.append("on_delete")

    def probe(self) -> str:
        return "It is there."

    @classmethod
    def validate(cls, config: LinesConfig, connect: bool) -> Mapping[str, str]:
        if connect and config.password is not None:
            return {"password": f"The server refuses {config.password.reveal()}."}
        return {"count": "Must be even."} if config.count % 2 else {}

    @classmethod
    def alter_offsets(cls, config: LinesConfig, offsets: Sequence[tuple[Any, Any]], validate_only: bool) -> bool:
        if any(offset == {"n": -1} for _, offset in offsets):
            raise ConfigError("Offsets start at 0.", key="n")
        cls.calls.append(("alter", offsets, validate_only))
        return True


def count(source: Lines, work: Work, offsets: Offsets) -> Iterator[Any]:
    start = (offsets.get({"p": 0}) or {"n": 0})["n"]
    for n in range(start, source.config.count):
        yield Record(str(n), partition={"p": 0}, offset={"n": n + 1})


def follow(source: Lines, work: Work, offsets: Offsets) -> Iterator[Any]:
    yield from count(source, work, offsets)
    while not source.stopping:
        yield CaughtUp(50)
        source.wait(0.01)


def endless(source: Lines, work: Work, offsets: Offsets) -> Iterator[Any]:
    n = 0
    while True:
        n += 1
        yield Record("x" * 100, partition={"p": 0}, offset={"n": n})


def endless_batches(source: Lines, work: Work, offsets: Offsets) -> Iterator[Any]:
    n = 0
    while True:
        n += 1
        yield Batch(value=pa.array(["x" * 1000] * 100), marks=[Mark(100, {"p": 0}, {"n": n})])


def stuck(source: Lines, work: Work, offsets: Offsets) -> Iterator[Any]:
    yield Record("before")
    threading.Event().wait(90)


def rejected(source: Lines, work: Work, offsets: Offsets) -> Iterator[Any]:
    yield Record("a", partition={"p": 0}, offset={"n": 1})
    yield RecordRejectedError("Line 2 is bad.", reason="BAD_LINE", raw=b"\xff")
    yield Mark(0, {"p": 0}, {"n": 2})
    yield Record("c", partition={"p": 0}, offset={"n": 3})


def mixed(source: Lines, work: Work, offsets: Offsets) -> Iterator[Any]:
    yield Record("text", key="k")
    yield Record({"a": 1})
    yield Record(b"bytes", headers={"h": "v"}, timestamp_ms=5, topic="other", kafka_partition=2)
    yield Record({"a": 1}, schema=pa.struct([("a", pa.int32())]), key=7, key_schema=pa.int64())
    yield Record(None, key="k")


Lines.scripts.update(
    count=count, follow=follow, endless=endless, endless_batches=endless_batches, stuck=stuck, rejected=rejected,
    mixed=mixed, splits=count,
)  # fmt: skip


# How long a sink of these scripts takes over a batch, in seconds; one that is "held" waits until it is let.
WAITS_S = {"slow": 0.5}


class BasketConfig(Config):
    script: str = key(default="")


class Basket(Sink[BasketConfig]):
    """Keeps what it is given; rows "bad" fail, rows "late" fail at the flush, rows "skip" are filtered."""

    class_name = "test.Basket"
    sink_class = SinkClass.TWO_PHASE
    rows: ClassVar[list[Any]] = []
    calls: ClassVar[list[Any]] = []
    let: ClassVar[threading.Event] = threading.Event()
    late: list[tuple[int, RowError]]

    @classmethod
    def validate(cls, config: BasketConfig, connect: bool) -> dict[str, str]:
        return {"script": "It clashes."} if config.script == "clash" else {}

    @classmethod
    def sink_class_of(cls, config: BasketConfig) -> SinkClass:
        if config.script == "clash":
            raise ConfigError("It clashes.", key="script")
        return cls.sink_class

    def open(self, task: SinkTask) -> list[Position] | None:
        self.late = []
        self.calls.append(("open", task.pipeline, task.task, list(task.partitions)))
        if self.config.script == "open":
            raise ConfigError("No such table.", key="table")
        return [Position.of({"p": 0}, {"n": 5})]

    def write(self, records: list[Record]) -> list[RowError]:
        script = self.config.script
        if script == "raise":
            raise ZeroDivisionError("by nothing")
        if script in WAITS_S:
            self.wait(WAITS_S[script])
        if script == "held":
            assert self.let.wait(60)
        errors = []
        for row, record in enumerate(records):
            if record.value == "bad":
                errors.append(RowError.of(row, RecordRejectedError("It is bad.", reason="BAD")))
            elif record.value == "late":
                self.late.append((self.batch_seq, RowError.of(row, RecordRejectedError("It was bad.", reason="LATE"))))
            elif record.value == "skip":
                self.filtered(1)
            else:
                self.rows.append(record)
        if script == "account":
            self.filtered(1000)
        if script == "twice":
            errors *= 2
        if script == "tell":
            self.backoff(100, "Too fast.")
            self.rewind([Position.of({"p": 0}, {"n": 1})])
            self.pause([{"p": 0}])
        return errors

    def flush(self, final: bool) -> Flushed | list[Position] | None:
        self.calls.append(("flush", final))
        for seq, error in self.late:
            self.reject(seq, [error])
        self.late = []
        if self.config.script == "less":
            return [Position.of({"p": 0}, {"n": 1})]
        return Flushed(token=b"token") if self.config.script == "token" else None

    def partitions_changed(self, partitions: Sequence[Mapping[str, Any]]) -> None:
        self.calls.append(("partitions", list(partitions)))

    def close(self) -> None:
        self.calls.append("close")

    def commit(self, tokens: Sequence[bytes], positions: Sequence[Position]) -> bool:
        self.calls.append(("commit", list(tokens)))
        return True

    def ensure_target(self, topic: str, schema: pa.Schema | None, dry_run: bool) -> Target:
        return Target(f'"{topic}"', ("Create it.",) if dry_run else (), schema)


def forget() -> None:
    """Clears what earlier tests left in the classes."""
    for kept in (Lines.yielded, Lines.calls, Basket.rows, Basket.calls):
        kept.clear()
