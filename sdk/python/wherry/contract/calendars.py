"""Java's calendar: Julian before 1582-10-15 and Gregorian from there on, for any year. Pure."""

from __future__ import annotations

from typing import Final

GREGORIAN_START: Final = -141_427
"""1582-10-15 as days since the epoch: from here on the Gregorian calendar holds."""

# Days from 0000-03-01 to the epoch, by either calendar.
_EPOCH_GREGORIAN, _EPOCH_JULIAN = 719_468, 719_470
_ERA_DAYS: Final = 146_097
_FOUR_YEARS_DAYS: Final = 1461


def calendar_day(day: int) -> tuple[int, int, int]:
    """Returns year, month and day of the month of a day since the epoch; the year before 1 is 0."""
    if day < GREGORIAN_START:
        year, in_year = divmod((day + _EPOCH_JULIAN) * 4 + 3, _FOUR_YEARS_DAYS)
        in_year //= 4
    else:
        era, in_era = divmod(day + _EPOCH_GREGORIAN, _ERA_DAYS)
        in_era_year = (in_era - in_era // 1460 + in_era // 36_524 - in_era // 146_096) // 365
        in_year = in_era - (365 * in_era_year + in_era_year // 4 - in_era_year // 100)
        year = in_era_year + era * 400
    # Years that begin in March, so that the day a leap year adds comes last.
    month = (5 * in_year + 2) // 153
    day_of_month = in_year - (153 * month + 2) // 5 + 1
    month = month + 3 if month < 10 else month - 9
    return year + (month <= 2), month, day_of_month


def day_of(year: int, month: int, day: int) -> int:
    """Returns a date as days since the epoch; months and days beyond their range roll over."""
    carried, month = divmod(month - 1, 12)
    year += carried
    year, month = (year - 1, month + 10) if month < 2 else (year, month - 2)
    in_year = (153 * month + 2) // 5 + day - 1
    gregorian = 365 * year + year // 4 - year // 100 + year // 400 + in_year - _EPOCH_GREGORIAN
    if gregorian >= GREGORIAN_START:
        return gregorian
    return 365 * year + year // 4 + in_year - _EPOCH_JULIAN
