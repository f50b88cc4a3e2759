"""Columns and objects say the same: the fast way of values without schema is held to the row-wise one."""

from __future__ import annotations

import json
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.support.natively import helper

from wherry.contract.batch import JSON_TYPE, TIMESTAMP_TYPE, Batch, Constants, of_value
from wherry.worker import native
from wherry.worker.convert.step import Stepped
from wherry.worker.transform import lift
from wherry.worker.transform.casting import CastError, cast_array, cast_value
from wherry.worker.transform.failing import Failures
from wherry.worker.transform.registry import chain_of
from wherry.worker.transform.step import Transforms

__all__ = ["helper"]
P = "org.apache.kafka.connect.transforms."
NAMES = ("a", "b", "c", "ts")
CHAINS: dict[str, dict[str, str]] = {
    "cast": {"type": f"{P}Cast$Value", "spec": "a:int8,b:string,c:boolean"},
    "cast to numbers": {"type": f"{P}Cast$Value", "spec": "a:float32,b:int64,c:float64,ts:int16"},
    "cast to whole numbers": {"type": f"{P}Cast$Value", "spec": "a:int32,b:boolean,new:string"},
    "insert": {"type": f"{P}InsertField$Value", "static.field": "s", "static.value": "v", "timestamp.field": "b"},
    "insert all": {
        "type": f"{P}InsertField$Value",
        "topic.field": "t",
        "partition.field": "p",
        "offset.field": "o",
        "static.field": "a",
        "static.value": "v",
    },
    "replace": {"type": f"{P}ReplaceField$Value", "exclude": "b", "renames": "a:k"},
    "include": {"type": f"{P}ReplaceField$Value", "include": "a,c", "renames": "a:c"},
    "mask": {"type": f"{P}MaskField$Value", "fields": "a,b"},
    "mask with a number": {"type": f"{P}MaskField$Value", "fields": "a", "replacement": "300"},
    "extract": {"type": f"{P}ExtractField$Value", "field": "a"},
    "hoist": {"type": f"{P}HoistField$Value", "field": "f"},
    "flatten": {"type": f"{P}Flatten$Value"},
    "key": {"type": f"{P}ValueToKey", "fields": "b,a"},
    "header": {"type": f"{P}HeaderFrom$Value", "fields": "a", "headers": "h", "operation": "move"},
    "time to text": {
        "type": f"{P}TimestampConverter$Value",
        "field": "ts",
        "target.type": "string",
        "format": "yyyy-MM-dd HH:mm:ss.SSS",
    },
    "time to a number": {
        "type": f"{P}TimestampConverter$Value",
        "field": "ts",
        "target.type": "unix",
        "unix.precision": "seconds",
        "format": "yyyy",
    },
}
texts = st.text(max_size=6) | st.sampled_from(["12", "+7", " 1", "1.5", "1e3", "NaN", "true", "2020", "\\", '"', "é"])
numbers = st.integers(-(2**63), 2**63 - 1) | st.integers(-300, 300)
fractions = st.floats(allow_nan=False, allow_infinity=False)
KINDS = {"text": texts, "number": numbers, "fraction": fractions, "boolean": st.booleans()}


@st.composite
def uniform(draw: st.DrawFn) -> list[dict[str, Any]]:
    """A few objects of the same members, of one kind each."""
    names = draw(st.lists(st.sampled_from(NAMES), min_size=1, max_size=4, unique=True))
    kinds = {name: KINDS[draw(st.sampled_from(sorted(KINDS)))] for name in names}
    rows = st.lists(st.fixed_dictionaries({name: st.none() | kinds[name] for name in names}), min_size=1, max_size=5)
    return draw(rows)


def batch(rows: list[Any], spaced: bool) -> Batch:
    separators = (", ", ": ") if spaced else (",", ":")
    column = pa.array([json.dumps(row, separators=separators, ensure_ascii=False) for row in rows], pa.string())
    times = pa.array(range(len(rows)), pa.int64()).cast(TIMESTAMP_TYPE)
    value = pa.ExtensionArray.from_storage(JSON_TYPE, column)
    return of_value(value, constants=Constants("t", 3, 7), timestamp=times)


def told(stepped: Stepped) -> Any:
    """All that can be seen of an outcome."""
    pieces = [
        {name: str(piece.column(name).to_pylist()) for name in ("value", "key", "headers") if piece.column(name)}
        for piece, _ in stepped.pieces
    ]
    return pieces, [(failure.row, str(failure.error)) for failure in stepped.failures], stepped.filtered


@pytest.mark.parametrize("name", CHAINS)
@given(rows=uniform(), spaced=st.booleans())
@settings(max_examples=25, deadline=None)
def test_columns_and_objects_give_the_same_texts_failures_and_order(name: str, rows: list[Any], spaced: bool) -> None:
    config = {"transforms": "x", **{f"transforms.x.{key}": value for key, value in CHAINS[name].items()}}
    chain = Transforms(chain_of(config, is_sink=True))
    given_rows = batch(rows, spaced)
    found = []
    for rows_min in (1, 1_000_000):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(lift, "ROWS_MIN", rows_min)
            found.append(told(chain.apply(given_rows, given_rows)))
    assert found[0] == found[1]


@pytest.mark.parametrize(
    "odd",
    [
        '{"b":1,"a":"x"}',
        '{"a":"x","b":1,"a":"y"}',
        '{"a":"x","b":1}{}',
        '{"a":"x","b":9223372036854775808}',
        '{"a":"x","b":-0}',
        '{"a":"x","a":"y","b":1}',
        '{"a":"\\ud83d","b":1}',
        '{"a":"x","b":1e3}',
        '{"a":"x","b":01}',
        '{"a":"x","b":[{"c":1,"c":2}]}',
        '{"a":"x","b":[1,2}',
        '{"a":"x" "b":1}',
        "null",
        '"x"',
    ],
)
def test_what_columns_could_not_say_is_left_to_objects(odd: str) -> None:
    usual = ['{"a":"x","b":1}'] * lift.ROWS_MIN
    assert lift.lift(pa.array(usual)) is not None
    assert lift.lift(pa.array([*usual, odd])) is None
    assert lift.lift(pa.array([*usual, None])) is None


@pytest.mark.parametrize(
    "odd",
    [
        '{"a":"x"}',
        "{}",
        '{"a":"x","b":1,"c":2}',
        '{"a":"x","b":1.0}',
        '{"a":"x","b":"1"}',
        '{"a":{"b":1},"b":1}',
        '{"a":"\\ud83d\\ude00","b":1}',
    ],
)
@pytest.mark.usefixtures("helper")
def test_what_only_the_helper_can_prove_is_left_to_objects_without_it(odd: str) -> None:
    rows = pa.array([*['{"a":"x","b":1}'] * lift.ROWS_MIN, odd])
    columns = lift.lift(rows)
    assert columns is not None
    assert list(map(json.loads, lift.texts(columns).to_pylist())) == list(map(json.loads, rows.to_pylist()))
    native.switch(False)
    assert lift.lift(rows) is None


def test_a_text_that_looks_like_a_member_is_none() -> None:
    rows = ['{"a":"x\\",\\"b\\":2","b":1}'] * lift.ROWS_MIN
    columns = lift.lift(pa.array(rows))
    assert columns is not None
    assert columns.struct()[0].as_py() == {"a": 'x","b":2', "b": 1}
    assert lift.texts(columns).to_pylist() == rows


SOURCES = {
    pa.int8(): st.integers(-128, 127),
    pa.int64(): numbers,
    pa.float64(): st.floats(),
    pa.bool_(): st.booleans(),
    pa.string(): texts,
}
TARGETS = (pa.int8(), pa.int16(), pa.int32(), pa.int64(), pa.float32(), pa.float64(), pa.bool_(), pa.string())


@pytest.mark.parametrize("source", SOURCES, ids=str)
@given(data=st.data())
@settings(max_examples=60, deadline=None)
def test_a_column_is_cast_as_each_of_its_values_is(source: pa.DataType, data: st.DataObject) -> None:
    values = data.draw(st.lists(st.none() | SOURCES[source], max_size=6))
    target = data.draw(st.sampled_from(TARGETS))
    failures = Failures()
    column = cast_array(pa.array(values, source), target, failures)
    failed = set(failures.rows)
    for row, value in enumerate(values):
        if value is None:
            assert column[row].as_py() is None
            continue
        try:
            one = pa.scalar(cast_value(value, target), target)
        except CastError:
            one = None
        assert (row in failed) == (one is None)
        assert one is None or str(column[row]) == str(one)
