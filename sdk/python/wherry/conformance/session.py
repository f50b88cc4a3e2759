"""The sidecar under test over many cases: one process for as long as it behaves.

Starting a process takes longer than most cases, so a process is kept; generations rise from case to case. A case that
fails, or that asks for it, gets a new one.
"""

from __future__ import annotations

from typing import Any, Final

import grpc

from wherry.conformance.failure import Failure
from wherry.conformance.launcher import Command, Process, build
from wherry.conformance.wire import Wire
from wherry.connector.v1 import plugin_pb2
from wherry.contract.limits import MESSAGE_BYTES_MAX, REVISION_MAX, REVISION_MIN, Limits

HEALTH_DEADLINE_S: Final = 30.0
HELLO_DEADLINE_S: Final = 30.0
# Cases use the generations below the next multiple for what is too old, those above for what is newer.
GENERATION_STEP: Final = 100


class Session:
    """Holds the process, the connection and what Hello and Describe have said."""

    def __init__(self, command: Command) -> None:
        self._command = command
        self._process: Process | None = None
        self._wire: Wire | None = None
        self._hello: plugin_pb2.HelloResponse | None = None
        self._classes: dict[str, plugin_pb2.ClassDescription] = {}
        self._generation = 0

    @property
    def wire(self) -> Wire:
        """The connection; starts the process if there is none.

        Raises:
            Failure: The process doesn't come up.
        """
        if self._wire is None or self._process is None or not self._process.running:
            self.start()
        assert self._wire is not None
        return self._wire

    @property
    def process(self) -> Process:
        """The process; started if there is none."""
        _ = self.wire
        assert self._process is not None
        return self._process

    @property
    def hello(self) -> plugin_pb2.HelloResponse:
        """What Hello has said."""
        _ = self.wire
        assert self._hello is not None
        return self._hello

    @property
    def message_bytes_max(self) -> int:
        """The smaller of both sides' largest message."""
        return min(self.hello.limits.message_bytes_max or MESSAGE_BYTES_MAX, MESSAGE_BYTES_MAX)

    @property
    def row_bytes_max(self) -> int:
        """The smaller of both sides' largest row."""
        return min(self.hello.limits.row_bytes_max or Limits().row_bytes_max, Limits().row_bytes_max)

    def next_generation(self) -> int:
        """Returns a generation higher than every one before."""
        self._generation += GENERATION_STEP
        return self._generation

    def start(self) -> None:
        """Starts the process as the host does: socket, health, Hello.

        Raises:
            Failure: It doesn't come up.
            UsageError: It can't be built.
        """
        self.stop(kill=True)
        build(self._command)
        process = Process(self._command)
        self._process = process
        try:
            process.wait_for_socket()
            self._wire = Wire(process.endpoint)
            status = self._wire.health(HEALTH_DEADLINE_S)
            if status != "SERVING":
                raise Failure(f"The health of the sidecar is {status}; it has to be SERVING once it listens.")
            self._hello = self._wire.call("PluginService.Hello", hello_request(process), HELLO_DEADLINE_S)
        except grpc.RpcError as error:
            told = f"{error.code().name}, {error.details()}"
            raise Failure(f"The sidecar did not come up: {told}.{process.log_tail()}") from error

    def describe(self, class_name: str) -> plugin_pb2.ClassDescription:
        """Returns the description of a class; asked for once.

        Raises:
            Failure: The plugin doesn't describe it.
        """
        if not self._classes:
            answer = self.wire.call("PluginService.Describe", {})
            self._classes = {known.class_name: known for known in answer.classes}
        if class_name not in self._classes:
            raise Failure(f"Describe tells nothing of {class_name}; it has {', '.join(self._classes) or 'no class'}.")
        return self._classes[class_name]

    def class_names(self) -> list[str]:
        """Returns the names of the classes that Describe tells."""
        answer = self.wire.call("PluginService.Describe", {})
        return [known.class_name for known in answer.classes]

    def stop(self, *, kill: bool = False) -> None:
        """Ends the process; harmless when there is none."""
        if self._wire is not None:
            self._wire.close()
        if self._process is not None:
            self._process.stop(kill=kill)
        self._wire = self._process = self._hello = None

    def log_tail(self) -> str:
        """Returns the end of what the process has printed, as an addition to a sentence."""
        return self._process.log_tail() if self._process is not None else ""


def hello_request(process: Process) -> dict[str, Any]:
    """Returns the request that the engine introduces itself with."""
    return {
        "engine_version": "conformance",
        "revision_min": REVISION_MIN,
        "revision_max": REVISION_MAX,
        "instance_id": process.instance_id,
    }
