"""Transformations in a sidecar, as the chain sees them: lineage, failures, attempts, a sidecar that goes or hangs."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pytest

from wherry.contract import headers, values
from wherry.contract.batch import Batch, Constants, Mark, of_value
from wherry.contract.errors import ConfigError, ConnectorBugError, ErrorClass, TransientError
from wherry.contract.position import Position
from wherry.sdk import Config, Record, RecordRejectedError, Transform
from wherry.sdk.testing import sidecar
from wherry.worker.counts import Counts
from wherry.worker.policy import RetryPolicy
from wherry.worker.retry import BrokenOffError, Retrying
from wherry.worker.transform.registry import Link, chain_of
from wherry.worker.transform.sidecar import SidecarGoneError, SidecarTransform
from wherry.worker.transform.step import Transforms


class Obedient(Transform[Config]):
    """Does as the value says."""

    class_name = "test.Obedient"
    away = 0
    seen: list[int] = []  # noqa: RUF012  # of the class, for tests to look at
    hang = threading.Event()

    def transform_record(self, record: Record) -> Any:
        Obedient.seen.append(record.kafka_offset or 0)
        if record.value == "away" and Obedient.away:
            Obedient.away -= 1
            raise TransientError("Away.")
        if record.value == "hang":
            Obedient.hang.wait(120)
        if record.value == "bad":
            raise RecordRejectedError("It is bad.", reason="BAD", field_path="f")
        if record.value == "later":
            raise RecordRejectedError("Later.", error_class=ErrorClass.TRANSIENT)
        if record.value == "mixed":
            return [Record("a"), Record({"b": 2})]
        if record.value == "none":
            return None
        record.value = (record.value or "null").upper()
        record.topic = f"{record.topic}-{record.value}"
        return record


@pytest.fixture(autouse=True)
def fresh() -> Iterator[None]:
    Obedient.away, Obedient.seen = 0, []
    Obedient.hang.clear()
    yield
    Obedient.hang.set()


@pytest.fixture
def endpoint() -> Iterator[str]:
    with sidecar(Obedient, config={}) as client:
        yield client.endpoint


def made(endpoint: str, interrupted: Any = lambda: False, **config: str) -> SidecarTransform:
    keys = {key.replace("__", "."): text for key, text in config.items()}
    return SidecarTransform(endpoint, "test.Obedient", keys, generation=1, task=0, interrupted=interrupted)


@pytest.fixture
def chain(endpoint: str) -> Iterator[Transforms]:
    step = Transforms([Link("s", made(endpoint))])
    yield step
    step.close()


def batch(*texts: str | None) -> Batch:
    marks = [Mark(row + 1, Position('{"p":0}', str(row))) for row in range(len(texts))]
    return of_value(
        pa.array(texts, pa.string()),
        key=pa.array([f"k{row}" for row in range(len(texts))]),
        constants=Constants("t", 3, 10),
        marks=marks,
    )


def test_rows_come_back_with_their_offsets_and_marks(chain: Transforms) -> None:
    given = batch("x", "none", "y")
    stepped = chain.apply(given, given)
    ((after, raw),) = stepped.pieces
    assert after.value.to_pylist() == ["X", "Y"]
    assert after.key.to_pylist() == ["k0", "k2"]
    assert after.topics() == ["t-X", "t-Y"]
    assert after.column("offset").to_pylist() == raw.column("offset").to_pylist() == [10, 12]
    assert after.column("partition").to_pylist() == [3, 3]
    assert [mark.row_count for mark in after.marks] == [1, 1, 2]
    assert stepped.filtered == 1


def test_rows_of_several_schemas_come_as_runs_in_their_order(chain: Transforms) -> None:
    given = batch("x", "mixed", "y")
    stepped = chain.apply(given, given)
    assert [(str(after.value.type), after.num_rows) for after, _ in stepped.pieces] == [
        ("string", 2),
        ("extension<arrow.json>", 1),
        ("string", 1),
    ]
    assert [raw.column("offset").to_pylist() for _, raw in stepped.pieces] == [[10, 11], [11], [12]]


def test_failed_rows_are_failures_of_the_class_and_the_others_are_not_sent_again(chain: Transforms) -> None:
    given = batch("x", "bad", "y")
    stepped = chain.apply(given, given)
    ((after, _),) = stepped.pieces
    assert after.value.to_pylist() == ["X", "Y"]
    ((row, executing, error),) = [(each.row, each.executing, each.error) for each in stepped.failures]
    assert (row, executing, str(error), error.reason, error.field_path) == (
        1,
        "test.Obedient",
        "It is bad.",
        "BAD",
        "f",
    )
    assert Obedient.seen == [10, 11, 12]


def test_a_predicate_keeps_rows_from_the_sidecar(endpoint: str) -> None:
    prefix = "org.apache.kafka.connect.transforms.predicates."
    config = {
        "transforms": "s", "transforms.s.type": "Obedient",
        "transforms.s.predicate": "p", "transforms.s.negate": "true",
        "predicates": "p", "predicates.p.type": f"{prefix}RecordIsTombstone",
    }  # fmt: skip
    step = Transforms(chain_of(config, is_sink=True, served={"s": made(endpoint)}))
    given = batch("x", None, "y")
    stepped = step.apply(given, given)
    assert [value for after, _ in stepped.pieces for value in after.value.to_pylist()] == ["X", None, "Y"]
    assert Obedient.seen == [10, 12]
    step.close()


def test_typed_headers_stay_with_the_engine_and_follow_their_rows(endpoint: str) -> None:
    column = headers.append(None, [[headers.entry("n", values.parse(str(row)))] for row in range(3)])
    given = batch("x", "none", "y").with_columns(headers=column)
    step = Transforms([Link("s", made(endpoint))])
    ((after, _),) = step.apply(given, given).pieces
    assert after.headers.equals(column.take(pa.array([0, 2])))
    step.close()


def test_a_batch_that_could_not_be_done_is_offered_again_within_the_time_for_attempts(chain: Transforms) -> None:
    Obedient.away = 2
    given, counts = batch("x", "away"), Counts()
    retrying = Retrying(RetryPolicy(60.0), time.monotonic, lambda seconds, reason: True)
    stepped = retrying.apply(chain.apply, given, given, counts)
    assert [value for after, _ in stepped.pieces for value in after.value.to_pylist()] == ["X", "AWAY"]
    assert counts.retries == 2


def test_rows_that_may_pass_later_are_tried_again_and_then_given_up(chain: Transforms) -> None:
    given, counts = batch("later"), Counts()
    waits = iter([True, True])
    with pytest.raises(BrokenOffError):
        Retrying(RetryPolicy(-1), time.monotonic, lambda s, r: next(waits, False)).apply(
            chain.apply, given, given, counts
        )
    assert Obedient.seen == [10] * 3


def test_a_sidecar_that_is_gone_is_not_waited_for_by_attempts() -> None:
    with sidecar(Obedient, config={}) as client:
        step = Transforms([Link("s", made(client.endpoint))])
        given = batch("x")
        assert step.apply(given, given).pieces
    retrying = Retrying(RetryPolicy(-1), time.monotonic, lambda seconds, reason: True)
    with pytest.raises(SidecarGoneError) as gone:
        retrying.apply(step.apply, given, given, Counts())
    # The lease takes it for something that may pass, and has the sidecar replaced.
    assert gone.value.error_class is ErrorClass.TRANSIENT
    step.close()


def test_a_sidecar_that_does_not_answer_in_time_is_given_up(endpoint: str) -> None:
    step = Transforms([Link("s", made(endpoint, wherry__timeout__ms="300"))])
    given = batch("hang")
    with pytest.raises(SidecarGoneError, match=r"did not answer within 0.3 s \(wherry.timeout.ms\)"):
        step.apply(given, given)
    step.close()


def test_the_wait_for_an_answer_ends_when_the_lease_does(endpoint: str) -> None:
    step = Transforms([Link("s", made(endpoint, interrupted=lambda: True))])
    given = batch("hang")
    with pytest.raises(BrokenOffError):
        step.apply(given, given)
    step.close()


def test_a_class_that_no_sidecar_serves_is_refused() -> None:
    with pytest.raises(ConfigError, match=r"Class test\.Obedient could not be found"):
        chain_of({"transforms": "s", "transforms.s.type": "test.Obedient"}, is_sink=True)


class Broken(Transform[Config]):
    """Raises what it should not."""

    class_name = "test.Broken"

    def transform_record(self, record: Record) -> Record:
        raise KeyError("name")


def test_an_exception_of_the_authors_is_a_bug_that_names_its_place() -> None:
    with sidecar(Broken, config={}) as client:
        step = Transforms([Link("s", made(client.endpoint))])
        given = batch("x")
        with pytest.raises(ConnectorBugError, match=r"KeyError: 'name' \(at test_sidecar.py:\d+\)"):
            step.apply(given, given)
        step.close()
