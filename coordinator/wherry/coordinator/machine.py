"""All connectors of a coordinator as one machine: `step(event, now) -> effects`.

The only thing the runner talks to, from one thread. Routes an event to its connector's book, keeps the timers, and
knows whether Spark is there and whether the coordinator is about to end. Pure: no I/O, no clock, no randomness.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from wherry.coordinator import effects as fx
from wherry.coordinator import events as ev
from wherry.coordinator.api import RestartInfo, State
from wherry.coordinator.book import Book
from wherry.coordinator.connector import ConnectorState
from wherry.coordinator.handout import Surroundings
from wherry.coordinator.lease import Lease, LeaseTimes
from wherry.coordinator.spread import Spread, SpreadTimes
from wherry.coordinator.starts import STARTS_MAX_DEFAULT, Starts


@dataclass(frozen=True, slots=True)
class Shown:
    """A connector as REST shows it: state and trace of itself and of its tasks."""

    connector: tuple[State, str]
    tasks: dict[int, tuple[State, str]]


class Machine:
    """Owns all connectors. Not safe for use by several threads.

    Args:
        generation: Generations begin above it; take the seconds since the epoch, so that they rise over restarts.
        times: How long leases may be silent.
        jitter: Gives 0 … 1 for each back-off.
        plan_timeout_ms: How long a plan may take.
        starts_max: How many leases start at once on each machine that runs leases.
        spread: How calmly leases are moved between executors.
    """

    def __init__(
        self,
        *,
        generation: int = 0,
        times: LeaseTimes | None = None,
        jitter: Callable[[], float] = lambda: 0.0,
        plan_timeout_ms: int = 90_000,
        starts_max: int = STARTS_MAX_DEFAULT,
        spread: SpreadTimes | None = None,
    ) -> None:
        self._around = Surroundings(
            times=times or LeaseTimes(),
            plan_timeout_ms=plan_timeout_ms,
            jitter=jitter,
            generation=generation,
            starts=Starts(starts_max),
            spread=Spread(spread or SpreadTimes()),
        )
        self._books: dict[str, Book] = {}
        self._timers: list[tuple[int, str]] = []
        """A heap; entries that are no longer in `_due` are void."""
        self._due: dict[str, int] = {}

    def step(self, event: ev.Event, now_ms: int) -> list[fx.Effect]:
        """Take in an event; the answer is to be carried out in order."""
        effects = self._take_in(event, now_ms)
        effects += self._move_leases(now_ms)
        return effects + self._start_more(now_ms)

    def _take_in(self, event: ev.Event, now_ms: int) -> list[fx.Effect]:
        match event:
            case ev.Tick():
                return self._tick(now_ms)
            case ev.EngineUp():
                failure, self._around.engine_failure = self._around.engine_failure, None
                self._around.engine_up = True
                return self._all(lambda book: book.engine_up(failure, now_ms), now_ms)
            case ev.EngineDown():
                self._around.engine_up = False
                self._around.engine_failure = event.failure if event.permanent else None
                return self._all(lambda book: book.engine_lost(now_ms), now_ms)
            case ev.ExecutorsSeen():
                self._around.starts.machines = len(event.executors)
                self._around.spread.executors_seen(event.executors)
                return []
            case ev.LeadershipGiven():
                self._around.generation = max(self._around.generation, event.generation)
                self._around.leads = True
                return []
            case ev.LeadershipLost():
                return self._drop_all()
            case ev.ShutdownAsked():
                self._around.closing = True
                return self._all(lambda book: book.close(now_ms), now_ms)
            case _:
                return self._one(event, now_ms)

    def due_ms(self) -> int | None:
        """When a Tick has something to do next; None if never."""
        spread_ms = self._around.spread.due_ms() if self._may_move else None
        times = (self._timer_ms(), self._around.starts.due_ms(), spread_ms)
        return min((time for time in times if time is not None), default=None)

    def _timer_ms(self) -> int | None:
        while self._timers and self._due.get(self._timers[0][1]) != self._timers[0][0]:
            heapq.heappop(self._timers)
        return self._timers[0][0] if self._timers else None

    @property
    def idle(self) -> bool:
        """Whether no lease is live."""
        return not any(book.handout.leases for book in self._books.values())

    def connectors(self) -> list[str]:
        """Names of all connectors."""
        return list(self._books)

    def leases(self) -> Iterator[Lease]:
        """All live leases."""
        for book in self._books.values():
            yield from book.handout.leases.values()

    def book(self, connector: str) -> Book | None:
        """What is kept of a connector; for looking only."""
        return self._books.get(connector)

    def shown(self, connector: str) -> Shown | None:
        """A connector as REST shows it; None if it is gone."""
        book = self._books.get(connector)
        shown = {} if book is None else book.shown()
        if None not in shown:
            return None
        tasks = dict(sorted((number, state) for number, state in shown.items() if number is not None))
        return Shown(shown[None], tasks)

    def retries(self, now_ms: int) -> list[RestartInfo]:
        """Everything that has failed and was started again, or will be, or no more."""
        return [retry for book in self._books.values() for retry in book.retries(now_ms)]

    def tasks_are_gone(self, connector: str) -> bool:
        """Whether a connector is STOPPED with no task left, so that its offsets may be altered."""
        book = self._books.get(connector)
        return book is not None and book.connector.state is ConnectorState.STOPPED and not book.handout.tasks

    def _one(self, event: ev.ConnectorEvent, now_ms: int) -> list[fx.Effect]:
        book = self._books.get(event.connector)
        if isinstance(event, ev.ConnectorPut) and not self._around.leads:
            return []  # its sender has not heard yet
        if isinstance(event, ev.ConnectorPut) and (book is None or book.connector.state is ConnectorState.DELETING):
            return self._create(event, book, now_ms)
        if book is None:
            if isinstance(event, ev.LeaseOpening):
                return [fx.RefuseLease(event.connector, event.lease, event.request, "The connector is gone.")]
            return []
        book.handle(event, now_ms)
        return self._settled(book, now_ms)

    def _create(self, event: ev.ConnectorPut, old: Book | None, now_ms: int) -> list[fx.Effect]:
        """A new connector, also in place of one that is still being deleted: that one's leases are fenced."""
        effects: list[fx.Effect] = []
        if old is not None:
            for lease in list(old.handout.leases.values()):
                old.handout.forget(lease.id)
                effects += [
                    fx.FenceLease(old.name, lease.id, lease.generation),
                    fx.CancelLease(old.name, lease.id),
                ]
            effects.append(fx.CleanUpDeleted(old.name, old.spec, old.handout.generation))
        book = self._books[event.connector] = Book(event, self._around)
        return effects + self._settled(book, now_ms)

    def _drop_all(self) -> list[fx.Effect]:
        """Another coordinator has everything now: its leases are of a newer generation, ours must end as they are."""
        self._around.leads = False
        effects: list[fx.Effect] = []
        for book in self._books.values():
            for lease in list(book.handout.leases.values()):
                book.handout.forget(lease.id)
                effects += [
                    fx.FenceLease(book.name, lease.id, lease.generation),
                    fx.CancelLease(book.name, lease.id),
                ]
            effects.append(fx.StopSidecars(book.name))
        self._books.clear()
        self._due.clear()
        self._timers.clear()
        return effects

    def _all(self, act: Callable[[Book], None], now_ms: int) -> list[fx.Effect]:
        effects: list[fx.Effect] = []
        for book in list(self._books.values()):
            act(book)
            effects += self._settled(book, now_ms)
        return effects

    def _tick(self, now_ms: int) -> list[fx.Effect]:
        effects: list[fx.Effect] = []
        self._around.starts.expire(now_ms)
        while (due_ms := self._timer_ms()) is not None and due_ms <= now_ms:
            book = self._books[heapq.heappop(self._timers)[1]]
            del self._due[book.name]
            book.tick(now_ms)
            effects += self._settled(book, now_ms)
        return effects

    def _move_leases(self, now_ms: int) -> list[fx.Effect]:
        """End leases of executors that have had more to do than others for long."""
        if not self._may_move:
            return []
        effects: list[fx.Effect] = []
        for lease, (connector, task) in self._around.spread.moves(now_ms):
            book = self._books.get(connector)
            if book is not None and lease in book.handout.leases:
                book.handout.move(task, now_ms)
                effects += self._settled(book, now_ms)
        return effects

    @property
    def _may_move(self) -> bool:
        return self._around.engine_up and not self._around.closing

    def _start_more(self, now_ms: int) -> list[fx.Effect]:
        """Let connectors go on whose leases had to wait for others that were starting, in turn."""
        effects: list[fx.Effect] = []
        while (name := self._around.starts.next_connector()) is not None:
            if (book := self._books.get(name)) is not None:
                effects += self._settled(book, now_ms)
        return effects

    def _settled(self, book: Book, now_ms: int) -> list[fx.Effect]:
        effects = book.settle(now_ms)
        if book.gone:
            self._books.pop(book.name)
            self._due.pop(book.name, None)
            return effects
        due_ms = book.due_ms(now_ms)
        if due_ms is None:
            self._due.pop(book.name, None)
            return effects
        due_ms = max(due_ms, now_ms + 1)
        if self._due.get(book.name) != due_ms:
            self._due[book.name] = due_ms
            heapq.heappush(self._timers, (due_ms, book.name))
        return effects
