"""Objects that differ in their members, nest and mix kinds: columns by the helper say what objects say, row by row."""

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
from wherry.worker.transform import lift, lift_native, shapes
from wherry.worker.transform.objects import parse_objects, write_objects
from wherry.worker.transform.registry import chain_of
from wherry.worker.transform.step import Transforms

__all__ = ["helper"]
pytestmark = pytest.mark.usefixtures("helper")
P = "org.apache.kafka.connect.transforms."
FLATTEN = {"type": f"{P}Flatten$Value", "delimiter": "_"}
CHAINS: dict[str, list[dict[str, str]]] = {
    "flatten": [FLATTEN],
    "flatten and cast": [FLATTEN, {"type": f"{P}Cast$Value", "spec": "a_x:string,b:int32,a:float32,ts:boolean"}],
    "cast": [{"type": f"{P}Cast$Value", "spec": "a:string,b:float64,new:int8"}],
    "cast twice": [
        {"type": f"{P}Cast$Value", "spec": "b:string"},
        {"type": f"{P}Cast$Value", "spec": "b:boolean,c:string"},
    ],
    "insert": [
        {"type": f"{P}InsertField$Value", "static.field": "b", "static.value": "v", "timestamp.field": "when"},
        {"type": f"{P}InsertField$Value", "offset.field": "c", "topic.field": "a"},
    ],
    "insert what only some have": [{"type": f"{P}InsertField$Value", "timestamp.field": "b"}],
    "replace": [
        {"type": f"{P}ReplaceField$Value", "exclude": "b", "renames": "a:k,c:a"},
        {"type": f"{P}ReplaceField$Value", "include": "k,ts", "renames": "k:ts"},
    ],
    "mask": [{"type": f"{P}MaskField$Value", "fields": "a,b"}],
    "mask with a number": [{"type": f"{P}MaskField$Value", "fields": "b", "replacement": "7"}],
    "extract": [{"type": f"{P}ExtractField$Value", "field": "b"}],
    "extract from within": [{"type": f"{P}ExtractField$Value", "field": "a.x", "field.syntax.version": "V2"}],
    "hoist": [{"type": f"{P}HoistField$Value", "field": "f"}, FLATTEN],
    "key": [{"type": f"{P}ValueToKey", "fields": "b,a"}],
    "header": [{"type": f"{P}HeaderFrom$Value", "fields": "a,b", "headers": "h,g", "operation": "copy"}],
    "time": [
        {"type": f"{P}TimestampConverter$Value", "field": "ts", "target.type": "string", "format": "yyyy-MM-dd"},
        {"type": f"{P}MaskField$Value", "fields": "ts"},
    ],
}  # fmt: skip
texts = st.text(max_size=6) | st.sampled_from(["12", "true", "\\", '"', "é", "😀", "/", "\x07", "{", "["])
numbers = st.integers(-(2**63), 2**63 - 1) | st.integers(-300, 300)
fractions = st.floats(allow_nan=False, allow_infinity=False) | st.sampled_from(
    [0.5, 1.0, 1e7, 123456789.5, 1e-4, 2.0**60]
)
scalars = st.none() | texts | numbers | fractions | st.booleans()
nested = st.recursive(
    scalars,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(["x", "y", ""]), inner, max_size=2),
    max_leaves=5,
)
ODD = ('{"b":1,"b":2}', '{"b":01}', '{"a":[1e2]}', "{}{}", "[1]", '{"o":{"x":-0}}')
KINDS = {
    "a": nested,
    "b": numbers | fractions,
    "c": texts | st.none(),
    "ts": st.integers(0, 2**41),
    "o": st.fixed_dictionaries({}, optional={"x": numbers, "y": st.fixed_dictionaries({}, optional={"z": texts})}),
}


@st.composite
def irregular(draw: st.DrawFn) -> list[str]:
    """A few objects whose members come in one order, each there or not; sometimes an odd one."""
    names = draw(st.permutations(sorted(KINDS)))
    rows = draw(
        st.lists(st.fixed_dictionaries({}, optional={name: KINDS[name] for name in names}), min_size=1, max_size=8)
    )
    spaced, ascii_only = draw(st.booleans()), draw(st.booleans())
    separators = (" , ", " : ") if spaced else (",", ":")
    found = [
        json.dumps({name: row[name] for name in names if name in row}, separators=separators, ensure_ascii=ascii_only)
        for row in rows
    ]
    odd = draw(
        st.none() | st.sampled_from(['{"b":1,"b":2}', '{"b":01}', '{"a":[1e2]}', "{}{}", "[1]", '{"o":{"x":-0}}'])
    )
    return found if odd is None else [*found, odd]


def batch(rows: list[str]) -> Batch:
    times = pa.array([None if row % 3 == 2 else row for row in range(len(rows))], pa.int64()).cast(TIMESTAMP_TYPE)
    value = pa.ExtensionArray.from_storage(JSON_TYPE, pa.array(rows, pa.string()))
    return of_value(value, constants=Constants("t", 3, 7), timestamp=times)


def told(stepped: Stepped) -> Any:
    """All that can be seen of an outcome."""
    rows = [
        row
        for piece, _ in stepped.pieces
        for row in zip(
            *(
                piece.column(name).to_pylist() if piece.column(name) is not None else [None] * piece.num_rows
                for name in ("value", "key", "headers", "offset")
            ),
            strict=True,
        )
    ]
    return repr(rows), [(failure.row, str(failure.error)) for failure in stepped.failures], stepped.filtered


@pytest.mark.parametrize("name", CHAINS)
@given(rows=irregular())
@settings(max_examples=60, deadline=None)
def test_columns_and_objects_give_the_same_texts_failures_and_order(name: str, rows: list[str]) -> None:
    links = dict(enumerate(CHAINS[name]))
    config = {f"transforms.{place}.{key}": text for place, link in links.items() for key, text in link.items()}
    config["transforms"] = ",".join(map(str, links))
    given_rows = batch(rows)
    found = []
    for on in (True, False):
        with pytest.MonkeyPatch.context() as patch:
            for module in (lift, shapes):
                patch.setattr(module, "ROWS_MIN", 1 if on else 1_000_000)
            patch.setattr(shapes, "PART_SHARE", 1_000_000)
            found.append(told(Transforms(chain_of(config, is_sink=True)).apply(given_rows, given_rows)))
    assert found[0] == found[1]


@given(rows=irregular())
@settings(max_examples=200, deadline=None)
def test_what_columns_hold_is_written_and_read_as_objects_are(rows: list[str]) -> None:
    found = lift.some(pa.array(rows, pa.string()))
    if found is None:
        return
    columns, places = found
    taken = pa.array(rows, pa.string()).take(pa.array(places))
    objects, bad = parse_objects(taken)
    assert not bad
    assert repr(lift.lower(columns)) == repr(objects)
    written = write_objects(objects).to_pylist()
    assert lift.texts(columns).to_pylist() == written
    native.switch(False)
    try:
        assert lift.texts(columns).to_pylist() == written
    finally:
        native.switch(True)


def test_rows_that_fit_no_columns_are_told_and_leave_nothing_behind() -> None:
    rows = pa.array(['{"a":"x","b":1}', None, '{"a":"yy","b":"no"}', '{"a":"zzz"}', '{"b":2}', "x"], pa.string())
    read = lift_native.read(rows, [pa.field("a", pa.string()), pa.field("b", pa.int64())])
    assert read is not None
    columns, places = read
    assert places.tolist() == [0, 3, 4]
    assert [array.to_pylist() for array in columns.arrays] == [
        ["x", None, None, "zzz", None, None],
        [1, None, None, None, 2, None],
    ]
    assert [mask.to_pylist() for mask in columns.there if mask is not None] == [
        [True, False, False, True, False, False],
        [True, False, False, False, True, False],
    ]


def test_a_slice_is_read_from_its_own_rows() -> None:
    rows = pa.array(["no", None, '{"a":[1, 2]}', None, '{"a":{"é":"\\u00e9"}}'], pa.string()).slice(2)
    read = lift_native.read(rows, [pa.field("a", JSON_TYPE)])
    assert read is not None
    assert read[0].arrays[0].storage.to_pylist() == ["[1,2]", None, '{"é":"é"}']
    assert read[1].tolist() == [0, 2]


@pytest.mark.parametrize("rows", [lift.ROWS_MIN, 5_000])
def test_rows_are_learned_of_that_the_first_samples_did_not_show(rows: int) -> None:
    texts = ['{"a":1}'] * rows
    texts[rows // 2 + 1] = '{"a":"x","more":[1.5]}'
    columns = lift.lift(pa.array(texts))
    assert columns is not None
    assert lift.texts(columns).to_pylist() == texts
