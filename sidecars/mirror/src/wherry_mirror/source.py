"""MirrorSourceConnector: which partitions are copied by whom, and the topics they are copied to.

A plan looks at both clusters: topics that have come get a remote topic, those that have grown grow there, settings are
copied, and so are the rights of those who read. The engine reads and writes the records by itself.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, ClassVar

from wherry.contract.errors import ConnectorBugError, WherryError
from wherry.contract.mirror import SOURCE_CLASS, client_settings, mirror_partition
from wherry.sdk import Offsets, Plan, Source, Task, Work
from wherry_mirror.acls import mirrored_acls
from wherry_mirror.clusters import Cluster
from wherry_mirror.config import CONFIG_FILTER, TOPIC_FILTER, SourceConfig, problems
from wherry_mirror.filters import dealt, matcher, mirrored
from wherry_mirror.settings import Setting, changed, wanted_settings

REFUSED_AGAIN_S = 30
"""Between two attempts at topics that the target cluster has refused, or not made in time."""
_EXACTLY_ONCE = "exactly.once.support"


class MirrorSource(Source[SourceConfig]):
    """Copies topics of one cluster into another, as bytes."""

    class_name = SOURCE_CLASS
    aliases: ClassVar[Sequence[str]] = ("MirrorSource", "MirrorSourceConnector")
    parkable = False
    partition_schema: ClassVar[Any] = {"type": "object", "required": ["cluster", "partition", "topic"]}
    offset_schema: ClassVar[Any] = {"type": "object", "required": ["offset"]}

    def __init__(self, config: SourceConfig, context: Any) -> None:
        super().__init__(config, context)
        self._done_s: dict[str, float] = {}
        self._known: dict[str, int] = {}
        self._complained: set[str] = set()
        self._refused: set[str] = set()

    @classmethod
    def validate(cls, config: SourceConfig, connect: bool) -> Mapping[str, str]:
        """Patterns must be some, clusters have addresses, and filters be those that are here."""
        found = problems(
            config,
            {
                "topic.filter.class": (config.topic_filter_class, TOPIC_FILTER),
                "config.property.filter.class": (config.config_property_filter_class, CONFIG_FILTER),
            },
            {
                "topics": config.topics,
                "topics.exclude": config.topics_exclude,
                "config.properties.exclude": config.config_properties_exclude,
            },
        )
        isolation = client_settings(config.originals, "source", "consumer").get("isolation.level", "")
        required = config.originals.get(_EXACTLY_ONCE, "").strip().lower() == "required"
        if required and isolation.strip().lower() != "read_committed":
            found[_EXACTLY_ONCE] = (
                "The connector does not support exactly-once semantics with the provided configuration: it would copy "
                "records of transactions that were rolled back. Set source.consumer.isolation.level=read_committed."
            )
        return found

    def plan(self, offsets: Offsets, max_tasks: int) -> Plan:
        """Brings the target's topics up to date, and deals the partitions out."""
        config = self.config
        if not config.enabled:
            return Plan()
        timeout_s = config.admin_timeout_ms / 1000
        source = Cluster(config.originals, "source", timeout_s)
        target = Cluster(config.originals, "target", timeout_s)
        if not self._known or (config.refresh_topics_enabled and self._is_due("topics")):
            self._refresh(source, target)
        if config.sync_topic_configs_enabled and self._is_due("configs"):
            self._attempt("topic configurations", lambda: self._copy_settings(source, target))
        if config.sync_topic_acls_enabled and self._is_due("acls"):
            self._attempt("topic ACLs", lambda: self._copy_acls(source, target))
        partitions = [(name, number) for name, count in sorted(self._known.items()) for number in range(count)]
        tasks = [self._task(number, share) for number, share in enumerate(dealt(partitions, max_tasks))]
        soon = [REFUSED_AGAIN_S] if self._refused else []
        return Plan(tasks=tasks, replan_after_ms=min([*self._intervals().values(), *soon], default=0) * 1000)

    def read(self, work: Work, offsets: Offsets) -> Iterator[Any]:
        """Never: records do not pass through here."""
        raise ConnectorBugError("The engine copies records by itself; it must not ask the plugin for them.")

    def _task(self, number: int, share: list[tuple[str, int]]) -> Task:
        names = ",".join(f"{topic}-{partition}" for topic, partition in share)
        shown = {**self.config.originals, "task.index": str(number), "task.assigned.partitions": names}
        alias = self.config.source_cluster_alias
        return Task(config=shown, partitions=[mirror_partition(alias, *each) for each in share])

    def _intervals(self) -> dict[str, int]:
        """How often what is done, in seconds; nothing of what is switched off."""
        config = self.config
        wanted = {
            "topics": (config.refresh_topics_enabled, config.refresh_topics_interval_seconds),
            "configs": (config.sync_topic_configs_enabled, config.sync_topic_configs_interval_seconds),
            "acls": (config.sync_topic_acls_enabled, config.sync_topic_acls_interval_seconds),
        }
        return {what: seconds for what, (enabled, seconds) in wanted.items() if enabled}

    def _is_due(self, what: str) -> bool:
        """Whether it is time for something; plans come as often as what is done most often."""
        now, interval = time.monotonic(), self._intervals()[what]
        # A plan that comes a little early must not put it off by a whole round.
        if now - self._done_s.get(what, float("-inf")) < interval - min(1.0, interval / 2):
            return False
        self._done_s[what] = now
        return True

    def _attempt(self, what: str, act: Callable[[], None]) -> None:
        """Does what records need not wait for; trouble is told once, until it is over."""
        try:
            act()
            self._complained.discard(what)
        except WherryError as error:
            if what not in self._complained:
                self._complained.add(what)
                self.log.warning(f"{what} are not copied: {error}")

    def _mirrored(self) -> Callable[[str], bool]:
        config = self.config
        return mirrored(
            config.policy,
            target=config.target_cluster_alias,
            included=matcher(config.topics, "topics"),
            excluded=matcher(config.topics_exclude, "topics.exclude"),
            heartbeats=config.heartbeats_replication_enabled,
        )

    def _remote(self, topic: str) -> str:
        return self.config.policy.remote(self.config.source_cluster_alias, topic)

    def _refresh(self, source: Cluster, target: Cluster) -> None:
        """Looks for topics, and makes and grows their remote topics."""
        config, policy, wanted = self.config, self.config.policy, self._mirrored()
        topics = {name: count for name, count in source.topics().items() if wanted(name)}
        if config.emit_offset_syncs_enabled:
            near_source = config.offset_syncs_topic_location == "source"
            other = config.target_cluster_alias if near_source else config.source_cluster_alias
            place = source if near_source else target
            place.ensure(policy.offset_syncs(other), config.offset_syncs_topic_replication_factor)
        there = target.topics()
        new = [topic for topic in topics if self._remote(topic) not in there]
        settings = self._wanted_settings(source.topic_settings(new))
        known: dict[str, int] = {}
        refused: list[tuple[str, WherryError]] = []
        for topic, count in topics.items():
            before = there.get(self._remote(topic), 0)
            try:
                self._fit(target, topic, before, count, settings.get(topic, {}))
                known[topic] = count
            except WherryError as error:
                refused.append((topic, error))
                if before:
                    known[topic] = min(before, count)
        if refused and not known:
            raise refused[0][1]
        self._tell_refused(refused)
        self._known = known

    def _fit(self, target: Cluster, topic: str, before: int, count: int, settings: Mapping[str, str]) -> None:
        """Makes or grows a remote topic that has so many partitions; 0 if it is not there."""
        name = self._remote(topic)
        if not before:
            target.create(name, count, self.config.replication_factor, settings)
            self.log.info(f"topic {name} was created with {count} partition(s)")
        elif before < count:
            target.grow(name, count)
            self.log.info(f"topic {name} has grown to {count} partitions")

    def _tell_refused(self, refused: Sequence[tuple[str, WherryError]]) -> None:
        """As in MirrorMaker a topic that can't be had holds up no other; it is told once, and asked for again."""
        for topic, error in refused:
            if topic not in self._refused:
                self.log.warning(f"topic {topic} is not mirrored as it is: {error}")
        self._refused = {topic for topic, _ in refused}
        if refused:
            self._done_s.pop("topics", None)

    def _copy_settings(self, source: Cluster, target: Cluster) -> None:
        excluded = matcher(self.config.config_properties_exclude, "config.properties.exclude")
        wanted = self._wanted_settings(source.topic_settings(list(self._known)))
        found = target.topic_settings([self._remote(topic) for topic in self._known])
        target.alter_configs(
            {
                self._remote(topic): changes
                for topic in self._known
                if (changes := changed(wanted.get(topic, {}), found.get(self._remote(topic), {}), excluded))
            }
        )

    def _wanted_settings(self, settings: Mapping[str, Mapping[str, Setting]]) -> dict[str, dict[str, str]]:
        excluded = matcher(self.config.config_properties_exclude, "config.properties.exclude")
        defaults = self.config.originals.get("use.defaults.from", "target").strip().lower() == "source"
        return {topic: wanted_settings(each, excluded, defaults=defaults) for topic, each in settings.items()}

    def _copy_acls(self, source: Cluster, target: Cluster) -> None:
        acls = source.topic_acls()
        if acls is None:
            self._done_s["acls"] = float("inf")
            self.log.info(
                "The source cluster has no authorizer, so there are no topic ACLs to copy; "
                "sync.topic.acls.enabled=false stops asking."
            )
            return
        wanted = mirrored_acls(acls, self._mirrored(), self._remote)
        target.create_acls(wanted)
