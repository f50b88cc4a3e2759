"""Runs a plugin as a sidecar process."""

from __future__ import annotations

import contextlib
import gc
import inspect
import io
import logging
import os
import re
import signal
import sys
import threading
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, Final

import grpc
from grpc_health.v1 import health, health_pb2, health_pb2_grpc

from wherry.contract import rpc, telemetry
from wherry.contract.limits import Limits
from wherry.contract.memory import give_memory_back, keep_pandas_out
from wherry.sdk._events import EventsHandler
from wherry.sdk._forking import fork_if_asked
from wherry.sdk._handlers import handlers
from wherry.sdk._sidecar import Sidecar
from wherry.sdk.plugin import Plugin

ENDPOINT: Final = "WHERRY_ENDPOINT"
INSTANCE_ID: Final = "WHERRY_INSTANCE_ID"
# Each stream and each unary call under way holds one thread.
CALLS_MAX: Final = 256
STOP_GRACE_S: Final = 3.0
_ORPHAN_POLL_S: Final = 1.0


class Server:
    """A running sidecar: the gRPC server over a plugin's classes.

    Args:
        classes: The plugin's classes.
        endpoint: `unix:///path` or `host:port`.
        name: Name of the plugin; by default that of the sidecar.yaml beside its code.
        version: Its version; likewise.
        instance_id: Id that the host gave to the process.
        limits: Sizes it can bear.
    """

    def __init__(
        self,
        classes: Sequence[type[Plugin[Any]]],
        endpoint: str,
        *,
        name: str = "",
        version: str = "",
        instance_id: str = "",
        limits: Limits | None = None,
    ) -> None:
        told_name, told_version = _manifest_of(classes)
        self.sidecar = Sidecar(
            classes,
            name=name or told_name,
            version=version or told_version,
            instance_id=instance_id,
            limits=limits,
        )
        self.endpoint = endpoint
        self._socket = Path(endpoint.removeprefix("unix:").removeprefix("//")) if endpoint.startswith("unix:") else None
        self._calls = ThreadPoolExecutor(CALLS_MAX, thread_name_prefix="call")
        self._server = grpc.server(
            self._calls,
            options=rpc.server_options(self.sidecar.limits.message_bytes_max),
            maximum_concurrent_rpcs=CALLS_MAX,
        )
        self._health = health.HealthServicer()
        health_pb2_grpc.add_HealthServicer_to_server(self._health, self._server)
        self._server.add_generic_rpc_handlers(tuple(handlers(self.sidecar)))

    def start(self) -> None:
        """Listens and says SERVING.

        Raises:
            OSError: The endpoint can't be listened on.
        """
        if self._socket is not None:
            # Of an earlier process; the host gives every process a path of its own.
            self._socket.unlink(missing_ok=True)
        mask = os.umask(0o077)
        try:
            port = self._server.add_insecure_port(self.endpoint)
        except RuntimeError as error:
            raise OSError(f"{self.endpoint} can't be listened on: {error}.") from error
        finally:
            os.umask(mask)
        if self._socket is None and port and self.endpoint.endswith(":0"):
            self.endpoint = f"{self.endpoint.rsplit(':', 1)[0]}:{port}"
        self._server.start()
        self._health.set("", health_pb2.HealthCheckResponse.SERVING)

    def stop(self, grace_s: float = STOP_GRACE_S) -> None:
        """Ends all streams in good order, then the server."""
        sidecar = self.sidecar
        sidecar.stopping = True
        self._health.enter_graceful_shutdown()
        sidecar.end_streams(grace_s)
        for bound in filter(None, [sidecar.bound, *sidecar.shared.values()]):
            with contextlib.suppress(Exception):
                bound.main.end()
        sidecar.events.close()
        self._server.stop(grace_s).wait(grace_s + 1.0)
        self._calls.shutdown(wait=False, cancel_futures=True)
        if self._socket is not None:
            self._socket.unlink(missing_ok=True)


def serve(*classes: type[Plugin[Any]], name: str = "", version: str = "") -> None:
    """Runs the plugin until it is told to end; the last line of a plugin's main module.

    The endpoint comes from WHERRY_ENDPOINT. Without it, it says how to run the plugin and exits with 2.

    Where the manifest says `forkable: true`, the host may start the plugin once and have sidecars forked from it: what
    comes before `serve` then runs once for many sidecars, and `serve` goes on in each of them.

    Args:
        classes: Sources and sinks of the plugin.
        name: Name of the plugin; by default that of the sidecar.yaml beside its code.
        version: Its version; likewise.
    """
    keep_pandas_out()
    give_memory_back()
    fork_if_asked()
    endpoint = os.environ.get(ENDPOINT, "")
    if not endpoint:
        sys.stderr.write(_usage(classes))
        raise SystemExit(2)
    instance_id = os.environ.get(INSTANCE_ID, "")
    server = Server(classes, endpoint, name=name, version=version, instance_id=instance_id)
    for output in (sys.stdout, sys.stderr):
        # What authors print is a log, and a log shows a line when it is written.
        if isinstance(output, io.TextIOWrapper):
            output.reconfigure(line_buffering=True)
    logging.basicConfig(level=logging.INFO, handlers=[EventsHandler(server.sidecar.events)], force=True)
    stopping = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: stopping.set())
    shutdown_telemetry = telemetry.setup(server.sidecar.name, {"wherry.instance": instance_id})
    try:
        server.start()
    except OSError as error:
        sys.stderr.write(f"{error}\n")
        raise SystemExit(1) from None
    # What was made until now stays: a collection that looks at it all would hold up rows for tens of milliseconds.
    gc.collect()
    gc.freeze()
    _wait(stopping, watch_parent=bool(instance_id))
    server.stop()
    shutdown_telemetry()
    logging.shutdown()
    sys.stdout.flush()
    sys.stderr.flush()
    # An author's thread that doesn't come back must not keep the process; streams have ended by now.
    os._exit(0)


def _wait(stopping: threading.Event, *, watch_parent: bool) -> None:
    """Waits for a signal, or for the death of the host that started this process."""
    parent = os.getppid()
    while not stopping.wait(_ORPHAN_POLL_S):
        if watch_parent and os.getppid() != parent:
            return


def _manifest_of(classes: Sequence[type[Plugin[Any]]]) -> tuple[str, str]:
    """Returns name and version as the manifest beside the plugin's code says them; read lightly, without YAML."""
    folders = [Path.cwd()]
    for plugin in classes:
        with contextlib.suppress(TypeError, OSError):
            folders += Path(inspect.getfile(plugin)).resolve().parents[:3]
    for folder in folders:
        with contextlib.suppress(OSError):
            text = (folder / "sidecar.yaml").read_text(encoding="utf-8")
            members = dict(re.findall(r"^(name|version):\s*[\"']?([^\"'#\s]+)", text, re.MULTILINE))
            return members.get("name", folder.name), members.get("version", "")
    return (classes[0].__module__.split(".")[0] if classes else "plugin"), ""


def _usage(classes: Sequence[type[Plugin[Any]]]) -> str:
    described = [plugin.describe() for plugin in classes]
    lines = [
        "This is a Wherry sidecar: it is started by Wherry, by its sidecar.yaml.",
        f"To start it by hand: {ENDPOINT}=unix:///tmp/sidecar.sock {' '.join([Path(sys.executable).name, *sys.argv])}",
        "",
    ]
    for plugin in described:
        lines.append(f"{plugin.role.name.lower()} {plugin.class_name}  {plugin.documentation}")
        for known in plugin.config.keys:
            needed = "required" if known.required else f"default {known.default_value}"
            lines.append(f"  {known.name}  {known.type.name.lower()}, {needed}  {known.documentation}")
    return "\n".join(lines) + "\n"
