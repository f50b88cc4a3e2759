"""The real MirrorMaker 2 on this machine, in its dedicated mode: what mirrors are compared with."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Self

from wherry.coordinator.config import properties
from wherry.coordinator.dev.connect import JVM_OPTIONS, STOP_GRACE_S
from wherry.coordinator.dev.folders import server_folder
from wherry.coordinator.dev.ivy import Progress
from wherry.coordinator.dev.jars import CONNECT, KAFKA_VERSION, class_path, ensure_jars, jar_set
from wherry.coordinator.dev.java import find_java
from wherry.coordinator.dev.process import KeptProcess, ServerCommand
from wherry.coordinator.dev.server import ProcessServer

MIRROR = jar_set(f"org.apache.kafka:connect-mirror:{KAFKA_VERSION}")
READY_TIMEOUT_S = 120.0
_MAIN = "org.apache.kafka.connect.mirror.MirrorMaker"
_STARTED = "Kafka MirrorMaker started"
_LOGGING = Path(__file__).with_name("log4j2.properties")


class RealMirrorMaker(ProcessServer):
    """One MirrorMaker with all flows of its file. A context manager.

    Args:
        settings: What its file says.
        work_dir: Folder that is kept; None makes a temporary one that `close` deletes.
        progress: Told what is going on while jars are fetched.
    """

    def __init__(
        self, settings: Mapping[str, str], *, work_dir: Path | None = None, progress: Progress | None = None
    ) -> None:
        self._settings = dict(settings)
        super().__init__(server_folder("mirrormaker", work_dir))
        self._progress = progress

    @property
    def log_path(self) -> Path:
        """The file that takes its log."""
        return self._folder.path / "mirrormaker.log"

    def start(self, timeout_s: float = READY_TIMEOUT_S) -> Self:
        """Start it and wait until it says that all flows are started.

        Raises:
            JavaError: No usable Java.
            ArtifactError: Its jars cannot be had.
            ServerStartError: It ended or stayed silent.
        """
        java = find_java()
        # The worker's jars come first, so that what both have is of one version.
        classes = class_path([*ensure_jars(CONNECT, self._progress), *ensure_jars(MIRROR, self._progress)])
        file = self._folder.path / "mm2.properties"
        file.write_text(properties.dumps(self._settings))
        command = ServerCommand(
            name="MirrorMaker",
            argv=[
                *(str(java.executable), *JVM_OPTIONS, f"-Dlog4j2.configurationFile={_LOGGING}"),
                *("-cp", classes, _MAIN, str(file)),
            ],
            log_path=self.log_path,
            directory=self._folder.path,
            grace_s=STOP_GRACE_S,
            remove=self._folder.removable,
        )
        self._process = KeptProcess(command)
        self._process.wait_until_ready(self._has_started, timeout_s)
        return self

    def _has_started(self) -> bool:
        return self.log_path.exists() and _STARTED in self.log_path.read_text(errors="replace")
