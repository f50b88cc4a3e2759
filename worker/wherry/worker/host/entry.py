"""One sidecar's place in the supervisor: its state, its users and its crashes.

Pure but for the lock: the time is given. Decides when a sidecar that has crashed may be started again, and when one is
no longer needed.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from enum import Enum, auto
from typing import Final

from wherry.contract.errors import ConnectorBugError
from wherry.worker.host.bootstrap import Instance
from wherry.worker.host.process import SidecarProcess

# Between one use and the next of the same work (plan, then lease; a lease that is taken over) it is kept warm.
LINGER_S: Final = 3.0
# A plugin that is only asked to describe itself is not kept longer than this, whoever forgot to release it.
PLUGIN_AGE_MAX_S: Final = 600.0

PLANNING: Final = "planning"
"""In the place of a class: the process of a plugin that plans for several connectors."""

CRASH_WINDOW_S: Final = 60.0
# Pause before a start, by the crashes within the window; one crash more and it is given up until some are forgotten.
CRASH_PAUSES_S: Final = (0.0, 0.0, 0.2, 0.5, 1.0, 2.0)


@dataclass(frozen=True, slots=True)
class Key:
    """What one sidecar process serves. A plugin that is not configured has a folder only, a transformation an alias."""

    connector: str
    generation: int
    class_name: str
    directory: str
    alias: str = ""

    @property
    def is_plugin(self) -> bool:
        """Whether it is a plugin that is not configured."""
        return not self.connector


class State(Enum):
    """Where an entry stands."""

    DOWN = auto()
    STARTING = auto()
    READY = auto()
    STOPPING = auto()


@dataclass(slots=True)
class Crashes:
    """The crashes of one sidecar that are not forgotten yet."""

    times_s: deque[float] = field(default_factory=deque)
    message: str = ""

    def note(self, message: str, now_s: float) -> None:
        """Note a crash and how it came about, such as "ended with code 1"."""
        self.times_s.append(now_s)
        self.message = message

    def pause_s(self, what: str, now_s: float) -> float:
        """Return how long to wait before the next start; not above 0 means not at all.

        Raises:
            ConnectorBugError: It has crashed too often.
        """
        while self.times_s and now_s - self.times_s[0] > CRASH_WINDOW_S:
            self.times_s.popleft()
        count = len(self.times_s)
        if count >= len(CRASH_PAUSES_S):
            again_s = self.times_s[0] + CRASH_WINDOW_S - now_s
            raise ConnectorBugError(
                f"the sidecar of {what} failed {count} times within {CRASH_WINDOW_S:g} s and is not started again for "
                f"{again_s:.0f} s; the last time it {self.message}"
            )
        return self.times_s[-1] + CRASH_PAUSES_S[count] - now_s if count else 0.0

    def is_forgotten(self, now_s: float) -> bool:
        """Whether there is nothing to remember."""
        return not self.times_s or now_s - self.times_s[-1] > CRASH_WINDOW_S


@dataclass(slots=True)
class Entry:
    """One sidecar: its state, its users and its history. `changed` guards all of it."""

    key: Key
    changed: threading.Condition = field(default_factory=threading.Condition)
    state: State = State.DOWN
    instance: Instance | None = None
    process: SidecarProcess | None = None
    config_digest: str = ""
    # Of each user, how to stop watching its process.
    holders: dict[str, Callable[[], None]] = field(default_factory=dict)
    # Ids of the last processes: a user that saw an earlier one may still release it.
    instance_ids: deque[str] = field(default_factory=lambda: deque(maxlen=16))
    crashes: Crashes = field(default_factory=lambda: Crashes())
    starts: int = 0
    free_since_s: float = 0.0
    born_s: float = 0.0
    # Removed from the table: whoever has waited for it must look it up again.
    gone: bool = False

    @property
    def name(self) -> str:
        """What to call it in a message: its connector, or its plugin's folder."""
        return self.key.connector or self.key.directory.rsplit("/", 1)[-1]

    def is_over(self, now_s: float) -> bool:
        """Whether it is to be stopped because nobody uses it. The caller holds `changed`."""
        if self.state not in (State.READY, State.DOWN):
            return False
        if self.key.is_plugin and self.key.class_name != PLANNING and now_s - self.born_s > PLUGIN_AGE_MAX_S:
            return True
        if self.holders or now_s - self.free_since_s < LINGER_S:
            return False
        # The memory of crashes outlives the process, or a crash loop would be forgotten with each user that gives up.
        return self.state is State.READY or self.crashes.is_forgotten(now_s)
