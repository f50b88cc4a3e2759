"""Comparing two answers field by field, and the differences that are wanted."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from tests.support.rest import Answer

HEADERS = ("Content-Type", "Location", "Allow")
MISSING = "(missing)"


@dataclass(frozen=True, slots=True)
class Difference:
    """One field in which the answers differ."""

    field: str
    connect: Any
    wherry: Any

    def __str__(self) -> str:
        return f"{self.field}: Kafka Connect {self.connect!r}, Wherry {self.wherry!r}"


@dataclass(frozen=True, slots=True)
class Accepted:
    """A difference that is wanted.

    Attributes:
        step: Pattern of the step's name.
        field: Pattern of the field; both have to match in full.
        reason: Why.
    """

    step: str
    field: str
    reason: str

    def covers(self, step: str, difference: Difference) -> bool:
        """Tell whether it is this difference."""
        return bool(re.fullmatch(self.step, step) and re.fullmatch(self.field, difference.field))


def differences(connect: Answer, wherry: Answer) -> list[Difference]:
    """Return all fields in which two answers differ: status, headers that clients read, and the body."""
    found = [] if connect.status == wherry.status else [Difference("status", connect.status, wherry.status)]
    for name in HEADERS:
        pair = _header(connect, name), _header(wherry, name)
        if pair[0] != pair[1]:
            found.append(Difference(name, *pair))
    return [*found, *_in_body("body", connect.body, wherry.body)]


def unwanted(step: str, found: Sequence[Difference], accepted: Sequence[Accepted]) -> list[Difference]:
    """Return the differences for which there is no reason."""
    return [difference for difference in found if not any(each.covers(step, difference) for each in accepted)]


def _header(answer: Answer, name: str) -> str:
    value = answer.headers.get(name, MISSING)
    # A set, whose order is that of a hash table.
    return ", ".join(sorted(part.strip() for part in value.split(","))) if name == "Allow" else value


def _in_body(field: str, connect: Any, wherry: Any) -> Iterator[Difference]:
    if isinstance(connect, dict) and isinstance(wherry, dict):
        for key in {**connect, **wherry}:
            yield from _in_body(f"{field}.{key}", connect.get(key, MISSING), wherry.get(key, MISSING))
    elif isinstance(connect, list) and isinstance(wherry, list) and len(connect) == len(wherry):
        for index, (one, other) in enumerate(zip(connect, wherry, strict=True)):
            yield from _in_body(f"{field}[{index}]", one, other)
    elif connect != wherry or type(connect) is not type(wherry):
        yield Difference(field, connect, wherry)
