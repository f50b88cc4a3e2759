"""Opening transactions waits for a connection first, where a topic is known to ask for."""

from __future__ import annotations

from typing import Any

from confluent_kafka import KafkaError, KafkaException

from wherry.contract.transactions import CONNECTIONS, init_transactions


class Client:
    """A producer that notes what it is asked."""

    def __init__(self, away: bool = False) -> None:
        self.calls: list[Any] = []
        self.away = away

    def list_topics(self, topic: str, timeout: float) -> None:
        self.calls.append((topic, timeout))
        if self.away:
            raise KafkaException(KafkaError(KafkaError._TRANSPORT))

    def init_transactions(self, timeout_s: float) -> None:
        self.calls.append(timeout_s)


def test_a_connection_is_waited_for_no_longer_than_there_is_time() -> None:
    client = Client()
    init_transactions(client, 0.2, "offsets")
    assert client.calls == [*[("offsets", 0.2)] * CONNECTIONS, 0.2]


def test_a_broker_that_does_not_answer_is_told_by_the_transactions_themselves() -> None:
    client = Client(away=True)
    init_transactions(client, 30.0, "offsets")
    assert client.calls[-1] == 30.0


def test_without_a_topic_nothing_is_asked_before() -> None:
    client = Client()
    init_transactions(client, 30.0)
    assert client.calls == [30.0]
