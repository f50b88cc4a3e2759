"""Java client settings become librdkafka's; what is made of them is given to real (unconnected) clients."""

from __future__ import annotations

import json
from pathlib import Path
from typing import get_args

import pytest
from confluent_kafka import Consumer, Producer
from confluent_kafka.admin import AdminClient

from wherry.contract.errors import ConfigError
from wherry.contract.kafka_client_keys import CLIENT_KEYS, Fate
from wherry.contract.kafka_clients import ClientKind, resolve, translate

STORES = Path(__file__).parents[2] / "cases" / "keystores"
JAVA_KEYS = json.loads((STORES.parent / "java_keys.json").read_text())
WORKER = {"bootstrap.servers": "127.0.0.1:1"}
LOGIN = {"security.protocol": "SASL_PLAINTEXT"}
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
        ({"buffer.memory": "33554432"}, {"queue.buffering.max.kbytes": "32768"}),
        ({"max.request.size": "100"}, {"message.max.bytes": "100"}),
        ({"linger.ms": " 5 "}, {"linger.ms": "5"}),
        ({"ssl.endpoint.identification.algorithm": ""}, {"ssl.endpoint.identification.algorithm": "none"}),
        ({"ssl.endpoint.identification.algorithm": "HTTPS"}, {"ssl.endpoint.identification.algorithm": "https"}),
        ({"ssl.truststore.type": "PEM", "ssl.truststore.location": "/x"}, {"ssl.ca.location": "/x"}),
        ({"ssl.truststore.location": "/x.crt", "ssl.truststore.password": "p"}, {"ssl.ca.location": "/x.crt"}),
        ({"socket.connection.setup.timeout.ms": "5"}, {"socket.connection.setup.timeout.ms": "1000"}),
        ({"ssl.enabled.protocols": "TLSv1.3", "metrics.context.a": "b", "auto.include.jmx.reporter": "true"}, {}),
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

    assert found.unused == tuple(java)
    assert found.remarks()[0] == (
        "the client setting enable.auto.commit has no meaning here: the coordinator commits what is written"
    )


@pytest.mark.parametrize(
    ("java", "native"),
    [
        ({"fetch.max.wait.ms": "5"}, {"fetch.wait.max.ms": "5"}),
        ({"request.timeout.ms": "9000"}, {"socket.timeout.ms": "9000"}),
        ({"request.timeout.ms": "600", "fetch.max.wait.ms": "2000"},
         {"socket.timeout.ms": "3000", "fetch.wait.max.ms": "2000"}),
        ({"request.timeout.ms": "900000"}, {"socket.timeout.ms": "300000"}),
    ],
)  # fmt: skip
def test_a_setting_of_a_consumer_is_translated(java: dict[str, str], native: dict[str, str]) -> None:
    assert translate("consumer", java).values == native


@pytest.mark.parametrize(
    ("suites", "native"),
    [
        ("TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256", "ECDHE-RSA-AES128-GCM-SHA256"),
        ("TLS_RSA_WITH_AES_256_CBC_SHA, TLS_AES_128_GCM_SHA256", "AES256-SHA"),
        ("TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256", "ECDHE-ECDSA-CHACHA20-POLY1305"),
        ("TLS_DHE_RSA_WITH_AES_256_GCM_SHA384", "DHE-RSA-AES256-GCM-SHA384"),
    ],
)
def test_cipher_suites_get_openssls_names(suites: str, native: str) -> None:
    found = translate("admin", {"ssl.cipher.suites": suites}).values
    assert found == {"ssl.cipher.suites": native}
    AdminClient({**WORKER, "security.protocol": "SSL", **found})


def test_tls_1_3_suites_are_always_on_and_leave_the_list_alone() -> None:
    assert translate("admin", {"ssl.cipher.suites": "TLS_AES_256_GCM_SHA384"}).values == {}


@pytest.mark.parametrize(("key", "trust"), [("key.jks", "trust.jks"), ("key.p12", "trust.p12")])
def test_java_key_stores_reach_librdkafka_as_pem_in_memory(key: str, trust: str) -> None:
    java = {
        "security.protocol": "SSL", "ssl.keystore.location": f"{STORES}/{key}", "ssl.keystore.password": "storepass",
        "ssl.truststore.location": f"{STORES}/{trust}", "ssl.truststore.password": "trustpass",
    }  # fmt: skip
    if key == "key.jks":
        java["ssl.key.password"] = "keypass"
    found = translate("admin", java).values
    assert str(found["ssl.ca.pem"]).count("BEGIN CERTIFICATE") == 2
    assert not {"ssl.key.password", "ssl.keystore.password", "ssl.keystore.location"} & found.keys()
    AdminClient({**WORKER, **found})


def test_a_key_in_the_file_itself_is_taken_with_its_password_though_it_is_on_one_line() -> None:
    pair = translate("admin", {"ssl.keystore.location": f"{STORES}/key.p12", "ssl.keystore.password": "storepass"})
    java = {
        "ssl.keystore.key": str(pair.values["ssl.key.pem"]).replace("\n", " "),
        "ssl.keystore.certificate.chain": str(pair.values["ssl.certificate.pem"]).replace("\n", " "),
        "ssl.truststore.certificates": (STORES / "root.pem").read_text().replace("\n", " "),
    }
    found = translate("admin", java).values
    assert found["ssl.key.pem"] == pair.values["ssl.key.pem"]
    AdminClient({**WORKER, "security.protocol": "SSL", **found})


def test_another_clients_setting_is_named() -> None:
    found = translate("consumer", {"acks": "1", "isolation.levle": "1"})
    assert found.ignored == ("acks", "isolation.levle")
    assert [line.partition(": ")[2] for line in found.warnings()] == [
        "it is a setting of a producer, not of a consumer",
        "no consumer has it; did you mean isolation.level?",
    ]


@pytest.mark.parametrize("kind", get_args(ClientKind))
def test_the_table_holds_every_key_of_javas_client_and_no_other(kind: ClientKind) -> None:
    assert set(CLIENT_KEYS[kind]) == set(JAVA_KEYS[kind])
    assert all(key.native or key.note for key in CLIENT_KEYS[kind].values())


@pytest.mark.parametrize("kind", get_args(ClientKind))
def test_every_key_has_the_effect_that_the_table_says(kind: ClientKind) -> None:
    """With a value that means something, a key reaches librdkafka, is told, or is refused: none vanishes."""
    samples = {
        "ssl.truststore.location": "/x.pem", "ssl.keystore.location": "/x.pem", "partitioner.ignore.keys": "true",
        "partitioner.class": "x.RoundRobinPartitioner", "sasl.jaas.config": PLAIN, "compression.gzip.level": "1",
        "auto.offset.reset": "latest", "ssl.cipher.suites": "TLS_RSA_WITH_AES_256_CBC_SHA",
        "ssl.truststore.certificates": (STORES / "root.pem").read_text(),
        "sasl.oauthbearer.jwt.retriever.class": "x.JwtBearerJwtRetriever",
    }  # fmt: skip
    modifiers = {  # these say how another key is meant
        "ssl.truststore.password", "ssl.truststore.type", "ssl.keystore.password", "ssl.keystore.type",
        "ssl.key.password", "ssl.keystore.key", "ssl.keystore.certificate.chain", "sasl.kerberos.kinit.cmd",
        "sasl.login.callback.handler.class", "compression.lz4.level", "compression.zstd.level",
    }  # fmt: skip
    for key in CLIENT_KEYS[kind].values():
        java = {key.name: samples.get(key.name, "5000"), **({"compression.type": "gzip"} if "gzip" in key.name else {})}
        beside = LOGIN if key.name.startswith("sasl.") else {}
        if key.fate is Fate.REFUSED:
            with pytest.raises(ConfigError, match="Java code"):
                translate(kind, {**beside, **java})
            continue
        if key.name in modifiers:
            continue
        found = translate(kind, {**beside, **java})
        assert (key.name in found.ignored) == (key.fate is Fate.UNAVAILABLE)
        assert (key.name in found.unused) == (key.fate is Fate.MEANINGLESS)
        assert (len(found.values) > ("gzip" in key.name) + len(beside)) == (
            key.fate in (Fate.HONOURED, Fate.OTHERWISE)
        ), key


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
        (f'{OAUTH} extension_a="b" extension_c="d";', {"sasl.oauthbearer.extensions": "a=b,c=d"}),
        (
            f'{OAUTH} unsecuredLoginStringClaim_sub="me";',
            {"enable.sasl.oauthbearer.unsecure.jwt": "true", "sasl.oauthbearer.config": "principal=me"},
        ),
        (
            'com.sun.security.auth.module.Krb5LoginModule required useKeyTab=true storeKey=true keyTab="/k" '
            'principal="u@R" serviceName="kafka";',
            {
                "sasl.kerberos.keytab": "/k",
                "sasl.kerberos.principal": "u@R",
                "sasl.kerberos.service.name": "kafka",
            },
        ),
        ("x.Krb5LoginModule required useTicketCache=true;", {"sasl.kerberos.min.time.before.relogin": "0"}),
    ],
)
def test_credentials_are_taken_out_of_the_jaas_line(line: str, native: dict[str, str]) -> None:
    assert translate("admin", {**LOGIN, "sasl.jaas.config": line}).values == {**LOGIN, **native}


def test_credentials_are_not_looked_at_where_nobody_logs_in() -> None:
    wrong = {"sasl.jaas.config": "secret", "sasl.login.class": "x.Mine"}
    assert translate("admin", {"security.protocol": "PLAINTEXT", **wrong}).values == {"security.protocol": "PLAINTEXT"}
    assert translate("admin", wrong).values == {}


def test_oauth_credentials_in_keys_of_their_own_are_used_too() -> None:
    prefix = "sasl.oauthbearer.client.credentials.client."
    found = translate("admin", {**LOGIN, f"{prefix}id": "i", f"{prefix}secret": "s"}).values
    assert found == {
        **LOGIN,
        "sasl.oauthbearer.client.id": "i", "sasl.oauthbearer.client.secret": "s", "sasl.oauthbearer.method": "oidc",
    }  # fmt: skip


@pytest.mark.parametrize(
    ("java", "message"),
    [
        ({"ssl.truststore.location": "/x.jks"}, r"ssl\.truststore\.location: The key store /x\.jks cannot be read"),
        ({"ssl.keystore.location": f"{STORES}/key.jks"}, r"ssl\.keystore\.location: .*needs a password"),
        ({"ssl.truststore.certificates": "/etc"}, r"certificates must hold.*belongs to ssl\.truststore\.location"),
        ({"ssl.keystore.key": "x"}, r"ssl\.keystore\.key holds no private key"),
        ({"ssl.engine.factory.class": "x.Mine"}, "is Java code; name the stores themselves"),
        ({"sasl.jaas.config": "x.MyLoginModule required;"}, "x.MyLoginModule, which is Java code"),
        ({"sasl.jaas.config": "nothing"}, "ends in a semicolon"),
        ({"sasl.jaas.config": 'x.ScramLoginModule required username=u password=p tokenauth="true";'}, "delegation"),
        ({"sasl.jaas.config": "x.Krb5LoginModule required useKeyTab=true;"}, "needs keyTab and principal"),
        ({"sasl.jaas.config": "x.Krb5LoginModule required;"}, "useTicketCache=true"),
        (
            {"sasl.client.callback.handler.class": "software.amazon.msk.IAMClientCallbackHandler"},
            "Amazon MSK use SCRAM",
        ),
        ({"sasl.login.callback.handler.class": "x.Mine"}, r"x\.Mine is Java code.*OAuthBearerLoginCallbackHandler"),
        ({"sasl.login.class": "x.Mine"}, r"sasl\.login\.class=x\.Mine is Java code"),
        ({"sasl.oauthbearer.jwt.retriever.class": "x.FileJwtRetriever"}, "ClientCredentialsJwtRetriever"),
        ({"sasl.oauthbearer.token.endpoint.url": "file:///x"}, "names a file with a token"),
        ({"sasl.jaas.config": "x.PlainLoginModule required;"}, "must hold username and password"),
        ({"partitioner.class": "x.Mine"}, r"partitioner\.class=x\.Mine is a Java class"),
        ({"buffer.memory": "lots"}, "Not a number of type LONG"),
        ({"request.timeout.ms": "1", "transaction.timeout.ms": "soon"}, r"transaction\.timeout\.ms: Not a number"),
        ({"compression.type": "gzip", "compression.gzip.level": "high"}, r"compression\.gzip\.level: Not a number"),
    ],
)
def test_what_must_not_be_ignored_is_refused_with_a_remedy(java: dict[str, str], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        translate("producer", {**LOGIN, **java})


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
