"""What is compared: a running engine with a REST API, given Kafka Connect's own worker properties and connector JSON.

Both implementations differ only in the command that starts them and in how their processes are named.
"""

from __future__ import annotations

import json
import os
import shutil
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from tests.bench import limits
from tests.bench.jars import Jars
from tests.bench.processes import Launched, ProcessTree
from tests.bench.rest import Rest
from tests.bench.servers import free_port, java_environment, log4j_file

REPOSITORY = Path(__file__).resolve().parents[2]

# What Kafka's own connect-distributed.sh and kafka-run-class.sh give the worker's JVM.
CONNECT_JVM_OPTIONS = (
    "-Xms256M", "-Xmx2G", "-server", "-XX:+UseG1GC", "-XX:MaxGCPauseMillis=20",
    "-XX:InitiatingHeapOccupancyPercent=35", "-XX:+ExplicitGCInvokesConcurrent", "-Djava.awt.headless=true",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Connector:
    """A connector's name and configuration, as REST takes them."""

    name: str
    config: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class WorkerSettings:
    """What a flow asks of the worker, in Kafka Connect's property names."""

    key_converter: str = "org.apache.kafka.connect.storage.StringConverter"
    value_converter: str = "org.apache.kafka.connect.storage.StringConverter"
    flush_interval_ms: int = 1000
    extra: Mapping[str, str] = field(default_factory=dict)

    def properties(self, bootstrap: str, rest_port: int) -> dict[str, str]:
        """The part of worker.properties that both systems share, word for word."""
        return {
            "bootstrap.servers": bootstrap,
            "key.converter": self.key_converter,
            "value.converter": self.value_converter,
            "offset.flush.interval.ms": str(self.flush_interval_ms),
            "listeners": f"http://127.0.0.1:{rest_port}",
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


class _Launching:
    """What both systems share: a command under a keeper, a REST port, a log."""

    name: str

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        directory.mkdir(parents=True, exist_ok=True)
        self._launched: Launched | None = None
        self.started_at = 0.0

    def alive(self) -> bool:
        return self._launched is not None and self._launched.alive()

    def log_tail(self) -> str:
        return self._launched.log_tail() if self._launched is not None else ""

    def stop(self) -> float:
        if self._launched is None:
            return 0.0
        launched, self._launched = self._launched, None
        return launched.stop()

    def _launch(self, argv: Sequence[str], environment: Mapping[str, str], rest_port: int, *, wait: bool) -> None:
        self.rest = Rest(f"http://127.0.0.1:{rest_port}")
        self._launched = Launched(
            argv, log=self._directory / f"{self.name}.log", environment=environment, cwd=self._directory
        )
        self.started_at = self._launched.started_at
        self.tree = ProcessTree(self._launched.pid, self.role_of)
        if wait:
            try:
                self._launched.wait_until(self.rest.answers, what=self.name, seconds=limits.SYSTEM_START_SECONDS)
            except BaseException:
                self.stop()
                raise

    def role_of(self, command: str) -> str:
        """Names a process's part in the system."""
        return self.name

    def _write(self, name: str, properties: Mapping[str, str]) -> Path:
        path = self._directory / name
        path.write_text("".join(f"{key}={value}\n" for key, value in properties.items()))
        return path


class KafkaConnect(_Launching):
    """The real Kafka Connect worker, distributed, a group of one."""

    name = "connect"

    def __init__(self, directory: Path, *, jars: Jars, bootstrap: str, settings: WorkerSettings) -> None:
        super().__init__(directory)
        self._jars, self._bootstrap, self._settings = jars, bootstrap, settings
        self._group = f"bench-{directory.name}"

    def prepare(self, connectors: Sequence[Connector]) -> None:
        """Lives once before: a distributed worker finds its connectors in the config topic."""
        self.start()
        try:
            for connector in connectors:
                self.rest.create(connector.name, connector.config)
                self.rest.wait_running(connector.name, 1)
        finally:
            self.stop()

    def role_of(self, command: str) -> str:
        return "connect jvm" if "ConnectDistributed" in command else "other"

    def start(self, connectors: Sequence[Connector] = (), *, wait: bool = True) -> None:
        rest_port = free_port()
        properties = self._settings.properties(self._bootstrap, rest_port)
        properties |= {
            "group.id": self._group,
            "plugin.path": str(self._jars.plugins),
            "config.storage.topic": f"{self._group}-configs",
            "offset.storage.topic": f"{self._group}-offsets",
            "status.storage.topic": f"{self._group}-status",
            "config.storage.replication.factor": "1",
            "offset.storage.replication.factor": "1",
            "offset.storage.partitions": "5",
            "status.storage.replication.factor": "1",
        }
        path = self._write("connect-distributed.properties", properties)
        main = "org.apache.kafka.connect.cli.ConnectDistributed"
        log4j = f"-Dlog4j2.configurationFile={log4j_file(self._directory)}"
        argv = ["java", *CONNECT_JVM_OPTIONS, log4j, "-cp", f"{self._jars.connect}/*", main, str(path)]
        self._launch(argv, java_environment(), rest_port, wait=wait)


class WherryStandalone(_Launching):
    """`wherry standalone` from this work tree, given the same properties and connector JSON."""

    name = "wherry"

    def __init__(self, directory: Path, *, bootstrap: str, settings: WorkerSettings, plugin_path: str) -> None:
        super().__init__(directory)
        self._bootstrap, self._settings, self._plugin_path = bootstrap, settings, plugin_path

    def prepare(self, connectors: Sequence[Connector]) -> None:
        """Nothing: standalone takes connectors on its command line."""

    def start(self, connectors: Sequence[Connector] = (), *, wait: bool = True) -> None:
        rest_port = free_port()
        properties = self._settings.properties(self._bootstrap, rest_port)
        properties |= {
            "offset.storage.file.filename": str(self._directory / "offsets"),
            "plugin.path": self._plugin_path,
        }
        worker = self._write("worker.properties", properties)
        files = []
        for connector in connectors:
            path = self._directory / f"{connector.name}.json"
            path.write_text(json.dumps({"name": connector.name, "config": dict(connector.config)}))
            files.append(str(path))
        argv = [*_wherry_command(), "standalone", str(worker), *files]
        self._launch(argv, _wherry_environment(), rest_port, wait=wait)

    def role_of(self, command: str) -> str:
        """The coordinator, Spark's JVM, the lease workers that Spark forks, the sidecar host and the sidecars."""
        for words, role in _WHERRY_ROLES:
            if any(word in command for word in words):
                return role
        return "sidecar"


_WHERRY_ROLES: tuple[tuple[tuple[str, ...], str], ...] = (
    (("org.apache.spark",), "spark jvm"),
    (("pyspark.daemon", "wherry.worker.daemon", "wherry.worker.preload", "pyspark.worker"), "lease worker"),
    (("wherry.worker.host", "sidecar_host"), "sidecar host"),
    (("standalone",), "coordinator"),
    (("resource_tracker", "spawn_main", "spark-submit", "bash "), "helper"),
)


def _wherry_command() -> list[str]:
    installed = shutil.which("wherry", path=str(Path(sys.executable).parent))
    return [installed] if installed else [sys.executable, "-m", "wherry.coordinator.cli"]


def _wherry_environment() -> dict[str, str]:
    environment = java_environment()
    rooms = [str(REPOSITORY / room) for room in ("coordinator", "worker", "sdk/python")]
    environment["PYTHONPATH"] = os.pathsep.join([*rooms, *filter(None, [environment.get("PYTHONPATH")])])
    environment["PATH"] = os.pathsep.join([str(Path(sys.executable).parent), environment.get("PATH", "")])
    return environment
