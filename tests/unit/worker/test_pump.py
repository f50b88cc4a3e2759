"""The pump against endpoints that do as they are told, under a clock that only moves when somebody waits."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa
import pytest

from wherry.contract.batch import Batch, Constants, Mark, RowError, mark_only, of_value
from wherry.contract.errors import ErrorClass, FencedError, TransientError, WherryError
from wherry.contract.plan import Work
from wherry.contract.position import Position
from wherry.worker import pump
from wherry.worker.convert import DataError
from wherry.worker.convert.step import Stage, StageFailure, Stepped, cut_failures
from wherry.worker.counts import Counts
from wherry.worker.endpoints import FailedRow, Flushed, Remaining
from wherry.worker.pipeline import Pipeline
from wherry.worker.policy import LeasePolicy, RetryPolicy
from wherry.worker.signals import Assignment, EndReason, Phase, Signals
from wherry.worker.tolerance import DeadLetterError, GivenUp, ToleranceExceededError

PARTITION = '{"p":0}'


def at(offset: int) -> Position:
    return Position(PARTITION, f'{{"o":{offset}}}')


def rows(start: int, count: int, **more: Any) -> Batch:
    """Rows that lead from one position to another."""
    values = pa.array([str(number).encode() for number in range(start, start + count)], pa.binary())
    return of_value(values, constants=Constants(topic="t"), marks=(Mark(count, at(start + count)),), **more)


@dataclass
class World:
    """Clock, endpoints and reporter of one test."""

    script: list[Batch | Exception | Callable[[], None] | None] = field(default_factory=list)
    now: float = 0.0
    log: list[str] = field(default_factory=list)
    written: list[bytes] = field(default_factory=list)
    durable: list[bytes] = field(default_factory=list)
    reports: list[dict[str, Any]] = field(default_factory=list)
    committed_to_reader: list[Position] = field(default_factory=list)
    flush_results: list[Flushed | Exception] = field(default_factory=list)
    failed: list[FailedRow] = field(default_factory=list)
    rewind_to: tuple[Position, ...] = ()
    paused: tuple[str, ...] = ()
    given_up: list[StageFailure] = field(default_factory=list)
    tolerates: bool = True
    rows_seen: int = 0
    letters_refused: int = 0
    ends: bool = False
    needs_flush: bool = False
    coordinator_commits: bool = True
    signals: Signals = field(default_factory=Signals)
    reader_closed: int = 0
    draining: bool = False
    stored: tuple[Position, ...] = ()
    trouble: str = ""
    lag: int | None = 7

    # Reader

    def poll(self, timeout_s: float) -> Batch | None:
        if not self.script:
            self.now += timeout_s
            return None
        item = self.script.pop(0)
        if isinstance(item, Exception):
            raise item
        if callable(item):
            item()
            return None
        self.now += 0.001 if item is not None else timeout_s
        return item

    def committed(self, positions: Sequence[Position]) -> None:
        self.committed_to_reader.extend(positions)

    def rewind(self, positions: Sequence[Position]) -> None:
        self.log.append(f"rewind {positions[0].offset}")

    def pause(self, partitions: Sequence[str]) -> None:
        self.log.append(f"pause {list(partitions)}")

    def drain(self, deadline_s: float) -> None:
        self.draining = True

    @property
    def finished(self) -> bool:
        return not self.script and (self.ends or self.draining)

    @property
    def caught_up(self) -> bool:
        return not self.script

    def close(self) -> None:
        self.reader_closed += 1

    # Writer

    def ready(self, timeout_s: float) -> bool:
        return True

    def write(self, batch: Batch, raw: Batch) -> None:
        self.written.extend(batch.value.to_pylist())

    def flush(self, remaining: Remaining, *, final: bool = False) -> Flushed:
        assert remaining() > 0
        self.log.append("final flush" if final else "flush")
        result = self.flush_results.pop(0) if self.flush_results else Flushed()
        if isinstance(result, Exception):
            raise result
        self.durable = list(self.written)
        self.needs_flush = False
        return result

    def failed_rows(self) -> list[FailedRow]:
        failed, self.failed = self.failed, []
        return failed

    def rewinds(self) -> tuple[Position, ...]:
        positions, self.rewind_to = self.rewind_to, ()
        return positions

    def paused_partitions(self) -> tuple[str, ...]:
        return self.paused

    # Reporter

    def report(self, **report: Any) -> int:
        if report.get("positions"):
            # Invariant 1, seen from outside: what was written is durable when positions are told.
            assert self.durable == self.written
        self.reports.append(report)
        return len(self.reports)

    def committed_seq(self) -> int:
        return len(self.reports) if self.coordinator_commits else 0

    # Tolerance

    def give_up(self, failures: Sequence[StageFailure]) -> GivenUp:
        self.given_up.extend(failures)
        if not self.tolerates:
            return GivenUp(failed=1, error=ToleranceExceededError("no more"))
        return GivenUp(len(failures), 0, failed=len(failures))

    def clock(self) -> float:
        return self.now

    def run(self, policy: LeasePolicy | None = None, **pipeline: Any) -> EndReason:
        tolerance = _Tolerance(self)
        self.pipeline = Pipeline(self, self, pipeline.pop("steps", ()), tolerance, **pipeline)
        policy = policy or LeasePolicy(idle_park_s=5.0)
        return pump.run(self.pipeline, policy, self.signals, self, self.clock)

    @property
    def positions(self) -> list[Position]:
        return [position for report in self.reports for position in report["positions"]]

    def total(self, name: str) -> int:
        return sum(getattr(report["counts"], name) for report in self.reports if isinstance(report["counts"], Counts))


class _Tolerance:
    def __init__(self, world: World) -> None:
        self._world = world

    def saw(self, rows: int) -> None:
        self._world.rows_seen += rows

    def give_up(self, failures: Sequence[StageFailure]) -> GivenUp:
        return self._world.give_up(failures)

    def flush(self, remaining: Remaining) -> None:
        self._world.log.append("letters flushed")
        if self._world.letters_refused:
            raise DeadLetterError("Too large.", self._world.letters_refused)


def test_what_is_read_is_written_flushed_and_only_then_reported() -> None:
    world = World([rows(0, 3), rows(3, 2)])
    assert world.run() is EndReason.IDLE
    assert world.written == [b"0", b"1", b"2", b"3", b"4"]
    assert world.positions == [at(5)]
    assert world.pipeline.positions == {PARTITION: at(5)}


def test_records_and_reports_are_counted_once() -> None:
    world = World([rows(0, 3), rows(3, 2)])
    world.flush_results = [Flushed(rows_written=4, rows_filtered=1)]
    world.run()
    assert (world.total("records_read"), world.total("batches"), world.total("records_written")) == (5, 2, 4)
    assert world.total("records_filtered") == 1
    assert [topic for report in world.reports for topic in report["topics"]] == ["t"]


def test_the_reader_hears_what_the_coordinator_has_committed_and_nothing_before() -> None:
    world = World([rows(0, 3)], coordinator_commits=False)
    world.script += [None] * 20 + [lambda: setattr(world, "coordinator_commits", True)]  # type: ignore[list-item]
    heard: list[int] = []
    world.script.insert(19, lambda: heard.append(len(world.committed_to_reader)))
    world.run()
    assert heard == [0]
    assert world.committed_to_reader == [at(3)]


def test_under_load_positions_are_reported_at_the_commit_interval() -> None:
    world = World()
    world.script = [rows(number, 1) for number in range(3_000)]  # a millisecond each
    world.run(LeasePolicy(commit_interval_s=1.0, idle_park_s=5.0))
    assert len([report for report in world.reports if report["positions"]]) == 3
    assert world.positions[-1] == at(3_000)


def test_a_writer_that_keeps_too_much_is_flushed_early() -> None:
    world = World([rows(0, 1), lambda: setattr(world, "needs_flush", True), rows(1, 1), rows(2, 1)])
    world.run(LeasePolicy(idle_park_s=5.0))
    assert world.positions[0] == at(1)


def test_marks_without_rows_move_the_position() -> None:
    world = World([rows(0, 1), mark_only(at(9))])
    world.run()
    assert world.positions == [at(9)]


def test_a_destination_that_keeps_rows_back_is_asked_again_before_parking() -> None:
    world = World([rows(0, 3)])
    world.flush_results = [Flushed(positions=(at(2),))]
    assert world.run() is EndReason.IDLE
    assert world.positions == [at(2), at(3)]


def test_a_drain_gives_on_what_was_read_flushes_for_good_and_ends() -> None:
    world = World([rows(0, 3)])
    world.script += [lambda: world.signals.drain(5.0), rows(3, 2)]
    assert world.run(LeasePolicy()) is EndReason.DRAINED
    assert world.written[-1] == b"4"
    assert world.positions[-1] == at(5)
    assert world.log[-2:] == ["final flush", "letters flushed"]
    assert world.reports[-1]["phase"] is Phase.DRAINING


def test_a_drain_does_not_read_beyond_its_share_of_the_time() -> None:
    world = World([lambda: world.signals.drain(2.0)])
    world.script += [rows(number, 1) for number in range(1_000_000 // 100)]
    assert world.run(LeasePolicy()) is EndReason.DRAINED
    assert world.now < 2.0
    assert world.script
    assert world.positions == [at(len(world.written))]


def test_a_drained_source_waits_a_moment_to_hear_what_was_committed() -> None:
    world = World([rows(0, 3), lambda: world.signals.drain(5.0)])
    world.run(LeasePolicy(), settles=True)
    assert world.committed_to_reader == [at(3)]


def test_a_fenced_lease_reports_nothing_more() -> None:
    world = World([rows(0, 3), lambda: world.signals.fence("generation 8 is in force")])
    with pytest.raises(FencedError, match="generation 8"):
        world.run()
    assert world.positions == []
    assert "flush" not in world.log


def test_a_fence_during_a_flush_keeps_the_positions_back() -> None:
    world = World([rows(0, 3)])
    world.flush = lambda remaining, final=False: (world.signals.fence("too late"), Flushed())[1]  # type: ignore[method-assign]
    with pytest.raises(FencedError):
        world.run()
    assert world.positions == []


def test_a_paused_lease_commits_and_rests_and_goes_on() -> None:
    world = World([rows(0, 1), lambda: world.signals.pause(True), rows(1, 1)])
    resumed = []

    def wait(timeout_s: float) -> None:
        resumed.append(list(world.positions))
        world.signals.pause(False)

    world.signals.wait = wait  # type: ignore[method-assign]
    world.run()
    assert resumed[0] == [at(1)]
    assert world.positions[-1] == at(2)


def test_idleness_parks_only_after_everything_is_committed() -> None:
    world = World([rows(0, 1)], coordinator_commits=False)
    world.script += [None] * 200
    world.script.append(lambda: setattr(world, "coordinator_commits", True))
    assert world.run(LeasePolicy(idle_park_s=1.0)) is EndReason.IDLE
    assert world.now > 20.0
    assert world.committed_to_reader == [at(1)]


def test_a_split_read_to_its_end_is_reported_done_and_the_next_is_taken() -> None:
    world = World([rows(0, 2)], ends=True)
    world.signals.assign(Assignment(Work("b"), (at(40),)))
    world.signals.assign(Assignment(None))
    opened: list[tuple[str, Sequence[Position]]] = []

    def opener(work: Work, positions: Sequence[Position]) -> World:
        opened.append((work.id, positions))
        world.script.append(rows(40, 1))
        return world

    assert world.run(work=Work("a"), split=True, opener=opener) is EndReason.SPLITS_DONE
    assert opened == [("b", (at(40),))]
    assert [done for report in world.reports for done in report["splits_done"]] == ["a", "b"]
    assert world.positions == [at(2), at(41)]
    asked = [report for report in world.reports if report["want_split"]]
    assert len(asked) == 2


def test_a_split_is_told_done_only_after_its_positions() -> None:
    world = World([rows(0, 2)], ends=True)
    world.signals.assign(Assignment(None))
    world.run(work=Work("a"), split=True)
    kinds = [
        ("positions" if report["positions"] else "done")
        for report in world.reports
        if report["positions"] or report["splits_done"]
    ]
    assert kinds == ["positions", "done"]


def test_waiting_for_a_split_ends_with_a_drain() -> None:
    world = World([rows(0, 2)], ends=True)
    world.signals.wait = lambda timeout_s: world.signals.drain(5.0)  # type: ignore[method-assign]
    assert world.run(work=Work("a"), split=True) is EndReason.DRAINED


def test_a_task_that_ends_by_itself_is_flushed_and_done() -> None:
    world = World([rows(0, 2)], ends=True)
    assert world.run(work=Work("0")) is EndReason.SPLITS_DONE
    assert world.log[0] == "final flush"
    assert world.positions == [at(2)]


def test_when_the_reader_fails_what_was_read_before_is_made_durable() -> None:
    world = World([rows(0, 3), TransientError("the sidecar is gone")])
    with pytest.raises(TransientError, match="is gone"):
        world.run()
    assert world.positions == [at(3)]
    assert world.pipeline.positions == {PARTITION: at(3)}


def test_a_flush_that_fails_leaves_the_positions_where_they_were() -> None:
    world = World([rows(0, 3)])
    world.flush_results = [TransientError("too slow")]
    with pytest.raises(TransientError):
        world.run(positions={PARTITION: at(0)})
    assert world.positions == []
    assert world.pipeline.positions == {PARTITION: at(0)}


def refused(batch: Batch, row: int, error_class: ErrorClass = ErrorClass.SCHEMA) -> FailedRow:
    return FailedRow(batch, row, RowError(row, error_class, "TOO_LONG", message="The value is too long."))


def test_rows_the_destination_refuses_are_given_up_before_the_commit() -> None:
    batch = rows(0, 3)
    world = World([batch, lambda: world.failed.append(refused(batch, 1))])
    world.run()
    assert [(failure.row, failure.stage.value) for failure in world.given_up] == [(1, "TASK_PUT")]
    assert world.total("skipped") == 1
    assert world.positions == [at(3)]


def test_without_tolerance_a_refused_row_ends_the_lease_without_its_position() -> None:
    batch = rows(0, 3)
    world = World([batch, lambda: world.failed.append(refused(batch, 1))], tolerates=False)
    with pytest.raises(ToleranceExceededError):
        world.run()
    assert world.positions == []
    assert world.total("errors") == 1


def test_a_transient_row_is_offered_once_more_with_those_that_followed_it() -> None:
    batch = rows(0, 3)
    world = World([batch, lambda: world.failed.append(refused(batch, 1, ErrorClass.TRANSIENT))])
    world.signals = Moving(world)
    world.run()
    assert world.written == [b"0", b"1", b"2", b"1", b"2"]
    assert world.given_up == []
    assert world.positions == [at(3)]
    assert world.total("retries") == 1


def test_rows_that_overtook_a_transient_one_come_again_behind_it_before_anything_else_is_read() -> None:
    first, second = rows(0, 3), rows(3, 2)
    row = dataclasses.replace(refused(first, 1, ErrorClass.TRANSIENT), after=(second,))
    world = World([first, second, lambda: world.failed.append(row), rows(5, 1)])
    world.signals = Moving(world)
    world.run()
    assert world.written == [b"0", b"1", b"2", b"3", b"4", b"1", b"2", b"3", b"4", b"5"]
    assert (world.positions[-1], world.given_up) == (at(6), [])


def test_every_token_of_flushes_with_an_offer_in_between_is_told() -> None:
    batch = rows(0, 2)
    world = World([batch, lambda: world.failed.append(refused(batch, 1, ErrorClass.TRANSIENT))])
    world.signals = Moving(world)
    world.flush_results = [Flushed(token=b"one"), Flushed(token=b"two")]
    world.run()
    assert [report["tokens"] for report in world.reports if report["tokens"]] == [(b"one", b"two")]


def test_a_row_the_source_could_not_read_is_given_up() -> None:
    batch = rows(0, 1)
    broken = Batch(
        batch.records, batch.constants, batch.marks, (RowError(1, ErrorClass.SCHEMA, "BAD_LINE", message="odd"),)
    )
    world = World([broken])
    world.run()
    assert [failure.stage.value for failure in world.given_up] == ["TASK_POLL"]
    assert world.positions == [at(1)]


def test_a_rewind_goes_to_the_reader_and_takes_back_what_was_not_committed() -> None:
    world = World([rows(0, 3), lambda: setattr(world, "rewind_to", (at(1),))])
    world.run()
    assert 'rewind {"o":1}' in world.log
    assert world.positions == []


def test_partitions_the_destination_can_not_take_are_paused_once() -> None:
    world = World([rows(0, 1), lambda: setattr(world, "paused", (PARTITION,)), None, None])
    world.run()
    assert [entry for entry in world.log if entry.startswith("pause")] == [f"pause {[PARTITION]}"]


def test_trouble_is_reported_as_retrying() -> None:
    world = World([None, lambda: setattr(world, "trouble", "The broker is away."), *[None] * 20])
    world.run(LeasePolicy(idle_park_s=3.0))
    assert any(report["phase"] is Phase.RETRYING and report["trouble"] for report in world.reports)


def test_reports_come_at_least_every_interval() -> None:
    world = World([None] * 100)
    world.run(LeasePolicy(idle_park_s=9.0))
    assert len(world.reports) >= 9
    assert {report["lag"] for report in world.reports} == {7}


def test_rows_that_a_step_filters_move_the_position_all_the_same() -> None:
    class EveryOther:
        def apply(self, batch: Batch, raw: Batch) -> Stepped:
            return Stepped(((batch.slice(0, 1), raw.slice(0, 1)),))

    world = World([rows(0, 3)])
    world.pipeline = Pipeline(world, world, (EveryOther(),), _Tolerance(world))
    pump.run(world.pipeline, LeasePolicy(idle_park_s=2.0), world.signals, world, world.clock)
    assert world.written == [b"0"]
    assert world.positions == [at(3)]


def test_an_error_of_any_class_travels_up_untouched() -> None:
    error = WherryError("odd")
    world = World([error])
    with pytest.raises(WherryError) as raised:
        world.run()
    assert raised.value is error


class Moving(Signals):
    """Signals whose waits move the world's clock; a wait may bring a drain."""

    def __init__(self, world: World, drain_at: float = float("inf")) -> None:
        super().__init__()
        self._world = world
        self._drain_at = drain_at

    def wait(self, timeout_s: float) -> None:
        self._world.now += timeout_s
        if self._world.now >= self._drain_at:
            self.drain(5.0)


class Flaky:
    """A step that fails so often before it works: by raising, or by a row."""

    def __init__(self, failures: int, row: int | None = None) -> None:
        self.left = failures
        self.row = row
        self.calls = 0

    def apply(self, batch: Batch, raw: Batch) -> Stepped:
        self.calls += 1
        if self.left <= 0:
            return Stepped(((batch, raw),))
        self.left -= 1
        if self.row is None:
            raise TransientError("The registry is away.")
        error = DataError("The registry is away.", error_class=ErrorClass.TRANSIENT)
        kept, cut = cut_failures(batch, raw, {self.row})
        return Stepped(((kept, cut),), (StageFailure(raw, self.row, Stage.VALUE_CONVERTER, "x.Avro", error),))


@pytest.mark.parametrize("row", [None, 1])
def test_a_step_that_fails_for_now_is_tried_again_in_order_and_nothing_is_given_up(row: int | None) -> None:
    world = World([rows(0, 3), rows(3, 1)])
    world.signals = Moving(world)
    assert world.run(steps=(Flaky(2, row),), retry=RetryPolicy(-1)) is EndReason.IDLE
    assert world.written == [b"0", b"1", b"2", b"3"]
    assert (world.total("retries"), world.total("failures"), world.total("errors")) == (2, 2, 0)


def test_a_row_that_goes_on_failing_is_given_up_when_the_time_for_tries_is_over() -> None:
    world = World([rows(0, 3)])
    world.signals = Moving(world)
    assert world.run(steps=(Flaky(10, 1),), retry=RetryPolicy(1.0)) is EndReason.IDLE
    # Attempts at 0, 0.3, 0.9 and, cut to the end, 1.0 s.
    assert (world.total("retries"), world.total("failures"), world.total("errors")) == (3, 4, 1)
    assert world.written == [b"0", b"2"]
    assert len(world.given_up) == 1


def test_a_step_that_fails_as_a_whole_ends_the_lease_when_no_try_is_left() -> None:
    world = World([rows(0, 3)])
    with pytest.raises(TransientError, match="registry"):
        world.run(steps=(Flaky(1),))
    assert world.written == []


class SecondFails(Flaky):
    """A step that lets the first batch through."""

    def apply(self, batch: Batch, raw: Batch) -> Stepped:
        return Stepped(((batch, raw),)) if batch.value[0].as_py() == b"0" else super().apply(batch, raw)


@pytest.mark.parametrize(("row", "error"), [(None, TransientError), (1, ToleranceExceededError)])
def test_when_a_step_fails_what_went_through_before_is_made_durable(row: int | None, error: type[Exception]) -> None:
    world = World([rows(0, 3), rows(3, 2)], tolerates=False)
    with pytest.raises(error):
        world.run(steps=(SecondFails(1_000, row),))
    assert world.written == [b"0", b"1", b"2"]
    assert world.positions == [at(3)]


def test_when_letters_are_refused_no_position_is_told_for_one_of_them_may_be_of_a_batch_before() -> None:
    world = World([rows(0, 3), rows(3, 2)])

    class Refusing(SecondFails):
        def apply(self, batch: Batch, raw: Batch) -> Stepped:
            super().apply(batch, raw)
            if self.left < 1_000:
                raise DeadLetterError("Too large.", 1)
            return Stepped(((batch, raw),))

    with pytest.raises(DeadLetterError):
        world.run(steps=(Refusing(1_000, 1),))
    assert world.positions == []


def test_a_drain_wakes_the_wait_and_what_was_not_converted_is_not_skipped() -> None:
    world = World([rows(0, 3), rows(3, 2), rows(5, 2)])
    world.signals = Moving(world, drain_at=20.0)
    assert world.run(LeasePolicy(), steps=(SecondFails(1_000),), retry=RetryPolicy(-1)) is EndReason.DRAINED
    assert world.now < 30.0
    assert world.written == [b"0", b"1", b"2"]
    assert world.positions == [at(3)]


def test_while_a_step_is_tried_again_reports_say_why() -> None:
    world = World([rows(0, 1)])
    world.signals = Moving(world)
    world.run(steps=(Flaky(6),), retry=RetryPolicy(-1))
    told = [report for report in world.reports if report["phase"] is Phase.RETRYING]
    assert told[0]["trouble"] == "Trying again: The registry is away."


def test_the_tolerance_hears_of_every_row_read() -> None:
    world = World([rows(0, 3), rows(3, 2)])
    world.run()
    assert world.rows_seen == 5


def test_letters_that_are_refused_end_the_lease_uncommitted_and_are_counted() -> None:
    world = World([rows(0, 3)], letters_refused=2)
    with pytest.raises(DeadLetterError):
        world.run()
    assert world.total("dead_letter_failures") == 2
    assert world.positions == []
