"""Threads that come when there is work and go when there is none for a while.

The standard library's pool keeps every thread it has ever made. A burst of a thousand connectors leaves it with
hundreds, each with a stack and an arena of its own, for the life of a process that then has next to nothing to do.
"""

from __future__ import annotations

import logging
import threading
from collections import deque
from collections.abc import Callable
from typing import Final

log = logging.getLogger(__name__)

IDLE_S: Final = 5.0
"""A thread without work is kept so long."""


class Threads:
    """Runs callables side by side. Safe for use by several threads.

    Args:
        name: What the threads are called.
        most: How many there are at most; what comes beyond waits its turn.
        idle_s: How long one is kept without work.
        ending: Called in each thread when it goes, to let go of what is kept for it.
    """

    def __init__(
        self, name: str, most: int, *, idle_s: float = IDLE_S, ending: Callable[[], None] = lambda: None
    ) -> None:
        self._name = name
        self._most = most
        self._idle_s = idle_s
        self._ending = ending
        self._changed = threading.Condition()
        self._waiting: deque[Callable[[], None]] = deque()
        self._count = 0
        self._idle = 0
        self._number = 0
        self._closed = False

    def submit(self, act: Callable[[], None]) -> None:
        """Run `act` as soon as a thread is there; what it raises is logged. After `close` nothing is run."""
        with self._changed:
            if self._closed:
                return
            self._waiting.append(act)
            if self._idle >= len(self._waiting):
                self._changed.notify()
                return
            if self._count >= self._most:
                return
            self._count += 1
            self._number += 1
            name = f"{self._name}-{self._number}"
        threading.Thread(target=self._work, name=name, daemon=True).start()

    def close(self) -> None:
        """Drop what waits, and let threads end with what they do now."""
        with self._changed:
            self._closed = True
            self._waiting.clear()
            self._changed.notify_all()

    @property
    def count(self) -> int:
        """How many threads there are."""
        with self._changed:
            return self._count

    def _work(self) -> None:
        while (act := self._next()) is not None:
            self._do(act)
            del act  # what it holds is not kept while nothing is done
        self._do(self._ending)

    def _do(self, act: Callable[[], None]) -> None:
        try:
            act()
        except Exception:
            log.exception("Something unforeseen happened in thread %s", threading.current_thread().name)

    def _next(self) -> Callable[[], None] | None:
        """The next work; None when the thread is to end, which it then is counted as."""
        with self._changed:
            while not self._waiting and not self._closed:
                self._idle += 1
                woken = self._changed.wait(self._idle_s)
                self._idle -= 1
                if not woken and not self._waiting:
                    break
            if self._waiting:
                return self._waiting.popleft()
            self._count -= 1
            return None
