"""Reads Kafka Connect's offsets topic to its end, once, for one connector; `connect_topics` says what records mean.

Only committed transactions are seen: exactly-once sources write their offsets inside of them.
"""

from __future__ import annotations

import time
import uuid
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from typing import Any, Final

from wherry.contract.connect_topics import parse_offset_record
from wherry.contract.errors import AuthError, ConfigError, TransientError, WherryError
from wherry.contract.kafka_clients import ClientValue
from wherry.contract.position import Position

READ_TIMEOUT_S: Final = 60.0
_CONSUME_MAX: Final = 2_000
_POLL_S: Final = 0.2
# The end of a partition may be told by a fetch that finds nothing, which brokers hold back for so long.
_FETCH_WAIT_MS: Final = 10


def read_positions(
    settings: Mapping[str, ClientValue], topic: str, connector: str, *, timeout_s: float = READ_TIMEOUT_S
) -> dict[str, Position]:
    """Positions of a connector as they stand at the end of an offsets topic, by partition.

    Partitions that were forgotten are among them, without offset. A topic that doesn't exist holds none.

    Args:
        settings: librdkafka's settings of a consumer, with bootstrap.servers.
        topic: The offsets topic.
        connector: Name of the connector.
        timeout_s: Time to come to the end of the topic; others' open transactions may take much of it.

    Raises:
        WherryError: It can't be read, or not in time.
    """
    with positions_reader(settings, topic, connector, timeout_s=timeout_s) as read:
        return read()


@contextmanager
def positions_reader(
    settings: Mapping[str, ClientValue], topic: str, connector: str, *, timeout_s: float = READ_TIMEOUT_S
) -> Iterator[Callable[[], dict[str, Position]]]:
    """Connects already to what `read_positions` asks, while its caller does something else.

    Takes and raises what `read_positions` does.

    Yields:
        What reads the positions as they stand when it is called; the time begins with the call.
    """
    with _readers(settings, topic) as (committed, everything):

        def read() -> dict[str, Position]:
            deadline = time.monotonic() + timeout_s
            ends = _ends(committed, everything, topic, connector, deadline)
            found = _of(connector, _until(committed, topic, dict.fromkeys(ends, 0), ends, deadline))
            return {position.partition: position for _, _, position in found}

        yield read


def ends_of(
    settings: Mapping[str, ClientValue], topic: str, connector: str, *, timeout_s: float = READ_TIMEOUT_S
) -> dict[int, int]:
    """How far a reader of committed records has to come in each partition to know a connector's positions.

    Takes and raises what `read_positions` does.
    """
    with _readers(settings, topic) as (committed, everything):
        return _ends(committed, everything, topic, connector, time.monotonic() + timeout_s)


@contextmanager
def _readers(settings: Mapping[str, ClientValue], topic: str) -> Iterator[tuple[Any, Any]]:
    """One that sees what has been committed, and one that sees everything; their errors as ours."""
    from confluent_kafka import Consumer, KafkaException

    common: dict[str, ClientValue] = {
        "log_level": 0,
        **settings,
        # Required by the client library; nothing is ever committed and no group is joined.
        "group.id": f"wherry-offsets-{uuid.uuid4().hex}",
        "enable.auto.commit": False,
        "enable.partition.eof": True,
        "auto.offset.reset": "earliest",
        "fetch.wait.max.ms": _FETCH_WAIT_MS,
    }
    with ExitStack() as stack:
        try:
            made = []
            for level in ("read_committed", "read_uncommitted"):
                made.append(Consumer({**common, "isolation.level": level}))
                stack.callback(made[-1].close)
            yield made[0], made[1]
        except KafkaException as error:
            raise _error(error.args[0], topic) from error


def _partitions(consumer: Any, topic: str, deadline: float) -> list[int]:
    from confluent_kafka import KafkaError

    found = consumer.list_topics(topic, timeout=_left(deadline)).topics[topic]
    if found.error is None:
        return sorted(found.partitions)
    if found.error.code() in (KafkaError.UNKNOWN_TOPIC_OR_PART, KafkaError._UNKNOWN_TOPIC):
        return []
    raise _error(found.error, topic)


def _ends(committed: Any, everything: Any, topic: str, connector: str, deadline: float) -> dict[int, int]:
    """How far each partition has to be read.

    Behind an open transaction a reader of committed records sees nothing, committed or not. So where the connector
    has records behind one, whosever it is, they are waited for (as KafkaBasedLog.readToEnd does); where it has none,
    nobody's open transaction delays it.
    """
    numbers = _partitions(everything, topic, deadline)
    stable, high = (_latest(client, topic, numbers, deadline) for client in (committed, everything))
    hidden = {number: end for number, end in stable.items() if end < high[number]}
    behind = _until(everything, topic, hidden, {number: high[number] for number in hidden}, deadline)
    for number, offset, _ in _of(connector, behind):
        if offset < high[number]:
            stable[number] = offset + 1
    return stable


def _latest(consumer: Any, topic: str, numbers: list[int], deadline: float) -> dict[int, int]:
    """Where each partition ends for this reader; in one request, for a time of -1 asks for the latest."""
    from confluent_kafka import OFFSET_END, TopicPartition

    if not numbers:
        return {}
    asked = [TopicPartition(topic, number, OFFSET_END) for number in numbers]
    found = _once_led(lambda: consumer.offsets_for_times(asked, timeout=_left(deadline)), deadline)
    for each in found:
        if each.error is not None:
            raise _error(each.error, topic)
        if each.offset < 0:
            # Without an error too: a client may not have learnt of a leader. Nothing would be read of that partition.
            raise TransientError(f"Kafka did not tell where partition {each.partition} of {topic} ends.")
    return {each.partition: each.offset for each in found}


def _once_led(ask: Callable[[], Any], deadline: float) -> Any:
    """Asks again while a topic that was made a moment ago has no leaders yet."""
    from confluent_kafka import KafkaError, KafkaException

    young = (KafkaError.NOT_LEADER_FOR_PARTITION, KafkaError.LEADER_NOT_AVAILABLE)
    while True:
        try:
            return ask()
        except KafkaException as error:
            if error.args[0].code() not in young or time.monotonic() >= deadline:
                raise
        time.sleep(_POLL_S)


def _of(connector: str, messages: Iterable[Any]) -> Iterator[tuple[int, int, Position]]:
    """Partition, offset and position of each of the connector's records."""
    for message in messages:
        parsed = parse_offset_record(message.key(), message.value())
        if parsed is not None and parsed[0] == connector:
            yield message.partition(), message.offset(), parsed[1]


def _until(
    consumer: Any, topic: str, starts: Mapping[int, int], ends: Mapping[int, int], deadline: float
) -> Iterator[Any]:
    """Every message from these offsets until all of these ends have been reached, and what came beside them.

    An end is reached by a message, or by the partition's end: what stands last may be no message but a mark of a
    transaction. That end alone would not do, as it never comes where others write without pause.
    """
    from confluent_kafka import KafkaError, TopicPartition

    unread = {number for number, end in ends.items() if starts[number] < end}
    if not unread:
        return
    consumer.assign([TopicPartition(topic, number, starts[number]) for number in sorted(unread)])
    while unread:
        if time.monotonic() > deadline:
            raise TransientError(f"The offsets topic {topic} could not be read to its end in time.")
        first = consumer.poll(_POLL_S)  # `consume` alone would wait for its full number
        for message in [first, *consumer.consume(_CONSUME_MAX, 0)] if first is not None else ():
            error = message.error()
            if error is None:
                yield message
                reached = message.offset() + 1
            elif error.code() == KafkaError._PARTITION_EOF:
                reached = message.offset()
            elif error.retriable() or error.code() in (KafkaError._TRANSPORT, KafkaError._ALL_BROKERS_DOWN):
                continue
            else:
                raise _error(error, topic)
            if reached >= ends[message.partition()]:
                unread.discard(message.partition())


def _left(deadline: float) -> float:
    return max(0.1, deadline - time.monotonic())


def _error(error: Any, topic: str) -> WherryError:
    from confluent_kafka import KafkaError

    sentence = f"The offsets topic {topic} could not be read: {error.str()} ({error.name()})."
    if "AUTH" in error.name():
        return AuthError(f"{sentence} Check the credentials of this client and its right to read the topic.")
    if error.code() == KafkaError._INVALID_ARG:
        return ConfigError(sentence)
    return TransientError(sentence)
