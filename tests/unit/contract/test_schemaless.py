"""Values without a schema."""

from __future__ import annotations

import math

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from wherry.contract.schemaless import loads


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("9223372036854775807", 2**63 - 1),
        ("9223372036854775808", -(2**63)),
        ("18446744073709551616", 0),
        ('{"a":[61278348832593951686]}', {"a": [5938116611465296838]}),
        ("1e309", math.inf),
        ("1e2", 100.0),
        ('"12345678901234567890"', "12345678901234567890"),
    ],
)
def test_numbers_come_as_the_json_converter_hands_them_on(text: str, value: object) -> None:
    assert loads(text) == value


@pytest.mark.parametrize("text", ["-0.0", "-0", "[-0.0]"])
def test_there_is_no_negative_zero(text: str) -> None:
    value = loads(text)
    assert math.copysign(1, value[0] if isinstance(value, list) else value) == 1


@pytest.mark.parametrize("text", ["", " ", "\t\r\n"])
def test_blanks_alone_are_null(text: str) -> None:
    assert loads(text) is None


@pytest.mark.parametrize("text", ["{", "NaN", "[1e2,NaN]", "12345678901234567890,", "\f"])
def test_what_is_no_json_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r".+"):
        loads(text)


@given(
    st.recursive(
        st.none()
        | st.booleans()
        | st.integers(-(2**63), 2**63 - 1)
        | st.floats(allow_nan=False, allow_infinity=False)
        | st.text(),
        lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    )
)
def test_everything_else_reads_as_it_was_written(value: object) -> None:
    assert loads(orjson.dumps(value).decode()) == value


@pytest.mark.parametrize(
    ("text", "value"), [('{"a":1}{}', {"a": 1}), ("007", 7), ("[1] x", [1]), ('"a"b', "a"), (" 1 2", 1)]
)
def test_what_follows_is_ignored_as_where_the_text_was_read(text: str, value: object) -> None:
    assert loads(text) == value


@pytest.mark.parametrize("text", ["nulll", "truely", "[1}", "1,2", "1e99999999999999999999x"])
def test_a_word_or_number_that_goes_on_is_no_json(text: str) -> None:
    with pytest.raises(ValueError, match=r".+"):
        loads(text)


def test_half_a_pair_of_surrogates_is_a_question_mark_unless_it_is_to_be_kept() -> None:
    assert loads('{"a":"x\\ud800"}') == {"a": "x?"}
    assert loads('"x\\ud800"', keep_halves=True) == "x\ud800"
