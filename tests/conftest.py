"""How a failure of long lists is told: by where they begin to differ, not by all they hold."""

from __future__ import annotations

from itertools import zip_longest

LONG = 200
SHOWN = 5


def pytest_assertrepr_compare(op: str, left: object, right: object) -> list[str] | None:
    """Say in three lines what pytest says in tens of thousands, behind which the name of the test is lost."""
    if op != "==" or not isinstance(left, list) or not isinstance(right, list) or max(len(left), len(right)) < LONG:
        return None
    absent = object()
    place = next(i for i, (a, b) in enumerate(zip_longest(left, right, fillvalue=absent)) if a is absent or a != b)
    return [
        f"{len(left)} found, {len(right)} wanted; they differ from place {place} on:",
        f"found:  {left[place : place + SHOWN]!r:.400}",
        f"wanted: {right[place : place + SHOWN]!r:.400}",
    ]
