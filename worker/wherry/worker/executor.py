"""The Spark executor that this worker belongs to, as the kernel shows it: Spark tells Python workers nothing of it."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Final

_OPTION: Final = "--executor-id"
_PROC: Final = Path("/proc")


def pid(*, proc: Path = _PROC) -> int:
    """Return the process id of the executor: worker, Spark's Python daemon, executor."""
    return _parent_of(os.getppid(), proc)


def own_id(*, proc: Path = _PROC) -> str:
    """Return Spark's id of the executor; empty where leases run beside the driver, or outside of Spark."""
    try:
        words = (proc / str(pid(proc=proc)) / "cmdline").read_bytes().decode(errors="replace").split("\0")
    except OSError:
        return ""
    return words[words.index(_OPTION) + 1] if _OPTION in words[:-1] else ""


def _parent_of(process: int, proc: Path) -> int:
    """Return the parent of a process; the process itself when it has none that can be seen."""
    try:
        return int((proc / str(process) / "stat").read_text().rpartition(")")[2].split()[1]) or process
    except (OSError, ValueError, IndexError):
        return process
