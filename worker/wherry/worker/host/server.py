"""Serves HostService: turns requests into calls of the supervisor, and errors into statuses."""

# ruff: noqa: N802 - the methods have the names of the service's calls
from __future__ import annotations

import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, Final

import grpc

from wherry.contract import rpc, trace
from wherry.contract.errors import ThrottledError, WherryError
from wherry.control.v1 import host_pb2, host_pb2_grpc
from wherry.worker.host import rundir
from wherry.worker.host.logs import EventHub, SidecarEvent
from wherry.worker.host.process import ProcessLoop
from wherry.worker.host.supervise import STOP_DEADLINE_S, Supervisor

# A start that hangs holds a thread until its deadline, so there are many; they are made when needed.
THREADS_MAX: Final = 256
STARTS_MAX: Final = 192
WATCHERS_MAX: Final = 16
DEFAULT_TIMEOUT_MS: Final = 30_000
WATCH_POLL_S: Final = 1.0
STOP_GRACE_S: Final = 0.5


class Host(host_pb2_grpc.HostServiceServicer):
    """The service."""

    def __init__(self, supervisor: Supervisor, hub: EventHub) -> None:
        self._supervisor = supervisor
        self._hub = hub
        self._starts = threading.BoundedSemaphore(STARTS_MAX)
        self._watchers = threading.BoundedSemaphore(WATCHERS_MAX)

    def AcquireSidecar(self, request: host_pb2.AcquireSidecarRequest, context: Any) -> host_pb2.AcquireSidecarResponse:
        """Start or find the sidecar of a connector."""
        with _answering(context), _counted(self._starts, STARTS_MAX, "sidecars are being started"):
            parent = trace.traceparent_in(context.invocation_metadata())
            with trace.span("host.acquire", parent=parent, attributes={"wherry.connector": request.sidecar.connector}):
                instance = self._supervisor.acquire(
                    request.sidecar,
                    holder=request.holder,
                    holder_pid=request.holder_pid,
                    timeout_s=(request.timeout_ms or DEFAULT_TIMEOUT_MS) / 1000,
                )
        return host_pb2.AcquireSidecarResponse(
            endpoint=instance.endpoint,
            pid=instance.pid,
            instance_id=instance.instance_id,
            message_bytes_max=instance.message_bytes_max,
        )

    def ReleaseSidecar(self, request: host_pb2.ReleaseSidecarRequest, context: Any) -> host_pb2.ReleaseSidecarResponse:
        """Note that a user has done."""
        with _answering(context):
            self._supervisor.release(request.instance_id, request.holder)
        return host_pb2.ReleaseSidecarResponse()

    def StopConnector(self, request: host_pb2.StopConnectorRequest, context: Any) -> host_pb2.StopConnectorResponse:
        """Stop a connector's sidecars."""
        with _answering(context):
            stopped = self._supervisor.stop_connector(
                request.connector,
                below_generation=request.below_generation,
                deadline_s=request.deadline_ms / 1000 or STOP_DEADLINE_S,
            )
        return host_pb2.StopConnectorResponse(stopped=stopped)

    def AcquirePlugin(self, request: host_pb2.AcquirePluginRequest, context: Any) -> host_pb2.AcquirePluginResponse:
        """Start a sidecar that is not configured."""
        with _answering(context), _counted(self._starts, STARTS_MAX, "sidecars are being started"):
            instance = self._supervisor.acquire_plugin(
                request.plugin,
                request.plugin_directory,
                holder=request.holder,
                timeout_s=(request.timeout_ms or DEFAULT_TIMEOUT_MS) / 1000,
                planning=request.planning,
            )
        return host_pb2.AcquirePluginResponse(endpoint=instance.endpoint, instance_id=instance.instance_id)

    def ListSidecars(self, request: host_pb2.ListSidecarsRequest, context: Any) -> host_pb2.ListSidecarsResponse:
        """List what runs."""
        del request
        with _answering(context):
            return host_pb2.ListSidecarsResponse(sidecars=self._supervisor.statuses())

    def WatchSidecars(
        self, request: host_pb2.WatchSidecarsRequest, context: Any
    ) -> Iterator[host_pb2.WatchSidecarsResponse]:
        """Stream log lines and exits until the caller goes away."""
        del request
        with _answering(context), _counted(self._watchers, WATCHERS_MAX, "watchers are connected"):
            subscription = self._hub.subscribe()
            # Headers now, so that the caller knows from when on it misses nothing.
            context.send_initial_metadata(())
            try:
                while context.is_active() and not subscription.closed:
                    for event in subscription.take(WATCH_POLL_S):
                        yield _response(event)
            finally:
                self._hub.unsubscribe(subscription)


class HostServer:
    """A host at its socket, with everything it owns."""

    def __init__(self, socket_path: Path) -> None:
        """Prepare the folders and begin to serve.

        Raises:
            ConfigError: The socket or its folder can't be used.
        """
        self._socket_path = socket_path
        rundir.check_socket_path(socket_path)
        rundir.make_private(socket_path.parent)
        rundir.claim(socket_path)
        # Sidecars' sockets are apart from the host's, whose folder may have other owners' sockets in it.
        self._directory = socket_path.with_suffix(".d")
        rundir.make_private(self._directory)
        rundir.remove_stale(self._directory)
        self._hub = EventHub()
        self.loop = ProcessLoop(self._directory, socket_path)
        self._supervisor = Supervisor(self.loop, self._directory, self._hub)
        self._server = grpc.server(
            ThreadPoolExecutor(THREADS_MAX, thread_name_prefix="host"),
            maximum_concurrent_rpcs=THREADS_MAX,
            options=rpc.server_options(),
        )
        service = Host(self._supervisor, self._hub)
        host_pb2_grpc.add_HostServiceServicer_to_server(service, self._server)  # type: ignore[no-untyped-call]  # generated
        self._server.add_insecure_port(f"unix://{socket_path}")
        self._server.start()

    def close(self) -> None:
        """Stop serving and end every sidecar; nothing is left behind."""
        self._supervisor.close()
        self._hub.close()
        self._server.stop(STOP_GRACE_S).wait(STOP_GRACE_S * 2)
        self.loop.close()
        rundir.remove(self._directory)
        self._socket_path.unlink(missing_ok=True)


class _answering:  # noqa: N801 - reads as a statement
    """Turns an error into the status of a call."""

    def __init__(self, context: Any) -> None:
        self._context = context

    def __enter__(self) -> None:
        return None

    def __exit__(self, kind: object, error: BaseException | None, traceback: object) -> None:
        if isinstance(error, WherryError):
            self._context.abort_with_status(rpc.status_of(error))


class _counted:  # noqa: N801 - reads as a statement
    """Refuses more than so many at once, so that other calls always find a thread."""

    def __init__(self, semaphore: threading.BoundedSemaphore, most: int, what: str) -> None:
        self._semaphore = semaphore
        self._message = f"{most} {what} at once, which is the most; try again later"

    def __enter__(self) -> None:
        if not self._semaphore.acquire(blocking=False):
            raise ThrottledError(self._message)

    def __exit__(self, *_: object) -> None:
        self._semaphore.release()


def _response(event: SidecarEvent) -> host_pb2.WatchSidecarsResponse:
    response = host_pb2.WatchSidecarsResponse(connector=event.connector, instance_id=event.instance_id, pid=event.pid)
    if event.line is not None:
        response.log_line = event.line
    else:
        response.exit.CopyFrom(
            host_pb2.SidecarExit(code=event.code or 0, message=event.message, expected=event.expected)
        )
    return response
