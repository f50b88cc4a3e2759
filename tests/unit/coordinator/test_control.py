"""LeaseService over real gRPC: tokens, grants, signals that wait for their worker, streams that break."""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import grpc
import pytest

from wherry.connector.v1 import common_pb2
from wherry.contract.errors import ConfigError, FencedError
from wherry.contract.plan import Work
from wherry.contract.position import Position
from wherry.control.v1 import lease_pb2, lease_pb2_grpc
from wherry.coordinator import certificate, control
from wherry.coordinator import events as ev
from wherry.coordinator.control import ControlServer
from wherry.coordinator.figures import Figures

LEASE = "my-sink-0-7-1"
REQUEST = lease_pb2.ProgressRequest


class Wire:
    """A control server and a worker's side of it."""

    def __init__(self, directory: Path) -> None:
        self.events: queue.Queue[Any] = queue.Queue()
        self.leads = True
        self.topics: list[tuple[str, int, str]] = []
        self.figures = Figures(lambda *used: self.topics.append(used))
        self.server = ControlServer(
            self.events.put,
            lambda name, parts: [Position(p, '{"n":1}') for p in parts],
            self.figures,
            directory,
            may_speak=self.may_speak,
        )
        self.server.start()
        self.channel = grpc.insecure_channel(self.server.endpoints[0])
        self.stub = lease_pb2_grpc.LeaseServiceStub(self.channel)  # type: ignore[no-untyped-call]

    def may_speak(self) -> None:
        if not self.leads:
            raise FencedError("Another coordinator leads.")

    def close(self) -> None:
        self.channel.close()
        self.server.stop(0)

    def ask(self, **changes: Any) -> Any:
        fields = {"lease_id": LEASE, "generation": 7, "attempt": 0, "token": self.server.token, **changes}
        return self.stub.OpenLease.future(lease_pb2.OpenLeaseRequest(**fields), timeout=60)

    def opened(self, attempt: int = 0) -> None:
        asked = self.ask(attempt=attempt)
        self.server.grant(self.events.get(timeout=60).request, lease_pb2.OpenLeaseResponse(task=3))
        asked.result()

    def progress(self, attempt: int = 0, *, token: str = "") -> tuple[queue.Queue[Any], Any]:
        out: queue.Queue[Any] = queue.Queue()
        opening = lease_pb2.ProgressOpen(
            lease_id=LEASE, generation=7, attempt=attempt, token=token or self.server.token
        )
        out.put(REQUEST(open=opening))
        return out, self.stub.Progress(iter(out.get, None), timeout=60)


@pytest.fixture
def wire(tmp_path: Path) -> Iterator[Wire]:
    wire = Wire(tmp_path / "run")
    yield wire
    wire.close()


def test_the_socket_is_in_a_directory_of_our_own(wire: Wire, tmp_path: Path) -> None:
    assert (tmp_path / "run").stat().st_mode & 0o777 == 0o700


def test_a_folder_too_long_for_sockets_is_told_with_what_to_do(tmp_path: Path) -> None:
    folder = tmp_path / ("long" * 30)
    server = ControlServer(queue.Queue().put, lambda *_: [], Figures(lambda *_: None), folder)
    with pytest.raises(ConfigError, match="TMPDIR"):
        server.start()


def test_a_wrong_token_is_refused(wire: Wire) -> None:
    with pytest.raises(grpc.RpcError) as refused:
        wire.ask(token="guessed").result()
    assert refused.value.code() is grpc.StatusCode.PERMISSION_DENIED
    assert wire.events.empty()


def test_an_opening_becomes_an_event_and_its_answer_a_grant(wire: Wire) -> None:
    asked = wire.ask(worker=lease_pb2.WorkerIdentity(host="h", pid=9))
    event = wire.events.get(timeout=60)
    assert (event.connector, event.lease, event.generation, event.worker) == ("my-sink", LEASE, 7, "h:9")
    wire.server.grant(event.request, lease_pb2.OpenLeaseResponse(task=3))
    assert asked.result().task == 3


def test_a_refusal_is_told_as_fenced(wire: Wire) -> None:
    asked = wire.ask()
    wire.server.refuse(wire.events.get(timeout=60).request, "too late")
    with pytest.raises(grpc.RpcError) as refused:
        asked.result()
    assert (refused.value.code(), refused.value.details()) == (grpc.StatusCode.ABORTED, "too late")


def test_a_coordinator_that_does_not_decide_in_time_asks_for_patience(
    wire: Wire, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(control, "OPEN_TIMEOUT_S", 0.1)
    with pytest.raises(grpc.RpcError) as refused:
        wire.ask().result()
    assert refused.value.code() is grpc.StatusCode.UNAVAILABLE


def test_reports_become_events_and_figures(wire: Wire) -> None:
    wire.opened()
    out, _ = wire.progress()
    report = lease_pb2.LeaseReport(
        seq=4,
        positions=[common_pb2.Position(partition_json="p", offset_json="o")],
        counts=lease_pb2.LeaseCounts(records_read=5),
        topics=["t"],
        lag=2,
    )
    out.put(REQUEST(report=report))
    event = wire.events.get(timeout=60)
    assert (event.seq, event.positions, event.attempt) == (4, (Position("p", "o"),), 0)
    figures = wire.figures.get(LEASE)
    assert figures is not None
    assert (figures.records_read, figures.lag, wire.topics) == (5, 2, [("my-sink", 3, "t")])


def test_signals_given_before_the_stream_is_there_wait_for_it(wire: Wire) -> None:
    wire.opened()
    wire.server.drain(LEASE, 1_000)
    _, responses = wire.progress()
    assert next(responses).drain.deadline_ms == 1_000


def test_signals_on_a_broken_stream_are_said_again_on_the_next(wire: Wire) -> None:
    wire.opened()
    out, responses = wire.progress()
    wire.server.committed(LEASE, 1)
    assert next(responses).committed.seq == 1
    responses.cancel()
    out.put(None)
    _wait(lambda: wire.server._lines[LEASE].stream is None)
    wire.server.committed(LEASE, 2)
    _, responses = wire.progress()
    assert next(responses).committed.seq == 2


def test_a_split_that_got_lost_with_its_stream_is_given_again(wire: Wire) -> None:
    wire.opened()
    out, responses = wire.progress()
    wire.server.assign(LEASE, ev.TaskWork(Work("s9"), split=True), [])
    assert next(responses).assign.work.id == "s9"
    responses.cancel()
    out.put(None)
    _wait(lambda: wire.server._lines[LEASE].stream is None)
    out, responses = wire.progress()
    out.put(REQUEST(report=lease_pb2.LeaseReport(want_split=True)))
    assert next(responses).assign.work.id == "s9"


def test_a_worker_that_asks_on_gets_nothing_twice(wire: Wire) -> None:
    wire.opened()
    out, responses = wire.progress()
    out.put(REQUEST(report=lease_pb2.LeaseReport(want_split=True)))
    wire.events.get(timeout=60)
    wire.server.assign(LEASE, ev.TaskWork(Work("s9"), split=True), [])
    assert next(responses).assign.work.id == "s9"
    out.put(REQUEST(report=lease_pb2.LeaseReport(seq=2, want_split=True, splits_done=["s9"])))
    wire.events.get(timeout=60)
    wire.server.committed(LEASE, 2)
    assert next(responses).committed.seq == 2


def test_a_newer_attempt_takes_the_stream_over(wire: Wire) -> None:
    wire.opened()
    _, old = wire.progress(attempt=0)
    _wait(lambda: wire.server._lines[LEASE].stream is not None)
    _, new = wire.progress(attempt=1)
    assert list(old) == [], "the old stream ends"
    wire.server.committed(LEASE, 1)
    assert next(new).committed.seq == 1


def test_a_newer_attempt_hears_nothing_that_was_meant_for_the_one_before(wire: Wire) -> None:
    wire.opened()
    wire.server.assign(LEASE, ev.TaskWork(Work("s1"), split=True), [])
    wire.server.committed(LEASE, 50)
    wire.opened(attempt=1)
    wire.server.drain(LEASE, 1_000)
    out, responses = wire.progress(attempt=1)
    assert next(responses).drain.deadline_ms == 1_000
    out.put(REQUEST(report=lease_pb2.LeaseReport(seq=1, want_split=True)))
    assert wire.events.get(timeout=60).want_split
    wire.server.assign(LEASE, ev.TaskWork(Work("s2"), split=True), [])
    assert next(responses).assign.work.id == "s2"


def test_a_fenced_lease_is_told_and_its_stream_ends(wire: Wire) -> None:
    wire.opened()
    _, responses = wire.progress()
    _wait(lambda: wire.server._lines[LEASE].stream is not None)
    wire.server.fence(LEASE, 8)
    assert [response.fence.generation for response in responses] == [8]


def test_a_lease_in_force_is_confirmed_unless_another_coordinator_may_lead(wire: Wire) -> None:
    wire.opened()
    out, responses = wire.progress()
    out.put(REQUEST(query=lease_pb2.PositionQuery(id=1)))
    assert next(responses).answer == lease_pb2.PositionAnswer(id=1)
    wire.leads = False
    out.put(REQUEST(query=lease_pb2.PositionQuery(id=2)))
    assert list(responses) == []


def test_a_lease_nobody_knows_is_fenced_at_once(wire: Wire) -> None:
    _, responses = wire.progress()
    assert [response.WhichOneof("message") for response in responses] == ["fence"]


def test_a_failure_is_told_with_its_class(wire: Wire) -> None:
    wire.opened()
    out, _ = wire.progress()
    out.put(REQUEST(ended=lease_pb2.LeaseEnded(reason=4, error_class=4, message="refused")))  # type: ignore[arg-type]
    event = wire.events.get(timeout=60)
    assert (event.reason, event.failure.error_class.name, event.failure.message) == (
        ev.EndReason.FAILED,
        "AUTH",
        "refused",
    )
    assert wire.figures.get(LEASE) is None


def test_a_question_about_positions_is_answered(wire: Wire) -> None:
    wire.opened()
    out, responses = wire.progress()
    out.put(REQUEST(query=lease_pb2.PositionQuery(id=5, partitions_json=["a", "b"])))
    answer = next(responses).answer
    assert (answer.id, [position.partition_json for position in answer.positions]) == (5, ["a", "b"])


def test_a_silent_stream_hears_a_heartbeat(wire: Wire, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(control, "HEARTBEAT_S", 0.05)
    wire.opened()
    _, responses = wire.progress()
    assert next(responses).WhichOneof("message") == "heartbeat"


def _wait(true: Callable[[], bool]) -> None:
    for _ in range(6000):
        if true():
            return
        threading.Event().wait(0.01)
    raise AssertionError("not so within a minute")


def served_elsewhere(directory: Path, host: str, bind: str = "") -> ControlServer:
    return ControlServer(
        lambda event: None, lambda name, parts: [], Figures(lambda *_: None), directory, tcp_host=host, tcp_bind=bind
    )


def reaches(endpoint: str, certificate: bytes) -> bool:
    with grpc.secure_channel(endpoint, grpc.ssl_channel_credentials(certificate)) as channel:
        try:
            grpc.channel_ready_future(channel).result(2)
        except grpc.FutureTimeoutError:
            return False
        return True


def test_workers_elsewhere_speak_tls_with_who_has_the_certificate_of_this_run(tmp_path: Path) -> None:
    server, other = served_elsewhere(tmp_path, "127.0.0.1"), certificate.for_host("127.0.0.1")
    assert server.certificate == b""
    server.start()
    try:
        assert reaches(server.endpoints[0], server.certificate)
        assert not reaches(server.endpoints[0], other.certificate)
    finally:
        server.stop(0)


def test_workers_elsewhere_are_told_a_name_and_served_at_the_address_that_was_asked_for(tmp_path: Path) -> None:
    server = served_elsewhere(tmp_path, "localhost", "127.0.0.1")
    server.start()
    try:
        host, _, port = server.endpoints[0].rpartition(":")
        assert host == "localhost"
        assert reaches(f"localhost:{port}", server.certificate)
        assert not reaches(f"127.0.0.1:{port}", server.certificate), "it is made out to the name"
    finally:
        server.stop(0)


def test_an_address_that_is_not_ours_is_refused_with_what_to_set(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"wherry\.spark\.driver\.host"):
        served_elsewhere(tmp_path, "192.0.2.1").start()
