"""Restarts connectors whose secrets have changed: what Kafka Connect does for config providers with a time to live.

`Reloads` is pure: it is told the time and what each connector's configuration says now, and answers whom to restart.
Unlike Kafka Connect it restarts only where a value is another than before, so that a short time costs no standstill.
`Reloader` asks it in a thread of its own. Values are kept as keyed digests only.
"""

from __future__ import annotations

import hashlib
import logging
import secrets
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final

from wherry.contract.errors import ConfigError
from wherry.coordinator.config.providers import Providers, Resolved

log = logging.getLogger(__name__)

RELOAD_KEY: Final = "config.action.reload"
STOP_TIMEOUT_S: Final = 2.0


@dataclass(frozen=True, slots=True)
class _Seen:
    """What placeholders stood for, and until when that holds."""

    placeholders: Mapping[str, str]
    digest: bytes
    until_ms: int


class Reloads:
    """What was resolved when, by connector."""

    def __init__(self, providers: Providers, *, secret: bytes | None = None) -> None:
        self._providers = providers
        self._secret = secret or secrets.token_bytes(16)
        self._seen: dict[str, _Seen] = {}

    def due(self, now_ms: int, configs: Mapping[str, Mapping[str, str]]) -> list[str]:
        """Names of the connectors whose secrets have changed since they were last looked at.

        A connector is looked at when its time has come, and first when it appears; what cannot be read now is left as
        it is, and tried again.
        """
        self._seen = {name: seen for name, seen in self._seen.items() if name in configs}
        changed = []
        for name, config in configs.items():
            old = self._seen.get(name)
            if (old is not None and now_ms < old.until_ms) or config.get(RELOAD_KEY, "restart").lower() == "none":
                continue
            try:
                resolved = self._providers.resolve(config)
            except ConfigError as error:
                log.warning("Secrets of %s cannot be read again: %s", name, error.message)
                continue
            if resolved.ttl_ms is None:
                continue
            new = _Seen(dict(resolved.placeholders), self._digest(resolved), now_ms + resolved.ttl_ms)
            self._seen[name] = new
            # With other placeholders it was configured anew, and has restarted by itself.
            if old is not None and old.placeholders == new.placeholders and old.digest != new.digest:
                changed.append(name)
        return changed

    def _digest(self, resolved: Resolved) -> bytes:
        mac = hashlib.blake2b(key=self._secret)
        for key in sorted(resolved.placeholders):
            text = resolved.values[key].encode("utf-8", "surrogatepass")
            mac.update(len(text).to_bytes(8, "big") + text)
        return mac.digest()


class Reloader:
    """The thread. Does nothing when no provider has a time to live.

    Args:
        providers: The worker's.
        configs: Answers all connectors' configurations, placeholders unresolved.
        restart: Restarts a connector with its tasks.
    """

    def __init__(
        self,
        providers: Providers,
        configs: Callable[[], Mapping[str, Mapping[str, str]]],
        restart: Callable[[str], None],
    ) -> None:
        self._reloads = Reloads(providers)
        self._interval_s = None if providers.ttl_ms is None else providers.ttl_ms / 1000
        self._configs = configs
        self._restart = restart
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._run, name="reload", daemon=True)

    def start(self) -> None:
        """Start the thread."""
        if self._interval_s is not None:
            self._thread.start()

    def stop(self) -> None:
        """End the thread."""
        self._ended.set()
        if self._thread.is_alive():
            self._thread.join(STOP_TIMEOUT_S)

    def _run(self) -> None:
        wait_s = self._interval_s or 0.0
        while True:
            try:
                for name in self._reloads.due(int(time.monotonic() * 1000), self._configs()):
                    log.info("A secret of %s has changed: it is restarted", name)
                    self._restart(name)
            except Exception:
                log.exception("Secrets could not be looked at again; the next look comes in %.0f s", wait_s)
            if self._ended.wait(wait_s):
                return
