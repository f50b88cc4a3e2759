"""Flow between a real broker and a real sidecar: what sinks ask for, transactions, tombstones, lost offsets, size."""

from __future__ import annotations

import contextlib
import resource
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Producer, TopicPartition
from confluent_kafka.admin import AdminClient
from tests.support.pumps import Coordinator, Sidecar, everything, fill, lines_of, run, sink_of, source_of
from tests.support.waiting import eventually

from wherry.contract.errors import OffsetLostError
from wherry.contract.limits import MIB
from wherry.contract.position import Position, kafka_partition_json, kafka_position
from wherry.worker.policy import LeasePolicy
from wherry.worker.signals import EndReason, Signals

Start = Callable[..., Sidecar]
PARK = LeasePolicy(idle_park_s=1.0, commit_interval_s=0.2)


class Lines:
    """What a moody sink has written: partition, value and time of each record, in order."""

    def __init__(self, path: Path) -> None:
        self.rows: list[tuple[int, str, float]] = []
        for line in path.read_text().splitlines():
            told, _, at = line.rpartition(" ")
            partition, value, _ = told.split(":")
            self.rows.append((int(partition), value, float(at)))

    def of(self, partition: int) -> list[str]:
        return [value for number, value, _ in self.rows if number == partition]

    def at(self, value: str) -> float:
        return next(at for _, each, at in self.rows if each == value)


@contextlib.contextmanager
def drained_after(act: Callable[[], None], signals: Signals) -> Iterator[None]:
    """Acts beside a lease, which is drained afterwards however that went."""

    def beside() -> None:
        try:
            act()
        finally:
            signals.drain(60.0)

    with ThreadPoolExecutor(1) as pool:
        acting = pool.submit(beside)
        yield
        acting.result()


def numbers(start: int, end: int) -> list[str]:
    return [str(number) for number in range(start, end)]


def test_a_sink_that_goes_back_is_given_the_records_again_and_ends_at_the_end(
    bootstrap: str, new_topic: Callable[..., str], sidecar: Start, tmp_path: Path
) -> None:
    topic, coordinator = new_topic(partitions=2), Coordinator()
    fill(bootstrap, topic, [text.encode() for text in numbers(0, 4000)], partitions=2)
    moody = sidecar("moody", "test.Moody", file=tmp_path / "out", rewind_at="100")
    assert run(sink_of(bootstrap, topic, 2, moody, coordinator), coordinator, policy=PARK) is EndReason.IDLE
    lines = Lines(tmp_path / "out")
    rewound, other = lines.of(0), lines.of(1)
    again = rewound.index("0", 1)
    assert rewound[:again] == numbers(0, 4000)[::2][:again]
    assert rewound[again:] == numbers(0, 4000)[::2]
    # The other partition is neither rewound nor robbed of what had been read ahead.
    assert other == numbers(0, 4000)[1::2]
    assert set(coordinator.committed.values()) == {kafka_position(topic, 0, 2000), kafka_position(topic, 1, 2000)}


def test_a_partition_that_a_sink_pauses_rests_and_the_others_go_on(
    bootstrap: str, new_topic: Callable[..., str], sidecar: Start, tmp_path: Path
) -> None:
    topic, coordinator = new_topic(partitions=2), Coordinator()
    producer = Producer({"bootstrap.servers": bootstrap})
    producer.produce(topic, b"hold", partition=0)
    assert producer.flush(60) == 0
    moody = sidecar("moody", "test.Moody", file=tmp_path / "out", pause_at="hold", resume_at="go")

    signals = Signals()
    pipeline = sink_of(bootstrap, topic, 2, moody, coordinator)
    reader: Any = pipeline.reader

    def feed() -> None:
        assert eventually(lambda: bool(reader._paused)), "the sink asks for a pause, and is heard"
        for number in range(20):
            producer.produce(topic, f"held-{number}".encode(), partition=0)
            producer.produce(topic, f"free-{number}".encode(), partition=1)
        producer.flush(60)
        assert eventually(lambda: len(lines_of(tmp_path / "out")) >= 21)
        time.sleep(1.0)
        producer.produce(topic, b"go", partition=1)
        producer.flush(60)
        assert eventually(lambda: len(lines_of(tmp_path / "out")) == 42)

    policy = LeasePolicy(commit_interval_s=0.2)
    with drained_after(feed, signals):
        assert run(pipeline, coordinator, signals, policy) is EndReason.DRAINED
    lines = Lines(tmp_path / "out")
    assert lines.of(0) == ["hold", *(f"held-{number}" for number in range(20))]
    assert lines.at("held-0") > lines.at("go") > lines.at("free-19")
    assert coordinator.committed[kafka_partition_json(topic, 0)] == kafka_position(topic, 0, 21)


def test_a_sink_that_backs_off_gets_nothing_for_so_long_and_the_reason_is_told(
    bootstrap: str, topic: str, sidecar: Start, tmp_path: Path
) -> None:
    troubles: list[str] = []
    signals = Signals()

    class Telling(Coordinator):
        def report(self, **report: Any) -> int:
            troubles.append(report["trouble"])
            return super().report(**report)

    coordinator = Telling()
    fill(bootstrap, topic, [b"a", b"b"])
    moody = sidecar("moody", "test.Moody", file=tmp_path / "out", backoff_at="b", backoff_ms=1500)

    def feed() -> None:
        assert eventually(lambda: "Too much at once." in troubles)
        fill(bootstrap, topic, [b"c"])
        assert eventually(lambda: len(lines_of(tmp_path / "out")) == 3)

    policy = LeasePolicy(commit_interval_s=0.2, report_interval_s=0.2)
    with drained_after(feed, signals):
        run(sink_of(bootstrap, topic, 1, moody, coordinator), coordinator, signals, policy)
    lines = Lines(tmp_path / "out")
    assert lines.of(0) == ["a", "b", "c"]
    assert lines.at("c") - lines.at("b") >= 1.4
    assert "Too much at once." in troubles


def test_a_row_that_fails_for_now_is_offered_again_with_all_that_followed_it_in_its_partition(
    bootstrap: str, new_topic: Callable[..., str], sidecar: Start, tmp_path: Path
) -> None:
    topic, coordinator = new_topic(partitions=2), Coordinator()
    fill(bootstrap, topic, [text.encode() for text in numbers(0, 4000)], partitions=2)
    moody = sidecar("moody", "test.Moody", file=tmp_path / "out", refuse_once="100")
    assert run(sink_of(bootstrap, topic, 2, moody, coordinator), coordinator, policy=PARK) is EndReason.IDLE
    lines = Lines(tmp_path / "out")
    written, whole = lines.of(0), numbers(0, 4000)[::2]
    again = written.index("100")
    # What had overtaken it comes once more, behind it: the newest value of a key is the last that is written.
    assert written[:again] == [value for value in whole if value != "100"][:again]
    assert written[again:] == whole[50:]
    assert lines.of(1) == numbers(0, 4000)[1::2]
    assert (coordinator.counts["retries"], coordinator.counts["skipped"]) == (1, 0)
    assert set(coordinator.committed.values()) == {kafka_position(topic, 0, 2000), kafka_position(topic, 1, 2000)}


@pytest.mark.parametrize("isolation", ["read_uncommitted", "read_committed"])
def test_records_of_aborted_transactions_are_left_out_only_when_asked_as_in_kafka_connect(
    bootstrap: str, topic: str, sidecar: Start, tmp_path: Path, isolation: str
) -> None:
    producer = Producer({"bootstrap.servers": bootstrap, "transactional.id": topic})
    producer.init_transactions(60)
    for text, end in ((b"kept", producer.commit_transaction), (b"aborted", producer.abort_transaction)):
        producer.begin_transaction()
        producer.produce(topic, text)
        producer.flush(60)
        end(60)
    coordinator = Coordinator()
    moody = sidecar("moody", "test.Moody", file=tmp_path / "out")
    override = {"consumer_override_isolation_level": isolation} if isolation == "read_committed" else {}
    sink = sink_of(bootstrap, topic, 1, moody, coordinator, **override)
    # Control records lie at the end: the lease must find itself at rest all the same.
    assert run(sink, coordinator, policy=PARK) is EndReason.IDLE
    both = ["kept", "aborted"] if isolation == "read_uncommitted" else ["kept"]
    assert Lines(tmp_path / "out").of(0) == both


def test_tombstones_of_a_compacted_topic_reach_the_sink_as_null(
    bootstrap: str, new_topic: Callable[..., str], sidecar: Start, tmp_path: Path
) -> None:
    topic, coordinator = new_topic(config={"cleanup.policy": "compact"}), Coordinator()
    producer = Producer({"bootstrap.servers": bootstrap})
    for key, value in ((b"k", b"1"), (b"k", None), (b"l", b"2")):
        producer.produce(topic, value, key)
    assert producer.flush(60) == 0
    moody = sidecar("moody", "test.Moody", file=tmp_path / "out")
    run(sink_of(bootstrap, topic, 1, moody, coordinator), coordinator, policy=PARK)
    assert Lines(tmp_path / "out").of(0) == ["1", "null", "2"]


def test_an_offset_whose_records_were_deleted_leads_to_the_earliest_or_fails_as_the_connector_says(
    bootstrap: str, topic: str, sidecar: Start, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    fill(bootstrap, topic, [text.encode() for text in numbers(0, 10)])
    admin = AdminClient({"bootstrap.servers": bootstrap})
    admin.delete_records([TopicPartition(topic, 0, 7)])[TopicPartition(topic, 0)].result(60)  # type: ignore[no-untyped-call]
    moody = sidecar("moody", "test.Moody", file=tmp_path / "out")
    coordinator = Coordinator()
    coordinator.committed[kafka_partition_json(topic, 0)] = kafka_position(topic, 0, 3)
    with pytest.raises(OffsetLostError, match=f"topic {topic}, partition 0"):
        run(
            sink_of(bootstrap, topic, 1, moody, coordinator, consumer_override_auto_offset_reset="none"),
            coordinator, policy=PARK,
        )  # fmt: skip
    run(sink_of(bootstrap, topic, 1, moody, coordinator), coordinator, policy=PARK)
    assert Lines(tmp_path / "out").of(0) == ["7", "8", "9"]
    assert f"Offset 3 of topic {topic}, partition 0 is gone" in caplog.text


def test_records_of_64_mib_reach_the_sink_whole_in_bounded_memory(
    bootstrap: str, new_topic: Callable[..., str], sidecar: Start, tmp_path: Path
) -> None:
    large = 64 * MIB - 1024
    topic = new_topic(config={"max.message.bytes": str(80 * MIB)})
    producer = Producer(
        {"bootstrap.servers": bootstrap, "message.max.bytes": 80 * MIB, "queue.buffering.max.kbytes": 512 * 1024}
    )
    for letter in "abc":
        producer.produce(topic, letter.encode() * large)
        assert producer.flush(60) == 0
    coordinator = Coordinator()
    moody = sidecar("moody", "test.Moody", file=tmp_path / "out")
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    override = {"consumer_override_receive_message_max_bytes": str(100 * MIB)}
    assert run(sink_of(bootstrap, topic, 1, moody, coordinator, **override), coordinator, policy=PARK) is EndReason.IDLE
    sizes = [line.split(" ")[0] for line in (tmp_path / "out").read_text().splitlines()]
    assert sizes == [f"0:{letter * 40}:{large}" for letter in "abc"]
    assert list(coordinator.committed.values()) == [kafka_position(topic, 0, 3)]
    # A record is held a few times over on its way, never all of them.
    grown = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024
    assert grown < 12 * 64, f"{grown:.0f} MiB for records of 64 MiB"


def test_records_of_64_mib_leave_a_source_whole_when_its_producer_may_send_them(
    bootstrap: str, new_topic: Callable[..., str], sidecar: Start
) -> None:
    topic, coordinator = new_topic(config={"max.message.bytes": str(80 * MIB)}), Coordinator()
    size = 63 * MIB
    counting = sidecar("counting", "test.Counting", topic=topic, count=3, rows=3, size=size)
    override = {"producer_override_max_request_size": str(70 * MIB)}
    assert run(source_of(bootstrap, counting, coordinator, **override), coordinator, policy=PARK) is EndReason.IDLE
    messages = everything(bootstrap, topic)
    assert [(message.value().strip(), len(message.value())) for message in messages] == [
        (b"%d" % number, size) for number in range(3)
    ]


def test_records_that_a_source_can_not_deliver_are_kept_in_its_own_dead_letter_queue(
    bootstrap: str, new_topic: Callable[..., str], sidecar: Start
) -> None:
    """The broker refuses what is too large for the topic; the converter what is no number."""
    topic, coordinator = new_topic(config={"max.message.bytes": "1000"}), Coordinator()
    dead = f"{topic}-dead"
    queue = "wherry_errors_deadletterqueue"
    config = {
        "errors_tolerance": "all", f"{queue}_topic_name": dead, f"{queue}_topic_replication_factor": "1",
        f"{queue}_context_headers_enable": "true",
    }  # fmt: skip
    large = sidecar("counting", "test.Counting", topic=topic, count=2, rows=1, size=5000)
    assert run(source_of(bootstrap, large, coordinator, **config), coordinator, policy=PARK) is EndReason.IDLE
    converter = "org.apache.kafka.connect.converters.IntegerConverter"
    config["value_converter"] = converter
    text = sidecar("counting", "test.Counting", topic=topic, count=4, rows=1)
    run(source_of(bootstrap, text, coordinator, **config), coordinator, policy=PARK)
    assert everything(bootstrap, topic) == []
    letters = everything(bootstrap, dead)
    assert [letter.value().strip() for letter in letters] == [b"0", b"1", b'"2"', b'"3"']
    told = [dict(letter.headers()) for letter in letters]
    assert [each["__connect.errors.stage"] for each in told] == [b"KAFKA_PRODUCE"] * 2 + [b"VALUE_CONVERTER"] * 2
    assert {each["__connect.errors.topic"] for each in told} == {topic.encode()}
    assert [each.get("__wherry.errors.encoding") for each in told] == [None, None, b"json", b"json"]
    assert (coordinator.counts["skipped"], coordinator.counts["dead_letters"]) == (4, 4)
    assert coordinator.committed == {'{"p":0}': Position('{"p":0}', '{"n":4}')}
