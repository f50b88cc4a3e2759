"""Java client settings as librdkafka's."""

from __future__ import annotations

import pytest

from wherry.contract.errors import ConfigError
from wherry.worker.endpoints.kafka_config import admin_config, reader_config, translate, writer_config

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


def test_a_lost_offset_is_an_error_unless_a_reset_was_asked_for() -> None:
    assert reader_config("c", 0, {}, WORKER).values["auto.offset.reset"] == "error"
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


@pytest.mark.parametrize(
    "override", [{"acks": "1"}, {"acks": "0"}, {"max.in.flight.requests.per.connection": "10"}, {"retries": "0"}]
)
def test_idempotence_yields_to_a_setting_that_contradicts_it(override: dict[str, str]) -> None:
    config = {f"producer.override.{key}": value for key, value in override.items()}
    assert writer_config("c", 0, config, WORKER).values["enable.idempotence"] is False


def test_settings_are_renamed() -> None:
    values, unmapped = translate({"fetch.max.wait.ms": "5", "buffer.memory": "33554432", "max.request.size": "9"})
    assert values == {"fetch.wait.max.ms": "5", "queue.buffering.max.kbytes": 32_768, "message.max.bytes": "9"}
    assert unmapped == ()


def test_settings_without_effect_are_left_out_and_unknown_ones_are_named() -> None:
    values, unmapped = translate({"max.poll.records": "500", "key.serializer": "x", "my.own.thing": "1"})
    assert values == {}
    assert unmapped == ("my.own.thing",)


def test_credentials_are_taken_out_of_the_jaas_line() -> None:
    line = 'org.apache.kafka.common.security.plain.PlainLoginModule required username="me" password="p\\"w";'
    values, _ = translate({"sasl.jaas.config": line, "sasl.mechanism": "PLAIN"})
    assert values == {"sasl.username": "me", "sasl.password": 'p"w', "sasl.mechanism": "PLAIN"}


@pytest.mark.parametrize(
    ("settings", "sentence"),
    [
        ({"sasl.jaas.config": "nothing"}, "holds no username and password"),
        ({"ssl.truststore.location": "/x/trust.jks"}, "only PEM is understood"),
        ({"ssl.keystore.location": "/x/key.jks"}, "only PKCS12 and PEM"),
        ({"buffer.memory": "much"}, "Not a number"),
    ],
)
def test_what_can_not_be_understood_is_refused_with_a_remedy(settings: dict[str, str], sentence: str) -> None:
    with pytest.raises(ConfigError, match=sentence):
        translate(settings)


def test_a_pem_trust_store_and_no_host_name_check_are_translated() -> None:
    values, _ = translate({
        "ssl.truststore.location": "/x/ca", "ssl.truststore.type": "PEM", "ssl.endpoint.identification.algorithm": "",
    })  # fmt: skip
    assert values == {"ssl.ca.location": "/x/ca", "ssl.endpoint.identification.algorithm": "none"}


def test_without_brokers_the_sentence_says_what_to_set() -> None:
    with pytest.raises(ConfigError, match=r"bootstrap\.servers is not set"):
        reader_config("c", 0, {}, {})


def test_the_admin_client_inherits_the_workers_own_security() -> None:
    values = admin_config("c", 0, {}, {**WORKER, "security.protocol": "SSL", "group.id": "g"}).values
    assert values["security.protocol"] == "SSL"
    assert "group.id" not in values
