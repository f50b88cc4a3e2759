"""What is told of restarts after failures: in the trace of a status, and for `/wherry/v1/restarts`.

Decides no restart (`task.py` and `connector.py` do); only says in words and figures what they have decided.
"""

from __future__ import annotations

from typing import Protocol

from wherry.coordinator.api import RestartInfo, State
from wherry.coordinator.events import Failure, RestartPolicy


class Failing(Protocol):
    """A task or a connector, as far as it fails."""

    @property
    def failure(self) -> Failure | None:
        """Why it failed last; None when it runs well."""

    @property
    def restarts(self) -> int:
        """Restarts in a row, that under way included."""

    @property
    def retry_at_ms(self) -> int | None:
        """When the next one comes; None when none is waited for."""


def told(part: Failing, policy: RestartPolicy, shown: State) -> str:
    """The trace that a status shows: the failure, and how often it is tried again."""
    if part.failure is None:
        return ""
    text = part.failure.text
    if part.retry_at_ms is not None:
        bound = f" of {policy.restarts_max}" if policy.restarts_max >= 0 else ""
        return f"{text}\nIt is started again by itself, restart {part.restarts}{bound} in a row."
    if shown is State.FAILED and policy.enabled and 0 < policy.restarts_max <= part.restarts:
        return f"{text}\nIt was given up after {part.restarts} restarts in a row (wherry.restart.max)."
    return text


def of(connector: str, task: int | None, part: Failing, policy: RestartPolicy, now_ms: int) -> RestartInfo | None:
    """What is to be told of a connector or task; None when it did not fail lately."""
    if part.failure is None and part.restarts == 0:
        return None
    next_in_ms = None if part.retry_at_ms is None else max(part.retry_at_ms - now_ms, 0)
    failure = "" if part.failure is None else part.failure.message
    return RestartInfo(
        connector, task, part.restarts, policy.restarts_max if policy.enabled else 0, next_in_ms, failure
    )
