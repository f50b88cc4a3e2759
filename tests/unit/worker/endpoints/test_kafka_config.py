"""What a lease demands of its Kafka clients, and where it yields to the user."""

from __future__ import annotations

import pytest
from confluent_kafka import Consumer, Producer

from wherry.contract.errors import ConfigError
from wherry.worker.endpoints.kafka_config import admin_config, reader_config, writer_config

WORKER = {"bootstrap.servers": "broker:9092"}


def test_a_connectors_override_wins_over_the_worker_and_that_over_the_default() -> None:
    worker = {**WORKER, "consumer.fetch.min.bytes": "7", "consumer.isolation.level": "read_committed"}
    config = {"consumer.override.isolation.level": "read_uncommitted"}
    values = reader_config("c", 1, config, worker).values
    assert values["fetch.min.bytes"] == "7"
    assert values["isolation.level"] == "read_uncommitted"
    assert values["group.id"] == "connect-c"
    assert values["client.id"] == "connector-consumer-c-1"


def test_the_lease_alone_decides_about_commits() -> None:
    values = reader_config("c", 0, {"consumer.override.enable.auto.commit": "true"}, WORKER).values
    assert values["enable.auto.commit"] is False


def test_a_sink_reads_what_kafka_connect_reads_unless_told_otherwise() -> None:
    assert reader_config("c", 0, {}, WORKER).values["isolation.level"] == "read_uncommitted"
    asked = reader_config("c", 0, {"consumer.override.isolation.level": "read_committed"}, WORKER)
    assert asked.values["isolation.level"] == "read_committed"


def test_a_lost_offset_leads_to_the_earliest_record_unless_another_reset_was_asked_for() -> None:
    assert reader_config("c", 0, {}, WORKER).values["auto.offset.reset"] == "earliest"
    asked = reader_config("c", 0, {"consumer.override.auto.offset.reset": "latest"}, WORKER)
    assert asked.values["auto.offset.reset"] == "latest"


def test_memory_of_a_consumer_is_bounded_and_may_be_set() -> None:
    assert int(reader_config("c", 0, {}, WORKER).values["queued.max.messages.kbytes"]) <= 32_768
    values = reader_config("c", 0, {"consumer.override.queued.max.messages.kbytes": "100"}, WORKER).values
    assert values["queued.max.messages.kbytes"] == "100"


def test_a_large_partition_fetch_raises_the_whole_fetch_with_it() -> None:
    values = reader_config("c", 0, {"consumer.override.max.partition.fetch.bytes": "50000000"}, WORKER).values
    assert int(values["fetch.max.bytes"]) >= 50_000_000


def test_a_producer_partitions_like_the_java_client_and_is_idempotent() -> None:
    values = writer_config("c", 0, {}, WORKER).values
    assert values["partitioner"] == "murmur2_random"
    assert values["enable.idempotence"] is True
    assert values["acks"] == "all"
    assert values["delivery.timeout.ms"] == 2_147_483_647


@pytest.mark.parametrize(
    "override", [{"acks": "1"}, {"acks": "0"}, {"max.in.flight.requests.per.connection": "10"}, {"retries": "0"}]
)
def test_idempotence_yields_to_a_setting_that_contradicts_it(override: dict[str, str]) -> None:
    config = {f"producer.override.{key}": value for key, value in override.items()}
    values = writer_config("c", 0, config, WORKER).values
    assert values["enable.idempotence"] is False
    Producer(dict(values))


def test_a_value_that_is_no_number_is_named() -> None:
    with pytest.raises(ConfigError, match=r"Invalid value many for configuration max\.in\.flight"):
        writer_config("c", 0, {"producer.override.max.in.flight.requests.per.connection": "many"}, WORKER)
    with pytest.raises(ConfigError, match=r"Invalid value much for configuration fetch\.max\.bytes"):
        reader_config("c", 0, {"consumer.override.fetch.max.bytes": "much"}, WORKER)


def test_a_dead_letter_queues_producer_has_a_name_of_its_own() -> None:
    values = writer_config("c", 2, {}, WORKER, client_name="connector-dlq-producer").values
    assert values["client.id"] == "connector-dlq-producer-c-2"


def test_what_is_ignored_is_handed_on() -> None:
    config = {"consumer.override.max.poll.records": "500", "consumer.override.my.own.thing": "1"}
    assert reader_config("c", 0, config, WORKER).ignored == ("max.poll.records", "my.own.thing")


def test_without_brokers_the_sentence_says_what_to_set() -> None:
    with pytest.raises(ConfigError, match=r"bootstrap\.servers is not set"):
        reader_config("c", 0, {}, {})


def test_the_admin_client_inherits_the_workers_own_security() -> None:
    values = admin_config("c", 0, {}, {**WORKER, "security.protocol": "SSL", "group.id": "g"}).values
    assert values["security.protocol"] == "SSL"
    assert values["client.id"] == "connector-adminclient-c-0"
    assert "group.id" not in values


def test_librdkafka_takes_the_defaults_of_a_lease() -> None:
    Producer(dict(writer_config("c", 0, {}, WORKER).values))
    Consumer(dict(reader_config("c", 0, {}, WORKER).values)).close()
