"""Steps about sources: plans, Read streams, and what two readings have in common."""

from __future__ import annotations

import time
from collections import Counter
from typing import Final

import grpc

from wherry.conformance.failure import Failure
from wherry.conformance.running import Pass, Running
from wherry.conformance.streams import (
    CREDIT_BYTES,
    CREDIT_FRAMES,
    RECEIVE_DEADLINE_S,
    Reading,
    encodings,
    expect_compact,
)
from wherry.connector.v1 import common_pb2, source_pb2

PLANS_MAX: Final = 100
ROWS_SHOWN: Final = 3
DESCRIPTOR_BYTES_MAX: Final = 64 * 1024
# Small frames, so that a source has many positions between its first row and its last.
SMALL_FRAME_BYTES: Final = 1024
PASS_FRAME_BYTES: Final = 64 * 1024


def plan_is_sound(run: Running, *, tasks_max: int = 3) -> None:
    """Plan keeps to tasks_max, names its work once, and answers the same twice."""
    first = _plan(run, Pass(), tasks_max)
    if len(first.tasks) > tasks_max:
        raise Failure(f"Plan has {len(first.tasks)} tasks; {tasks_max} were wanted at most.")
    again = _plan(run, Pass(), tasks_max)
    if [work.id for work in again.tasks] != [work.id for work in first.tasks]:
        raise Failure("Plan has other tasks the second time, with the same offsets.")
    if [work.id for work in again.splits] != [work.id for work in first.splits]:
        raise Failure("Plan has other splits the second time, with the same offsets.")
    if not first.tasks and not first.splits:
        raise Failure("Plan has no work, though the subject file promises rows.")


def active_splits_are_left_out(run: Running) -> None:
    """Plan doesn't give splits that are being read."""
    first = _plan(run, Pass(), 1)
    if first.splits:
        active = first.splits[0].id
        request = source_pb2.PlanRequest(tasks_max=1, splits_active=[active])
        again = run.call("SourceService.Plan", request)
        if active in {work.id for work in again.splits}:
            raise Failure(f"Plan gives the split {active} again, which is being read.")


def open_read(
    run: Running,
    stream: str = "read",
    *,
    shift: int = 0,
    after: str | None = None,
    frames: int = CREDIT_FRAMES,
    size: int = CREDIT_BYTES,
    frame_bytes_target: int = 2 * 1024 * 1024,
    encoding: list[str] | None = None,
    give_back: bool = False,
) -> None:
    """Opens a Read stream on the first work of the plan."""
    stored = run.result(after)
    plan = _plan(run, stored, 1)
    works = [(work, False) for work in plan.tasks] + [(work, True) for work in plan.splits]
    if not works:
        raise Failure("Plan has no work, though the subject file promises rows.")
    opening = _opening(run, *works[0], stored, frame_bytes_target)
    opening.generation = run.generation + shift
    opening.encodings[:] = encodings(encoding)
    opening.credit.frames, opening.credit.bytes = frames, size
    run.keep(stream, Reading(run.session.wire, opening, give_back=give_back))


def open_read_unconfigured(run: Running, stream: str = "read") -> None:
    """Opens a Read stream with work that nobody planned."""
    opening = source_pb2.ReadOpen(generation=run.generation, work=source_pb2.Work(id="0"), encodings=encodings(None))
    run.keep(stream, Reading(run.session.wire, opening, give_back=False))


def receive(
    run: Running, stream: str = "read", *, rows: int = 0, frames: int = 0, within_s: float = RECEIVE_DEADLINE_S
) -> None:
    """Waits until a number of rows and frames has come, or there are no more."""
    reading = run.reading(stream)
    deadline = time.monotonic() + within_s
    while len(reading.rows) < rows or reading.frames < frames:
        if reading.caught_up or reading.end is not None or not reading.step(deadline):
            break


def quiet(run: Running, stream: str = "read", *, for_s: float = 0.7) -> None:
    """No BATCH frame comes for a while; the rules of credit are watched at every message anyway."""
    reading = run.reading(stream)
    before = reading.frames
    if reading.end is None:
        reading.pass_time(for_s)
    if reading.frames != before:
        raise Failure(f"{reading.frames - before} frames came though there was no credit.")


def grant(run: Running, stream: str = "read", *, frames: int = 1, size: int = CREDIT_BYTES) -> None:
    """Gives a Read stream credit."""
    run.reading(stream).grant(frames, size)


def more_came(run: Running, stream: str = "read", *, frames: int) -> None:
    """So many frames came, unless the work was at its end before."""
    reading = run.reading(stream)
    if reading.frames < frames and not reading.caught_up and reading.end is None:
        raise Failure(f"{reading.frames} frames came for a credit of {frames}, and {len(reading.rows)} rows in all.")


def commit(run: Running, stream: str = "read") -> None:
    """Tells the source that everything it has sent is durable."""
    reading = run.reading(stream)
    message = source_pb2.ReadRequest()
    message.committed.positions.extend(_positions(reading.positions()))
    reading.send(message)


def drain(run: Running, stream: str = "read", *, within_s: float = 5.0) -> None:
    """The stream ends with `end` when it is drained."""
    reading = run.reading(stream)
    message = source_pb2.ReadRequest(drain=common_pb2.Drain(deadline_ms=int(within_s * 1000)))
    reading.send(message)
    deadline = time.monotonic() + within_s
    while reading.step(deadline):
        pass
    if reading.end is None:
        raise Failure("The stream ended without `end` after it was drained.")


def caught_up(run: Running, stream: str = "read", *, within_s: float = RECEIVE_DEADLINE_S) -> None:
    """The source says that there is nothing more, or a split that it is done."""
    reading = run.reading(stream)
    deadline = time.monotonic() + within_s
    while not reading.caught_up and reading.end is None and reading.step(deadline):
        pass
    if not reading.caught_up and (reading.end is None or not reading.end.complete):
        raise Failure("The stream ended without `caught_up`, and not with a complete `end`.")


def heartbeat(run: Running, stream: str = "read", *, within_s: float = 13.0) -> None:
    """A stream with nothing to say shows a sign of life."""
    deadline = time.monotonic() + within_s
    opened = run.stream(stream)
    while (message := opened.get(deadline)) is not None:
        if not hasattr(message, "WhichOneof"):
            raise Failure("The stream ended while a heartbeat was awaited.")
        opened.look_at(message)
        if message.WhichOneof("message") == "heartbeat":
            return
    raise Failure(f"No heartbeat came within {within_s:g} s on a stream without other news.")


def ends(
    run: Running,
    stream: str = "read",
    *,
    errors: list[str] | None = None,
    or_well: bool = False,
    within_s: float = 10.0,
) -> None:
    """The stream ends with one of some error classes; well, if none is given."""
    run.stream(stream).expect_end(errors or [], within_s, or_well=or_well)


def cancel(run: Running, stream: str = "read") -> None:
    """Breaks a stream off."""
    run.stream(stream).cancel()


def read_all(run: Running, name: str = "all", *, after: str | None = None) -> None:
    """Reads all work that there is, from some positions to the end."""
    result = Pass(positions=dict(run.result(after).positions))
    done: set[str] = set()
    for _ in range(PLANS_MAX):
        plan = _plan(run, result, 1)
        repeated = sorted(done & {work.id for work in plan.splits})
        if repeated:
            raise Failure(f"The split {repeated[0]} was read to its end and is planned again.")
        for work in plan.splits:
            _read_through(run, work, True, result)
            done.add(work.id)
        for work in plan.tasks:
            _read_through(run, work, False, result)
        result.move({position.partition_json: position.offset_json for position in plan.reached})
        result.move({position.partition_json: None for position in plan.retired})
        if not plan.splits:
            run.passes[name] = result
            return
    raise Failure(f"There was new work after {PLANS_MAX} plans.")


def read_some(run: Running, name: str = "some", *, rows: int = 10) -> None:
    """Reads until some rows have come and a position after them, and breaks off there."""
    result = Pass()
    plan = _plan(run, result, 1)
    works = [(work, True) for work in plan.splits] + [(work, False) for work in plan.tasks]
    for work, split in works:
        reading = _start(run, work, split, result, SMALL_FRAME_BYTES)
        deadline = time.monotonic() + RECEIVE_DEADLINE_S
        goal = rows - len(result.rows)
        while not _goal_mark(reading, goal) and not reading.caught_up and reading.step(deadline):
            pass
        marked = _goal_mark(reading, goal) or max((before for before, _, _ in reading.marks), default=0)
        result.rows += reading.rows[:marked]
        result.move(reading.positions(marked))
        reading.cancel()
        if len(result.rows) >= rows:
            break
    if not result.positions:
        raise Failure("Rows came without any position; they would all be read again after a restart.")
    run.passes[name] = result


def count(run: Running, of: str = "all") -> None:
    """A pass has as many rows as the subject file promises."""
    found = len(run.result(of).rows)
    if found != run.subject.rows:
        raise Failure(f"{found} rows came; the subject file promises {run.subject.rows}.")


def rows_add_up(run: Running, *, parts: list[str], whole: str = "all") -> None:
    """The rows of some readings together are those of another, none twice and none missing."""
    found = [row for part in parts for row in run.result(part).rows]
    expected = run.result(whole).rows
    if not run.subject.repeatable:
        if len(found) != len(expected):
            raise Failure(f"The parts have {len(found)} rows together, the whole {len(expected)}.")
        return
    missing, surplus = Counter(expected) - Counter(found), Counter(found) - Counter(expected)
    if missing or surplus:
        shown = list(missing or surplus)[:ROWS_SHOWN]
        raise Failure(
            f"{missing.total()} rows are missing and {surplus.total()} are too many when reading goes on; such as "
            f"{', '.join(row.value for row in shown)}."
        )
    if run.subject.ordered and found != expected:
        raise Failure("The rows are the same, in another order.")


def nothing_is_left(run: Running, *, after: str = "all") -> None:
    """Reading on from the end gives no row."""
    read_all(run, "rest", after=after)
    left = len(run.result("rest").rows)
    if left:
        raise Failure(f"{left} rows came again when reading went on from the last position.")


def alter_offsets(run: Running, *, after: str = "all", errors: list[str] | None = None) -> None:
    """The source agrees to positions of its own, and to forgetting them."""
    own = run.result(after).stored()
    forgotten = [common_pb2.Position(partition_json=position.partition_json) for position in own]
    config, secrets = run.config()
    for positions in (own, forgotten):
        request = source_pb2.AlterOffsetsRequest(
            connector=run.connector, class_name=run.class_name, config=config, secrets=secrets, validate_only=True
        )
        request.positions.extend(positions)
        try:
            run.call("SourceService.AlterOffsets", request)
        except grpc.RpcError as error:
            raise Failure(f"AlterOffsets refuses positions of the source's own: {error.details()}.") from None


def _plan(run: Running, stored: Pass, tasks_max: int) -> source_pb2.PlanResponse:
    request = source_pb2.PlanRequest(positions=stored.stored(), tasks_max=tasks_max)
    try:
        plan = run.call("SourceService.Plan", request)
    except grpc.RpcError as error:
        raise Failure(f"Plan failed: {error.code().name}, {error.details()}.") from None
    assert isinstance(plan, source_pb2.PlanResponse)
    works = [*plan.tasks, *plan.splits]
    for group in (plan.tasks, plan.splits):
        ids = [work.id for work in group]
        if len(ids) != len(set(ids)) or "" in ids:
            raise Failure(f"Plan names work twice or not at all: {', '.join(ids)}.")
    for work in works:
        if len(work.descriptor) > DESCRIPTOR_BYTES_MAX:
            raise Failure(f"The descriptor of {work.id} has {len(work.descriptor)} bytes; 64 KiB are allowed.")
        for partition in work.partitions_json:
            expect_compact(partition, f"a partition of the work {work.id}")
    return plan


def _opening(
    run: Running, work: source_pb2.Work, split: bool, stored: Pass, frame_bytes_target: int
) -> source_pb2.ReadOpen:
    wanted = set(work.partitions_json)
    opening = source_pb2.ReadOpen(
        generation=run.generation,
        work=work,
        split=split,
        encodings=encodings(None),
        credit=common_pb2.Credit(frames=CREDIT_FRAMES, bytes=CREDIT_BYTES),
        frame_bytes_target=frame_bytes_target,
    )
    opening.positions.extend(
        position for position in stored.stored() if not wanted or position.partition_json in wanted
    )
    return opening


def _start(run: Running, work: source_pb2.Work, split: bool, stored: Pass, frame_bytes_target: int) -> Reading:
    opening = _opening(run, work, split, stored, frame_bytes_target)
    return run.keep("pass", Reading(run.session.wire, opening, give_back=True))


def _read_through(run: Running, work: source_pb2.Work, split: bool, result: Pass) -> None:
    """Reads one work to its end, or until it has caught up."""
    reading = _start(run, work, split, result, PASS_FRAME_BYTES)
    deadline = time.monotonic() + RECEIVE_DEADLINE_S
    while reading.end is None and not (reading.caught_up and not split):
        if not reading.step(deadline):
            break
    if split and (reading.end is None or not reading.end.complete):
        raise Failure(f"The split {work.id} ended without a complete `end`.")
    last = max((before for before, _, _ in reading.marks), default=0)
    if last < len(reading.rows):
        raise Failure(f"The last {len(reading.rows) - last} rows of {work.id} have no position after them.")
    result.rows += reading.rows
    result.move(reading.positions())
    reading.cancel()


def _goal_mark(reading: Reading, rows: int) -> int:
    """Returns the rows before the first mark that has enough of them before it; 0 if there is none yet."""
    return next((before for before, _, _ in reading.marks if before >= rows), 0)


def _positions(positions: dict[str, str | None]) -> list[common_pb2.Position]:
    return [
        common_pb2.Position(partition_json=partition, offset_json=offset) for partition, offset in positions.items()
    ]
