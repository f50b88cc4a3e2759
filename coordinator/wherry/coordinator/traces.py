"""Which trace a connector's work belongs to: that of the call that last changed what the connector should do.

Between a call and what follows from it lie queues and other threads, which a span's own context does not pass.
"""

from __future__ import annotations

import threading

from wherry.contract import trace


class Traces:
    """Trace contexts by connector; one for each connector at most."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._parents: dict[str, str] = {}

    def follow(self, connector: str) -> None:
        """Let the connector's work from now on belong to the current span; without one it goes on as it was."""
        parent = trace.current_traceparent()
        if parent:
            with self._lock:
                self._parents[connector] = parent

    def parent(self, connector: str) -> str:
        """The traceparent of a connector's work; empty when there is none."""
        with self._lock:
            return self._parents.get(connector, "")

    def forget(self, connector: str) -> None:
        """The connector is gone."""
        with self._lock:
            self._parents.pop(connector, None)
