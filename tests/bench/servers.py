"""The two servers both systems work against: a single-node KRaft broker and a PostgreSQL cluster.

Both are started for one harness run on free ports with data of their own, and their CPU time is counted apart.
"""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import uuid
from collections.abc import Mapping
from pathlib import Path

import psycopg
from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient
from tests.bench import limits
from tests.bench.processes import BenchError, Launched, ProcessTree

BROKER_HEAP = "1g"
POSTGRES_SETTINGS = {
    "shared_buffers": "512MB",
    "max_wal_size": "8GB",
    "checkpoint_timeout": "30min",
    # The time at which each row's transaction committed is how the harness measures at the destination.
    "track_commit_timestamp": "on",
    "autovacuum": "off",
    "log_min_messages": "warning",
}
"""Otherwise as PostgreSQL comes: fsync and synchronous_commit are on. No checkpoint or vacuum falls into one run and
not into another."""


def free_port() -> int:
    """A TCP port that nothing listened on a moment ago."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return int(listener.getsockname()[1])


def java_environment() -> dict[str, str]:
    """The environment of a JVM: ours, without options that would change the measured one."""
    dropped = {"JAVA_TOOL_OPTIONS", "JDK_JAVA_OPTIONS", "_JAVA_OPTIONS", "CLASSPATH"}
    return {key: value for key, value in os.environ.items() if key not in dropped}


def log4j_file(directory: Path) -> Path:
    """A log4j2 configuration that writes INFO to standard output, as Kafka's own does."""
    path = directory / "log4j2.properties"
    path.write_text(
        "rootLogger.level = INFO\n"
        "rootLogger.appenderRef.stdout.ref = STDOUT\n"
        "appender.stdout.type = Console\n"
        "appender.stdout.name = STDOUT\n"
        "appender.stdout.layout.type = PatternLayout\n"
        "appender.stdout.layout.pattern = [%d] %p %m (%c:%L)%n\n"
    )
    return path


class Broker:
    """Kafka's broker and controller in one JVM."""

    def __init__(self, jars: Path, directory: Path) -> None:
        self._directory = directory
        directory.mkdir(parents=True)
        self._port, controller = free_port(), free_port()
        self.bootstrap = f"127.0.0.1:{self._port}"
        properties = directory / "server.properties"
        properties.write_text(_properties(self._settings(controller)))
        self._classpath = f"{jars}/*"
        self._format(properties)
        options = [f"-Xms{BROKER_HEAP}", f"-Xmx{BROKER_HEAP}", "-XX:+UseG1GC", "-XX:MaxGCPauseMillis=20"]
        options.append(f"-Dlog4j2.configurationFile={log4j_file(directory)}")
        self._launched = Launched(
            ["java", *options, "-cp", self._classpath, "kafka.Kafka", str(properties)],
            log=directory / "broker.log", environment=java_environment(),
        )  # fmt: skip
        self.tree = ProcessTree(self._launched.pid, lambda _: "broker")
        try:
            self._launched.wait_until(self._answers, what="The Kafka broker", seconds=limits.BROKER_START_SECONDS)
        except BaseException:
            self.stop()
            raise

    def stop(self) -> None:
        """Stops the broker; its data stays in the directory."""
        self._launched.stop()

    def _settings(self, controller: int) -> dict[str, str]:
        return {
            "process.roles": "broker,controller",
            "node.id": "1",
            "controller.quorum.voters": f"1@127.0.0.1:{controller}",
            "listeners": f"PLAINTEXT://127.0.0.1:{self._port},CONTROLLER://127.0.0.1:{controller}",
            "advertised.listeners": f"PLAINTEXT://{self.bootstrap}",
            "controller.listener.names": "CONTROLLER",
            "listener.security.protocol.map": "CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT",
            "log.dirs": str(self._directory / "data"),
            "offsets.topic.replication.factor": "1",
            "offsets.topic.num.partitions": "4",
            "transaction.state.log.replication.factor": "1",
            "transaction.state.log.min.isr": "1",
            "share.coordinator.state.topic.replication.factor": "1",
            "share.coordinator.state.topic.min.isr": "1",
            "group.initial.rebalance.delay.ms": "0",
            "num.partitions": "1",
        }

    def _format(self, properties: Path) -> None:
        cluster = uuid.uuid4().hex[:22]
        done = subprocess.run(
            ["java", "-cp", self._classpath, "kafka.tools.StorageTool", "format", "-t", cluster, "-c", str(properties)],
            env=java_environment(), capture_output=True, text=True, timeout=limits.BROKER_START_SECONDS, check=False,
        )  # fmt: skip
        if done.returncode != 0:
            raise BenchError(f"Formatting the broker's data directory failed: {(done.stdout + done.stderr)[-800:]}")

    def _answers(self) -> bool:
        try:
            with socket.create_connection(("127.0.0.1", self._port), timeout=1.0):
                pass
            return bool(AdminClient({"bootstrap.servers": self.bootstrap}).list_topics(timeout=5.0).brokers)
        except (OSError, KafkaException):
            return False


class Postgres:
    """A PostgreSQL cluster from the distribution's binaries, run by its own user when we are root."""

    def __init__(self, directory: Path) -> None:
        self._binaries = _postgres_binaries()
        self._as_user = _as_postgres()
        directory.mkdir(parents=True)
        self._directory, data = directory, directory / "data"
        if self._as_user:
            shutil.chown(directory, "postgres", "postgres")
            _let_pass(directory)
        self.port = free_port()
        self._run("initdb", "-D", str(data), "-U", "postgres", "-A", "trust", "-E", "UTF8", "--locale=C", "-N")
        settings = {**POSTGRES_SETTINGS, "port": str(self.port), "listen_addresses": "127.0.0.1"}
        settings["unix_socket_directories"] = str(directory)
        with (data / "postgresql.conf").open("a") as file:
            file.writelines(f"{key} = '{value}'\n" for key, value in settings.items())
        argv = [*self._as_user, str(self._binaries / "postgres"), "-D", str(data)]
        # A smart shutdown (SIGTERM) would wait for whoever is still connected, so the harness asks for a fast one.
        self._launched = Launched(argv, log=directory / "postgres.log", cwd=directory)
        self.tree = ProcessTree(self._launched.pid, lambda _: "postgres")
        try:
            self._launched.wait_until(self._answers, what="PostgreSQL", seconds=limits.POSTGRES_START_SECONDS)
        except BaseException:
            self.stop()
            raise

    @property
    def jdbc_url(self) -> str:
        """What a JDBC connector is given, without options."""
        return f"jdbc:postgresql://127.0.0.1:{self.port}/postgres"

    def connect(self) -> psycopg.Connection[tuple[object, ...]]:
        """A fresh connection that commits by itself."""
        return psycopg.connect(
            host="127.0.0.1", port=self.port, user="postgres", dbname="postgres", autocommit=True, connect_timeout=5
        )

    def stop(self) -> None:
        """Stops the cluster; its data stays in the directory."""
        if self._launched.alive() and (self._directory / "data" / "postmaster.pid").exists():
            self._run("pg_ctl", "stop", "-D", str(self._directory / "data"), "-m", "fast", "-t", "20")
        self._launched.stop()

    def _run(self, program: str, *arguments: str) -> None:
        done = subprocess.run(
            [*self._as_user, str(self._binaries / program), *arguments],
            cwd=self._directory, capture_output=True, text=True, timeout=limits.POSTGRES_START_SECONDS, check=False,
        )  # fmt: skip
        if done.returncode != 0:
            raise BenchError(f"{program} failed: {(done.stdout + done.stderr)[-800:]}")

    def _answers(self) -> bool:
        try:
            with self.connect():
                return True
        except psycopg.OperationalError:
            return False


def _properties(settings: Mapping[str, str]) -> str:
    return "".join(f"{key}={value}\n" for key, value in settings.items())


def _postgres_binaries() -> Path:
    found = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"), key=lambda path: int(path.parts[-3]))
    if found:
        return found[-1].parent
    on_path = shutil.which("initdb")
    if on_path is None:
        raise BenchError("PostgreSQL's server programs are missing. Debian: apt install postgresql.")
    return Path(on_path).resolve().parent


def _as_postgres() -> list[str]:
    if os.geteuid() != 0:
        return []
    return ["setpriv", "--reuid=postgres", "--regid=postgres", "--init-groups"]


def _let_pass(directory: Path) -> None:
    """Lets the postgres user walk through the harness's own temporary directory to its data."""
    for parent in (directory.parent, directory.parent.parent):
        mode = parent.stat().st_mode
        if not mode & 0o001 and parent.stat().st_uid == os.geteuid() and parent != parent.parent:
            parent.chmod(mode | 0o001)
