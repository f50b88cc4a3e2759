"""The compiled helper writes the texts that Python writes, or leaves them to it."""

from __future__ import annotations

import math
import random
import struct
from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pytest
from tests.support.natively import helper

from wherry.contract.batch import JSON_TYPE
from wherry.worker import native
from wherry.worker.convert.json_write import WriteOptions, json_texts
from wherry.worker.convert.json_write_native import struct_texts

__all__ = ["helper"]
pytestmark = pytest.mark.usefixtures("helper")
SEED = 20261121
ROWS = 400


@pytest.fixture(autouse=True)
def on() -> Iterator[None]:
    yield
    native.switch(True)


def both(column: pa.Array) -> tuple[list[str], list[str]]:
    """What the helper writes, and what Python does."""
    field = pa.field("value", column.type)
    natively = json_texts(field, column, WriteOptions())[0].to_pylist()
    native.switch(False)
    return natively, json_texts(field, column, WriteOptions())[0].to_pylist()


def structs(**columns: pa.Array) -> pa.StructArray:
    return pa.StructArray.from_arrays(list(columns.values()), names=list(columns))


def taken(column: pa.Array) -> bool:
    """Whether the helper writes it at all."""
    texts = struct_texts(column, lambda _: b"null", lambda field, values: json_texts(field, values, WriteOptions())[0])
    return texts is not None


def doubles(chance: random.Random) -> Iterator[float]:
    """Doubles of every kind: short ones, those between plain and exponent, any bits at all."""
    yield from (0.0, -0.0, 1e-3, 9.99e-4, 1e7, 9999999.0, 9999999.999999998, 123456789.125, 0.1 + 0.2, 5e300, 1.5e-300)
    for _ in range(ROWS):
        yield round(chance.uniform(-1e5, 1e5), chance.randrange(6))
        yield chance.uniform(-1e9, 1e9)
        yield chance.uniform(-1, 1) * 10.0 ** chance.randrange(-30, 30)
        (anything,) = struct.unpack("<d", chance.randbytes(8))
        if math.isfinite(anything):
            yield anything


def test_doubles_are_printed_alike() -> None:
    values = list(doubles(random.Random(SEED)))
    differing = []
    for start in range(0, len(values), 8):
        # In small columns, so that one that is left to Python takes few with it.
        natively, plainly = both(structs(d=pa.array(values[start : start + 8] * 2, pa.float64())))
        native.switch(True)
        differing += [pair for pair in zip(natively, plainly, strict=True) if pair[0] != pair[1]]
    assert differing == []
    assert taken(structs(d=pa.array([value for value in values if 1e-3 < abs(value) < 1e6], pa.float64())))


def test_floats_are_printed_alike() -> None:
    chance = random.Random(SEED)
    values = [round(chance.uniform(-1e4, 1e4), chance.randrange(5)) for _ in range(ROWS)]
    values += [chance.uniform(-1, 1) * 10.0 ** chance.randrange(-9, 12) for _ in range(ROWS)]
    column = pa.array(values, pa.float32())
    for start in range(0, len(column), 8):
        natively, plainly = both(structs(f=pa.concat_arrays([column.slice(start, 8)] * 2)))
        native.switch(True)
        assert natively == plainly
    assert taken(structs(f=pa.array([1.5, 0.1, 1234.56] * 5, pa.float32())))


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf, 5e-324, 2.0**-44, 2e23])
def test_a_double_that_others_have_to_print_is_left_to_them(value: float) -> None:
    column = structs(d=pa.array([1.5] * 20 + [value]))
    assert not taken(column)
    natively, plainly = both(column)
    assert natively == plainly


def test_texts_are_escaped_alike() -> None:
    chance = random.Random(SEED)
    alphabet = '"\\/\b\f\n\r\t\0\x01\x1f\x7f aäé€\u2028\ufffd\U0001f600\U0010ffff'
    values = ["".join(chance.choices(alphabet, k=chance.randrange(40))) for _ in range(ROWS)]
    values += ["plain text of some length, without anything in it" * 3, "", '"' * 500]
    column = structs(t=pa.array(values))
    assert taken(column)
    natively, plainly = both(column)
    assert natively == plainly


def everything(rows: int) -> pa.StructArray:
    """Columns of all kinds, with nulls, nested, and with some that the helper can't write itself."""
    chance = random.Random(SEED)

    def some(make: Any, data_type: pa.DataType) -> pa.Array:
        return pa.array([make() if chance.random() < 0.8 else None for _ in range(rows)], data_type)

    inner = structs(
        small=some(lambda: chance.randrange(-128, 128), pa.int8()),
        word=some(lambda: "x" * chance.randrange(9), pa.string()),
    )
    inner = pa.StructArray.from_arrays(
        inner.flatten(), fields=list(inner.type), mask=pa.array([chance.random() < 0.2 for _ in range(rows)])
    )
    json = pa.ExtensionArray.from_storage(JSON_TYPE, some(lambda: '{"a":1}', pa.string()))
    return structs(
        flag=some(lambda: chance.random() < 0.5, pa.bool_()),
        short=some(lambda: chance.randrange(-(2**15), 2**15), pa.int16()),
        whole=some(lambda: chance.randrange(-(2**31), 2**31), pa.int32()),
        long=some(lambda: chance.choice([-(2**63), 2**63 - 1, chance.randrange(-1000, 1000)]), pa.int64()),
        day=some(lambda: chance.randrange(20_000), pa.date32()),
        moment=some(lambda: chance.randrange(2**40), pa.timestamp("ms", "UTC")),
        time=some(lambda: chance.randrange(86_400_000), pa.time32("ms")),
        inner=inner,
        items=some(lambda: [1, None, 3], pa.list_(pa.int64())),
        data=some(lambda: chance.randbytes(5), pa.binary()),
        json=json,
        **{'odd "name"\n': some(lambda: 1, pa.int64())},
    )


@pytest.mark.parametrize("start", [0, 3, 8])
def test_columns_of_all_kinds_are_written_alike_also_as_slices(start: int) -> None:
    column = everything(100).slice(start, 60)
    assert taken(column)
    natively, plainly = both(column)
    assert natively == plainly


def test_a_default_takes_the_place_of_null_alike() -> None:
    field = pa.field("n", pa.int64(), metadata={"connect.default": "7"})
    column = pa.StructArray.from_arrays([pa.array([1, None] * 10)], fields=[field])
    natively, plainly = both(column)
    assert natively == plainly
    assert natively[:2] == ['{"n":1}', '{"n":7}']


def test_structs_without_fields_are_written_alike() -> None:
    column = pa.array([{}] * 20, pa.struct([]))
    natively, plainly = both(column)
    assert natively == plainly == ["{}"] * 20
