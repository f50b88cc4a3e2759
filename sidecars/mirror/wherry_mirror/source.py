"""MirrorSourceConnector: which partitions are copied by whom, and the topics they are copied to.

Every plan looks at both clusters anew: topics that have come get a remote topic, those that have grown grow there, and
settings are copied. The engine reads and writes the records by itself.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, ClassVar

from wherry.contract.errors import ConnectorBugError
from wherry.contract.mirror import SOURCE_CLASS, mirror_partition
from wherry.sdk import Offsets, Plan, Source, Task, Work
from wherry_mirror.clusters import Cluster
from wherry_mirror.config import CONFIG_FILTER, TOPIC_FILTER, SourceConfig, problems
from wherry_mirror.filters import dealt, matcher, mirrored_topics


class MirrorSource(Source[SourceConfig]):
    """Copies topics of one cluster into another, as bytes."""

    class_name = SOURCE_CLASS
    aliases: ClassVar[Sequence[str]] = ("MirrorSource", "MirrorSourceConnector")
    parkable = False
    partition_schema: ClassVar[Any] = {"type": "object", "required": ["cluster", "partition", "topic"]}
    offset_schema: ClassVar[Any] = {"type": "object", "required": ["offset"]}

    @classmethod
    def validate(cls, config: SourceConfig, connect: bool) -> Mapping[str, str]:
        """Patterns must be some, clusters have addresses, and filters be those that are here."""
        return problems(
            config,
            {
                "topic.filter.class": (config.topic_filter_class, TOPIC_FILTER),
                "config.property.filter.class": (config.config_property_filter_class, CONFIG_FILTER),
            },
            {"topics": config.topics, "topics.exclude": config.topics_exclude},
        )

    def plan(self, offsets: Offsets, max_tasks: int) -> Plan:
        """Brings the target's topics up to date, and deals the partitions out."""
        config = self.config
        if not config.enabled:
            return Plan()
        timeout_s = config.admin_timeout_ms / 1000
        source = Cluster(config.originals, "source", timeout_s)
        target = Cluster(config.originals, "target", timeout_s)
        there = source.topics()
        names = mirrored_topics(
            list(there),
            config.policy,
            target=config.target_cluster_alias,
            included=matcher(config.topics, "topics"),
            excluded=matcher(config.topics_exclude, "topics.exclude"),
            heartbeats=config.heartbeats_replication_enabled,
        )
        self._prepare(source, target, {name: there[name] for name in names})
        partitions = [(name, number) for name in names for number in range(there[name])]
        tasks = [self._task(number, share) for number, share in enumerate(dealt(partitions, max_tasks))]
        intervals = [
            seconds
            for enabled, seconds in (
                (config.refresh_topics_enabled, config.refresh_topics_interval_seconds),
                (config.sync_topic_configs_enabled, config.sync_topic_configs_interval_seconds),
            )
            if enabled
        ]
        return Plan(tasks=tasks, replan_after_ms=min(intervals, default=0) * 1000)

    def read(self, work: Work, offsets: Offsets) -> Iterator[Any]:
        """Never: records do not pass through here."""
        raise ConnectorBugError("The engine copies records by itself; it must not ask the plugin for them.")

    def _task(self, number: int, share: list[tuple[str, int]]) -> Task:
        names = ",".join(f"{topic}-{partition}" for topic, partition in share)
        shown = {**self.config.originals, "task.index": str(number), "task.assigned.partitions": names}
        alias = self.config.source_cluster_alias
        return Task(config=shown, partitions=[mirror_partition(alias, *each) for each in share])

    def _prepare(self, source: Cluster, target: Cluster, topics: Mapping[str, int]) -> None:
        config, policy = self.config, self.config.policy
        if config.emit_offset_syncs_enabled:
            near_source = config.offset_syncs_topic_location == "source"
            other = config.target_cluster_alias if near_source else config.source_cluster_alias
            place = source if near_source else target
            place.ensure(policy.offset_syncs(other), config.offset_syncs_topic_replication_factor)
        remote = {topic: policy.remote(config.source_cluster_alias, topic) for topic in topics}
        there = target.topics()
        excluded = matcher(config.config_properties_exclude, "config.properties.exclude")
        wanted = {
            topic: {name: value for name, value in values.items() if not excluded(name)}
            for topic, values in source.topic_configs(list(topics)).items()
        }
        for topic, count in topics.items():
            name = remote[topic]
            if name not in there:
                target.create(name, count, config.replication_factor, wanted.get(topic, {}))
                self.log.info(f"topic {name} was created with {count} partition(s)")
            elif there[name] < count:
                target.grow(name, count)
                self.log.info(f"topic {name} has grown to {count} partitions")
        if config.sync_topic_configs_enabled:
            old = [topic for topic in topics if remote[topic] in there]
            found = target.topic_configs([remote[topic] for topic in old])
            target.alter_configs(
                {
                    remote[topic]: changes
                    for topic in old
                    if (changes := changed(wanted.get(topic, {}), found.get(remote[topic], {}), excluded))
                }
            )


def changed(wanted: Mapping[str, str], found: Mapping[str, str], excluded: Any) -> dict[str, str | None]:
    """Settings to set, and with None those to take back, so that a remote topic is as its origin."""
    changes: dict[str, str | None] = {name: value for name, value in wanted.items() if found.get(name) != value}
    changes.update({name: None for name in found if name not in wanted and not excluded(name)})
    return changes
