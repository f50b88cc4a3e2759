"""The sidecar host of this machine: starts it, keeps it running, and asks it for sidecars.

The host is a child process of its own, so that nothing a sidecar does can stop the coordinator. It ends with this
process, and takes its sidecars along. What sidecars print arrives here as log records with the connector's name.
"""

from __future__ import annotations

import contextlib
import logging
import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, TypeVar

import grpc

from wherry.contract import rpc
from wherry.contract.errors import TransientError, WherryError
from wherry.control.v1 import host_pb2, host_pb2_grpc, lease_pb2

log = logging.getLogger(__name__)
sidecar_log = logging.getLogger("wherry.sidecar")

START_TIMEOUT_S: Final = 15.0
ACQUIRE_TIMEOUT_S: Final = 60.0  # the first start of a plugin may have to make its environment
CALL_TIMEOUT_S: Final = 10.0
STOP_TIMEOUT_S: Final = 2.0
RESTART_WAIT_S: Final = 0.5
RESTART_WAIT_S_MAX: Final = 10.0
END_NEWS_S: Final = 2.0
"""How long the host may be waited for to be known as ended, once it can't be reached."""
END_POLL_S: Final = 0.02
ONCE_MORE_S_MIN: Final = 0.5
"""With less than this left of its time, a question is not asked another process."""
GONE: Final = frozenset({"UNAVAILABLE", "CANCELLED", "KILLED", "STOPPED"})
"""Reasons of errors that tell of a process that has ended, and nothing about what it was asked."""
HOST_MODULE: Final = "wherry.worker.host"


T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Acquired:
    """A sidecar that may be called."""

    endpoint: str
    instance_id: str
    pid: int = 0


class HostClient:
    """Starts the host and talks to it. Safe for use by several threads.

    Args:
        directory: For its socket; made with mode 0700.
        command: How to start the host; without the socket and the parent's id, which are added.
    """

    def __init__(
        self,
        directory: Path,
        *,
        command: tuple[str, ...] = (sys.executable, "-m", HOST_MODULE),
    ) -> None:
        self.socket = directory / "host.sock"
        self._directory = directory
        self._command = command
        self.exited: Callable[[str, str], None] = lambda connector, message: None
        """Told of a sidecar that ended unexpectedly: connector and one sentence."""
        self._lock = threading.Lock()
        self._process: subprocess.Popen[bytes] | None = None
        self._channel: grpc.Channel | None = None
        self._up = threading.Event()
        self._stopping = threading.Event()
        self._message = "The sidecar host is starting."

    @property
    def endpoint(self) -> str:
        """Where the host listens."""
        return f"unix://{self.socket}"

    def start(self) -> None:
        """Start the host in the background; calls wait for it."""
        self._directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        threading.Thread(target=self._keep, name="sidecar-host", daemon=True).start()

    def stop(self) -> None:
        """End the host, and with it all sidecars."""
        self._stopping.set()
        with self._lock:
            process, self._process = self._process, None
            channel, self._channel = self._channel, None
        if channel is not None:
            channel.close()
        if process is None or process.poll() is not None:
            return
        process.terminate()
        try:
            process.wait(STOP_TIMEOUT_S)
        except subprocess.TimeoutExpired:
            process.kill()
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(STOP_TIMEOUT_S)

    # ---- calls ---------------------------------------------------------------------------------------------------

    def acquire(self, sidecar: lease_pb2.SidecarSpec, holder: str, *, timeout_s: float = ACQUIRE_TIMEOUT_S) -> Acquired:
        """Start or find a connector's sidecar, configured.

        Raises:
            WherryError: It did not come up; the sentence says why.
        """
        request = host_pb2.AcquireSidecarRequest(
            sidecar=sidecar, holder=holder, holder_pid=os.getpid(), timeout_ms=int(timeout_s * 1000)
        )
        answer = self._call("AcquireSidecar", request, timeout_s + 2.0)
        return Acquired(answer.endpoint, answer.instance_id, answer.pid)

    def release(self, instance_id: str, holder: str) -> None:
        """Say that a sidecar is no longer used."""
        self._call(
            "ReleaseSidecar", host_pb2.ReleaseSidecarRequest(instance_id=instance_id, holder=holder), CALL_TIMEOUT_S
        )

    def stop_connector(self, connector: str, below_generation: int = 0, *, deadline_s: float = 5.0) -> int:
        """Stop a connector's sidecars of lower generations; 0 stops all. Returns how many there were."""
        request = host_pb2.StopConnectorRequest(
            connector=connector, below_generation=below_generation, deadline_ms=int(deadline_s * 1000)
        )
        return int(self._call("StopConnector", request, deadline_s + 5.0).stopped)

    def acquire_plugin(
        self,
        plugin: str,
        directory: str,
        holder: str,
        *,
        timeout_s: float = ACQUIRE_TIMEOUT_S,
        planning: bool = False,
    ) -> Acquired:
        """Start a sidecar that is not configured: for Describe and ValidateConfig, or to plan for several."""
        request = host_pb2.AcquirePluginRequest(
            plugin=plugin,
            plugin_directory=directory,
            holder=holder,
            timeout_ms=int(timeout_s * 1000),
            planning=planning,
        )
        answer = self._call("AcquirePlugin", request, timeout_s + 2.0)
        return Acquired(answer.endpoint, answer.instance_id)

    def sidecars(self, *, timeout_s: float = 2.0) -> list[host_pb2.SidecarStatus]:
        """What runs; empty while the host isn't there."""
        if not self._up.is_set():
            return []
        answer = self._call("ListSidecars", host_pb2.ListSidecarsRequest(), timeout_s)
        return list(answer.sidecars)

    def _call(self, name: str, request: Any, timeout_s: float) -> Any:
        """Ask the host; one that has just ended is asked once more when it has been started again."""
        deadline = time.monotonic() + timeout_s
        process = self._process
        try:
            return self._call_once(name, request, deadline)
        except TransientError as error:
            if error.reason not in GONE or not self._has_ended(process, deadline):
                raise
            log.info("The sidecar host is asked again, for it has ended meanwhile: %s", error.message)
        return self._call_once(name, request, deadline)

    def _call_once(self, name: str, request: Any, deadline: float) -> Any:
        left_s = max(deadline - time.monotonic(), 0.1)
        if not self._up.wait(min(left_s, START_TIMEOUT_S)):
            raise TransientError(self._message)
        with self._lock:
            channel = self._channel
        if channel is None:
            raise TransientError("The sidecar host has been stopped.")
        stub = host_pb2_grpc.HostServiceStub(channel)  # type: ignore[no-untyped-call]  # generated
        try:
            return getattr(stub, name)(request, timeout=max(deadline - time.monotonic(), 0.1), wait_for_ready=True)
        except grpc.RpcError as error:
            raise rpc.from_rpc_error(error, "the sidecar host") from error
        except ValueError as error:  # the channel was closed under the call
            reason = "" if self._stopping.is_set() else "CANCELLED"
            raise TransientError("The sidecar host has been stopped.", reason=reason) from error

    def _has_ended(self, process: subprocess.Popen[bytes] | None, deadline: float) -> bool:
        """Whether this host has ended, which is known to all soon after; not when we have stopped it ourselves."""
        until = min(time.monotonic() + END_NEWS_S, deadline)
        while process is not None and time.monotonic() < until and not self._stopping.is_set():
            if self._process is not process or (process.poll() is not None and not self._up.is_set()):
                return True
            self._stopping.wait(END_POLL_S)
        return False

    # ---- its life ------------------------------------------------------------------------------------------------

    def _keep(self) -> None:
        wait_s = RESTART_WAIT_S
        while not self._stopping.is_set():
            began = time.monotonic()
            try:
                process = self._spawn()
            except OSError as error:
                self._message = f"The sidecar host could not be started: {error}."
                log.error("%s", self._message)
            else:
                self._follow(process)
                if not self._stopping.is_set():
                    self._message = f"The sidecar host ended with code {process.returncode}; it is started again."
                    log.error("%s", self._message)
            self._up.clear()
            wait_s = RESTART_WAIT_S if time.monotonic() - began > 60 else min(wait_s * 2, RESTART_WAIT_S_MAX)
            self._stopping.wait(wait_s)

    def _spawn(self) -> subprocess.Popen[bytes]:
        # If we are killed, the host is the one who is left to remove our folder.
        command = [*self._command, "--socket", str(self.socket), "--parent-pid", str(os.getpid())]
        command += ["--remove", str(self._directory)]
        # Its own session: Ctrl-C in a terminal is for the coordinator, which drains first.
        process = subprocess.Popen(command, stdin=subprocess.DEVNULL, start_new_session=True)
        with self._lock:
            self._process = process
        return process

    def _follow(self, process: subprocess.Popen[bytes]) -> None:
        """Wait until the host answers, then read what its sidecars say until it ends."""
        channel = rpc.channel(self.endpoint)
        with self._lock:
            self._channel = channel
        stub = host_pb2_grpc.HostServiceStub(channel)  # type: ignore[no-untyped-call]  # generated
        while process.poll() is None and not self._stopping.is_set():
            try:
                if not self._up.is_set():
                    stub.ListSidecars(host_pb2.ListSidecarsRequest(), timeout=1.0)
                    self._up.set()
                for event in stub.WatchSidecars(host_pb2.WatchSidecarsRequest()):
                    self._take(event)
            except grpc.RpcError:
                self._stopping.wait(0.05)
            except ValueError:  # the channel was closed by stop
                break
        self._up.clear()  # first, so that whose call ends with the channel waits for the next host
        channel.close()
        if process.poll() is None and self._stopping.is_set():
            return
        process.wait()

    def _take(self, event: host_pb2.WatchSidecarsResponse) -> None:
        if event.WhichOneof("event") == "log_line":
            sidecar_log.info("%s", event.log_line, extra={"connector": event.connector, "pid": event.pid})
            return
        if not event.exit.expected:
            sidecar_log.warning(
                "The sidecar of %s ended: %s",
                event.connector or "a plugin",
                event.exit.message,
                extra={"connector": event.connector, "pid": event.pid},
            )
            self.exited(event.connector, event.exit.message)


def is_gone(error: WherryError) -> bool:
    """Whether an error tells that a process has ended, so that another one may well answer."""
    return error.reason in GONE


def once_more(
    ask: Callable[[float], T],
    give_up: Callable[[TransientError], bool],
    *,
    within_s: float,
    clock: Callable[[], float] = time.monotonic,
) -> T:
    """Ask a sidecar, and when it has ended meanwhile, ask another one: once, and within the same time.

    What is asked has to be harmless to repeat, as every unary call of the contract is.

    Args:
        ask: Has a sidecar, which is started if need be, and asks it; told how many seconds are left.
        give_up: Lets go of the sidecar that was asked; False when another one would say the same.
        within_s: Time for both.
        clock: Seconds, rising.

    Raises:
        WherryError: What the last one that was asked has said.
    """
    ends_s = clock() + within_s
    try:
        return ask(within_s)
    except TransientError as error:
        if not give_up(error):
            raise
        left_s = ends_s - clock()
        if left_s < ONCE_MORE_S_MIN:
            raise
        log.info("Another process is asked once more: %s", error.message)
    return ask(left_s)


def quietly_release(hosts: HostClient, acquired: Acquired, holder: str) -> None:
    """Release where it doesn't matter if the host is gone already."""
    try:
        hosts.release(acquired.instance_id, holder)
    except WherryError as error:
        log.debug("Release of %s: %s", acquired.instance_id, error)
