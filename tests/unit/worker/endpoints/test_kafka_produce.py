"""Handing records to producers by the compiled helper: what failed, and producers it keeps away from."""

from __future__ import annotations

import ctypes
import threading
import time

import pyarrow as pa
import pytest
from confluent_kafka import KafkaError, Producer

from wherry.worker.endpoints import kafka_produce
from wherry.worker.endpoints.kafka_native import handle_of, librdkafka
from wherry.worker.endpoints.kafka_produce import Failure, NativeProducer, Rows

pytestmark = pytest.mark.usefixtures("helper")

PRODUCE = 0  # the protocol's number of the request
REQUESTS_MAX = 1_000
AWAY = {"bootstrap.servers": "127.0.0.1:1", "log_level": 0}


def opened(**settings: object) -> tuple[Producer, NativeProducer]:
    values = {**AWAY, **settings}
    producer = Producer({**values, **kafka_produce.plugin(AWAY)})
    found = kafka_produce.open_producer(producer)
    assert found is not None
    return producer, found


def rows_of(*values: bytes | None, keys: list[bytes | None] | None = None) -> Rows:
    return Rows("t", pa.array(values, pa.binary()), None if keys is None else pa.array(keys, pa.binary()), 0)


def test_records_that_failed_are_told_with_all_they_had() -> None:
    producer, native = opened(**{"message.timeout.ms": 200, "linger.ms": 0})
    assert native.produce(rows_of(b"a", None, b"", keys=[None, b"k", b""]), 0, 0.05) == (3, 0)
    assert producer.flush(60) == 0
    code = KafkaError._MSG_TIMED_OUT
    assert native.failed() == 3
    assert sorted(native.failures(), key=repr) == sorted(
        [Failure(code, "t", b"a", None), Failure(code, "t", None, b"k"), Failure(code, "t", b"", b"")], key=repr
    )
    assert (native.failed(), list(native.failures())) == (0, [])


def test_of_a_flood_of_failures_only_the_first_are_kept_and_all_are_counted() -> None:
    producer, native = opened(**{"message.timeout.ms": 200, "linger.ms": 0})
    assert native.produce(rows_of(*[b"x"] * 2500), 0, 0.05) == (2500, 0)
    assert producer.flush(60) == 0
    assert native.failed() == 2500
    assert len(list(native.failures())) == 1000


def refuse(producer: Producer, code: int) -> None:
    """Has the broker inside the producer answer whatever is sent from now on with this error."""
    path = librdkafka()
    assert path is not None
    library = ctypes.CDLL(path)
    library.rd_kafka_handle_mock_cluster.restype = ctypes.c_void_p
    cluster = ctypes.c_void_p(library.rd_kafka_handle_mock_cluster(ctypes.c_void_p(handle_of(producer))))
    request, errors = ctypes.c_int16(PRODUCE), (ctypes.c_int * REQUESTS_MAX)(*[code] * REQUESTS_MAX)
    library.rd_kafka_mock_clear_request_errors(cluster, request)
    library.rd_kafka_mock_push_request_errors_array(cluster, request, ctypes.c_size_t(REQUESTS_MAX), errors)


def test_in_a_flood_of_failures_the_first_of_each_reason_is_kept() -> None:
    """What says that nothing more is taken must not be counted among the records that were too large."""
    producer, native = opened(**{"bootstrap.servers": "none", "test.mock.num.brokers": 1, "linger.ms": 50})
    producer.list_topics(timeout=60)
    for code, rows in ((KafkaError.MSG_SIZE_TOO_LARGE, 1500), (KafkaError.TOPIC_AUTHORIZATION_FAILED, 5)):
        refuse(producer, code)
        assert native.produce(rows_of(*[b"x"] * rows), 0, 0.05) == (rows, 0)
        assert producer.flush(60) == 0
    assert native.failed() == 1505
    codes = [failure.code for failure in native.failures()]
    assert codes == [KafkaError.MSG_SIZE_TOO_LARGE] * 1000 + [KafkaError.TOPIC_AUTHORIZATION_FAILED]


def test_a_full_queue_tells_where_to_go_on() -> None:
    producer, native = opened(**{"queue.buffering.max.messages": 10})
    assert native.produce(rows_of(*[b"x"] * 25), 4, 0.05) == (14, KafkaError._QUEUE_FULL)
    # What was refused at once is told by the call, and by nothing else.
    assert native.failed() == 0
    producer.purge()
    assert producer.flush(60) == 0
    assert native.failed() == 0


def test_no_more_is_handed_over_than_can_be_under_way() -> None:
    producer, native = opened(**{"batch.size": 1000, "enable.idempotence": True})
    native.bound({"batch.size": 1000, "enable.idempotence": True})
    rows = rows_of(*[b"x" * 84] * 100)
    begun = time.monotonic()
    # A row counts for 100 bytes, and four batches may be under way.
    assert native.produce(rows, 0, 0.05) == (40, KafkaError._QUEUE_FULL)
    assert time.monotonic() - begun >= 0.05
    assert not native.room(0.01)
    producer.purge()
    assert producer.flush(60) == 0
    assert native.room(0.01)
    assert native.produce(rows, 40, 0.05)[0] == 80
    producer.purge()
    assert producer.flush(60) == 0


def test_rows_that_python_hands_over_count_as_well() -> None:
    producer, native = opened()
    native.bound({"batch.size": 1000, "enable.idempotence": True})
    for _ in range(40):
        producer.produce("t", b"x" * 84)
    assert not native.room(0.01)
    producer.purge()
    assert producer.flush(60) == 0
    assert native.room(0.01)


def test_who_waits_for_room_goes_on_when_there_is_some() -> None:
    producer, native = opened()
    native.bound({"batch.size": 1000, "enable.idempotence": True})
    rows = rows_of(*[b"x" * 84] * 60)
    handed_over = threading.Event()

    def purge() -> None:
        while not handed_over.wait(0.1):
            producer.purge()

    purging = threading.Thread(target=purge)
    purging.start()
    try:
        assert native.produce(rows, 0, 60.0) == (60, 0)
    finally:
        handed_over.set()
        purging.join()
    producer.purge()
    assert producer.flush(60) == 0


def test_a_producer_without_the_plugin_is_left_alone() -> None:
    assert kafka_produce.open_producer(Producer(AWAY)) is None
    assert kafka_produce.open_producer(object()) is None


def test_the_settings_of_a_producer_with_plugins_of_its_own_are_left_alone() -> None:
    assert kafka_produce.plugin({"plugin.library.paths": "other"}) == {}


def test_a_producer_that_is_gone_is_forgotten() -> None:
    for _ in range(20):
        producer, native = opened()
        native.produce(rows_of(b"a"), 0, 0.05)
        producer.purge()
        producer.flush(1)
        del producer, native


@pytest.mark.parametrize(
    "rows",
    [
        Rows("t\0u", pa.array([b"a"], pa.binary()), None, 0),
        Rows("t", pa.array([b"a"], pa.large_binary()), None, 0),
        Rows("t", pa.array([b"a"], pa.binary()), pa.array(["k"]), 0),
    ],
)
def test_rows_laid_out_in_another_way_are_not_taken(rows: Rows) -> None:
    assert not kafka_produce.takes(rows)
