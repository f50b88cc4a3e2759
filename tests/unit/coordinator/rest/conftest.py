"""A herder of a few lines, and a way to send requests to the application without a server."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import anyio
import pytest

from wherry.contract.position import Position
from wherry.coordinator.api import (
    AlreadyExistsError,
    BadRequestError,
    ConfigInfo,
    ConfigInfos,
    ConfigKeyInfo,
    ConfigValueInfo,
    ConnectorDetail,
    ConnectorInfo,
    ConnectorStateInfo,
    ConnectorStatus,
    ConnectorType,
    Health,
    InternalVerifier,
    LeaseInfo,
    NotFoundError,
    Overlap,
    PluginInfo,
    RestartInfo,
    RestartNote,
    ServerInfo,
    SidecarInfo,
    SplitCounts,
    State,
    TargetState,
    TaskDetail,
    TaskStatus,
)
from wherry.coordinator.rest.app import App

WORKER = "127.0.0.1:8083"


@dataclass
class FakeHerder:
    """Keeps connectors in a dict and remembers what it was asked to do."""

    configs: dict[str, dict[str, str]] = field(default_factory=dict)
    states: dict[str, State] = field(default_factory=dict)
    initial: dict[str, TargetState | None] = field(default_factory=dict)
    calls: list[tuple[object, ...]] = field(default_factory=list)
    positions: list[Position] = field(default_factory=list)
    health_status: str = "healthy"
    failing: Exception | None = None
    verifier: InternalVerifier | None = None

    def connectors(self) -> list[str]:
        if self.failing:
            raise self.failing
        return list(self.configs)

    def connector(self, name: str) -> ConnectorInfo:
        self._known(name, "Connector {} not found")
        return ConnectorInfo(name, self.configs[name], (0, 1), ConnectorType.SOURCE)

    def put_config(
        self,
        name: str,
        config: Mapping[str, str | None],
        *,
        initial_state: TargetState | None = None,
        create_only: bool = False,
    ) -> tuple[bool, ConnectorInfo]:
        if config.get("tasks.max") == "dog":
            raise BadRequestError("Connector configuration is invalid")
        if create_only and name in self.configs:
            raise AlreadyExistsError(f"Connector {name} already exists")
        created = name not in self.configs
        self.configs[name] = {key: value for key, value in config.items() if value is not None}
        self.initial[name] = initial_state
        return created, self.connector(name)

    def patch_config(self, name: str, patch: Mapping[str, str | None]) -> ConnectorInfo:
        self._known(name, "Connector {} not found")
        for key, value in patch.items():
            if value is None:
                self.configs[name].pop(key, None)
            else:
                self.configs[name][key] = value
        return self.connector(name)

    def delete(self, name: str) -> None:
        self._known(name, "Connector {} not found")
        del self.configs[name]

    def status(self, name: str) -> ConnectorStateInfo:
        self._known(name, "No status found for connector {}")
        tasks = (TaskStatus(1, State.FAILED, WORKER, trace="boom"), TaskStatus(0, State.RUNNING, WORKER, version="1"))
        connector = ConnectorStatus(self.states.get(name, State.RUNNING), WORKER, version="1")
        return ConnectorStateInfo(name, connector, tasks, ConnectorType.SOURCE)

    def task_status(self, name: str, task: int) -> TaskStatus:
        if name not in self.configs or task not in (0, 1):
            raise NotFoundError(f"No status found for task {name}-{task}")
        return TaskStatus(task, State.RUNNING, WORKER)

    def task_configs(self, name: str) -> list[dict[str, str]]:
        self._known(name, "Connector {} not found")
        return [{"task.class": "T", "n": "0"}, {"task.class": "T", "n": "1"}]

    def pause(self, name: str) -> None:
        self._known(name, "Unknown connector {}")
        self.calls.append(("pause", name))

    def resume(self, name: str) -> None:
        self._known(name, "Unknown connector {}")
        self.calls.append(("resume", name))

    def stop(self, name: str) -> None:
        self._known(name, "Unknown connector {}")
        self.calls.append(("stop", name))

    def restart(self, name: str, *, include_tasks: bool, only_failed: bool) -> ConnectorStateInfo | None:
        self._known(name, "Unknown connector: {}")
        self.calls.append(("restart", name, include_tasks, only_failed))
        return self.status(name) if include_tasks or only_failed else None

    def restart_task(self, name: str, task: int) -> None:
        self._known(name, "Unknown connector: {}")
        self.calls.append(("restart_task", name, task))

    def offsets(self, name: str) -> list[Position]:
        self._known(name, "Connector {} not found")
        return self.positions

    def alter_offsets(self, name: str, positions: Sequence[Position] | None) -> str:
        self._known(name, "Connector {} not found")
        self.calls.append(("alter_offsets", name, positions))
        return "done"

    def topics(self, name: str) -> list[str]:
        return ["t"] if name in self.configs else []

    def reset_topics(self, name: str) -> None:
        self.calls.append(("reset_topics", name))

    def plugins(self, *, connectors_only: bool = True) -> list[PluginInfo]:
        found = [PluginInfo("a.B", "source", "1")]
        return found if connectors_only else [*found, PluginInfo("c.D", "converter")]

    def plugin_config(self, plugin: str, version: str | None = None) -> list[ConfigKeyInfo]:
        if plugin != "B":
            raise NotFoundError(f"Unknown plugin {plugin}.")
        return [ConfigKeyInfo("k", "INT", False, "1", "LOW", "doc", None, -1, "NONE", "k")]

    def validate(self, plugin: str, config: Mapping[str, str | None]) -> ConfigInfos:
        values = [ConfigInfo(None, ConfigValueInfo(key, value, errors=("bad",))) for key, value in config.items()]
        return ConfigInfos(plugin, ("Common",), tuple(values))

    def internal_verifier(self) -> InternalVerifier | None:
        return self.verifier

    def server_info(self) -> ServerInfo:
        return ServerInfo("cluster")

    def health(self) -> Health:
        return Health(self.health_status, "fine")

    def details(self, name: str | None = None) -> list[ConnectorDetail]:
        if name is not None:
            self._known(name, "Connector {} not found")
        task = TaskDetail(0, "parked", True, 1, None, 5, "", ("t-0",), 7, 2, 10, 9, 1, 2, 1, 0, 1, 1, 0, 5)
        names = list(self.configs) if name is None else [name]
        return [
            ConnectorDetail(each, "running", 3, 0, None, "", False, None, SplitCounts(1, 2, 0), (task,))
            for each in names
        ]

    def leases(self) -> list[LeaseInfo]:
        return [LeaseInfo("c", 0, 3, "RUNNING")]

    def overlaps(self) -> list[Overlap]:
        return [Overlap(("a", "b"), "a and b meet")]

    def restarts(self) -> list[RestartInfo]:
        return [RestartInfo("good", 0, 2, 10, 1500, "it broke")]

    def restart_history(self, name: str) -> list[RestartNote]:
        self._known(name, "Connector {} not found")
        return [RestartNote(1_700_000_000_000, 0, "failed", "TRANSIENT", "it broke", 2, 4_000)]

    def sidecars(self) -> list[SidecarInfo]:
        return [SidecarInfo("p", "c", 3, 42, "unix:///x")]

    def _known(self, name: str, message: str) -> None:
        if name not in self.configs:
            raise NotFoundError(message.format(name))


@dataclass(frozen=True)
class Answer:
    """What came back."""

    status: int
    headers: Mapping[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)

    @property
    def message(self) -> str:
        return str(self.json["message"])


Ask = Callable[..., Answer]


@pytest.fixture
def herder() -> FakeHerder:
    return FakeHerder(configs={"c": {"name": "c", "connector.class": "B"}})


@pytest.fixture
def ask(herder: FakeHerder) -> Ask:
    app = App(herder, version="0.1.0")

    def send(method: str, target: str, body: object = None, **headers: str) -> Answer:
        return _request(app, method, target, body, **headers)

    return send


@pytest.fixture
def request_to() -> Ask:
    """For tests that make an application of their own: `request_to(app, method, target, …)`."""
    return _request


def _request(app: App, method: str, target: str, body: object = None, **headers: str) -> Answer:
    async def run() -> Answer:
        return await asked(app, method, target, body, **headers)

    return anyio.run(run)


async def asked(app: App, method: str, target: str, body: object = None, **headers: str) -> Answer:
    """Send one request. A body that is no bytes is sent as JSON; header names have _ for -, None leaves one out."""
    content = b"" if body is None else body if isinstance(body, bytes) else json.dumps(body).encode()
    sent = {"host": "worker:8083", **{name.replace("_", "-"): value for name, value in headers.items()}}
    if body is not None:
        sent.setdefault("content-type", "application/json")
        sent["content-length"] = str(len(content))
    path, _, query = target.partition("?")
    scope = {
        "type": "http",
        "method": method,
        "scheme": "http",
        "path": path,
        "raw_path": path.encode(),
        "query_string": query.encode(),
        "headers": [(name.encode(), value.encode()) for name, value in sent.items() if value],
        "server": ("worker", 8083),
    }
    messages: list[Any] = []

    async def receive() -> dict[str, object]:
        return {"type": "http.request", "body": content, "more_body": False}

    async def send(message: Any) -> None:
        messages.append(message)

    await app(scope, receive, send)
    return Answer(
        messages[0]["status"],
        {name.decode().lower(): value.decode() for name, value in messages[0]["headers"]},
        b"".join(message.get("body", b"") for message in messages[1:]),
    )
