"""What the records of Kafka Connect's status topic say, taken in order, and the records that say something new.

Pure: keys and values in, states and topics used out.
"""

from __future__ import annotations

import json
import logging
from typing import Any, Final

from wherry.contract.position import compact_json
from wherry.coordinator.api import State
from wherry.coordinator.store import StoredStatus, StoredTopic

log = logging.getLogger(__name__)

Record = tuple[str, bytes | None]
"""Key and value; a value of None takes away what the key said."""

_CONNECTOR, _TASK, _TOPIC = "status-connector-", "status-task-", "status-topic-"
_BETWEEN: Final = ":connector-"  # no topic's name has a colon
_GONE: Final = "DESTROYED"


class StatusLog:
    """The states that a status topic holds. Not safe for use by several threads."""

    def __init__(self) -> None:
        self._statuses: dict[str, dict[int | None, StoredStatus]] = {}
        self._topics: dict[str, dict[str, StoredTopic]] = {}

    def apply(self, key: bytes | None, value: bytes | None) -> bool:
        """Take in one record; False when it says nothing we know, and was left aside."""
        try:
            name = "" if key is None else key.decode()
            content = None if value is None else json.loads(value)
            return self._take(name, content)
        except (ValueError, TypeError, KeyError) as error:
            log.warning("A record of the status topic is damaged and is left aside: key %r, %s", key, error)
            return False

    def get(self, connector: str, task: int | None = None) -> StoredStatus | None:
        """State of a connector, or of one of its tasks."""
        return self._statuses.get(connector, {}).get(task)

    def tasks(self, connector: str) -> list[StoredStatus]:
        """States of all tasks, by task number."""
        numbered = {n: status for n, status in self._statuses.get(connector, {}).items() if n is not None}
        return [numbered[number] for number in sorted(numbered)]

    def topics(self, connector: str) -> list[StoredTopic]:
        """Topics used, in order of discovery."""
        return sorted(self._topics.get(connector, {}).values(), key=lambda topic: topic.discovered_ms)

    def connectors(self) -> list[str]:
        """Connectors of which a state or a topic is known."""
        return list({**self._statuses, **self._topics})

    def _take(self, key: str, content: Any) -> bool:
        if key.startswith(_TOPIC):
            topic, between, connector = key.removeprefix(_TOPIC).partition(_BETWEEN)
            if not between:
                return False
            self._take_topic(connector, topic, content)
        elif key.startswith(_TASK):
            connector, _, number = key.removeprefix(_TASK).rpartition("-")
            self._take_status(connector, int(number), content)
        elif key.startswith(_CONNECTOR):
            self._take_status(key.removeprefix(_CONNECTOR), None, content)
        else:
            return False
        return True

    def _take_status(self, connector: str, task: int | None, content: Any) -> None:
        statuses = self._statuses.get(connector, {})
        if content is None or content["state"] == _GONE:
            statuses.pop(task, None)
            if not statuses:
                self._statuses.pop(connector, None)
            return
        told = StoredStatus(
            connector,
            task,
            State(content["state"]),
            str(content["worker_id"]),
            int(content["generation"]),
            content.get("trace") or "",
            content.get("version"),
        )
        before = statuses.get(task)
        if before is None or not _is_late(told, before):
            self._statuses.setdefault(connector, {})[task] = told

    def _take_topic(self, connector: str, topic: str, content: Any) -> None:
        topics = self._topics.get(connector, {})
        if content is None:
            topics.pop(topic, None)
            if not topics:
                self._topics.pop(connector, None)
            return
        found = content["topic"]
        used = StoredTopic(topic, connector, int(found["task"]), int(found["discoverTimestamp"]))
        self._topics.setdefault(connector, {}).setdefault(topic, used)


def may_put(status: StoredStatus, before: StoredStatus | None) -> bool:
    """Whether a state that is written with care (UNASSIGNED, FAILED) may replace what is there."""
    return before is None or before.worker_id == status.worker_id or before.generation <= status.generation


def status_record(status: StoredStatus) -> Record:
    """What writes a state."""
    told = {
        "state": status.state.value,
        "trace": status.trace or None,
        "worker_id": status.worker_id,
        "generation": status.generation,
        "version": status.version,
    }
    return status_key(status.connector, status.task), compact_json(told).encode()


def status_key(connector: str, task: int | None) -> str:
    """The key of a connector's or a task's state."""
    return _CONNECTOR + connector if task is None else f"{_TASK}{connector}-{task}"


def topic_record(topic: StoredTopic) -> Record:
    """What writes that a topic is used."""
    told = {
        "name": topic.name,
        "connector": topic.connector,
        "task": topic.task,
        "discoverTimestamp": topic.discovered_ms,
    }
    return topic_key(topic.connector, topic.name), compact_json({"topic": told}).encode()


def topic_key(connector: str, topic: str) -> str:
    """The key of a topic that a connector uses."""
    return f"{_TOPIC}{topic}{_BETWEEN}{connector}"


def _is_late(told: StoredStatus, before: StoredStatus) -> bool:
    """Whether a worker that has lost a part tells so after another one has taken it up."""
    return (
        told.state is State.UNASSIGNED
        and before.state is State.RUNNING
        and told.worker_id != before.worker_id
        and told.generation <= before.generation
    )
