"""A real Spark standalone cluster on this machine: Master and Workers as processes, from the PySpark wheel alone."""

from __future__ import annotations

import importlib.util
import json
import os
import urllib.request
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Self

from wherry.coordinator.dev.errors import ServerStartError
from wherry.coordinator.dev.folders import server_folder
from wherry.coordinator.dev.java import find_java
from wherry.coordinator.dev.ports import LOOPBACK, free_ports, require_free
from wherry.coordinator.dev.process import KeptProcess, ServerCommand
from wherry.coordinator.dev.server import Server

READY_TIMEOUT_S: Final = 60.0
STATUS_TIMEOUT_S: Final = 2.0
STATUS_BYTES_MAX: Final = 4 * 1024 * 1024
STOP_GRACE_S: Final = 5.0
WORKERS_DEFAULT: Final = 2
SLOTS_DEFAULT: Final = 32
"""Cores a Worker offers. A lease takes one, and mostly waits: far more are offered than the machine has."""
EXECUTOR_CLASS: Final = "CoarseGrainedExecutorBackend"

_JVM_OPTIONS: Final = (
    "-Xmx256m",
    "-XX:+UseSerialGC",
    "-XX:TieredStopAtLevel=1",
    "-XX:-UsePerfData",
    "-XX:+ExitOnOutOfMemoryError",
)
_LOG4J: Final = """\
status = error
rootLogger.level = info
rootLogger.appenderRef.stderr.ref = stderr
appender.console.type = Console
appender.console.name = stderr
appender.console.target = SYSTEM_ERR
appender.console.layout.type = PatternLayout
appender.console.layout.pattern = %d{HH:mm:ss.SSS} %p %c{1}: %m%n%ex{2}
"""


@dataclass(frozen=True, slots=True)
class Executor:
    """A running executor: the JVM that a Worker has started for an application."""

    pid: int
    id: str
    worker: int
    """Number of the Worker it belongs to, from 0."""


class SparkCluster(Server):
    """One Master and its Workers. A context manager; each of them may be killed and started again alone.

    The Master keeps what it knows in its folder, so that one that was killed goes on with the applications it had.
    """

    def __init__(
        self,
        *,
        workers: int = WORKERS_DEFAULT,
        slots: int = SLOTS_DEFAULT,
        memory: str = "2g",
        port: int | None = None,
        ui_port: int | None = None,
        data_dir: Path | None = None,
        host: str = LOOPBACK,
        environment: Mapping[str, str] | None = None,
    ) -> None:
        """Describe the cluster; nothing is started yet.

        Args:
            workers: How many Workers.
            slots: How many leases each Worker runs side by side.
            memory: What each Worker offers to executors, as Spark writes it.
            port: Where the Master listens; None takes a free one.
            ui_port: Where the Master's pages are; None takes a free one.
            data_dir: Folder that is kept; None makes a temporary one that `close` deletes.
            host: Address to listen on and to tell others.
            environment: Variables of Workers, and so of executors, beside our own.
        """
        chosen = iter(free_ports(2, host))
        self.host = host
        self.port = port if port is not None else next(chosen)
        self.ui_port = ui_port if ui_port is not None else next(chosen)
        self.worker_count = workers
        self._slots = slots
        self._memory = memory
        self._folder = server_folder("spark", data_dir)
        self._environment = dict(environment or {})
        self._master: KeptProcess | None = None
        self._workers: dict[int, KeptProcess] = {}

    @property
    def url(self) -> str:
        """The address for `wherry.spark.master`."""
        return f"spark://{self.host}:{self.port}"

    @property
    def data_dir(self) -> Path:
        """The folder with logs, work folders and what the Master keeps."""
        return self._folder.path

    @property
    def log_path(self) -> Path:
        """The file that takes the Master's log."""
        return self.data_dir / "master.log"

    @property
    def master_pid(self) -> int:
        """Process id of the Master. Only after `start`."""
        assert self._master is not None, "the cluster was not started"
        return self._master.pid

    def worker_pid(self, number: int) -> int:
        """Process id of a Worker. Only after it was started."""
        return self._workers[number].pid

    def start(self) -> Self:
        """Start Master and Workers; returns when all Workers are registered.

        Raises:
            ServerStartError: One of them did not come up.
            JavaError: There is no usable Java.
        """
        self.start_master()
        for number in range(self.worker_count):
            self.start_worker(number, wait=False)
        self.wait_for_workers(self.worker_count)
        return self

    def start_master(self) -> None:
        """Start the Master, or start it again, and wait until it answers.

        Raises:
            ServerStartError: It did not come up.
        """
        require_free(self.port, "Spark's Master", self.host)
        kept = self.data_dir / "recovery"
        kept.mkdir(exist_ok=True)
        self._master = self._start(
            "Spark's Master",
            "org.apache.spark.deploy.master.Master",
            ["--host", self.host, "--port", str(self.port), "--webui-port", str(self.ui_port)],
            self.log_path,
            [
                "-Dspark.deploy.recoveryMode=FILESYSTEM",
                f"-Dspark.deploy.recoveryDirectory={kept}",
            ],
        )
        self._master.wait_until_ready(lambda: self._status() is not None, READY_TIMEOUT_S)

    def start_worker(self, number: int, *, wait: bool = True) -> None:
        """Start a Worker, or start it again.

        Raises:
            ServerStartError: It did not register in time.
        """
        before = self.workers_alive()
        folder = self.data_dir / f"worker-{number}"
        folder.mkdir(exist_ok=True)
        self._workers[number] = self._start(
            f"Spark's Worker {number}",
            "org.apache.spark.deploy.worker.Worker",
            [
                *("--host", self.host, "--webui-port", "0", "--work-dir", str(folder)),
                *("--cores", str(self._slots), "--memory", self._memory, self.url),
            ],
            self.data_dir / f"worker-{number}.log",
        )
        if wait:
            self.wait_for_workers(before + 1)

    def wait_for_workers(self, count: int, timeout_s: float = READY_TIMEOUT_S) -> None:
        """Wait until so many Workers are registered.

        Raises:
            ServerStartError: They were not in time, or one has ended.
        """
        for process in self._workers.values():
            process.wait_until_ready(lambda: self.workers_alive() >= count, timeout_s)

    def workers_alive(self) -> int:
        """How many Workers the Master counts as alive; 0 while it doesn't answer."""
        return sum(worker["state"] == "ALIVE" for worker in (self._status() or {}).get("workers", ()))

    def executors(self) -> list[Executor]:
        """The executors that run now, of all applications."""
        workers = {process.pid: number for number, process in self._workers.items()}
        found = []
        for entry in Path("/proc").iterdir():
            if not entry.name.isdecimal():
                continue
            try:
                words = (entry / "cmdline").read_bytes().decode(errors="replace").split("\0")
                parent = int((entry / "stat").read_text().rpartition(")")[2].split()[1])
            except OSError:  # it ended while we looked
                continue
            if parent in workers and any(word.endswith(EXECUTOR_CLASS) for word in words):
                found.append(Executor(int(entry.name), words[words.index("--executor-id") + 1], workers[parent]))
        return sorted(found, key=lambda executor: int(executor.id))

    def kill_master(self) -> None:
        """End the Master with SIGKILL."""
        assert self._master is not None, "the cluster was not started"
        self._master.kill()

    def kill_worker(self, number: int) -> None:
        """End a Worker with SIGKILL; its executors notice, and end too."""
        self._workers.pop(number).kill()

    def wait(self, timeout_s: float | None = None) -> bool:
        """Wait for the Master to end; tell whether it did within the time."""
        return self._master is None or self._master.wait(timeout_s)

    def last_words(self) -> str:
        """Return the end of the Master's log as the end of a sentence."""
        return "it was not started." if self._master is None else self._master.last_words()

    def close(self) -> None:
        """Stop everything and delete a temporary folder."""
        for process in [*self._workers.values(), *([] if self._master is None else [self._master])]:
            process.stop()
        self._workers.clear()
        self._master = None
        self._folder.discard()

    def _status(self) -> dict[str, Any] | None:
        try:
            url = f"http://{self.host}:{self.ui_port}/json/"
            with urllib.request.urlopen(url, timeout=STATUS_TIMEOUT_S) as answer:
                status = json.loads(answer.read(STATUS_BYTES_MAX))
        except (OSError, ValueError):
            return None
        return status if isinstance(status, dict) and status.get("status") == "ALIVE" else None

    def _start(
        self, name: str, main_class: str, arguments: Sequence[str], log: Path, options: Sequence[str] = ()
    ) -> KeptProcess:
        java = find_java()
        log4j = self.data_dir / "log4j2.properties"
        log4j.write_text(_LOG4J)
        argv = [str(java.executable), *_JVM_OPTIONS, f"-Dlog4j2.configurationFile=file:{log4j}", *options]
        argv += ["-cp", str(spark_home() / "jars" / "*"), main_class, *arguments]
        environment = {
            **os.environ,
            **self._environment,
            "SPARK_HOME": str(spark_home()),
            "SPARK_SCALA_VERSION": _scala_version(spark_home() / "jars"),
            "SPARK_LOCAL_IP": self.host,
            "JAVA_HOME": str(java.executable.parent.parent),
        }
        return KeptProcess(
            ServerCommand(
                name=name,
                argv=argv,
                log_path=log,
                directory=self.data_dir,
                environment=environment,
                grace_s=STOP_GRACE_S,
                remove=self._folder.removable,
            )
        )


def spark_home() -> Path:
    """Return the folder of the installed PySpark, which holds Spark's jars.

    Raises:
        ServerStartError: PySpark is not installed.
    """
    spec = importlib.util.find_spec("pyspark")
    if spec is None or spec.origin is None:
        raise ServerStartError("PySpark is not installed.", "Install it: pip install 'wherry[spark]'.")
    return Path(spec.origin).parent


def _scala_version(jars: Path) -> str:
    """Return what Spark's own scripts would put into SPARK_SCALA_VERSION; a Worker starts no executor without it."""
    core = next(iter(sorted(jars.glob("spark-core_*.jar"))), None)
    if core is None:
        raise ServerStartError(f"There is no spark-core jar in {jars}.", "Install PySpark anew: pip install pyspark.")
    return core.name.removeprefix("spark-core_").partition("-")[0]
