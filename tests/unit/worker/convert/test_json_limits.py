"""What is more than Jackson takes fails, alone, as one of many, and beside others; as recorded from Kafka Connect."""

from __future__ import annotations

import json
import re
from contextlib import nullcontext
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from tests.support import json_cases as cases
from tests.support.json_cases import Group

from wherry.contract.schemaless import BAD_JSON
from wherry.worker.convert import DataError, json_limits
from wherry.worker.convert.header_json import JsonHeaders
from wherry.worker.convert.json import JsonConverter

pytestmark = pytest.mark.usefixtures("both_ways")

GROUPS = cases.groups("limits")
DEEPEST_SURE = 900
"""Python's own parser ends before the deepest that Jackson takes, so what lies between may fail here."""


def text_of(parts: list[list[Any]]) -> bytes:
    return "".join(text * times for text, times in parts).encode()


def is_between(parts: list[list[Any]]) -> bool:
    depth = max((text.count("[") + text.count("{")) * times for text, times in parts)
    return DEEPEST_SURE < depth <= json_limits.DEPTH_MAX


def refused(group: Group, column: pa.Array) -> set[int]:
    converted = JsonConverter(group.settings, is_key=False).to_connect("t", column)
    assert {str(failure.error) for failure in converted.failures} <= {BAD_JSON}
    return {failure.row for failure in converted.failures}


@pytest.mark.parametrize("rows", [1, 3])
@pytest.mark.parametrize("group", GROUPS, ids=str)
def test_what_is_more_than_jackson_takes_fails_and_nothing_else(group: Group, rows: int) -> None:
    wrong = []
    for parts, taken in group.rows:
        found = refused(group, pa.array([text_of(parts)] * rows, pa.binary()))
        if found != (set() if taken is True else set(range(rows))) and not (taken is True and is_between(parts)):
            wrong.append(f"{parts}: {taken}, but refused here were {len(found)} of {rows}")
    assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize("group", GROUPS, ids=str)
def test_what_is_too_much_touches_no_record_beside_it(group: Group) -> None:
    rows = [(parts, taken) for parts, taken in group.rows if not is_between(parts)]
    found = refused(group, pa.array([text_of(parts) for parts, _ in rows], pa.binary()))
    assert found == {row for row, (_, taken) in enumerate(rows) if taken is not True}


def test_a_header_is_read_within_the_same_limits() -> None:
    group = GROUPS[0]
    headers = JsonHeaders(JsonConverter(group.settings, is_key=False))
    for parts, taken in group.rows:
        if is_between(parts):
            continue
        if taken is True:
            headers.read(text_of(parts))
        else:
            with pytest.raises(DataError, match=re.escape(BAD_JSON)):
                headers.read(text_of(parts))


@pytest.mark.parametrize(
    ("character", "times", "taken"), [("a", 20_000_000, True), ("a", 20_000_001, False), ("😀", 10_000_001, False)]
)
def test_a_text_may_have_twenty_million_characters_of_utf_16(character: str, times: int, taken: bool) -> None:
    text = f'{{"a":"{character * times}"}}'
    with nullcontext() if taken else pytest.raises(ValueError, match="a text of more than"):
        json_limits.check(text)


ORDINARY = [
    {"id": f"3e123456-7e12-4e34-8e56-4e{row:010}", "at": 1_700_000_000_000 + row, "amount": row * 1.25e-7, "e": 1e10}
    for row in range(50)
]


@pytest.mark.parametrize(
    "text",
    [*map(json.dumps, ORDINARY), json.dumps(ORDINARY), json.dumps({"n": [*range(3_000)]}), json.dumps(["x" * 12_000])],
)
def test_ordinary_records_are_told_at_a_glance(text: str) -> None:
    lines = pa.array([text])
    assert not json_limits.may_exceed(lines, np.frombuffer(text.encode(), np.uint8))


@pytest.mark.parametrize("offset", range(12))
def test_an_exponent_of_ten_digits_is_seen_wherever_it_stands(offset: int) -> None:
    for power in ("e2147483648", "E-2147483648", "e+00000000001"):
        text = "[" + " " * offset + "1" + power + ', "at"]'
        assert json_limits.may_exceed(pa.array([text]), np.frombuffer(text.encode(), np.uint8))
    for number in ("1", "-12.75", "0.0"):
        text = " " * offset + number + "e9999999999"
        assert json_limits.may_exceed(pa.array([text]), np.frombuffer(text.encode(), np.uint8))


@pytest.mark.parametrize("offset", range(0, 130, 7))
def test_a_number_of_too_many_digits_is_seen_wherever_it_stands(offset: int) -> None:
    text = "[" + " " * offset + "1" * 1_001 + "]"
    assert json_limits.may_exceed(pa.array([text]), np.frombuffer(text.encode(), np.uint8))
