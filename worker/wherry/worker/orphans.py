"""Ends a process together with the one that started it."""

from __future__ import annotations

import ctypes
import os
import signal
from typing import Final

PR_SET_PDEATHSIG: Final = 1


def end_with_parent() -> None:
    """Have the kernel kill this process when its parent dies.

    Spark's daemon forks workers from its only thread, so the signal, which is bound to the forking thread, comes when
    the daemon dies and not before. Without it a worker whose daemon was killed would write on.
    """
    parent = os.getppid()
    ctypes.CDLL(None, use_errno=True).prctl(PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    if os.getppid() != parent:
        # The parent died before the kernel was told.
        os._exit(1)
