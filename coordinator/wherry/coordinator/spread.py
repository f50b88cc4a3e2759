"""Where leases run, and when one is better moved: keeps executors evenly loaded, calmly.

Decides which executor a new lease is asked to go to (the one that has least to do, and among equals the one with
fewest leases of the same connector), and which leases are to end in good order so that they start elsewhere. Never
starts, ends or waits for anything itself; the clock is handed in.

Calm means: nothing is moved before the load has been uneven for a whole window, in which leases and executors come and
go by themselves; a change among executors begins the window anew; only a few leases move at once; one that was moved
elsewhere rests; and a lease moves only where that makes its executor's load less than the one it left had, so that
every move brings all of them closer and the moving ends.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from typing import Final

from wherry.coordinator.events import Executor

WINDOW_MS: Final = 30_000
MOVES_AT_ONCE_MAX: Final = 2
REST_MS: Final = 300_000
"""A task that was moved stays for so long."""
SHUN_MS: Final = 60_000
"""Nothing is asked to go to an executor for so long after a lease fell silent there; Spark needs as long to drop it."""
RESTING_MAX: Final = 10_000
MOVE_MS_MAX: Final = 60_000
"""A move that has not come to an end by then is no longer waited for."""
RETURNS_MAX: Final = 3
"""So often in a row a task that came back to where it was is moved again without a rest. Spark takes a wish for one:
an executor on which a task ends just then is offered the next one before all others are asked."""

TaskKey = tuple[str, int]


@dataclass(frozen=True, slots=True)
class SpreadTimes:
    """How calm it is; in ms."""

    window_ms: int = WINDOW_MS
    rest_ms: int = REST_MS


@dataclass(frozen=True, slots=True)
class Placed:
    """A live lease and where it runs, or is asked to run; `movable` once it runs work without end."""

    lease: str
    key: TaskKey
    executor: str
    number: int
    movable: bool = False


@dataclass(frozen=True, slots=True)
class _Move:
    """A task on its way: from which executor, and until when it is waited for."""

    source: str
    until_ms: int


@dataclass(slots=True)
class Spread:
    """All live leases by executor. Does nothing while fewer than two executors are known."""

    times: SpreadTimes = field(default_factory=SpreadTimes)
    _slots: dict[str, int] = field(default_factory=dict)
    _placed: dict[str, Placed] = field(default_factory=dict)
    _loads: dict[str, int] = field(default_factory=dict)
    _number: int = 0
    _look_ms: int | None = None
    """When the load, uneven now, is to be evened out; None while it is even."""
    _moving: dict[TaskKey, _Move] = field(default_factory=dict)
    _resting: dict[TaskKey, int] = field(default_factory=dict)
    _returns: dict[TaskKey, int] = field(default_factory=dict)
    """How often in a row a task came back to where it was."""
    _shunned: dict[str, int] = field(default_factory=dict)
    """Executors that may hang, and until when they are left alone."""

    def executors_seen(self, executors: Iterable[Executor]) -> None:
        """Take in which executors there are."""
        slots = {executor.id: max(executor.slots, 1) for executor in executors}
        if slots != self._slots:
            self._slots = slots
            self._shunned = {each: until_ms for each, until_ms in self._shunned.items() if each in slots}
            self._returns.clear()
            self._look_ms = None

    def loads(self) -> dict[str, int]:
        """How many leases each known executor runs, those on their way to it included."""
        return {executor: self._loads.get(executor, 0) for executor in self._slots}

    # ---- the life of a lease -----------------------------------------------------------------------------------

    def launch(self, lease: str, key: TaskKey, now_ms: int) -> str:
        """Note a new lease and say where it would better run; empty when that is all the same, or all is full."""
        chosen = self._best(key[0], now_ms) if len(self._slots) > 1 else ""
        self._number += 1
        self._put(Placed(lease, key, chosen, self._number))
        return chosen

    def opened(self, lease: str, executor: str, *, movable: bool) -> None:
        """Note where a lease really runs."""
        placed = self._placed.get(lease)
        if placed is None:
            return
        move = self._moving.pop(placed.key, None)
        if move is not None:
            self._arrived(placed.key, came_back=executor == move.source)
        self._shunned.pop(executor, None)
        self._put(replace(placed, executor=executor, movable=movable))

    def over(self, lease: str) -> None:
        """Forget a lease."""
        placed = self._placed.pop(lease, None)
        if placed is not None:
            self._count(placed.executor, -1)

    def silent(self, lease: str, now_ms: int) -> None:
        """Nothing was heard of a lease for too long: where it runs may hang as a whole."""
        placed = self._placed.get(lease)
        if placed is not None and placed.executor in self._slots:
            self._shunned[placed.executor] = now_ms + SHUN_MS

    def rests(self, key: TaskKey) -> None:
        """Don't wait for a task that was to move: it is parked, paused or gone."""
        self._moving.pop(key, None)
        self._returns.pop(key, None)

    # ---- moving ------------------------------------------------------------------------------------------------

    def moves(self, now_ms: int) -> list[tuple[str, TaskKey]]:
        """The leases that are to end now so that they start elsewhere; they count as on their way from here on."""
        for key in [key for key, move in self._moving.items() if move.until_ms <= now_ms]:
            del self._moving[key]
        if self._moving:
            return []  # where these arrive decides what is still to be done
        if self._direction({}, now_ms) is None:
            self._look_ms = None
            return []
        if self._look_ms is None:
            self._look_ms = now_ms + self.times.window_ms
        if now_ms < self._look_ms:
            return []
        self._forget_rested(now_ms)
        chosen: list[Placed] = []
        shifted: dict[str, int] = {}
        while len(chosen) < MOVES_AT_ONCE_MAX and (found := self._next_move(shifted, now_ms)) is not None:
            placed, target = found
            shifted[placed.executor] = shifted.get(placed.executor, 0) - 1
            shifted[target] = shifted.get(target, 0) + 1
            self._moving[placed.key] = _Move(placed.executor, now_ms + MOVE_MS_MAX)
            if len(self._resting) < RESTING_MAX:
                self._resting[placed.key] = now_ms + self.times.rest_ms
            chosen.append(placed)
        if not chosen:  # all rest, or run what comes to its end by itself
            self._look_ms = now_ms + self.times.window_ms
        return [(placed.lease, placed.key) for placed in chosen]

    def due_ms(self) -> int | None:
        """When `moves` may have something to say next; None if never."""
        if self._moving:
            return min(move.until_ms for move in self._moving.values())
        return self._look_ms

    def _arrived(self, key: TaskKey, *, came_back: bool) -> None:
        """A task that was moved in vain needn't rest: it is tried again when the load stays uneven for a window."""
        returns = self._returns.pop(key, 0) + 1
        if came_back and returns <= RETURNS_MAX and len(self._returns) < RESTING_MAX:
            self._returns[key] = returns
            self._resting.pop(key, None)
            self._look_ms = None

    def _next_move(self, shifted: dict[str, int], now_ms: int) -> tuple[Placed, str] | None:
        """One lease of the fullest executor that may move, and where to; None when moving would not help."""
        direction = self._direction(shifted, now_ms)
        if direction is None:
            return None
        sources, target = direction
        found = (self._mover(source, now_ms) for source in sources)
        return next(((placed, target) for placed in found if placed is not None), None)

    def _direction(self, shifted: dict[str, int], now_ms: int) -> tuple[list[str], str] | None:
        """Executors from which a lease should go, fullest first, and the one it would go to; None if all is even."""
        if len(self._slots) < 2:
            return None
        slots = self._slots
        loads = {executor: load + shifted.get(executor, 0) for executor, load in self.loads().items()}
        free = [each for each in loads if loads[each] < slots[each] and not self._is_shunned(each, now_ms)]
        target = min(free, key=lambda executor: ((loads[executor] + 1) / slots[executor], executor), default=None)
        if target is None:
            return None
        # Strictly better, or nothing: with equal slots a difference of two or more.
        sources = [each for each in loads if (loads[target] + 1) * slots[each] < loads[each] * slots[target]]
        sources.sort(key=lambda each: (-loads[each] / slots[each], each))
        return (sources, target) if sources else None

    def _mover(self, executor: str, now_ms: int) -> Placed | None:
        """The lease that leaves an executor: of the connector with most there, the one begun last."""
        there = [placed for placed in self._placed.values() if placed.executor == executor]
        counts: dict[str, int] = {}
        for placed in there:
            counts[placed.key[0]] = counts.get(placed.key[0], 0) + 1
        free = [p for p in there if p.movable and p.key not in self._moving and self._resting.get(p.key, 0) <= now_ms]
        return max(free, key=lambda placed: (counts[placed.key[0]], placed.number), default=None)

    # ---- counting ----------------------------------------------------------------------------------------------

    def _is_shunned(self, executor: str, now_ms: int) -> bool:
        return self._shunned.get(executor, now_ms) > now_ms

    def _best(self, connector: str, now_ms: int) -> str:
        loads = {executor: load for executor, load in self.loads().items() if load < self._slots[executor]}
        loads = {each: load for each, load in loads.items() if not self._is_shunned(each, now_ms)} or loads
        of_connector: dict[str, int] = {}
        for placed in self._placed.values():
            if placed.key[0] == connector:
                of_connector[placed.executor] = of_connector.get(placed.executor, 0) + 1
        return min(
            loads,
            key=lambda each: ((loads[each] + 1) / self._slots[each], of_connector.get(each, 0), each),
            default="",
        )

    def _put(self, placed: Placed) -> None:
        old = self._placed.get(placed.lease)
        if old is not None:
            self._count(old.executor, -1)
        self._placed[placed.lease] = placed
        self._count(placed.executor, 1)

    def _count(self, executor: str, by: int) -> None:
        count = self._loads.get(executor, 0) + by
        if count:
            self._loads[executor] = count
        else:
            self._loads.pop(executor, None)

    def _forget_rested(self, now_ms: int) -> None:
        if len(self._resting) >= RESTING_MAX // 2:
            self._resting = {key: until_ms for key, until_ms in self._resting.items() if until_ms > now_ms}
