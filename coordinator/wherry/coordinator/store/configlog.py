"""What the records of Kafka Connect's config topic say, taken in order, and the records that say something new.

Pure: keys and values in, connectors out. A set of task configurations counts only after its `commit-` record, and only
when it is whole; what is of no known kind is left aside, for newer workers may write more.
"""

from __future__ import annotations

import base64
import binascii
import json
import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from wherry.contract.position import compact_json
from wherry.coordinator.api import TargetState
from wherry.coordinator.store import ConfigSnapshot, StoredConnector

log = logging.getLogger(__name__)

Record = tuple[str, bytes | None]
"""Key and value; a value of None takes away what the key said."""

SESSION_KEY: Final = "session-key"
_CONNECTOR, _TASK, _COMMIT, _TARGET = "connector-", "task-", "commit-", "target-state-"
_FENCING, _LOGGER = "tasks-fencing-", "logger-cluster-"


@dataclass(frozen=True, slots=True)
class SessionKey:
    """What workers sign their calls to one another with."""

    key: bytes
    algorithm: str
    created_ms: int


class ConfigLog:
    """The state that a config topic holds. Not safe for use by several threads.

    Args:
        level_set: Told of every log level set for the whole cluster: logger and level.
    """

    def __init__(self, level_set: Callable[[str, str], None] = lambda logger, level: None) -> None:
        self._level_set = level_set
        self._configs: dict[str, dict[str, str]] = {}
        self._targets: dict[str, TargetState] = {}
        self._tasks: dict[str, tuple[dict[str, str], ...]] = {}
        self._uncommitted: dict[str, dict[int, dict[str, str]]] = {}
        self._stored: dict[str, StoredConnector] = {}
        self._version = 0
        self._snapshot: ConfigSnapshot | None = None
        self.task_counts: dict[str, int] = {}
        """How many transactional ids of a connector's tasks have been fenced, by its last `tasks-fencing-` record."""
        self.inconsistent: set[str] = set()
        """Connectors whose task configurations are not whole, as compaction may leave them: they are made anew."""
        self.session_key: SessionKey | None = None

    def apply(self, key: bytes | None, value: bytes | None) -> bool:
        """Take in one record; False when it says nothing we know, and was left aside."""
        try:
            name = None if key is None else key.decode()
            content = None if value is None else json.loads(value)
            known = name is not None and self._take(name, content)
        except (ValueError, TypeError, KeyError, AttributeError) as error:
            log.warning("A record of the config topic is damaged and is left aside: key %r, %s", key, error)
            return False
        if known:
            self._version += 1
            self._snapshot = None
        return known

    def snapshot(self) -> ConfigSnapshot:
        """All connectors, as of the last record."""
        if self._snapshot is None:
            # A copy: whoever has one may go on reading it. Each creation asks for several among its own records.
            self._snapshot = ConfigSnapshot(self._version, dict(self._stored))
        return self._snapshot

    def _changed(self, name: str) -> None:
        """Put together anew what is known of a connector."""
        config = self._configs.get(name)
        if config is None:
            self._stored.pop(name, None)
            return
        target, tasks = self._targets.get(name, TargetState.STARTED), self._tasks.get(name, ())
        self._stored[name] = StoredConnector(name, config, target, tasks)

    def _take(self, key: str, content: Any) -> bool:
        # The longer prefixes first: none is the beginning of another, but a connector's name may be anything.
        if key == SESSION_KEY:
            self.session_key = None if content is None else _session_key(content)
        elif key.startswith(_TARGET):
            self._take_target(key.removeprefix(_TARGET), content)
        elif key.startswith(_FENCING):
            name = key.removeprefix(_FENCING)
            self.task_counts.pop(name, None)
            if content is not None:
                self.task_counts[name] = int(content["task-count"])
        elif key.startswith(_CONNECTOR):
            self._take_connector(key.removeprefix(_CONNECTOR), content)
        elif key.startswith(_COMMIT):
            self._take_commit(key.removeprefix(_COMMIT), content)
        elif key.startswith(_TASK):
            name, _, number = key.removeprefix(_TASK).rpartition("-")
            if content is not None:
                self._uncommitted.setdefault(name, {})[int(number)] = _texts(content["properties"])
        elif key.startswith(_LOGGER) and content is not None:
            self._level_set(key.removeprefix(_LOGGER), str(content["level"]))
        else:
            return False
        return True

    def _take_connector(self, name: str, content: Any) -> None:
        if content is None:
            # What else is known of it goes with it; a connector made later under this name begins with nothing.
            for kept in (self._configs, self._targets, self._tasks, self._uncommitted):
                kept.pop(name, None)
            self.inconsistent.discard(name)
        else:
            self._configs[name] = _texts(content["properties"])
        self._changed(name)

    def _take_target(self, name: str, content: Any) -> None:
        if content is None:
            self._targets.pop(name, None)
        else:
            # `state` is what workers of before STOPPED was known go by.
            self._targets[name] = TargetState(content.get("state.v2", content.get("state")))
        self._changed(name)

    def _take_commit(self, name: str, content: Any) -> None:
        found = self._uncommitted.pop(name, {})
        if content is None:
            return
        count = int(content["tasks"])
        if set(range(count)) <= found.keys():
            self._tasks[name] = tuple(found[number] for number in range(count))
            self.inconsistent.discard(name)
        else:
            self._tasks.pop(name, None)
            self.inconsistent.add(name)
        self._changed(name)


def connector_records(
    name: str, config: Mapping[str, str], target: TargetState | None = None, *, before: StoredConnector | None = None
) -> list[Record]:
    """What writes a configuration; a target state other than that of before goes first."""
    written: list[Record] = [(_CONNECTOR + name, _json({"properties": dict(config)}))]
    current = before.target_state if before is not None else TargetState.STARTED
    return written if target is None or target is current else [*target_records(name, target), *written]


def deletion_records(name: str) -> list[Record]:
    """What deletes a connector."""
    return [(_CONNECTOR + name, None), (_TARGET + name, None)]


def target_records(name: str, target: TargetState) -> list[Record]:
    """What writes a target state; workers that know no STOPPED are told PAUSED."""
    old = TargetState.PAUSED if target is TargetState.STOPPED else target
    return [(_TARGET + name, _json({"state": old.value, "state.v2": target.value}))]


def task_records(name: str, configs: Sequence[Mapping[str, str]]) -> list[Record]:
    """What writes the whole set of task configurations."""
    tasks: list[Record] = [
        (f"{_TASK}{name}-{number}", _json({"properties": dict(each)})) for number, each in enumerate(configs)
    ]
    return [*tasks, (_COMMIT + name, _json({"tasks": len(configs)}))]


def task_count_records(name: str, count: int) -> list[Record]:
    """What tells, after a fencing round, how many transactional ids the next generation uses."""
    return [(_FENCING + name, _json({"task-count": count}))]


def logger_records(logger: str, level: str) -> list[Record]:
    """What sets a log level on every worker."""
    return [(_LOGGER + logger, _json({"level": level}))]


def session_key_records(key: SessionKey) -> list[Record]:
    """What gives every worker a new key."""
    text = base64.b64encode(key.key).decode()
    return [(SESSION_KEY, _json({"key": text, "algorithm": key.algorithm, "creation-timestamp": key.created_ms}))]


def _session_key(content: Any) -> SessionKey:
    try:
        key = base64.b64decode(content["key"], validate=True)
    except binascii.Error as error:
        raise ValueError(f"its key is not base64 ({error})") from error
    return SessionKey(key, str(content["algorithm"]), int(content["creation-timestamp"]))


def _texts(properties: Any) -> dict[str, str]:
    wrong = [key for key, value in properties.items() if not isinstance(value, str)]
    if wrong:
        raise ValueError(f"the value of {wrong[0]} is no text")
    return dict(properties)


def _json(content: Mapping[str, object]) -> bytes:
    return compact_json(content).encode()
