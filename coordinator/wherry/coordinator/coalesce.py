"""Many askers, few calls: a thousand connectors that are planned at once all want the same list of topics.

Invariant: whoever asks gets the outcome of a call that began after the question, so nothing old is ever told.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Generic, TypeVar

T = TypeVar("T")


class Coalesced(Generic[T]):
    """Calls `act` once for all who ask while the last call is under way. Safe for use by several threads.

    Args:
        act: Has a deadline of its own; nobody waits longer than for two of its calls. What it raises is raised in
            every asker.
    """

    def __init__(self, act: Callable[[], T]) -> None:
        self._act = act
        self._changed = threading.Condition()
        self._running = False
        self._begun = 0
        self._done = 0
        self._value: T | None = None
        self._error: Exception | None = None

    def __call__(self) -> T:
        """The answer."""
        with self._changed:
            wanted = self._begun + 1
            while self._running and self._done < wanted:
                self._changed.wait()
            if self._done >= wanted:
                return self._outcome()
            self._running = True
            self._begun += 1
        value, error = None, None
        try:
            value = self._act()
        except Exception as failure:
            error = failure
        with self._changed:
            self._running = False
            self._done = self._begun
            self._value, self._error = value, error
            self._changed.notify_all()
            return self._outcome()

    def _outcome(self) -> T:
        if self._error is not None:
            raise self._error
        return self._value  # type: ignore[return-value]  # set by a call that raised nothing
