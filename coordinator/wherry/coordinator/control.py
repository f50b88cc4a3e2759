"""Where workers reach the coordinator: LeaseService.

Turns calls into events and effects into answers; decides nothing. A lease keeps one line for as long as it lives:
signals wait on it while its worker reconnects. Nothing here blocks on a store or on the machine: a stream's thread only
moves messages between the wire and queues.

Workers of local masters are served on a Unix socket in a directory of our own; those of others on a TCP port, by TLS
with a certificate of this run. Every call must carry the token that was put into the lease's spec.
"""

from __future__ import annotations

import hmac
import logging
import os
import queue
import secrets
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from concurrent.futures import TimeoutError as FutureTimeoutError
from pathlib import Path
from typing import Final

import grpc

from wherry.connector.v1 import common_pb2
from wherry.contract import from_proto, to_proto
from wherry.contract.errors import ConfigError, ErrorClass
from wherry.contract.limits import SOCKET_PATH_BYTES_MAX
from wherry.contract.position import Position
from wherry.control.v1 import lease_pb2, lease_pb2_grpc
from wherry.coordinator import certificate
from wherry.coordinator import events as ev
from wherry.coordinator.figures import Figures

log = logging.getLogger(__name__)

STREAMS_MAX: Final = 2048
SIGNALS_WAITING_MAX: Final = 64
OPEN_TIMEOUT_S: Final = 5.0
_LONGEST_SOCKET: Final = f"{'0' * 12}.sock"
"""Sidecars have theirs beside ours; what cannot work for them is told before anything starts."""
HEARTBEAT_S: Final = 2.0
LINES_MAX: Final = 20_000
LINE_KEPT_S: Final = 300.0
MESSAGE_BYTES_MAX: Final = 16 * 1024 * 1024

_OPTIONS: Final = [
    ("grpc.max_receive_message_length", MESSAGE_BYTES_MAX),
    ("grpc.max_send_message_length", MESSAGE_BYTES_MAX),
    ("grpc.so_reuseport", 0),
]
_REASONS: Final = {
    lease_pb2.END_REASON_DRAINED: ev.EndReason.DRAINED,
    lease_pb2.END_REASON_SPLITS_DONE: ev.EndReason.SPLITS_DONE,
    lease_pb2.END_REASON_IDLE: ev.EndReason.IDLE,
    lease_pb2.END_REASON_FAILED: ev.EndReason.FAILED,
    lease_pb2.END_REASON_FENCED: ev.EndReason.FENCED,
}

Signal = lease_pb2.ProgressResponse


class _Stream:
    """One Progress stream."""

    def __init__(self, attempt: int) -> None:
        self.attempt = attempt
        self.reports = 0
        self.out: queue.SimpleQueue[Signal | None] = queue.SimpleQueue()


class _Line:
    """What is kept of one lease while it lives."""

    def __init__(self, lease: str, connector: str, generation: int) -> None:
        self.lease = lease
        self.connector = connector
        self.generation = generation
        self.stream: _Stream | None = None
        self.waiting: deque[Signal] = deque(maxlen=SIGNALS_WAITING_MAX)
        self.assigned: Signal | None = None
        """The last split given; said again if a reconnected worker still asks for one."""
        self.touched_s = time.monotonic()


class ControlServer(lease_pb2_grpc.LeaseServiceServicer):
    """Serves leases.

    Args:
        post: Takes events; must not block.
        positions: Answers a source's question: (connector, partitions) -> one position each. May read a store.
        may_speak: Raises WherryError when another coordinator leads, or may lead: no lease is confirmed then.
        figures: Takes what leases count.
        directory: For the Unix socket; made with mode 0700.
        tcp_host: Serve TCP instead, told to workers by this name; None for local masters.
        tcp_bind: The address to listen on for that; empty means the one of `tcp_host`.
    """

    def __init__(
        self,
        post: Callable[[ev.Event], None],
        positions: Callable[[str, Sequence[str]], Sequence[Position]],
        figures: Figures,
        directory: Path,
        *,
        tcp_host: str | None = None,
        tcp_bind: str = "",
        may_speak: Callable[[], None] = lambda: None,
    ) -> None:
        self.token = secrets.token_urlsafe(32)
        self.endpoints: tuple[str, ...] = ()
        self.certificate = b""
        """What the TCP endpoint proves itself with, as PEM."""
        self._post = post
        self._positions = positions
        self._may_speak = may_speak
        self._figures = figures
        self._directory = directory
        self._tcp_host = tcp_host
        self._tcp_bind = tcp_bind or tcp_host
        self._lock = threading.Lock()
        self._lines: dict[str, _Line] = {}
        self._requests: dict[int, tuple[_Line, Future[lease_pb2.OpenLeaseResponse]]] = {}
        self._request_number = 0
        self._server: grpc.Server | None = None

    def start(self) -> None:
        """Listen. Afterwards `endpoints` tells where.

        Raises:
            ConfigError: The folder's path is too long for a socket.
        """
        path = self._directory / "control.sock"
        longest = self._directory / _LONGEST_SOCKET
        if len(os.fsencode(longest)) > SOCKET_PATH_BYTES_MAX:
            raise ConfigError(
                f"{longest} is longer than the {SOCKET_PATH_BYTES_MAX} bytes that the path of a socket may have: set "
                "TMPDIR to a shorter folder."
            )
        self._directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        path.unlink(missing_ok=True)  # left by a coordinator that was killed
        server = grpc.server(ThreadPoolExecutor(STREAMS_MAX, thread_name_prefix="control"), options=_OPTIONS)
        lease_pb2_grpc.add_LeaseServiceServicer_to_server(self, server)  # type: ignore[no-untyped-call]  # generated
        if self._tcp_host is None:
            server.add_insecure_port(f"unix://{path}")
            self.endpoints = (f"unix://{path}",)
        else:
            # One way for all executors, also for one that happens to be on this machine.
            own = certificate.for_host(self._tcp_host)
            port = _listen(server, self._tcp_bind or self._tcp_host, own)
            self.certificate = own.certificate
            self.endpoints = (f"{self._tcp_host}:{port}",)
        server.start()
        self._server = server

    def stop(self, grace_s: float = 0.5) -> None:
        """End all streams and stop listening."""
        with self._lock:
            streams = [line.stream for line in self._lines.values() if line.stream is not None]
        for stream in streams:
            stream.out.put(None)
        if self._server is not None:
            self._server.stop(grace_s).wait(grace_s + 1.0)

    # ---- for the runner: answers and signals ---------------------------------------------------------------------

    def waits(self, request: int) -> bool:
        """Whether somebody still waits for the answer to an OpenLease."""
        return request in self._requests

    def grant(self, request: int, response: lease_pb2.OpenLeaseResponse) -> None:
        """Answer an OpenLease.

        Signals of a split or a commit that are still waiting were meant for an earlier attempt. This one goes on from
        what the answer says: it would read that split a second time, and take its own reports for committed.
        """
        asked = self._requests.pop(request, None)
        if asked is None:
            return
        line, answer = asked
        with self._lock:
            line.assigned = None
            kept = [signal for signal in line.waiting if signal.WhichOneof("message") not in ("assign", "committed")]
            line.waiting.clear()
            line.waiting.extend(kept)
        answer.set_result(response)

    def refuse(self, request: int, message: str, code: grpc.StatusCode = grpc.StatusCode.ABORTED) -> None:
        """Answer an OpenLease with a status; ABORTED means fenced."""
        asked = self._requests.pop(request, None)
        if asked is not None:
            asked[1].set_exception(_RefusedError(code, message))

    def committed(self, lease: str, seq: int) -> None:
        """A report's positions are stored."""
        self._signal(lease, Signal(committed=lease_pb2.ReportCommitted(seq=seq)))

    def drain(self, lease: str, deadline_ms: int) -> None:
        """Ask a lease to come to an end."""
        self._signal(lease, Signal(drain=common_pb2.Drain(deadline_ms=deadline_ms)))

    def assign(self, lease: str, work: ev.TaskWork | None, positions: Sequence[Position]) -> None:
        """Give a lease its next split, or the news that there is none."""
        assign = lease_pb2.AssignWork(positions=to_proto.positions(positions))
        if work is not None and work.work is not None:
            assign.work.CopyFrom(to_proto.work(work.work))
        signal = Signal(assign=assign)
        with self._lock:
            line = self._lines.get(lease)
            if line is not None:
                line.assigned = signal
        self._signal(lease, signal)

    def fence(self, lease: str, generation: int, below_attempt: int | None = None) -> None:
        """Tell a lease, or an attempt of it older than one, to stop at once. It is forgotten if it isn't the newest."""
        signal = Signal(fence=lease_pb2.FenceLease(generation=generation))
        with self._lock:
            line = self._lines.get(lease)
            stream = None if line is None else line.stream
            if below_attempt is None:
                self._lines.pop(lease, None)
            elif stream is not None and line is not None and stream.attempt < below_attempt:
                line.stream = None
            else:
                return
        if stream is not None:
            stream.out.put(signal)
            stream.out.put(None)

    def _signal(self, lease: str, signal: Signal) -> None:
        with self._lock:
            line = self._lines.get(lease)
            if line is None:
                return
            if line.stream is None:
                line.waiting.append(signal)
                return
            line.stream.out.put(signal)

    # ---- LeaseService --------------------------------------------------------------------------------------------

    def OpenLease(  # noqa: N802 - the name in the proto
        self, request: lease_pb2.OpenLeaseRequest, context: grpc.ServicerContext
    ) -> lease_pb2.OpenLeaseResponse:
        """Ask the machine, and wait for its answer."""
        self._check_token(request.token, context)
        connector = _connector_of(request.lease_id)
        answer: Future[lease_pb2.OpenLeaseResponse] = Future()
        with self._lock:
            self._request_number += 1
            number = self._request_number
            line = self._lines.get(request.lease_id)
            if line is None:
                self._forget_old_lines()
                line = self._lines[request.lease_id] = _Line(request.lease_id, connector, request.generation)
            line.touched_s = time.monotonic()
            self._requests[number] = line, answer
        worker = f"{request.worker.host}:{request.worker.pid}"
        self._post(
            ev.LeaseOpening(
                connector,
                request.lease_id,
                request.generation,
                request.attempt,
                number,
                worker,
                request.worker.executor,
            )
        )
        try:
            response = answer.result(OPEN_TIMEOUT_S)
        except _RefusedError as refused:
            with self._lock:
                if line.stream is None:
                    self._lines.pop(request.lease_id, None)
            context.abort(refused.code, refused.message)
        except FutureTimeoutError:
            self._requests.pop(number, None)
            context.abort(grpc.StatusCode.UNAVAILABLE, "The coordinator is busy; ask again.")
        self._figures.opened(request.lease_id, connector, response.task, request.generation, worker)
        return response

    def Progress(  # noqa: N802 - the name in the proto
        self, request_iterator: Iterator[lease_pb2.ProgressRequest], context: grpc.ServicerContext
    ) -> Iterator[Signal]:
        """Take reports in, give signals out, until the worker closes or is fenced."""
        first = next(request_iterator, None)
        if first is None or first.WhichOneof("message") != "open":
            context.abort(grpc.StatusCode.FAILED_PRECONDITION, "Progress begins with an open message.")
            return
        self._check_token(first.open.token, context)
        stream = _Stream(first.open.attempt)
        line = self._attach(first.open, stream)
        if line is None:
            yield Signal(fence=lease_pb2.FenceLease(generation=first.open.generation))
            return
        reader = threading.Thread(
            target=self._read, args=(line, stream, request_iterator), name=f"progress-{line.lease}", daemon=True
        )
        reader.start()
        while context.is_active():
            try:
                signal = stream.out.get(timeout=HEARTBEAT_S)
            except queue.Empty:
                signal = Signal(heartbeat=common_pb2.Heartbeat(time_ms=int(time.time() * 1000)))
            if signal is None:
                return
            yield signal

    def _check_token(self, token: str, context: grpc.ServicerContext) -> None:
        if not hmac.compare_digest(token.encode(), self.token.encode()):
            context.abort(grpc.StatusCode.PERMISSION_DENIED, "The token is not this coordinator's.")

    def _attach(self, message: lease_pb2.ProgressOpen, stream: _Stream) -> _Line | None:
        """Make a stream the one of its lease; None if the lease is unknown or a newer attempt has it."""
        with self._lock:
            line = self._lines.get(message.lease_id)
            if line is None or line.generation != message.generation:
                return None
            old, line.touched_s = line.stream, time.monotonic()
            if old is not None and old.attempt > stream.attempt:
                return None
            line.stream = stream
            while line.waiting:
                stream.out.put(line.waiting.popleft())
        if old is not None:
            old.out.put(None)
        return line

    def _read(self, line: _Line, stream: _Stream, requests: Iterator[lease_pb2.ProgressRequest]) -> None:
        try:
            for request in requests:
                line.touched_s = time.monotonic()
                self._take(line, stream, request)
        except grpc.RpcError:
            pass  # the worker is gone or reconnects; Spark, a new stream or a time-out tells which
        except Exception as error:
            # gRPC raises a plain Exception for a stream that has ended under the iterator.
            log.debug("Progress of lease %s ended: %r", line.lease, error)
        finally:
            with self._lock:
                if line.stream is stream:
                    line.stream = None
                    line.waiting.extend(_unsaid(stream))
            # NB: last, or it would be taken for unsaid: the stream would go on, with nobody to hear its worker.
            stream.out.put(None)

    def _take(self, line: _Line, stream: _Stream, request: lease_pb2.ProgressRequest) -> None:
        match request.WhichOneof("message"):
            case "report":
                report = request.report
                stream.reports += 1
                if stream.reports == 1:
                    _assign_again(line, stream, report)
                self._figures.reported(line.lease, report)
                self._post(
                    ev.LeaseReported(
                        line.connector,
                        line.lease,
                        stream.attempt,
                        report.seq,
                        from_proto.positions(report.positions),
                        tuple(report.tokens),
                        tuple(report.splits_done),
                        report.want_split,
                        report.trouble,
                        report.phase != lease_pb2.LEASE_PHASE_STARTING,
                    )
                )
            case "ended":
                self._figures.ended(line.lease)
                self._post(_ended(line, stream, request.ended))
            case "query":
                asked = list(request.query.partitions_json)
                found: Sequence[Position] = ()
                if asked:
                    found = self._positions(line.connector, asked)
                else:
                    # It asks whether the lease is still in force; this stream is, or it were closed.
                    self._may_speak()
                answer = lease_pb2.PositionAnswer(id=request.query.id, positions=to_proto.positions(found))
                stream.out.put(Signal(answer=answer))
            case _:
                log.warning("Lease %s sent a message that makes no sense now", line.lease)

    def _forget_old_lines(self) -> None:
        """Lines of leases that were lost without a word are dropped by age, so that they never add up."""
        long_ago = time.monotonic() - LINE_KEPT_S
        if len(self._lines) < SIGNALS_WAITING_MAX:
            return
        for lease in [k for k, line in self._lines.items() if line.stream is None and line.touched_s < long_ago]:
            del self._lines[lease]
        while len(self._lines) >= LINES_MAX:
            del self._lines[next(iter(self._lines))]


def _listen(server: grpc.Server, host: str, own: certificate.Certificate) -> int:
    credentials = grpc.ssl_server_credentials([(own.key, own.certificate)])
    try:
        port = int(server.add_secure_port(f"{host}:0", credentials))
    except RuntimeError:
        port = 0
    if not port:
        raise ConfigError(
            f"Workers are to reach this coordinator at {host}, but that is no address of this machine: set "
            "wherry.spark.driver.host to a name or address by which Spark's machines reach it, and "
            "wherry.spark.driver.bindAddress to the address to listen on where that is another.",
            key="wherry.spark.driver.host",
        )
    return port


class _RefusedError(Exception):
    def __init__(self, code: grpc.StatusCode, message: str) -> None:
        super().__init__(message)
        self.code = code
        self.message = message


def _assign_again(line: _Line, stream: _Stream, report: lease_pb2.LeaseReport) -> None:
    """A new stream that begins by asking for a split never got the one that was on its way when the old one broke."""
    if line.assigned is None or not report.want_split or any(s.assign == line.assigned.assign for s in line.waiting):
        return
    if line.assigned.assign.work.id not in report.splits_done:
        stream.out.put(line.assigned)


def _unsaid(stream: _Stream) -> Iterator[Signal]:
    """Signals that a broken stream took with it, but for the assignment, which is asked for again."""
    while not stream.out.empty():
        signal = stream.out.get_nowait()
        if signal is not None and signal.WhichOneof("message") in ("committed", "drain", "pause"):
            yield signal


def _connector_of(lease: str) -> str:
    """Lease ids are connector-task-generation-number; a connector's name may hold dashes."""
    return lease.rsplit("-", 3)[0]


def _ended(line: _Line, stream: _Stream, ended: lease_pb2.LeaseEnded) -> ev.LeaseEnded:
    reason = _REASONS.get(ended.reason, ev.EndReason.FAILED)
    failure = None
    if reason is ev.EndReason.FAILED:
        error_class = from_proto.known(ErrorClass, ended.error_class, ErrorClass.BUG)
        failure = ev.Failure(error_class, ended.message or "The lease failed without saying why.", ended.trace)
    return ev.LeaseEnded(line.connector, line.lease, stream.attempt, reason, failure)
