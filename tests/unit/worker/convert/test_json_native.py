"""The compiled helper reads JSON as the exact rules do, or leaves it alone."""

from __future__ import annotations

import json
import math
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from wherry.contract.schemaless import parse as loads
from wherry.worker.convert.json_native import all_sound, read_objects
from wherry.worker.convert.json_rows import connect_value, strict_value

pytestmark = pytest.mark.usefixtures("helper")

FIELDS: dict[str, pa.DataType] = {
    "tiny": pa.int8(), "small": pa.int16(), "middle": pa.int32(), "large": pa.int64(), "single": pa.float32(),
    "double": pa.float64(), "flag": pa.bool_(), "text": pa.string(), "day": pa.date32(), "clock": pa.time32("ms"),
    "moment": pa.timestamp("ms", "UTC"), "inner": pa.struct([("z", pa.int64()), ("text", pa.string())]),
}  # fmt: skip
RECORD = pa.struct(list(FIELDS.items()))


def one(name: str, value: str) -> Any:
    """What a member's text is read as, as stored; 'left' when the helper leaves it."""
    column = read_objects(pa.array([f'{{"{name}":{value}}}']), RECORD)
    return "left" if column is None else column.field(name)[0].as_py()


def read(texts: list[str | None], data_type: pa.DataType = RECORD) -> list[Any] | None:
    column = read_objects(pa.array(texts, pa.string()), data_type)
    if column is None:
        return None
    column.validate(full=True)
    return list(column.to_pylist())


def nothing_but(**values: Any) -> dict[str, Any]:
    return dict.fromkeys(FIELDS) | values


def test_members_are_found_in_any_order_and_those_that_are_missing_are_null() -> None:
    assert read(['{"flag":true,"text":"x","large":1}', '{"large":2,"tiny":-1}', "{}", None]) == [
        nothing_but(flag=True, text="x", large=1),
        nothing_but(large=2, tiny=-1),
        nothing_but(),
        None,
    ]


def test_members_that_nobody_asked_for_are_passed_over() -> None:
    texts = ['{"a":[1,{"b":"}"},[]],"large":1,"c":{"d":null,"e":-1.5e+3}}']
    assert read(texts) == [nothing_but(large=1)]


@pytest.mark.parametrize(
    "text",
    [
        "", "null", "[]", "1", '{"large":1}x', '{"large":1},', '{"large":1', '{"large":}', '{"large" 1}', '{large:1}',
        '{"large":1,}', '{,"large":1}', '{"large":1 "tiny":1}', '{"a":[1,]}', '{"a":tru}', '{"a":"\x01"}',
        '{"a":"\\x"}', '{"a":"\\u12"}', '{"a":01}', '{"a":1.}', '{"a":.5}', '{"a":1e}', '{"a":+1}', '{"a":NaN}',
        '{"a":Infinity}', '{"a":' + "[" * 100 + "]" * 100 + "}", '\ufeff{}', '{"a":"', '{"text":"', '{"text":"abcdefgh',
    ],
)  # fmt: skip
def test_what_is_no_plain_object_is_left(text: str) -> None:
    assert read([text]) is None
    assert all_sound(pa.array([text])) is (True if text in ("[]", "1") else None)


@pytest.mark.parametrize("text", ["true", "false", '"text"', " [1, {}] ", "-1.5e3", "0", '""'])
def test_every_single_value_is_sound(text: str) -> None:
    assert all_sound(pa.array([text, "7", None]))


def test_a_number_too_long_for_jackson_is_left() -> None:
    assert all_sound(pa.array(["1" * 1000, '{"a":' + "1" * 1000 + "}"]))
    assert not all_sound(pa.array(["1" * 1001]))
    assert not all_sound(pa.array(['{"a":' + "1" * 1001 + "}"]))


@pytest.mark.parametrize("text", [" null", "nul", "tru", '"', "[", "1 2", "-", "01", "\ufeff1"])
def test_what_is_no_value_and_null_between_blanks_are_not(text: str) -> None:
    assert not all_sound(pa.array([text, "7"]))


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("tiny", "128"), ("tiny", "-129"), ("small", "32768"), ("middle", "2147483648"),
        ("large", "9223372036854775808"), ("large", "99999999999999999999"), ("large", "1.0"), ("large", "1e2"),
        ("large", '"1"'), ("large", "true"), ("double", "1e999"), ("single", "1e39"), ("double", '"1"'),
        ("flag", "1"), ("flag", '"true"'), ("text", "1"), ("text", '"\\ud800"'), ("text", '"\\udc00\\ud800"'),
        ("clock", "86400000"), ("clock", "-1"), ("inner", "[]"), ("inner", '{"z":"1"}'), ("large", "-"),
    ],
)  # fmt: skip
def test_a_value_of_another_kind_or_out_of_range_is_left(name: str, text: str) -> None:
    assert one(name, text) == "left"


def test_a_member_given_twice_or_in_disguise_is_left() -> None:
    assert read(['{"large":1,"large":2}']) is None
    assert read(['{"l\\u0061rge":1}']) is None
    assert read(['{"other":1,"other":2,"large":3}']) == [nothing_but(large=3)]


def test_null_is_taken_only_where_the_field_allows_it() -> None:
    needed = pa.struct([pa.field("a", pa.int64(), nullable=False), pa.field("b", pa.string())])
    assert read(['{"a":1,"b":null}'], needed) == [{"a": 1, "b": None}]
    assert read(['{"a":null}'], needed) is None
    assert read(['{"b":"x"}'], needed) is None
    filled = pa.struct([pa.field("a", pa.int64(), metadata={"connect.default": "7"})])
    assert read(["{}"], filled) is None
    assert read([None], needed) == [None]


def test_texts_are_unescaped() -> None:
    assert one("text", r'"a\"b\\c\/d\b\f\n\r\té\u00e9\u20ac\ud83d\ude00\u0000"') == 'a"b\\c/d\b\f\n\r\téé€😀\0'
    assert one("text", json.dumps("long enough for several steps of eight, \u20ac and a \\ at the end \\")) == (
        "long enough for several steps of eight, \u20ac and a \\ at the end \\"
    )


@pytest.mark.parametrize(
    "text",
    ["-0", "-0.0", "0.1", "1e23", "9007199254740993", "1.7976931348623157e308", "5e-324", "2.2250738585072011e-308",
     "123456789012345678901234567890", "0.000000000000000000000000000001234", "4.35", "1e22", "1E-22", "0e500"],
)  # fmt: skip
def test_a_double_is_the_nearest_one(text: str) -> None:
    got = one("double", text)
    assert got == float(text)
    assert math.copysign(1, got) == math.copysign(1, float(text) + 0.0)


@given(st.floats(allow_nan=False, allow_infinity=False), st.sampled_from(["r", ".17g", ".20e", "f"]))
def test_any_double_is_read_as_python_reads_it(value: float, form: str) -> None:
    text = repr(value) if form == "r" else format(value, form)
    assert one("double", text) == float(text)


def test_slices_heads_and_tails_are_respected() -> None:
    texts = pa.array(['[{"large":9}]', None, '[{"large":1}]', '[{"large":2}]', '[{"large":8}]']).slice(1, 3)
    column = read_objects(texts, RECORD, head=1, tail=1)
    assert column is not None
    assert column.is_null().to_pylist() == [True, False, False]
    assert column.field("large").to_pylist() == [None, 1, 2]


def test_a_type_it_does_not_know_is_left() -> None:
    assert read(["{}"], pa.struct([("a", pa.list_(pa.int32()))])) is None
    assert read(["{}"], pa.struct([("a", pa.int32()), ("a", pa.int32())])) is None
    assert read(["{}"], pa.struct([])) == [{}]


NUMBERS = st.integers(-(1 << 65), 1 << 65) | st.integers(-200, 200) | st.floats(allow_nan=False, allow_infinity=False)
VALUES = st.recursive(
    st.none() | st.booleans() | NUMBERS | st.text(max_size=12),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(["z", "text", "q"]), inner, max_size=3),
    max_leaves=5,
)
MESSY = st.dictionaries(st.sampled_from([*FIELDS, "unknown"]), VALUES, max_size=8)
INTEGERS = st.integers(-128, 127)
REALS = st.floats(allow_nan=False, allow_infinity=False, width=32) | INTEGERS
INNER = st.fixed_dictionaries({}, optional={"z": st.none() | st.integers(-(1 << 62), 1 << 62), "text": st.text()})
FITTING = st.fixed_dictionaries(
    {},
    optional={
        **dict.fromkeys(["tiny", "small", "middle", "large", "day", "moment"], st.none() | INTEGERS),
        **dict.fromkeys(["single", "double"], st.none() | REALS),
        "flag": st.none() | st.booleans(),
        "text": st.none() | st.text(),
        "clock": st.integers(0, 86_399_999),
        "inner": st.none() | INNER,
        "unknown": VALUES,
    },
)


@settings(max_examples=300, deadline=None)
@given(st.lists(FITTING | MESSY, min_size=1, max_size=3), st.booleans(), st.sampled_from([None, 1]))
@example([{"clock": 5, "day": 3, "moment": 4}], True, None)
def test_what_is_read_is_what_both_sets_of_rules_give(
    rows: list[dict[str, Any]], ascii_only: bool, indent: int | None
) -> None:
    texts = [json.dumps(row, ensure_ascii=ascii_only, indent=indent) for row in rows]
    column = read_objects(pa.array(texts), RECORD)
    if column is None:
        return
    field = pa.field("value", RECORD)
    for rules in (connect_value, strict_value):
        exact = pa.array([rules(field, loads(text)) for text in texts], RECORD)
        assert column.equals(exact)


@given(st.text(alphabet='{}[]",:\\u0019eE+-. ntrue', max_size=20))
def test_soup_is_taken_only_if_python_takes_it_too(soup: str) -> None:
    for text in (soup, "{" + soup):
        if all_sound(pa.array([text])) or read([text]) is not None:
            assert json.loads(text) is not None
