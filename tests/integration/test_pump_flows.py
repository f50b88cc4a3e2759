"""The pump between a real broker and real sidecar processes: nothing lost, and twice only what was not committed."""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition

from wherry.contract.client import SidecarClient
from wherry.contract.description import Role
from wherry.contract.errors import TransientError
from wherry.contract.position import Position, kafka_partition_json, kafka_position
from wherry.control.v1 import lease_pb2
from wherry.worker import pump
from wherry.worker.counts import Counts
from wherry.worker.pipeline import Pipeline, PipelineKind, build
from wherry.worker.policy import LeasePolicy
from wherry.worker.signals import EndReason, Signals
from wherry.worker.tolerance import ToleranceExceededError

pytestmark = pytest.mark.integration

HERE = Path(__file__).parent / "pumps"
STRING = "org.apache.kafka.connect.storage.StringConverter"
JSON = "org.apache.kafka.connect.json.JsonConverter"
PARK = LeasePolicy(idle_park_s=0.5, commit_interval_s=0.2)


class Coordinator:
    """Commits every report at once and remembers it."""

    def __init__(self) -> None:
        self.committed: dict[str, Position] = {}
        self.counts: dict[str, int] = {}
        self._seq = 0

    def report(self, *, positions: Any = (), counts: Counts | None = None, **rest: Any) -> int:
        self.committed.update({position.partition: position for position in positions})
        for name in ("records_read", "records_written", "skipped", "dead_letters"):
            self.counts[name] = self.counts.get(name, 0) + getattr(counts, name)
        self._seq += 1
        return self._seq

    def committed_seq(self) -> int:
        return self._seq


class Sidecar:
    """A sidecar process, configured."""

    def __init__(self, script: str, class_name: str, config: Mapping[str, str], folder: Path) -> None:
        self.endpoint = f"unix://{folder}/{script}-{os.urandom(3).hex()}"
        environment = {**os.environ, "WHERRY_ENDPOINT": self.endpoint, "WHERRY_INSTANCE_ID": "i"}
        self.process = subprocess.Popen([sys.executable, str(HERE / f"{script}.py")], env=environment)
        with SidecarClient(self.endpoint) as client:
            deadline = time.monotonic() + 30
            while not client.healthy(deadline_s=1.0):
                assert time.monotonic() < deadline, "the sidecar did not start"
                time.sleep(0.05)
            client.configure("c", class_name, 1, config)

    def kill(self) -> None:
        self.process.kill()
        self.process.wait(10)


@pytest.fixture
def sidecar(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[..., Sidecar]]:
    started: list[Sidecar] = []
    folder = Path("/tmp") / f"pumps-{os.getpid()}"  # a socket's path has at most 107 bytes
    folder.mkdir(exist_ok=True)

    def start(script: str, class_name: str, **config: Any) -> Sidecar:
        started.append(Sidecar(script, class_name, {key: str(value) for key, value in config.items()}, folder))
        return started[-1]

    yield start
    for one in started:
        one.kill()
    for path in folder.iterdir():
        path.unlink()
    folder.rmdir()


def grant_of(
    kind: PipelineKind, bootstrap: str, config: Mapping[str, str], **worker: str
) -> lease_pb2.OpenLeaseResponse:
    worker_config = {"bootstrap.servers": bootstrap, "key.converter": STRING, "value.converter": STRING, **worker}
    grant = lease_pb2.OpenLeaseResponse(kind=int(kind), config={"name": "c", **config}, worker_config=worker_config)  # type: ignore[arg-type]
    role = Role.SOURCE if kind is PipelineKind.SOURCE else Role.SINK
    grant.sidecars.add(role=int(role), connector="c", class_name="test.Class", generation=1)  # type: ignore[arg-type]
    grant.work.id = "0"
    return grant


def sink_of(
    bootstrap: str, topic: str, partitions: int, sidecar: Sidecar, coordinator: Coordinator, **config: str
) -> Pipeline:
    settings = {key.replace("_", "."): value for key, value in config.items()}
    grant = grant_of(PipelineKind.SINK, bootstrap, settings)
    grant.partitions_json.extend(kafka_partition_json(topic, number) for number in range(partitions))
    return build(grant, {Role.SINK: sidecar.endpoint}, positions=coordinator.committed)


def source_of(bootstrap: str, sidecar: Sidecar, coordinator: Coordinator) -> Pipeline:
    return build(
        grant_of(PipelineKind.SOURCE, bootstrap, {}), {Role.SOURCE: sidecar.endpoint}, positions=coordinator.committed
    )


def run(
    pipeline: Pipeline, coordinator: Coordinator, signals: Signals | None = None, policy: LeasePolicy = PARK
) -> EndReason:
    with contextlib.closing(pipeline):
        return pump.run(pipeline, policy, signals or Signals(), coordinator)


def fill(bootstrap: str, topic: str, values: list[bytes], partitions: int = 1) -> None:
    producer = Producer({"bootstrap.servers": bootstrap, "linger.ms": 20})
    for number, value in enumerate(values):
        producer.produce(topic, value, partition=number % partitions)
        if not number % 1_000:
            producer.poll(0)
    assert producer.flush(30) == 0


def everything(bootstrap: str, topic: str) -> list[Any]:
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": "check", "enable.partition.eof": True})
    numbers = consumer.list_topics(topic, timeout=10).topics[topic].partitions
    consumer.assign([TopicPartition(topic, number, 0) for number in numbers])
    messages, ends, deadline = [], 0, time.monotonic() + 30
    while ends < len(numbers) and time.monotonic() < deadline:
        for message in consumer.consume(10_000, 0.5):
            if message.error() is None:
                messages.append(message)
            else:
                ends += 1
    consumer.close()
    return messages


def lines_of(path: Path) -> list[str]:
    return path.read_text().splitlines() if path.exists() else []


def test_every_record_reaches_the_sink_and_positions_stand_at_the_ends(
    bootstrap: str, new_topic: Callable[..., str], sidecar: Callable[..., Sidecar], tmp_path: Path
) -> None:
    topic, coordinator = new_topic(partitions=2), Coordinator()
    fill(bootstrap, topic, [str(number).encode() for number in range(20_000)], partitions=2)
    filing = sidecar("filing", "test.Filing", file=tmp_path / "out")
    assert run(sink_of(bootstrap, topic, 2, filing, coordinator), coordinator) is EndReason.IDLE
    lines = lines_of(tmp_path / "out")
    for partition in range(2):
        mine = [int(line.split(":")[1]) for line in lines if line.startswith(f"{partition}:")]
        assert mine == list(range(partition, 20_000, 2))
    assert set(coordinator.committed.values()) == {kafka_position(topic, 0, 10_000), kafka_position(topic, 1, 10_000)}
    assert coordinator.counts["records_written"] == 20_000


def test_drained_leases_follow_one_another_without_a_duplicate(
    bootstrap: str, new_topic: Callable[..., str], sidecar: Callable[..., Sidecar], tmp_path: Path
) -> None:
    topic, coordinator = new_topic(), Coordinator()
    filing = sidecar("filing", "test.Filing", file=tmp_path / "out")
    fill(bootstrap, topic, [str(number).encode() for number in range(60_000)])
    for _ in range(3):
        signals = Signals()
        threading.Timer(0.15, lambda signals=signals: signals.drain(5.0)).start()
        assert (
            run(sink_of(bootstrap, topic, 1, filing, coordinator), coordinator, signals, LeasePolicy())
            is EndReason.DRAINED
        )
    run(sink_of(bootstrap, topic, 1, filing, coordinator), coordinator)
    assert [int(line.split(":")[1]) for line in lines_of(tmp_path / "out")] == list(range(60_000))


def test_a_killed_sink_sidecar_is_a_transient_fault_and_nothing_is_lost(
    bootstrap: str, new_topic: Callable[..., str], sidecar: Callable[..., Sidecar], tmp_path: Path
) -> None:
    topic, coordinator = new_topic(), Coordinator()
    fill(bootstrap, topic, [str(number).encode() for number in range(200_000)])
    filing = sidecar("filing", "test.Filing", file=tmp_path / "out")
    threading.Timer(0.4, filing.process.kill).start()
    with pytest.raises(TransientError):
        run(sink_of(bootstrap, topic, 1, filing, coordinator), coordinator)
    committed = max(
        (int(json.loads(one.offset or "")["kafka_offset"]) for one in coordinator.committed.values()), default=0
    )
    written = [int(line.split(":")[1]) for line in lines_of(tmp_path / "out")]
    # What was committed is in the file: invariant 1.
    assert set(range(committed)) <= set(written)
    another = sidecar("filing", "test.Filing", file=tmp_path / "out")
    run(sink_of(bootstrap, topic, 1, another, coordinator), coordinator)
    numbers = [int(line.split(":")[1]) for line in lines_of(tmp_path / "out")]
    assert set(numbers) == set(range(200_000))
    assert all(number >= committed for number in numbers[len(written) :])


def test_a_source_reaches_kafka_and_goes_on_where_it_was(
    bootstrap: str, topic: str, sidecar: Callable[..., Sidecar]
) -> None:
    coordinator = Coordinator()
    counting = sidecar("counting", "test.Counting", topic=topic, count=30_000)
    assert run(source_of(bootstrap, counting, coordinator), coordinator) is EndReason.IDLE
    assert coordinator.committed == {'{"p":0}': Position('{"p":0}', '{"n":30000}')}
    more = sidecar("counting", "test.Counting", topic=topic, count=31_000)
    run(source_of(bootstrap, more, coordinator), coordinator)
    assert [int(message.value()) for message in everything(bootstrap, topic)] == list(range(31_000))


def test_a_killed_source_sidecar_loses_nothing_and_repeats_nothing_that_was_read(
    bootstrap: str, topic: str, sidecar: Callable[..., Sidecar]
) -> None:
    coordinator = Coordinator()
    counting = sidecar("counting", "test.Counting", topic=topic, count=100_000, pause="0.005")
    threading.Timer(0.5, counting.process.kill).start()
    with pytest.raises(TransientError):
        run(source_of(bootstrap, counting, coordinator), coordinator, policy=LeasePolicy())
    # The commit interval is a minute: only the flush after the fault can have told this position.
    assert coordinator.committed
    another = sidecar("counting", "test.Counting", topic=topic, count=20_000)
    run(source_of(bootstrap, another, coordinator), coordinator)
    numbers = [int(message.value()) for message in everything(bootstrap, topic)]
    assert numbers == list(range(max(20_000, max(numbers) + 1)))


def test_drained_sources_follow_one_another_without_a_duplicate(
    bootstrap: str, topic: str, sidecar: Callable[..., Sidecar]
) -> None:
    coordinator = Coordinator()
    counting = sidecar("counting", "test.Counting", topic=topic, count=40_000, pause="0.002")
    for _ in range(2):
        signals = Signals()
        threading.Timer(0.1, lambda signals=signals: signals.drain(5.0)).start()
        assert (
            run(source_of(bootstrap, counting, coordinator), coordinator, signals, LeasePolicy()) is EndReason.DRAINED
        )
    run(source_of(bootstrap, counting, coordinator), coordinator)
    assert [int(message.value()) for message in everything(bootstrap, topic)] == list(range(40_000))


def test_poison_records_go_to_the_dead_letter_queue_and_the_rest_goes_on(
    bootstrap: str, new_topic: Callable[..., str], sidecar: Callable[..., Sidecar], tmp_path: Path
) -> None:
    topic, coordinator = new_topic(), Coordinator()
    dead = f"{topic}-dead"
    fill(bootstrap, topic, [b"1", b"{damaged", b"2", b"3", b"4"])
    filing = sidecar("filing", "test.Filing", file=tmp_path / "out", refuse="3")
    pipeline = sink_of(
        bootstrap, topic, 1, filing, coordinator,
        value_converter=JSON, value_converter_schemas_enable="false", errors_tolerance="all",
        errors_deadletterqueue_topic_name=dead, errors_deadletterqueue_topic_replication_factor="1",
        errors_deadletterqueue_context_headers_enable="true",
    )  # fmt: skip
    assert run(pipeline, coordinator) is EndReason.IDLE
    assert lines_of(tmp_path / "out") == ["0:1", "0:2", "0:4"]
    assert coordinator.committed[kafka_partition_json(topic, 0)] == kafka_position(topic, 0, 5)
    letters = everything(bootstrap, dead)
    assert [letter.value() for letter in letters] == [b"{damaged", b"3"]
    stages = [dict(letter.headers())["__connect.errors.stage"] for letter in letters]
    offsets = [dict(letter.headers())["__connect.errors.offset"] for letter in letters]
    assert stages == [b"VALUE_CONVERTER", b"TASK_PUT"]
    assert offsets == [b"1", b"3"]
    assert (coordinator.counts["skipped"], coordinator.counts["dead_letters"]) == (2, 2)


def test_without_tolerance_a_poison_record_ends_the_lease_before_its_position(
    bootstrap: str, new_topic: Callable[..., str], sidecar: Callable[..., Sidecar], tmp_path: Path
) -> None:
    topic, coordinator = new_topic(), Coordinator()
    fill(bootstrap, topic, [b"1", b"2", b"3"])
    filing = sidecar("filing", "test.Filing", file=tmp_path / "out", refuse="2")
    with pytest.raises(ToleranceExceededError, match=rf"topic {topic}, partition 0, offset 1: It is refused by name"):
        run(sink_of(bootstrap, topic, 1, filing, coordinator), coordinator)
    assert coordinator.committed == {}
