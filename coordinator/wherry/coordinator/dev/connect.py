"""The real Kafka Connect worker on this machine, from Kafka's own jars: what Wherry is compared with."""

from __future__ import annotations

import http.client
import urllib.request
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Literal, Self

from wherry.coordinator.config import properties
from wherry.coordinator.dev.errors import ServerStartError
from wherry.coordinator.dev.folders import server_folder
from wherry.coordinator.dev.ivy import Progress
from wherry.coordinator.dev.jars import CONNECT, class_path, ensure_jars
from wherry.coordinator.dev.java import find_java
from wherry.coordinator.dev.ports import LOOPBACK, free_ports, require_free
from wherry.coordinator.dev.process import KeptProcess, ServerCommand
from wherry.coordinator.dev.server import ProcessServer

READY_TIMEOUT_S = 120.0
HEALTH_TIMEOUT_S = 2.0
STOP_GRACE_S = 30.0

Mode = Literal["distributed", "standalone"]

# Those of Kafka's own start scripts: a peer that we had slowed down would prove nothing.
JVM_OPTIONS = (
    "-Xms256m",
    "-Xmx2g",
    "-server",
    "-XX:+UseG1GC",
    "-XX:MaxGCPauseMillis=20",
    "-XX:InitiatingHeapOccupancyPercent=35",
    "-XX:+ExplicitGCInvokesConcurrent",
    "-XX:MaxInlineLevel=15",
    "-Djava.awt.headless=true",
    "-XX:-UsePerfData",
)

_MAINS: Mapping[Mode, str] = {
    "distributed": "org.apache.kafka.connect.cli.ConnectDistributed",
    "standalone": "org.apache.kafka.connect.cli.ConnectStandalone",
}
_LOGGING = Path(__file__).with_name("log4j2.properties")


class RealConnect(ProcessServer):
    """One Kafka Connect worker. A context manager; may be started again after `stop` or `kill`."""

    def __init__(
        self,
        *,
        bootstrap: str,
        mode: Mode = "distributed",
        rest_port: int | None = None,
        host: str = LOOPBACK,
        plugin_path: Sequence[Path] = (),
        jars: Sequence[Path] = (),
        connectors: Sequence[Path] = (),
        options: Mapping[str, str] | None = None,
        jvm_options: Sequence[str] = JVM_OPTIONS,
        work_dir: Path | None = None,
        progress: Progress | None = None,
    ) -> None:
        """Describe the worker; nothing is started yet.

        Args:
            bootstrap: Kafka's address.
            mode: `distributed` keeps its state in Kafka, `standalone` in a file.
            rest_port: Where its REST interface listens; None takes a free one.
            host: Address to listen on.
            plugin_path: Folders of plugins.
            jars: What is beside its own jars on its class path, as REST extensions have to be.
            connectors: Files of connectors to begin with; standalone only.
            options: Worker settings that overrule ours.
            jvm_options: Options of its JVM, in place of those of Kafka's scripts.
            work_dir: Folder that is kept; None makes a temporary one that `close` deletes.
            progress: Told what is going on while jars are fetched.

        Raises:
            ServerStartError: Connector files are given to a distributed worker.
        """
        if connectors and mode != "standalone":
            raise ServerStartError(
                "A distributed Kafka Connect worker takes no connector files.", "Create connectors through REST."
            )
        self.host = host
        self.rest_port = rest_port if rest_port is not None else free_ports(1, host)[0]
        self._bootstrap = bootstrap
        self.mode: Mode = mode
        self._plugin_path = tuple(plugin_path)
        self._jars = tuple(jars)
        self._connectors = tuple(path.absolute() for path in connectors)
        self._options = dict(options or {})
        self._jvm_options = tuple(jvm_options)
        super().__init__(server_folder("connect", work_dir))
        self._progress = progress

    @property
    def rest_url(self) -> str:
        """Root of its REST interface, without a slash at the end."""
        return f"http://{self.host}:{self.rest_port}"

    @property
    def work_dir(self) -> Path:
        """The folder with the worker's settings, offsets and log."""
        return self._folder.path

    @property
    def log_path(self) -> Path:
        """The file that takes the worker's log."""
        return self.work_dir / "connect.log"

    def launch(self) -> Self:
        """Start the worker's process and return at once, for who measures how long it takes. See `start`."""
        if self.is_running:
            return self
        java = find_java()
        classes = class_path([*ensure_jars(CONNECT, self._progress), *self._jars])
        require_free(self.rest_port, "Kafka Connect's REST interface", self.host)
        settings = self.work_dir / "worker.properties"
        settings.write_text(properties.dumps(self._settings()))
        command = ServerCommand(
            name="The Kafka Connect worker",
            argv=[
                *(str(java.executable), *self._jvm_options, f"-Dlog4j2.configurationFile={_LOGGING}"),
                *("-cp", classes, _MAINS[self.mode], str(settings), *map(str, self._connectors)),
            ],
            log_path=self.log_path,
            directory=self.work_dir,
            grace_s=STOP_GRACE_S,
            remove=self._folder.removable,
        )
        self._process = KeptProcess(command)
        return self

    def start(self, timeout_s: float = READY_TIMEOUT_S) -> Self:
        """Start the worker and wait until its REST interface calls itself healthy. Does nothing when it runs.

        Raises:
            JavaError: No usable Java.
            ArtifactError: Its jars cannot be had.
            PortTakenError: Somebody listens on its port.
            ServerStartError: It ended or stayed silent.
        """
        if not self.is_running:
            self.launch()
            assert self._process is not None
            self._process.wait_until_ready(self.is_healthy, timeout_s)
        return self

    def is_healthy(self) -> bool:
        """Tell whether the REST interface answers that the worker is healthy."""
        try:
            with urllib.request.urlopen(f"{self.rest_url}/health", timeout=HEALTH_TIMEOUT_S) as answer:  # noqa: S310
                return bool(answer.status == 200)
        except (OSError, http.client.HTTPException):  # not there yet, or 503 while it starts
            return False

    def _settings(self) -> dict[str, str]:
        return {
            **worker_settings(self.mode, self._bootstrap, self.work_dir),
            **({"plugin.path": ",".join(map(str, self._plugin_path))} if self._plugin_path else {}),
            **self._options,
            "listeners": self.rest_url,
        }


def worker_settings(mode: Mode, bootstrap: str, work_dir: Path) -> dict[str, str]:
    """Return the settings of a worker that serves a developer: one node, everything at replication 1."""
    common = {
        "bootstrap.servers": bootstrap,
        "key.converter": "org.apache.kafka.connect.json.JsonConverter",
        "value.converter": "org.apache.kafka.connect.json.JsonConverter",
    }
    if mode == "standalone":
        return {**common, "offset.storage.file.filename": str(work_dir / "connect.offsets")}
    return {
        **common,
        "group.id": "connect-cluster",
        "config.storage.topic": "connect-configs",
        "offset.storage.topic": "connect-offsets",
        "status.storage.topic": "connect-status",
        "config.storage.replication.factor": "1",
        "offset.storage.replication.factor": "1",
        "status.storage.replication.factor": "1",
        "offset.storage.partitions": "5",
        "status.storage.partitions": "5",
    }
