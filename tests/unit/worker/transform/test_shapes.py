"""Rows whose members differ are parted and come out as if they had gone one by one."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from tests.support.natively import helper

from wherry.contract.batch import JSON_TYPE, TIMESTAMP_TYPE, Batch, Constants, Mark, of_value
from wherry.contract.position import kafka_position
from wherry.worker import native
from wherry.worker.convert import json_native
from wherry.worker.convert.step import Stepped
from wherry.worker.transform.registry import chain_of
from wherry.worker.transform.rows import rows_of
from wherry.worker.transform.shapes import SHAPES_MAX, parted
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


@pytest.fixture(autouse=True)
def on() -> Iterator[None]:
    yield
    native.switch(True)


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


def test_rows_of_the_same_members_in_the_same_order_have_one_number() -> None:
    texts = [
        '{"a":1,"b":2}',
        '{ "a" : [1,{"x":2}], "b": null}',
        '{"b":2,"a":1}',
        '{"a":1}',
        "[1]",
        '{"a":1',
        None,
        '{"ab":1}',
        "{}",
    ]
    found = json_native.shapes(pa.array(texts, pa.string())).tolist()
    assert found[0] == found[1]
    assert len({found[place] for place in (0, 2, 3, 7, 8)}) == 5
    assert [found[place] for place in (4, 5, 6)] == [0, 0, 0]


def test_a_slice_has_the_numbers_of_its_rows() -> None:
    texts = pa.array(['{"a":1}', None, '{"b":1}', '{"a":2}'], pa.string())
    whole = json_native.shapes(texts)
    assert np.array_equal(json_native.shapes(texts.slice(1, 3)), whole[1:])


def test_parted_rows_come_out_in_their_order_as_one_batch_and_the_same() -> None:
    made = batch(mixed(500))
    assert len(parted(rows_of(made))) > 2
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
        [{f"m{row % (SHAPES_MAX + 1)}": 1, "a": [row]} for row in range(SHAPES_MAX * 200)],
        [{f"m{row}": 1} for row in range(300)],
        mixed(40),
    ],
    ids=["alike", "too many kinds", "all different", "few rows"],
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
