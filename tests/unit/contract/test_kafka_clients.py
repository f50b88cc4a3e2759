"""Java client settings become librdkafka's; what is made of them is given to real (unconnected) clients."""

from __future__ import annotations

import pytest
from confluent_kafka import Consumer, Producer
from confluent_kafka.admin import AdminClient

from wherry.contract.errors import ConfigError
from wherry.contract.kafka_clients import ClientKind, resolve, translate

WORKER = {"bootstrap.servers": "127.0.0.1:1"}
PLAIN = 'org.apache.kafka.common.security.plain.PlainLoginModule required username="u\\"x" password="p;=";'
OAUTH = "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginModule required"


def test_the_frameworks_defaults_hold_unless_the_worker_or_the_connector_says_otherwise() -> None:
    worker = {**WORKER, "producer.linger.ms": "5", "producer.batch.size": "1", "producer.override.acks": "0"}
    connector = {"producer.override.batch.size": "2", "producer.override.acks": "1", "linger.ms": "9"}
    defaults = {"acks": "all", "linger.ms": "7", "retries": "3"}
    found = resolve("producer", worker=worker, connector=connector, defaults=defaults).values
    assert (found["linger.ms"], found["batch.size"], found["acks"], found["retries"]) == ("5", "2", "1", "3")
    assert resolve("producer", worker=worker, defaults=defaults).values["acks"] == "all"


def test_a_broker_that_is_back_is_found_as_soon_as_by_java() -> None:
    found = resolve("consumer", worker=WORKER).values
    assert (found["reconnect.backoff.ms"], found["reconnect.backoff.max.ms"]) == ("50", "1000")


def test_without_brokers_the_sentence_says_what_to_set() -> None:
    with pytest.raises(ConfigError, match=r"bootstrap\.servers is not set"):
        resolve("consumer", worker={})


def test_the_admin_client_inherits_unprefixed_settings_and_the_others_do_not() -> None:
    worker = {
        **WORKER, "security.protocol": "SASL_SSL", "sasl.mechanism": "PLAIN", "sasl.jaas.config": PLAIN,
        "group.id": "g", "ssl.truststore.type": "PEM", "ssl.truststore.location": "/ca",
    }  # fmt: skip
    admin = resolve("admin", worker=worker).values
    assert (admin["security.protocol"], admin["sasl.username"], admin["sasl.password"]) == ("SASL_SSL", 'u"x', "p;=")
    assert admin["ssl.ca.location"] == "/ca"
    assert "group.id" not in admin
    consumer = resolve("consumer", worker=worker).values
    assert not {"security.protocol", "ssl.ca.location", "group.id"} & consumer.keys()


@pytest.mark.parametrize(
    ("java", "native"),
    [
        ({"fetch.max.wait.ms": "5"}, {"fetch.wait.max.ms": "5"}),
        ({"buffer.memory": "33554432"}, {"queue.buffering.max.kbytes": "32768"}),
        ({"max.request.size": "100"}, {"message.max.bytes": "100"}),
        ({"linger.ms": " 5 "}, {"linger.ms": "5"}),
        ({"ssl.endpoint.identification.algorithm": ""}, {"ssl.endpoint.identification.algorithm": "none"}),
        ({"ssl.endpoint.identification.algorithm": "HTTPS"}, {"ssl.endpoint.identification.algorithm": "https"}),
        ({"ssl.truststore.type": "PEM", "ssl.truststore.location": "/x"}, {"ssl.ca.location": "/x"}),
        ({"ssl.truststore.location": "/x.crt", "ssl.truststore.password": "p"}, {"ssl.ca.location": "/x.crt"}),
        ({"ssl.keystore.location": "/x.p12", "ssl.keystore.type": "PKCS12"}, {"ssl.keystore.location": "/x.p12"}),
        ({"ssl.keystore.location": "/x.pem"}, {"ssl.certificate.location": "/x.pem", "ssl.key.location": "/x.pem"}),
        ({"send.buffer.bytes": "-1"}, {}),
        ({"key.serializer": "x", "metric.reporters": "y", "max.block.ms": "1"}, {}),
        ({"partitioner.class": "org.apache.kafka.clients.producer.RoundRobinPartitioner"}, {"partitioner": "random"}),
        ({"partitioner.class": ""}, {}),
        ({"partitioner.ignore.keys": "true"}, {"partitioner": "random"}),
        ({"partitioner.ignore.keys": "false", "partitioner.adaptive.partitioning.enable": "true"}, {}),
        ({"socket.connection.setup.timeout.max.ms": "30000"}, {}),
        ({"queue.buffering.max.ms": "3"}, {"queue.buffering.max.ms": "3"}),
    ],
)
def test_a_setting_is_translated(java: dict[str, str], native: dict[str, str]) -> None:
    found = translate("producer", java)
    assert (found.values, found.ignored) == (native, ())


def test_only_the_level_of_the_codec_in_use_counts_and_within_librdkafkas_bounds() -> None:
    levels = {"compression.gzip.level": "9", "compression.zstd.level": "22"}
    assert translate("producer", {**levels, "compression.type": "zstd"}).values["compression.level"] == "12"
    assert translate("producer", {**levels, "compression.type": "gzip"}).values["compression.level"] == "9"
    assert "compression.level" not in translate("producer", {**levels, "compression.type": "lz4"}).values


def test_no_reset_is_an_error_to_librdkafka() -> None:
    assert translate("consumer", {"auto.offset.reset": "none"}).values == {"auto.offset.reset": "error"}
    assert translate("consumer", {"auto.offset.reset": "latest"}).values == {"auto.offset.reset": "latest"}


def test_the_leases_own_affairs_are_left_out_in_silence() -> None:
    java = {"enable.auto.commit": "true", "session.timeout.ms": "1", "group.instance.id": "x", "group.protocol": "y"}
    found = translate("consumer", java)
    assert (found.values, found.ignored) == ({}, ())


def test_another_clients_setting_is_named() -> None:
    assert translate("consumer", {"acks": "1"}).ignored == ("acks",)


def test_what_has_no_counterpart_is_named_with_the_reason() -> None:
    found = translate("consumer", {"max.poll.records": "10", "foo": "1"})
    assert found.ignored == ("max.poll.records", "foo")
    assert found.warnings() == [
        "the client setting max.poll.records is ignored: batches are sized by bytes here, under load only",
        "the client setting foo is ignored: librdkafka has no counterpart",
    ]


@pytest.mark.parametrize(
    ("line", "native"),
    [
        (PLAIN, {"sasl.username": 'u"x', "sasl.password": "p;="}),
        ("a.ScramLoginModule required username=me password='p w';", {"sasl.username": "me", "sasl.password": "p w"}),
        (
            f'{OAUTH} clientId="i" clientSecret="s" scope="all";',
            {
                "sasl.oauthbearer.client.id": "i",
                "sasl.oauthbearer.client.secret": "s",
                "sasl.oauthbearer.scope": "all",
                "sasl.oauthbearer.method": "oidc",
            },
        ),
        (f"{OAUTH};", {}),
    ],
)
def test_credentials_are_taken_out_of_the_jaas_line(line: str, native: dict[str, str]) -> None:
    assert translate("admin", {"sasl.jaas.config": line}).values == native


def test_oauth_credentials_in_keys_of_their_own_are_used_too() -> None:
    prefix = "sasl.oauthbearer.client.credentials.client."
    found = translate("admin", {f"{prefix}id": "i", f"{prefix}secret": "s"}).values
    assert found == {
        "sasl.oauthbearer.client.id": "i", "sasl.oauthbearer.client.secret": "s", "sasl.oauthbearer.method": "oidc",
    }  # fmt: skip


@pytest.mark.parametrize(
    ("java", "message"),
    [
        ({"ssl.truststore.location": "/x.jks"}, r"ssl\.truststore\.location=/x\.jks is a Java key store"),
        ({"ssl.truststore.location": "/x.jks"}, r"keytool -exportcert -rfc.*set ssl\.truststore\.type=PEM"),
        ({"ssl.keystore.location": "/x.jks"}, r"-deststoretype PKCS12.*ssl\.keystore\.type=PEM"),
        ({"sasl.jaas.config": "x.MyLoginModule required;"}, "login module that is Java code"),
        ({"sasl.jaas.config": "nothing"}, "login module that is Java code"),
        ({"sasl.jaas.config": "x.PlainLoginModule required;"}, "must hold username and password"),
        ({"partitioner.class": "x.Mine"}, r"partitioner\.class=x\.Mine is a Java class"),
        ({"buffer.memory": "lots"}, "Not a number of type LONG"),
        ({"compression.type": "gzip", "compression.gzip.level": "high"}, r"compression\.gzip\.level: Not a number"),
    ],
)
def test_what_must_not_be_ignored_is_refused_with_a_remedy(java: dict[str, str], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        translate("producer", java)


def test_librdkafka_takes_what_is_made_of_every_setting() -> None:
    common = {
        **WORKER, "client.id": "x", "retry.backoff.max.ms": "1000", "socket.connection.setup.timeout.ms": "10000",
        "metadata.recovery.strategy": "rebootstrap", "metadata.recovery.rebootstrap.trigger.ms": "300000",
    }  # fmt: skip
    own: dict[ClientKind, dict[str, str]] = {
        "producer": {
            "linger.ms": "5", "compression.type": "zstd", "compression.zstd.level": "3", "retries": "2147483647",
            "request.timeout.ms": "30000", "max.request.size": "2000000", "buffer.memory": "33554432",
        },
        "consumer": {
            "fetch.min.bytes": "1", "isolation.level": "read_committed", "max.partition.fetch.bytes": "1048576",
            "auto.offset.reset": "none", "receive.buffer.bytes": "65536",
        },
        "admin": {},
    }  # fmt: skip
    worker = dict(WORKER)
    for kind, keys in own.items():
        worker |= {f"{kind}.{key}": value for key, value in {**common, **keys}.items()}
    Producer(dict(resolve("producer", worker=worker).values))
    Consumer({**resolve("consumer", worker=worker).values, "group.id": "g"}).close()
    AdminClient(dict(resolve("admin", worker=worker).values))


def test_librdkafka_takes_oauth_settings() -> None:
    worker = {
        **WORKER, "security.protocol": "SASL_PLAINTEXT", "sasl.mechanism": "OAUTHBEARER",
        "sasl.jaas.config": f'{OAUTH} clientId="i" clientSecret="s";',
        "sasl.oauthbearer.token.endpoint.url": "http://127.0.0.1:1/token",
    }  # fmt: skip
    AdminClient(dict(resolve("admin", worker=worker).values))
