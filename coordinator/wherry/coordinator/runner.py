"""The thread that owns the machine, and the threads that carry out what it wants.

One queue of events, one thread that steps; effects go to lanes. A lane is a key: what is submitted under one key runs
in order, one at a time; different keys never wait for one another, however long one of them hangs, because every busy
lane has a thread of its own. Handlers bring their own deadlines, and post what became of it as events.
"""

from __future__ import annotations

import logging
import queue
import threading
import time
from collections import deque
from collections.abc import Callable, Hashable
from concurrent.futures import Future
from typing import Any, Final, TypeVar

from wherry.coordinator import effects as fx
from wherry.coordinator import events as ev
from wherry.coordinator.machine import Machine
from wherry.coordinator.threads import Threads

log = logging.getLogger(__name__)

LANES_BUSY_MAX: Final = 512
EVENTS_MAX: Final = 100_000
IDLE_WAIT_S: Final = 1.0

T = TypeVar("T")


class Lanes:
    """Runs callables: in order within a key, side by side between keys."""

    def __init__(self, name: str = "lane", threads_max: int = LANES_BUSY_MAX) -> None:
        self._threads = Threads(name, threads_max)
        self._lock = threading.Lock()
        self._lanes: dict[Hashable, deque[Callable[[], None]]] = {}

    def submit(self, key: Hashable, act: Callable[[], None]) -> None:
        """Run `act` after everything submitted under the same key before; what it raises is logged."""
        with self._lock:
            lane = self._lanes.get(key)
            if lane is not None:
                lane.append(act)
                return
            self._lanes[key] = deque([act])
        self._threads.submit(lambda: self._run(key))

    def close(self, timeout_s: float) -> None:
        """Wait for what is under way, at most so long; drop the rest."""
        deadline = time.monotonic() + timeout_s
        while time.monotonic() < deadline:
            with self._lock:
                if not self._lanes:
                    break
            time.sleep(0.01)
        self._threads.close()

    def _run(self, key: Hashable) -> None:
        while True:
            with self._lock:
                lane = self._lanes[key]
                if not lane:
                    del self._lanes[key]
                    return
                act = lane.popleft()
            try:
                act()
            except Exception:
                log.exception("An effect of %s failed in an unforeseen way", key)


class Runner:
    """Feeds events to the machine in one thread and hands its effects to `carry_out`.

    Args:
        machine: Owned by this runner from now on.
        carry_out: Takes each effect, in the machine's thread: it must not block.
        clock: Seconds, rising.
    """

    def __init__(
        self,
        machine: Machine,
        carry_out: Callable[[fx.Effect], None],
        *,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._machine = machine
        self._carry_out = carry_out
        self._clock = clock
        self._queue: queue.Queue[ev.Event | Callable[[], None] | None] = queue.Queue(EVENTS_MAX)
        self._thread = threading.Thread(target=self._loop, name="machine", daemon=True)

    def start(self) -> None:
        """Start the thread."""
        self._thread.start()

    def post(self, event: ev.Event) -> None:
        """Hand in an event; returns at once. Any thread may call it."""
        self._queue.put(event)

    def ask(self, question: Callable[[Machine], T], timeout_s: float = 5.0) -> T:
        """Look at the machine from its own thread, after all events posted before.

        Raises:
            TimeoutError: The machine's thread is stuck or has ended.
        """
        answer: Future[T] = Future()

        def act() -> None:
            try:
                answer.set_result(question(self._machine))
            except Exception as error:
                answer.set_exception(error)

        self._queue.put(act)
        return answer.result(timeout_s)

    def wait_until(self, condition: Callable[[Machine], bool], timeout_s: float) -> bool:
        """Wait until something is true of the machine; False when it wasn't in time."""
        deadline = time.monotonic() + timeout_s
        while time.monotonic() < deadline:
            if self.ask(condition, max(deadline - time.monotonic(), 0.05)):
                return True
            time.sleep(0.01)
        return False

    def stop(self) -> None:
        """End the thread after what was posted."""
        self._queue.put(None)
        if self._thread.is_alive():
            self._thread.join(5.0)

    def _loop(self) -> None:
        while True:
            try:
                item = self._queue.get(timeout=self._wait_s())
            except queue.Empty:
                item = ev.Tick()
            if item is None:
                return
            try:
                if isinstance(item, ev.Event):
                    self._step(item)
                else:
                    item()
            except Exception:
                # A fault of ours in one connector must not stop all the others.
                log.exception("The machine could not take in %s", _described(item))

    def _step(self, event: ev.Event) -> None:
        now_ms = int(self._clock() * 1000)
        effects = self._machine.step(event, now_ms)
        due_ms = self._machine.due_ms()
        if due_ms is not None and due_ms <= now_ms and not isinstance(event, ev.Tick):
            effects += self._machine.step(ev.Tick(), now_ms)  # a busy queue must not starve timers
        for effect in effects:
            self._carry_out(effect)

    def _wait_s(self) -> float:
        due_ms = self._machine.due_ms()
        if due_ms is None:
            return IDLE_WAIT_S
        return min(max(due_ms / 1000 - self._clock(), 0.001), IDLE_WAIT_S)


def _described(item: Any) -> str:
    return f"{type(item).__name__} of {getattr(item, 'connector', 'all connectors')}"
