"""Reading an offsets topic that others write to in transactions of their own."""

from __future__ import annotations

import threading
import time
import uuid
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager

import pytest
from confluent_kafka import Producer
from tests.support.stores import Cluster
from tests.support.topics import create_topic
from tests.support.waiting import eventually

from wherry.contract.connect_topics import offset_records
from wherry.contract.errors import TransientError
from wherry.contract.offsets_topic import read_positions
from wherry.contract.position import Position

pytestmark = pytest.mark.integration

SOON_S = 30.0


class Source:
    """A source that writes positions as exactly-once sources do; all of its records go to one partition."""

    def __init__(self, bootstrap: str, topic: str, connector: str) -> None:
        self.topic, self.connector = topic, connector
        self.producer = Producer({
            "bootstrap.servers": bootstrap, "transactional.id": f"{connector}-{uuid.uuid4().hex}", "linger.ms": 0,
        })  # fmt: skip
        self.producer.init_transactions(60)

    def begin(self, n: int) -> None:
        self.producer.begin_transaction()
        for record in offset_records(self.connector, [Position('{"p":0}', f'{{"n":{n}}}')]):
            self.producer.produce(self.topic, record.value, record.key, partition=0)
        self.producer.flush(60)

    def commit(self, n: int) -> None:
        self.begin(n)
        self.producer.commit_transaction(60)


@pytest.fixture
def offsets(bootstrap: str) -> str:
    name = f"offsets-{uuid.uuid4().hex[:8]}"
    create_topic(bootstrap, name, partitions=2)
    return name


def positions(bootstrap: str, topic: str, connector: str, timeout_s: float = SOON_S) -> list[str | None]:
    settings = {"bootstrap.servers": bootstrap}
    return [each.offset for each in read_positions(settings, topic, connector, timeout_s=timeout_s).values()]


@contextmanager
def busy(source: Source) -> Iterator[None]:
    """Transactions without pause."""
    done = threading.Event()

    def write() -> None:
        n = 0
        while not done.is_set():
            source.commit(n := n + 1)

    with ThreadPoolExecutor(1) as pool:
        writing = pool.submit(write)
        try:
            yield
        finally:
            done.set()
        writing.result(30)


def test_the_end_is_reached_while_others_write_without_pause(bootstrap: str, offsets: str) -> None:
    Source(bootstrap, offsets, "mine").commit(7)
    with busy(Source(bootstrap, offsets, "one")), busy(Source(bootstrap, offsets, "two")):
        time.sleep(0.5)
        for _ in range(3):
            assert positions(bootstrap, offsets, "mine") == ['{"n":7}']


def test_what_was_committed_behind_an_open_transaction_of_another_is_waited_for(bootstrap: str, offsets: str) -> None:
    mine, other = (Source(bootstrap, offsets, name) for name in ("mine", "other"))
    mine.commit(1)
    other.begin(1)
    mine.commit(2)
    with pytest.raises(TransientError, match="to its end in time"):
        positions(bootstrap, offsets, "mine", timeout_s=1.0)
    with ThreadPoolExecutor(1) as pool:
        reading = pool.submit(positions, bootstrap, offsets, "mine", 30.0)
        assert not eventually(reading.done, 1.0)
        other.producer.commit_transaction(60)
        assert reading.result(30) == ['{"n":2}']


def test_an_open_transaction_of_another_delays_nobody_who_has_written_nothing_since(
    bootstrap: str, offsets: str
) -> None:
    mine, other = (Source(bootstrap, offsets, name) for name in ("mine", "other"))
    mine.commit(1)
    other.begin(1)
    assert positions(bootstrap, offsets, "mine") == ['{"n":1}']
    assert positions(bootstrap, offsets, "new") == []
    other.producer.abort_transaction(60)


def test_what_was_rolled_back_is_not_seen(bootstrap: str, offsets: str) -> None:
    mine = Source(bootstrap, offsets, "mine")
    mine.commit(1)
    mine.begin(2)
    mine.producer.abort_transaction(60)
    assert positions(bootstrap, offsets, "mine") == ['{"n":1}']


def test_a_topic_that_is_not_there_holds_nothing(bootstrap: str) -> None:
    assert positions(bootstrap, f"none-{uuid.uuid4().hex}", "mine") == []


def test_a_store_waits_behind_an_open_transaction_for_no_more_than_it_is_asked_for(bootstrap: str) -> None:
    cluster = Cluster(bootstrap)
    try:
        store = cluster.stores(workers_write=True).offsets
        topic = store.kept.topic.name
        mine, other = (Source(bootstrap, topic, name) for name in ("mine", "other"))
        mine.commit(1)
        other.begin(1)
        store.write("stopped", [Position('{"p":1}', '{"n":5}'), Position('{"p":2}', '{"n":6}')])
        assert store.load("mine") == [Position('{"p":0}', '{"n":1}')]
        mine.commit(2)
        with ThreadPoolExecutor(2) as pool:
            mines, stopped = pool.submit(store.load, "mine"), pool.submit(store.load, "stopped")
            assert not eventually(mines.done, 1.0)
            other.producer.commit_transaction(60)
            assert mines.result(60) == [Position('{"p":0}', '{"n":2}')]
            assert {position.offset for position in stopped.result(60)} == {'{"n":5}', '{"n":6}'}
    finally:
        cluster.close()
