"""MirrorHeartbeatConnector: a record every so often, that shows a flow to be alive wherever it is copied to."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, ClassVar

from wherry.contract.mirror import HEARTBEAT_CLASS, HEARTBEATS_TOPIC, Heartbeat
from wherry.sdk import Offsets, Plan, Record, Source, Task, Work
from wherry_mirror.clusters import Cluster
from wherry_mirror.config import HeartbeatConfig, problems


class MirrorHeartbeat(Source[HeartbeatConfig]):
    """Writes heartbeats to the target cluster."""

    class_name = HEARTBEAT_CLASS
    aliases: ClassVar[Sequence[str]] = ("MirrorHeartbeat", "MirrorHeartbeatConnector")
    parkable = False

    @classmethod
    def validate(cls, config: HeartbeatConfig, connect: bool) -> Mapping[str, str]:
        """Clusters must have addresses."""
        return problems(config, {}, {})

    def plan(self, offsets: Offsets, max_tasks: int) -> Plan:
        """One task, and the topic."""
        config = self.config
        # MirrorMaker's beat whatever `enabled` says: heartbeats show flows of the other direction, too.
        if not config.emit_heartbeats_enabled:
            return Plan()
        target = Cluster(config.originals, "target", config.admin_timeout_ms / 1000)
        target.ensure(HEARTBEATS_TOPIC, config.heartbeats_topic_replication_factor)
        return Plan(tasks=[Task(config=dict(config.originals), partitions=[self._partition()])])

    def read(self, work: Work, offsets: Offsets) -> Iterator[Any]:
        """Beats until it is told to end."""
        config, partition = self.config, self._partition()
        interval_s = config.emit_heartbeats_interval_seconds
        while not self.stopping:
            now_ms = int(time.time() * 1000)
            key, value = Heartbeat(config.source_cluster_alias, config.target_cluster_alias, now_ms).record()
            yield Record(
                value, key, HEARTBEATS_TOPIC, partition=partition, offset={"offset": 0}, timestamp_ms=now_ms,
                kafka_partition=0,
            )  # fmt: skip
            self.wait(interval_s)

    def _partition(self) -> dict[str, str]:
        config = self.config
        return {"sourceClusterAlias": config.source_cluster_alias, "targetClusterAlias": config.target_cluster_alias}
