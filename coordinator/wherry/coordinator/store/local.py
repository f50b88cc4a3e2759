"""Stores of a single process: offsets in Kafka Connect's standalone file, everything else in memory.

As in Kafka Connect's standalone mode, connectors come from files or from REST and are gone with the process; offsets
stay. The offsets file is Kafka Connect's own (see `javamap`), read and written, so that a worker can be replaced
without reading anything twice. It is replaced as a whole and only when the new one is on the disk: a crash leaves the
old or the new file, never half of one.
"""

from __future__ import annotations

import json
import os
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path

from wherry.contract.errors import ConfigError, TransientError
from wherry.contract.position import Position, compact_json
from wherry.coordinator.api import TargetState
from wherry.coordinator.store import ConfigSnapshot, StoredConnector, StoredStatus, StoredTopic, javamap

_KEY_START = b'["'


class MemoryConfigStore:
    """A `ConfigStore` that lives as long as its process."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._version = 0
        self._connectors: dict[str, StoredConnector] = {}
        self._task_counts: dict[str, int] = {}
        self._snapshot: ConfigSnapshot | None = None

    def snapshot(self) -> ConfigSnapshot:
        """Everything, as of now."""
        with self._lock:
            # Asked far more often than anything is written; whoever has one may go on reading it.
            if self._snapshot is None or self._snapshot.version != self._version:
                self._snapshot = ConfigSnapshot(self._version, dict(self._connectors))
            return self._snapshot

    def put_connector(self, name: str, config: Mapping[str, str], target_state: TargetState | None = None) -> None:
        """Write a configuration; None leaves the target state."""
        with self._lock:
            before = self._connectors.get(name)
            kept = before.target_state if before else TargetState.STARTED
            tasks = before.tasks if before else ()
            self._put(StoredConnector(name, dict(config), target_state or kept, tasks))

    def delete_connector(self, name: str) -> None:
        """Forget a connector."""
        with self._lock:
            if self._connectors.pop(name, None) is not None:
                self._version += 1

    def put_target_state(self, name: str, target_state: TargetState) -> None:
        """Write what the connector is wanted to be."""
        with self._lock:
            before = self._connectors.get(name)
            if before is not None:
                self._put(StoredConnector(name, before.config, target_state, before.tasks))

    def put_task_configs(self, name: str, configs: Sequence[Mapping[str, str]]) -> None:
        """Write the whole set of task configurations."""
        with self._lock:
            before = self._connectors.get(name)
            if before is not None:
                tasks = tuple(dict(config) for config in configs)
                self._put(StoredConnector(name, before.config, before.target_state, tasks))

    def task_count(self, name: str) -> int | None:
        """How many tasks of a source may have transactions open."""
        with self._lock:
            return self._task_counts.get(name)

    def put_task_count(self, name: str, count: int) -> None:
        """Tell how many tasks may have transactions open."""
        with self._lock:
            self._task_counts[name] = count

    def _put(self, connector: StoredConnector) -> None:
        self._connectors[connector.name] = connector
        self._version += 1


class MemoryStatusStore:
    """A `StatusStore` that lives as long as its process."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._statuses: dict[str, dict[int | None, StoredStatus]] = {}
        self._topics: dict[str, dict[str, StoredTopic]] = {}

    def put(self, status: StoredStatus) -> None:
        """Write a state; one of a lower generation than what is there is ignored."""
        with self._lock:
            statuses = self._statuses.setdefault(status.connector, {})
            before = statuses.get(status.task)
            if before is None or before.generation <= status.generation:
                statuses[status.task] = status

    def get(self, connector: str, task: int | None = None) -> StoredStatus | None:
        """State of a connector, or of one of its tasks."""
        with self._lock:
            return self._statuses.get(connector, {}).get(task)

    def tasks(self, connector: str) -> list[StoredStatus]:
        """States of all tasks, by task number."""
        with self._lock:
            numbered = {task: status for task, status in self._statuses.get(connector, {}).items() if task is not None}
        return [numbered[task] for task in sorted(numbered)]

    def remove(self, connector: str, task: int | None = None) -> None:
        """Forget a task's state; without a task the connector's with all its tasks and topics."""
        with self._lock:
            if task is None:
                self._statuses.pop(connector, None)
                self._topics.pop(connector, None)
            else:
                self._statuses.get(connector, {}).pop(task, None)

    def add_topic(self, topic: StoredTopic) -> None:
        """Remember that a topic is used; the first discovery stays."""
        with self._lock:
            self._topics.setdefault(topic.connector, {}).setdefault(topic.name, topic)

    def topics(self, connector: str) -> list[str]:
        """Topics used, in order of discovery."""
        with self._lock:
            return list(self._topics.get(connector, {}))

    def reset_topics(self, connector: str) -> None:
        """Forget the topics of a connector."""
        with self._lock:
            self._topics.pop(connector, None)


class FileOffsetStore:
    """An `OffsetStore` in Kafka Connect's standalone offsets file (`offset.storage.file.filename`).

    Raises:
        ConfigError: The file cannot be read, or is damaged.
    """

    def __init__(self, path: Path) -> None:
        # A link is followed once, so that replacing the file does not replace the link.
        self._path = Path(os.path.realpath(path))
        self._lock = threading.Lock()
        self._entries = _read(self._path)
        _check_writable(self._path)

    def load(self, connector: str) -> list[Position]:
        """All positions of a connector, in the order they were first written."""
        prefix = _prefix(connector)
        with self._lock:
            entries = list(self._entries.items())
        return [
            Position(key.decode()[len(prefix) : -1], value.decode())
            for key, value in entries
            if key is not None and value is not None and key.startswith(prefix.encode()) and key.endswith(b"]")
        ]

    def write(self, connector: str, positions: Sequence[Position]) -> None:
        """Write positions together; one without offset forgets its partition."""
        if not positions:
            return
        prefix = _prefix(connector)
        with self._lock:
            entries = dict(self._entries)
            for position in positions:
                key = f"{prefix}{position.partition}]".encode()
                if position.offset is None:
                    entries.pop(key, None)
                else:
                    entries[key] = position.offset.encode()
            self._replace(entries)

    def reset(self, connector: str) -> None:
        """Forget all positions of a connector."""
        start = _prefix(connector).encode()
        with self._lock:
            kept = {key: value for key, value in self._entries.items() if key is None or not key.startswith(start)}
            if len(kept) < len(self._entries):
                self._replace(kept)

    def _replace(self, entries: dict[bytes | None, bytes | None]) -> None:
        """Put a new file in the place of the old one; memory follows only when that has worked."""
        temporary = self._path.with_name(f".{self._path.name}.{os.getpid()}.tmp")
        try:
            with temporary.open("wb") as file:
                file.write(javamap.dumps(entries))
                file.flush()
                os.fsync(file.fileno())
            if self._path.exists():
                temporary.chmod(self._path.stat().st_mode & 0o7777)
            temporary.replace(self._path)
            _sync_directory(self._path.parent)
        except OSError as error:
            temporary.unlink(missing_ok=True)
            # Nothing is lost: the positions are still the old ones, and whoever commits tries again.
            raise TransientError(f"Offsets cannot be written to {self._path}: {error.strerror or error}.") from error
        self._entries = entries


def _prefix(connector: str) -> str:
    """What every key of a connector starts with: `["name",`; the partition and `]` follow."""
    return f"[{compact_json(connector)},"


def _read(path: Path) -> dict[bytes | None, bytes | None]:
    try:
        stream = path.read_bytes()
    except FileNotFoundError:
        return {}
    except OSError as error:
        raise ConfigError(
            f"The offsets file {path} cannot be read: {error.strerror or error}.", key="offset.storage.file.filename"
        ) from error
    if not stream:
        return {}  # as Kafka Connect has it: a file made by hand, to set its owner
    try:
        entries = javamap.loads(stream)
        for key, value in entries.items():
            _check_entry(key, value)
    except ValueError as error:
        raise ConfigError(
            f"The offsets file {path} is damaged or no offsets file: it holds {error}. Put back a copy, or move it "
            "away to start all sources from the beginning.",
            key="offset.storage.file.filename",
        ) from error
    return entries


def _check_entry(key: bytes | None, value: bytes | None) -> None:
    """Refuse what cannot be a position; keys of another making are kept as they are."""
    if key is None or value is None or not key.startswith(_KEY_START):
        return
    for part in (key, value):
        try:
            json.loads(part.decode())
        except ValueError:
            raise ValueError(f"a position that is not JSON: {part[:60]!r}") from None


def _check_writable(path: Path) -> None:
    if not path.parent.is_dir():
        raise ConfigError(
            f"The folder of the offsets file {path} does not exist: make {path.parent} or change "
            "offset.storage.file.filename.",
            key="offset.storage.file.filename",
        )
    if path.is_dir() or not os.access(path.parent, os.W_OK):
        reason = "it is a folder" if path.is_dir() else "its folder is not writable"
        raise ConfigError(
            f"The offsets file {path} cannot be written: {reason}.",
            key="offset.storage.file.filename",
        )


def _sync_directory(directory: Path) -> None:
    """Make the new name durable; not every file system can."""
    descriptor = os.open(directory, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
