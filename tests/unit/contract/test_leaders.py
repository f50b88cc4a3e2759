"""A topic that was just made is written to only when its leaders answer."""

from __future__ import annotations

from concurrent.futures import Future
from types import SimpleNamespace
from typing import Any

from confluent_kafka import KafkaError, KafkaException

from wherry.contract.leaders import await_leaders

UNLED = KafkaException(KafkaError(KafkaError.NOT_LEADER_FOR_PARTITION))


class Admin:
    """A client that knows so many partitions, some of which have no leader that answers."""

    def __init__(self, partitions: int, *unled: int, error: Any = None) -> None:
        self.partitions, self.unled, self.error = partitions, unled, error

    def list_topics(self, topic: str, timeout: float) -> Any:
        found = SimpleNamespace(error=self.error, partitions=dict.fromkeys(range(self.partitions)))
        return SimpleNamespace(topics={topic: found})

    def list_offsets(self, asked: Any, **_: Any) -> dict[Any, Future[Any]]:
        futures: dict[Any, Future[Any]] = {native: Future() for native in asked}
        for native, future in futures.items():
            if native.partition in self.unled:
                future.set_exception(UNLED)
            else:
                future.set_result(SimpleNamespace(offset=0))
        return futures


def test_every_leader_is_waited_for_with_a_client_that_has_met_none_missing() -> None:
    missing = KafkaError(KafkaError.UNKNOWN_TOPIC_OR_PART)
    clients = [Admin(0, error=missing), Admin(1), Admin(2, 1), Admin(2)]
    assert await_leaders(lambda: clients.pop(0), "t", partitions=2)
    assert clients == []


def test_a_leader_that_never_answers_ends_the_wait() -> None:
    assert not await_leaders(lambda: Admin(2, 0), "t", wait_s=0.2)


def test_who_may_not_look_does_not_wait() -> None:
    refused = Admin(0, error=KafkaError(KafkaError.TOPIC_AUTHORIZATION_FAILED))
    clients = [refused]
    assert not await_leaders(lambda: clients.pop(), "t")
