"""The pump, its steps and its tolerance against what Kafka Connect does with a record that fails."""

from __future__ import annotations

import json
import logging
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from wherry.contract.batch import Batch, Constants, Mark, RowError, of_value
from wherry.contract.errors import ErrorClass, WherryError
from wherry.contract.position import Position, kafka_position
from wherry.worker import pump
from wherry.worker.convert import DataError
from wherry.worker.convert.step import Stage, StageFailure, Stepped, cut_failures
from wherry.worker.counts import Counts
from wherry.worker.endpoints import FailedRow, Flushed, Remaining
from wherry.worker.pipeline import Pipeline
from wherry.worker.policy import LeasePolicy
from wherry.worker.signals import Signals
from wherry.worker.tolerance import HEADER_PREFIX, ErrorRules, Tolerance
from wherry.worker.transform.registry import chain_of
from wherry.worker.transform.step import Transforms

TABLE = json.loads((Path(__file__).parents[2] / "cases/errors_tolerance.json").read_text())
STEPS = {"TRANSFORMATION", "KEY_CONVERTER", "VALUE_CONVERTER", "HEADER_CONVERTER"}
# Kafka Connect reports what a connector itself says of a record only for sinks, and there without retries.
CASES = [
    case
    for case in TABLE["cases"]
    if (case["stage"] in STEPS and case["fails"] != "reported")
    or (case["stage"] == "TASK_PUT" and case["fails"] == "reported" and case["error"] == "data")
]
SECRET = b"the secret"


class Failing:
    """A step in which the second of three rows fails."""

    def __init__(self, stage: Stage, error: str, failures: int) -> None:
        self.stage, self.error, self.left, self.calls = stage, error, failures, 0

    def apply(self, batch: Batch, raw: Batch) -> Stepped:
        self.calls += 1
        if not self.left:
            return Stepped(((batch, raw),))
        self.left -= 1
        error_class = ErrorClass.TRANSIENT if self.error == "transient" else ErrorClass.SCHEMA
        error = DataError("It can't be.", error_class=error_class)
        failure = StageFailure(raw, 1, self.stage, "x.Converter", error)
        return Stepped((cut_failures(batch, raw, {1}),), (failure,))


class World(Signals):
    """Everything around the pump; time passes only by waiting."""

    def __init__(self, *, refuses: bool = False) -> None:
        super().__init__()
        self.now = 0.0
        self.waits: list[float] = []
        self.written: list[Any] = []
        self.topics: list[str | None] = []
        self.used: list[str] = []
        self.batches: list[Batch] = [three_rows()]
        self.counts: list[Counts] = []
        self.positions: list[Position] = []
        self.refused: list[FailedRow] = []
        self.refuses = refuses
        self.trouble, self.lag, self.finished, self.needs_flush, self.stored = "", None, False, False, ()

    # Signals

    def wait(self, timeout_s: float) -> None:
        self.now += timeout_s

    # Reader

    @property
    def caught_up(self) -> bool:
        return not self.batches

    def poll(self, timeout_s: float) -> Batch | None:
        self.now += 0 if self.batches else timeout_s
        return self.batches.pop(0) if self.batches else None

    def pause(self, partitions: Sequence[str]) -> None: ...

    def committed(self, positions: Sequence[Position]) -> None: ...

    def committed_seq(self) -> int:
        return len(self.counts)

    # Writer

    def ready(self, timeout_s: float) -> bool:
        return True

    def write(self, batch: Batch, raw: Batch) -> None:
        self.written += batch.value.to_pylist()
        self.topics += batch.topics()
        if self.refuses:
            self.refused.append(FailedRow(raw, 1, RowError(1, ErrorClass.SCHEMA, "X", message="It can't be.")))

    def flush(self, remaining: Remaining, *, final: bool = False) -> Flushed:
        return Flushed()

    def failed_rows(self) -> list[FailedRow]:
        refused, self.refused = self.refused, []
        return refused

    def rewinds(self) -> tuple[Position, ...]:
        return ()

    def paused_partitions(self) -> tuple[str, ...]:
        return ()

    # Reporter

    def report(self, *, positions: Sequence[Position] = (), counts: Counts, **told: Any) -> int:
        self.counts.append(counts)
        self.positions += positions
        self.used += told.get("topics", ())
        return len(self.counts)

    def total(self, name: str) -> int:
        return sum(getattr(counts, name) for counts in self.counts)


class Letters(World):
    """A dead letter queue."""

    def write(self, batch: Batch, raw: Batch) -> None:
        self.batches.append(batch)


def three_rows() -> Batch:
    values = pa.array([b"a", SECRET, b"c"], pa.binary())
    return of_value(values, constants=Constants("t", 3, 40), marks=[Mark(3, kafka_position("t", 3, 43))])


def rules(case: dict[str, Any], *, sink: bool, log: bool) -> ErrorRules:
    config = {
        "errors.tolerance": case["tolerance"],
        "errors.retry.timeout": str(case["timeout"]),
        "errors.log.enable": str(log).lower(),
        "errors.log.include.messages": "true",
        "errors.deadletterqueue.topic.name": "dead",
        "errors.deadletterqueue.context.headers.enable": "true",
    }
    return ErrorRules.of(config, sink=sink)


def note_waits(step: Failing, world: World) -> None:
    """Notes how long the pump waits between calls of the step."""
    apply, last = step.apply, [0.0]

    def noted(batch: Batch, raw: Batch) -> Stepped:
        if step.calls:
            world.waits.append(world.now - last[0])
        last[0] = world.now
        return apply(batch, raw)

    step.apply = noted  # type: ignore[method-assign]


@pytest.mark.parametrize("log", [True, False], ids=["logged", "silent"])
@pytest.mark.parametrize("side", ["sink", "source"])
@pytest.mark.parametrize("case", CASES, ids=lambda case: " ".join(map(str, list(case.values())[:5])))
def test_a_record_that_fails_fares_as_in_kafka_connect(
    case: dict[str, Any], side: str, log: bool, caplog: pytest.LogCaptureFixture
) -> None:
    in_step, sink = case["stage"] in STEPS, side == "sink"
    world, letters = World(refuses=not in_step), Letters()
    letters.batches.clear()
    failures = {"twice": 2, "always": 1_000}.get(case["fails"], 0)
    step = Failing(Stage(case["stage"]), case["error"], failures)
    note_waits(step, world)
    kept = rules(case, sink=sink, log=log)
    tolerance = Tolerance(kept, "c", 7, letters if kept.dead_letter_topic else None)  # type: ignore[arg-type]
    pipeline = Pipeline(world, world, (step,), tolerance, retry=kept.retry)  # type: ignore[arg-type]
    told = ""
    with caplog.at_level(logging.ERROR):
        try:
            pump.run(pipeline, LeasePolicy(idle_park_s=5.0), world, world, lambda: world.now)  # type: ignore[arg-type]
        except WherryError as error:
            told = str(error)
    assert told.startswith(case.get("message", ""))
    assert bool(told) == (case["outcome"] == "failed")
    assert [round(wait * 1000) for wait in world.waits] == case["waits"]
    assert world.total("retries") == case["retries"]
    # NB: Kafka Connect counts the last failure of what it might have tried again twice, and reported rows only as such.
    assert world.total("failures") == (step.calls if in_step and case["outcome"] != "delivered" else case["failures"])
    given_up = int(case["outcome"] != "delivered")
    assert world.total("errors") == given_up
    assert world.total("skipped") == int(case["outcome"] == "skipped")
    assert world.total("logged") == (given_up if log else 0)
    assert world.total("dead_letters") == (case["letters"] if sink else 0)
    assert len(letters.batches) == (case["letters"] if sink else 0)
    assert len(caplog.records) == (given_up if log else 0)
    assert SECRET.decode() not in caplog.text
    assert world.positions == ([] if told else [kafka_position("t", 3, 43)])
    for letter in letters.batches:
        assert letter.value.to_pylist() == [SECRET]
        assert letter.headers is not None
        headers = {pair["name"]: pair["value"] for pair in letter.headers[0].as_py()}
        assert headers[f"{HEADER_PREFIX}stage"] == case["stage"].encode()


def test_the_counts_are_those_of_kafka_connects_metrics() -> None:
    ours = {
        "deadletterqueue-produce-failures": "dead_letter_failures",
        "deadletterqueue-produce-requests": "dead_letters",
        "last-error-timestamp": "last_error_ms",
        "total-errors-logged": "logged",
        "total-record-errors": "errors",
        "total-record-failures": "failures",
        "total-records-skipped": "skipped",
        "total-retries": "retries",
    }
    assert sorted(ours) == sorted(TABLE["metrics"])
    assert all(hasattr(Counts(), name) for name in ours.values())


def test_a_letter_and_a_position_tell_where_a_record_was_read_though_transforms_gave_it_another_topic() -> None:
    router = "org.apache.kafka.connect.transforms.RegexRouter"
    chain = {"transforms": "a", "transforms.a.type": router, "transforms.a.regex": "(.*)"}
    step = Transforms(chain_of({**chain, "transforms.a.replacement": "$1-routed"}, is_sink=True))
    world, letters = World(refuses=True), Letters()
    letters.batches.clear()
    kept = rules({"tolerance": "all", "timeout": 0}, sink=True, log=False)
    tolerance = Tolerance(kept, "c", 7, letters)  # type: ignore[arg-type]
    pipeline = Pipeline(world, world, (step,), tolerance)  # type: ignore[arg-type]
    pump.run(pipeline, LeasePolicy(idle_park_s=5.0), world, world, lambda: world.now)  # type: ignore[arg-type]
    assert world.topics == ["t-routed"]
    assert world.used == ["t"]  # of a sink, what it reads
    assert world.positions == [kafka_position("t", 3, 43)]
    (letter,) = letters.batches
    assert letter.headers is not None
    headers = {pair["name"].removeprefix(HEADER_PREFIX): pair["value"] for pair in letter.headers[0].as_py()}
    assert (headers["topic"], headers["partition"], headers["offset"]) == (b"t", b"3", b"41")
    assert letter.constants.topic == "dead"
