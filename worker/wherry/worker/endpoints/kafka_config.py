"""Kafka Connect's client settings as librdkafka's: which keys reach a lease's clients, and under which name.

Precedence is Kafka Connect's: the framework's default, then the worker's `consumer.` or `producer.` prefix, then the
connector's `consumer.override.` or `producer.override.`. A key that has no counterpart is named in the answer, so that
one warning can tell it; it is never dropped silently.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Mapping
from typing import Final

from wherry.contract.errors import ConfigError

ClientValue = str | int | bool

# The queue of fetched records holds this many kbytes at most; librdkafka's own default is 64 MiB per consumer.
QUEUED_KBYTES: Final = 16_384
FETCH_BYTES: Final = 2 * 1024 * 1024
# A full queue is looked at again so soon; librdkafka waits a whole second by itself.
QUEUE_FULL_WAIT_MS: Final = 2
# How long a broker may hold a fetch that it can't fill. Data that is there is sent at once.
FETCH_WAIT_MS: Final = 500
PRODUCER_QUEUE_KBYTES: Final = 32_768
PRODUCER_QUEUE_MESSAGES: Final = 200_000
DELIVERY_TIMEOUT_MS: Final = 2_147_483_647

# The Java client's: a broker that is back is found within a second.
_RECONNECTING: Final = {"reconnect.backoff.ms": "50", "reconnect.backoff.max.ms": "1000"}

# Same meaning under the same name.
_SAME: Final = frozenset({
    "acks", "allow.auto.create.topics", "auto.offset.reset", "batch.size", "bootstrap.servers", "check.crcs",
    "client.dns.lookup", "client.id", "client.rack", "compression.type", "connections.max.idle.ms",
    "delivery.timeout.ms", "enable.idempotence", "fetch.max.bytes", "fetch.min.bytes", "group.id", "isolation.level",
    "linger.ms", "max.in.flight.requests.per.connection", "metadata.max.age.ms",
    "metadata.recovery.strategy", "reconnect.backoff.max.ms", "reconnect.backoff.ms", "retries",
    "retry.backoff.max.ms", "retry.backoff.ms", "sasl.kerberos.service.name", "sasl.mechanism",
    "security.protocol", "ssl.key.password", "ssl.keystore.password", "transaction.timeout.ms", "transactional.id",
})  # fmt: skip
_RENAMED: Final[Mapping[str, str]] = {
    "fetch.max.wait.ms": "fetch.wait.max.ms",
    "max.partition.fetch.bytes": "fetch.message.max.bytes",
    "max.request.size": "message.max.bytes",
    "receive.buffer.bytes": "socket.receive.buffer.bytes",
    "send.buffer.bytes": "socket.send.buffer.bytes",
    "ssl.keystore.certificate.chain": "ssl.certificate.pem",
    "ssl.keystore.key": "ssl.key.pem",
    "ssl.truststore.certificates": "ssl.ca.pem",
    "sasl.oauthbearer.token.endpoint.url": "sasl.oauthbearer.token.endpoint.url",
    "sasl.oauthbearer.scope": "sasl.oauthbearer.scope",
    "sasl.oauthbearer.client.credentials.client.id": "sasl.oauthbearer.client.id",
    "sasl.oauthbearer.client.credentials.client.secret": "sasl.oauthbearer.client.secret",
}
# Of no effect here: the lease decides these itself, or they belong to the JVM.
_WITHOUT_EFFECT: Final = frozenset({
    "auto.commit.interval.ms", "default.api.timeout.ms", "enable.auto.commit", "exclude.internal.topics",
    "group.instance.id", "group.protocol", "heartbeat.interval.ms", "interceptor.classes", "key.deserializer",
    "key.serializer", "max.block.ms", "max.poll.interval.ms", "max.poll.records", "metric.reporters",
    "metrics.num.samples", "metrics.recording.level", "metrics.sample.window.ms", "partition.assignment.strategy",
    "request.timeout.ms", "session.timeout.ms", "value.deserializer", "value.serializer", "ssl.protocol",
    "ssl.enabled.protocols", "ssl.provider", "ssl.secure.random.implementation", "enable.metrics.push",
    "partitioner.class", "partitioner.ignore.keys", "partitioner.adaptive.partitioning.enable",
    "partitioner.availability.timeout.ms", "ssl.keystore.type", "ssl.truststore.type", "ssl.truststore.password",
    "compression.lz4.level", "compression.zstd.level", "compression.gzip.level",
})  # fmt: skip
# librdkafka keys that may be set directly.
_NATIVE_PREFIXES: Final = (
    "socket.", "queue.", "queued.", "broker.", "topic.metadata.", "enable.ssl.", "ssl.ca.", "ssl.certificate.",
    "ssl.key.", "debug", "fetch.", "message.", "sticky.",
)  # fmt: skip
_JAAS_OPTION: Final = re.compile(r'(\w+)\s*=\s*"((?:[^"\\]|\\.)*)"')


@dataclasses.dataclass(frozen=True, slots=True)
class ClientConfig:
    """Settings of one librdkafka client.

    Attributes:
        values: What the client is made with.
        unmapped: Java keys that have no counterpart, for one warning.
        given: Names that the user set, in the Java spelling.
    """

    values: dict[str, ClientValue]
    unmapped: tuple[str, ...]
    given: frozenset[str]


def reader_config(
    connector: str, task: int, config: Mapping[str, str], worker_config: Mapping[str, str]
) -> ClientConfig:
    """Settings of a sink task's consumer."""
    client = _client(f"connector-consumer-{connector}-{task}", "consumer", config, worker_config)
    values = {
        "fetch.wait.max.ms": FETCH_WAIT_MS,
        "fetch.message.max.bytes": FETCH_BYTES,
        "fetch.max.bytes": 8 * FETCH_BYTES,
        "queued.max.messages.kbytes": QUEUED_KBYTES,
        "fetch.queue.backoff.ms": QUEUE_FULL_WAIT_MS,
        # An error, unless the user asked for a reset: a position that is gone is never skipped silently.
        "auto.offset.reset": "error",
        "group.id": f"connect-{connector}",
        **client.values,
        "enable.auto.commit": False,
        "enable.auto.offset.store": False,
        "enable.partition.eof": True,
    }
    # fetch.max.bytes must not be less than what one partition may return.
    values["fetch.max.bytes"] = max(int(values["fetch.max.bytes"]), int(values["fetch.message.max.bytes"]))
    return ClientConfig(values, client.unmapped, client.given)


def writer_config(
    connector: str,
    task: int,
    config: Mapping[str, str],
    worker_config: Mapping[str, str],
    *,
    client_name: str = "connector-producer",
) -> ClientConfig:
    """Settings of a source task's producer, or with another client name of a dead letter queue's."""
    client = _client(f"{client_name}-{connector}-{task}", "producer", config, worker_config)
    values: dict[str, ClientValue] = {
        "acks": "all",
        "enable.idempotence": _acks_all(client.values),
        "delivery.timeout.ms": DELIVERY_TIMEOUT_MS,
        "linger.ms": 5,
        # The Java client's max.request.size.
        "message.max.bytes": 1_048_576,
        "queue.buffering.max.kbytes": PRODUCER_QUEUE_KBYTES,
        "queue.buffering.max.messages": PRODUCER_QUEUE_MESSAGES,
        # The Java client's: the same key goes to the same partition as before.
        "partitioner": "murmur2_random",
        **client.values,
        # Only failures are told one by one; success is what flush says.
        "delivery.report.only.error": True,
    }
    return ClientConfig(values, client.unmapped, client.given)


def admin_config(
    connector: str, task: int, config: Mapping[str, str], worker_config: Mapping[str, str]
) -> ClientConfig:
    """Settings of the admin client that creates topics; inherits the worker's own, as Kafka Connect's does."""
    merged = {key: value for key, value in worker_config.items() if key in _SAME or key.startswith(("sasl.", "ssl."))}
    merged.pop("group.id", None)
    client = _client(f"connector-adminclient-{connector}-{task}", "admin", config, {**worker_config, **{
        f"admin.{key}": value for key, value in merged.items() if f"admin.{key}" not in worker_config
    }})  # fmt: skip
    return ClientConfig(client.values, client.unmapped, client.given)


def translate(settings: Mapping[str, str]) -> tuple[dict[str, ClientValue], tuple[str, ...]]:
    """Renames Java client settings for librdkafka.

    Returns:
        The settings, and the names that have no counterpart.

    Raises:
        ConfigError: A value can't be understood.
    """
    values: dict[str, ClientValue] = {}
    unmapped: list[str] = []
    for key, value in settings.items():
        if key in _SAME:
            values[key] = value
        elif key in _RENAMED:
            values[_RENAMED[key]] = value
        elif key == "buffer.memory":
            values["queue.buffering.max.kbytes"] = max(1, _integer(key, value) // 1024)
        elif key == "sasl.jaas.config":
            values.update(_jaas(value))
        elif key == "ssl.endpoint.identification.algorithm":
            values[key] = value or "none"
        elif key == "ssl.truststore.location":
            values["ssl.ca.location"] = _pem(key, value, settings.get("ssl.truststore.type", ""))
        elif key == "ssl.keystore.location":
            values[key] = _pkcs12(value)
        elif key.startswith(_NATIVE_PREFIXES) or key == "partitioner":
            values[key] = value
        elif key not in _WITHOUT_EFFECT:
            unmapped.append(key)
    return values, tuple(unmapped)


def _client(client_id: str, kind: str, config: Mapping[str, str], worker_config: Mapping[str, str]) -> ClientConfig:
    servers = worker_config.get("bootstrap.servers", "")
    settings = {"client.id": client_id, "bootstrap.servers": servers, **_RECONNECTING}
    given: dict[str, str] = {}
    override = f"{kind}.override."
    for key, value in worker_config.items():
        # The worker has no overrides; a key of that shape there would be a connector's by mistake.
        if key.startswith(f"{kind}.") and not key.startswith(override):
            given[key.removeprefix(f"{kind}.")] = value
    for key, value in config.items():
        if key.startswith(override):
            given[key.removeprefix(override)] = value
    settings |= given
    if not settings["bootstrap.servers"].strip():
        raise ConfigError(
            "bootstrap.servers is not set; the worker's properties must name at least one broker as host:port.",
            key="bootstrap.servers",
        )
    values, unmapped = translate(settings)
    return ClientConfig(values, unmapped, frozenset(given))


def _acks_all(values: Mapping[str, ClientValue]) -> bool:
    """Idempotence is on unless a setting contradicts it; librdkafka refuses the pair otherwise."""
    acks = str(values.get("acks", "all"))
    in_flight = int(values.get("max.in.flight.requests.per.connection", 5))
    return acks in {"all", "-1"} and in_flight <= 5 and str(values.get("retries", "1")) != "0"


def _integer(key: str, value: str) -> int:
    try:
        return int(value.strip())
    except ValueError:
        raise ConfigError(f"Invalid value {value} for configuration {key}: Not a number.", key=key) from None


def _jaas(value: str) -> dict[str, ClientValue]:
    options = {name: re.sub(r"\\(.)", r"\1", text) for name, text in _JAAS_OPTION.findall(value)}
    result: dict[str, ClientValue] = {}
    if "username" in options:
        result["sasl.username"] = options["username"]
    if "password" in options:
        result["sasl.password"] = options["password"]
    if "clientId" in options:
        result["sasl.oauthbearer.client.id"] = options["clientId"]
    if "clientSecret" in options:
        result["sasl.oauthbearer.client.secret"] = options["clientSecret"]
    if not result:
        raise ConfigError(
            'sasl.jaas.config holds no username and password; write them as username="…" password="…".',
            key="sasl.jaas.config",
        )
    return result


def _pem(key: str, value: str, kind: str) -> str:
    if kind.upper() in {"", "JKS", "PKCS12"} and not value.endswith((".pem", ".crt", ".cer")):
        raise ConfigError(
            f"{key} names {value}, a Java key store; only PEM is understood here. Convert it with "
            "keytool -exportcert -rfc, and set ssl.truststore.type=PEM.",
            key=key,
        )
    return value


def _pkcs12(value: str) -> str:
    if value.endswith(".jks"):
        raise ConfigError(
            f"ssl.keystore.location names {value}, a JKS key store; only PKCS12 and PEM are understood here. Convert "
            "it with keytool -importkeystore -deststoretype PKCS12.",
            key="ssl.keystore.location",
        )
    return value
