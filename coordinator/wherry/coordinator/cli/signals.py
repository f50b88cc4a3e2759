"""Ctrl-C and SIGTERM as one exception that unwinds a command, so that its servers are stopped in order."""

from __future__ import annotations

import signal
from types import FrameType

_EXIT_BASE = 128


class StopRequested(BaseException):
    """The user or the system asks this process to end.

    Not an `Exception`, so that no library takes it for a failure and goes on. A command that runs in the foreground
    until it is stopped catches it and succeeds.
    """

    def __init__(self, number: int) -> None:
        super().__init__(f"signal {number}")
        self.exit_code = _EXIT_BASE + number


def install() -> None:
    """Turn the first SIGINT or SIGTERM into `StopRequested`; a second one ends the process at once."""
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, _request_stop)


def _request_stop(number: int, _: FrameType | None) -> None:
    for each in (signal.SIGINT, signal.SIGTERM):
        signal.signal(each, signal.SIG_DFL)
    raise StopRequested(number)
