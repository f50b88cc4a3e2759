"""What the engine says on a stream, taken in by a thread so that a stream can do something else meanwhile."""

from __future__ import annotations

import queue
import threading
from collections.abc import Iterator
from typing import Any, Final

import grpc

MESSAGES_MAX: Final = 4096
CLOSED: Final = object()


class Inbox:
    """A queue of requests; `CLOSED` when there are no more."""

    def __init__(self, requests: Iterator[Any]) -> None:
        self._queue: queue.Queue[Any] = queue.Queue(MESSAGES_MAX)
        threading.Thread(target=self._take, args=(requests,), daemon=True).start()

    def get(self, timeout_s: float) -> Any:
        """Returns the next request; None when none comes in time."""
        try:
            return self._queue.get(timeout=timeout_s) if timeout_s > 0 else self._queue.get_nowait()
        except queue.Empty:
            return None

    def _take(self, requests: Iterator[Any]) -> None:
        try:
            for request in requests:
                self._queue.put(request)
        except grpc.RpcError:
            pass  # The stream was broken off; its context knows.
        finally:
            self._queue.put(CLOSED)
