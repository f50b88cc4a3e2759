"""One process of a plugin that plans for many connectors, where its manifest says `planning: shared`.

Decides which connectors share and which are kept apart: one whose call went wrong or took too long in the shared
process is served by a process of its own for a while, so that it holds up or ends the planning of others of its
plugin once, and nothing else. No record ever passes through such a process.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Final, Protocol

from wherry.connector.v1 import plugin_pb2
from wherry.contract.client import SidecarClient
from wherry.contract.errors import WherryError
from wherry.control.v1 import lease_pb2
from wherry.coordinator.hosts import Acquired

log = logging.getLogger(__name__)

HOLDER: Final = "shared-planning"
IDLE_S: Final = 60.0
"""A process that plans for nobody is kept so long."""
SWEEP_INTERVAL_S: Final = 5.0
APART_S: Final = 600.0
CONFIGURE_TIMEOUT_S: Final = 10.0
UNBIND_TIMEOUT_S: Final = 2.0


class Host(Protocol):
    """The part of the sidecar host that is needed here."""

    def acquire_plugin(self, plugin: str, directory: str, holder: str, *, planning: bool = ...) -> Acquired:
        """Start a process that is not configured."""

    def release(self, instance_id: str, holder: str) -> None:
        """Say that it is no longer used."""


@dataclass(slots=True, eq=False)
class _Process:
    """One plugin's process. `starting` makes its users wait for its start; the table's lock guards the rest."""

    plugin: str
    directory: str
    starting: threading.Lock = field(default_factory=threading.Lock)
    started: Acquired | None = None
    client: SidecarClient | None = None
    connectors: set[str] = field(default_factory=set)
    users: int = 0
    """Who is about to be bound."""
    idle_since_s: float = 0.0
    over: bool = False


@dataclass(frozen=True, slots=True, eq=False)
class Share:
    """A connector's part of a shared process."""

    connector: str
    client: SidecarClient
    process: _Process

    @property
    def over(self) -> bool:
        """Whether the process has ended, or been given back."""
        return self.process.over


class SharedPlanning:
    """The shared processes of a coordinator. Safe for use by several threads.

    Args:
        host: Starts and stops the processes.
        took: Told of an event of a connector; "" for the process itself.
        ended: Told which connectors a process was bound to that has ended by itself.
        clock: Seconds, rising.
        connect: Makes the client of an endpoint.
    """

    def __init__(
        self,
        host: Host,
        took: Callable[[str, plugin_pb2.EventsResponse], None],
        ended: Callable[[Sequence[str]], None],
        *,
        clock: Callable[[], float] = time.monotonic,
        connect: Callable[[str], SidecarClient] = lambda endpoint: SidecarClient(endpoint, ready=True),
    ) -> None:
        self._host = host
        self._took = took
        self._ended = ended
        self._clock = clock
        self._connect = connect
        self._lock = threading.Lock()
        self._processes: dict[str, _Process] = {}
        self._apart: dict[str, float] = {}
        self._sweeping = False

    def is_apart(self, connector: str) -> bool:
        """Whether a connector is to have a process of its own now."""
        with self._lock:
            until_s = self._apart.get(connector)
            if until_s is None or until_s > self._clock():
                return until_s is not None
            del self._apart[connector]
            return False

    def set_apart(self, connector: str) -> None:
        """Give a connector a process of its own for a while."""
        with self._lock:
            self._apart[connector] = self._clock() + APART_S
        log.warning("%s is planned apart from others of its plugin for %g s.", connector, APART_S)

    def forget(self, connector: str) -> None:
        """A connector is gone."""
        with self._lock:
            self._apart.pop(connector, None)

    def hold(self, sidecar: lease_pb2.SidecarSpec) -> Share:
        """Bind a connector in its plugin's process, which is started if need be.

        Raises:
            WherryError: The process can't be had, or refuses the configuration.
        """
        process = self._enter(sidecar.plugin, sidecar.plugin_directory)
        bound = False
        try:
            client = self._client(process).about(sidecar.connector)
            client.configure(
                sidecar.connector,
                sidecar.class_name,
                sidecar.generation,
                dict(sidecar.config),
                dict(sidecar.secrets),
                deadline_s=CONFIGURE_TIMEOUT_S,
            )
            bound = True
        finally:
            with self._lock:
                process.users -= 1
                process.idle_since_s = self._clock()
                if bound:
                    process.connectors.add(sidecar.connector)
        return Share(sidecar.connector, client, process)

    def let_go(self, share: Share) -> None:
        """A connector is no longer planned there."""
        with self._lock:
            share.process.connectors.discard(share.connector)
            share.process.idle_since_s = self._clock()
            if share.process.over:
                return
        try:
            share.client.stop(deadline_s=UNBIND_TIMEOUT_S)
        except WherryError as error:
            log.debug("%s was not let go of: %s", share.connector, error)

    def sweep(self) -> bool:
        """End processes that plan for nobody; False when none is left."""
        now = self._clock()
        with self._lock:
            idle = [
                process
                for process in self._processes.values()
                if not process.connectors and not process.users and now - process.idle_since_s > IDLE_S
            ]
            for process in idle:
                process.over = True
                del self._processes[process.directory]
            self._sweeping = bool(self._processes)
            left = self._sweeping
        for process in idle:
            self._release(process)
        return left

    def _enter(self, plugin: str, directory: str) -> _Process:
        with self._lock:
            process = self._processes.get(directory)
            if process is None:
                process = self._processes[directory] = _Process(plugin, directory)
            process.users += 1
            if not self._sweeping:
                self._sweeping = True
                threading.Thread(target=self._sweep_on, name="shared-planning", daemon=True).start()
        return process

    def _client(self, process: _Process) -> SidecarClient:
        with process.starting:
            if process.client is None:
                try:
                    started = self._host.acquire_plugin(process.plugin, process.directory, HOLDER, planning=True)
                except WherryError:
                    self._remove(process)
                    raise
                process.started, process.client = started, self._connect(started.endpoint)
                follower = threading.Thread(target=self._follow, args=(process, process.client), daemon=True)
                follower.name = f"events-{process.plugin}"
                follower.start()
            return process.client

    def _follow(self, process: _Process, client: SidecarClient) -> None:
        try:
            for event in client.events():
                self._took(event.connector, event)
        except (WherryError, ValueError) as error:
            log.debug("Events of plugin %s ended: %s", process.plugin, error)
        if not process.over:
            bound = self._remove(process)
            self._release(process)
            self._ended(bound)

    def _remove(self, process: _Process) -> list[str]:
        """Take a process out of the table, so that the next one is a new one; answers whom it was bound to."""
        with self._lock:
            process.over = True
            if self._processes.get(process.directory) is process:
                del self._processes[process.directory]
            bound = sorted(process.connectors)
            process.connectors.clear()
        return bound

    def _release(self, process: _Process) -> None:
        if process.client is not None:
            process.client.close()
        if process.started is None:
            return
        try:
            self._host.release(process.started.instance_id, HOLDER)
        except WherryError as error:
            log.debug("The planning process of %s could not be released: %s", process.plugin, error)

    def _sweep_on(self) -> None:
        while True:
            time.sleep(SWEEP_INTERVAL_S)
            if not self.sweep():
                return
