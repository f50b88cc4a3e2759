"""What is compared: a running engine with a REST API, given Kafka Connect's own worker properties and connector JSON.

Both implementations differ only in the command that starts them and in how their processes are named.
"""

from __future__ import annotations

import functools
import json
import os
import runpy
import shutil
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from tests.bench import limits
from tests.bench.figures import CONNECT, WHERRY
from tests.bench.processes import Launched, ProcessTree, started_at
from tests.bench.rest import Rest

from wherry.coordinator.dev.connect import RealConnect
from wherry.coordinator.dev.ports import free_ports

REPOSITORY = Path(__file__).resolve().parents[2]


@dataclass(frozen=True, slots=True)
class Connector:
    """A connector's name and configuration, as REST takes them."""

    name: str
    config: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class WorkerSettings:
    """What a flow asks of the worker, in Kafka Connect's property names; `distributed` is for Wherry.

    Wherry runs standalone otherwise. Kafka Connect is always distributed, as it is in production.
    """

    key_converter: str = "org.apache.kafka.connect.storage.StringConverter"
    value_converter: str = "org.apache.kafka.connect.storage.StringConverter"
    flush_interval_ms: int = 1000
    extra: Mapping[str, str] = field(default_factory=dict)
    distributed: bool = False

    def properties(self) -> dict[str, str]:
        """The part of worker.properties that both systems share, word for word."""
        return {
            "key.converter": self.key_converter,
            "value.converter": self.value_converter,
            "offset.flush.interval.ms": str(self.flush_interval_ms),
            "connector.client.config.override.policy": "All",
            **self.extra,
        }


class System(Protocol):
    """One of the two engines."""

    name: str
    rest: Rest
    tree: ProcessTree
    started_at: float

    def prepare(self, connectors: Sequence[Connector]) -> None:
        """Does before a start whatever makes the system find these connectors configured."""

    def start(self, connectors: Sequence[Connector] = (), *, wait: bool = True) -> None:
        """Starts it, with these prepared connectors; returns when REST answers, or at once."""

    def alive(self) -> bool:
        """Whether it was started and still runs."""

    def log_tail(self) -> str:
        """The last lines of its output."""

    def stop(self) -> float:
        """Stops it; the seconds it took."""

    def leftovers(self) -> list[str]:
        """The processes that outlived the last stop and had to be killed."""


class ConnectDistributed:
    """The real Kafka Connect worker, distributed, a group of one."""

    name = CONNECT

    def __init__(self, directory: Path, *, plugins: Sequence[Path], bootstrap: str, settings: WorkerSettings) -> None:
        group = f"bench-{directory.name}"
        directory.mkdir(parents=True)
        self._worker = RealConnect(
            bootstrap=bootstrap,
            plugin_path=plugins,
            work_dir=directory,
            options={
                **settings.properties(),
                **_cluster(group),
            },
        )
        self.rest = Rest(self._worker.rest_url)
        self.started_at = 0.0

    def prepare(self, connectors: Sequence[Connector]) -> None:
        """Lives once before: a distributed worker finds its connectors in the config topic."""
        self.start()
        try:
            for connector in connectors:
                self.rest.create(connector.name, connector.config)
                self.rest.wait_running(connector.name, 1)
        finally:
            self.stop()

    def start(self, connectors: Sequence[Connector] = (), *, wait: bool = True) -> None:
        if wait:
            self._worker.start(limits.SYSTEM_START_SECONDS)
        else:
            self._worker.launch()
        self.started_at = started_at(self._worker.pid)
        self.tree = ProcessTree(self._worker.pid, lambda *_: "connect jvm")

    def alive(self) -> bool:
        return self._worker.is_running

    def log_tail(self) -> str:
        return self._worker.last_words()

    def leftovers(self) -> list[str]:
        return []  # it is one process

    def stop(self) -> float:
        begun = time.monotonic()
        self._worker.stop()
        return time.monotonic() - begun


class WherryStandalone:
    """`wherry standalone` from this work tree, given the same properties and connector JSON.

    It runs under the harness's own keeper: its tree of processes is deep and changes while it works.
    """

    name = WHERRY
    command = "standalone"

    def __init__(self, directory: Path, *, bootstrap: str, settings: WorkerSettings, plugin_path: str) -> None:
        self._directory = directory
        self._bootstrap, self._settings, self._plugin_path = bootstrap, settings, plugin_path
        self._launched: Launched | None = None
        self._leftovers: list[str] = []
        directory.mkdir(parents=True)
        self.started_at = 0.0

    def of_mode(self) -> dict[str, str]:
        """The settings that the mode demands."""
        return {"offset.storage.file.filename": str(self._directory / "offsets")}

    def prepare(self, connectors: Sequence[Connector]) -> None:
        """Nothing: standalone takes connectors on its command line."""

    def start(self, connectors: Sequence[Connector] = (), *, wait: bool = True) -> None:
        rest_port = free_ports(1)[0]
        worker = self._directory / "worker.properties"
        settings = {
            "bootstrap.servers": self._bootstrap,
            **self._settings.properties(),
            "listeners": f"http://127.0.0.1:{rest_port}",
            **self.of_mode(),
            "plugin.path": self._plugin_path,
        }
        worker.write_text("".join(f"{key}={value}\n" for key, value in settings.items()))
        files = []
        for connector in connectors:
            path = self._directory / f"{connector.name}.json"
            path.write_text(json.dumps({"name": connector.name, "config": dict(connector.config)}))
            files.append(str(path))
        self.rest = Rest(f"http://127.0.0.1:{rest_port}")
        self._launched = Launched(
            [*_wherry_command(), self.command, str(worker), *files],
            log=self._directory / "wherry.log",
            environment=_wherry_environment(),
            cwd=self._directory,
        )
        self.started_at = self._launched.started_at
        self.tree = ProcessTree(self._launched.pid, wherry_role, count_root=False)
        if wait:
            try:
                self._launched.wait_until(self.rest.answers, what=self.name, seconds=limits.SYSTEM_START_SECONDS)
            except BaseException:
                self.stop()
                raise

    def alive(self) -> bool:
        return self._launched is not None and self._launched.alive()

    def log_tail(self) -> str:
        return self._launched.log_tail() if self._launched is not None else ""

    def stop(self) -> float:
        if self._launched is None:
            return 0.0
        seconds = self._launched.stop()
        self._leftovers = self._launched.leftovers()
        self._launched = None
        return seconds

    def leftovers(self) -> list[str]:
        return self._leftovers


class WherryDistributed(WherryStandalone):
    """`wherry distributed`, a group of one: what exactly-once sources need."""

    command = "distributed"

    def of_mode(self) -> dict[str, str]:
        """The settings that the mode demands."""
        factors = {f"{kind}.storage.replication.factor": "1" for kind in ("config", "offset", "status")}
        return {**_cluster(f"bench-{self._directory.name}"), **factors}


_WHERRY_ROLES: tuple[tuple[str, str], ...] = (
    ("org.apache.spark", "spark jvm"),
    ("warden.py", "sidecar warden"),
    ("wherry.worker.host", "host of sidecars"),
    (" standalone ", "coordinator"),
    (" distributed ", "coordinator"),
)
_FORKING_DAEMONS = ("wherry.worker.daemon", "pyspark.daemon")


def wherry_role(command: str, parent_command: str) -> str:
    """Coordinator, Spark's JVM, the daemon that forks lease workers, those, host, warden, or else a sidecar."""
    for word, role in _WHERRY_ROLES:
        if word in command:
            return role
    if any(daemon in command for daemon in _FORKING_DAEMONS):
        return "lease worker" if command == parent_command else "lease daemon"
    return "sidecar"


@functools.cache
def native_helper() -> str:
    """Builds the workers' compiled helper, and says whether they use it."""
    if os.environ.get("WHERRY_NATIVE", "").lower() in {"off", "false", "0"}:
        return "off"
    compiling = runpy.run_path(str(REPOSITORY / "worker" / "native" / "compile.py"))["compile_library"]
    trouble = compiling()
    return f"not built: {trouble.splitlines()[0]}" if trouble else "on"


def _cluster(group: str) -> dict[str, str]:
    topics = {f"{kind}.storage.topic": f"{group}-{kind}" for kind in ("config", "offset", "status")}
    return {"group.id": group, **topics}


def _wherry_command() -> list[str]:
    installed = shutil.which("wherry", path=str(Path(sys.executable).parent))
    return [installed] if installed else [sys.executable, "-m", "wherry.coordinator.cli"]


def _wherry_environment() -> dict[str, str]:
    environment = dict(os.environ)
    rooms = [str(REPOSITORY / room) for room in ("coordinator", "worker", "sdk/python")]
    environment["PYTHONPATH"] = os.pathsep.join([*rooms, *filter(None, [environment.get("PYTHONPATH")])])
    environment["PATH"] = os.pathsep.join([str(Path(sys.executable).parent), environment.get("PATH", "")])
    return environment
