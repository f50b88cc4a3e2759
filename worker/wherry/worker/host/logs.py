"""What sidecars print: cut into lines, kept within a rate, and handed to whoever watches.

Decides which lines are passed on; never blocks a sidecar, and never keeps more than it was told to. Invariants: a line
is at most `LINE_BYTES_MAX` long, a flood is dropped and counted, and a slow watcher loses events instead of slowing
the others.
"""

from __future__ import annotations

import threading
from collections import deque
from dataclasses import dataclass

LINE_BYTES_MAX = 8 * 1024
LINES_PER_S = 500
LINES_BURST = 2_000
TAIL_BYTES = 8 * 1024
TAIL_LINES = 12
# A line without an end (a prompt, a progress bar) is passed on after so long.
PARTIAL_LINE_WAIT_S = 0.5
WATCHER_EVENTS_MAX = 4_000


class LogStream:
    """The output of one process. Used by one thread; `tail` may be read by others."""

    def __init__(self, *, lines_per_s: float = LINES_PER_S, lines_burst: int = LINES_BURST) -> None:
        self._rate = lines_per_s
        self._burst = float(lines_burst)
        self._tokens = self._burst
        self._filled_s = 0.0
        self._partial = b""
        self._partial_since_s = 0.0
        self._dropped = 0
        self._recent = b""

    def feed(self, chunk: bytes, now_s: float) -> list[str]:
        """Take what the process printed and return the lines to pass on."""
        # The tail is kept even through a flood: it explains how a process ended.
        self._recent = (self._recent + chunk)[-TAIL_BYTES:]
        self._refill(now_s)
        if self._tokens < 1.0:
            return self._drop(chunk, now_s)
        lines = (self._partial + chunk).split(b"\n")
        self._keep_partial(lines.pop(), now_s)
        passed = lines[: int(self._tokens)]
        self._dropped += len(lines) - len(passed)
        self._tokens -= len(passed)
        return self._note_dropped(len(passed) == len(lines)) + [_text(line) for line in passed if line]

    def tick(self, now_s: float) -> list[str]:
        """Return lines that have waited long enough: an unfinished one, and the count of those dropped."""
        self._refill(now_s)
        lines = self._note_dropped(self._tokens >= 1.0)
        if self._partial and now_s - self._partial_since_s >= PARTIAL_LINE_WAIT_S:
            lines.append(_text(self._partial))
            self._partial = b""
        return lines

    def close(self) -> list[str]:
        """Return what is left when the process has closed its output."""
        lines = self._note_dropped(True)
        if self._partial:
            lines.append(_text(self._partial))
            self._partial = b""
        return lines

    def tail(self, lines_max: int = TAIL_LINES) -> list[str]:
        """Return the last lines printed, also when a flood kept them from being passed on."""
        return [_text(line) for line in self._recent.split(b"\n") if line.strip()][-lines_max:]

    def _refill(self, now_s: float) -> None:
        if self._filled_s:
            self._tokens = min(self._burst, self._tokens + (now_s - self._filled_s) * self._rate)
        self._filled_s = now_s

    def _drop(self, chunk: bytes, now_s: float) -> list[str]:
        self._dropped += chunk.count(b"\n")
        self._keep_partial(chunk[chunk.rfind(b"\n") + 1 :][-LINE_BYTES_MAX:], now_s)
        return []

    def _keep_partial(self, rest: bytes, now_s: float) -> None:
        if rest and not self._partial:
            self._partial_since_s = now_s
        self._partial = rest[:LINE_BYTES_MAX]

    def _note_dropped(self, flood_is_over: bool) -> list[str]:
        if not self._dropped or not flood_is_over:
            return []
        count, self._dropped = self._dropped, 0
        return [f"({count} lines were dropped here: it printed more than {self._rate:g} lines a second)"]


@dataclass(frozen=True, slots=True, kw_only=True)
class SidecarEvent:
    """A line that a sidecar printed, or how it ended.

    Attributes:
        connector: Connector it serves; for one that is not configured, the plugin's name.
        instance_id: Its instance id.
        pid: Its process id.
        line: What it printed; None when it has ended.
        code: Exit code, negative for a signal; None while it runs.
        message: One sentence on how it ended.
        expected: Whether it was told to end.
    """

    connector: str
    instance_id: str
    pid: int
    line: str | None = None
    code: int | None = None
    message: str = ""
    expected: bool = False


class Subscription:
    """One watcher's bounded queue of events."""

    def __init__(self, events_max: int = WATCHER_EVENTS_MAX) -> None:
        self._events: deque[SidecarEvent] = deque()
        self._events_max = events_max
        self._changed = threading.Condition()
        self._lost = 0
        self._closed = False

    def put(self, event: SidecarEvent) -> None:
        """Add an event. A line that finds the queue full is lost; an exit takes the place of the oldest event."""
        with self._changed:
            if len(self._events) >= self._events_max:
                self._lost += 1
                if event.line is not None:
                    return
                self._events.popleft()
            self._events.append(event)
            self._changed.notify()

    def close(self) -> None:
        """End the iteration of the watcher."""
        with self._changed:
            self._closed = True
            self._changed.notify()

    def take(self, timeout_s: float) -> list[SidecarEvent]:
        """Return what has come, waiting for the first event; empty when the time is over or it was closed."""
        with self._changed:
            if not self._events and not self._closed:
                self._changed.wait(timeout_s)
            events = list(self._events)
            self._events.clear()
            if self._lost and events:
                last = events[-1]
                line = f"({self._lost} log lines of sidecars were lost here: nobody took them in time)"
                events.append(
                    SidecarEvent(connector=last.connector, instance_id=last.instance_id, pid=last.pid, line=line)
                )
                self._lost = 0
            return events

    @property
    def closed(self) -> bool:
        """Whether no more events come."""
        return self._closed and not self._events


class EventHub:
    """Hands events to all watchers."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._subscriptions: list[Subscription] = []

    def publish(self, event: SidecarEvent) -> None:
        """Give an event to every watcher; never waits for one."""
        with self._lock:
            subscriptions = list(self._subscriptions)
        for subscription in subscriptions:
            subscription.put(event)

    def subscribe(self) -> Subscription:
        """Begin to watch."""
        subscription = Subscription()
        with self._lock:
            self._subscriptions.append(subscription)
        return subscription

    def unsubscribe(self, subscription: Subscription) -> None:
        """Stop watching."""
        subscription.close()
        with self._lock:
            if subscription in self._subscriptions:
                self._subscriptions.remove(subscription)

    def close(self) -> None:
        """End every watcher."""
        with self._lock:
            subscriptions, self._subscriptions = self._subscriptions, []
        for subscription in subscriptions:
            subscription.close()


def _text(line: bytes) -> str:
    return line[:LINE_BYTES_MAX].rstrip(b"\r").decode(errors="replace")
