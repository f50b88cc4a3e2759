"""Reading partitions by the compiled helper: bounds, and consumers it keeps away from."""

from __future__ import annotations

from typing import Any

import confluent_kafka
import pytest

from wherry.contract.position import TopicPartition
from wherry.worker.endpoints.kafka_config import FETCH_BYTES, QUEUED_KBYTES
from wherry.worker.endpoints.kafka_native import FETCHED, QUEUED, open_queues, shares

SETTINGS = {"bootstrap.servers": "127.0.0.1:1", "group.id": "g", "client.id": "c", "log_level": 0}


@pytest.mark.parametrize("partitions", [0, 1, 3, 8, 40])
def test_the_partitions_together_may_hold_as_much_as_one_queue_would(partitions: int) -> None:
    shared = shares({QUEUED: QUEUED_KBYTES, FETCHED: FETCH_BYTES}, partitions)
    assert int(shared[QUEUED]) * max(1, partitions) <= QUEUED_KBYTES
    assert int(shared[FETCHED]) * max(1, partitions) <= max(FETCH_BYTES, QUEUED_KBYTES * 1024)


def test_a_partition_among_very_many_still_gets_something() -> None:
    assert shares({}, 100_000) == {QUEUED: 256, FETCHED: 128 * 1024}


def test_less_than_the_share_stays_and_what_is_no_number_is_left_to_the_client() -> None:
    assert shares({QUEUED: "100", FETCHED: "1000"}, 2) == {QUEUED: 100, FETCHED: 1000}
    assert shares({QUEUED: "many", FETCHED: "x"}, 2) == {}


@pytest.mark.usefixtures("helper")
def test_only_a_consumer_of_that_name_is_read() -> None:
    partitions = [TopicPartition("t", 0)]
    consumer = confluent_kafka.Consumer(SETTINGS)
    producer = confluent_kafka.Producer({"bootstrap.servers": "127.0.0.1:1", "client.id": "c", "log_level": 0})
    assert open_queues(consumer, "another", partitions) is None
    assert open_queues(producer, "c", partitions) is None
    queues = open_queues(consumer, "c", partitions)
    assert queues is not None
    assert queues.poll(0.0, 10, 1000) == (None, [])
    queues.close()
    queues.close()
    consumer.close()


@pytest.mark.usefixtures("helper")
@pytest.mark.parametrize("stranger", [object(), 1, "text" * 10])
def test_what_is_no_client_is_never_asked(stranger: Any) -> None:
    assert open_queues(stranger, "c", [TopicPartition("t", 0)]) is None
