"""Writing to a broker inside the process."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from typing import Any

import pyarrow as pa
import pytest
from confluent_kafka import Consumer, KafkaError, KafkaException, TopicPartition

from wherry.contract.batch import Batch, Constants, mark_only, of_value
from wherry.contract.errors import ConfigError, SchemaError, TransientError
from wherry.contract.position import Position
from wherry.worker.endpoints.columns import headers_array
from wherry.worker.endpoints.kafka_config import writer_config
from wherry.worker.endpoints.kafka_writer import KafkaWriter, _trouble_of

Make = Callable[..., KafkaWriter]

pytestmark = pytest.mark.usefixtures("both_ways")


def seconds() -> float:
    return 60.0


@pytest.fixture
def make(cluster: Any) -> Iterator[Make]:
    made: list[KafkaWriter] = []

    def writer(**overrides: str) -> KafkaWriter:
        # The mock cluster hands out no producer ids in time for a test.
        config = {"producer.override.acks": "1"}
        config |= {f"producer.override.{key.replace('_', '.')}": value for key, value in overrides.items()}
        made.append(KafkaWriter(writer_config("c", 0, config, {"bootstrap.servers": cluster.bootstrap})))
        return made[-1]

    yield writer
    for one in made:
        one.close()


def consume(bootstrap: str, topic: str, count: int) -> list[Any]:
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": "g", "auto.offset.reset": "earliest"})
    consumer.assign([TopicPartition(topic, number, 0) for number in range(4)])
    messages: list[Any] = []
    deadline = time.monotonic() + 60.0
    while len(messages) < count and time.monotonic() < deadline:
        messages += [message for message in consumer.consume(100, 0.2) if message.error() is None]
    consumer.close()
    return messages


def batch_of(*values: bytes | None, **columns: Any) -> Batch:
    constants = columns.pop("constants", Constants(topic="t"))
    return of_value(pa.array(values, pa.binary()), constants=constants, **columns)


def write(writer: KafkaWriter, batch: Batch) -> None:
    writer.write(batch, batch)


def test_records_are_durable_when_flush_has_answered(cluster: Any, make: Make) -> None:
    writer = make()
    write(writer, batch_of(b"a", b"b", None, constants=Constants("t", 0)))
    flushed = writer.flush(seconds)
    assert (flushed.rows_written, flushed.rows_failed, flushed.positions) == (3, 0, None)
    assert [message.value() for message in consume(cluster.bootstrap, "t", 3)] == [b"a", b"b", None]
    assert writer.flush(seconds).rows_written == 0


def test_key_headers_time_and_partition_go_along(cluster: Any, make: Make) -> None:
    batch = batch_of(
        b"a", b"b",
        key=pa.array([b"k", None], pa.binary()),
        headers=headers_array([[("h", b"1"), ("h", None)], None]),
        timestamp=pa.array([1234, 5678], pa.timestamp("ms", "UTC")),
        partition=pa.array([2, 2], pa.int32()),
    )  # fmt: skip
    writer = make()
    write(writer, batch)
    writer.flush(seconds)
    one, other = consume(cluster.bootstrap, "t", 2)
    assert (one.key(), one.headers(), one.timestamp()[1], one.partition()) == (
        b"k",
        [("h", b"1"), ("h", None)],
        1234,
        2,
    )
    assert (other.key(), other.headers(), other.timestamp()[1]) == (None, None, 5678)


def test_rows_go_to_the_topic_they_name(cluster: Any, make: Make) -> None:
    writer = make()
    write(writer, batch_of(b"a", b"b", constants=Constants(), topic=pa.array(["t", "u"])))
    writer.flush(seconds)
    assert [message.value() for message in consume(cluster.bootstrap, "u", 1)] == [b"b"]


def test_keys_alone_take_the_short_way_and_keep_their_partition(cluster: Any, make: Make) -> None:
    writer = make()
    write(writer, batch_of(*[b"v"] * 20, key=pa.array([b"same"] * 20, pa.binary())))
    writer.flush(seconds)
    assert len({message.partition() for message in consume(cluster.bootstrap, "t", 20)}) == 1


def test_a_row_without_a_topic_is_refused_in_a_sentence(make: Make) -> None:
    with pytest.raises(ConfigError, match="names no topic"):
        write(make(), batch_of(b"a", constants=Constants()))


def test_marks_alone_write_nothing(make: Make) -> None:
    writer = make()
    write(writer, mark_only(Position("{}", "{}")))
    assert writer.flush(seconds).rows_written == 0


def test_a_record_that_is_too_large_fails_by_itself(cluster: Any, make: Make) -> None:
    writer = make(max_request_size="1000")
    batch = batch_of(b"a", b"x" * 5000, b"c", constants=Constants("t", 0))
    write(writer, batch)
    flushed = writer.flush(seconds)
    assert (flushed.rows_written, flushed.rows_failed) == (2, 1)
    (failed,) = writer.failed_rows()
    assert (failed.raw, failed.row, failed.error.reason) == (batch, 1, "MSG_SIZE_TOO_LARGE")
    assert writer.failed_rows() == []
    assert [message.value() for message in consume(cluster.bootstrap, "t", 2)] == [b"a", b"c"]


@pytest.mark.parametrize("code", [KafkaError.TOPIC_EXCEPTION, KafkaError._UNKNOWN_TOPIC])
def test_a_name_that_no_topic_can_have_is_the_fault_of_the_record(code: int) -> None:
    assert isinstance(_trouble_of(KafkaError(code), "$t.x"), SchemaError)
    assert isinstance(_trouble_of(KafkaError(code), ".."), SchemaError)
    assert isinstance(_trouble_of(KafkaError(code), "t.x"), ConfigError)


def test_a_partition_that_the_client_has_not_heard_of_yet_is_waited_for(
    cluster: Any, make: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    writer, refusals = make(), [KafkaException(KafkaError(KafkaError._UNKNOWN_PARTITION))] * 2
    producer = writer.producer

    def produce(*given: Any) -> None:
        if refusals:
            raise refusals.pop()
        producer.produce(*given)

    class Stale:
        """The producer, whose first calls go by what it knew before."""

        def __getattr__(self, name: str) -> Any:
            return produce if name == "produce" else getattr(producer, name)

        def __len__(self) -> int:
            return len(producer)

    monkeypatch.setattr(writer, "_producer", Stale())
    write(writer, batch_of(b"a", b"b", partition=pa.array([3, 3], pa.int32())))
    assert writer.flush(seconds).rows_written == 2
    assert [message.partition() for message in consume(cluster.bootstrap, "t", 2)] == [3, 3]


def test_a_partition_that_does_not_come_is_told_and_tried_again_later(
    make: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("wherry.worker.endpoints.kafka_writer.PARTITION_WAIT_S", 0.5)
    writer = make()
    write(writer, batch_of(b"a", partition=pa.array([0], pa.int32())))
    writer.flush(seconds)
    with pytest.raises(TransientError, match=r"Partition 99 of topic t with partition count 4 is not present"):
        write(writer, batch_of(b"b", partition=pa.array([99], pa.int32())))


def test_one_time_stamp_of_all_rows_takes_the_short_way(cluster: Any, make: Make) -> None:
    writer = make()
    write(writer, batch_of(b"a", b"b", constants=Constants("t", timestamp_ms=1_700_000_000_000)))
    writer.flush(seconds)
    stamps = [message.timestamp()[1] for message in consume(cluster.bootstrap, "t", 2)]
    assert stamps == [1_700_000_000_000] * 2


def test_a_full_queue_makes_the_writer_wait_and_loses_nothing(cluster: Any, make: Make) -> None:
    writer = make(queue_buffering_max_messages="10")
    expected = [str(number).encode() for number in range(200)]
    write(writer, batch_of(*expected, constants=Constants("t", 0)))
    writer.flush(seconds)
    assert [message.value() for message in consume(cluster.bootstrap, "t", 200)] == expected


def test_a_broker_that_is_away_fails_the_flush_in_time() -> None:
    writer = KafkaWriter(writer_config("c", 0, {}, {"bootstrap.servers": "127.0.0.1:1"}))
    write(writer, batch_of(b"a"))
    deadline = time.monotonic() + 1.0
    with pytest.raises(TransientError, match=r"\d+ records were not acknowledged"):
        writer.flush(lambda: deadline - time.monotonic())
    begun = time.monotonic()
    writer.close()
    assert time.monotonic() - begun < 60.0


def test_a_record_that_no_broker_took_in_time_ends_the_writing() -> None:
    config = {"producer.override.delivery.timeout.ms": "300", "producer.override.linger.ms": "0"}
    writer = KafkaWriter(writer_config("c", 0, config, {"bootstrap.servers": "127.0.0.1:1"}))
    write(writer, batch_of(b"a", b"b"))
    with pytest.raises(TransientError, match="Writing to Kafka failed"):
        writer.flush(seconds)
    assert writer.fatal_error.code() == KafkaError._MSG_TIMED_OUT
    writer.close()


def test_a_writer_whose_brokers_are_away_is_not_ready_and_holds_nobody_up(both_ways: str) -> None:
    config = {"producer.override.batch.size": "1000", "producer.override.acks": "all"}
    writer = KafkaWriter(writer_config("c", 0, config, {"bootstrap.servers": "127.0.0.1:1"}))
    assert writer.ready(0.01)
    begun = time.monotonic()
    write(writer, batch_of(*[b"x" * 100] * 5000))
    write(writer, batch_of(*[b"x" * 100] * 500, partition=pa.array([0] * 500, pa.int32())))
    assert time.monotonic() - begun < 30.0
    assert writer.ready(0.01) == (both_ways == "python")
    assert len(writer.producer) == 5500
    writer.close()


def test_what_is_dropped_at_the_end_is_no_failure() -> None:
    writer = KafkaWriter(writer_config("c", 0, {}, {"bootstrap.servers": "127.0.0.1:1"}))
    write(writer, batch_of(b"a"))
    writer.close()
    assert (writer.fatal_error, writer.failed_rows()) == (None, [])


def test_slices_of_a_batch_go_out_as_they_are(cluster: Any, make: Make) -> None:
    values = [b"0", None, b"", b"333", None, b"55555", b"6", b"", b"8", None, b"10"]
    keys = [None, b"k1", b"", None, b"k4", None, b"k6", b"k7", b"", None, b"k10"]
    whole = batch_of(*values, key=pa.array(keys, pa.binary()), constants=Constants("t", timestamp_ms=7))
    writer = make()
    for start, rows in ((0, 3), (3, 7), (10, 1)):
        write(writer, whole.slice(start, rows))
    writer.flush(seconds)
    found = {(message.key(), message.value()) for message in consume(cluster.bootstrap, "t", len(values))}
    assert found == set(zip(keys, values, strict=True))


def test_the_helper_writes_where_it_is_built(make: Make, both_ways: str) -> None:
    assert (make()._native is not None) == (both_ways == "native")
