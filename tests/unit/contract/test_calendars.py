"""Java's two calendars."""

from __future__ import annotations

import datetime

from hypothesis import given
from hypothesis import strategies as st

from wherry.contract.calendars import GREGORIAN_START, calendar_day, day_of

EPOCH = datetime.date(1970, 1, 1)


@given(st.integers(-(10**9), 10**9))
def test_a_day_is_found_again_by_its_date(day: int) -> None:
    assert day_of(*calendar_day(day)) == day


@given(st.dates(min_value=datetime.date(1582, 10, 15)))
def test_gregorian_days_are_pythons(date: datetime.date) -> None:
    assert calendar_day((date - EPOCH).days) == (date.year, date.month, date.day)


def test_ten_days_are_missing_between_the_calendars() -> None:
    assert calendar_day(GREGORIAN_START) == (1582, 10, 15)
    assert calendar_day(GREGORIAN_START - 1) == (1582, 10, 4)


def test_months_and_days_beyond_their_range_roll_over() -> None:
    assert day_of(2020, 13, 45) == day_of(2021, 2, 14)
    assert day_of(2020, 2, 30) == day_of(2020, 3, 1)
