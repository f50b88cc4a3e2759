"""The pump with transactions: what is committed together, and what is rolled back instead."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pyarrow as pa
import pytest

from wherry.contract.batch import Batch, Mark, of_value
from wherry.contract.errors import ConnectorBugError, TransientError
from wherry.contract.plan import Work
from wherry.contract.position import Position
from wherry.worker import pump
from wherry.worker.boundaries import Boundaries, Boundary
from wherry.worker.endpoints import Flushed, Remaining
from wherry.worker.pipeline import Pipeline, Transactions
from wherry.worker.policy import LeasePolicy
from wherry.worker.signals import EndReason, Signals
from wherry.worker.tolerance import GivenUp


def rows(start: int, count: int, *marks: int) -> Batch:
    """Numbers, with a mark behind each of so many of them; by default behind the last."""
    values = pa.array([str(number).encode() for number in range(start, start + count)], pa.binary())
    places = marks or (count,)
    return of_value(values, marks=[Mark(place, Position("{}", str(start + place))) for place in places if place > 0])


class World:
    """Reader, transactional writer, tolerance and reporter of one test; time passes with every poll."""

    def __init__(
        self, *script: Any, boundary: Boundary = Boundary.POLL, interval_s: float = 60.0, begins: bool = False
    ) -> None:
        self.script = list(script)
        self.now = 0.0
        self.open: list[bytes] = []
        self.staged: tuple[Position, ...] = ()
        self.transactions: list[tuple[str, str | None]] = []
        self.reported: list[str | None] = []
        self.aborted = 0
        self.ends = self.draining = False
        self.behind = False
        self.signals = Signals()
        self.boundaries = Boundaries(boundary, interval_s)
        if not begins:
            self.boundaries.ended(0.0)
        self.trouble, self.lag, self.needs_flush, self.stored = "", None, False, ()

    # Reader

    def poll(self, timeout_s: float) -> Batch | None:
        item = self.script.pop(0) if self.script else None
        self.now += 0.001 if isinstance(item, Batch) else timeout_s + 0.001
        if callable(item):
            item()
            return None
        return item  # type: ignore[no-any-return]

    def committed(self, positions: Sequence[Position]) -> None: ...

    def pause(self, partitions: Sequence[str]) -> None: ...

    def drain(self, deadline_s: float) -> None:
        self.draining = True

    def close(self) -> None: ...

    @property
    def finished(self) -> bool:
        return not self.script and (self.ends or self.draining)

    @property
    def caught_up(self) -> bool:
        return not self.script

    # Writer

    def ready(self, timeout_s: float) -> bool:
        return True

    def write(self, batch: Batch, raw: Batch) -> None:
        self.open += batch.value.to_pylist() if batch.num_rows else []

    def stage(self, positions: Sequence[Position]) -> None:
        self.staged = tuple(positions)

    def flush(self, remaining: Remaining | None = None, *, final: bool = False) -> Flushed:
        if self.open or self.staged:
            text = b" ".join(self.open).decode()
            self.transactions.append((text, self.staged[-1].offset if self.staged else None))
        self.open, self.staged = [], ()
        return Flushed()

    def abort(self) -> None:
        self.aborted += 1
        self.open = []

    def failed_rows(self) -> list[Any]:
        return []

    def rewinds(self) -> tuple[Position, ...]:
        return ()

    def paused_partitions(self) -> tuple[str, ...]:
        return ()

    # Reporter

    def report(self, *, positions: Sequence[Position] = (), **_: Any) -> int:
        self.reported += [position.offset for position in positions]
        return 1

    def committed_seq(self) -> int:
        return 1


class Tolerance:
    """Tolerates whatever comes."""

    def saw(self, rows: int) -> None: ...

    def give_up(self, failures: Any) -> GivenUp:
        return GivenUp()

    def flush(self, remaining: Remaining) -> None: ...


def run(world: World, **pipeline: Any) -> EndReason:
    made = Pipeline(
        world, world, (), Tolerance(), transactions=Transactions(world.boundaries, world), settles=True, **pipeline
    )
    return pump.run(made, LeasePolicy(idle_park_s=1.0), world.signals, world, lambda: world.now)


def test_a_poll_is_a_transaction_when_nothing_follows_at_once() -> None:
    world = World(rows(0, 2), None, rows(2, 2))
    assert run(world) is EndReason.IDLE
    assert world.transactions == [("0 1", "2"), ("2 3", "4")]
    assert world.reported == ["2", "4"]


def test_what_comes_while_rows_are_on_their_way_goes_with_them() -> None:
    def arrived() -> None:
        world.behind = False

    world = World(rows(0, 2), lambda: None, rows(2, 1), arrived)
    world.behind = world.ends = True
    run(world)
    assert [text for text, _ in world.transactions] == ["0 1 2"]


def test_under_load_polls_share_one() -> None:
    world = World(rows(0, 2), rows(2, 2), rows(4, 1))
    run(world)
    assert world.transactions == [("0 1 2 3 4", "5")]


def test_the_first_rows_of_a_lease_are_waited_for_and_share_with_nothing() -> None:
    world = World(rows(0, 2), rows(2, 2), rows(4, 1), begins=True)
    run(world)
    assert world.transactions == [("0 1", "2"), ("2 3 4", "5")]


def test_rows_behind_the_last_mark_go_with_the_next_transaction() -> None:
    world = World(rows(0, 3, 2), None, rows(3, 2))
    run(world)
    assert [offset for _, offset in world.transactions] == ["5"]
    assert world.transactions[0][0] == "0 1 2 3 4"


def test_each_mark_of_the_connector_ends_one() -> None:
    world = World(rows(0, 5, 2, 4), rows(5, 1), boundary=Boundary.CONNECTOR)
    run(world)
    assert world.transactions == [("0 1", "2"), ("2 3", "4"), ("4 5", "6")]


def test_a_drain_takes_back_what_no_mark_covers() -> None:
    world = World(rows(0, 3, 0), boundary=Boundary.INTERVAL)
    world.script.append(lambda: world.signals.drain(1.0))
    assert run(world) is EndReason.DRAINED
    assert (world.transactions, world.aborted, world.reported) == ([], 1, [])


def test_a_drain_commits_what_is_covered() -> None:
    world = World(rows(0, 3), boundary=Boundary.INTERVAL)
    world.script.append(lambda: world.signals.drain(1.0))
    assert run(world) is EndReason.DRAINED
    assert world.transactions == [("0 1 2", "3")]


def test_a_pause_within_a_transaction_takes_it_back_and_starts_over() -> None:
    world = World(rows(0, 3, 0), boundary=Boundary.INTERVAL)
    world.script.append(lambda: world.signals.pause(True))
    with pytest.raises(TransientError, match="Paused within a transaction"):
        run(world)
    assert (world.transactions, world.aborted) == ([], 1)


def test_a_split_must_end_with_a_mark() -> None:
    world = World(rows(0, 3, 2))
    world.ends = True
    with pytest.raises(ConnectorBugError, match="ended with rows behind its last mark"):
        run(world, work=Work("s1"), split=True)
    assert world.reported == []
