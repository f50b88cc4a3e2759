"""One Kafka cluster, as the connectors ask and change it. Every call has a deadline."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from confluent_kafka import Consumer, ConsumerGroupTopicPartitions, KafkaError, KafkaException, TopicPartition
from confluent_kafka.admin import (
    AclBinding,
    AclBindingFilter,
    AclOperation,
    AclPermissionType,
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    ConfigSource,
    NewPartitions,
    NewTopic,
    ResourcePatternType,
    ResourceType,
)

from wherry.contract.errors import AuthError, TransientError, WherryError
from wherry.contract.kafka_clients import JAVA_DEFAULTS, ClientKind, translate
from wherry.contract.leaders import await_leaders
from wherry.contract.mirror import client_settings
from wherry_mirror.acls import Acl
from wherry_mirror.settings import Setting

_DEFAULT = ConfigSource.DEFAULT_CONFIG.value
_TOPIC = ConfigSource.DYNAMIC_TOPIC_CONFIG.value
_FILE = ConfigSource.STATIC_BROKER_CONFIG.value
_IN_USE = frozenset((
    KafkaError.UNKNOWN_MEMBER_ID, KafkaError.NON_EMPTY_GROUP, KafkaError.REBALANCE_IN_PROGRESS,
))  # fmt: skip
_ANY_TOPIC_ACL = AclBindingFilter(
    ResourceType.TOPIC, None, ResourcePatternType.ANY, None, None, AclOperation.ANY, AclPermissionType.ANY
)


class Cluster:
    """The source or the target cluster of a connector.

    Args:
        config: The connector's configuration.
        side: `source` or `target`.
        timeout_s: Time for each call.
    """

    def __init__(self, config: Mapping[str, str], side: str, timeout_s: float) -> None:
        self._config = config
        self._side = side
        self._timeout_s = timeout_s
        self._admin_client: Any = None

    def settings(self, kind: ClientKind) -> dict[str, Any]:
        """Settings of a client of this cluster."""
        java = {**JAVA_DEFAULTS, **client_settings(self._config, self._side, kind)}
        return {"log_level": 0, **translate(kind, java).values}

    def topics(self) -> dict[str, int]:
        """All topics with their numbers of partitions."""
        try:
            found = self._admin.list_topics(timeout=self._timeout_s).topics
        except KafkaException as error:
            raise self._error("list topics", error) from error
        return {name: len(topic.partitions) for name, topic in found.items() if topic.error is None}

    def create(self, topic: str, partitions: int, replication: int, config: Mapping[str, str]) -> None:
        """Creates a topic unless it is there, and waits until it is seen."""
        new = NewTopic(topic, partitions, replication, config=dict(config))
        try:
            self._admin.create_topics([new])[topic].result(self._timeout_s)
        except KafkaException as error:
            if error.args[0].code() != KafkaError.TOPIC_ALREADY_EXISTS:
                raise self._error(f"create topic {topic}", error) from error
        except TimeoutError as error:
            raise self._error(f"create topic {topic}", error) from error
        self._await_leaders(topic, max(partitions, 1))

    def ensure(self, topic: str, replication: int) -> None:
        """Creates a compacted topic of one partition unless it is there, as MirrorMaker does for its own."""
        if topic not in self.topics():
            self.create(topic, 1, replication, {"cleanup.policy": "compact"})

    def grow(self, topic: str, partitions: int) -> None:
        """Gives a topic more partitions."""
        try:
            self._admin.create_partitions([NewPartitions(topic, partitions)])[topic].result(self._timeout_s)
        except (KafkaException, TimeoutError) as error:
            raise self._error(f"add partitions to topic {topic}", error) from error
        self._await_leaders(topic, partitions)

    def topic_settings(self, topics: Sequence[str]) -> dict[str, dict[str, Setting]]:
        """Settings of topics that may be changed, by their names, and where they come from."""
        if not topics:
            return {}
        try:
            futures = self._admin.describe_configs([ConfigResource(ResourceType.TOPIC, topic) for topic in topics])
            return {
                resource.name: {
                    name: Setting(
                        entry.value,
                        is_default=entry.source == _DEFAULT,
                        of_topic=entry.source == _TOPIC,
                        of_file=entry.source == _FILE,
                    )
                    for name, entry in future.result(self._timeout_s).items()
                    if entry.value is not None and not entry.is_read_only and not entry.is_sensitive
                }
                for resource, future in futures.items()
            }
        except (KafkaException, TimeoutError) as error:
            raise self._error("read the settings of topics", error) from error

    def topic_acls(self) -> list[Acl] | None:
        """Who may do what with topics; None where the cluster lets everybody do everything."""
        try:
            found = self._admin.describe_acls(_ANY_TOPIC_ACL).result(self._timeout_s)
        except KafkaException as error:
            if error.args[0].code() == KafkaError.SECURITY_DISABLED:
                return None
            raise self._error("tell its ACLs", error) from error
        except TimeoutError as error:
            raise self._error("tell its ACLs", error) from error
        return [
            Acl(
                each.name,
                each.principal,
                each.host,
                each.operation.name,
                each.permission_type.name,
                literal=each.resource_pattern_type == ResourcePatternType.LITERAL,
            )
            for each in found
        ]

    def create_acls(self, acls: Sequence[Acl]) -> None:
        """Grants and denies; what is there already stays."""
        if not acls:
            return
        bindings = [
            AclBinding(
                ResourceType.TOPIC,
                acl.topic,
                ResourcePatternType.LITERAL,
                acl.principal,
                acl.host,
                AclOperation[acl.operation],
                AclPermissionType[acl.permission],
            )
            for acl in acls
        ]
        try:
            for future in self._admin.create_acls(bindings).values():
                future.result(self._timeout_s)
        except (KafkaException, TimeoutError) as error:
            raise self._error("take the ACLs of topics", error) from error

    def alter_configs(self, changes: Mapping[str, Mapping[str, str | None]]) -> None:
        """Sets settings of topics; None takes one back."""
        resources = []
        for topic, values in changes.items():
            entries = [
                ConfigEntry(
                    name,
                    value,
                    incremental_operation=AlterConfigOpType.DELETE if value is None else AlterConfigOpType.SET,
                )
                for name, value in values.items()
            ]
            resources.append(ConfigResource(ResourceType.TOPIC, topic, incremental_configs=entries))
        if not resources:
            return
        try:
            for future in self._admin.incremental_alter_configs(resources).values():
                future.result(self._timeout_s)
        except (KafkaException, TimeoutError) as error:
            raise self._error("copy settings of topics", error) from error

    def groups(self) -> list[str]:
        """Names of all consumer groups."""
        try:
            listed = self._admin.list_consumer_groups().result(self._timeout_s)
        except (KafkaException, TimeoutError) as error:
            raise self._error("list consumer groups", error) from error
        return sorted(group.group_id for group in listed.valid)

    def offsets(
        self, group: str, partitions: Sequence[tuple[str, int]]
    ) -> dict[tuple[str, int], tuple[int | None, str]]:
        """Committed offsets of a group with their metadata; None for a partition without one.

        Left out are partitions of which the cluster doesn't tell.
        """
        # NB: the admin client's own call crashes the process when it fails.
        consumer = Consumer({**self.settings("consumer"), "group.id": group, "enable.auto.commit": False})
        try:
            natives = consumer.committed([TopicPartition(*each) for each in partitions], self._timeout_s)
        except KafkaException as error:
            raise self._error(f"read the offsets of group {group}", error) from error
        finally:
            consumer.close()
        return {
            (each.topic, each.partition): (each.offset if each.offset >= 0 else None, each.metadata or "")
            for each in natives
            if each.error is None
        }

    def has_members(self, group: str) -> bool:
        """Whether a group is in use."""
        try:
            described = self._admin.describe_consumer_groups([group])[group].result(self._timeout_s)
        except (KafkaException, TimeoutError) as error:
            if isinstance(error, KafkaException) and error.args[0].code() == KafkaError.GROUP_ID_NOT_FOUND:
                return False
            raise self._error(f"describe group {group}", error) from error
        return bool(described.members)

    def commit(self, group: str, offsets: Mapping[tuple[str, int], int]) -> None:
        """Writes offsets of a group that is not in use."""
        natives = [TopicPartition(topic, number, offset) for (topic, number), offset in offsets.items()]
        try:
            request = [ConsumerGroupTopicPartitions(group, natives)]
            done = self._admin.alter_consumer_group_offsets(request)[group].result(self._timeout_s)
            for each in done.topic_partitions:
                # Somebody has come to use the group meanwhile.
                if each.error is not None and each.error.code() not in _IN_USE:
                    raise KafkaException(each.error)
        except (KafkaException, TimeoutError) as error:
            raise self._error(f"move group {group}", error) from error

    def _await_leaders(self, topic: str, partitions: int) -> None:
        await_leaders(lambda: AdminClient(self.settings("admin")), topic, partitions=partitions)

    @property
    def _admin(self) -> Any:
        if self._admin_client is None:
            self._admin_client = AdminClient(self.settings("admin"))
        return self._admin_client

    def _error(self, what: str, error: Exception) -> WherryError:
        known = error.args[0] if error.args and isinstance(error.args[0], KafkaError) else None
        reason = "no answer in time" if known is None else f"{known.str()} ({known.name()})"
        message = f"The {self._side} cluster did not {what}: {reason}."
        if known is not None and "AUTH" in known.name():
            return AuthError(message)
        # A client that has seen its brokers go away is not to be trusted again.
        self._admin_client = None
        return TransientError(message)
