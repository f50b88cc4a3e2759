"""Java's `SimpleDateFormat`, in English and UTC: patterns to format and to parse moments with.

Parsing is as lenient as Java's: numbers may be longer or out of range and roll over, blanks may stand before a field,
what follows the last field is ignored. Dates before 1582-10-15 count by the Julian calendar, as Java's do. In texts,
weeks of a month (`W`, `F`) are read and passed over.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final

from wherry.contract.calendars import calendar_day, day_of
from wherry.contract.data import DAY_MS

_LETTERS: Final = frozenset("GyYMLwWDdFEuaHkKhmsSzZX")
_MONTHS: Final = (
    "January", "February", "March", "April", "May", "June", "July", "August", "September", "October", "November",
    "December",
)  # fmt: skip
_DAYS: Final = ("Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday")
_ZONES: Final[Mapping[str, int]] = {
    "UTC": 0, "UT": 0, "GMT": 0, "Z": 0, "Coordinated Universal Time": 0, "EST": -300, "EDT": -240, "CST": -360,
    "CDT": -300, "MST": -420, "MDT": -360, "PST": -480, "PDT": -420, "AKST": -540, "AKDT": -480, "HST": -600,
    "WET": 0, "WEST": 60, "BST": 60, "CET": 60, "CEST": 120, "MET": 60, "EET": 120, "EEST": 180, "MSK": 180,
    "IST": 330, "JST": 540, "KST": 540, "AEST": 600, "AEDT": 660, "NZST": 720, "NZDT": 780,
}  # fmt: skip
_HOUR_MS, _MINUTE_MS, _SECOND_MS = 3_600_000, 60_000, 1000
# Years of two digits lie between so many years ago and 20 years from now.
_CENTURY_BACK: Final = 80
_NUMBER: Final = re.compile(r"-?[0-9]+")


class PatternError(ValueError):
    """A pattern that Java refuses, in its words."""


@dataclass(frozen=True, slots=True)
class _Part:
    """A field of a pattern, or a text between fields (without a letter)."""

    letter: str
    count: int
    text: str = ""


class DateFormat:
    """One pattern.

    Args:
        pattern: The pattern.
        now_s: Seconds since the epoch, by which years of two digits are understood; None takes the clock's.

    Raises:
        PatternError: Java would refuse the pattern.
    """

    def __init__(self, pattern: str, now_s: float | None = None) -> None:
        self.pattern = pattern
        self._parts = tuple(_parse_pattern(pattern))
        now = time.time() if now_s is None else now_s
        self._century_start = 1970 + int(now / 31_556_952) - _CENTURY_BACK

    def format(self, moment_ms: int) -> str:
        """Returns the text of a moment."""
        day, ms = divmod(moment_ms, DAY_MS)
        calendar = _Calendar.of(day)
        return "".join(part.text if not part.letter else _field_text(part, calendar, ms) for part in self._parts)

    def parse(self, text: str) -> int | None:
        """Returns the moment a text stands for, in ms; None when it doesn't match."""
        place = 0
        found = _Fields()
        for number, part in enumerate(self._parts):
            if not part.letter:
                if not text.startswith(part.text, place):
                    return None
                place += len(part.text)
                continue
            abuts = number + 1 < len(self._parts) and bool(self._parts[number + 1].letter)
            # A number right before another has so many signs, of which blanks before it are some.
            limit = place + part.count if abuts else len(text)
            while place < len(text) and text[place] in " \t":
                place += 1
            end = self._parse_field(part, text, place, limit, found)
            if end is None:
                return None
            place = end
        return found.moment_ms()

    def _parse_field(self, part: _Part, text: str, place: int, limit: int, found: _Fields) -> int | None:
        letter, count = part.letter, part.count
        if letter in "zZX":
            return _parse_zone(part, text, place, found)
        names = _names(letter, count)
        if names is not None:
            named = _longest(names, text, place)
            if named is None:
                return None
            found.put(letter, named[1])
            return place + named[0]
        match = _NUMBER.match(text, place, limit) if limit <= len(text) else None
        if match is None:
            return None
        value = int(match[0])
        if letter in "yY" and count <= 2 and len(match[0]) == 2 and match[0].isdecimal():
            start = self._century_start
            value += start // 100 * 100 + (100 if value < start % 100 else 0)
        elif (letter == "k" and value == 24) or (letter == "h" and value == 12):
            value = 0
        found.put(letter, value)
        return match.end()


@dataclass(slots=True)
class _Fields:
    """What parsing has found so far; of fields that contradict each other the later one holds."""

    values: dict[str, int] = field(default_factory=dict)
    order: dict[str, int] = field(default_factory=dict)
    zone_minutes: int = 0

    def put(self, letter: str, value: int) -> None:
        self.values[letter] = value
        self.order[letter] = len(self.order) + 1

    def moment_ms(self) -> int:
        return self._day() * DAY_MS + self._time() - self.zone_minutes * _MINUTE_MS

    def _day(self) -> int:
        get, order = self.values.get, self.order.get
        year = get("y", 1970)
        if get("G") == 0:
            year = 1 - year
        weekday = self._weekday()
        if order("Y", 0) > order("y", 0):
            weekday = 0 if weekday is None else weekday
            return _week_start(self.values["Y"]) + (get("w", 1) - 1) * 7 + weekday
        month = get("M", get("L", 1))
        if order("D", 0) > order("d", 0):
            return day_of(year, 1, 1) + self.values["D"] - 1
        if "w" in self.values and weekday is not None and order("w", 0) > order("d", 0):
            return _week_start(year) + (self.values["w"] - 1) * 7 + weekday
        return day_of(year, month, get("d", 1))

    def _weekday(self) -> int | None:
        """Days since Sunday."""
        if self.order.get("u", 0) > self.order.get("E", 0):
            return self.values["u"] % 7
        return self.values.get("E")

    def _time(self) -> int:
        get, order = self.values.get, self.order.get
        of_day = max(("H", "k"), key=lambda letter: order(letter, 0))
        of_half = max(("h", "K"), key=lambda letter: order(letter, 0))
        if order(of_half, 0) > order(of_day, 0) or ("a" in self.values and of_half in self.values):
            hour = get(of_half, 0) + 12 * get("a", 0)
        else:
            hour = get(of_day, 12 * get("a", 0))
        return hour * _HOUR_MS + get("m", 0) * _MINUTE_MS + get("s", 0) * _SECOND_MS + get("S", 0)


@dataclass(frozen=True, slots=True)
class _Calendar:
    """A day with its year, month and day of the month."""

    day: int
    year: int
    month: int
    day_of_month: int

    @classmethod
    def of(cls, day: int) -> _Calendar:
        return cls(day, *calendar_day(day))

    @property
    def weekday(self) -> int:
        """Days since Sunday."""
        return (self.day + 4) % 7

    @property
    def day_of_year(self) -> int:
        return self.day - day_of(self.year, 1, 1) + 1

    def week(self) -> tuple[int, int]:
        """Returns the year that the week belongs to, and its number there."""
        for year in (self.year + 1, self.year):
            start = _week_start(year)
            if self.day >= start:
                return year, (self.day - start) // 7 + 1
        return self.year, 1

    @property
    def week_of_month(self) -> int:
        first_weekday = (self.weekday - self.day_of_month + 1) % 7
        return (self.day_of_month - 1 + first_weekday) // 7 + 1


def _week_start(year: int) -> int:
    """Returns the Sunday on or before the first of January: the first week's first day."""
    first = day_of(year, 1, 1)
    return first - (first + 4) % 7


def _parse_pattern(pattern: str) -> Iterator[_Part]:
    place, end = 0, len(pattern)
    text = ""
    while place < end:
        sign = pattern[place]
        if sign == "'":
            if pattern.startswith("''", place):
                text, place = text + "'", place + 2
                continue
            quoted, place = _quoted(pattern, place + 1)
            text += quoted
            continue
        if not (sign.isascii() and sign.isalpha()):
            text, place = text + sign, place + 1
            continue
        if sign not in _LETTERS:
            raise PatternError(f"Illegal pattern character '{sign}'")
        if text:
            yield _Part("", 0, text)
            text = ""
        start = place
        while place < end and pattern[place] == sign:
            place += 1
        if sign == "X" and place - start > 3:
            raise PatternError(f"invalid ISO 8601 format: length={place - start}")
        yield _Part(sign, place - start)
    if text:
        yield _Part("", 0, text)


def _quoted(pattern: str, place: int) -> tuple[str, int]:
    text = ""
    while True:
        closing = pattern.find("'", place)
        if closing < 0:
            raise PatternError("Unterminated quote")
        text += pattern[place:closing]
        if not pattern.startswith("''", closing):
            return text, closing + 1
        text, place = text + "'", closing + 2


def _field_text(part: _Part, calendar: _Calendar, ms: int) -> str:
    return _TEXTS[part.letter](part.count, calendar, ms)


def _padded(value: int, count: int) -> str:
    return f"-{-value:0{count}d}" if value < 0 else f"{value:0{count}d}"


def _year_text(count: int, year: int) -> str:
    return f"{year % 100:02d}" if count == 2 else _padded(year, count)


def _month_text(count: int, month: int) -> str:
    if count < 3:
        return _padded(month, count)
    return _MONTHS[month - 1] if count > 3 else _MONTHS[month - 1][:3]


_Text = Callable[[int, _Calendar, int], str]
_TEXTS: Final[Mapping[str, _Text]] = {
    "G": lambda count, calendar, ms: "AD" if calendar.year > 0 else "BC",
    "y": lambda count, calendar, ms: _year_text(count, calendar.year if calendar.year > 0 else 1 - calendar.year),
    "Y": lambda count, calendar, ms: _year_text(count, calendar.week()[0]),
    "M": lambda count, calendar, ms: _month_text(count, calendar.month),
    "L": lambda count, calendar, ms: _month_text(count, calendar.month),
    "w": lambda count, calendar, ms: _padded(calendar.week()[1], count),
    "W": lambda count, calendar, ms: _padded(calendar.week_of_month, count),
    "D": lambda count, calendar, ms: _padded(calendar.day_of_year, count),
    "d": lambda count, calendar, ms: _padded(calendar.day_of_month, count),
    "F": lambda count, calendar, ms: _padded((calendar.day_of_month - 1) // 7 + 1, count),
    "E": lambda count, calendar, ms: _DAYS[calendar.weekday] if count > 3 else _DAYS[calendar.weekday][:3],
    "u": lambda count, calendar, ms: _padded(calendar.weekday or 7, count),
    "a": lambda count, calendar, ms: "PM" if ms >= 12 * _HOUR_MS else "AM",
    "H": lambda count, calendar, ms: _padded(ms // _HOUR_MS, count),
    "k": lambda count, calendar, ms: _padded(ms // _HOUR_MS or 24, count),
    "K": lambda count, calendar, ms: _padded(ms // _HOUR_MS % 12, count),
    "h": lambda count, calendar, ms: _padded(ms // _HOUR_MS % 12 or 12, count),
    "m": lambda count, calendar, ms: _padded(ms // _MINUTE_MS % 60, count),
    "s": lambda count, calendar, ms: _padded(ms // _SECOND_MS % 60, count),
    "S": lambda count, calendar, ms: _padded(ms % _SECOND_MS, count),
    "z": lambda count, calendar, ms: "Coordinated Universal Time" if count > 3 else "UTC",
    "Z": lambda count, calendar, ms: "+0000",
    "X": lambda count, calendar, ms: "Z",
}


def _names(letter: str, count: int) -> list[tuple[str, int]] | None:
    """Returns the names a field may have with their values; None when it is a number."""
    if letter == "G":
        return [("BC", 0), ("AD", 1)]
    if letter == "a":
        return [("AM", 0), ("PM", 1)]
    if letter == "E":
        return [(name[:size], day) for day, name in enumerate(_DAYS) for size in (3, len(name))]
    if letter in "ML" and count > 2:
        return [(name[:size], month) for month, name in enumerate(_MONTHS, 1) for size in (3, len(name))]
    return None


def _longest(names: list[tuple[str, int]], text: str, place: int) -> tuple[int, int] | None:
    """Returns length and value of the longest name that stands at a place, in any case."""
    rest = text[place : place + 40].lower()
    fitting = [(len(name), value) for name, value in names if rest.startswith(name.lower())]
    return max(fitting, default=None)


def _parse_zone(part: _Part, text: str, place: int, found: _Fields) -> int | None:
    rest = text[place:]
    if part.letter == "X":
        if rest[:1] == "Z":
            found.zone_minutes = 0
            return place + 1
        form = (r"([+-])(\d\d)()", r"([+-])(\d\d)(\d\d)", r"([+-])(\d\d):(\d\d)")[part.count - 1]
        match = re.match(form, rest, re.ASCII)
    else:
        match = re.match(r"GMT([+-])(\d?\d):(\d\d)", rest, re.ASCII | re.IGNORECASE) or re.match(
            r"([+-])(\d\d)(\d\d)", rest, re.ASCII
        )
        if match is None:
            names = [(name, minutes) for name, minutes in _ZONES.items() if name != "Z"]
            named = _longest(names, text, place)
            if named is None:
                return None
            found.zone_minutes = named[1]
            return place + named[0]
    if match is None or int(match[2]) > 23 or int(match[3] or 0) > 59:
        return None
    found.zone_minutes = (int(match[2]) * 60 + int(match[3] or 0)) * (-1 if match[1] == "-" else 1)
    return place + match.end()
