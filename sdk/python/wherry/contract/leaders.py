"""Waiting for the leaders of a topic that was just made.

A broker that is told to lead a partition may refuse the first request for it and take the second. Of a producer it has
not seen there before it takes any sequence number, idempotent or not, so that what was refused comes behind what was
taken, and the order of the partition is lost. Once a leader has told where its partition ends it refuses no more.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any, Final

LEADERS_WAIT_S: Final = 15.0
REQUEST_TIMEOUT_S: Final = 3600.0
"""Never reached: we stop waiting earlier and leave the client. When one of librdkafka's own deadlines passes instead,
and the broker comes back, its late answer aborts the process (`eonce->refcnt > 0`)."""
_AGAIN_S: Final = 0.1


def await_leaders(
    connect: Callable[[], Any], topic: str, *, partitions: int = 1, wait_s: float = LEADERS_WAIT_S
) -> bool:
    """Waits until every partition of a topic has a leader that answers; False when one doesn't in time.

    Args:
        connect: Makes an admin client. One that has met a partition without a leader is not asked again.
        topic: The topic.
        partitions: How many it must have by now, at least.
        wait_s: Time to wait.
    """
    from confluent_kafka import KafkaException

    deadline = time.monotonic() + wait_s
    while True:
        try:
            if _are_there(connect(), topic, partitions, deadline):
                return True
        except KafkaException as error:
            # Whatever it is, whoever writes next tells it better; who may not look needn't try again.
            if "AUTH" in error.args[0].name():
                return False
        except TimeoutError:
            pass
        if time.monotonic() >= deadline:
            return False
        time.sleep(_AGAIN_S)


def _are_there(admin: Any, topic: str, partitions: int, deadline: float) -> bool:
    from confluent_kafka import KafkaException, TopicPartition
    from confluent_kafka.admin import OffsetSpec

    found = admin.list_topics(topic, timeout=_left(deadline)).topics[topic]
    if found.error is not None:
        raise KafkaException(found.error)
    if len(found.partitions) < partitions:
        return False
    asked = {TopicPartition(topic, number): OffsetSpec.latest() for number in found.partitions}
    told = admin.list_offsets(asked, request_timeout=REQUEST_TIMEOUT_S)
    return all(each.result(_left(deadline)).offset >= 0 for each in told.values())


def _left(deadline: float) -> float:
    return max(0.1, deadline - time.monotonic())
