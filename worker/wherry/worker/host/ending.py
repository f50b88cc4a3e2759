"""Ends sidecars: Stop, then SIGTERM, then SIGKILL, and nothing of theirs left behind."""

from __future__ import annotations

import logging
import signal
from typing import Final

import grpc

from wherry.connector.v1 import plugin_pb2, plugin_pb2_grpc
from wherry.worker.host.bootstrap import Instance
from wherry.worker.host.process import SidecarProcess

# A killed process is gone at once, unless the kernel waits for a disk.
KILL_WAIT_S: Final = 2.0

_log = logging.getLogger(__name__)


def ask_to_stop(instance: Instance, deadline_s: float) -> None:
    """Ask a sidecar to end its streams in good order; it is no matter if it does not answer."""
    stub = plugin_pb2_grpc.PluginServiceStub(instance.channel)  # type: ignore[no-untyped-call]  # generated
    try:
        stub.Stop(plugin_pb2.StopRequest(deadline_ms=int(deadline_s * 1000)), timeout=deadline_s)
    except grpc.RpcError as error:
        # It is going to be ended anyway; whoever reads the log should know that it was not in good order.
        _log.debug("%s did not stop when asked: %s", instance.what, error.code())


def end(instance: Instance, grace_s: float) -> None:
    """End a sidecar that was not asked before, and remove what it leaves."""
    if instance.process is not None:
        end_process(instance.process, grace_s)
    tidy(instance)


def end_process(process: SidecarProcess, grace_s: float) -> None:
    """Terminate a process, and kill it when it does not end within its grace."""
    process.told_to_end = True
    process.signal(signal.SIGTERM)
    if not process.ended.wait(grace_s):
        process.signal(signal.SIGKILL, f"it did not end within {grace_s:g} s of being told to")
        process.ended.wait(KILL_WAIT_S)


def tidy(instance: Instance) -> None:
    """Remove what an ended sidecar leaves."""
    instance.channel.close()
    if instance.relay is not None:
        instance.relay.close()
    if instance.socket_path is not None:
        instance.socket_path.unlink(missing_ok=True)
