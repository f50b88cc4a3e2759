"""What one system shows of all its connectors, looked at again and again for all walks together."""

from __future__ import annotations

import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from tests.peer.peers import Peer
from tests.peer.walks.moves import without_traces
from tests.support.rest import NoAnswerError

LOOK_S = 0.25
PATH = "/connectors?expand=status&expand=info"


@dataclass(frozen=True, slots=True)
class View:
    """What is shown of some connectors.

    Attributes:
        shown: By connector; one that isn't there is None.
        since: Since when it has been so, by the monotonic clock.
        asked: When it was asked for last, and answered.
    """

    shown: Mapping[str, Any]
    since: float
    asked: float


class Watcher:
    """Looks at one system until it is closed. A thread of its own.

    Args:
        peer: The system.
    """

    def __init__(self, peer: Peer) -> None:
        self._peer = peer
        self._lock = threading.Lock()
        self._shown: dict[str, tuple[float, Any]] = {}
        self._asked = 0.0
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._run, name=f"watch-{peer.name}", daemon=True)
        self._thread.start()

    def close(self) -> None:
        """End it."""
        self._ended.set()
        self._thread.join()

    def view(self, names: Sequence[str]) -> View:
        """What is shown of these connectors, named with placeholders."""
        with self._lock:
            found = {name: self._shown.get(name, (0.0, None)) for name in names}
            return View(
                {name: value for name, (_, value) in found.items()},
                max(since for since, _ in found.values()),
                self._asked,
            )

    def _run(self) -> None:
        while not self._ended.wait(LOOK_S):
            begun = time.monotonic()
            try:
                answer = self._peer.rest.call("GET", PATH)
            except NoAnswerError:
                continue
            if answer.status == 200 and isinstance(answer.body, dict):
                self._take(begun, without_traces(self._peer.neutral(answer.body)))

    def _take(self, begun: float, found: Mapping[str, Any]) -> None:
        now = time.monotonic()
        with self._lock:
            for name in {*self._shown, *found}:
                value = found.get(name)
                if name not in self._shown or self._shown[name][1] != value:
                    self._shown[name] = now, value
            self._asked = begun
