"""Compares an answer with what a case expects of it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from wherry.conformance.failure import Failure


def expect_match(found: Any, expected: Any, where: str) -> None:
    """Checks that everything expected is found; members that aren't mentioned are free.

    Numbers are compared as texts too, because JSON writes 64-bit integers as texts.

    Raises:
        Failure: Something else was found.
    """
    if isinstance(expected, Mapping):
        if not isinstance(found, Mapping):
            raise Failure(f"{where} is {found!r}; it should have {', '.join(map(str, expected))}.")
        for name, value in expected.items():
            expect_match(found.get(name), value, f"{where}.{name}")
    elif isinstance(expected, list):
        if not isinstance(found, list) or len(found) != len(expected):
            raise Failure(f"{where} is {found!r}; it should have {len(expected)} members.")
        for index, (one, value) in enumerate(zip(found, expected, strict=True)):
            expect_match(one, value, f"{where}[{index}]")
    elif found != expected and str(found) != str(expected):
        raise Failure(f"{where} is {found!r}; it should be {expected!r}.")
