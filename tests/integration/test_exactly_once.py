"""Exactly-once sources: what a reader of committed records sees, whatever is killed at whatever moment.

A pump in a process of its own writes what a counting sidecar gives. It is told no positions: all that a new one knows
is what the offsets topic holds.
"""

from __future__ import annotations

import json
import os
import random
import select
import signal
import subprocess
import sys
import time
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Consumer, TopicPartition
from tests.support.pumps import everything, fill
from tests.support.topics import create_topic, end_offsets
from tests.support.waiting import eventually

from wherry.contract.client import SidecarClient
from wherry.contract.mirror import OffsetSync, mirror_position
from wherry.contract.offsets_topic import read_positions
from wherry.contract.position import Position
from wherry.coordinator.exactly_once import open_transactions
from wherry.coordinator.store.local import FileOffsetStore
from wherry.coordinator.store.own_topics import OwnTopicOffsets

pytestmark = [pytest.mark.integration, pytest.mark.promise]

HERE = Path(__file__).parent / "pumps"
POLL, INTERVAL, CONNECTOR = 1, 2, 3
COUNT = 20_000
LIMIT_S = 120.0


class Bed:
    """One source: its topics, its sidecars and its pumps, all killed at the end."""

    def __init__(self, bootstrap: str, topic: str, folder: Path) -> None:
        self.bootstrap, self.topic, self.folder = bootstrap, topic, folder
        self.offsets = f"offsets-{topic}"
        self.id = f"group-{uuid.uuid4().hex[:8]}-c-0"
        self.processes: list[subprocess.Popen[str]] = []

    def sidecar(self, **config: Any) -> tuple[str, subprocess.Popen[str]]:
        endpoint = f"unix://{self.folder}/{os.urandom(4).hex()}"
        environment = {**os.environ, "WHERRY_ENDPOINT": endpoint, "WHERRY_INSTANCE_ID": "i"}
        process = self._start([sys.executable, str(HERE / "counting.py")], environment)
        settings = {"topic": self.topic, "count": COUNT, **config}
        with SidecarClient(endpoint) as client:
            deadline = time.monotonic() + LIMIT_S
            while not client.healthy(deadline_s=1.0):
                assert time.monotonic() < deadline, "the sidecar did not start"
                time.sleep(0.05)
            client.configure("c", "test.Counting", 1, {key: str(value) for key, value in settings.items()})
        return endpoint, process

    def pump(self, endpoint: str, boundary: int = POLL, **wanted: Any) -> subprocess.Popen[str]:
        arguments: dict[str, Any] = {
            "bootstrap": self.bootstrap, "endpoint": endpoint, "id": self.id, "offsets": self.offsets,
        }  # fmt: skip
        text = json.dumps({**arguments, "boundary": boundary, **wanted})
        process = self._start([sys.executable, str(HERE / "exactly_once.py"), text], dict(os.environ))
        assert line_of(process) == "ready"
        return process

    def _start(self, command: list[str], environment: dict[str, str]) -> subprocess.Popen[str]:
        process = subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True)
        self.processes.append(process)
        return process

    def numbers(self, *, enough: int | None = None) -> list[int]:
        """What a reader of committed records sees, in the order of the topic; at least so many, while more come."""
        return [int(value) for value in committed(self.bootstrap, self.topic, enough)]

    def position(self) -> Position | None:
        return read_positions({"bootstrap.servers": self.bootstrap}, self.offsets, "c").get('{"p":0}')

    def close(self) -> None:
        for process in self.processes:
            process.kill()
            process.wait(60)


def line_of(process: subprocess.Popen[str]) -> str:
    """The next line a process says."""
    assert process.stdout is not None
    readable, _, _ = select.select([process.stdout], [], [], LIMIT_S)
    return process.stdout.readline().strip() if readable else "(nothing in time)"


def committed(bootstrap: str, topic: str, enough: int | None = None) -> list[bytes]:
    """All values up to the topic's end, which never comes while somebody writes, or the first of them."""
    consumer = Consumer({
        "bootstrap.servers": bootstrap, "group.id": "check", "enable.partition.eof": True,
        "isolation.level": "read_committed",
    })  # fmt: skip
    consumer.assign([TopicPartition(topic, 0, 0)])
    values: list[bytes] = []
    deadline = time.monotonic() + LIMIT_S
    while time.monotonic() < deadline:
        for message in consumer.consume(10_000, 0.5):
            if message.error() is None:
                values.append(message.value())
            elif enough is None:
                consumer.close()
                return values
        if enough is not None and len(values) >= enough:
            consumer.close()
            return values
    raise AssertionError("the topic has no end")


@pytest.fixture
def bed(bootstrap: str, new_topic: Callable[..., str], tmp_path_factory: pytest.TempPathFactory) -> Iterator[Bed]:
    folder = Path("/tmp") / f"eos-{os.getpid()}-{os.urandom(3).hex()}"  # a socket's path has at most 107 bytes
    folder.mkdir()
    made = Bed(bootstrap, new_topic(), folder)
    yield made
    made.close()
    for path in folder.iterdir():
        path.unlink()
    folder.rmdir()


@pytest.mark.parametrize(
    ("boundary", "config"),
    [(POLL, {"mark_every": 700}), (INTERVAL, {}), (CONNECTOR, {"mark_every": 700, "rows": 2_500})],
)
def test_records_and_position_arrive_together_and_the_next_lease_adds_nothing(
    bed: Bed, boundary: int, config: dict[str, Any]
) -> None:
    endpoint, _ = bed.sidecar(**config)
    assert line_of(bed.pump(endpoint, boundary)) == "IDLE"
    assert bed.numbers() == list(range(COUNT))
    assert bed.position() == Position('{"p":0}', f'{{"n":{COUNT}}}')
    assert line_of(bed.pump(endpoint, boundary)) == "IDLE"
    assert len(bed.numbers()) == COUNT


@pytest.mark.parametrize("boundary", [POLL, INTERVAL])
def test_killed_workers_and_sidecars_lose_nothing_and_repeat_nothing(bed: Bed, boundary: int) -> None:
    chance = random.Random(7 + boundary)
    config = {"pause": 0.05, "mark_every": 300, "count": 100 * COUNT}
    for turn in range(5):
        endpoint, sidecar = bed.sidecar(**config)
        worker = bed.pump(endpoint, boundary, interval_ms=100)
        time.sleep(chance.uniform(0.0, 0.4))
        if turn == 4:
            assert bed.numbers(enough=1)
        (sidecar if turn % 3 == 2 else worker).kill()
        if turn % 3 == 2:
            assert line_of(worker).startswith("TransientError")
    seen = bed.numbers()
    assert seen == list(range(len(seen)))
    assert seen
    endpoint, _ = bed.sidecar(count=len(seen) + COUNT)
    assert line_of(bed.pump(endpoint, boundary)) == "IDLE"
    assert bed.numbers() == list(range(len(seen) + COUNT))


def test_a_worker_that_comes_back_from_the_dead_is_fenced_and_its_transaction_is_void(bed: Bed) -> None:
    endpoint, _ = bed.sidecar(pause=0.01)
    zombie = bed.pump(endpoint, INTERVAL, interval_ms=60_000)
    # Within a transaction, for the interval is a minute.
    assert eventually(lambda: end_offsets(bed.bootstrap, bed.topic)[0] > 0)
    zombie.send_signal(signal.SIGSTOP)
    other, _ = bed.sidecar()
    assert line_of(bed.pump(other, POLL)) == "IDLE"
    zombie.send_signal(signal.SIGCONT)
    assert line_of(zombie).startswith("FencedError: Another producer has taken over")
    assert bed.numbers() == list(range(COUNT))


def test_a_record_the_broker_refuses_fails_the_task_and_leaves_no_trace(
    bed: Bed, new_topic: Callable[..., str]
) -> None:
    bed.topic = new_topic(config={"max.message.bytes": "200"})
    endpoint, _ = bed.sidecar(rows=2_000)
    overrides = {"producer.override.linger.ms": "100"}
    assert "refused within a transaction" in line_of(bed.pump(endpoint, POLL, config=overrides))
    assert bed.numbers() == []
    assert bed.position() is None


def test_whom_the_coordinator_shuts_out_commits_no_more(bed: Bed) -> None:
    endpoint, _ = bed.sidecar(pause=0.01, count=1000 * COUNT)
    worker = bed.pump(endpoint, INTERVAL, interval_ms=20_000)
    # Within the first transaction.
    assert eventually(lambda: end_offsets(bed.bootstrap, bed.topic)[0] > 0)
    open_transactions({"bootstrap.servers": bed.bootstrap}, bed.id, LIMIT_S)
    assert line_of(worker).startswith("FencedError")
    assert bed.numbers() == []


def test_a_source_with_an_offsets_topic_of_its_own_reads_that_first_and_writes_both(
    bootstrap: str, tmp_path: Path
) -> None:
    own = f"own-{uuid.uuid4().hex[:8]}"
    worker = {"bootstrap.servers": bootstrap, "offset.storage.replication.factor": "1"}
    inner = FileOffsetStore(tmp_path / "offsets")
    configs = {"c": {"offsets.storage.topic": own}, "other": {}}
    store = OwnTopicOffsets(inner, worker, lambda name: configs[name])
    inner.write("c", [Position('{"p":0}', '{"n":1}'), Position('{"p":1}', '{"n":1}')])
    assert store.load("c") == inner.load("c")
    store.write("c", [Position('{"p":0}', '{"n":2}')])
    inner.write("c", [Position('{"p":0}', '{"n":7}')])
    assert store.load("c") == [Position('{"p":0}', '{"n":2}'), Position('{"p":1}', '{"n":1}')]
    assert read_positions({"bootstrap.servers": bootstrap}, own, "c")['{"p":0}'].offset == '{"n":2}'
    store.write("c", [Position('{"p":0}', None), Position('{"p":2}', '{"n":3}')])
    assert store.load("c") == [Position('{"p":1}', '{"n":1}'), Position('{"p":2}', '{"n":3}')]
    store.reset("c")
    assert store.load("c") == []
    store.write("other", [Position('{"p":5}', '{"n":5}')])
    assert read_positions({"bootstrap.servers": bootstrap}, own, "other") == {}


def test_killed_mirrors_copy_every_record_once_and_tell_true_places(bed: Bed, new_topic: Callable[..., str]) -> None:
    fill(bed.bootstrap, bed.topic, [b"%d" % number for number in range(COUNT)])
    copy = create_topic(bed.bootstrap, f"A.{bed.topic}", partitions=1)
    syncs = create_topic(bed.bootstrap, f"mm2-offset-syncs.{bed.id}.internal", partitions=1)
    config = {
        "source.cluster.alias": "A",
        "target.cluster.alias": bed.id,
        "source.cluster.bootstrap.servers": bed.bootstrap,
        # Many small batches, so that a kill finds something under way.
        "source.consumer.max.partition.fetch.bytes": "20000",
    }
    wanted = {"config": config, "mirrored": [mirror_position("A", bed.topic, 0, None).partition]}
    chance = random.Random(11)
    for _ in range(3):
        mirror = bed.pump("", POLL, **wanted)
        time.sleep(chance.uniform(0.0, 0.15))
        mirror.kill()
        seen = committed(bed.bootstrap, copy)
        assert seen == [b"%d" % number for number in range(len(seen))]
    assert line_of(bed.pump("", POLL, **wanted)) == "IDLE"
    assert committed(bed.bootstrap, copy) == [b"%d" % number for number in range(COUNT)]
    ours = {message.offset(): message.value() for message in everything(bed.bootstrap, copy)}
    told = [OffsetSync.parse(m.key(), m.value()) for m in everything(bed.bootstrap, syncs)]
    assert told
    for sync in told:
        assert ours[sync.downstream] == b"%d" % sync.upstream
