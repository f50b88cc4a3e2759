"""The parts of a coordinator put together: what each needs of the others, and of what is stored."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from wherry.coordinator import events as ev
from wherry.coordinator import exactly_once
from wherry.coordinator.commits import PositionKeeper, group_of
from wherry.coordinator.config.worker import WorkerConfig
from wherry.coordinator.control import ControlServer
from wherry.coordinator.exactly_once import Fencer
from wherry.coordinator.figures import Figures
from wherry.coordinator.grants import Grants
from wherry.coordinator.hands import Hands
from wherry.coordinator.hosts import HostClient
from wherry.coordinator.kafka import KafkaAdmin
from wherry.coordinator.manners import lease_timings, spark_settings
from wherry.coordinator.planner import Planner
from wherry.coordinator.plugins import PluginRegistry
from wherry.coordinator.runner import Lanes
from wherry.coordinator.spark import SparkEngine
from wherry.coordinator.sparksettings import SparkSettings
from wherry.coordinator.staged import StagedCommits
from wherry.coordinator.store import ConfigStore, OffsetStore, StatusStore, StoredConnector, StoredTopic
from wherry.coordinator.store.own_topics import OwnTopicOffsets
from wherry.coordinator.watcher import Watcher


@dataclass(frozen=True, slots=True)
class Stores:
    """Where things are kept. `may_write` raises FencedError when another coordinator keeps them now."""

    configs: ConfigStore
    offsets: OffsetStore
    statuses: StatusStore
    may_write: Callable[[], None] = lambda: None


def hands_of(
    worker: WorkerConfig,
    registry: PluginRegistry,
    hosts: HostClient,
    stores: Stores,
    run_directory: Path,
    post: Callable[[ev.Event], None],
    *,
    worker_id: str,
) -> Hands:
    """All that carries out effects, not yet started; events go to `post`. The other arguments are the herder's."""
    kafka = KafkaAdmin(worker.admin_config())
    spark = spark_settings(worker, run_directory, _own_host(worker_id))
    # Workers on other machines have a host of their own there.
    grants = Grants(worker, registry, lease_timings(worker), hosts.endpoint if spark.local else "")
    stored = _Stored(worker, stores, grants)
    figures = Figures(stored.topic_used)
    offsets = OwnTopicOffsets(stores.offsets, worker.values, stored.config_of)
    keeper = PositionKeeper(offsets, kafka, write_behind=offsets.write_behind, may_write=stores.may_write)
    planner = Planner(hosts, kafka, grants, post, stored.keep_config)
    return Hands(
        post=post,
        lanes=Lanes(),
        control=_control(worker, spark, run_directory, post, keeper, figures),
        spark=SparkEngine(spark, post),
        hosts=hosts,
        keeper=keeper,
        staged=StagedCommits(stores.offsets, planner.apply_tokens, keeper.commit),
        planner=planner,
        watcher=Watcher(
            kafka.end_offsets,
            lambda name, partitions: kafka.group_offsets(stored.group_of(name), partitions),
            kafka.topics,
            post,
        ),
        grants=grants,
        figures=figures,
        configs=stores.configs,
        statuses=stores.statuses,
        worker_id=worker_id,
        fencer=Fencer(worker, grants.resolved, stores.configs) if exactly_once.is_enabled(worker) else None,
    )


class _Stored:
    """What parts ask of stored connectors by name, and what they have kept of them."""

    def __init__(self, worker: WorkerConfig, stores: Stores, grants: Grants) -> None:
        self._worker = worker
        self._stores = stores
        self._grants = grants

    def config_of(self, name: str) -> dict[str, str]:
        """A connector's configuration, resolved; empty for one that is unknown."""
        stored = self._find(name)
        return {} if stored is None else self._grants.resolved(stored.config)

    def group_of(self, name: str) -> str:
        """Consumer group of a sink."""
        stored = self._find(name)
        return group_of(name, {} if stored is None else self._grants.read_here(stored.config))

    def topic_used(self, connector: str, task: int, topic: str) -> None:
        """Remember that a task has used a topic, where the operator wants that."""
        if self._worker.topic_tracking:
            self._stores.statuses.add_topic(StoredTopic(topic, connector, task, int(time.time() * 1000)))

    def keep_config(self, name: str, values: Mapping[str, str]) -> None:
        """A sidecar wants configuration kept, such as a rotated token: stored, and taken up at the next start."""
        stored = self._find(name)
        if stored is not None and values:
            self._stores.configs.put_connector(name, {**stored.config, **values})

    def _find(self, name: str) -> StoredConnector | None:
        return self._stores.configs.snapshot().connectors.get(name)


def _control(
    worker: WorkerConfig,
    spark: SparkSettings,
    run_directory: Path,
    post: Callable[[ev.Event], None],
    keeper: PositionKeeper,
    figures: Figures,
) -> ControlServer:
    """Where workers report: on a socket when they run beside us, else on an address that they can reach."""
    return ControlServer(
        post,
        keeper.load_source,
        figures,
        run_directory,
        tcp_host=None if spark.local else spark.host,
        tcp_bind=worker.spark_settings.get("spark.driver.bindAddress", ""),
        may_speak=keeper.may_write,
    )


def _own_host(worker_id: str) -> str:
    return worker_id.rpartition(":")[0] or "127.0.0.1"
