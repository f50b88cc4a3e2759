"""Keys of the three connectors, with MirrorMaker 2's names and defaults."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from wherry.contract.errors import ConfigError
from wherry.contract.mirror import DEFAULT_POLICY, Policy
from wherry.sdk import Config, key
from wherry_mirror.filters import matcher

TOPIC_FILTER = "org.apache.kafka.connect.mirror.DefaultTopicFilter"
GROUP_FILTER = "org.apache.kafka.connect.mirror.DefaultGroupFilter"
CONFIG_FILTER = "org.apache.kafka.connect.mirror.DefaultConfigPropertyFilter"
TOPICS_EXCLUDE = r"mm2.*\.internal,.*\.replica,__.*"
CONFIG_EXCLUDE = (
    "follower.replication.throttled.replicas,leader.replication.throttled.replicas,"
    "message.timestamp.difference.max.ms,log.message.timestamp.before.max.ms,log.message.timestamp.after.max.ms,"
    "message.timestamp.type,unclean.leader.election.enable,min.insync.replicas"
)


class MirrorConfig(Config):
    """Keys that all three have."""

    enabled: bool = key(default=True, doc="Whether to do anything at all.", importance="low")
    source_cluster_alias: str = key(doc="Name of the cluster that is read.", importance="high")
    target_cluster_alias: str = key(default="target", doc="Name of the cluster that is written.", importance="high")
    admin_timeout_ms: int = key(default=60_000, type="long", doc="Time for administrative calls.", importance="low")
    replication_policy_class: str = key(
        default=DEFAULT_POLICY, type="class", doc="How remote topics are named.", importance="low"
    )
    replication_policy_separator: str = key(
        default=".", doc="Stands between alias and topic in the names of remote topics.", importance="low"
    )
    replication_policy_internal_topic_separator_enabled: bool = key(
        default=True, doc="Whether the separator is used in the names of internal topics, too.", importance="low"
    )

    @property
    def topic_patterns(self) -> tuple[list[str], list[str]]:
        """What `topics` and `topics.exclude` say, where they are no keys of the connector but its filter's."""
        given = self.originals
        texts = given.get("topics", ".*"), given.get("topics.exclude", given.get("topics.blacklist", TOPICS_EXCLUDE))
        included, excluded = ([part.strip() for part in text.split(",")] for text in texts)
        return included, excluded

    @property
    def policy(self) -> Policy:
        """How topics are named."""
        return Policy.of({**self.originals, "source.cluster.alias": self.source_cluster_alias})


class SourceConfig(MirrorConfig):
    """Keys of MirrorSourceConnector."""

    topics: list[str] = key(default=".*", doc="Topics to copy: names and regular expressions.", importance="high")
    topics_exclude: list[str] = key(
        default=TOPICS_EXCLUDE,
        doc="Topics not to copy; wins over topics.",
        importance="high",
        aliases=("topics.blacklist",),
    )
    config_properties_exclude: list[str] = key(
        default=CONFIG_EXCLUDE,
        doc="Topic settings that are not copied.",
        importance="high",
        aliases=("config.properties.blacklist",),
    )
    topic_filter_class: str = key(default=TOPIC_FILTER, type="class", doc="Chooses topics.", importance="low")
    config_property_filter_class: str = key(
        default=CONFIG_FILTER, type="class", doc="Chooses settings.", importance="low"
    )
    consumer_poll_timeout_ms: int = key(default=1_000, type="long", doc="Without a meaning here.", importance="low")
    refresh_topics_enabled: bool = key(default=True, doc="Whether new topics are looked for.", importance="low")
    refresh_topics_interval_seconds: int = key(default=600, type="long", doc="How often.", importance="low", min=1)
    sync_topic_configs_enabled: bool = key(default=True, doc="Whether settings are copied.", importance="low")
    sync_topic_configs_interval_seconds: int = key(default=600, type="long", doc="How often.", importance="low", min=1)
    sync_topic_acls_enabled: bool = key(default=True, doc="Whether rights to read are copied.", importance="low")
    sync_topic_acls_interval_seconds: int = key(default=600, type="long", doc="How often.", importance="low", min=1)
    replication_factor: int = key(default=2, doc="Replication factor of new remote topics.", importance="low")
    offset_syncs_topic_replication_factor: int = key(
        name="offset-syncs.topic.replication.factor",
        default=3,
        type="short",
        doc="Replication factor of the topic of offset syncs.",
        importance="low",
    )
    offset_lag_max: int = key(
        default=100, type="long", doc="Offsets after which an offset sync is told at the latest.", importance="low"
    )
    offset_syncs_topic_location: str = key(
        name="offset-syncs.topic.location",
        default="source",
        doc="Cluster of the topic of offset syncs.",
        importance="low",
        one_of=("source", "target"),
    )
    emit_offset_syncs_enabled: bool = key(
        name="emit.offset-syncs.enabled", default=True, doc="Whether offset syncs are told.", importance="low"
    )
    heartbeats_replication_enabled: bool = key(
        default=True, doc="Whether heartbeats are copied whatever topics says.", importance="low"
    )


class CheckpointConfig(MirrorConfig):
    """Keys of MirrorCheckpointConnector."""

    consumer_poll_timeout_ms: int = key(default=1_000, type="long", doc="Without a meaning here.", importance="low")
    groups: list[str] = key(default=".*", doc="Groups to follow: names and regular expressions.", importance="high")
    groups_exclude: list[str] = key(
        default="console-consumer-.*,connect-.*,__.*",
        doc="Groups not to follow; wins over groups.",
        importance="high",
        aliases=("groups.blacklist",),
    )
    group_filter_class: str = key(default=GROUP_FILTER, type="class", doc="Chooses groups.", importance="low")
    topic_filter_class: str = key(default=TOPIC_FILTER, type="class", doc="Chooses topics.", importance="low")
    refresh_groups_enabled: bool = key(default=True, doc="Whether new groups are looked for.", importance="low")
    refresh_groups_interval_seconds: int = key(default=600, type="long", doc="How often.", importance="low", min=1)
    emit_checkpoints_enabled: bool = key(default=True, doc="Whether checkpoints are written.", importance="low")
    emit_checkpoints_interval_seconds: int = key(default=60, type="long", doc="How often.", importance="low", min=1)
    sync_group_offsets_enabled: bool = key(
        default=False, doc="Whether groups of the target cluster are moved.", importance="low"
    )
    sync_group_offsets_interval_seconds: int = key(default=60, type="long", doc="How often.", importance="low", min=1)
    checkpoints_topic_replication_factor: int = key(
        default=3, type="short", doc="Replication factor of the topic of checkpoints.", importance="low"
    )
    offset_syncs_topic_location: str = key(
        name="offset-syncs.topic.location",
        default="source",
        doc="Cluster of the topic of offset syncs.",
        importance="low",
        one_of=("source", "target"),
    )


class HeartbeatConfig(MirrorConfig):
    """Keys of MirrorHeartbeatConnector."""

    emit_heartbeats_enabled: bool = key(default=True, doc="Whether heartbeats are written.", importance="low")
    emit_heartbeats_interval_seconds: int = key(default=1, type="long", doc="How often.", importance="low", min=1)
    heartbeats_topic_replication_factor: int = key(
        default=3, type="short", doc="Replication factor of the topic of heartbeats.", importance="low"
    )


def problems(
    config: MirrorConfig, filters: Mapping[str, tuple[str, str]], patterns: Mapping[str, Sequence[str]]
) -> dict[str, str]:
    """What is wrong with values of several connectors: Java classes of others, bad patterns, clusters without address.

    Args:
        config: The configuration.
        filters: Classes given and known, by key.
        patterns: Names and regular expressions, by key.
    """
    found = {
        name: f"Invalid value {given} for configuration {name}: {known} is there; others are Java classes."
        for name, (given, known) in filters.items()
        if given.rpartition(".")[2] != known.rpartition(".")[2]
    }
    try:
        _ = config.policy
    except ConfigError as error:
        found[error.key or "replication.policy.class"] = str(error)
    for cluster in ("source", "target"):
        name = f"{cluster}.cluster.bootstrap.servers"
        if not config.originals.get(name, "").strip():
            found[name] = f"{name} is not set; it names the brokers of the {cluster} cluster as host:port."
    for name, given in patterns.items():
        try:
            matcher(given, name)
        except ConfigError as error:
            found[name] = str(error)
    return found
