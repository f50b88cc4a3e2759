"""A real Kafka broker on this machine: one node, KRaft, from Kafka's own jars, ready in a second or two."""

from __future__ import annotations

import base64
import contextlib
import hashlib
import os
import shutil
import subprocess
import time
import uuid
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Self

from wherry.contract.cache import cache_folder
from wherry.coordinator.config import properties
from wherry.coordinator.dev.errors import ServerStartError
from wherry.coordinator.dev.folders import server_folder
from wherry.coordinator.dev.ivy import Progress
from wherry.coordinator.dev.jars import BROKER, KAFKA_VERSION, class_path, ensure_jars
from wherry.coordinator.dev.java import Java, find_java
from wherry.coordinator.dev.ports import LOOPBACK, accepts_connections, free_ports, require_free
from wherry.coordinator.dev.process import KeptProcess, ServerCommand
from wherry.coordinator.dev.server import ProcessServer

READY_TIMEOUT_S = 60.0
METADATA_TIMEOUT_S = 1.0
FORMAT_TIMEOUT_S = 60.0
STOP_GRACE_S = 15.0
SCRATCH_AGE_MAX_S = 3600.0
NODE_ID = 1

# Starting quickly and staying small matter more here than peak throughput: no second compiler, one GC thread.
JVM_OPTIONS = (
    "-Xms64m",
    "-Xmx400m",
    "-XX:+UseSerialGC",
    "-XX:TieredStopAtLevel=1",
    "-XX:+ExitOnOutOfMemoryError",
    "-XX:-UsePerfData",  # leaves no file in the temporary folder
    "-Djava.awt.headless=true",
)

_LOGGING = Path(__file__).with_name("log4j2.properties")


class EmbeddedKafka(ProcessServer):
    """One broker. A context manager; may be started again on the same ports and data after `stop` or `kill`."""

    def __init__(
        self,
        *,
        port: int | None = None,
        controller_port: int | None = None,
        data_dir: Path | None = None,
        host: str = LOOPBACK,
        options: Mapping[str, str] | None = None,
        jvm_options: Sequence[str] = JVM_OPTIONS,
        progress: Progress | None = None,
    ) -> None:
        """Describe the broker; nothing is started yet.

        Args:
            port: Where clients connect; None takes a free one.
            controller_port: Where the broker talks to itself; None takes a free one.
            data_dir: Folder that is kept; None makes a temporary one that `close` deletes.
            host: Address to listen on and to tell clients.
            options: Broker settings that overrule ours.
            jvm_options: Options of its JVM, in place of ours.
            progress: Told what is going on while jars are fetched.
        """
        chosen = iter(free_ports(2, host))
        self.host = host
        self.port = port if port is not None else next(chosen)
        self.controller_port = controller_port if controller_port is not None else next(chosen)
        super().__init__(server_folder("kafka", data_dir))
        self._options = dict(options or {})
        self._jvm_options = tuple(jvm_options)
        self._progress = progress
        self._archive: ClassArchive | None = None

    @property
    def bootstrap(self) -> str:
        """The address for `bootstrap.servers`."""
        return f"{self.host}:{self.port}"

    @property
    def data_dir(self) -> Path:
        """The folder with the broker's data, settings and log."""
        return self._folder.path

    @property
    def log_path(self) -> Path:
        """The file that takes the broker's log."""
        return self.data_dir / "broker.log"

    def start(self, timeout_s: float = READY_TIMEOUT_S) -> Self:
        """Start the broker and wait until it answers a metadata request. Does nothing when it runs.

        Raises:
            JavaError: No usable Java.
            ArtifactError: Its jars cannot be had.
            PortTakenError: Somebody listens on one of its ports.
            ServerStartError: It ended or stayed silent.
        """
        if self.is_running:
            return self
        java = find_java()
        classes = class_path(ensure_jars(BROKER, self._progress))
        require_free(self.port, "the Kafka broker", self.host)
        require_free(self.controller_port, "the Kafka controller", self.host)
        settings = self.data_dir / "server.properties"
        settings.write_text(properties.dumps(self._settings()))
        format_storage(self._log_dir, settings, java, classes)
        self._archive = ClassArchive(java, classes)
        self._process = KeptProcess(self._command(java, classes, settings))
        self._process.wait_until_ready(_metadata_check(self.host, self.port), timeout_s)
        return self

    def stop(self) -> None:
        """Shut the broker down cleanly and keep its data. Does nothing when it does not run."""
        if self._process is not None:
            self._process.stop()
            if self._archive is not None:
                self._archive.adopt()

    @property
    def _log_dir(self) -> Path:
        return self.data_dir / "data"

    def _settings(self) -> dict[str, str]:
        return {**broker_settings(self.host, self.port, self.controller_port, self._log_dir), **self._options}

    def _command(self, java: Java, classes: str, settings: Path) -> ServerCommand:
        assert self._archive is not None
        return ServerCommand(
            name="The Kafka broker",
            argv=[
                *(str(java.executable), *self._jvm_options, *self._archive.jvm_options),
                f"-Dlog4j2.configurationFile={_LOGGING}",
                *("-cp", classes, "kafka.Kafka", str(settings)),
            ],
            log_path=self.log_path,
            directory=self.data_dir,
            grace_s=STOP_GRACE_S,
            remove=self._folder.removable,
        )


def broker_settings(host: str, port: int, controller_port: int, log_dir: Path) -> dict[str, str]:
    """Return the settings of a single node that serves a developer: small, quick, everything at replication 1."""
    return {
        "process.roles": "broker,controller",
        "node.id": str(NODE_ID),
        # Static voters: unlike a dynamic quorum they let the same data start again on another port.
        "controller.quorum.voters": f"{NODE_ID}@{host}:{controller_port}",
        "listeners": f"PLAINTEXT://{host}:{port},CONTROLLER://{host}:{controller_port}",
        "advertised.listeners": f"PLAINTEXT://{host}:{port}",
        "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT",
        "controller.listener.names": "CONTROLLER",
        "inter.broker.listener.name": "PLAINTEXT",
        "log.dirs": str(log_dir),
        "auto.create.topics.enable": "true",
        "default.replication.factor": "1",
        "min.insync.replicas": "1",
        "offsets.topic.replication.factor": "1",
        "offsets.topic.num.partitions": "8",
        "transaction.state.log.replication.factor": "1",
        "transaction.state.log.min.isr": "1",
        "transaction.state.log.num.partitions": "8",
        "share.coordinator.state.topic.replication.factor": "1",
        "share.coordinator.state.topic.min.isr": "1",
        "share.coordinator.state.topic.num.partitions": "8",
        "group.initial.rebalance.delay.ms": "0",
        # A crashed broker's registration bars its successor until its session is over; the default is 9 s.
        "broker.session.timeout.ms": "3000",
        "broker.heartbeat.interval.ms": "500",
        # Records that were given an old time would be gone half a minute after the start, now and then unread.
        "log.retention.ms": "-1",
        "num.network.threads": "2",
        "num.io.threads": "4",
        # Allocated at start whether the cleaner works or not; the default is a third of our heap.
        "log.cleaner.dedupe.buffer.size": str(16 * 1024 * 1024),
    }


def format_storage(log_dir: Path, settings: Path, java: Java, classes: str) -> None:
    """Make `log_dir` a formatted data folder of a new cluster, unless it is one.

    Kafka's tool takes a JVM run of about a second. What it writes beside the ids is the same for every cluster of a
    version, so it is remembered.

    Raises:
        ServerStartError: The tool failed.
    """
    if (log_dir / "meta.properties").exists():
        return
    remembered = _broker_cache() / "bootstrap.checkpoint"
    if not remembered.is_file():
        _run_storage_tool(settings, java, classes)
        with contextlib.suppress(OSError):  # a read-only cache costs the second each time
            _copy_whole(log_dir / "bootstrap.checkpoint", remembered)
        return
    log_dir.mkdir(parents=True, exist_ok=True)
    shutil.copyfile(remembered, log_dir / "bootstrap.checkpoint")
    identity = {"version": "1", "node.id": str(NODE_ID), "cluster.id": _kafka_id(), "directory.id": _kafka_id()}
    # Last: it is what makes the folder count as formatted.
    (log_dir / "meta.properties").write_text(properties.dumps(identity))


class ClassArchive:
    """Java's archive of loaded classes, which brings the broker's start from three seconds to one.

    The first broker of a cache writes it when it ends; all later ones map it. One that does not fit is ignored by Java.
    """

    def __init__(self, java: Java, classes: str) -> None:
        """Name the archive for this Java and these jars."""
        told = hashlib.sha256(f"{java.executable} {java.version} {classes}".encode()).hexdigest()[:12]
        self._path = _broker_cache() / f"classes-{told}.jsa"
        self._scratch = self._path.with_name(f"{self._path.name}.{uuid.uuid4().hex}")

    @property
    def jvm_options(self) -> list[str]:
        """What makes a JVM use the archive, or write it when there is none."""
        if self._path.is_file():
            return [f"-XX:SharedArchiveFile={self._path}", "-Xshare:auto"]
        try:
            self._path.parent.mkdir(parents=True, exist_ok=True)
        except OSError:
            return []
        return [f"-XX:ArchiveClassesAtExit={self._scratch}", "-Xlog:cds=off", "-Xlog:cds+dynamic=off"]

    def adopt(self) -> None:
        """Take over the archive that an ended JVM has written, if it has."""
        with contextlib.suppress(OSError):
            self._scratch.replace(self._path)
            # Those of brokers whose owners were killed before they could do this. At 50 MB each they are worth a look.
            for leftover in self._path.parent.glob("classes-*.jsa.*"):
                if time.time() - leftover.stat().st_mtime > SCRATCH_AGE_MAX_S:
                    leftover.unlink()


def _broker_cache() -> Path:
    return cache_folder() / f"kafka-{KAFKA_VERSION}"


def _run_storage_tool(settings: Path, java: Java, classes: str) -> None:
    command = [
        *(str(java.executable), "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-XX:-UsePerfData"),
        *("-cp", classes, "kafka.tools.StorageTool", "format", "-t", _kafka_id(), "-c", str(settings)),
    ]
    try:
        formatted = subprocess.run(
            command, capture_output=True, text=True, errors="replace", timeout=FORMAT_TIMEOUT_S, check=False
        )
    except subprocess.TimeoutExpired as error:
        raise ServerStartError(f"Formatting Kafka's data folder took more than {FORMAT_TIMEOUT_S:g} s.") from error
    if formatted.returncode != 0:
        told = " ".join((formatted.stderr + formatted.stdout).split())[-500:]
        raise ServerStartError(f"Kafka's data folder cannot be formatted: {told}")


def _copy_whole(source: Path, target: Path) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    scratch = target.with_name(f"{target.name}.{os.getpid()}")
    shutil.copyfile(source, scratch)
    scratch.replace(target)


def _kafka_id() -> str:
    # Kafka writes ids in URL-safe base64 without padding and never begins one with a dash.
    while (text := base64.urlsafe_b64encode(uuid.uuid4().bytes).decode().rstrip("=")).startswith("-"):
        continue
    return text


def _metadata_check(host: str, port: int) -> Callable[[], bool]:
    """Return a function that tells whether the broker answers a metadata request and names itself in it."""
    from confluent_kafka import KafkaException
    from confluent_kafka.admin import AdminClient

    clients: list[AdminClient] = []

    def is_ready() -> bool:
        if not accepts_connections(port, host):
            return False
        if not clients:
            # The library's own log lines about refused connections would only alarm whoever waits.
            clients.append(AdminClient({"bootstrap.servers": f"{host}:{port}", "log_level": 0}))
        try:
            return NODE_ID in clients[0].list_topics(timeout=METADATA_TIMEOUT_S).brokers
        except KafkaException:
            return False

    return is_ready
