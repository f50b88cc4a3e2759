"""Reports and signals over a real gRPC stream, between a lease's Progress and a coordinator of the test's."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from queue import SimpleQueue
from typing import Any

import grpc
import pytest
from hypothesis import given
from hypothesis import strategies as st

from wherry.connector.v1 import common_pb2, source_pb2
from wherry.contract.errors import FencedError, TransientError
from wherry.contract.position import Position
from wherry.control.v1 import lease_pb2, lease_pb2_grpc
from wherry.worker.control import Coordinator, usable_endpoints
from wherry.worker.counts import Counts
from wherry.worker.progress import UNCOMMITTED_MAX, Progress, counts_message, merged
from wherry.worker.signals import Phase, Signals


class Server(lease_pb2_grpc.LeaseServiceServicer):
    """Keeps what it hears; says what it is told to."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.heard: list[Any] = []
        self.said: SimpleQueue[Any] = SimpleQueue()
        self.refusals: list[grpc.StatusCode] = []
        self.breaks = threading.Event()
        self.opened = 0
        self.start()

    def start(self) -> None:
        self.server = grpc.server(ThreadPoolExecutor(8), options=[("grpc.so_reuseport", 0)])
        lease_pb2_grpc.add_LeaseServiceServicer_to_server(self, self.server)
        self.server.add_insecure_port(f"unix://{self.path}")
        self.server.start()

    def OpenLease(self, request: Any, context: Any) -> Any:
        if self.refusals:
            context.abort(self.refusals.pop(0), "no")
        return lease_pb2.OpenLeaseResponse(task=7)

    def Progress(self, requests: Iterator[Any], context: Any) -> Iterator[Any]:
        self.opened += 1
        over = threading.Event()

        def listen() -> None:
            try:
                for request in requests:
                    self.heard.append(request)
            except Exception:
                pass
            over.set()

        threading.Thread(target=listen, daemon=True).start()
        while context.is_active() and not over.is_set():
            if self.breaks.is_set():
                self.breaks.clear()
                context.abort(grpc.StatusCode.UNAVAILABLE, "broken")
            if not self.said.empty():
                yield self.said.get()
            time.sleep(0.002)

    def say(self, **message: Any) -> None:
        self.said.put(lease_pb2.ProgressResponse(**message))

    def reports(self) -> list[Any]:
        return [request.report for request in list(self.heard) if request.HasField("report")]


class Line:
    """A Progress and the server at its other end."""

    def __init__(self, server: Server, **numbers: float) -> None:
        self.server = server
        self.signals = Signals()
        spec = lease_pb2.LeaseSpec(lease_id="c-0-1-1", generation=1, coordinator_endpoints=[f"unix://{server.path}"])
        self.coordinator = Coordinator(spec, attempt=2)
        self.progress = Progress(
            self.coordinator, self.signals, **{"report_interval_s": 0.05, "coordinator_timeout_s": 60.0, **numbers}
        )
        self.progress.start()

    def end(self) -> None:
        self.progress.finish(lease_pb2.LeaseEnded(reason=lease_pb2.END_REASON_DRAINED), 1)
        self.coordinator.close()


@pytest.fixture
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    path = Path("/tmp") / f"wherry-progress-{time.monotonic_ns()}.sock"
    made = Server(path)
    yield made
    made.server.stop(0).wait(30)
    path.unlink(missing_ok=True)


@pytest.fixture
def line(server: Server) -> Iterator[Line]:
    made = Line(server)
    yield made
    made.end()


def wait_until(condition: Callable[[], bool], timeout_s: float = 60.0) -> None:
    deadline = time.monotonic() + timeout_s
    while not condition():
        assert time.monotonic() < deadline, "what was waited for did not come"
        time.sleep(0.002)


def position(number: int, partition: str = "p") -> Position:
    return Position(f'{{"p":"{partition}"}}', f'{{"o":{number}}}')


def committing(*, seq: int) -> lease_pb2.ReportCommitted:
    return lease_pb2.ReportCommitted(seq=seq)


def test_the_stream_begins_with_who_it_is(line: Line) -> None:
    wait_until(lambda: bool(line.server.heard))
    opening = line.server.heard[0].open
    assert (opening.lease_id, opening.generation, opening.attempt) == ("c-0-1-1", 1, 2)


def test_a_report_arrives_as_it_was_made(line: Line) -> None:
    counts = Counts(records_read=3, bytes_written=9)
    seq = line.progress.report(
        phase=Phase.RUNNING,
        positions=[position(5)],
        counts=counts,
        lag=8,
        topics=["t"],
        tokens=[b"x"],
        splits_done=["s"],
    )
    wait_until(lambda: any(report.positions for report in line.server.reports()))
    report = next(report for report in line.server.reports() if report.positions)
    assert (report.seq, report.phase, report.lag) == (seq, lease_pb2.LEASE_PHASE_RUNNING, 8)
    assert report.positions[0].offset_json == '{"o":5}'
    assert (report.counts.records_read, report.counts.bytes_written) == (3, 9)
    assert (list(report.topics), list(report.tokens), list(report.splits_done)) == (["t"], [b"x"], ["s"])


def test_a_lease_with_nothing_to_say_says_that_it_lives(line: Line) -> None:
    line.progress.report(phase=Phase.PAUSED)
    wait_until(lambda: len(line.server.reports()) > 3)
    assert line.server.reports()[-1].phase == lease_pb2.LEASE_PHASE_PAUSED
    seqs = [report.seq for report in line.server.reports()]
    assert seqs == sorted(set(seqs))


def test_a_commit_is_known_to_the_pump(line: Line) -> None:
    seq = line.progress.report(phase=Phase.RUNNING, positions=[position(1)])
    assert line.progress.committed_seq() == 0
    line.server.say(committed=committing(seq=seq))
    wait_until(lambda: line.progress.committed_seq() == seq)


def test_signals_reach_the_pump(line: Line) -> None:
    line.server.say(pause=lease_pb2.PauseLease(paused=True))
    line.server.say(drain=common_pb2.Drain(deadline_ms=2500))
    wait_until(lambda: line.signals.paused and line.signals.drain_seconds == 2.5)


def test_an_assignment_reaches_the_pump(line: Line) -> None:
    line.server.say(
        assign=lease_pb2.AssignWork(
            work=source_pb2.Work(id="s2"), positions=[common_pb2.Position(partition_json="{}", offset_json="{}")]
        )
    )
    line.server.say(assign=lease_pb2.AssignWork())
    got: list[Any] = []
    wait_until(lambda: bool((taken := line.signals.take_assignment()) and got.append(taken)) or len(got) == 2)
    assert got[0].work.id == "s2"
    assert got[0].positions == (Position("{}", "{}"),)
    assert got[1].work is None


def test_a_fence_ends_the_lease(line: Line) -> None:
    line.server.say(fence=lease_pb2.FenceLease(generation=9))
    wait_until(lambda: line.signals.fenced is not None)
    assert line.signals.fenced == "generation 9 has taken over"


def test_a_question_is_answered(line: Line) -> None:
    def answer() -> None:
        wait_until(lambda: any(request.HasField("query") for request in line.server.heard))
        query = next(request.query for request in line.server.heard if request.HasField("query"))
        found = [common_pb2.Position(partition_json=name, offset_json='{"o":1}') for name in query.partitions_json]
        line.server.say(answer=lease_pb2.PositionAnswer(id=query.id, positions=found))

    threading.Thread(target=answer).start()
    assert line.progress.query(["a", "b"]) == (Position("a", '{"o":1}'), Position("b", '{"o":1}'))


def test_a_lease_in_force_is_confirmed_by_an_answer_without_positions(line: Line) -> None:
    def answer() -> None:
        wait_until(lambda: any(request.HasField("query") for request in line.server.heard))
        query = next(request.query for request in line.server.heard if request.HasField("query"))
        line.server.say(answer=lease_pb2.PositionAnswer(id=query.id))

    threading.Thread(target=answer).start()
    line.progress.confirm()
    assert not next(request.query for request in line.server.heard if request.HasField("query")).partitions_json


def test_a_lease_that_is_fenced_while_it_asks_is_not_confirmed(line: Line) -> None:
    line.server.say(fence=lease_pb2.FenceLease(generation=9))
    with pytest.raises(FencedError, match="generation 9 has taken over"):
        line.progress.confirm()


def test_a_question_without_an_answer_is_given_up(line: Line) -> None:
    with pytest.raises(TransientError, match="did not answer a question in time"):
        line.progress.query(["a"], timeout_s=0.1)


def test_what_was_not_committed_is_said_again_on_a_new_stream(line: Line) -> None:
    line.progress.report(phase=Phase.RUNNING, positions=[position(1)], counts=Counts(records_read=5))
    seq = line.progress.report(phase=Phase.RUNNING, positions=[position(2)], tokens=[b"t"])
    wait_until(lambda: any(report.tokens for report in line.server.reports()))
    before = len(line.server.heard)
    line.server.breaks.set()
    wait_until(lambda: line.server.opened == 2 and any(r.HasField("report") for r in line.server.heard[before:]))
    again = next(request.report for request in line.server.heard[before:] if request.HasField("report"))
    assert again.seq == seq
    assert [found.offset_json for found in again.positions] == ['{"o":2}']
    assert list(again.tokens) == [b"t"]
    assert again.counts.records_read == 0


def test_what_was_committed_is_not_said_again(line: Line) -> None:
    seq = line.progress.report(phase=Phase.RUNNING, positions=[position(1)])
    wait_until(lambda: any(report.positions for report in line.server.reports()))
    line.server.say(committed=committing(seq=seq))
    wait_until(lambda: line.progress.committed_seq() == seq)
    before = len(line.server.heard)
    line.server.breaks.set()
    wait_until(lambda: line.server.opened == 2 and len(line.server.reports()) > 3)
    assert not [r for r in line.server.heard[before:] if r.HasField("report") and r.report.positions]


def test_a_split_still_wanted_is_asked_for_again(line: Line) -> None:
    line.progress.report(phase=Phase.RUNNING, want_split=True)
    wait_until(lambda: any(report.want_split for report in line.server.reports()))
    before = len(line.server.heard)
    line.server.breaks.set()
    wait_until(lambda: line.server.opened == 2 and any(r.report.want_split for r in line.server.heard[before:]))


def test_a_split_is_asked_for_once_on_one_stream(line: Line) -> None:
    line.progress.report(phase=Phase.RUNNING, want_split=True)
    wait_until(lambda: len(line.server.reports()) > 4)
    assert [report.want_split for report in line.server.reports()].count(True) == 1


def test_silence_fences_the_lease(server: Server) -> None:
    line = Line(server, coordinator_timeout_s=0.3)
    wait_until(lambda: line.signals.fenced is not None)
    assert "has been silent for 0.3 s" in str(line.signals.fenced)
    line.end()


def test_a_short_absence_is_survived(line: Line) -> None:
    wait_until(lambda: bool(line.server.reports()))
    line.server.server.stop(0).wait(30)
    line.progress.report(phase=Phase.RUNNING, positions=[position(4)])
    line.server.start()
    line.server.say(heartbeat=common_pb2.Heartbeat())
    wait_until(lambda: any(report.positions for report in line.server.reports()))
    assert line.signals.fenced is None


def test_the_end_comes_after_the_last_report(line: Line) -> None:
    line.progress.report(phase=Phase.DRAINING, positions=[position(3)])
    assert line.progress.finish(lease_pb2.LeaseEnded(reason=lease_pb2.END_REASON_DRAINED))
    kinds = [request.WhichOneof("message") for request in line.server.heard]
    assert kinds[-1] == "ended"
    assert any(report.positions for report in line.server.reports())


def test_durable_positions_are_the_last_of_each_partition(line: Line) -> None:
    line.progress.report(phase=Phase.RUNNING, positions=[position(1, "a"), position(1, "b")])
    line.progress.report(phase=Phase.RUNNING, positions=[position(2, "a")])
    assert set(line.progress.durable) == {position(2, "a"), position(1, "b")}


def test_a_lost_stream_costs_no_memory(server: Server) -> None:
    line = Line(server, coordinator_timeout_s=30)
    server.server.stop(0).wait(30)
    for number in range(10_000):
        line.progress.report(phase=Phase.RUNNING, positions=[position(number)], counts=Counts(records_read=1))
    assert len(line.progress._uncommitted) <= UNCOMMITTED_MAX
    server.start()
    wait_until(lambda: bool(server.reports()))
    report = server.reports()[0]
    assert [found.offset_json for found in report.positions] == ['{"o":9999}']
    line.end()


def test_a_lease_is_taken_up(line: Line) -> None:
    assert line.coordinator.open_lease().task == 7


def test_a_busy_coordinator_is_asked_again(line: Line) -> None:
    line.server.refusals = [grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.UNAVAILABLE]
    assert line.coordinator.open_lease().task == 7


def test_a_fenced_lease_is_not_asked_for_again(line: Line) -> None:
    line.server.refusals = [grpc.StatusCode.ABORTED, grpc.StatusCode.ABORTED]
    with pytest.raises(FencedError, match="no"):
        line.coordinator.open_lease()
    assert len(line.server.refusals) == 1


def test_sockets_of_another_machine_are_left_out() -> None:
    assert usable_endpoints(["unix:///nowhere/control.sock", "host:1"]) == ["host:1"]
    with pytest.raises(TransientError, match="is on this machine"):
        usable_endpoints(["unix:///nowhere/control.sock"])


counts = st.builds(
    Counts,
    records_read=st.integers(0, 10**9),
    commits=st.integers(0, 10**9),
    latency_buckets=st.lists(st.integers(0, 1000), min_size=20, max_size=20),
)


@given(counts, counts)
def test_merged_counts_are_the_sum(one: Counts, other: Counts) -> None:
    earlier = lease_pb2.LeaseReport(seq=1, counts=counts_message(one))
    whole = merged(earlier, lease_pb2.LeaseReport(seq=2, counts=counts_message(other))).counts
    assert whole.records_read == one.records_read + other.records_read
    assert whole.commits == one.commits + other.commits
    assert sum(whole.latency_buckets) == sum(one.latency_buckets) + sum(other.latency_buckets)
