"""PluginService, and what the process as a whole does wrong."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any, Final

import grpc

from wherry.connector.v1 import plugin_pb2, plugin_pb2_grpc
from wherry.contract import rpc, to_proto
from wherry.contract.errors import ConfigError
from wherry.contract.frame import ALL_ENCODINGS
from wherry.contract.limits import REVISION_MAX, REVISION_MIN, Limits
from wherry_hostile.binding import Binding
from wherry_hostile.modes import Wishes
from wherry_hostile.settings import CLASSES, parse, validate

NAME: Final = "hostile"
VERSION: Final = "0.1.0"
LONG_LINE_BYTES: Final = 1024 * 1024
FLOOD_PAUSE_S: Final = 0.0005
ORPHAN_S: Final = 300
FILES_STEP: Final = 50
EVENTS_POLL_S: Final = 0.05


class HostilePlugin(plugin_pb2_grpc.PluginServiceServicer):
    """PluginService.

    Args:
        binding: Shared with the other services.
        instance_id: From the environment.
    """

    def __init__(self, binding: Binding, instance_id: str) -> None:
        self._binding = binding
        self._instance_id = instance_id
        self._running: set[str] = set()
        self._listener: threading.Event | None = None
        self.ignore_sigterm = False

    def Hello(  # noqa: N802 - gRPC's names
        self, request: plugin_pb2.HelloRequest, context: grpc.ServicerContext
    ) -> plugin_pb2.HelloResponse | None:
        """Introduces itself, not always as itself."""
        wishes = self._begin("hello", context)
        if request.revision_min > REVISION_MAX or request.revision_max < REVISION_MIN:
            rpc.abort(context, ConfigError(f"hostile speaks revision {REVISION_MAX} of the contract."))
        return plugin_pb2.HelloResponse(
            plugin_name=NAME,
            plugin_version=VERSION,
            revision=77 if "wrong-revision" in wishes else REVISION_MAX,
            limits=to_proto.limits(Limits()),
            encodings=[int(encoding) for encoding in ALL_ENCODINGS],  # type: ignore[misc]
            instance_id="another" if "wrong-instance" in wishes else self._instance_id,
            sdk="none",
        )

    def Describe(  # noqa: N802
        self, _: plugin_pb2.DescribeRequest, context: grpc.ServicerContext
    ) -> plugin_pb2.DescribeResponse | None:
        """Tells both classes."""
        self._begin("describe", context)
        return plugin_pb2.DescribeResponse(classes=map(to_proto.class_description, CLASSES))

    def ValidateConfig(  # noqa: N802
        self, request: plugin_pb2.ValidateConfigRequest, context: grpc.ServicerContext
    ) -> plugin_pb2.ValidateConfigResponse | None:
        """Checks a configuration; misbehaves by what that configuration asks for."""
        try:
            found = validate(request.class_name, request.config)
            if not found:
                parse(request.class_name, request.config, self._binding.always).wishes.at("validate")
        except Exception as error:
            rpc.abort(context, error)
        response = plugin_pb2.ValidateConfigResponse()
        for key, errors in found.items():
            response.values.add(name=key, errors=errors)
        return response

    def Configure(  # noqa: N802
        self, request: plugin_pb2.ConfigureRequest, context: grpc.ServicerContext
    ) -> plugin_pb2.ConfigureResponse | None:
        """Takes a configuration; misbehaves by what that configuration asks for."""
        try:
            wrong = [text for errors in validate(request.class_name, request.config).values() for text in errors]
            if wrong:
                raise ConfigError("; ".join(wrong))
            settings = parse(request.class_name, request.config, self._binding.always)
            settings.wishes.at("configure")
            self._binding.bind(request.generation, settings)
            self.misbehave(settings.wishes)
        except Exception as error:
            rpc.abort(context, error)
        return plugin_pb2.ConfigureResponse()

    def Probe(  # noqa: N802
        self, _: plugin_pb2.ProbeRequest, context: grpc.ServicerContext
    ) -> plugin_pb2.ProbeResponse | None:
        """There is no other system."""
        self._begin("probe", context)
        return plugin_pb2.ProbeResponse(detail="there is no other system")

    def Stop(  # noqa: N802
        self, request: plugin_pb2.StopRequest, context: grpc.ServicerContext
    ) -> plugin_pb2.StopResponse | None:
        """Ends the streams."""
        self._begin("stop", context)
        self._binding.end_streams(request.deadline_ms / 1000)
        return plugin_pb2.StopResponse()

    def OnDelete(  # noqa: N802
        self, _: plugin_pb2.OnDeleteRequest, context: grpc.ServicerContext
    ) -> plugin_pb2.OnDeleteResponse | None:
        """Nothing is held."""
        self._begin("delete", context)
        return plugin_pb2.OnDeleteResponse()

    def Events(  # noqa: N802
        self, _: plugin_pb2.EventsRequest, context: grpc.ServicerContext
    ) -> Iterator[plugin_pb2.EventsResponse]:
        """Says nothing, or far too much."""
        self._begin("events", context)
        mine = threading.Event()
        if self._listener is not None:
            self._listener.set()
        self._listener = mine
        while context.is_active() and not mine.is_set():
            if "flood-events" in self._binding.wishes:
                yield _log_event("an event of the flood")
            else:
                mine.wait(EVENTS_POLL_S)

    def end_events(self) -> None:
        """Ends the subscription."""
        if self._listener is not None:
            self._listener.set()

    def misbehave(self, wishes: Wishes) -> None:
        """Begins what the process as a whole is to do wrong; once for each mode."""
        self.ignore_sigterm = self.ignore_sigterm or "ignore-sigterm" in wishes
        jobs: dict[str, Callable[[], None]] = {
            "flood-logs": _flood_logs,
            "leak": lambda: _leak(wishes.leak_mib),
            "spin": _spin,
            "open-files": _open_files,
            "orphan": _orphan,
        }
        for mode, job in jobs.items():
            if mode in wishes and mode not in self._running:
                self._running.add(mode)
                threading.Thread(target=job, name=mode, daemon=True).start()

    def _begin(self, call: str, context: grpc.ServicerContext) -> Wishes:
        wishes = self._binding.wishes
        try:
            wishes.at(call)
        except Exception as error:
            rpc.abort(context, error)
        return wishes


def _log_event(text: str) -> plugin_pb2.EventsResponse:
    log = plugin_pb2.LogEvent(level=plugin_pb2.LOG_LEVEL_INFO, logger=NAME, message=text)
    return plugin_pb2.EventsResponse(time_ms=int(time.time() * 1000), log=log)


def _flood_logs() -> None:
    number = 0
    while True:
        number += 1
        sys.stdout.write(f"line {number} of the flood\n")
        sys.stderr.write(f"line {number} of the flood of errors\n")
        if number % 1000 == 0:
            sys.stdout.write("x" * LONG_LINE_BYTES + "\n")
            sys.stdout.flush()
            os.write(2, b"\xff\xfe\x00 no text\n")
        time.sleep(FLOOD_PAUSE_S)


def _leak(mib_per_second: int) -> None:
    kept: list[Any] = []
    while True:
        # Written to, so that it is resident.
        kept.append(bytearray(os.urandom(1024 * 1024)) + bytearray((max(1, mib_per_second) - 1) * 1024 * 1024))
        time.sleep(1.0)


def _spin() -> None:
    while True:
        pass


def _open_files() -> None:
    kept: list[Any] = []
    while True:
        kept += [os.open(os.devnull, os.O_RDONLY) for _ in range(FILES_STEP)]
        time.sleep(0.1)


def _orphan() -> None:
    subprocess.Popen([sys.executable, "-c", f"import time; time.sleep({ORPHAN_S})"], start_new_session=True)
