"""The pump between a real broker and real sidecar processes: nothing lost, and twice only what was not committed."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.support.pumps import JSON, Coordinator, Sidecar, everything, fill, lines_of, run, sink_of, source_of
from tests.support.topics import end_offsets
from tests.support.waiting import eventually

from wherry.contract.errors import TransientError
from wherry.contract.position import Position, kafka_partition_json, kafka_position
from wherry.worker.policy import LeasePolicy
from wherry.worker.signals import EndReason, Signals
from wherry.worker.tolerance import ToleranceExceededError

pytestmark = pytest.mark.promise


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
        threading.Timer(0.15, lambda signals=signals: signals.drain(60.0)).start()
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
    with pytest.raises(TransientError):  # it never parks, so that it is there when its sidecar is killed
        run(sink_of(bootstrap, topic, 1, filing, coordinator), coordinator, policy=LeasePolicy(commit_interval_s=0.2))
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

    def kill() -> None:
        eventually(lambda: end_offsets(bootstrap, topic)[0] > 0)
        counting.process.kill()

    threading.Thread(target=kill).start()
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
        threading.Timer(0.1, lambda signals=signals: signals.drain(60.0)).start()
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
