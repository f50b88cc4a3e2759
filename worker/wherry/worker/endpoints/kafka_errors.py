"""What a Kafka client's error means: one table from librdkafka's codes to the contract's error classes.

Codes that are not in the table follow librdkafka's own opinion: retriable ones are TRANSIENT, the rest BUG.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from confluent_kafka import KafkaError

from wherry.contract.errors import (
    AuthError,
    ConfigError,
    ConnectorBugError,
    FencedError,
    OffsetLostError,
    SchemaError,
    TransientError,
    WherryError,
)
from wherry.contract.kafka_security import refusal_remedy

# The client goes on by itself after these; they only tell that it can't reach somebody now.
RECONNECTING: Final = frozenset({
    KafkaError._TRANSPORT, KafkaError._ALL_BROKERS_DOWN, KafkaError._RESOLVE, KafkaError._TIMED_OUT,
    KafkaError._MSG_TIMED_OUT, KafkaError._WAIT_COORD, KafkaError._DESTROY,
})  # fmt: skip

MISSING: Final = frozenset({
    KafkaError.UNKNOWN_TOPIC_OR_PART, KafkaError._UNKNOWN_TOPIC, KafkaError._UNKNOWN_PARTITION,
})  # fmt: skip

CLASSES: Final[Mapping[int, type[WherryError]]] = {
    **dict.fromkeys(RECONNECTING, TransientError),
    KafkaError.REQUEST_TIMED_OUT: TransientError,
    KafkaError.LEADER_NOT_AVAILABLE: TransientError,
    KafkaError.NOT_LEADER_FOR_PARTITION: TransientError,
    KafkaError.NOT_ENOUGH_REPLICAS: TransientError,
    KafkaError.NOT_ENOUGH_REPLICAS_AFTER_APPEND: TransientError,
    KafkaError.KAFKA_STORAGE_ERROR: TransientError,
    KafkaError._QUEUE_FULL: TransientError,
    KafkaError._PURGE_QUEUE: TransientError,
    KafkaError._PURGE_INFLIGHT: TransientError,
    KafkaError._AUTHENTICATION: AuthError,
    KafkaError._SSL: AuthError,
    KafkaError.SASL_AUTHENTICATION_FAILED: AuthError,
    KafkaError.TOPIC_AUTHORIZATION_FAILED: AuthError,
    KafkaError.GROUP_AUTHORIZATION_FAILED: AuthError,
    KafkaError.CLUSTER_AUTHORIZATION_FAILED: AuthError,
    KafkaError.TRANSACTIONAL_ID_AUTHORIZATION_FAILED: AuthError,
    KafkaError.OFFSET_OUT_OF_RANGE: OffsetLostError,
    KafkaError._AUTO_OFFSET_RESET: OffsetLostError,
    KafkaError.UNKNOWN_TOPIC_OR_PART: ConfigError,
    KafkaError._UNKNOWN_TOPIC: ConfigError,
    KafkaError._UNKNOWN_PARTITION: ConfigError,
    KafkaError.TOPIC_EXCEPTION: ConfigError,
    KafkaError.INVALID_REQUIRED_ACKS: ConfigError,
    KafkaError._INVALID_ARG: ConfigError,
    KafkaError.UNSUPPORTED_COMPRESSION_TYPE: ConfigError,
    KafkaError.MSG_SIZE_TOO_LARGE: SchemaError,
    KafkaError.RECORD_LIST_TOO_LARGE: SchemaError,
    KafkaError.INVALID_RECORD: SchemaError,
    KafkaError._FENCED: FencedError,
    KafkaError.INVALID_PRODUCER_EPOCH: FencedError,
}

_REMEDIES: Final[Mapping[type[WherryError], str]] = {
    TransientError: "It is tried again.",
    AuthError: "Check security.protocol, the sasl.* and ssl.* settings and the ACLs of this client.",
    OffsetLostError: (
        "The records at that offset are gone. Alter the connector's offsets, or set consumer.override.auto.offset.reset"
    ),
    ConfigError: "Check the names of the topics and that they exist.",
}


def error_of(error: Any, doing: str) -> WherryError:
    """Makes the contract's error of a KafkaError.

    Args:
        error: A confluent_kafka.KafkaError.
        doing: What was being done, such as "Reading topic a, partition 0".
    """
    code = error.code()
    kind = CLASSES.get(code)
    if kind is None:
        kind = TransientError if error.retriable() and not error.fatal() else ConnectorBugError
    remedy = refusal_remedy(error.str()) if code == KafkaError._INVALID_ARG else _REMEDIES.get(kind, "")
    name = error.name()
    sentence = f"{doing} failed: {error.str()} ({name})."
    return kind(f"{sentence} {remedy}".rstrip().rstrip(".") + ".", reason=name.lstrip("_").upper())


def is_reconnecting(error: Any) -> bool:
    """Whether the client goes on by itself after this error."""
    return error.code() in RECONNECTING and not error.fatal()


def is_missing(error: Any) -> bool:
    """Whether a partition is not there, or not yet known to the broker that was asked."""
    return error.code() in MISSING
