"""Reading topic partitions from a broker inside the process."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from wherry.contract.batch import Batch, Constants
from wherry.contract.errors import ConfigError, OffsetLostError
from wherry.contract.position import kafka_partition_json, kafka_position
from wherry.worker.endpoints.kafka_config import reader_config
from wherry.worker.endpoints.kafka_reader import KafkaReader

pytestmark = pytest.mark.usefixtures("both_ways")

Make = Callable[..., KafkaReader]


@pytest.fixture
def make(cluster: Any) -> Iterator[Make]:
    made: list[KafkaReader] = []

    def reader(*positions: tuple[str, int, int | None], **overrides: str) -> KafkaReader:
        config = {f"consumer.override.{key.replace('_', '.')}": value for key, value in overrides.items()}
        client = reader_config("c", 0, config, {"bootstrap.servers": cluster.bootstrap})
        made.append(KafkaReader(client, [kafka_position(*position) for position in positions]))
        return made[-1]

    yield reader
    for one in made:
        one.close()


def read(reader: KafkaReader, rows: int, timeout_s: float = 60.0) -> list[Batch]:
    batches, deadline = [], time.monotonic() + timeout_s
    while sum(batch.num_rows for batch in batches) < rows:
        assert time.monotonic() < deadline, "the records did not come"
        batch = reader.poll(0.1)
        if batch is not None:
            batches.append(batch)
    return batches


def catch_up(reader: KafkaReader) -> None:
    deadline = time.monotonic() + 60.0
    while not reader.caught_up:
        assert time.monotonic() < deadline
        reader.poll(0.1)


def values(batches: list[Batch]) -> list[bytes | None]:
    return [value for batch in batches for value in batch.value.to_pylist()]


def test_records_come_as_columns_with_a_mark_at_the_next_offset(cluster: Any, make: Make) -> None:
    cluster.produce("t", b"a", b"b", None)
    batches = read(make(("t", 0, 0)), 3)
    assert values(batches) == [b"a", b"b", None]
    assert batches[0].constants == Constants("t", 0, 0)
    assert batches[-1].marks[-1].position == kafka_position("t", 0, 3)
    assert batches[0].key is None
    assert batches[0].headers is None


def test_reading_starts_at_the_position_and_without_one_at_the_beginning(cluster: Any, make: Make) -> None:
    cluster.produce("t", b"a", b"b", b"c")
    assert values(read(make(("t", 0, 2)), 1)) == [b"c"]
    assert values(read(make(("t", 0, None)), 3)) == [b"a", b"b", b"c"]


def test_a_partition_never_read_is_read_as_soon_as_its_leader_is_known(cluster: Any, make: Make) -> None:
    """The client's own way takes half a second each time; one quick one of many proves ours on a busy machine too."""
    cluster.produce("t", b"a")

    def took_s() -> float:
        began = time.monotonic()
        read(make(("t", 0, None)), 1)
        return time.monotonic() - began

    assert any(took_s() < 0.4 for _ in range(50))


def test_without_a_position_and_a_reset_to_latest_only_new_records_come(cluster: Any, make: Make) -> None:
    cluster.produce("t", b"old")
    reader = make(("t", 0, None), auto_offset_reset="latest")
    catch_up(reader)
    cluster.produce("t", b"new")
    assert values(read(reader, 1)) == [b"new"]


def test_where_reading_begins_at_the_end_is_a_position_so_that_the_next_lease_leaves_nothing_out(
    cluster: Any, make: Make
) -> None:
    cluster.produce("t", b"old")
    batches: list[Batch] = []
    reader = make(("t", 0, None), auto_offset_reset="latest")
    deadline = time.monotonic() + 60.0
    while not (batches and reader.caught_up):
        assert time.monotonic() < deadline
        batches += filter(None, [reader.poll(0.1)])
    assert [(batch.num_rows, *(mark.position for mark in batch.marks)) for batch in batches] == [
        (0, kafka_position("t", 0, 1))
    ]
    reader.close()
    cluster.produce("t", b"in between")
    assert values(read(make(("t", 0, 1), auto_offset_reset="latest"), 1)) == [b"in between"]


def test_where_reading_begins_at_the_start_an_end_is_no_position(cluster: Any, make: Make) -> None:
    cluster.produce("t", b"a", partition=0)
    reader = make(("t", 0, None), ("t", 1, None))
    deadline, batches = time.monotonic() + 60.0, []
    while not reader.caught_up:
        assert time.monotonic() < deadline
        batches += filter(None, [reader.poll(0.1)])
    assert [mark.position for batch in batches for mark in batch.marks] == [kafka_position("t", 0, 1)]


def test_keys_headers_and_times_are_kept(cluster: Any, make: Make) -> None:
    cluster.produce("t", b"v", key=b"k", headers=[("h", b"1"), ("h", None)], timestamp=1234)
    (batch,) = read(make(("t", 0, 0)), 1)
    assert batch.key is not None
    assert batch.key.to_pylist() == [b"k"]
    assert [(pair["name"], pair["value"]) for pair in batch.headers[0].as_py()] == [("h", b"1"), ("h", None)]
    assert batch.stored("timestamp")[0].as_py().timestamp() == 1.234


def test_rows_of_several_partitions_know_where_they_come_from(cluster: Any, make: Make) -> None:
    cluster.produce("t", b"a", b"b", partition=0)
    cluster.produce("t", b"c", partition=1)
    batches = read(make(("t", 0, 0), ("t", 1, 0)), 3)
    told = {
        (partition, offset, value)
        for batch in batches
        for partition, offset, value in zip(
            batch.column("partition").to_pylist(),
            batch.column("offset").to_pylist(),
            batch.value.to_pylist(),
            strict=True,
        )
    }
    assert told == {(0, 0, b"a"), (0, 1, b"b"), (1, 0, b"c")}
    marks = {mark.position for batch in batches for mark in batch.marks}
    assert {kafka_position("t", 0, 2), kafka_position("t", 1, 1)} <= marks


def test_a_batch_is_of_one_topic(cluster: Any, make: Make) -> None:
    cluster.produce("t", b"a")
    cluster.produce("u", b"b")
    batches = read(make(("t", 0, 0), ("u", 0, 0)), 2)
    assert sorted((batch.constants.topic, *batch.value.to_pylist()) for batch in batches) == [("t", b"a"), ("u", b"b")]


def test_at_the_end_the_reader_is_caught_up_and_without_lag_until_more_comes(cluster: Any, make: Make) -> None:
    cluster.produce("t", b"a")
    reader = make(("t", 0, 0))
    assert not reader.caught_up
    catch_up(reader)
    assert reader.lag == 0
    cluster.produce("t", b"b")
    read(reader, 1)
    assert reader.poll(0) is None


def test_a_rewind_reads_again(cluster: Any, make: Make) -> None:
    cluster.produce("t", b"a", b"b", b"c")
    reader = make(("t", 0, 0))
    read(reader, 3)
    reader.rewind([kafka_position("t", 0, 1)])
    assert values(read(reader, 2)) == [b"b", b"c"]


def test_a_rewind_of_a_foreign_partition_is_refused(cluster: Any, make: Make) -> None:
    with pytest.raises(ConfigError, match="not among the partitions"):
        make(("t", 0, 0)).rewind([kafka_position("t", 1, 0)])


def test_a_paused_partition_rests_until_it_is_let_go(cluster: Any, make: Make) -> None:
    cluster.produce("t", b"a")
    reader = make(("t", 0, 0))
    read(reader, 1)
    reader.pause([kafka_partition_json("t", 0)])
    cluster.produce("t", b"b")
    assert reader.poll(1.0) is None
    reader.pause([])
    assert values(read(reader, 1)) == [b"b"]


def test_a_drained_reader_gives_nothing_more_and_is_finished(cluster: Any, make: Make) -> None:
    cluster.produce("t", b"a")
    reader = make(("t", 0, 0))
    reader.drain(1.0)
    assert reader.poll(0.5) is None
    assert reader.finished


def test_an_offset_that_is_gone_is_an_error_with_a_remedy_where_no_reset_is_allowed(cluster: Any, make: Make) -> None:
    cluster.produce("t", b"a")
    reader = make(("t", 0, 99), auto_offset_reset="none")
    with pytest.raises(OffsetLostError, match=r"topic t, partition 0 failed.*auto\.offset\.reset"):
        read(reader, 1)


def test_where_no_reset_is_allowed_a_partition_needs_a_position(cluster: Any, make: Make) -> None:
    with pytest.raises(OffsetLostError, match=r"no committed offset for .*auto\.offset\.reset=none"):
        make(("t", 0, None), auto_offset_reset="none")


def test_an_offset_that_is_gone_leads_to_the_earliest_record_with_a_warning(
    cluster: Any, make: Make, caplog: pytest.LogCaptureFixture
) -> None:
    cluster.produce("t", b"a", b"b")
    cluster.produce("t", b"c", partition=1)
    reader = make(("t", 0, 99), ("t", 1, 0))
    assert sorted(value or b"" for value in values(read(reader, 3))) == [b"a", b"b", b"c"]
    told = [record.getMessage() for record in caplog.records if "is gone" in record.getMessage()]
    assert len(told) == 1
    assert told[0].startswith("Offset 99 of topic t, partition 0 is gone: reading goes on at the earliest record")
    catch_up(reader)
    cluster.produce("t", b"d")
    assert read(reader, 1)[0].marks[-1].position == kafka_position("t", 0, 3)


def test_an_offset_that_is_gone_leads_to_the_latest_record_when_that_was_asked_for(cluster: Any, make: Make) -> None:
    cluster.produce("t", b"old")
    reader = make(("t", 0, 99), auto_offset_reset="latest")
    catch_up(reader)
    cluster.produce("t", b"new")
    assert values(read(reader, 1)) == [b"new"]


def read_ahead(cluster: Any, make: Make) -> tuple[KafkaReader, Batch]:
    """A reader that has handed on the rows of one topic while those of another wait, read as well."""
    cluster.produce("t", b"t0", b"t1", b"t2")
    cluster.produce("u", b"u0", b"u1", b"u2")
    reader = make(("t", 0, 0), ("u", 0, 0))
    # What comes together in one poll is the client's choice, so the rows of u are put back as if they had waited.
    batches = read(reader, 6)
    reader._ready.extend(batch for batch in batches if batch.constants.topic == "u")
    return reader, next(batch for batch in batches if batch.constants.topic == "t")


def test_a_rewind_of_one_partition_loses_no_row_of_another_that_had_been_read_ahead(cluster: Any, make: Make) -> None:
    reader, batch = read_ahead(cluster, make)
    first = str(batch.constants.topic)
    reader.rewind([kafka_position(first, 0, 1)])
    assert sorted(values(read(reader, 5))) == sorted(  # type: ignore[type-var]
        [f"{first}1".encode(), f"{first}2".encode(), *(b"u%d" % n if first == "t" else b"t%d" % n for n in range(3))]
    )
    catch_up(reader)


def test_a_rewind_of_the_rows_that_wait_reads_them_from_there(cluster: Any, make: Make) -> None:
    reader, batch = read_ahead(cluster, make)
    other = "u" if batch.constants.topic == "t" else "t"
    reader.rewind([kafka_position(other, 0, 2)])
    assert values(read(reader, 1)) == [f"{other}2".encode()]
    assert reader.poll(0.3) is None


def test_rows_of_a_paused_partition_that_had_been_read_ahead_wait_for_it(cluster: Any, make: Make) -> None:
    reader, batch = read_ahead(cluster, make)
    other = "u" if batch.constants.topic == "t" else "t"
    reader.pause([kafka_partition_json(other, 0)])
    assert reader.poll(0.5) is None
    assert not reader.caught_up
    reader.pause([])
    assert values(read(reader, 3)) == [f"{other}{n}".encode() for n in range(3)]


def test_rows_of_several_partitions_that_wait_are_told_apart(cluster: Any, make: Make) -> None:
    cluster.produce("t", b"t0")
    for number in range(3):
        cluster.produce("u", b"a%d" % number)
        cluster.produce("u", b"b%d" % number, partition=1)
    reader = make(("t", 0, 0), ("u", 0, 0), ("u", 1, 0))
    read_all = read(reader, 7)
    reader._ready.extend(batch for batch in read_all if batch.constants.topic == "u")
    batches = [batch for batch in read_all if batch.constants.topic == "t"]
    reader.pause([kafka_partition_json("u", 0)])
    batches += read(reader, 3)
    assert sorted(filter(None, values(batches))) == [b"b0", b"b1", b"b2", b"t0"]
    assert {mark.position for batch in batches for mark in batch.marks} >= {kafka_position("u", 1, 3)}
    reader.pause([])
    assert values(read(reader, 3)) == [b"a0", b"a1", b"a2"]


def test_a_rewind_leaves_a_paused_partition_paused(cluster: Any, make: Make) -> None:
    cluster.produce("t", b"a")
    cluster.produce("t", b"b", partition=1)
    reader = make(("t", 0, 0), ("t", 1, 0))
    read(reader, 2)
    reader.pause([kafka_partition_json("t", 0)])
    reader.rewind([kafka_position("t", 0, 0), kafka_position("t", 1, 0)])
    assert values(read(reader, 1)) == [b"b"]
    assert reader.poll(0.5) is None
    reader.pause([])
    assert values(read(reader, 1)) == [b"a"]


def test_a_poll_ends_in_time_when_nothing_comes(cluster: Any, make: Make) -> None:
    reader = make(("t", 0, 0))
    begun = time.monotonic()
    assert reader.poll(0.2) is None
    assert time.monotonic() - begun < 30.0


def test_a_partition_that_is_not_there_is_told_and_the_others_are_read(
    cluster: Any, make: Make, caplog: pytest.LogCaptureFixture
) -> None:
    """Taking such an error from a partition's queue ended the process where the helper read."""
    cluster.produce("t", b"a")
    reader, deadline = make(("t", 0, 0), ("t", 99, 7)), time.monotonic() + 60.0
    assert values(read(reader, 1)) == [b"a"]
    while "t [99]" not in caplog.text:
        assert time.monotonic() < deadline
        reader.poll(0.1)
    cluster.produce("t", b"b")
    assert values(read(reader, 1)) == [b"b"]
    assert not reader.caught_up


def test_a_broker_that_is_away_is_trouble_and_no_error() -> None:
    client = reader_config("c", 0, {}, {"bootstrap.servers": "127.0.0.1:1"})
    reader = KafkaReader(client, [kafka_position("t", 0, 0)])
    deadline = time.monotonic() + 60.0
    while not reader.trouble and time.monotonic() < deadline:
        assert reader.poll(0.1) is None
    assert "reconnecting" in reader.trouble
    reader.close()


def test_a_setting_librdkafka_refuses_is_a_config_error() -> None:
    client = reader_config("c", 0, {"consumer.override.fetch.min.bytes": "x"}, {"bootstrap.servers": "b:1"})
    with pytest.raises(ConfigError, match="Making the Kafka consumer failed"):
        KafkaReader(client, [])


def test_where_the_helper_can_not_take_part_python_reads_and_hears_of_errors(
    cluster: Any, make: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("wherry.worker.endpoints.kafka_reader.open_queues", lambda *given: None)
    cluster.produce("t", b"a")
    reader = make(("t", 0, 0))
    assert values(read(reader, 1)) == [b"a"]
    stranded = make(("t", 0, 0), bootstrap_servers="127.0.0.1:1")
    deadline = time.monotonic() + 60.0
    while not stranded.trouble:
        assert time.monotonic() < deadline
        stranded.poll(0.1)


def test_the_helper_reads_where_it_is_built(cluster: Any, make: Make, both_ways: str) -> None:
    assert (make(("t", 0, 0))._queues is not None) == (both_ways == "native")


def test_records_of_two_partitions_keep_their_order_and_need_no_keys_where_there_are_none(
    cluster: Any, make: Make
) -> None:
    cluster.produce("t", *[b"a%d" % number for number in range(700)], partition=0, key=b"k")
    cluster.produce("t", *[b"b%d" % number for number in range(700)], partition=1)
    reader = make(("t", 0, 0), ("t", 1, 0))
    time.sleep(1.0)  # so that both partitions have been fetched when they are first asked for
    batches = read(reader, 1400)
    alone = [batch for batch in batches if batch.constants.partition is not None]
    assert all((batch.key is not None) == (batch.constants.partition == 0) for batch in alone)
    found = values(batches)
    for letter in (b"a", b"b"):
        assert [value for value in found if value and value[:1] == letter] == [
            b"%b%d" % (letter, n) for n in range(700)
        ]


def test_many_records_with_headers_and_nulls_keep_them_apart(cluster: Any, make: Make) -> None:
    for number in range(20):
        headers = [(f"h{item}", None if item == 1 else b"%d" % number) for item in range(number % 4)]
        cluster.produce(
            "t", None if number % 3 == 0 else b"v%d" % number, key=b"" if number % 2 else None, headers=headers
        )
    rows = [row for batch in read(make(("t", 0, 0)), 20) for row in batch.records.to_pylist()]
    assert [row["value"] for row in rows] == [None if n % 3 == 0 else b"v%d" % n for n in range(20)]
    assert [row.get("key") for row in rows] == [b"" if n % 2 else None for n in range(20)]
    told = [[(pair["name"], pair["value"]) for pair in row.get("headers") or []] for row in rows]
    assert told == [[(f"h{i}", None if i == 1 else b"%d" % n) for i in range(n % 4)] for n in range(20)]
