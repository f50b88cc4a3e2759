"""Waiting for something to come true, and telling whether a process is there."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

POLL_S = 0.02


def eventually(condition: Callable[[], bool], timeout_s: float = 60.0) -> bool:
    """Poll until the condition holds; tell whether it did in time."""
    deadline = time.monotonic() + timeout_s
    while not condition():
        if time.monotonic() >= deadline:
            return False
        time.sleep(POLL_S)
    return True


def is_alive(pid: int) -> bool:
    """Tell whether a process runs; a zombie does not."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False
