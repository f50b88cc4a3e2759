"""Whether a Python version satisfies a requirement such as ">=3.11,<4"; the part of PEP 440 that manifests use."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Final

_CLAUSE = re.compile(r"(>=|<=|==|!=|~=|>|<)\s*(\d+(?:\.\d+)*)(\.\*)?")

_TESTS: Final[dict[str, Callable[[tuple[int, ...], tuple[int, ...]], bool]]] = {
    ">=": lambda have, want: have >= want,
    "<=": lambda have, want: have[: len(want)] <= want,
    ">": lambda have, want: have[: len(want)] > want,
    "<": lambda have, want: have < want,
    "==": lambda have, want: have[: len(want)] == want,
    "!=": lambda have, want: have[: len(want)] != want,
    "~=": lambda have, want: have >= want and have[: len(want) - 1] == want[:-1],
}


def satisfies(version: Sequence[int], requirement: str) -> bool | None:
    """Tell whether a version satisfies a requirement; None when the requirement is not understood."""
    have = tuple(version)
    for clause in filter(None, (part.strip() for part in requirement.split(","))):
        found = _CLAUSE.fullmatch(clause)
        if found is None:
            return None
        if not _TESTS[found[1]](have, tuple(int(part) for part in found[2].split("."))):
            return False
    return True
