"""Runs the sidecar, or fails to in the way that was asked for."""

from __future__ import annotations

import argparse
import os
import signal
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Final

import grpc
from grpc_health.v1 import health, health_pb2, health_pb2_grpc

from wherry.connector.v1 import plugin_pb2_grpc, sink_pb2_grpc, source_pb2_grpc
from wherry.contract.errors import ConfigError
from wherry_hostile.binding import Binding
from wherry_hostile.modes import EXIT_CODE, HANG_S, Wishes, checked
from wherry_hostile.plugin import HostilePlugin
from wherry_hostile.sink import HostileSink
from wherry_hostile.source import HostileSource

CALLS_MAX: Final = 64
STOP_GRACE_S: Final = 3.0
PARENT_POLL_S: Final = 0.2
UNLIMITED: Final = -1


def main() -> int:
    """Runs the sidecar until SIGTERM; returns the exit code."""
    parser = argparse.ArgumentParser(prog="wherry_hostile", description=__doc__)
    parser.add_argument("--misbehave", default="", help="names of modes that hold from the start, with commas")
    parser.add_argument("--delay-ms", type=int, default=1000, help="delay of the slow modes")
    arguments = parser.parse_args()
    endpoint = os.environ.get("WHERRY_ENDPOINT", "")
    try:
        modes = checked(arguments.misbehave.split(","))
    except ConfigError as error:
        sys.stderr.write(f"{error}\n")
        return 2
    if not endpoint:
        sys.stderr.write("This is a Wherry sidecar; WHERRY_ENDPOINT has to name the socket to listen on.\n")
        return 2
    if "exit-at-start" in modes:
        sys.stderr.write("I was asked to end at the start.\n")
        return EXIT_CODE
    if "slow-start" in modes:
        time.sleep(arguments.delay_ms / 1000)
    if "never-listens" in modes:
        time.sleep(HANG_S)
    return _serve(endpoint, Wishes(modes, delay_ms=arguments.delay_ms))


def _serve(endpoint: str, wishes: Wishes) -> int:
    binding = Binding(wishes.modes)
    plugin = HostilePlugin(binding, os.environ.get("WHERRY_INSTANCE_ID", ""))
    # A message over the limit has to leave this process for the engine to refuse it.
    sizes = [("grpc.max_send_message_length", UNLIMITED), ("grpc.max_receive_message_length", UNLIMITED)]
    server = grpc.server(ThreadPoolExecutor(CALLS_MAX), options=sizes)
    plugin_pb2_grpc.add_PluginServiceServicer_to_server(plugin, server)  # type: ignore[no-untyped-call]
    source_pb2_grpc.add_SourceServiceServicer_to_server(HostileSource(binding), server)  # type: ignore[no-untyped-call]
    sink_pb2_grpc.add_SinkServiceServicer_to_server(HostileSink(binding), server)  # type: ignore[no-untyped-call]
    if "no-health" not in wishes:
        status = health_pb2.HealthCheckResponse
        servicer = health.HealthServicer()
        servicer.set("", status.NOT_SERVING if "never-healthy" in wishes else status.SERVING)
        health_pb2_grpc.add_HealthServicer_to_server(servicer, server)
    if endpoint.startswith("unix:"):
        Path(endpoint.removeprefix("unix:").removeprefix("//")).unlink(missing_ok=True)
    server.add_insecure_port(endpoint)
    server.start()
    plugin.misbehave(wishes)
    terminated = threading.Event()
    signal.signal(signal.SIGTERM, lambda *_: terminated.set())
    _wait(plugin, terminated)
    plugin.end_events()
    binding.end_streams(STOP_GRACE_S)
    server.stop(STOP_GRACE_S).wait(STOP_GRACE_S)
    # A call that was asked to hang must not keep the process.
    os._exit(0)


def _wait(plugin: HostilePlugin, terminated: threading.Event) -> None:
    """Waits for SIGTERM, or for the death of whoever started the process."""
    parent = os.getppid()
    while os.getppid() == parent:
        if terminated.wait(PARENT_POLL_S):
            if not plugin.ignore_sigterm:
                return
            terminated.clear()


if __name__ == "__main__":
    sys.exit(main())
