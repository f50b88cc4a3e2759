"""Reads Kafka Connect's offsets topic to its end, once, for one connector; `connect_topics` says what records mean.

Only committed transactions are seen: exactly-once sources write their offsets inside of them.
"""

from __future__ import annotations

import time
import uuid
from collections.abc import Mapping
from typing import Any, Final

from wherry.contract.connect_topics import parse_offset_record
from wherry.contract.errors import AuthError, ConfigError, TransientError, WherryError
from wherry.contract.kafka_clients import ClientValue
from wherry.contract.position import Position

READ_TIMEOUT_S: Final = 60.0
_CONSUME_MAX: Final = 2_000
_POLL_S: Final = 0.2


def read_positions(
    settings: Mapping[str, ClientValue], topic: str, connector: str, *, timeout_s: float = READ_TIMEOUT_S
) -> dict[str, Position]:
    """Positions of a connector as they stand at the end of an offsets topic, by partition.

    Partitions that were forgotten are among them, without offset. A topic that doesn't exist holds none.

    Args:
        settings: librdkafka's settings of a consumer, with bootstrap.servers.
        topic: The offsets topic.
        connector: Name of the connector.
        timeout_s: Time to come to the end of the topic.

    Raises:
        WherryError: It can't be read, or not in time.
    """
    from confluent_kafka import Consumer, KafkaException

    consumer = Consumer({
        "log_level": 0,
        **settings,
        # Required by the client library; nothing is ever committed and no group is joined.
        "group.id": f"wherry-offsets-{uuid.uuid4().hex}",
        "enable.auto.commit": False,
        "enable.partition.eof": True,
        "auto.offset.reset": "earliest",
        "isolation.level": "read_committed",
    })  # fmt: skip
    try:
        return _read(consumer, topic, connector, time.monotonic() + timeout_s)
    except KafkaException as error:
        raise _error(error.args[0], topic) from error
    finally:
        consumer.close()


def _read(consumer: Any, topic: str, connector: str, deadline: float) -> dict[str, Position]:
    from confluent_kafka import OFFSET_BEGINNING, KafkaError, TopicPartition

    found = consumer.list_topics(topic, timeout=max(0.1, deadline - time.monotonic())).topics[topic]
    if found.error is not None:
        if found.error.code() in (KafkaError.UNKNOWN_TOPIC_OR_PART, KafkaError._UNKNOWN_TOPIC):
            return {}
        raise _error(found.error, topic)
    unread = set(found.partitions)
    consumer.assign([TopicPartition(topic, number, OFFSET_BEGINNING) for number in sorted(unread)])
    positions: dict[str, Position] = {}
    while unread:
        if time.monotonic() > deadline:
            raise TransientError(f"The offsets topic {topic} could not be read to its end in time.")
        for message in consumer.consume(_CONSUME_MAX, _POLL_S):
            error = message.error()
            if error is None:
                parsed = parse_offset_record(message.key(), message.value())
                if parsed is not None and parsed[0] == connector:
                    positions[parsed[1].partition] = parsed[1]
            elif error.code() == KafkaError._PARTITION_EOF:
                unread.discard(message.partition())
            elif not error.retriable() and error.code() not in (KafkaError._TRANSPORT, KafkaError._ALL_BROKERS_DOWN):
                raise _error(error, topic)
    return positions


def _error(error: Any, topic: str) -> WherryError:
    from confluent_kafka import KafkaError

    sentence = f"The offsets topic {topic} could not be read: {error.str()} ({error.name()})."
    if "AUTH" in error.name():
        return AuthError(f"{sentence} Check the credentials of this client and its right to read the topic.")
    if error.code() == KafkaError._INVALID_ARG:
        return ConfigError(sentence)
    return TransientError(sentence)
