"""Puts a worker together and runs it: `wherry standalone`. `distributed.py` adds what a cluster needs.

Order of a start: files are read and ports bound first, so that what is wrong with them is told at once; then the parts
start side by side and REST answers, while Spark and Kafka are waited for behind it; then connectors from files are
created. An end goes the other way and takes 5 s at most, or what the configuration gives tasks.
"""

from __future__ import annotations

import contextlib
import logging
import os
import queue
import shutil
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from wherry.contract import telemetry
from wherry.contract.errors import AuthError, ConfigError, TransientError
from wherry.coordinator.api import KAFKA_VERSION, ApiError
from wherry.coordinator.catalog import Catalog, rules_of
from wherry.coordinator.config import connectorfile
from wherry.coordinator.config.connectorfile import ConnectorFile
from wherry.coordinator.config.worker import WorkerConfig
from wherry.coordinator.herder import StandardHerder
from wherry.coordinator.hosts import HostClient
from wherry.coordinator.kafka import KafkaAdmin
from wherry.coordinator.manners import stop_ms
from wherry.coordinator.parts import Stores
from wherry.coordinator.plugins import PluginRegistry, bundled_folders, descriptions_folder
from wherry.coordinator.probe import PluginProber
from wherry.coordinator.rest.server import RestServer
from wherry.coordinator.rest.site import RestSite
from wherry.coordinator.store.local import FileOffsetStore, MemoryConfigStore, MemoryStatusStore

_log = logging.getLogger(__name__)

CLOSED_BEFORE_S = 0.5
STUCK_BEFORE_S = 0.1
"""Whoever stops a worker waits for `stop_s`, then kills it; something that hangs is left behind so long before that."""
KAFKA_RETRY_S = 0.5
NOTHING_S = 3600.0
"""The main thread waits in pieces of this length; signals wake it."""


class StandaloneWorker:
    """One worker in one process, with connectors from files and from REST.

    Args:
        worker: Its configuration.
        files: Connectors to create at start.

    Raises:
        ConfigError: The offsets file, a listener or another setting cannot be used.
    """

    mode = "standalone"
    herder_class = StandardHerder

    def __init__(self, worker: WorkerConfig, files: Sequence[ConnectorFile] = ()) -> None:
        began = time.monotonic()
        worker.warn_unknown()
        worker.warn_clients()
        rules = rules_of(worker)
        self._files = files
        self._worker = worker
        self._failure: queue.SimpleQueue[Exception] = queue.SimpleQueue()
        self._closing = threading.Event()
        self._kafka = KafkaAdmin(worker.admin_config())
        stores = self._stores()
        site = RestSite(worker)
        self._temporary = contextlib.ExitStack()
        directory = self._temporary.enter_context(_run_directory(worker))
        hosts = HostClient(directory)
        self._prober = PluginProber(hosts, ask_deadline_s=worker.parsed["wherry.validate.timeout.ms"] / 1000)
        self.registry = registry = PluginRegistry(
            [*bundled_folders(), *worker.plugin_path], self._prober.describe, cache=descriptions_folder()
        )
        self.catalog = Catalog(registry, rules=rules, providers=worker.providers, prober=self._prober)
        self.worker_id = worker.worker_id(site.ports)
        self.herder = self.herder_class(
            worker, registry, self.catalog, hosts, stores, directory, worker_id=self.worker_id
        )
        self.rest = self._serve(site)
        _log.info("Kafka Connect %s worker initialization took %dms", self.mode, (time.monotonic() - began) * 1000)

    def start(self) -> None:
        """Start all parts; returns when REST answers. Connectors from files follow in the background."""
        self._start_parts()
        self.rest.start()
        for url in self.rest.urls:
            _log.info("REST server listening at %s/", url)
        threading.Thread(target=self._guard, args=(self._begin,), name="begin", daemon=True).start()

    def wait(self, timeout_s: float = NOTHING_S) -> None:
        """Wait until something makes it impossible to go on.

        Raises:
            Exception: What it was.
        """
        with contextlib.suppress(queue.Empty):
            raise self._failure.get(timeout=timeout_s)

    @property
    def stop_s(self) -> float:
        """How long its end may take in all."""
        return stop_ms(self._worker) / 1000

    def close(self, timeout_s: float | None = None) -> None:
        """Drain all tasks, commit, stop. Calling it again does nothing."""
        timeout_s = self.stop_s - CLOSED_BEFORE_S if timeout_s is None else timeout_s
        if self._closing.is_set():
            return
        self._closing.set()
        deadline = time.monotonic() + timeout_s
        _log.info("Kafka Connect stopping")
        # Requests end while tasks drain, so that both fit into the time.
        stopping = threading.Thread(target=self.rest.stop, name="rest-stop", daemon=True)
        stopping.start()
        self._prober.close()
        clean = self.herder.close(max(deadline - time.monotonic(), 0.5))
        if not clean:
            _log.warning("Not every task ended in time; what was not committed is read again at the next start.")
        stopping.join(max(deadline - time.monotonic(), 0.1))
        self._temporary.close()
        _log.info("Kafka Connect stopped")

    def _stores(self) -> Stores:
        return Stores(MemoryConfigStore(), FileOffsetStore(self._worker.offsets_file), MemoryStatusStore())

    def _serve(self, site: RestSite) -> RestServer:
        return site.serve(self.herder, version=own_version())

    def _start_parts(self) -> None:
        self.herder.start()

    def _begin(self) -> None:
        self._await_kafka()
        for file in self._files:
            self._create(file)
        _log.info("Finished starting connectors and tasks")

    def _await_kafka(self) -> None:
        """Wait for a broker, a bounded time: whoever starts both together need not care for their order."""
        began = time.monotonic()
        deadline = began + self._worker.parsed["wherry.kafka.start.timeout.ms"] / 1000
        told = False
        while not self._closing.is_set():
            try:
                cluster_id = self._kafka.cluster_id()
            except TransientError as error:
                waited_s = time.monotonic() - began
                if time.monotonic() > deadline:
                    raise ConfigError(
                        f"No broker of bootstrap.servers={self._worker.bootstrap_servers} could be reached within "
                        f"{waited_s:.0f} s ({error.message.rstrip('.')}). Start Kafka, or correct bootstrap.servers.",
                        key="bootstrap.servers",
                    ) from error
                if not told:
                    told = True
                    _log.warning("Kafka at %s does not answer yet: %s", self._worker.bootstrap_servers, error.message)
                self._closing.wait(KAFKA_RETRY_S)
            except AuthError as error:
                raise ConfigError(
                    f"Kafka at {self._worker.bootstrap_servers} refuses this worker: {error.message} Correct the "
                    "security settings of the worker file.",
                    key="sasl.jaas.config",
                ) from error
            else:
                self.herder.know_cluster(cluster_id)
                _log.info("Kafka cluster ID: %s", cluster_id)
                return

    def _create(self, file: ConnectorFile) -> None:
        try:
            _, info = self.herder.put_config(file.name, file.config, initial_state=file.initial_state, create_only=True)
        except ApiError as error:
            raise ConfigError(f"The connector of {file.path} cannot be created: {error.message}") from error
        _log.info("Created connector %s", info.name)

    def _guard(self, act: Callable[[], None]) -> None:
        try:
            act()
        except Exception as error:
            if not self._closing.is_set():
                self._failure.put(error)


def standalone(
    worker_file: Path | None,
    connector_files: Sequence[Path] = (),
    *,
    ready: Callable[[StandaloneWorker], None] = lambda worker: None,
    stuck: Callable[[], None] = lambda: None,
) -> None:
    """Run a standalone worker until it cannot go on, or until an exception (a signal's) ends the wait.

    Args:
        worker_file: Kafka Connect's worker file; None takes CONNECT_… variables alone.
        connector_files: Kafka Connect's connector files.
        ready: Called when REST answers.
        stuck: Called in another thread when the end has not come just before `stop_s`.

    Raises:
        ConfigError: A file or setting is wrong, a port is taken, or Kafka cannot be reached.
    """
    tell_versions()
    config = WorkerConfig.load(worker_file, environ=os.environ)
    files = [connectorfile.load(path) for path in connector_files]
    _check_names(files)
    run(lambda: StandaloneWorker(config, files), ready=ready, stuck=stuck)


def tell_versions() -> None:
    """Log what this is, in the words other tools wait for."""
    _log.info("Wherry %s, with Kafka Connect's API", own_version())
    _log.info("Kafka version: %s", KAFKA_VERSION)


def run(
    make: Callable[[], StandaloneWorker],
    *,
    ready: Callable[[StandaloneWorker], None] = lambda worker: None,
    stuck: Callable[[], None] = lambda: None,
) -> None:
    """Make a worker and run it until it cannot go on; see `standalone`."""
    flush = telemetry.setup("wherry-coordinator")
    worker = make()
    try:
        worker.start()
        _log.info("Kafka Connect started")
        ready(worker)
        while True:
            worker.wait()
    finally:
        timer = threading.Timer(worker.stop_s - STUCK_BEFORE_S, stuck)
        timer.daemon = True
        timer.start()
        worker.close()
        flush()
        timer.cancel()


def own_version() -> str:
    """Version of this distribution; 0.0.0 in a checkout that was never installed."""
    try:
        return version("wherry")
    except PackageNotFoundError:
        return "0.0.0"


def _check_names(files: Sequence[ConnectorFile]) -> None:
    seen: dict[str, Path] = {}
    for file in files:
        if file.name in seen:
            raise ConfigError(
                f"{seen[file.name]} and {file.path} both define the connector {file.name}: a name is given once only."
            )
        seen[file.name] = file.path


@contextlib.contextmanager
def _run_directory(worker: WorkerConfig) -> Iterator[Path]:
    """A folder for sockets and Spark's files, ours alone, gone at the end."""
    root = worker.parsed["wherry.state.dir"]
    try:
        if root:
            Path(root).mkdir(parents=True, exist_ok=True)
        directory = Path(tempfile.mkdtemp(prefix="wherry-", dir=root))
    except OSError as error:
        raise ConfigError(
            f"No folder can be made for sockets in {root or tempfile.gettempdir()}: {error.strerror}. Set "
            "wherry.state.dir to one that is writable.",
            key="wherry.state.dir",
        ) from error
    try:
        yield directory
    finally:
        shutil.rmtree(directory, ignore_errors=True)
