"""The worker file: Kafka Connect's keys with their types and defaults, and our own under `wherry.`.

Decides what a `worker.properties` means; knows nothing of connectors. Kafka Connect's distributed keys are known, so
that a file can be taken over as it is; keys nobody knows are kept (converters, clients and extensions read them) and
named once, with the key that was probably meant.
"""

from __future__ import annotations

import difflib
import itertools
import logging
import re
import socket
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from wherry.contract import kafka_clients
from wherry.contract.config import ConfigDef
from wherry.contract.errors import ConfigError
from wherry.coordinator.config import environment, properties
from wherry.coordinator.config.providers import Providers
from wherry.coordinator.config.workerkeys import COMMON_KEYS, DISTRIBUTED_KEYS, OWN_KEYS, STANDALONE_KEYS

_log = logging.getLogger(__name__)

_FREE_PREFIXES = re.compile(
    r"(producer|consumer|admin|key\.converter|value\.converter|header\.converter|config\.providers|"
    r"listeners\.https|admin\.listeners\.https|config\.storage|offset\.storage|status\.storage|topic\.creation|"
    r"connector\.client\.config\.override|metrics?|metric\.reporters|ssl|sasl|plugin|wherry\.spark|"
    r"internal\.(key|value)\.converter|security)\..+"
)
_HINT_LIKENESS = 0.75
_SPARK_PREFIX = "wherry.spark."


@dataclass(frozen=True, slots=True)
class WorkerConfig:
    """A worker's configuration.

    Attributes:
        values: All values as given, placeholders resolved.
        parsed: Values of the known keys, by their types.
        providers: Resolves placeholders of connectors.
        unknown: Keys nobody knows.
        source: Where it came from, for messages.
    """

    values: Mapping[str, str]
    parsed: Mapping[str, Any]
    providers: Providers = field(default_factory=Providers)
    unknown: tuple[str, ...] = ()
    source: str = ""

    @classmethod
    def load(
        cls, path: Path | None, *, distributed: bool = False, environ: Mapping[str, str] | None = None
    ) -> WorkerConfig:
        """Read a worker file, and what CONNECT_… variables say besides; the variables win.

        Args:
            path: The file; None takes everything from the variables.
            distributed: Whether a distributed worker's keys are demanded.
            environ: Variables of the process; None looks at none.

        Raises:
            ConfigError: The file cannot be read, or a value is wrong; the message names file and key.
        """
        overlay = environment.settings(environ or {})
        if path is None and not overlay:
            raise ConfigError(
                "There is no worker configuration: name a worker file, or set CONNECT_… variables, such as "
                "CONNECT_BOOTSTRAP_SERVERS=localhost:9092."
            )
        try:
            given = {} if path is None else properties.load(path)
            if path is not None and overlay:
                _log.info("Settings from CONNECT_… variables go before the worker file's: %s", ", ".join(overlay))
            source = "CONNECT_… variables" if path is None else str(path)
            return cls.of({**given, **overlay}, distributed=distributed, source=source)
        except ConfigError as error:
            if path is None or str(path) in error.message:
                raise
            raise ConfigError(f"{path}: {error.message}", key=error.key) from error

    @classmethod
    def of(cls, given: Mapping[str, str], *, distributed: bool = False, source: str = "") -> WorkerConfig:
        """Take values.

        Raises:
            ConfigError: A value is wrong or missing.
        """
        providers = Providers.configured(given)
        values = providers.resolve(given).values
        mode = DISTRIBUTED_KEYS if distributed else STANDALONE_KEYS
        definition = ConfigDef((*COMMON_KEYS, *mode, *OWN_KEYS))
        if not distributed and "group.id" in values and "offset.storage.file.filename" not in values:
            raise ConfigError(
                "This is the file of a distributed worker: a standalone one needs offset.storage.file.filename, the "
                "file that keeps the positions of sources. Add it to go on.",
                key="offset.storage.file.filename",
            )
        others = ConfigDef(key for key in (*DISTRIBUTED_KEYS, *STANDALONE_KEYS) if key.name not in definition)
        known = {*(key.name for key in definition.keys), *(key.name for key in others.keys)}
        unknown = tuple(key for key in values if key not in known and not _FREE_PREFIXES.fullmatch(key))
        try:
            parsed = definition.parse(values)
        except ConfigError as error:
            near = difflib.get_close_matches(error.key or "", unknown, n=1, cutoff=_HINT_LIKENESS)
            if error.key in values or not near:
                raise
            hint = f"There is {near[0]}: did you mean {error.key}?"
            raise ConfigError(f"{error.message} {hint}", key=error.key) from error
        return cls(dict(values), parsed, providers, unknown, source)

    def warn_unknown(self) -> None:
        """Log the keys nobody knows, with the key that was probably meant."""
        names = [key.name for key in (*COMMON_KEYS, *DISTRIBUTED_KEYS, *STANDALONE_KEYS, *OWN_KEYS)]
        for key in self.unknown:
            near = difflib.get_close_matches(key, names, n=1, cutoff=_HINT_LIKENESS)
            hint = f" Did you mean {near[0]}?" if near else ""
            _log.warning("The worker setting %s is not known and does nothing.%s", key, hint)

    @property
    def bootstrap_servers(self) -> str:
        """Brokers as host:port, joined by commas."""
        return ",".join(self.parsed["bootstrap.servers"])

    @property
    def listeners(self) -> tuple[str, ...]:
        """Where REST listens, as URLs."""
        return tuple(self.parsed["listeners"])

    @property
    def offsets_file(self) -> Path:
        """Standalone's offsets file."""
        return Path(self.parsed["offset.storage.file.filename"])

    @property
    def plugin_path(self) -> tuple[Path, ...]:
        """Folders to look for plugins in."""
        return tuple(Path(part).expanduser() for part in self.parsed["plugin.path"] or ())

    @property
    def offset_flush_interval_ms(self) -> int:
        """How often positions are committed."""
        return int(self.parsed["offset.flush.interval.ms"])

    @property
    def shutdown_timeout_ms(self) -> int:
        """How long all tasks together may take to end."""
        return int(self.parsed["task.shutdown.graceful.timeout.ms"])

    @property
    def topic_tracking(self) -> bool:
        """Whether topics used are remembered."""
        return bool(self.parsed["topic.tracking.enable"])

    @property
    def topic_tracking_reset(self) -> bool:
        """Whether topics used may be forgotten."""
        return self.topic_tracking and bool(self.parsed["topic.tracking.allow.reset"])

    @property
    def spark_master(self) -> str:
        """Spark's master URL."""
        return str(self.parsed["wherry.spark.master"])

    @property
    def spark_settings(self) -> dict[str, str]:
        """Every other `wherry.spark.X` as Spark's `spark.X`."""
        return {
            f"spark.{key[len(_SPARK_PREFIX) :]}": value
            for key, value in self.values.items()
            if key.startswith(_SPARK_PREFIX) and key != "wherry.spark.master"
        }

    def worker_id(self, ports: Iterable[int] = ()) -> str:
        """What statuses show as worker: the advertised host and port.

        Args:
            ports: Ports really listened on, for a listener that asked for any.

        Raises:
            ConfigError: `rest.advertised.listener` names none of the listeners.
        """
        host, port = self._advertised(ports)
        return f"{host}:{port}"

    def advertised_url(self, ports: Iterable[int] = ()) -> str:
        """Where other workers reach the REST API of this one; as `worker_id` with its scheme."""
        host, port = self._advertised(ports)
        scheme = self.listeners[self._listener()].strip().partition(":")[0].lower() if self.listeners else "http"
        return f"{scheme}://[{host}]:{port}" if ":" in host else f"{scheme}://{host}:{port}"

    def _advertised(self, ports: Iterable[int]) -> tuple[str, int]:
        index = self._listener()
        host, port = _host_port(self.listeners[index]) if self.listeners else ("", 0)
        real = next(itertools.islice(ports, index, None), port)
        return (
            str(self.parsed["rest.advertised.host.name"] or host or _own_address()),
            int(self.parsed["rest.advertised.port"] or real),
        )

    def _listener(self) -> int:
        """Index of the listener that others are told."""
        wanted = str(self.parsed["rest.advertised.listener"] or "").strip().lower()
        if not wanted:
            return 0
        for index, listener in enumerate(self.listeners):
            if listener.strip().lower().startswith(f"{wanted}://"):
                return index
        key = "rest.advertised.listener"
        raise ConfigError(
            f"Invalid value {wanted} for configuration {key}: http or https is expected, and a listener of that kind "
            f"in listeners={','.join(self.listeners)}.",
            key=key,
        )

    def admin_config(self) -> dict[str, kafka_clients.ClientValue]:
        """Settings of the framework's own admin client.

        Raises:
            ConfigError: A setting that must not be ignored cannot be used.
        """
        return dict(kafka_clients.resolve("admin", worker=self.values).values)

    def warn_clients(self) -> None:
        """Log every setting of a Kafka client that has not the effect it has in Java, with the reason."""
        for kind in kafka_clients.CLIENT_KINDS:
            try:
                found = kafka_clients.resolve(kind, worker=self.values)
            except ConfigError as error:
                _log.warning("Worker, %s: connectors cannot use these settings: %s", kind, error.message)
                continue
            for warning in found.warnings():
                _log.warning("Worker, %s: %s", kind, warning)
            for remark in found.remarks():
                _log.info("Worker, %s: %s", kind, remark)


def _host_port(listener: str) -> tuple[str, int]:
    match = re.fullmatch(r"\w+://\[?(.*?)\]?:(\d+)/?", listener.strip())
    return (match[1], int(match[2])) if match else ("", 0)


def _own_address() -> str:
    try:
        return socket.gethostbyname(socket.gethostname())
    except OSError:
        return "127.0.0.1"
