"""A schema registry on this machine: Apicurio, from its published distribution, with its Confluent-compatible face."""

from __future__ import annotations

import http.client
import urllib.request
from pathlib import Path
from typing import Self

from wherry.coordinator.dev.errors import ServerStartError
from wherry.coordinator.dev.folders import server_folder
from wherry.coordinator.dev.ivy import Progress
from wherry.coordinator.dev.jars import ensure_plugin, jar_set
from wherry.coordinator.dev.java import find_java
from wherry.coordinator.dev.ports import LOOPBACK, free_ports, require_free
from wherry.coordinator.dev.process import KeptProcess, ServerCommand
from wherry.coordinator.dev.server import ProcessServer

# The last line of versions that Java 17 runs.
REGISTRY = jar_set("io.apicurio:apicurio-registry-app:2.6.13.Final:all@tar.gz")
READY_TIMEOUT_S = 180.0
HEALTH_TIMEOUT_S = 2.0
STOP_GRACE_S = 10.0
JVM_OPTIONS = ("-Xmx500m", "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-XX:-UsePerfData")
_MAIN = "io.quarkus.runner.GeneratedMain"


class LocalRegistry(ProcessServer):
    """One schema registry that keeps its schemas in memory. A context manager."""

    def __init__(self, *, port: int | None = None, host: str = LOOPBACK, progress: Progress | None = None) -> None:
        """Describe the registry; nothing is started yet.

        Args:
            port: Where it listens; None takes a free one.
            host: Address to listen on.
            progress: Told what is going on while it is fetched.
        """
        self.host = host
        self.port = port if port is not None else free_ports(1, host)[0]
        self._progress = progress
        super().__init__(server_folder("registry", None))

    @property
    def url(self) -> str:
        """What `schema.registry.url` takes."""
        return f"http://{self.host}:{self.port}/apis/ccompat/v7"

    @property
    def log_path(self) -> Path:
        """The file that takes its log."""
        return self._folder.path / "registry.log"

    def start(self, timeout_s: float = READY_TIMEOUT_S) -> Self:
        """Start it and wait until it answers.

        Raises:
            JavaError: No usable Java.
            ArtifactError: It cannot be had.
            ServerStartError: It ended or stayed silent.
        """
        folder = ensure_plugin(REGISTRY, self._progress)
        runner = next(folder.rglob("*-runner.jar"), None)
        if runner is None:
            raise ServerStartError("The schema registry's distribution has no runner.", "Delete it from the cache.")
        java = find_java()
        require_free(self.port, "The schema registry", self.host)
        command = ServerCommand(
            name="The schema registry",
            argv=[
                *(str(java.executable), *JVM_OPTIONS),
                *(f"-Dquarkus.http.host={self.host}", f"-Dquarkus.http.port={self.port}"),
                *("-cp", f"{runner}:{runner.parent / 'lib'}/*", _MAIN),
            ],
            log_path=self.log_path,
            directory=self._folder.path,
            grace_s=STOP_GRACE_S,
            remove=self._folder.removable,
        )
        self._process = KeptProcess(command)
        self._process.wait_until_ready(self.is_healthy, timeout_s)
        return self

    def is_healthy(self) -> bool:
        """Tell whether it answers."""
        try:
            with urllib.request.urlopen(f"{self.url}/subjects", timeout=HEALTH_TIMEOUT_S) as answer:  # noqa: S310
                return bool(answer.status == 200)
        except (OSError, http.client.HTTPException):
            return False
