"""Brings one sidecar up: process, socket, health, Hello, Configure.

Every step has the caller's deadline and looks whether the process still lives, so that a sidecar which dies at once is
told at once, with what it printed last. A failure leaves no process behind.
"""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import grpc
from grpc_health.v1 import health_pb2, health_pb2_grpc

from wherry.connector.v1 import common_pb2, plugin_pb2, plugin_pb2_grpc
from wherry.contract import limits, rpc
from wherry.contract.errors import KILLED, STOPPED, ConfigError, ConnectorBugError, TransientError
from wherry.contract.manifest import Manifest
from wherry.control.v1 import lease_pb2
from wherry.worker.host import rundir
from wherry.worker.host.environment import Runtime
from wherry.worker.host.parents import Starter
from wherry.worker.host.process import Command, Exit, SidecarProcess, with_tail
from wherry.worker.host.remote import Relay, open_relay

POLL_FIRST_S: Final = 0.003
POLL_MAX_S: Final = 0.05
HEALTH_TIMEOUT_S: Final = 2.0
# A sidecar that a user comes back to for lack of an answer has so long to give one.
ANSWER_TIMEOUT_S: Final = 5.0
# A call that fails because the process is dying comes a little before the news of its death; on a busy machine, more.
DEATH_NEWS_WAIT_S: Final = 3.0
UNIX_PREFIX: Final = "unix://"

# What a sidecar keeps of the host's environment: where programs and certificates are, how to write texts, how to get
# through a proxy, where traces go. Nothing else, so that no secret of the engine leaks into a plugin.
_KEPT: Final = frozenset(
    {"PATH", "HOME", "USER", "LANG", "LC_ALL", "LC_CTYPE", "TZ", "TMPDIR"}
    | {"SSL_CERT_FILE", "SSL_CERT_DIR", "REQUESTS_CA_BUNDLE"}
    | {"HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY", "http_proxy", "https_proxy", "no_proxy"}
)
_KEPT_PREFIX: Final = "OTEL_"


@dataclass(frozen=True, slots=True, kw_only=True)
class Instance:
    """A sidecar that has said Hello.

    Attributes:
        what: Its description for messages, such as "sidecar filestream of connector lines".
        instance_id: Its instance id.
        endpoint: Where it listens.
        channel: The host's channel to it.
        message_bytes_max: Largest gRPC message it takes.
        process: Its process; None for attached and remote ones.
        socket_path: Its socket, to be removed when it has ended; None for attached and remote ones.
        attached_pid: Process at the other end of an attached socket; 0 for all others.
        relay: What reaches a remote one; None for all others.
    """

    what: str
    instance_id: str
    endpoint: str
    channel: Any
    message_bytes_max: int
    process: SidecarProcess | None = None
    socket_path: Path | None = None
    attached_pid: int = 0
    relay: Relay | None = None

    @property
    def pid(self) -> int:
        """Its process id, 0 for attached and remote ones."""
        return self.process.pid if self.process else 0


@dataclass(frozen=True, slots=True)
class Deadline:
    """A moment until which a step may take, on the monotonic clock."""

    at_s: float

    @classmethod
    def after(cls, seconds: float) -> Deadline:
        """Return the moment so many seconds from now."""
        return cls(time.monotonic() + seconds)

    @property
    def left_s(self) -> float:
        """Seconds left, never below a millisecond, which is how a timeout says "none"."""
        return max(0.001, self.at_s - time.monotonic())

    @property
    def is_over(self) -> bool:
        """Whether the time is up."""
        return time.monotonic() >= self.at_s


def launch(
    starter: Starter,
    manifest: Manifest,
    runtime: Runtime,
    directory: Path,
    *,
    what: str,
    instance_id: str,
    deadline: Deadline,
    on_line: Callable[[SidecarProcess, str], None],
    on_exit: Callable[[SidecarProcess, Exit], None],
    on_started: Callable[[SidecarProcess], None],
) -> Instance:
    """Start a plugin's process and wait until it has said Hello.

    Args:
        starter: What starts its process.
        manifest: The plugin.
        runtime: How to run it.
        directory: Where sockets are.
        what: The sidecar, for messages.
        instance_id: What it is told to answer in Hello.
        deadline: When to give up.
        on_line: Called with each line it prints.
        on_exit: Called when it has ended.
        on_started: Called with the process before anything is asked of it.

    Raises:
        TransientError: It was not ready in time.
        ConnectorBugError: It ended, or broke the contract.
    """
    path = directory / f"{instance_id[:12]}.sock"
    rundir.check_socket_path(path)
    endpoint = f"{UNIX_PREFIX}{path}"
    environment = sidecar_environment(os.environ, runtime, endpoint, instance_id)
    process = starter.start(_command(manifest, runtime, environment), on_line=on_line, on_exit=on_exit)
    on_started(process)
    channel = None
    try:
        _wait_for_socket(path, process, what, deadline)
        channel = rpc.channel(endpoint)
        _wait_healthy(channel, process, what, deadline)
        message_bytes_max = _hello(channel, manifest, instance_id, process, what, deadline)
    except BaseException:
        if channel is not None:
            channel.close()
        process.signal(signal.SIGKILL, "it was not ready in time")
        process.ended.wait(rundir.CONNECT_TIMEOUT_S)
        path.unlink(missing_ok=True)
        raise
    return Instance(
        what=what,
        instance_id=instance_id,
        endpoint=endpoint,
        channel=channel,
        message_bytes_max=message_bytes_max,
        process=process,
        socket_path=path,
    )


def _command(manifest: Manifest, runtime: Runtime, environment: Mapping[str, str]) -> Command:
    return Command(
        argv=runtime.argv,
        environment=environment,
        directory=manifest.directory,
        memory_bytes_max=manifest.limits.memory_bytes or 0,
        open_files_max=manifest.limits.open_files or 0,
        cpus_max=manifest.limits.cpu or 0.0,
    )


def attach(manifest: Manifest, directory: Path, *, what: str, instance_id: str, deadline: Deadline) -> Instance:
    """Connect to a sidecar that somebody else has started, here or elsewhere.

    Raises:
        TransientError: Nobody listens there yet.
        AuthError: Somebody else's process does.
        ConnectorBugError: It broke the contract.
    """
    relay, attached_pid = None, 0
    if manifest.attach is not None:
        path = Path(manifest.attach)
        peer = rundir.peer_of(path)
        if peer is None:
            raise TransientError(f"{what} is to be attached at {path}, but nobody listens there; start it first")
        rundir.check_peer(peer, session_id=None, what=what)
        endpoint, attached_pid = f"{UNIX_PREFIX}{path}", peer.pid
    else:
        assert manifest.remote is not None
        relay = open_relay(manifest, directory, instance_id[:12])
        endpoint = f"{UNIX_PREFIX}{relay.path}" if relay else manifest.remote
    channel = rpc.channel(endpoint)
    try:
        _wait_healthy(channel, None, what, deadline)
        message_bytes_max = _hello(channel, manifest, "", None, what, deadline)
    except BaseException:
        channel.close()
        if relay is not None:
            relay.close()
        raise
    return Instance(
        what=what,
        instance_id=instance_id,
        endpoint=endpoint,
        channel=channel,
        message_bytes_max=message_bytes_max,
        attached_pid=attached_pid,
        relay=relay,
    )


def configure(instance: Instance, spec: lease_pb2.SidecarSpec, deadline: Deadline) -> None:
    """Bind a sidecar to its connector.

    Raises:
        WherryError: What the sidecar answered.
    """
    request = plugin_pb2.ConfigureRequest(
        connector=spec.connector,
        class_name=spec.class_name,
        generation=spec.generation,
        config=spec.config,
        secrets=spec.secrets,
    )
    stub = plugin_pb2_grpc.PluginServiceStub(instance.channel)  # type: ignore[no-untyped-call]  # generated
    _call(stub.Configure, request, instance.process, f"{instance.what} to be configured", deadline)


def require_alive(process: SidecarProcess | None, what: str) -> None:
    """Raise an error when a process has ended, of a class that tells whose fault it was."""
    if process is None or process.exit is None:
        return
    told = with_tail(f"{what} {process.exit.message}", process.tail())
    if process.told_to_end:
        raise TransientError(told, reason=STOPPED)
    if process.was_killed:
        # By an operator, or by the kernel for its memory: no fault that the next one must have too.
        raise TransientError(told, reason=KILLED)
    raise ConnectorBugError(told)


def is_served(instance: Instance) -> bool:
    """Tell whether a sidecar of ours listens: news of its end may be late. Of others their users find out."""
    return instance.process is None or rpc.is_served(instance.endpoint)


def answers(instance: Instance) -> bool | None:
    """Tell whether a sidecar still answers; None when it does not say so in time, as one that is stopped or stuck."""
    stub = health_pb2_grpc.HealthStub(instance.channel)
    try:
        stub.Check(health_pb2.HealthCheckRequest(), timeout=ANSWER_TIMEOUT_S)
    except grpc.RpcError as error:
        return None if error.code() == grpc.StatusCode.DEADLINE_EXCEEDED else False
    except ValueError:
        # The channel was closed because the process has ended.
        return False
    return True


def sidecar_environment(
    inherited: Mapping[str, str], runtime: Runtime, endpoint: str, instance_id: str
) -> dict[str, str]:
    """Return the whole environment of a sidecar's process."""
    environment = {name: value for name, value in inherited.items() if name in _KEPT or name.startswith(_KEPT_PREFIX)}
    environment["PATH"] = os.pathsep.join([*runtime.path, environment.get("PATH", os.defpath)])
    # What it prints is a log: a line should be seen when it is printed.
    environment["PYTHONUNBUFFERED"] = "1"
    environment.update(runtime.environment)
    environment["WHERRY_ENDPOINT"] = endpoint
    environment["WHERRY_INSTANCE_ID"] = instance_id
    return environment


def _wait_for_socket(path: Path, process: SidecarProcess, what: str, deadline: Deadline) -> None:
    pause_s = POLL_FIRST_S
    while True:
        peer = rundir.peer_of(path) if path.exists() else None
        if peer is not None:
            rundir.check_peer(peer, session_id=process.pid, what=what)
            return
        require_alive(process, what)
        if deadline.is_over:
            raise TransientError(with_tail(f"{what} did not begin to listen in time", process.tail()))
        process.ended.wait(min(pause_s, deadline.left_s))
        pause_s = min(POLL_MAX_S, pause_s * 1.5)


def _wait_healthy(channel: Any, process: SidecarProcess | None, what: str, deadline: Deadline) -> None:
    stub = health_pb2_grpc.HealthStub(channel)
    pause_s = POLL_FIRST_S
    state = "gave no answer"
    while True:
        try:
            timeout_s = min(HEALTH_TIMEOUT_S, deadline.left_s)
            answer = stub.Check(health_pb2.HealthCheckRequest(), timeout=timeout_s)
            if answer.status == health_pb2.HealthCheckResponse.SERVING:
                return
            state = f"said {health_pb2.HealthCheckResponse.ServingStatus.Name(answer.status)}"
        except grpc.RpcError as error:
            if error.code() == grpc.StatusCode.UNIMPLEMENTED:
                raise ConnectorBugError(f"{what} does not serve grpc.health.v1.Health, as every sidecar must") from None
        require_alive(process, what)
        if deadline.is_over:
            tail = process.tail() if process else []
            raise TransientError(with_tail(f"{what} was not healthy in time: it {state}", tail))
        time.sleep(min(pause_s, deadline.left_s))
        pause_s = min(POLL_MAX_S, pause_s * 1.5)


def _hello(
    channel: Any,
    manifest: Manifest,
    instance_id: str,
    process: SidecarProcess | None,
    what: str,
    deadline: Deadline,
) -> int:
    """Say Hello and return the largest message that both sides take."""
    request = plugin_pb2.HelloRequest(
        engine_version="0.1.0",
        revision_min=limits.REVISION_MIN,
        revision_max=limits.REVISION_MAX,
        limits=common_pb2.Limits(
            message_bytes_max=limits.MESSAGE_BYTES_MAX,
            frame_bytes_target=limits.FRAME_BYTES_TARGET,
            row_bytes_max=limits.ROW_BYTES_MAX,
            frames_unacked_max=limits.FRAMES_UNACKED_MAX,
            bytes_unacked_max=limits.BYTES_UNACKED_MAX,
        ),
        instance_id=instance_id,
    )
    stub = plugin_pb2_grpc.PluginServiceStub(channel)  # type: ignore[no-untyped-call]  # generated
    answer: plugin_pb2.HelloResponse = _call(stub.Hello, request, process, f"Hello of {what}", deadline)
    if instance_id and answer.instance_id != instance_id:
        raise ConnectorBugError(
            f"{what} answered Hello with instance id {answer.instance_id!r} instead of the {instance_id!r} it was "
            "given in WHERRY_INSTANCE_ID"
        )
    if not limits.REVISION_MIN <= answer.revision <= limits.REVISION_MAX:
        raise ConfigError(
            f"{what} speaks revision {answer.revision} of the contract, and this engine speaks "
            f"{limits.REVISION_MIN} to {limits.REVISION_MAX}; install a matching version of plugin {manifest.name}"
        )
    return min(answer.limits.message_bytes_max or limits.MESSAGE_BYTES_MAX, limits.MESSAGE_BYTES_MAX)


def _call(method: Any, request: Any, process: SidecarProcess | None, what: str, deadline: Deadline) -> Any:
    """Make one call; say what became of the process rather than what became of the call."""
    try:
        return method(request, timeout=deadline.left_s)
    except grpc.RpcError as error:
        if process is not None and error.code() == grpc.StatusCode.UNAVAILABLE and not rpc.is_told(error):
            process.ended.wait(DEATH_NEWS_WAIT_S)
        require_alive(process, f"while waiting for {what}, its process")
        if error.code() == grpc.StatusCode.DEADLINE_EXCEEDED:
            tail = process.tail() if process else []
            raise TransientError(with_tail(f"waited in vain for {what}", tail)) from None
        raise rpc.from_rpc_error(error) from None
