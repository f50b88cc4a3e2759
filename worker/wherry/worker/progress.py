"""The Progress stream of a lease: reports up, signals down, and what happens when the coordinator is silent.

Reports are merged while they cannot be sent, so that a lost stream costs no memory, and those that carry something to
commit are kept until they are committed, so that a new stream carries them again. Invariants: `report` never waits;
positions are passed on only as the pump gave them; when nothing has been heard for the lease's time-out, the lease is
fenced and never revived, because the coordinator hands the work out anew after the same time.
"""

from __future__ import annotations

import itertools
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

import grpc

from wherry.contract import from_proto, rpc, to_proto
from wherry.contract.errors import FencedError, TransientError
from wherry.contract.position import Position
from wherry.control.v1 import lease_pb2
from wherry.worker import control
from wherry.worker.counts import Counts
from wherry.worker.signals import Assignment, Phase, Signals

DEFAULT_REPORT_INTERVAL_S: Final = 1.0
DEFAULT_COORDINATOR_TIMEOUT_S: Final = 10.0
RECONNECT_PAUSE_S: Final = 0.2
QUERY_TIMEOUT_S: Final = 10.0
FINISH_TIMEOUT_S: Final = 3.0
# Uncommitted reports above this are merged into one.
UNCOMMITTED_MAX: Final = 64
TROUBLE_CHARACTERS_MAX: Final = 1024


@dataclass(slots=True)
class _Query:
    """A question to the coordinator that is on its way."""

    partitions: tuple[str, ...]
    answer: tuple[Position, ...] | None = None


class Progress:
    """A lease's Progress stream; the pump's Reporter. Every method may be called from any thread."""

    def __init__(
        self,
        coordinator: control.Coordinator,
        signals: Signals,
        *,
        report_interval_s: float = DEFAULT_REPORT_INTERVAL_S,
        coordinator_timeout_s: float = DEFAULT_COORDINATOR_TIMEOUT_S,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._coordinator = coordinator
        self._signals = signals
        self._report_interval_s = report_interval_s
        self._timeout_s = coordinator_timeout_s
        self._clock = clock
        self._changed = threading.Condition()
        self._seq = 0
        self._committed_seq = 0
        self._pending: lease_pb2.LeaseReport | None = None
        self._uncommitted: deque[lease_pb2.LeaseReport] = deque()
        self._phase = Phase.STARTING
        self._lag: int | None = None
        self._trouble = ""
        self._wants_split = False
        self._sidecar_pids: tuple[int, ...] = ()
        self._durable: dict[str, Position] = {}
        self._splits_done: set[str] = set()
        self._ended: lease_pb2.LeaseEnded | None = None
        self._query_ids = itertools.count(1)
        self._queries: dict[int, _Query] = {}
        self._unasked: deque[int] = deque()
        self._heard_s = clock()
        self._call: Any = None
        self._stream = 0
        self._over = False
        self._thread = threading.Thread(target=self._run, name="lease-progress", daemon=True)

    def start(self) -> None:
        """Open the stream."""
        self._thread.start()

    # What the pump calls.

    def report(
        self,
        *,
        phase: Phase,
        positions: Sequence[Position] = (),
        counts: Counts | None = None,
        splits_done: Sequence[str] = (),
        want_split: bool = False,
        tokens: Sequence[bytes] = (),
        lag: int | None = None,
        trouble: str = "",
        topics: Sequence[str] = (),
    ) -> int:
        """Hand over a report and return its seq. Positions must be durable at the destination."""
        with self._changed:
            self._seq += 1
            self._phase, self._lag, self._trouble = phase, lag, trouble[:TROUBLE_CHARACTERS_MAX]
            self._wants_split = self._wants_split or want_split
            self._durable.update((position.partition, position) for position in positions)
            self._splits_done.update(splits_done)
            report = self._report(want_split)
            report.positions.extend(to_proto.positions(positions))
            report.splits_done.extend(splits_done)
            report.tokens.extend(tokens)
            report.topics.extend(topics)
            if counts is not None:
                report.counts.CopyFrom(counts_message(counts))
            self._pending = merged(self._pending, report)
            self._changed.notify_all()
            return self._seq

    def committed_seq(self) -> int:
        """Return the highest seq whose positions the coordinator has committed; 0 before the first."""
        return self._committed_seq

    def query(self, partitions: Sequence[str], timeout_s: float = QUERY_TIMEOUT_S) -> tuple[Position, ...]:
        """Ask for stored positions, one for each partition (compact JSON), in that order.

        Raises:
            TransientError: The coordinator did not answer in time.
        """
        deadline = self._clock() + timeout_s
        with self._changed:
            number = next(self._query_ids)
            query = self._queries[number] = _Query(tuple(partitions))
            self._unasked.append(number)
            self._changed.notify_all()
            try:
                while query.answer is None:
                    left_s = deadline - self._clock()
                    if left_s <= 0 or self._over:
                        raise TransientError("the coordinator did not answer a question in time")
                    self._changed.wait(left_s)
                return query.answer
            finally:
                del self._queries[number]

    def confirm(self, timeout_s: float = QUERY_TIMEOUT_S) -> None:
        """Have the coordinator say that the lease is in force now, after whatever this process did until the call.

        Raises:
            FencedError: It isn't.
            TransientError: The coordinator did not answer in time.
        """
        try:
            self.query((), timeout_s)
        except TransientError:
            if self._signals.fenced is not None:
                raise FencedError(self._signals.fenced) from None
            raise

    # What the lease calls.

    @property
    def durable(self) -> tuple[Position, ...]:
        """The positions reported as durable since the start, the last of each partition."""
        with self._changed:
            return tuple(self._durable.values())

    def is_split_done(self, split: str) -> bool:
        """Whether a split was reported as done."""
        return split in self._splits_done

    def use_sidecars(self, pids: Sequence[int]) -> None:
        """Note the processes of the sidecars in use, for the reports."""
        with self._changed:
            self._sidecar_pids = tuple(pid for pid in pids if pid)

    def finish(self, ended: lease_pb2.LeaseEnded, timeout_s: float = FINISH_TIMEOUT_S) -> bool:
        """Say that the lease has ended and close the stream; tell whether the coordinator has taken note."""
        with self._changed:
            self._ended = ended
            self._changed.notify_all()
        self._thread.join(timeout_s)
        told = not self._thread.is_alive() and not self._signals.fenced
        with self._changed:
            self._over = True
            self._changed.notify_all()
            if self._call is not None:
                self._call.cancel()
        return told

    # The stream.

    def _run(self) -> None:
        """Keep a stream open until the lease has ended or is fenced."""
        while not self._over:
            try:
                self._follow_stream()
                if self._ended is not None:
                    return
                trouble = "the coordinator closed the Progress stream"
            except grpc.RpcError as error:
                told = rpc.from_rpc_error(error)
                if not control.is_retried(told):
                    self._fence(str(told))
                    return
                trouble = str(told)
            except Exception as error:
                # A lease that no longer hears its coordinator must not go on.
                self._fence(f"the Progress stream failed: {error!r}")
                return
            if self._is_silent():
                self._fence(f"the coordinator has been silent for {self._timeout_s:g} s ({trouble})")
                return
            self._coordinator.try_next()
            time.sleep(RECONNECT_PAUSE_S)

    def _follow_stream(self) -> None:
        with self._changed:
            self._stream += 1
            stream = self._stream
            self._send_again()
        call = self._coordinator.progress(self._requests(stream))
        with self._changed:
            self._call = call
        try:
            for response in call:
                self._heard_s = self._clock()
                self._take(response)
        finally:
            with self._changed:
                self._call = None
                self._stream += 1
                self._changed.notify_all()

    def _requests(self, stream: int) -> Iterator[lease_pb2.ProgressRequest]:
        """Yield what is to be said on one stream; runs in a thread of gRPC's."""
        yield self._coordinator.opening()
        said_s = self._clock()
        while True:
            with self._changed:
                due_s = said_s + self._report_interval_s
                while self._stream == stream and self._has_nothing_to_say():
                    left_s = due_s - self._clock()
                    if left_s <= 0:
                        break
                    self._changed.wait(left_s)
                if self._stream != stream:
                    return
                if self._is_silent():
                    # Ends the stream; `_run` then draws the conclusion.
                    if self._call is not None:
                        self._call.cancel()
                    return
                requests, last = self._next_requests()
            yield from requests
            if last:
                return
            said_s = self._clock()

    def _has_nothing_to_say(self) -> bool:
        return self._pending is None and self._ended is None and not self._unasked

    def _next_requests(self) -> tuple[list[lease_pb2.ProgressRequest], bool]:
        """Take what is to be said now, a bare report when there is nothing else."""
        requests: list[lease_pb2.ProgressRequest] = []
        while self._unasked:
            number = self._unasked.popleft()
            query = self._queries.get(number)
            if query is not None:
                message = lease_pb2.PositionQuery(id=number, partitions_json=query.partitions)
                requests.append(lease_pb2.ProgressRequest(query=message))
        report, self._pending = self._pending, None
        if report is None and not requests and self._ended is None:
            self._seq += 1
            report = self._report(False)
        if report is not None:
            if report.positions or report.tokens or report.splits_done:
                self._keep(report)
            requests.append(lease_pb2.ProgressRequest(report=report))
        if self._ended is not None:
            requests.append(lease_pb2.ProgressRequest(ended=self._ended))
        return requests, self._ended is not None

    def _report(self, want_split: bool) -> lease_pb2.LeaseReport:
        return lease_pb2.LeaseReport(
            seq=self._seq,
            phase=self._phase.value,  # type: ignore[arg-type]  # the enums share their numbers
            want_split=want_split,
            lag=self._lag,
            trouble=self._trouble,
            sidecar_pids=self._sidecar_pids,
        )

    def _keep(self, report: lease_pb2.LeaseReport) -> None:
        self._uncommitted.append(report)
        if len(self._uncommitted) > UNCOMMITTED_MAX:
            whole: lease_pb2.LeaseReport | None = None
            for kept in self._uncommitted:
                whole = merged(whole, kept)
            assert whole is not None
            self._uncommitted = deque([whole])

    def _send_again(self) -> None:
        """Put what is not committed in front of what is pending. Counts were told already and are left out."""
        pending, self._pending = self._pending, None
        for report in self._uncommitted:
            again = lease_pb2.LeaseReport()
            again.CopyFrom(report)
            again.ClearField("counts")
            self._pending = merged(self._pending, again)
        self._uncommitted.clear()
        if pending is not None:
            self._pending = merged(self._pending, pending)
        if self._wants_split:
            if self._pending is None:
                self._seq += 1
                self._pending = self._report(True)
            self._pending.want_split = True
        self._unasked = deque(self._queries)

    def _take(self, response: lease_pb2.ProgressResponse) -> None:
        kind = response.WhichOneof("message")
        if kind == "committed":
            with self._changed:
                self._committed_seq = max(self._committed_seq, response.committed.seq)
                while self._uncommitted and self._uncommitted[0].seq <= self._committed_seq:
                    self._uncommitted.popleft()
        elif kind == "drain":
            self._signals.drain(response.drain.deadline_ms / 1000)
        elif kind == "pause":
            self._signals.pause(response.pause.paused)
        elif kind == "assign":
            self._wants_split = False
            work = from_proto.work(response.assign.work) if response.assign.HasField("work") else None
            self._signals.assign(Assignment(work, from_proto.positions(response.assign.positions)))
        elif kind == "answer":
            with self._changed:
                query = self._queries.get(response.answer.id)
                if query is not None:
                    query.answer = from_proto.positions(response.answer.positions)
                    self._changed.notify_all()
        elif kind == "fence":
            self._fence(f"generation {response.fence.generation} has taken over")

    def _is_silent(self) -> bool:
        return self._clock() - self._heard_s > self._timeout_s

    def _fence(self, message: str) -> None:
        self._signals.fence(message)
        with self._changed:
            self._over = True
            self._changed.notify_all()


def merged(earlier: lease_pb2.LeaseReport | None, later: lease_pb2.LeaseReport) -> lease_pb2.LeaseReport:
    """Return one report that says what two say: increments are added, the later state and positions win."""
    if earlier is None:
        return later
    whole = lease_pb2.LeaseReport()
    whole.CopyFrom(later)
    positions = {position.partition_json: position for position in (*earlier.positions, *later.positions)}
    whole.ClearField("positions")
    whole.positions.extend(positions.values())
    for field in ("splits_done", "tokens", "topics"):
        whole.ClearField(field)
        getattr(whole, field).extend([*getattr(earlier, field), *getattr(later, field)])
    whole.want_split = earlier.want_split or later.want_split
    whole.counts.CopyFrom(_added(earlier.counts, later.counts))
    return whole


def counts_message(counts: Counts) -> lease_pb2.LeaseCounts:
    """Return counts as they travel."""
    message = lease_pb2.LeaseCounts(latency_buckets=counts.latency_buckets)
    for field in _COUNTERS:
        setattr(message, field, getattr(counts, field))
    return message


def _added(one: lease_pb2.LeaseCounts, other: lease_pb2.LeaseCounts) -> lease_pb2.LeaseCounts:
    whole = lease_pb2.LeaseCounts()
    for field in _COUNTERS:
        setattr(whole, field, getattr(one, field) + getattr(other, field))
    # The one that is a time.
    whole.last_error_ms = max(one.last_error_ms, other.last_error_ms)
    pairs = itertools.zip_longest(one.latency_buckets, other.latency_buckets, fillvalue=0)
    whole.latency_buckets.extend(left + right for left, right in pairs)
    return whole


_COUNTERS: Final = tuple(
    field.name for field in lease_pb2.LeaseCounts.DESCRIPTOR.fields if field.name != "latency_buckets"
)
