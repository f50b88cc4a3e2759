"""How many tasks a connector may have: `tasks.max`, within what a coordinator can keep.

Kafka Connect has no limit but its memory: a sink gets as many tasks as it asks for, and a worker that is asked for two
thousand millions of them dies. A source makes its tasks itself and mostly far fewer, so that the number is cut there.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from wherry.contract.config import invalid
from wherry.contract.description import Role

KEY: Final = "tasks.max"
TASKS_MAX: Final = 10_000


def tasks_max(config: Mapping[str, str]) -> int:
    """What a stored configuration asks for, at least 1 and at most `TASKS_MAX`."""
    try:
        return min(max(int(config.get(KEY, "1")), 1), TASKS_MAX)
    except ValueError:
        return 1  # a check refused it before; a store may hold what was written by others


def problems(config: Mapping[str, str], role: Role) -> dict[str, list[str]]:
    """What is wrong with the number of tasks, which is one already; nothing when it can be kept."""
    asked = config.get(KEY, "1")
    if role is not Role.SINK or int(asked) <= TASKS_MAX:
        return {}
    return {KEY: [invalid(KEY, asked, f"Value must be no more than {TASKS_MAX}, the tasks a sink can have here")]}
