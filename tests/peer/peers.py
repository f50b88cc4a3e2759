"""The two that are compared, started alike and driven alike: the real Kafka Connect worker and Wherry.

Each has names of its own for connectors, topics and files, so that both can use one broker; what they answer is told
apart from that by putting the placeholders back.
"""

from __future__ import annotations

import threading
import uuid
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.support.rest import Answer, Rest
from tests.support.standalone import REPOSITORY, Standalone
from tests.support.waiting import eventually

from wherry.contract.manifest import Manifest
from wherry.coordinator.api import KAFKA_VERSION
from wherry.coordinator.dev.connect import Mode, RealConnect

CONNECT = "connect"
WHERRY = "wherry"
STRING = "org.apache.kafka.connect.storage.StringConverter"
SETTINGS = {"key.converter": STRING, "value.converter": STRING, "offset.flush.interval.ms": "1000"}
PLUGIN_VERSION = Manifest.load(REPOSITORY / "sidecars" / "filestream").version
STORED = ("config", "offset", "status")
START_TIMEOUT_S = 120.0


@dataclass(slots=True)
class Peer:
    """One of the two.

    Attributes:
        name: `connect` or `wherry`.
        directory: Where its files are.
        bootstrap: Kafka's address.
        distributed: Whether Kafka Connect runs distributed, as most do; Wherry is standalone in any case.
        settings: Worker settings of its own.
        suffix: What makes its names its own.
    """

    name: str
    directory: Path
    bootstrap: str
    distributed: bool = False
    settings: Mapping[str, str] = field(default_factory=dict)
    suffix: str = field(default_factory=lambda: uuid.uuid4().hex[:8])
    _worker: RealConnect | Standalone | None = None

    def __post_init__(self) -> None:
        self.directory.mkdir(parents=True, exist_ok=True)

    @property
    def rest(self) -> Rest:
        """Its REST API."""
        assert self._worker is not None
        return self._worker.rest if isinstance(self._worker, Standalone) else Rest(self._worker.rest_url)

    @property
    def offsets_file(self) -> Path:
        """Where it keeps the positions of sources."""
        return self.directory / "connect.offsets"

    def start(self, *, program: str | None = None) -> None:
        """Start it on its files; as `program`, the other one takes its files over."""
        settings = {**SETTINGS, **self.settings, "offset.storage.file.filename": str(self.offsets_file)}
        directory = self.directory / (program or self.name)
        if (program or self.name) == WHERRY:
            self._worker = Standalone(bootstrap=self.bootstrap, settings=settings, directory=directory)
        else:
            # Its default way of looking for plugins takes 15 s longer to find the same ones.
            settings["plugin.discovery"] = "service_load"
            if self.distributed:
                # Its prefix makes it a setting of the topic of offsets, which the broker refuses.
                del settings["offset.storage.file.filename"]
                settings |= {"group.id": f"peer-{self.suffix}"}
                settings |= {f"{kind}.storage.topic": f"peer-{self.suffix}-{kind}" for kind in STORED}
            mode: Mode = "distributed" if self.distributed else "standalone"
            self._worker = RealConnect(bootstrap=self.bootstrap, mode=mode, work_dir=directory, options=settings)
        self._worker.start()
        healthy = eventually(self.rest.is_healthy, START_TIMEOUT_S)
        assert healthy, f"{program or self.name} is not healthy: {self.rest.call('GET', '/health')}"

    def stop(self) -> None:
        """Stop it cleanly; its files stay."""
        if self._worker is not None:
            self._worker.close()
            self._worker = None

    def own(self, text: str) -> str:
        """Put its names in the place of `{dir}`, `{x}` and `{url}`."""
        for placeholder, value in self._names().items():
            text = text.replace(placeholder, value)
        return text

    def filled(self, value: Any) -> Any:
        """Do so in all texts of a JSON value."""
        return _mapped(value, self.own)

    def neutral(self, value: Any) -> Any:
        """Put the placeholders back, and Kafka's version in the place of our plugin's."""

        def neutral(text: str) -> str:
            for placeholder, own in self._names().items():
                text = text.replace(own, placeholder)
            return text.replace(PLUGIN_VERSION, KAFKA_VERSION)

        return _mapped(value, neutral)

    def ask(
        self,
        method: str,
        path: str,
        body: Any = None,
        *,
        raw: bytes | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> Answer:
        """Send a request with its names, and return the answer with placeholders."""
        raw = None if raw is None else raw.replace(b"{x}", self.suffix.encode())
        answer = self.rest.call(method, self.own(path), self.filled(body), raw=raw, headers=headers)
        return Answer(answer.status, self.neutral(answer.body), self.neutral(dict(answer.headers)))

    def _names(self) -> Mapping[str, str]:
        url = self.rest.url if self._worker is not None else "{url}"
        return {"{dir}": str(self.directory), "{x}": self.suffix, "{url}": url, "{worker}": url.removeprefix("http://")}


def together(peers: Sequence[Peer], body: Callable[[Peer], None]) -> None:
    """Do something with all peers at the same time; the first error is raised when all have ended."""
    errors: list[BaseException] = []

    def guarded(peer: Peer) -> None:
        try:
            body(peer)
        except BaseException as error:
            error.add_note(f"while driving {peer.name}")
            errors.append(error)

    threads = [threading.Thread(target=guarded, args=(peer,), daemon=True) for peer in peers]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(START_TIMEOUT_S * 3)
    if errors:
        raise errors[0]
    assert not any(thread.is_alive() for thread in threads), "a peer did not come to its end in time"


def _mapped(value: Any, change: Callable[[str], str]) -> Any:
    if isinstance(value, str):
        return change(value)
    if isinstance(value, Mapping):
        return {_mapped(key, change): _mapped(item, change) for key, item in value.items()}
    if isinstance(value, list):
        return [_mapped(item, change) for item in value]
    return value
