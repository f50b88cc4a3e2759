"""Java client settings become librdkafka's; what is made of them is given to real (unconnected) clients."""

from __future__ import annotations

import logging

import pytest
from confluent_kafka import Consumer, Producer
from confluent_kafka.admin import AdminClient

from wherry.contract.errors import ConfigError
from wherry.coordinator.config.clients import settings, translate, warn_ignored

WORKER = {"bootstrap.servers": "127.0.0.1:1"}
PLAIN = 'org.apache.kafka.common.security.plain.PlainLoginModule required username="u\\"x" password="p;=";'


def test_the_frameworks_defaults_hold_unless_the_worker_or_the_connector_says_otherwise():
    worker = {**WORKER, "producer.linger.ms": "5", "producer.batch.size": "1", "producer.override.acks": "0"}
    connector = {"producer.override.batch.size": "2", "producer.override.acks": "1", "linger.ms": "9"}
    found = settings("producer", worker=worker, connector=connector).config
    assert (found["linger.ms"], found["batch.size"], found["acks"]) == ("5", "2", "1")
    assert found["delivery.timeout.ms"] == "2147483647"
    assert settings("producer", worker=worker).config["acks"] == "all"


def test_a_key_goes_to_the_partition_that_a_java_producer_would_choose():
    assert settings("producer", worker=WORKER).config["partitioner"] == "murmur2_random"


def test_the_admin_client_inherits_unprefixed_settings_and_the_others_do_not():
    worker = {**WORKER, "security.protocol": "SASL_SSL", "sasl.mechanism": "PLAIN", "sasl.jaas.config": PLAIN}
    admin = settings("admin", worker=worker).config
    assert (admin["security.protocol"], admin["sasl.username"], admin["sasl.password"]) == ("SASL_SSL", 'u"x', "p;=")
    assert "security.protocol" not in settings("consumer", worker=worker).config


@pytest.mark.parametrize(
    ("java", "native"),
    [
        ({"fetch.max.wait.ms": "5"}, {"fetch.wait.max.ms": "5"}),
        ({"buffer.memory": "33554432"}, {"queue.buffering.max.kbytes": "32768"}),
        ({"max.request.size": "100"}, {"message.max.bytes": "100"}),
        ({"ssl.endpoint.identification.algorithm": ""}, {"ssl.endpoint.identification.algorithm": "none"}),
        ({"ssl.truststore.type": "PEM", "ssl.truststore.location": "/x"}, {"ssl.ca.location": "/x"}),
        ({"ssl.keystore.location": "/x.p12", "ssl.keystore.type": "PKCS12"}, {"ssl.keystore.location": "/x.p12"}),
        ({"ssl.keystore.location": "/x.pem"}, {"ssl.certificate.location": "/x.pem", "ssl.key.location": "/x.pem"}),
        ({"send.buffer.bytes": "-1"}, {}),
        ({"key.serializer": "x", "metric.reporters": "y", "max.block.ms": "1"}, {}),
    ],
)
def test_a_setting_is_translated(java, native):
    found = translate("producer", java)
    assert (found.config, found.ignored) == (native, ())


def test_what_has_no_counterpart_is_named_with_the_reason(caplog):
    found = translate("consumer", {"max.poll.records": "10", "foo": "1"})
    assert found.ignored == ("max.poll.records", "foo")
    with caplog.at_level(logging.WARNING):
        warn_ignored("Worker", found)
    assert "max.poll.records is ignored: batches are sized by bytes here" in caplog.text
    assert "foo is ignored: librdkafka has no counterpart" in caplog.text


@pytest.mark.parametrize(
    ("java", "message"),
    [
        ({"ssl.truststore.location": "/x.jks"}, r"ssl\.truststore\.location=/x\.jks is a Java key store"),
        ({"ssl.keystore.location": "/x.jks"}, r"set ssl\.keystore\.type=PEM"),
        ({"sasl.jaas.config": "x.MyLoginModule required;"}, "login module that is Java code"),
        ({"sasl.jaas.config": "x.PlainLoginModule required;"}, "must hold username and password"),
        ({"partitioner.class": "x.Mine"}, r"partitioner\.class=x\.Mine is a Java class"),
        ({"buffer.memory": "lots"}, "Not a number of type LONG"),
    ],
)
def test_what_must_not_be_ignored_is_refused(java, message):
    with pytest.raises(ConfigError, match=message):
        translate("producer", java)


def test_librdkafka_takes_what_is_made_of_every_setting():
    common = {**WORKER, "client.id": "x", "reconnect.backoff.ms": "50", "retry.backoff.max.ms": "1000"}
    producer = {"linger.ms": "5", "compression.type": "zstd", "compression.zstd.level": "3", "retries": "2147483647"}
    consumer = {"fetch.min.bytes": "1", "isolation.level": "read_committed", "max.partition.fetch.bytes": "1048576"}
    worker = {
        **common,
        **{f"producer.{key}": value for key, value in {**common, **producer, "request.timeout.ms": "30000"}.items()},
        **{f"consumer.{key}": value for key, value in {**common, **consumer}.items()},
    }
    Producer(dict(settings("producer", worker=worker).config))
    Consumer({**settings("consumer", worker=worker).config, "group.id": "g"}).close()
    AdminClient(dict(settings("admin", worker=worker).config))
