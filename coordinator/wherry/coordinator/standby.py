"""Keeps at hand, where nothing runs yet, what a new leader needs first: the plugins of the connectors there are.

A plugin's first sidecar needs its environment made (minutes, at worst) and its code imported (half a second of CPU,
which several of them at once make seconds). So each plugin in use is started once, and one whose sidecars are forked
from a warm process is touched again before the host lets that go.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Mapping
from typing import Final, Protocol

from wherry.contract.errors import WherryError
from wherry.contract.manifest import Manifest
from wherry.coordinator.api import TargetState
from wherry.coordinator.config.direct import SINK_CLASS
from wherry.coordinator.store import ConfigSnapshot

log = logging.getLogger(__name__)

TOUCH_S: Final = 20.0
"""The host lets a warm process go that nobody has used for a minute."""
PLUGINS_MAX: Final = 16
"""More than these are started when they are needed: a standby is not to be as large as a leader."""


class Prober(Protocol):
    """Starts plugins; `probe.PluginProber` does."""

    def warm(self, manifest: Manifest) -> None:
        """Have a process of the plugin for a while. Raises WherryError when it cannot be started."""


class Standby:
    """Warms plugins until it is stopped.

    Args:
        prober: Starts them.
        manifest_of: The plugin of a class; None where there is none.
        snapshot: The connectors, as of now.
        leads: Whether this coordinator leads, and so has no need of it.
    """

    def __init__(
        self,
        prober: Prober,
        manifest_of: Callable[[str], Manifest | None],
        snapshot: Callable[[], ConfigSnapshot],
        leads: Callable[[], bool],
    ) -> None:
        self._prober = prober
        self._manifest_of = manifest_of
        self._snapshot = snapshot
        self._leads = leads
        self._started: set[str] = set()

    def run(self, closing: threading.Event) -> None:
        """Keep them warm until `closing` is set."""
        while True:
            self.touch()
            if closing.wait(TOUCH_S):
                return

    def touch(self) -> None:
        """Start what was never started, and touch what is kept warm."""
        if self._leads():
            self._started.clear()  # what was changed meanwhile is found out when the lead is lost again
            return
        for digest, manifest in wanted(self._snapshot(), self._manifest_of).items():
            if digest in self._started and not manifest.forkable:
                continue
            self._started.add(digest)
            try:
                self._prober.warm(manifest)
            except WherryError as error:
                log.info("The plugin %s cannot be kept at hand: %s", manifest.name, error.message)


def wanted(snapshot: ConfigSnapshot, manifest_of: Callable[[str], Manifest | None]) -> Mapping[str, Manifest]:
    """The plugins of the connectors that are to run, by their digests."""
    found: dict[str, Manifest] = {}
    for stored in snapshot.connectors.values():
        if stored.target_state is not TargetState.STARTED:
            continue
        for key in ("connector.class", SINK_CLASS):
            manifest = manifest_of(stored.config.get(key, ""))
            if manifest is not None and len(found) < PLUGINS_MAX:
                found[manifest.digest] = manifest
    return found
