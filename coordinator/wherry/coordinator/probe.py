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
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Protocol, TypeVar

from wherry.contract.client import SidecarClient, Validation
from wherry.contract.description import ClassDescription
from wherry.contract.errors import TransientError, WherryError
from wherry.contract.manifest import Manifest
from wherry.coordinator.hosts import Acquired, is_gone, once_more

_log = logging.getLogger(__name__)

IDLE_RELEASE_S = 20.0
SWEEP_INTERVAL_S = 5.0
ASK_DEADLINE_S = 20.0
START_DEADLINE_S = 60.0  # a plugin's first start may have to make its environment
LEFT_S_MIN = 0.1

T = TypeVar("T")


class Host(Protocol):
    """The part of the sidecar host that is needed here."""

    def acquire_plugin(self, plugin: str, directory: str, holder: str, *, timeout_s: float = ...) -> Acquired:
        """Start a sidecar that is not configured."""

    def release(self, instance_id: str, holder: str) -> None:
        """Say that it is no longer used."""


@dataclass(slots=True)
class _Warm:
    """A process that may be asked; `lock` makes callers wait for its start, not for one another's questions."""

    lock: threading.Lock = field(default_factory=threading.Lock)
    started: Acquired | None = None
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
        return self._ask(manifest, lambda client, deadline_s: client.describe(deadline_s=deadline_s))

    def warm(self, manifest: Manifest) -> None:
        """Have a process of a plugin for a while, asking it nothing.

        Raises:
            WherryError: It cannot be started.
        """
        self._ask(manifest, lambda client, deadline_s: None)

    def validate(
        self, manifest: Manifest, class_name: str, config: Mapping[str, str], secrets: Mapping[str, str]
    ) -> Validation:
        """What a plugin finds about a configuration, without contact to the other system.

        Raises:
            WherryError: It cannot be started, or does not answer in time.
        """
        return self._ask(
            manifest,
            lambda client, deadline_s: client.validate_config(class_name, config, secrets, deadline_s=deadline_s),
        )

    def close(self) -> None:
        """Release all processes."""
        self._stopping.set()
        with self._lock:
            warm, self._warm = list(self._warm.values()), {}
        for each in warm:
            self._release(each)

    def _ask(self, manifest: Manifest, question: Callable[[SidecarClient, float], T]) -> T:
        """The answer of a plugin's process; one that was killed meanwhile, or before it was noticed, is replaced."""

        def ask(left_s: float) -> T:
            ends_s = time.monotonic() + left_s
            with self._client(manifest, min(START_DEADLINE_S, left_s)) as client:
                left_s = max(ends_s - time.monotonic(), LEFT_S_MIN)
                return question(client, min(self._ask_deadline_s, left_s))

        return once_more(ask, is_gone, within_s=START_DEADLINE_S + self._ask_deadline_s)

    @contextlib.contextmanager
    def _client(self, manifest: Manifest, start_s: float) -> Iterator[SidecarClient]:
        with self._lock:
            self._start_sweeper()
            warm = self._warm.setdefault(manifest.digest, _Warm())
            warm.users += 1
        try:
            client = self._started(manifest, warm, start_s)
            try:
                yield client
            except TransientError:
                # It may have died since it was last asked: whoever asks next starts a new one.
                self._release(warm, client)
                raise
        finally:
            with self._lock:
                warm.users -= 1
                warm.used_at = time.monotonic()

    def _started(self, manifest: Manifest, warm: _Warm, start_s: float) -> SidecarClient:
        with warm.lock:
            if warm.client is None:
                warm.started = self._host.acquire_plugin(
                    manifest.name, str(manifest.directory), self._holder, timeout_s=start_s
                )
                warm.client = SidecarClient(warm.started.endpoint, ready=True)
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

    def _release(self, warm: _Warm, asked: SidecarClient | None = None) -> None:
        """Let go of a process; of none but the one that was `asked`, if that is told."""
        with warm.lock:
            client, started = warm.client, warm.started
            if asked is not None and client is not asked:
                return  # another caller was quicker
            warm.client = warm.started = None
            if client is not None:
                client.close()
            if started is None:
                return
            try:  # still locked: to release after the next start would take that one away
                self._host.release(started.instance_id, self._holder)
            except WherryError as error:
                _log.debug("A plugin's process could not be released: %s", error.message)
