"""The text form of values."""

from __future__ import annotations

import datetime
import json
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from wherry.contract import values
from wherry.contract.data import Instant
from wherry.contract.java_text import java_text

DATES = json.loads((Path(__file__).parents[2] / "cases/values/dates.json").read_text())


@pytest.mark.parametrize(
    ("number", "text"),
    [
        (0.0, "0.0"),
        (-0.0, "-0.0"),
        (1.0, "1.0"),
        (5e-3, "0.005"),
        (1e-3, "0.001"),
        (1e-4, "1.0E-4"),
        (9999999.0, "9999999.0"),
        (1e7, "1.0E7"),
        (1.5e300, "1.5E300"),
        (9.223372036854776e18, "9.223372036854776E18"),
        (-123456789.25, "-1.2345678925E8"),
        (float("nan"), "NaN"),
        (float("-inf"), "-Infinity"),
    ],
)
def test_doubles_print_as_java_prints_them(number: float, text: str) -> None:
    assert java_text(number) == text


def test_a_single_precision_number_has_no_more_digits_than_it_needs() -> None:
    assert java_text(0.10000000149011612, pa.float32()) == "0.1"


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (None, "null"),
        (True, "true"),
        (7, "7"),
        ("x", "x"),
        ({"some_key": 0}, "{some_key=0}"),
        ({"a": None, "b": [1, "x", None]}, "{a=null, b=[1, x, null]}"),
        ({}, "{}"),
    ],
)
def test_schemaless_values_print_as_java_maps_and_lists(value: Any, text: str) -> None:
    assert java_text(value) == text


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (datetime.date(2030, 11, 8), "Fri Nov 08 00:00:00 UTC 2030"),
        (datetime.time(23, 23, 21, 318_000), "Thu Jan 01 23:23:21 UTC 1970"),
        (datetime.datetime(2023, 11, 14, 22, 13, 20, tzinfo=datetime.UTC), "Tue Nov 14 22:13:20 UTC 2023"),
        (Decimal("1.50"), "1.50"),
        (b"abc", "java.nio.HeapByteBuffer[pos=0 lim=3 cap=3]"),
    ],
)
def test_logical_values_print_as_the_java_objects_they_are_there(value: Any, text: str) -> None:
    assert java_text(value) == text


@pytest.mark.parametrize(("ms", "text", "written"), DATES)
def test_a_moment_of_any_year_prints_as_java_prints_it(ms: int, text: str, written: str) -> None:
    assert (java_text(Instant(ms)), values.format(Instant(ms))) == (text, written)


def test_a_list_of_moments_beyond_the_year_9999_prints() -> None:
    assert java_text([Instant(253_402_300_800_000)]) == "[Sat Jan 01 00:00:00 UTC 10000]"
