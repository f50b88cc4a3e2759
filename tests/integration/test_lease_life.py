"""The life of a lease in a worker process of its own, between a coordinator of the test's and real sidecars.

Source and sink are sidecars of one plugin, so that no Kafka is needed; pump, host and wire are the real ones.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import grpc
import pytest

from wherry.connector.v1 import common_pb2, source_pb2
from wherry.contract import rpc
from wherry.control.v1 import host_pb2, host_pb2_grpc, lease_pb2, lease_pb2_grpc

pytestmark = pytest.mark.integration

PAIR = Path(__file__).with_name("plugins") / "pair"
RUN_LEASE = """
import json, sys
from wherry.worker.lease import run
print(json.dumps(run(sys.stdin.buffer.read())))
"""
TOKEN = "secret"


class FakeCoordinator(lease_pb2_grpc.LeaseServiceServicer):
    """Hands out one lease and takes its reports; commits at once."""

    def __init__(self, socket: Path, grant: lease_pb2.OpenLeaseResponse) -> None:
        self.socket = socket
        self.grant = grant
        self.splits: list[str] = []
        self.reports: list[lease_pb2.LeaseReport] = []
        self.ended: lease_pb2.LeaseEnded | None = None
        self.positions: dict[str, str] = {}
        self.done: list[str] = []
        self.streams = 0
        self.speaks = True
        self._out: list[Any] = []
        self._server: Any = None
        self.start()

    def start(self) -> None:
        self._server = grpc.server(ThreadPoolExecutor(16), options=rpc.server_options())
        lease_pb2_grpc.add_LeaseServiceServicer_to_server(self, self._server)
        self._server.add_insecure_port(f"unix://{self.socket}")
        self._server.start()

    def stop(self) -> None:
        self._server.stop(0).wait(60)

    def say(self, **message: Any) -> None:
        self._out.append(lease_pb2.ProgressResponse(**message))

    def OpenLease(self, request: Any, context: Any) -> Any:
        assert request.token == TOKEN
        if request.generation < 1:
            context.abort(grpc.StatusCode.ABORTED, "generation 1 has taken over")
        return self.grant

    def Progress(self, requests: Iterator[Any], context: Any) -> Iterator[Any]:
        self.streams += 1
        over = threading.Event()

        def read() -> None:
            try:
                for request in requests:
                    self._take(request)
            except Exception:
                pass
            over.set()

        threading.Thread(target=read, daemon=True).start()
        heartbeat_s = time.monotonic()
        while context.is_active() and not (over.is_set() and not self._out):
            if self.speaks and self._out:
                yield self._out.pop(0)
            elif self.speaks and time.monotonic() - heartbeat_s > 0.5:
                heartbeat_s = time.monotonic()
                yield lease_pb2.ProgressResponse(heartbeat=common_pb2.Heartbeat())
            time.sleep(0.005)

    def _take(self, request: Any) -> None:
        kind = request.WhichOneof("message")
        if kind == "ended":
            self.ended = request.ended
        elif kind == "report":
            report = request.report
            self.reports.append(report)
            self.done.extend(report.splits_done)
            self.positions.update({p.partition_json: p.offset_json for p in report.positions})
            if report.positions:
                self.say(committed=lease_pb2.ReportCommitted(seq=report.seq))
            if report.want_split:
                work = source_pb2.Work(id=self.splits.pop(0)) if self.splits else None
                self.say(assign=lease_pb2.AssignWork(work=work))


class Site:
    """A host, a coordinator, and what a lease needs."""

    def __init__(self, directory: Path) -> None:
        directory.mkdir(mode=0o700)
        self.directory = directory
        self.file = directory / "out"
        self.host_socket = directory / "host.sock"
        command = [sys.executable, "-m", "wherry.worker.host", "--socket", str(self.host_socket)]
        self.host = subprocess.Popen([*command, "--parent-pid", str(os.getpid())])
        wait_until(self.host_socket.exists)
        self.host_stub = host_pb2_grpc.HostServiceStub(rpc.channel(f"unix://{self.host_socket}"))
        self.coordinator: FakeCoordinator
        self.workers: list[subprocess.Popen[str]] = []

    def serve(
        self, *, split: str = "0", timeout_ms: int = 60_000, paused: bool = False, **source: str
    ) -> FakeCoordinator:
        def sidecar(role: Any, class_name: str, config: dict[str, str]) -> lease_pb2.SidecarSpec:
            return lease_pb2.SidecarSpec(
                plugin="pair",
                plugin_directory=str(PAIR),
                class_name=class_name,
                role=role,
                connector="numbers",
                generation=1,
                config=config,
            )

        grant = lease_pb2.OpenLeaseResponse(
            kind=lease_pb2.PIPELINE_KIND_DIRECT,
            config={"name": "numbers"},
            worker_config={"offset.flush.interval.ms": "300"},
            work=source_pb2.Work(id=split),
            split=True,
            host_endpoint=f"unix://{self.host_socket}",
            sidecars=[
                sidecar(common_pb2.ROLE_SOURCE, "wherry.test.NumberSource", source),
                sidecar(common_pb2.ROLE_SINK, "wherry.test.FileSink", {"file": str(self.file)}),
            ],
            policy=lease_pb2.LeasePolicy(report_interval_ms=200, coordinator_timeout_ms=timeout_ms),
            paused=paused,
        )
        self.coordinator = FakeCoordinator(self.directory / "control.sock", grant)
        return self.coordinator

    def run(self, generation: int = 1) -> subprocess.Popen[str]:
        spec = lease_pb2.LeaseSpec(
            lease_id="numbers-0-1-1",
            connector="numbers",
            generation=generation,
            coordinator_endpoints=[f"unix://{self.coordinator.socket}"],
            token=TOKEN,
        )
        worker = subprocess.Popen(
            [sys.executable, "-c", RUN_LEASE], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        assert worker.stdin is not None
        worker.stdin.buffer.write(spec.SerializeToString())
        worker.stdin.close()
        worker.stdin = None
        self.workers.append(worker)
        return worker

    def lines(self) -> list[str]:
        return self.file.read_text().splitlines() if self.file.exists() else []

    def sidecars(self) -> dict[str, int]:
        """Process ids of the sidecars by the end of their class's name."""
        found = {}
        for sidecar in self.host_stub.ListSidecars(host_pb2.ListSidecarsRequest(), timeout=60).sidecars:
            # The source of a direct pipeline is acquired first, and starts first.
            found["Sink" if found else "Source"] = sidecar.pid
        return found

    def end(self) -> None:
        for worker in self.workers:
            worker.kill()
            worker.wait()
        self.coordinator.stop()
        self.host.terminate()
        self.host.wait(60)


@pytest.fixture
def site() -> Iterator[Site]:
    directory = Path("/tmp") / f"wherry-lease-{os.getpid()}-{time.monotonic_ns() % 10**9}"
    made = Site(directory)
    yield made
    made.end()
    shutil.rmtree(directory, ignore_errors=True)


def wait_until(condition: Callable[[], bool], timeout_s: float = 60.0) -> None:
    deadline = time.monotonic() + timeout_s
    while not condition():
        assert time.monotonic() < deadline, "what was waited for did not come"
        time.sleep(0.01)


def result_of(worker: subprocess.Popen[str], timeout_s: float = 120.0) -> dict[str, Any]:
    output, _ = worker.communicate(timeout=timeout_s)
    result: dict[str, Any] = json.loads(output.splitlines()[-1])
    return result


def numbers(count: int, work: str = "0") -> list[str]:
    return [f"{work} {number}" for number in range(1, count + 1)]


def test_a_lease_moves_everything_and_says_so(site: Site) -> None:
    coordinator = site.serve(count="5000")
    result = result_of(site.run())
    assert site.lines() == numbers(5000)
    assert coordinator.positions == {'{"numbers":"0"}': '{"n":5000}'}
    assert result["reason"] == lease_pb2.END_REASON_SPLITS_DONE
    assert result["told"]
    assert coordinator.ended is not None
    assert sum(report.counts.records_read for report in coordinator.reports) == 5000


def test_splits_are_taken_one_after_another(site: Site) -> None:
    coordinator = site.serve(split="a", count="100")
    coordinator.splits = ["b", "c"]
    assert result_of(site.run())["reason"] == lease_pb2.END_REASON_SPLITS_DONE
    assert coordinator.done == ["a", "b", "c"]
    assert site.lines() == numbers(100, "a") + numbers(100, "b") + numbers(100, "c")


def test_a_drained_lease_is_gone_on_with_exactly_where_it_stopped(site: Site) -> None:
    coordinator = site.serve(count="100000", rate="2000")
    worker = site.run()
    wait_until(lambda: len(site.lines()) > 500)
    coordinator.say(drain=common_pb2.Drain(deadline_ms=30_000))
    assert result_of(worker)["reason"] == lease_pb2.END_REASON_DRAINED
    written = site.lines()
    assert written == numbers(len(written))
    assert coordinator.positions == {'{"numbers":"0"}': f'{{"n":{len(written)}}}'}


@pytest.mark.parametrize("victim", ["Source", "Sink"])
def test_a_lease_survives_the_death_of_a_sidecar(site: Site, victim: str) -> None:
    coordinator = site.serve(count="1000000", rate="1500")
    worker = site.run()
    wait_until(lambda: len(site.lines()) > 1500)
    before = site.sidecars()
    os.kill(before[victim], signal.SIGKILL)
    wait_until(lambda: site.sidecars().get(victim, before[victim]) != before[victim])
    at_replacement = len(site.lines())
    wait_until(lambda: len(site.lines()) > at_replacement + 50)
    coordinator.say(drain=common_pb2.Drain(deadline_ms=30_000))
    assert result_of(worker)["reason"] == lease_pb2.END_REASON_DRAINED
    written = sorted({int(line.split()[1]) for line in site.lines()})
    assert written == list(range(1, len(written) + 1))


def test_a_lease_of_splits_survives_the_death_of_a_sidecar(site: Site) -> None:
    killed = site.directory / "killed"
    coordinator = site.serve(split="a", count="2000", hold="b 501", until=str(killed))
    coordinator.splits = ["b"]
    worker = site.run()
    wait_until(lambda: "b 500" in site.lines())
    os.kill(site.sidecars()["Source"], signal.SIGKILL)
    killed.touch()
    assert result_of(worker)["reason"] == lease_pb2.END_REASON_SPLITS_DONE
    assert coordinator.done == ["a", "b"]
    assert set(site.lines()) == {*numbers(2000, "a"), *numbers(2000, "b")}
    assert len([line for line in site.lines() if line.startswith("a ")]) == 2000


def test_a_killed_worker_leaves_no_sidecar(site: Site) -> None:
    site.serve(count="10", follow="true")
    worker = site.run()
    wait_until(lambda: len(site.sidecars()) == 2 and len(site.lines()) == 10)
    worker.kill()
    worker.wait()
    wait_until(lambda: site.sidecars() == {})


def test_a_fenced_lease_stops_at_once(site: Site) -> None:
    coordinator = site.serve(count="1000000", rate="1000")
    worker = site.run()
    wait_until(lambda: len(site.lines()) > 100)
    coordinator.say(fence=lease_pb2.FenceLease(generation=2))
    result = result_of(worker)
    assert result["reason"] == lease_pb2.END_REASON_FENCED
    assert "generation 2 has taken over" in result["message"]


def test_a_stale_lease_does_not_begin(site: Site) -> None:
    site.serve()
    result = result_of(site.run(generation=0))
    assert result["reason"] == lease_pb2.END_REASON_FENCED
    assert site.lines() == []


def test_a_lease_ends_when_the_coordinator_is_gone(site: Site) -> None:
    coordinator = site.serve(count="1000000", rate="1000", timeout_ms=5000)
    worker = site.run()
    wait_until(lambda: len(site.lines()) > 100)
    coordinator.stop()
    result = result_of(worker)
    assert result["reason"] == lease_pb2.END_REASON_FENCED
    assert "has been silent for 5 s" in result["message"]
    assert not result["told"]


def test_a_lease_ends_when_the_coordinator_hangs(site: Site) -> None:
    coordinator = site.serve(count="1000000", rate="1000", timeout_ms=5000)
    worker = site.run()
    wait_until(lambda: len(site.lines()) > 100)
    coordinator.speaks = False
    assert "has been silent for 5 s" in result_of(worker)["message"]


def test_a_short_absence_of_the_coordinator_is_survived(site: Site) -> None:
    coordinator = site.serve(count="4000", rate="1000")
    worker = site.run()
    wait_until(lambda: len(site.lines()) > 100)
    coordinator.stop()
    time.sleep(1)
    coordinator.start()
    assert result_of(worker)["reason"] == lease_pb2.END_REASON_SPLITS_DONE
    assert site.lines() == numbers(4000)
    assert coordinator.positions == {'{"numbers":"0"}': '{"n":4000}'}
    assert coordinator.streams > 1


def test_a_paused_lease_moves_nothing_until_resumed(site: Site) -> None:
    coordinator = site.serve(count="100", paused=True)
    worker = site.run()
    wait_until(lambda: any(report.phase == lease_pb2.LEASE_PHASE_PAUSED for report in coordinator.reports))
    time.sleep(0.5)
    assert site.lines() == []
    coordinator.say(pause=lease_pb2.PauseLease(paused=False))
    assert result_of(worker)["reason"] == lease_pb2.END_REASON_SPLITS_DONE
    assert site.lines() == numbers(100)


def test_a_failure_is_told_with_its_class(site: Site) -> None:
    coordinator = site.serve(count="many")
    result = result_of(site.run())
    assert result["reason"] == lease_pb2.END_REASON_FAILED
    assert result["error_class"] == common_pb2.ERROR_CLASS_CONFIG
    assert "Invalid value many for configuration count" in result["message"]
    assert coordinator.ended is not None
    assert coordinator.ended.message == result["message"]


def test_no_coordinator_at_all_is_told(site: Site) -> None:
    site.serve().stop()
    site.coordinator.socket.unlink(missing_ok=True)
    result = result_of(site.run())
    assert result["reason"] == lease_pb2.END_REASON_FAILED
    assert result["error_class"] == common_pb2.ERROR_CLASS_TRANSIENT
