"""Versions that a configuration asks for: one, or a Maven range; a bare version is exact, as in Kafka Connect. Pure."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

LATEST: Final = "latest"
_INTERVAL: Final = re.compile(r"\s*([\[(])([^\[\](),]*)(,?)([^\[\](),]*)([\])])\s*(?:,|$)")


class VersionRangeError(ValueError):
    """The text is no range."""


@dataclass(frozen=True, slots=True)
class Interval:
    """Versions between two bounds; an empty bound does not bind."""

    low: str
    high: str
    with_low: bool = True
    with_high: bool = True

    def holds(self, version: str) -> bool:
        """Whether a version lies in it."""
        number = _number(version)
        if self.low and (number < _number(self.low) or (number == _number(self.low) and not self.with_low)):
            return False
        return not self.high or (number < _number(self.high) or (number == _number(self.high) and self.with_high))

    def __str__(self) -> str:
        return f"{'[' if self.with_low else '('}{self.low},{self.high}{']' if self.with_high else ')'}"


@dataclass(frozen=True, slots=True)
class VersionRange:
    """What a configuration asks for."""

    intervals: tuple[Interval, ...]

    @classmethod
    def parse(cls, text: str) -> VersionRange | None:
        """Read a version or a range; None for `latest`, which any version is until a newer one is installed.

        Raises:
            VersionRangeError: It is neither.
        """
        text = text.strip()
        if text == LATEST:
            return None
        if not text.startswith(("[", "(")):
            return cls((Interval(text, text),))
        intervals, end = [], 0
        while end < len(text):
            match = _INTERVAL.match(text, end)
            if match is None:
                raise VersionRangeError(f"Unbounded range: {text}")
            opening, low, comma, high, closing = match.groups()
            low, high = low.strip(), high.strip()
            intervals.append(Interval(low, high if comma else low, opening == "[", closing == "]"))
            end = match.end()
        return cls(tuple(intervals))

    def holds(self, version: str) -> bool:
        """Whether a version lies in it; an empty text asks for a version that has no name."""
        return any((each.low or each.high) and each.holds(version) for each in self.intervals)

    def __str__(self) -> str:
        return ",".join(map(str, self.intervals))


def not_found(class_name: str, wanted: VersionRange, *available: str) -> str:
    """The sentence about a version that is not there."""
    return (
        f"Plugin {class_name} not found that matches the version range {wanted}, "
        f"available versions: [{', '.join(available)}]"
    )


def _number(text: str) -> tuple[tuple[int, ...], str]:
    """Orders versions: by their numbers, then a qualifier comes before none."""
    digits = tuple(int(part) for part in re.findall(r"\d+", re.split(r"[-+]", text, maxsplit=1)[0]))
    stripped = digits[: max((at + 1 for at, digit in enumerate(digits) if digit), default=0)]
    return stripped, text.partition("-")[2] or "~"
