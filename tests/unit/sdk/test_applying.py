"""Transformations behind real gRPC: rows and batches, what comes from what, failures, schemas."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

from wherry.contract.batch import Constants, of_value
from wherry.contract.errors import ConnectorBugError, TransientError
from wherry.contract.frame import ALL_ENCODINGS, Encoding
from wherry.sdk import Batch, Config, Record, RecordRejectedError, RowError, Transform, Transformed, key
from wherry.sdk.testing import run_transform, sidecar


class Settings(Config):
    suffix: str = key(default="!")


class ByRow(Transform[Settings]):
    """Does as the value says."""

    class_name = "test.ByRow"

    def transform_record(self, record: Record) -> Any:
        value = record.value
        if value == "drop":
            return None
        if value == "bad":
            raise RecordRejectedError("It is bad.", reason="BAD", field_path="x")
        if value == "away":
            raise TransientError("The other system is away.")
        if value == "twice":
            return [Record("a", key=record.key), Record({"b": 1}, key=record.key)]
        record.value = f"{value}{self.config.suffix}"
        return record


class ByBatch(Transform[Settings]):
    """Does what `how` says."""

    class_name = "test.ByBatch"
    how: Any = None

    def transform_batch(self, batch: Batch) -> Batch | Transformed:
        return type(self).how(batch)


def by_batch(how: Any, rows: int = 3) -> Any:
    ByBatch.how = staticmethod(how)
    return run_transform(ByBatch, {}, [Record(str(n)) for n in range(rows)])


def test_rows_are_changed_dropped_multiplied_and_refused() -> None:
    given = [
        Record("x", key="k", topic="t", headers=[("h", b"1")], timestamp_ms=5),
        *map(Record, ("drop", "twice", "bad", "y")),
    ]
    run = run_transform(ByRow, {"suffix": "?"}, given)
    assert [record.value for record in run.records] == ["x?", "a", {"b": 1}, "y?"]
    assert run.lineage == [0, 2, 2, 4]
    assert [(error.row, error.reason, error.field_path, error.message) for error in run.row_errors] == [
        (3, "BAD", "x", "It is bad.")
    ]
    first = run.records[0]
    assert (first.key, first.topic, first.headers, first.timestamp_ms) == ("k", "t", [("h", b"1")], 5)


@pytest.mark.parametrize("encoding", ALL_ENCODINGS)
def test_every_encoding_is_spoken_both_ways(encoding: Encoding) -> None:
    run = run_transform(ByRow, {}, [Record("a"), Record("b")], encoding=encoding, batch_rows=1)
    assert [record.value for record in run.records] == ["a!", "b!"]


def test_a_batch_of_which_nothing_is_left_is_answered_all_the_same() -> None:
    run = run_transform(ByRow, {}, [Record("drop"), Record("bad")])
    assert (run.records, run.lineage, [error.row for error in run.row_errors]) == ([], [], [1])


def test_an_error_of_the_whole_batch_ends_the_stream_with_its_class() -> None:
    with pytest.raises(TransientError, match="The other system is away"):
        run_transform(ByRow, {}, [Record("a"), Record("away")])


class Typed(Transform[Config]):
    """Adds one to n, or a field, or leaves the schema."""

    class_name = "test.Typed"

    def transform_record(self, record: Record) -> Record:
        if record.value["n"] == 7:
            record.value["strange"] = 1
        elif record.value["n"] == 8:
            record.value, record.schema = {"anything": 1}, None
        else:
            record.value["n"] += 1
        return record


def test_a_schema_stays_unless_it_is_left_and_a_field_beside_it_is_refused() -> None:
    kind = pa.struct([pa.field("n", pa.int16(), metadata={"connect.doc": "number"})])
    field = pa.field("value", kind, metadata={"connect.name": "N"})
    values = pa.array([{"n": 1}, {"n": 7}, {"n": 8}, {"n": 2}], kind)
    records = pa.RecordBatch.from_arrays([values], schema=pa.schema([field]))
    run = run_transform(Typed, {}, [of_value(values, constants=Constants("t")).__class__(records)])
    assert [record.value for record in run.records] == [{"n": 2}, {"anything": 1}, {"n": 3}]
    assert [error.reason for error in run.row_errors] == ["FIELD_WITHOUT_SCHEMA"]
    after = run.batches[0].records.schema.field("value")
    assert after.type.equals(kind, check_metadata=True)
    assert after.metadata == {b"connect.name": b"N"}


def test_a_batch_of_as_many_rows_needs_no_lineage() -> None:
    run = by_batch(lambda batch: batch.with_columns(value=pa.array(["x", "y", "z"])))
    assert [record.value for record in run.records] == ["x", "y", "z"]
    assert run.lineage == [0, 1, 2]


def test_a_batch_tells_what_came_from_what() -> None:
    run = by_batch(lambda batch: Transformed(batch.slice(0, 2), [0, 2], [RowError(1, 6, "NO")]))  # type: ignore[arg-type]
    assert (run.lineage, [error.row for error in run.row_errors]) == ([0, 2], [1])


@pytest.mark.parametrize(
    "how",
    [
        lambda batch: batch.slice(0, 2),
        lambda batch: Transformed(batch, [0, 1]),
        lambda batch: Transformed(batch, [0, 2, 1]),
        lambda batch: Transformed(batch, [0, 1, 3]),
        lambda batch: Transformed(batch, [0, 1, 2], [RowError(1, 6, "NO")]),
        lambda batch: Transformed(batch.slice(0, 1), [0], [RowError(3, 6, "NO")]),
        lambda batch: 1 / 0,
    ],
)
def test_an_answer_that_does_not_fit_its_batch_is_a_bug_of_the_transformation(how: Any) -> None:
    with pytest.raises(ConnectorBugError):
        by_batch(how)


def test_a_stream_of_another_generation_is_fenced() -> None:
    with sidecar(ByRow, config={}) as client:
        stream = client.apply(generation=2)
        with pytest.raises(Exception, match="the sidecar is bound to 1"):
            stream.receive(5.0)
