"""What a coordinator keeps: connectors, positions and states.

Decides the Protocols only; `local.py` keeps them in one process and a file, as Kafka Connect's standalone mode does.
Implementations are safe for use by many threads. What a method has written is durable, as far as the store is, when
the method returns.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from wherry.contract.position import Position
from wherry.coordinator.api import State, TargetState

__all__ = [
    "ConfigSnapshot",
    "ConfigStore",
    "OffsetStore",
    "StatusStore",
    "StoredConnector",
    "StoredStatus",
    "StoredTopic",
]


@dataclass(frozen=True, slots=True)
class StoredConnector:
    """A connector as kept. `tasks` is the committed set of task configurations, by task number."""

    name: str
    config: Mapping[str, str]
    target_state: TargetState = TargetState.STARTED
    tasks: tuple[Mapping[str, str], ...] = ()


@dataclass(frozen=True, slots=True)
class ConfigSnapshot:
    """All connectors at one moment; `version` rises with every change."""

    version: int
    connectors: Mapping[str, StoredConnector] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class StoredStatus:
    """State of a connector (`task` None) or of a task."""

    connector: str
    task: int | None
    state: State
    worker_id: str
    generation: int = 0
    trace: str = ""
    version: str | None = None


@dataclass(frozen=True, slots=True)
class StoredTopic:
    """A topic that a task of a connector has used."""

    name: str
    connector: str
    task: int
    discovered_ms: int


class ConfigStore(Protocol):
    """Connectors, their target states and their task configurations."""

    def snapshot(self) -> ConfigSnapshot:
        """Everything, as of now."""

    def put_connector(self, name: str, config: Mapping[str, str], target_state: TargetState | None = None) -> None:
        """Write a configuration; None leaves the target state (STARTED for a new connector)."""

    def delete_connector(self, name: str) -> None:
        """Forget a connector; unknown names are fine."""

    def put_target_state(self, name: str, target_state: TargetState) -> None:
        """Write what the connector is wanted to be; unknown names are ignored."""

    def put_task_configs(self, name: str, configs: Sequence[Mapping[str, str]]) -> None:
        """Write the whole set of task configurations at once."""

    def task_count(self, name: str) -> int | None:
        """How many tasks of a source may have transactions open, as last told; None if it never was."""

    def put_task_count(self, name: str, count: int) -> None:
        """Tell how many tasks may have transactions open, once those of all earlier ones are fenced."""


class OffsetStore(Protocol):
    """Positions of sources: {partition map} → {offset map}, matched by bytes of the compact JSON."""

    def load(self, connector: str) -> list[Position]:
        """All positions of a connector, in the order they were first written."""

    def write(self, connector: str, positions: Sequence[Position]) -> None:
        """Write positions together; one without offset forgets its partition."""

    def reset(self, connector: str) -> None:
        """Forget all positions of a connector."""


class StatusStore(Protocol):
    """States shown to people, and topics used."""

    def put(self, status: StoredStatus) -> None:
        """Write a state; one of a lower generation than what is there is ignored."""

    def get(self, connector: str, task: int | None = None) -> StoredStatus | None:
        """State of a connector, or of one of its tasks."""

    def tasks(self, connector: str) -> list[StoredStatus]:
        """States of all tasks, by task number."""

    def remove(self, connector: str, task: int | None = None) -> None:
        """Forget a task's state; without a task the connector's with all its tasks and topics."""

    def add_topic(self, topic: StoredTopic) -> None:
        """Remember that a topic is used; the first discovery stays."""

    def topics(self, connector: str) -> list[str]:
        """Topics used, in order of discovery."""

    def reset_topics(self, connector: str) -> None:
        """Forget the topics of a connector."""
