"""librdkafka's own log lines, through Python's logging and not in floods.

A client that can't reach its broker says so many times a second, on stderr if nobody takes it. Here a line of the same
kind passes once in a while, and the reader and writer tell the trouble in the lease's report.
"""

from __future__ import annotations

import logging
import time
from typing import Final

REPEAT_AFTER_S: Final = 30.0
KINDS_KNOWN_MAX: Final = 256
# The arguments of a line are facility, client and text; the text varies with times and states.
_FACILITY: Final = 0


class OncePerKind(logging.Filter):
    """Lets the first line of a kind pass, and another after a while."""

    def __init__(self, repeat_after_s: float = REPEAT_AFTER_S) -> None:
        super().__init__()
        self._repeat_after_s = repeat_after_s
        self._passed: dict[tuple[int, str], float] = {}

    def filter(self, record: logging.LogRecord) -> bool:
        """Tells whether a line passes."""
        facility = (
            str(record.args[_FACILITY]) if isinstance(record.args, tuple) and record.args else record.getMessage()
        )
        kind = (record.levelno, facility[:64])
        now = time.monotonic()
        if now - self._passed.get(kind, float("-inf")) < self._repeat_after_s:
            return False
        if len(self._passed) >= KINDS_KNOWN_MAX:
            self._passed.clear()
        self._passed[kind] = now
        return True


def client_logger(client_id: str) -> logging.Logger:
    """Returns the logger of one client, a child of `wherry.worker.kafka`."""
    logger = logging.getLogger(f"wherry.worker.kafka.{client_id}")
    if not logger.filters:
        logger.addFilter(OncePerKind())
    return logger
