"""The pump and a destination that stores positions with the rows of every frame, and may be killed between any two."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import pyarrow as pa
import pytest

from wherry.contract.batch import Batch, Constants, Mark, of_value
from wherry.contract.errors import TransientError
from wherry.contract.position import Position, kafka_position, parse_kafka_position
from wherry.worker import pump
from wherry.worker.convert.registry import converters_of
from wherry.worker.convert.step import ToConnect
from wherry.worker.endpoints import Flushed, Remaining
from wherry.worker.pipeline import Pipeline
from wherry.worker.policy import LeasePolicy
from wherry.worker.signals import Signals
from wherry.worker.tolerance import GivenUp
from wherry.worker.transform.registry import chain_of
from wherry.worker.transform.step import Transforms

KINDS = ["int8", "string", "int8", "int8", "double", "string", "string", "int8", "boolean", "int8"]
SPLIT = {
    "transforms": "a",
    "transforms.a.type": "org.apache.kafka.connect.transforms.RegexRouter",
    "transforms.a.regex": ".*",
    "transforms.a.replacement": "other",
}


def envelope(number: int, kind: str) -> bytes:
    payload = {"string": str(number), "boolean": bool(number % 2)}.get(kind, number)
    return json.dumps({"schema": {"type": kind, "optional": False}, "payload": payload}).encode()


RECORDS = [envelope(number, kind) for number, kind in enumerate(KINDS * 3)]


class Topic:
    """A `Reader` of one partition, in batches of seven records."""

    def __init__(self, offset: int) -> None:
        self.offset = offset
        self.trouble, self.lag, self.finished = "", None, False

    @property
    def caught_up(self) -> bool:
        return self.offset == len(RECORDS)

    def poll(self, timeout_s: float) -> Batch | None:
        values = RECORDS[self.offset : self.offset + 7]
        if not values:
            return None
        constants = Constants("t", 0, self.offset)
        self.offset += len(values)
        mark = Mark(len(values), kafka_position("t", 0, self.offset))
        return of_value(pa.array(values, pa.binary()), constants=constants, marks=[mark])

    def pause(self, partitions: Sequence[str]) -> None: ...

    def committed(self, positions: Sequence[Position]) -> None: ...

    def drain(self, deadline_s: float) -> None: ...


class Database:
    """A `Writer` that makes every frame durable with its positions; `dies_after` frames it takes no more."""

    def __init__(self) -> None:
        self.rows: list[Any] = []
        self.topics: set[str | None] = set()
        self.offset = 0
        self.dies_after = 0
        self.trouble, self.needs_flush, self.stored = "", False, ()

    def ready(self, timeout_s: float) -> bool:
        return True

    def write(self, batch: Batch, raw: Batch) -> None:
        if not self.dies_after:
            raise TransientError("Killed.")
        self.dies_after -= 1
        self.rows += batch.value.to_pylist()
        self.topics.update(batch.topics())
        for mark in batch.marks:
            offset = parse_kafka_position(mark.position)[1] or 0
            assert offset >= self.offset, "a position went back"
            self.offset = offset

    def flush(self, remaining: Remaining, *, final: bool = False) -> Flushed:
        return Flushed()

    def failed_rows(self) -> list[Any]:
        return []

    def rewinds(self) -> tuple[Position, ...]:
        return ()

    def paused_partitions(self) -> tuple[str, ...]:
        return ()


class Nothing:
    """Tolerance and reporter that only nod."""

    def saw(self, rows: int) -> None: ...

    def give_up(self, failures: Any) -> GivenUp:
        raise AssertionError(failures)

    def flush(self, remaining: Remaining) -> None: ...

    def report(self, **told: Any) -> int:
        return 1

    def committed_seq(self) -> int:
        return 1


@pytest.mark.parametrize("dies_after", range(1, 12))
@pytest.mark.parametrize("transforms", [{}, SPLIT], ids=["plain", "another topic"])
def test_no_row_comes_twice_whichever_piece_of_a_batch_was_the_last(
    dies_after: int, transforms: dict[str, str]
) -> None:
    database, nothing = Database(), Nothing()
    steps = (
        ToConnect(converters_of({"value.converter": "Json", "key.converter": "ByteArray"}, {})),
        Transforms(chain_of(transforms, is_sink=True)),
    )
    lives = 0
    while database.offset < len(RECORDS):
        lives += 1
        assert lives < len(RECORDS)
        database.dies_after = dies_after
        pipeline = Pipeline(Topic(database.offset), database, steps, nothing)  # type: ignore[arg-type]
        try:
            clock = iter(range(1_000_000)).__next__
            pump.run(pipeline, LeasePolicy(idle_park_s=5.0), Signals(), nothing, clock)
        except TransientError:
            continue
    wanted = [json.loads(record)["payload"] for record in RECORDS]
    assert database.rows == wanted
    assert database.topics == ({"other"} if transforms else {"t"})
