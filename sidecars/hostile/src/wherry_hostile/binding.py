"""What the services share: the configuration that Configure has set, its generation, and whether it is over."""

from __future__ import annotations

import threading
import time
from dataclasses import dataclass, field
from typing import Final

from wherry.contract.description import Role
from wherry.contract.errors import ConnectorBugError, FencedError, TransientError
from wherry_hostile.modes import Wishes
from wherry_hostile.settings import Settings

STOP_POLL_S: Final = 0.01


@dataclass(slots=True)
class Bound:
    """One Configure.

    Attributes:
        generation: Its generation.
        settings: Its configuration.
        fenced: Set when a newer generation has taken over.
    """

    generation: int
    settings: Settings
    fenced: threading.Event = field(default_factory=threading.Event)


class Binding:
    """Holds the one Configure that counts. Safe for all threads."""

    def __init__(self, always: frozenset[str]) -> None:
        self.always = always
        self.stopping = threading.Event()
        self._lock = threading.Lock()
        self._bound: Bound | None = None
        self._streams = 0

    @property
    def wishes(self) -> Wishes:
        """What is asked for now, configured or not."""
        bound = self._bound
        return bound.settings.wishes if bound is not None else Wishes(self.always)

    def bind(self, generation: int, settings: Settings) -> None:
        """Takes a configuration.

        Raises:
            FencedError: There was a newer one.
        """
        with self._lock:
            old = self._bound
            if old is not None and generation < old.generation:
                raise FencedError(f"Generation {generation} was replaced by generation {old.generation}.")
            if old is not None and generation > old.generation:
                old.fenced.set()
            fenced = old.fenced if old is not None and generation == old.generation else threading.Event()
            self._bound = Bound(generation, settings, fenced)
            self.stopping.clear()

    def current(self, role: Role) -> Bound:
        """Returns the configuration if it is of a role.

        Raises:
            ConnectorBugError: There is none, or it is of another role.
        """
        bound = self._bound
        if bound is None:
            raise ConnectorBugError("Configure has to come before this call.")
        if bound.settings.role is not role:
            raise ConnectorBugError(f"The process is configured as a {bound.settings.role.name.lower()}.")
        return bound

    def enter(self, role: Role, generation: int) -> Bound:
        """Begins a stream; `leave` ends it.

        Raises:
            WherryError: It may not begin.
        """
        bound = self.current(role)
        if generation != bound.generation:
            raise FencedError(f"The stream is of generation {generation}, the process of {bound.generation}.")
        with self._lock:
            if self.stopping.is_set():
                raise TransientError("The sidecar is stopping.")
            self._streams += 1
        return bound

    def leave(self) -> None:
        """Ends what `enter` has begun."""
        with self._lock:
            self._streams -= 1

    def end_streams(self, within_s: float) -> None:
        """Asks the streams to end and waits for them."""
        self.stopping.set()
        deadline = time.monotonic() + within_s
        while self._streams and time.monotonic() < deadline:
            time.sleep(STOP_POLL_S)
