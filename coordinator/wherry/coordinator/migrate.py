"""What Wherry would make of a Kafka Connect cluster: read from its topics, with nothing joined, written or started.

`examine` is pure: what the topics hold goes in, a verdict on every connector comes out. `read` is what reads them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from wherry.contract.connect_topics import OffsetLog
from wherry.coordinator.api import ApiError, ConnectorType, State
from wherry.coordinator.config.worker import WorkerConfig
from wherry.coordinator.kafka import KafkaAdmin
from wherry.coordinator.store import StoredConnector
from wherry.coordinator.store.configlog import ConfigLog
from wherry.coordinator.store.internal_topics import InternalTopic, check, internal_topics
from wherry.coordinator.store.statuslog import StatusLog
from wherry.coordinator.store.topiclog import TopicLog


@dataclass(frozen=True, slots=True)
class Plugin:
    """What would run a connector."""

    name: str
    version: str
    type: ConnectorType


@dataclass(frozen=True, slots=True)
class Verdict:
    """What would become of one connector.

    Attributes:
        name: The connector.
        class_name: Its class, as configured.
        plugin: What would run it; None when nothing can.
        target: STARTED, PAUSED or STOPPED.
        tasks: Number of its tasks now.
        positions: Number of positions it would go on from, of a source.
        state: What it shows now; None when nothing is told of it.
        problems: Why it would not run; empty when it would.
    """

    name: str
    class_name: str
    plugin: Plugin | None
    target: str
    tasks: int
    positions: int
    state: State | None
    problems: tuple[str, ...] = ()

    @property
    def runs(self) -> bool:
        """Whether it would run."""
        return not self.problems


@dataclass(slots=True)
class Cluster:
    """What the three topics hold.

    Attributes:
        missing: Topics that are not there, and would be created.
        problems: Why the topics cannot serve.
    """

    configs: ConfigLog = field(default_factory=ConfigLog)
    offsets: OffsetLog = field(default_factory=OffsetLog)
    statuses: StatusLog = field(default_factory=StatusLog)
    missing: list[str] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)


def read(worker: WorkerConfig) -> Cluster:
    """Read the topics that a distributed worker's file names.

    Raises:
        WherryError: Kafka does not answer, or refuses.
    """
    client = worker.admin_config()
    admin = KafkaAdmin(client)
    cluster = Cluster()
    there = admin.topics()
    takers = (cluster.configs.apply, cluster.offsets.apply, cluster.statuses.apply)
    for topic, apply in zip(internal_topics(worker.values, worker.parsed), takers, strict=True):
        if topic.name not in there:
            cluster.missing.append(topic.name)
            continue
        problem = check(admin, topic, there[topic.name])
        if problem is not None:
            cluster.problems.append(problem.message)
        _read_one(topic, client, admin, apply, str(worker.parsed["group.id"]))
    return cluster


def examine(
    cluster: Cluster,
    find: Callable[[Mapping[str, str]], Plugin | None],
    errors_of: Callable[[Mapping[str, str]], Sequence[str]],
) -> list[Verdict]:
    """What would become of every connector, by name.

    Args:
        cluster: What the topics hold.
        find: The plugin of a configuration.
        errors_of: What is wrong with a configuration. May raise ApiError.
    """
    connectors = cluster.configs.snapshot().connectors
    return [_examined(cluster, connectors[name], find, errors_of) for name in sorted(connectors)]


def _examined(
    cluster: Cluster,
    stored: StoredConnector,
    find: Callable[[Mapping[str, str]], Plugin | None],
    errors_of: Callable[[Mapping[str, str]], Sequence[str]],
) -> Verdict:
    class_name = stored.config.get("connector.class", "")
    plugin = find(stored.config)
    problems: tuple[str, ...]
    if plugin is None:
        problems = (f"No plugin has a class {class_name}: put one on plugin.path.",)
    else:
        try:
            problems = tuple(errors_of(stored.config))
        except ApiError as error:
            problems = (error.message,)
    shown = cluster.statuses.get(stored.name)
    return Verdict(
        stored.name,
        class_name,
        plugin,
        stored.target_state.value,
        len(stored.tasks),
        len(cluster.offsets.positions(stored.name)),
        None if shown is None else shown.state,
        problems,
    )


def _read_one(
    topic: InternalTopic,
    client: Mapping[str, object],
    admin: KafkaAdmin,
    apply: Callable[[bytes | None, bytes | None], object],
    group: str,
) -> None:
    log = TopicLog(topic.name, client, admin, apply, group=group)
    try:
        log.start()
    finally:
        log.close()
