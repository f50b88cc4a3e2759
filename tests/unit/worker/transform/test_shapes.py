"""Rows whose members differ are parted and come out as if they had gone one by one."""

from __future__ import annotations

import json
import random
from typing import Any

import pyarrow as pa
import pytest
from tests.support.natively import helper

from wherry.contract.batch import JSON_TYPE, TIMESTAMP_TYPE, Batch, Constants, Mark, of_value
from wherry.contract.position import kafka_position
from wherry.worker import native
from wherry.worker.convert.step import Stepped
from wherry.worker.transform.registry import chain_of
from wherry.worker.transform.rows import rows_of
from wherry.worker.transform.shapes import parted
from wherry.worker.transform.step import Transforms

__all__ = ["helper"]
pytestmark = pytest.mark.usefixtures("helper")
SEED = 20261121
P = "org.apache.kafka.connect.transforms."
CHAIN = {
    "transforms": "i,r,c",
    "transforms.i.type": f"{P}InsertField$Value",
    "transforms.i.offset.field": "place",
    "transforms.r.type": f"{P}ReplaceField$Value",
    "transforms.r.exclude": "b",
    "transforms.c.type": f"{P}Cast$Value",
    "transforms.c.spec": "a:string,f:float32",
}


def batch(values: list[Any]) -> Batch:
    column = pa.array([None if value is None else json.dumps(value) for value in values], pa.string())
    times = pa.array(range(len(values)), pa.int64()).cast(TIMESTAMP_TYPE)
    value = pa.ExtensionArray.from_storage(JSON_TYPE, column)
    made = of_value(value, constants=Constants("t", 3, 7), timestamp=times)
    return made.with_marks(Mark(len(values), kafka_position("t", 3, 7 + len(values))))


def mixed(rows: int) -> list[Any]:
    """Objects of three makes, tombstones, and a few that no column can hold."""
    chance = random.Random(SEED)
    values: list[Any] = []
    for row in range(rows):
        value: dict[str, Any] = {"a": row, "f": chance.randrange(1000) / 8}
        if row % 2:
            value["b"] = "x" * chance.randrange(5)
        if row % 3 == 0:
            value["more"] = {"inner": row} if row % 31 == 0 else None
        values.append(None if row % 97 == 0 else value)
    return values


def through(made: Batch, config: dict[str, str]) -> Stepped:
    return Transforms(chain_of(config, is_sink=True)).apply(made, made)


def told(stepped: Stepped) -> tuple[Any, ...]:
    names = ("value", "topic", "partition", "offset", "timestamp")
    rows = [row for piece, _ in stepped.pieces for row in zip(*(_values(piece, name) for name in names), strict=True)]
    raws = [row for _, raw in stepped.pieces for row in raw.records.to_pylist()]
    failed = [(failure.row, str(failure.error)) for failure in stepped.failures]
    return rows, raws, failed, [piece.marks for piece, _ in stepped.pieces], stepped.filtered


def _values(piece: Batch, name: str) -> list[Any]:
    column = piece.column(name)
    return [] if column is None else column.to_pylist()


def test_rows_that_lack_a_member_and_rows_that_have_it_stay_one_part() -> None:
    made = rows_of(batch([{"a": row, "b": 1} if row % 3 else {"a": row} for row in range(300)]))
    assert [len(part) for part in parted(made)] == [300]
    assert parted(made)[0].value.columns is not None


def test_rows_whose_members_come_in_another_order_and_odd_ones_are_parts_of_their_own() -> None:
    values = [({"a": row, "b": 1} if row % 3 else {"b": 2, "a": row}) if row % 50 else [row] for row in range(600)]
    parts = parted(rows_of(batch(values)))
    assert sorted((len(part), part.value.columns is None) for part in parts) == [(12, True), (196, False), (392, False)]
    assert sorted(place for part in parts for place in part.index.tolist()) == list(range(600))


def test_parted_rows_come_out_in_their_order_as_one_batch_and_the_same() -> None:
    made = batch(mixed(500))
    assert len(parted(rows_of(made))) == 2
    parts = through(made, CHAIN)
    native.switch(False)
    assert told(parts) == told(through(made, CHAIN))
    assert len(parts.pieces) == 1


def test_rows_that_fail_in_one_part_are_told_by_their_place() -> None:
    values = mixed(400)
    values[10] = {"a": 1, "f": "no number"}
    values[333] = {"a": 1, "f": "none either", "b": "x"}
    made = batch(values)
    parts = through(made, CHAIN)
    native.switch(False)
    assert told(parts) == told(through(made, CHAIN))
    assert [failure.row for failure in parts.failures] == [10, 333]


@pytest.mark.parametrize(
    "values",
    [
        [{"a": row} for row in range(300)],
        [{f"m{row}": 1} for row in range(3000)],
        [[row] for row in range(300)],
        mixed(40),
    ],
    ids=["alike", "all different", "no objects", "few rows"],
)
def test_rows_stay_together_where_parting_leads_nowhere(values: list[Any]) -> None:
    assert len(parted(rows_of(batch(values)))) == 1


@pytest.mark.parametrize(
    "more",
    [
        {"transforms.c.type": f"{P}HeaderFrom$Value", "transforms.c.fields": "a", "transforms.c.headers": "h",
         "transforms.c.operation": "copy"},
        {"transforms.c.type": f"{P}ValueToKey", "transforms.c.fields": "a"},
        {"transforms.c.type": f"{P}Cast$Key", "transforms.c.spec": "string"},
    ],
)  # fmt: skip
def test_chains_that_change_more_than_values_keep_rows_together(more: dict[str, str]) -> None:
    assert not Transforms(chain_of({**CHAIN, **more}, is_sink=True))._parts
    assert Transforms(chain_of(CHAIN, is_sink=True))._parts
