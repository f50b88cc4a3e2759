"""The two that are compared, started alike and driven alike: the real Kafka Connect worker and Wherry.

Each has names of its own for connectors, topics and files, so that both can use one broker; what they answer is told
apart from that by putting the placeholders back.
"""

from __future__ import annotations

import base64
import threading
import uuid
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.support.distributed import Distributed
from tests.support.rest import Answer, Rest, settled
from tests.support.standalone import REPOSITORY, Standalone
from tests.support.waiting import eventually

from wherry.contract.manifest import Manifest
from wherry.coordinator.api import KAFKA_VERSION
from wherry.coordinator.dev.connect import JVM_OPTIONS, RealConnect
from wherry.coordinator.dev.errors import PortTakenError
from wherry.coordinator.dev.jars import KAFKA_VERSION as JARS_VERSION
from wherry.coordinator.dev.jars import ensure_jars, jar_set

CONNECT = "connect"
WHERRY = "wherry"
CLUSTER = "cluster"
"""Wherry with two coordinators, the one that does not lead being asked."""
STRING = "org.apache.kafka.connect.storage.StringConverter"
SETTINGS = {"key.converter": STRING, "value.converter": STRING, "offset.flush.interval.ms": "1000"}
PLUGIN_VERSION = Manifest.load(REPOSITORY / "sidecars" / "filestream").version
STORED = ("config", "offset", "status")
START_TIMEOUT_S = 180.0
PORTS_MAX = 3
LIFE_TIMEOUT_S = 800.0
REBALANCE_TIMEOUT_S = 30.0
EXTENSION = jar_set(f"org.apache.kafka:connect-basic-auth-extension:{JARS_VERSION}", name="connect-basic-auth")
_EXTENSION = "org.apache.kafka.connect.rest.basic.auth.extension"


@dataclass(slots=True)
class Peer:
    """One of the two.

    Attributes:
        name: `connect`, `wherry` or `cluster`.
        directory: Where its files are.
        bootstrap: Kafka's address.
        distributed: Whether Kafka Connect runs distributed, as most do; `wherry` is standalone in any case.
        settings: Worker settings of its own.
        suffix: What makes its names its own.
        users: Names and passwords of those who may ask; none lets everybody in. The first one asks.
        jvm_options: More options of Kafka Connect's JVM.
    """

    name: str
    directory: Path
    bootstrap: str
    distributed: bool = False
    settings: Mapping[str, str] = field(default_factory=dict)
    suffix: str = field(default_factory=lambda: uuid.uuid4().hex[:8])
    users: Mapping[str, str] = field(default_factory=dict)
    jvm_options: Sequence[str] = ()
    _worker: RealConnect | Standalone | None = None
    _leader: RealConnect | Standalone | None = None

    def __post_init__(self) -> None:
        self.directory.mkdir(parents=True, exist_ok=True)

    @property
    def rest(self) -> Rest:
        """Its REST API."""
        assert self._worker is not None
        url = self._worker.rest.url if isinstance(self._worker, Standalone) else self._worker.rest_url
        return Rest(url, self._authorization)

    @property
    def offsets_file(self) -> Path:
        """Where it keeps the positions of sources."""
        return self.directory / "connect.offsets"

    def start(self, *, program: str | None = None) -> None:
        """Start it on its files; as `program`, the other one takes its files over."""
        kind = program or self.name
        directory = self.directory / kind
        members: Sequence[Standalone] = ()
        if kind == CLUSTER:
            members = self._cluster()
        elif kind == WHERRY:
            settings = {**self._settings(), "offset.storage.file.filename": str(self.offsets_file)}
            members = [Standalone(bootstrap=self.bootstrap, settings=settings, directory=directory)]
        else:
            self._worker = self._begun(directory)
        for member in members:  # one after the other, so that the first one leads
            self._leader, self._worker = self._worker, member
            member.rest.authorization = self._authorization
            member.start()
            assert eventually(member.rest.is_healthy, START_TIMEOUT_S), member.log_tail()
        healthy = eventually(self.rest.is_healthy, START_TIMEOUT_S)
        assert healthy, f"{kind} is not healthy: {self.rest.call('GET', '/health')}"

    def _settings(self) -> dict[str, str]:
        settings = {**SETTINGS, **self.settings}
        if self.users:
            jaas = self.directory / "jaas.conf"
            (self.directory / "users").write_text("".join(f"{name}={word}\n" for name, word in self.users.items()))
            jaas.write_text(
                f'KafkaConnect {{ {_EXTENSION}.PropertyFileLoginModule required file="{jaas.parent}/users"; }};'
            )
            settings["rest.extension.classes"] = f"{_EXTENSION}.BasicAuthSecurityRestExtension"
            if self.name != CONNECT:
                settings["wherry.rest.jaas.file"] = str(jaas)
        return settings

    def _begun(self, directory: Path) -> RealConnect:
        """The real worker, started; on another port when somebody was quicker with the one that was free."""
        for attempt in range(PORTS_MAX):
            worker = self._connect(directory)
            try:
                return worker.launch() if self.users else worker.start()
            except PortTakenError:
                worker.close()
                if attempt + 1 == PORTS_MAX:
                    raise
        raise AssertionError("not reached")

    def _connect(self, directory: Path) -> RealConnect:
        # Its default way of looking for plugins takes 15 s longer to find the same ones.
        settings = {**self._settings(), "plugin.discovery": "service_load"}
        if self.distributed:
            settings |= {"group.id": f"peer-{self.suffix}"}
            settings |= {f"{kind}.storage.topic": f"peer-{self.suffix}-{kind}" for kind in STORED}
        else:
            settings |= {"offset.storage.file.filename": str(self.offsets_file)}
        login = [f"-Djava.security.auth.login.config={self.directory}/jaas.conf"] if self.users else []
        return RealConnect(
            bootstrap=self.bootstrap,
            mode="distributed" if self.distributed else "standalone",
            work_dir=directory,
            options=settings,
            jars=ensure_jars(EXTENSION) if self.users else (),
            jvm_options=[*JVM_OPTIONS, *login, *self.jvm_options],
        )

    def _cluster(self) -> list[Distributed]:
        """The leader, and the one that is asked; only the leader needs Spark, and it stays the leader."""
        return [
            Distributed(
                bootstrap=self.bootstrap,
                group=f"peer-{self.suffix}",
                settings={**self._settings(), "wherry.standby": standby},
            )
            for standby in ("warm", "cold")
        ]

    @property
    def _authorization(self) -> str | None:
        if not self.users:
            return None
        name, word = next(iter(self.users.items()))
        return basic(name, word)

    @property
    def leader(self) -> Rest:
        """The REST API of the one that leads, where there are several."""
        return self._leader.rest if isinstance(self._leader, Standalone) else self.rest

    def stop(self) -> None:
        """Stop it cleanly; its files stay."""
        for worker in (self._worker, self._leader):
            if worker is not None:
                worker.close()
        self._worker = self._leader = None

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
        """Send a request with its names, and return the answer with placeholders.

        Again, for a while, when the answer is that a rebalance goes on: Kafka Connect has one after every change,
        and whether a request comes into it is chance.
        """
        raw = None if raw is None else raw.replace(b"{x}", self.suffix.encode())
        answer = settled(
            lambda: self.rest.call(method, self.own(path), self.filled(body), raw=raw, headers=headers),
            REBALANCE_TIMEOUT_S,
        )
        return Answer(answer.status, self.neutral(answer.body), self.neutral(dict(answer.headers)))

    def _names(self) -> Mapping[str, str]:
        url = self.rest.url if self._worker is not None else "{url}"
        worker = self.leader.url if self._worker is not None else "{url}"
        names = {"{dir}": str(self.directory), "{x}": self.suffix, "{url}": url}
        return {**names, "{worker}": worker.removeprefix("http://")}


def basic(name: str, word: str) -> str:
    """What a client sends as `Authorization`."""
    return f"Basic {base64.b64encode(f'{name}:{word}'.encode()).decode()}"


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
        thread.join(LIFE_TIMEOUT_S)
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
