"""What flows that kill something have in common."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Final, Protocol

from tests.bench.processes import BenchError
from tests.support.pairs import POLL_SECONDS

BEFORE_SECONDS: Final = 3.0
"""How long everything runs before the kill, and again after the last pair moves."""
MOVING_SECONDS_MAX: Final = 60.0


class Logs(Protocol):
    """A worker whose log can be shown."""

    def log_tail(self) -> str:
        """The end of its log."""


def until(done: Callable[[], object], seconds: float, what: str, worker: Logs) -> None:
    """Wait for something.

    Raises:
        BenchError: It did not come about in time; the end of the worker's log is told.
    """
    deadline = time.monotonic() + seconds
    while not done():
        if time.monotonic() > deadline:
            raise BenchError(f"Waited {seconds:.0f} s in vain until {what}; the log ends:\n{worker.log_tail()}")
        time.sleep(POLL_SECONDS)
