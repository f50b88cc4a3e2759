"""What the coordinator asks of Kafka: topics, end offsets, and the offsets of consumer groups.

One admin client for all connectors, made at the first call (never at import: workers are forked). Every call has a
deadline and raises a WherryError whose class says what happens next. A group's offsets are written without being a
member of it, as an operator's tool would.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import TimeoutError as FutureTimeoutError
from typing import Any, Final, TypeVar

from wherry.contract.errors import AuthError, ConfigError, ErrorClass, TransientError, WherryError, error_for
from wherry.contract.kafka_security import refusal_remedy
from wherry.contract.leaders import REQUEST_TIMEOUT_S
from wherry.contract.position import TopicPartition
from wherry.coordinator.coalesce import Coalesced

CALL_TIMEOUT_S: Final = 10.0
CONSUMERS_MAX: Final = 8
GROUPS_READY_S: Final = 5.0
GROUPS_RETRY_S: Final = 0.2
INTERNAL_TOPICS: Final = frozenset({"__consumer_offsets", "__transaction_state"})
_NO_OFFSET: Final = 0  # below zero librdkafka's markers begin: no offset was ever committed

T = TypeVar("T")


class KafkaAdmin:
    """Talks to the cluster. Safe for use by several threads.

    Args:
        config: librdkafka's settings, with bootstrap.servers.
    """

    def __init__(self, config: Mapping[str, Any]) -> None:
        self._config = dict(config)
        self._lock = threading.Lock()
        self._client: Any = None
        self._refusal: Any = None
        self._consumers = threading.BoundedSemaphore(CONSUMERS_MAX)
        self._topics = Coalesced(self._list_topics)

    def topics(self) -> dict[str, int]:
        """All topics but Kafka's internal ones, with their numbers of partitions; not to be changed."""
        return self._topics()

    def _list_topics(self) -> dict[str, int]:
        metadata = self._call("list topics", lambda admin: admin.list_topics(timeout=CALL_TIMEOUT_S))
        return {
            name: len(topic.partitions)
            for name, topic in metadata.topics.items()
            if topic.error is None and name not in INTERNAL_TOPICS
        }

    def cluster_id(self) -> str:
        """Id of the cluster."""
        metadata = self._call("read the cluster's id", lambda admin: admin.list_topics(timeout=CALL_TIMEOUT_S))
        return str(metadata.cluster_id or "")

    def end_offsets(
        self, partitions: Iterable[TopicPartition], *, committed: bool = False
    ) -> dict[TopicPartition, int]:
        """End offsets, or where the first open transaction begins.

        Left out are partitions that don't exist, and those whose leader can't tell now while others can: a topic that
        ails must not hide all others.
        """
        from confluent_kafka.admin import OffsetSpec

        asked = {_native(partition): OffsetSpec.latest() for partition in partitions}
        if not asked:
            return {}
        found, failure, stale = self._call("list end offsets", lambda admin: self._listed(admin, asked, committed))
        if stale:
            found, failure, _ = self._call("list end offsets", lambda admin: self._listed(admin, asked, committed))
        if failure is not None and not found:
            raise failure
        return found

    def _listed(
        self, admin: Any, asked: Mapping[Any, Any], committed: bool
    ) -> tuple[dict[TopicPartition, int], WherryError | None, bool]:
        """End offsets, the last failure, and whether the client goes by leaders of a time before the broker's restart.

        NB: such a client never learns of the new ones by itself; it answers with an error for ever, or with -1001.
        """
        from confluent_kafka import IsolationLevel

        level = IsolationLevel.READ_COMMITTED if committed else IsolationLevel.READ_UNCOMMITTED
        futures = admin.list_offsets(asked, isolation_level=level, request_timeout=REQUEST_TIMEOUT_S)
        found: dict[TopicPartition, int] = {}
        failure: WherryError | None = None
        stale = False
        for native, future in futures.items():
            try:
                offset = int(future.result(CALL_TIMEOUT_S).offset)
            except Exception as error:
                if not _is_missing(error):
                    stale, failure = True, kafka_error("list end offsets", error)
                continue
            if offset >= _NO_OFFSET:
                found[_own(native)] = offset
            else:
                stale, failure = True, TransientError(f"Kafka gave no end offset of {native.topic}-{native.partition}.")
        if stale:
            self._forget(admin)
        return found, failure, stale

    def group_offsets(
        self, group: str, partitions: Sequence[TopicPartition] | None = None
    ) -> dict[TopicPartition, int]:
        """Committed offsets of a group: of these partitions, or of all; those without one are left out."""
        if partitions is not None and not partitions:
            return {}
        # NB: the client library crashes the process when listing fails, so a call that fails safely goes first. And it
        # costs a tenth of what a consumer does, which a connector that has never committed then needs none of.
        if self._described(group) is None:
            return {}
        if partitions is not None:
            return self._committed(group, partitions)
        from confluent_kafka import ConsumerGroupTopicPartitions

        def ask(admin: Any) -> dict[TopicPartition, int]:
            request = [ConsumerGroupTopicPartitions(group)]
            futures = admin.list_consumer_group_offsets(request, request_timeout=REQUEST_TIMEOUT_S)
            return _offsets(futures[group].result(CALL_TIMEOUT_S).topic_partitions)

        return self._group_call(f"read the offsets of group {group}", ask)

    def _committed(self, group: str, partitions: Sequence[TopicPartition]) -> dict[TopicPartition, int]:
        """Committed offsets as a consumer reads them, without joining the group."""
        from confluent_kafka import Consumer

        def ask(_: Any) -> dict[TopicPartition, int]:
            settings = {"log_level": 0, **self._config, "group.id": group, "enable.auto.commit": False}
            # Each is a client with threads and connections of its own; a thousand connectors may ask at once.
            with self._consumers:
                consumer = Consumer(settings)
                try:
                    natives = [_native(partition) for partition in partitions]
                    return _offsets(consumer.committed(natives, CALL_TIMEOUT_S))
                finally:
                    consumer.close()

        return self._group_call(f"read the offsets of group {group}", ask)

    def commit_group(self, group: str, offsets: Mapping[TopicPartition, int]) -> None:
        """Write offsets of a group that has no live members."""
        from confluent_kafka import ConsumerGroupTopicPartitions, KafkaException

        if not offsets:
            return
        request = ConsumerGroupTopicPartitions(group, [_native(p, offset) for p, offset in offsets.items()])

        def ask(admin: Any) -> None:
            futures = admin.alter_consumer_group_offsets([request], request_timeout=REQUEST_TIMEOUT_S)
            for native in futures[group].result(CALL_TIMEOUT_S).topic_partitions:
                if native.error is not None:
                    raise KafkaException(native.error)

        self._group_call(f"commit offsets of group {group}", ask)

    def group_members(self, group: str) -> list[str]:
        """Hosts of the live members of a group, as Kafka tells them; empty when there is no such group."""
        described = self._described(group)
        members = [] if described is None else described.members
        return [f"{member.client_id} on {str(member.host).lstrip('/')}" for member in members]

    def owner(self, group: str, partition: TopicPartition) -> tuple[str, str] | None:
        """Client id and member id of the member of a consumer group that has a partition; None when nobody has."""
        described = self._described(group)
        for member in [] if described is None else described.members:
            if any(_own(native) == partition for native in member.assignment.topic_partitions):
                return str(member.client_id), str(member.member_id)
        return None

    def holder(self, group: str, partition: TopicPartition, member: str) -> str | None:
        """Id of the member of a consumer group that has a partition; None when nobody has.

        While the group waits for its members to join anew, Kafka shows no assignment, and all stays with whom it was:
        so a member that had the partition, and has not left, has it still.

        Args:
            group: The group.
            partition: The partition.
            member: The member that had it last, as far as is known.
        """
        from confluent_kafka import ConsumerGroupState

        described = self._described(group)
        members = [] if described is None else described.members
        if described is not None and described.state is ConsumerGroupState.PREPARING_REBALANCING:
            return member if any(str(each.member_id) == member for each in members) else None
        for each in members:
            if any(_own(native) == partition for native in each.assignment.topic_partitions):
                return str(each.member_id)
        return None

    def _described(self, group: str) -> Any:
        """What Kafka tells of a group; None when there is no such group."""

        def ask(admin: Any) -> Any:
            futures = admin.describe_consumer_groups([group], request_timeout=REQUEST_TIMEOUT_S)
            return futures[group].result(CALL_TIMEOUT_S)

        try:
            described = self._group_call(f"describe group {group}", ask)
        except ConfigError:
            return None  # GROUP_ID_NOT_FOUND
        return described if _exists(described) else None

    def create_topic(self, topic: str, partitions: int, replicas: int, config: Mapping[str, str]) -> bool:
        """Create a topic; -1 is the broker's default. False when it is there already."""
        from confluent_kafka import KafkaError, KafkaException
        from confluent_kafka.admin import NewTopic

        def ask(admin: Any) -> None:
            wanted = NewTopic(topic, num_partitions=partitions, replication_factor=replicas, config=dict(config))
            admin.create_topics([wanted], request_timeout=REQUEST_TIMEOUT_S)[topic].result(CALL_TIMEOUT_S)

        try:
            self._call(f"create the topic {topic}", ask)
        except WherryError as error:
            cause = error.__cause__
            if isinstance(cause, KafkaException) and cause.args[0].code() == KafkaError.TOPIC_ALREADY_EXISTS:
                return False
            raise
        return True

    def topic_config(self, topic: str) -> dict[str, str]:
        """Settings of a topic, defaults too."""
        from confluent_kafka.admin import ConfigResource, ResourceType

        def ask(admin: Any) -> Any:
            resource = ConfigResource(ResourceType.TOPIC, topic)
            futures = admin.describe_configs([resource], request_timeout=REQUEST_TIMEOUT_S)
            return futures[resource].result(CALL_TIMEOUT_S)

        found = self._call(f"read the settings of the topic {topic}", ask)
        return {name: entry.value for name, entry in found.items() if entry.value is not None}

    def delete_group(self, group: str) -> None:
        """Forget a group with all its offsets; one that doesn't exist is fine."""

        def ask(admin: Any) -> Any:
            futures = admin.delete_consumer_groups([group], request_timeout=REQUEST_TIMEOUT_S)
            return futures[group].result(CALL_TIMEOUT_S)

        try:
            self._group_call(f"delete group {group}", ask)
        except ConfigError:
            return

    def _forget(self, client: Any) -> None:
        """Have the next call make a new client.

        NB: one that has seen its broker go away can't be trusted again: some of its calls fail for ever. Calls under
        way hold theirs until they end.
        """
        with self._lock:
            if self._client is client:
                self._client = None

    def _admin(self) -> Any:
        with self._lock:
            if self._client is None:
                from confluent_kafka import KafkaException
                from confluent_kafka.admin import AdminClient

                try:
                    # librdkafka prints its connection troubles to stderr by itself; calls raise them here.
                    config: dict[str, Any] = {"log_level": 0, "error_cb": self._told, **self._config}
                    self._client = AdminClient(config)
                except KafkaException as error:
                    text = error.args[0].str()
                    raise ConfigError(
                        f"The worker's Kafka client cannot be made: {text}. {refusal_remedy(text)}"
                    ) from error
            return self._client

    def _group_call(self, what: str, ask: Callable[[Any], T]) -> T:
        """Like `_call`, patient with a broker that is only just making or loading its groups."""
        deadline = time.monotonic() + GROUPS_READY_S
        while True:
            try:
                return self._call(what, ask)
            except WherryError as error:
                if not _is_loading(error.__cause__) or time.monotonic() >= deadline:
                    raise
            time.sleep(GROUPS_RETRY_S)

    def _call(self, what: str, ask: Callable[[Any], T]) -> T:
        """Ask through the client; what it raises becomes a WherryError."""
        client = self._admin()
        try:
            return ask(client)
        except WherryError:
            raise
        except Exception as error:
            failure = kafka_error(what, error)
            if failure.error_class is ErrorClass.TRANSIENT:
                failure = self._refused(what, client) or failure
                self._forget(client)
            raise failure from error

    def _told(self, error: Any) -> None:
        """Take in what happens to the client's connections, of which its calls say no more than that they failed."""
        from confluent_kafka import KafkaError

        if error.code() in (KafkaError._AUTHENTICATION, KafkaError.SASL_AUTHENTICATION_FAILED, KafkaError._SSL):
            self._refusal = error

    def _refused(self, what: str, client: Any) -> WherryError | None:
        """Why no broker lets us in, if that is what a failed call comes from."""
        self._refusal = None
        client.poll(0)  # serves `_told`
        return None if self._refusal is None else kafka_error(what, self._refusal)


def _native(partition: TopicPartition, offset: int | None = None) -> Any:
    from confluent_kafka import TopicPartition as Native

    return (
        Native(partition.topic, partition.partition)
        if offset is None
        else Native(partition.topic, partition.partition, offset)
    )


def _is_missing(error: Exception) -> bool:
    """Whether the partition isn't there any more, which is no fault of the client."""
    from confluent_kafka import KafkaError

    code = error.args[0].code() if error.args and isinstance(error.args[0], KafkaError) else None
    return code in (KafkaError.UNKNOWN_TOPIC_OR_PART, KafkaError._UNKNOWN_TOPIC, KafkaError._UNKNOWN_PARTITION)


def _exists(described: Any) -> bool:
    """Whether there is such a group: of one that is not there brokers say that it is dead, or an error."""
    from confluent_kafka import ConsumerGroupState

    return bool(described.state != ConsumerGroupState.DEAD)


def _is_loading(error: BaseException | None) -> bool:
    from confluent_kafka import KafkaError, KafkaException

    if not isinstance(error, KafkaException) or not error.args or not isinstance(error.args[0], KafkaError):
        return False
    codes = (KafkaError.COORDINATOR_NOT_AVAILABLE, KafkaError.COORDINATOR_LOAD_IN_PROGRESS, KafkaError.NOT_COORDINATOR)
    return error.args[0].code() in codes


def _offsets(natives: Iterable[Any]) -> dict[TopicPartition, int]:
    """What a group has committed. One whose offset can't be told is not one without: it would be read anew."""
    from confluent_kafka import KafkaException

    found: dict[TopicPartition, int] = {}
    for native in natives:
        if native.error is not None:
            raise KafkaException(native.error)
        if native.offset >= _NO_OFFSET:
            found[_own(native)] = int(native.offset)
    return found


def _own(native: Any) -> TopicPartition:
    return TopicPartition(native.topic, native.partition)


def kafka_error(what: str, error: Any) -> WherryError:
    """What an error is here, by its class. `error` is a KafkaException, a KafkaError or anything a client raises."""
    from confluent_kafka import KafkaError, KafkaException

    if isinstance(error, KafkaException) and error.args and isinstance(error.args[0], KafkaError):
        error = error.args[0]
    if not isinstance(error, KafkaError):
        reason = "no answer in time" if isinstance(error, (FutureTimeoutError, TimeoutError)) else str(error)
        return TransientError(f"Kafka could not {what}: {reason}.")
    text = error.str().rstrip(" .:")  # some of the library's texts end before they say anything
    message = f"Kafka could not {what}: {text} ({error.name()})."
    code = error.code()
    if code in (KafkaError._AUTHENTICATION, KafkaError.SASL_AUTHENTICATION_FAILED) or "AUTHORIZATION" in error.name():
        return AuthError(message)
    if code in (KafkaError.GROUP_ID_NOT_FOUND, KafkaError.INVALID_GROUP_ID, KafkaError.TOPIC_EXCEPTION):
        return ConfigError(message)
    if code in (KafkaError.NON_EMPTY_GROUP, KafkaError.UNKNOWN_MEMBER_ID):
        message = f"Kafka could not {what}: the group has live members, so another worker still runs this connector."
    return error_for(ErrorClass.TRANSIENT, message)
