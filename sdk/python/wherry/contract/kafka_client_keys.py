"""Every setting of Kafka's Java clients, and what becomes of it here: the table that translation and page are made of.

Decides nothing by itself. A test holds it complete against the keys of Kafka 4.3.1's own ProducerConfig,
ConsumerConfig and AdminClientConfig.
"""

from __future__ import annotations

import enum
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final, Literal

ClientKind = Literal["producer", "consumer", "admin"]


class Fate(enum.StrEnum):
    """What becomes of a setting; the value is the word on the page."""

    HONOURED = "honoured"
    OTHERWISE = "honoured otherwise"
    MEANINGLESS = "meaningless here"
    UNAVAILABLE = "not available"
    REFUSED = "refused"


@dataclass(frozen=True, slots=True)
class ClientKey:
    """One setting of one client.

    Attributes:
        name: Java's key.
        fate: What becomes of it.
        native: The key of librdkafka that takes the value as it is; empty when none does.
        note: How it is honoured, or why it is not.
    """

    name: str
    fate: Fate
    native: str = ""
    note: str = ""


def _same(names: str, note: str = "") -> list[ClientKey]:
    return [ClientKey(name, Fate.HONOURED, name, note) for name in names.split()]


def _renamed(names: str, note: str = "") -> list[ClientKey]:
    """Pairs written as java=native."""
    return [
        ClientKey(java, Fate.HONOURED, native, note) for java, native in (pair.split("=") for pair in names.split())
    ]


def _of(fate: Fate, names: str, note: str) -> list[ClientKey]:
    return [ClientKey(name, fate, "", note) for name in names.split()]


_OTHERWISE, _MEANINGLESS, _UNAVAILABLE, _REFUSED = Fate.OTHERWISE, Fate.MEANINGLESS, Fate.UNAVAILABLE, Fate.REFUSED
_NO_GROUP: Final = "the coordinator assigns partitions itself, without group membership"
_BROKERS: Final = "read by brokers, not by clients"
_REFRESH: Final = "librdkafka renews a token at four fifths of its life by itself"
_STORE: Final = "JKS, PKCS12 or PEM, told by its content; handed on as PEM in memory"

_CONNECTION: Final = [
    *_same(
        "bootstrap.servers client.id client.dns.lookup connections.max.idle.ms metadata.max.age.ms "
        "metadata.recovery.strategy metadata.recovery.rebootstrap.trigger.ms reconnect.backoff.ms "
        "reconnect.backoff.max.ms retry.backoff.ms retry.backoff.max.ms security.protocol"
    ),
    *_renamed(
        "receive.buffer.bytes=socket.receive.buffer.bytes send.buffer.bytes=socket.send.buffer.bytes",
        "-1 leaves it to the system",
    ),
    *_of(_OTHERWISE, "socket.connection.setup.timeout.ms", "as given, at least 1000"),
    *_of(_MEANINGLESS, "socket.connection.setup.timeout.max.ms", "the time for connecting does not grow here"),
    *_of(
        _MEANINGLESS,
        "metric.reporters metrics.num.samples metrics.recording.level metrics.sample.window.ms enable.metrics.push",
        "figures are gathered by Wherry, not by the client",
    ),
    *_of(_UNAVAILABLE, "config.providers", "use config.providers of the worker, which resolves client settings too"),
    *_of(_UNAVAILABLE, "security.providers", "these are Java classes"),
]

_SSL: Final = [
    *_of(_OTHERWISE, "ssl.truststore.location ssl.truststore.password ssl.truststore.type", _STORE),
    *_of(_OTHERWISE, "ssl.keystore.location ssl.keystore.password ssl.keystore.type ssl.key.password", _STORE),
    *_of(_OTHERWISE, "ssl.truststore.certificates", "as ssl.ca.pem"),
    *_of(_OTHERWISE, "ssl.keystore.key ssl.keystore.certificate.chain", "as ssl.key.pem and ssl.certificate.pem"),
    *_of(_OTHERWISE, "ssl.endpoint.identification.algorithm", "empty is none"),
    *_of(_OTHERWISE, "ssl.cipher.suites", "Java's names as OpenSSL's; those of TLS 1.3 are always on"),
    *_of(_MEANINGLESS, "ssl.protocol ssl.enabled.protocols", "OpenSSL takes the newest of TLS 1.2 and 1.3 that fits"),
    *_of(
        _MEANINGLESS,
        "ssl.provider ssl.keymanager.algorithm ssl.trustmanager.algorithm ssl.secure.random.implementation",
        "a part of Java; OpenSSL does it here",
    ),
    *_of(_REFUSED, "ssl.engine.factory.class", "it is Java code; name the stores themselves (ssl.truststore.location)"),
]

_SASL: Final = [
    *_same("sasl.mechanism", "PLAIN, SCRAM-SHA-256, SCRAM-SHA-512, OAUTHBEARER; GSSAPI where librdkafka was built so"),
    *_of(
        _OTHERWISE,
        "sasl.jaas.config",
        "PlainLoginModule, ScramLoginModule, OAuthBearerLoginModule and Krb5LoginModule are taken apart",
    ),
    *_same("sasl.kerberos.service.name sasl.kerberos.min.time.before.relogin"),
    *_of(_OTHERWISE, "sasl.kerberos.kinit.cmd", "run with the key table and principal of the JAAS line"),
    *_of(
        _MEANINGLESS,
        "sasl.kerberos.ticket.renew.jitter sasl.kerberos.ticket.renew.window.factor",
        "tickets are renewed every sasl.kerberos.min.time.before.relogin",
    ),
    *_of(_OTHERWISE, "sasl.login.callback.handler.class", "Kafka's own OAuth handlers mean OIDC; others are refused"),
    *_of(_REFUSED, "sasl.client.callback.handler.class sasl.login.class", "it is Java code"),
    *_of(
        _MEANINGLESS,
        "sasl.login.refresh.buffer.seconds sasl.login.refresh.min.period.seconds sasl.login.refresh.window.factor "
        "sasl.login.refresh.window.jitter",
        _REFRESH,
    ),
    *_of(
        _MEANINGLESS,
        "sasl.login.connect.timeout.ms sasl.login.read.timeout.ms sasl.login.retry.backoff.ms "
        "sasl.login.retry.backoff.max.ms",
        "librdkafka times its calls of the token endpoint itself",
    ),
    *_same("sasl.oauthbearer.token.endpoint.url sasl.oauthbearer.scope sasl.oauthbearer.sub.claim.name"),
    *_same(
        "sasl.oauthbearer.assertion.algorithm sasl.oauthbearer.assertion.claim.aud "
        "sasl.oauthbearer.assertion.claim.exp.seconds sasl.oauthbearer.assertion.claim.iss "
        "sasl.oauthbearer.assertion.claim.jti.include sasl.oauthbearer.assertion.claim.nbf.seconds "
        "sasl.oauthbearer.assertion.claim.sub sasl.oauthbearer.assertion.file "
        "sasl.oauthbearer.assertion.private.key.file sasl.oauthbearer.assertion.private.key.passphrase"
    ),
    *_renamed(
        "sasl.oauthbearer.assertion.template.file=sasl.oauthbearer.assertion.jwt.template.file "
        "sasl.oauthbearer.client.credentials.client.id=sasl.oauthbearer.client.id "
        "sasl.oauthbearer.client.credentials.client.secret=sasl.oauthbearer.client.secret"
    ),
    *_of(
        _OTHERWISE,
        "sasl.oauthbearer.jwt.retriever.class",
        "Kafka's retrievers for client credentials and JWT bearers; others are refused",
    ),
    *_of(_MEANINGLESS, "sasl.oauthbearer.jwt.validator.class", "brokers check tokens"),
    *_of(_UNAVAILABLE, "sasl.oauthbearer.header.urlencode", "librdkafka decides it"),
    *_of(
        _MEANINGLESS,
        "sasl.oauthbearer.clock.skew.seconds sasl.oauthbearer.expected.audience sasl.oauthbearer.expected.issuer "
        "sasl.oauthbearer.jwks.endpoint.refresh.ms sasl.oauthbearer.jwks.endpoint.retry.backoff.max.ms "
        "sasl.oauthbearer.jwks.endpoint.retry.backoff.ms sasl.oauthbearer.jwks.endpoint.url "
        "sasl.oauthbearer.scope.claim.name",
        _BROKERS,
    ),
]

_COMMON: Final = [*_CONNECTION, *_SSL, *_SASL]

_PRODUCER: Final = [
    *_same(
        "acks batch.size linger.ms compression.type delivery.timeout.ms enable.idempotence "
        "max.in.flight.requests.per.connection retries request.timeout.ms transactional.id"
    ),
    *_renamed("max.request.size=message.max.bytes"),
    *_of(_OTHERWISE, "buffer.memory", "as queue.buffering.max.kbytes"),
    *_of(
        _OTHERWISE,
        "compression.gzip.level compression.lz4.level compression.zstd.level",
        "of the codec in use, at most 12, as compression.level",
    ),
    *_of(_OTHERWISE, "transaction.timeout.ms", "as given, at least 1000"),
    *_of(_OTHERWISE, "partitioner.class", "empty or RoundRobinPartitioner; any other is Java code and refused"),
    *_of(_OTHERWISE, "partitioner.ignore.keys", "true is the partitioner random"),
    *_of(
        _MEANINGLESS,
        "partitioner.adaptive.partitioning.enable partitioner.availability.timeout.ms",
        "records without key stick to a partition for a moment, whatever the brokers' load",
    ),
    *_of(_MEANINGLESS, "key.serializer value.serializer", "converters make the bytes"),
    *_of(_MEANINGLESS, "max.block.ms", "the lease waits for room in the queue, and says so, instead of failing"),
    *_of(_MEANINGLESS, "metadata.max.idle.ms", "topics stay known as long as the lease lasts"),
    *_of(_UNAVAILABLE, "interceptor.classes", "interceptors are Java classes"),
    *_of(_UNAVAILABLE, "transaction.two.phase.commit.enable", "librdkafka has no counterpart"),
]

_CONSUMER: Final = [
    *_same("fetch.min.bytes fetch.max.bytes isolation.level group.id check.crcs allow.auto.create.topics client.rack"),
    *_renamed("fetch.max.wait.ms=fetch.wait.max.ms max.partition.fetch.bytes=fetch.message.max.bytes"),
    *_of(_OTHERWISE, "auto.offset.reset", "none is an error that says so; by_duration is refused"),
    *_of(_OTHERWISE, "request.timeout.ms", "as socket.timeout.ms, longer than fetch.max.wait.ms and at most 300000"),
    *_of(_UNAVAILABLE, "max.poll.records", "batches are sized by bytes here, under load only"),
    *_of(_MEANINGLESS, "key.deserializer value.deserializer", "converters read the bytes"),
    *_of(
        _MEANINGLESS,
        "partition.assignment.strategy group.protocol group.instance.id group.remote.assignor heartbeat.interval.ms "
        "session.timeout.ms max.poll.interval.ms",
        _NO_GROUP,
    ),
    *_of(_MEANINGLESS, "enable.auto.commit auto.commit.interval.ms", "the coordinator commits what is written"),
    *_of(_MEANINGLESS, "exclude.internal.topics", "the topics are named one by one when partitions are assigned"),
    *_of(_MEANINGLESS, "default.api.timeout.ms", "every call has a deadline of its own"),
    *_of(_MEANINGLESS, "internal.throw.on.fetch.stable.offset.unsupported", "an internal switch of Java's client"),
    *_of(_MEANINGLESS, "share.acknowledgement.mode share.acquire.mode", "share groups are not used"),
    *_of(_UNAVAILABLE, "interceptor.classes", "interceptors are Java classes"),
]

_ADMIN: Final = [
    *_of(_OTHERWISE, "request.timeout.ms", "as socket.timeout.ms, at most 300000"),
    *_of(_MEANINGLESS, "default.api.timeout.ms retries", "every call has a deadline of its own and is tried again"),
    *_of(_UNAVAILABLE, "bootstrap.controllers", "name brokers with bootstrap.servers"),
]


FORMER_KEYS: Final[Mapping[str, str]] = {
    "auto.include.jmx.reporter": "figures are gathered by Wherry, not by the client",
    "block.on.buffer.full": "it is gone since Kafka 0.9",
}
"""Keys of older Kafka clients that worker files still hold, with why they do nothing."""


def _table(keys: Iterable[ClientKey]) -> dict[str, ClientKey]:
    return {key.name: key for key in keys}


CLIENT_KEYS: Final[Mapping[ClientKind, Mapping[str, ClientKey]]] = {
    "producer": _table([*_COMMON, *_PRODUCER]),
    "consumer": _table([*_COMMON, *_CONSUMER]),
    "admin": _table([*_COMMON, *_ADMIN]),
}
"""By client, then by Java's key."""
