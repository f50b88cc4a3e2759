"""A bounded queue between threads that costs little: what a frame passes on its way, three times.

`queue.Queue` makes a lock and several calls of Python for each item; `queue.SimpleQueue` is one call of C and has no
bound. Here the bound is looked at before each put. Several threads that put at the same moment may exceed it by one
item each.
"""

from __future__ import annotations

import queue
import time
from typing import Final, Generic, TypeVar

# A full queue is looked at again so soon.
FULL_WAIT_S: Final = 0.002

_Item = TypeVar("_Item")


class Handover(Generic[_Item]):
    """Items in the order they were put; the exceptions are those of `queue`."""

    def __init__(self, items_max: int) -> None:
        self._items: queue.SimpleQueue[_Item] = queue.SimpleQueue()
        self._items_max = items_max

    def put(self, item: _Item, timeout: float | None = None) -> None:
        """Adds an item; waits while the queue is full.

        Raises:
            queue.Full: It was full for so many seconds.
        """
        if self._items.qsize() >= self._items_max:
            self._wait_for_room(timeout)
        self._items.put(item)

    def put_nowait(self, item: _Item) -> None:
        """Adds an item unless the queue is full.

        Raises:
            queue.Full: It is.
        """
        self.put(item, 0.0)

    def get(self, timeout: float | None = None) -> _Item:
        """Takes the next item, waiting for it.

        Raises:
            queue.Empty: None came within so many seconds.
        """
        return self._items.get(timeout=timeout)

    def get_nowait(self) -> _Item:
        """Takes the next item.

        Raises:
            queue.Empty: There is none.
        """
        return self._items.get_nowait()

    def _wait_for_room(self, timeout: float | None) -> None:
        ends = None if timeout is None else time.monotonic() + timeout
        while self._items.qsize() >= self._items_max:
            if ends is not None and time.monotonic() >= ends:
                raise queue.Full
            time.sleep(FULL_WAIT_S)
