"""Asks plugins about themselves and about configurations, in short-lived sidecars of the machine's host.

A process that was asked is kept for a while, since whoever validates a configuration soon does so again; it is never
configured, so it serves no data.
"""

from __future__ import annotations

import contextlib
import logging
import threading
import time
import uuid
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Protocol

from wherry.contract.client import SidecarClient, Validation
from wherry.contract.description import ClassDescription
from wherry.contract.errors import TransientError, WherryError
from wherry.contract.manifest import Manifest

_log = logging.getLogger(__name__)

IDLE_RELEASE_S = 20.0
SWEEP_INTERVAL_S = 5.0
ASK_DEADLINE_S = 20.0
START_DEADLINE_S = 60.0  # a plugin's first start may have to make its environment


class Started(Protocol):
    """A sidecar that listens."""

    @property
    def endpoint(self) -> str:
        """Where."""

    @property
    def instance_id(self) -> str:
        """Which, for its release."""


class Host(Protocol):
    """The part of the sidecar host that is needed here."""

    def acquire_plugin(self, plugin: str, directory: str, holder: str, *, timeout_s: float = ...) -> Started:
        """Start a sidecar that is not configured."""

    def release(self, instance_id: str, holder: str) -> None:
        """Say that it is no longer used."""


@dataclass(slots=True)
class _Warm:
    """A process that may be asked; `lock` makes callers wait for its start, not for one another's questions."""

    lock: threading.Lock = field(default_factory=threading.Lock)
    started: Started | None = None
    client: SidecarClient | None = None
    users: int = 0
    used_at: float = 0.0


class PluginProber:
    """Asks plugins. Safe for use by several threads.

    Args:
        host: Starts and stops the processes.
        ask_deadline_s: How long one answer may take.
    """

    def __init__(self, host: Host, *, ask_deadline_s: float = ASK_DEADLINE_S) -> None:
        self._host = host
        self._ask_deadline_s = ask_deadline_s
        self._holder = f"probe-{uuid.uuid4().hex[:8]}"
        self._lock = threading.Lock()
        self._warm: dict[str, _Warm] = {}
        self._stopping = threading.Event()
        self._sweeper: threading.Thread | None = None

    def describe(self, manifest: Manifest) -> list[ClassDescription]:
        """The classes of a plugin.

        Raises:
            WherryError: It cannot be started, or does not answer in time.
        """
        with self._client(manifest) as client:
            return client.describe(deadline_s=self._ask_deadline_s)

    def warm(self, manifest: Manifest) -> None:
        """Have a process of a plugin for a while, asking it nothing.

        Raises:
            WherryError: It cannot be started.
        """
        with self._client(manifest):
            pass

    def validate(
        self, manifest: Manifest, class_name: str, config: Mapping[str, str], secrets: Mapping[str, str]
    ) -> Validation:
        """What a plugin finds about a configuration, without contact to the other system.

        Raises:
            WherryError: It cannot be started, or does not answer in time.
        """
        with self._client(manifest) as client:
            return client.validate_config(class_name, config, secrets, deadline_s=self._ask_deadline_s)

    def close(self) -> None:
        """Release all processes."""
        self._stopping.set()
        with self._lock:
            warm, self._warm = list(self._warm.values()), {}
        for each in warm:
            self._release(each)

    @contextlib.contextmanager
    def _client(self, manifest: Manifest) -> Iterator[SidecarClient]:
        with self._lock:
            self._start_sweeper()
            warm = self._warm.setdefault(manifest.digest, _Warm())
            warm.users += 1
        try:
            yield self._started(manifest, warm)
        except TransientError:
            # It may have died since it was last asked; the next question starts a new one.
            with self._lock:
                if self._warm.get(manifest.digest) is warm:
                    del self._warm[manifest.digest]
            self._release(warm)
            raise
        finally:
            with self._lock:
                warm.users -= 1
                warm.used_at = time.monotonic()

    def _started(self, manifest: Manifest, warm: _Warm) -> SidecarClient:
        with warm.lock:
            if warm.client is None:
                warm.started = self._host.acquire_plugin(
                    manifest.name, str(manifest.directory), self._holder, timeout_s=START_DEADLINE_S
                )
                warm.client = SidecarClient(warm.started.endpoint)
            return warm.client

    def _start_sweeper(self) -> None:
        if self._sweeper is None:
            self._sweeper = threading.Thread(target=self._sweep, name="plugin-probe", daemon=True)
            self._sweeper.start()

    def _sweep(self) -> None:
        while not self._stopping.wait(SWEEP_INTERVAL_S):
            now = time.monotonic()
            with self._lock:
                idle = [
                    key
                    for key, warm in self._warm.items()
                    if warm.client is not None and not warm.users and now - warm.used_at > IDLE_RELEASE_S
                ]
                released = [self._warm.pop(key) for key in idle]
            for warm in released:
                self._release(warm)

    def _release(self, warm: _Warm) -> None:
        with warm.lock:
            client, started = warm.client, warm.started
            warm.client = warm.started = None
        if client is not None:
            client.close()
        if started is not None:
            try:
                self._host.release(started.instance_id, self._holder)
            except WherryError as error:
                _log.debug("A plugin's process could not be released: %s", error.message)
