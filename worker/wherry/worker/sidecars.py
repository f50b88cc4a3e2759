"""A lease's sidecars: acquired from the machine's host, and given back when the lease ends.

Where no host is given, which is so on machines other than the coordinator's, the first worker of an executor starts
one, and it ends with the executor.
"""

from __future__ import annotations

import fcntl
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Final

import grpc

from wherry.contract import rpc, trace
from wherry.contract.description import Role
from wherry.contract.errors import TransientError
from wherry.control.v1 import host_pb2, host_pb2_grpc, lease_pb2
from wherry.worker import executor

ACQUIRE_TIMEOUT_S: Final = 30.0
# The host answers by itself within the time-out it is given; this much later it is taken for dead.
ANSWER_SLACK_S: Final = 2.0
RELEASE_TIMEOUT_S: Final = 1.0
WAIT_STEP_S: Final = 0.05
HOST_START_TIMEOUT_S: Final = 10.0


class Sidecars:
    """The sidecars that one lease holds. Used by one thread."""

    def __init__(self, host_endpoint: str, holder: str) -> None:
        self._endpoint = host_endpoint
        self._holder = holder
        self._channel: Any = None
        # By role, and the alias of a transformation.
        self._held: dict[tuple[int, str], host_pb2.AcquireSidecarResponse] = {}

    @property
    def pids(self) -> list[int]:
        """Process ids of the sidecars held."""
        return [held.pid for held in self._held.values()]

    @property
    def transforms(self) -> dict[str, str]:
        """Endpoints of the transformations' sidecars, by alias."""
        return {alias: held.endpoint for (_, alias), held in self._held.items() if alias}

    def acquire(self, specs: Sequence[lease_pb2.SidecarSpec], *, interrupted: Callable[[], bool]) -> dict[Role, str]:
        """Return the endpoints of the sidecars, ready and configured; those of transformations are in `transforms`.

        Args:
            specs: Which ones.
            interrupted: Asked while waiting; true ends the wait.

        Raises:
            InterruptedError: The wait was ended.
            WherryError: A sidecar can't be had; the class says what is to be done.
        """
        endpoints: dict[Role, str] = {}
        for spec in specs:
            with trace.span("sidecar.acquire", attributes={"wherry.plugin": spec.plugin}):
                held = self._acquire(spec, interrupted)
            self._held[spec.role, spec.alias] = held
            if not spec.alias:
                endpoints[Role(spec.role)] = held.endpoint
        return endpoints

    def release(self) -> None:
        """Give back what is held. The host notices by itself when this fails, because our process ends."""
        for held in self._held.values():
            request = host_pb2.ReleaseSidecarRequest(instance_id=held.instance_id, holder=self._holder)
            try:
                self._stub().ReleaseSidecar(request, timeout=RELEASE_TIMEOUT_S)
            except grpc.RpcError:
                break
        self._held.clear()
        if self._channel is not None:
            self._channel.close()
            self._channel = None

    def _acquire(self, spec: lease_pb2.SidecarSpec, interrupted: Callable[[], bool]) -> host_pb2.AcquireSidecarResponse:
        request = host_pb2.AcquireSidecarRequest(
            sidecar=spec,
            holder=self._holder,
            holder_pid=os.getpid(),
            timeout_ms=int(ACQUIRE_TIMEOUT_S * 1000),
        )
        call = self._stub().AcquireSidecar.future(
            request, timeout=ACQUIRE_TIMEOUT_S + ANSWER_SLACK_S, metadata=trace.metadata(), wait_for_ready=True
        )
        while True:
            try:
                answer: host_pb2.AcquireSidecarResponse = call.result(timeout=WAIT_STEP_S)
                return answer
            except grpc.FutureTimeoutError:
                if interrupted():
                    call.cancel()
                    raise InterruptedError from None
            except grpc.RpcError as error:
                raise rpc.from_rpc_error(error, "the sidecar host") from None

    def _stub(self) -> host_pb2_grpc.HostServiceStub:
        if self._channel is None:
            self._channel = rpc.channel(self._endpoint or own_host_endpoint())
        return host_pb2_grpc.HostServiceStub(self._channel)  # type: ignore[no-untyped-call]  # generated


def own_host_endpoint() -> str:
    """Return the endpoint of this executor's sidecar host, starting it if it is not there.

    Raises:
        TransientError: It did not start in time.
    """
    # The host belongs to the executor and ends with it.
    executor_pid = executor.pid()
    folder = Path(os.environ.get("XDG_RUNTIME_DIR") or tempfile.gettempdir()) / f"wherry-{os.geteuid()}"
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    socket_path = folder / f"host-{executor_pid}.sock"
    if not rpc.is_served(str(socket_path)):
        with (folder / "host.lock").open("a") as lock:
            # One byte for each executor: the start of another one's host, which takes seconds, holds up nobody here.
            fcntl.lockf(lock, fcntl.LOCK_EX, 1, executor_pid)
            if not rpc.is_served(str(socket_path)):
                _start_host(socket_path, executor_pid)
    return f"unix://{socket_path}"


def _start_host(socket_path: Path, executor_pid: int) -> None:
    argv = [sys.executable, "-m", "wherry.worker.host", "--socket", str(socket_path), "--parent-pid", str(executor_pid)]
    path = os.pathsep.join(entry for entry in sys.path if entry)
    process = subprocess.Popen(
        argv, stdin=subprocess.DEVNULL, start_new_session=True, env={**os.environ, "PYTHONPATH": path}
    )
    deadline = time.monotonic() + HOST_START_TIMEOUT_S
    while not rpc.is_served(str(socket_path)):
        if process.poll() is not None:
            raise TransientError(f"the sidecar host of this executor ended with code {process.returncode}")
        if time.monotonic() > deadline:
            process.kill()
            raise TransientError(f"the sidecar host of this executor did not start within {HOST_START_TIMEOUT_S:g} s")
        time.sleep(WAIT_STEP_S)
