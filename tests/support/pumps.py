"""A pump between a real broker and real sidecar processes, without coordinator and Spark: for tests of flows."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition

from wherry.contract.client import SidecarClient
from wherry.contract.description import Role
from wherry.contract.position import Position, kafka_partition_json
from wherry.control.v1 import lease_pb2
from wherry.worker import pump
from wherry.worker.counts import Counts
from wherry.worker.pipeline import Pipeline, PipelineKind, build
from wherry.worker.policy import LeasePolicy
from wherry.worker.signals import EndReason, Signals

SCRIPTS = Path(__file__).parents[1] / "integration" / "pumps"
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
        for name in ("records_read", "records_written", "skipped", "retries", "dead_letters"):
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
        self.process = subprocess.Popen([sys.executable, str(SCRIPTS / f"{script}.py")], env=environment)
        with SidecarClient(self.endpoint) as client:
            deadline = time.monotonic() + 60
            while not client.healthy(deadline_s=1.0):
                assert time.monotonic() < deadline, "the sidecar did not start"
                time.sleep(0.05)
            client.configure("c", class_name, 1, config)

    def kill(self) -> None:
        self.process.kill()
        self.process.wait(60)


@pytest.fixture
def sidecar(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[..., Sidecar]]:
    started: list[Sidecar] = []
    folder = Path("/tmp") / f"pumps-{os.getpid()}"  # a socket's path has at most 107 bytes
    folder.mkdir(exist_ok=True)

    def start(script: str, class_name: str, **config: Any) -> Sidecar:
        started.append(
            Sidecar(script, class_name, {key.replace("_", "."): str(value) for key, value in config.items()}, folder)
        )
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


def source_of(bootstrap: str, sidecar: Sidecar, coordinator: Coordinator, **config: str) -> Pipeline:
    settings = {key.replace("_", "."): value for key, value in config.items()}
    grant = grant_of(PipelineKind.SOURCE, bootstrap, settings)
    return build(grant, {Role.SOURCE: sidecar.endpoint}, positions=coordinator.committed)


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
    assert producer.flush(60) == 0


def everything(bootstrap: str, topic: str) -> list[Any]:
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": "check", "enable.partition.eof": True})
    numbers = consumer.list_topics(topic, timeout=60).topics[topic].partitions
    consumer.assign([TopicPartition(topic, number, 0) for number in numbers])
    messages, ends, deadline = [], 0, time.monotonic() + 60
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
