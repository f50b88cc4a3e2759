"""Kafka client settings: from the Java clients' keys, which people write, to librdkafka's, which we run.

Decides translation and precedence, which are Kafka Connect's: the framework's default, then the worker's `consumer.`,
`producer.` or `admin.` prefix, then the connector's `….override.` keys. Makes no client and logs nothing. What has no
counterpart is named in the answer, so that nobody believes it works; what only makes sense in Java (serializers,
metric reporters) or is the lease's own affair (group membership, auto commit) is left out in silence; what must not be
ignored (a key store that can't be read, a login module) is refused.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final, Literal

from wherry.contract.errors import ConfigError

ClientKind = Literal["producer", "consumer", "admin"]
ClientValue = str | int | bool

# Java's defaults, where librdkafka's differ and it shows: a broker that is back is found within a second.
JAVA_DEFAULTS: Final[Mapping[str, str]] = {"reconnect.backoff.ms": "50", "reconnect.backoff.max.ms": "1000"}

_SAME_COMMON: Final = (
    "bootstrap.servers client.id client.rack client.dns.lookup connections.max.idle.ms metadata.max.age.ms "
    "metadata.recovery.strategy metadata.recovery.rebootstrap.trigger.ms "
    "reconnect.backoff.ms reconnect.backoff.max.ms retry.backoff.ms retry.backoff.max.ms security.protocol "
    "socket.connection.setup.timeout.ms sasl.mechanism sasl.kerberos.service.name sasl.username sasl.password "
    "sasl.oauthbearer.method sasl.oauthbearer.token.endpoint.url sasl.oauthbearer.scope sasl.oauthbearer.client.id "
    "sasl.oauthbearer.client.secret ssl.key.password ssl.keystore.password ssl.cipher.suites"
)
_SAME: Final[Mapping[ClientKind, frozenset[str]]] = {
    "producer": frozenset(
        f"{_SAME_COMMON} acks batch.size linger.ms compression.type compression.level delivery.timeout.ms "
        "enable.idempotence max.in.flight.requests.per.connection retries request.timeout.ms transactional.id "
        "transaction.timeout.ms partitioner".split()
    ),
    "consumer": frozenset(
        f"{_SAME_COMMON} fetch.min.bytes fetch.max.bytes isolation.level group.id check.crcs "
        "allow.auto.create.topics".split()
    ),
    "admin": frozenset(_SAME_COMMON.split()),
}
_RENAMED: Final[Mapping[str, str]] = {
    "fetch.max.wait.ms": "fetch.wait.max.ms",
    "max.partition.fetch.bytes": "fetch.message.max.bytes",
    "max.request.size": "message.max.bytes",
    "receive.buffer.bytes": "socket.receive.buffer.bytes",
    "send.buffer.bytes": "socket.send.buffer.bytes",
    "ssl.keystore.certificate.chain": "ssl.certificate.pem",
    "ssl.keystore.key": "ssl.key.pem",
    "ssl.truststore.certificates": "ssl.ca.pem",
    "sasl.oauthbearer.client.credentials.client.id": "sasl.oauthbearer.client.id",
    "sasl.oauthbearer.client.credentials.client.secret": "sasl.oauthbearer.client.secret",
}
# No counterpart, and nothing lost: they configure Java's own machinery, or what a lease decides itself.
_SILENT: Final = re.compile(
    r"(key|value)\.(de)?serializer|metric\..*|metrics\..*|auto\.include\.jmx\.reporter|max\.block\.ms|"
    r"default\.api\.timeout\.ms|request\.timeout\.ms|exclude\.internal\.topics|partition\.assignment\.strategy|"
    r"group\.(protocol|instance\.id)|heartbeat\.interval\.ms|session\.timeout\.ms|max\.poll\.interval\.ms|"
    r"enable\.auto\.commit|auto\.commit\.interval\.ms|enable\.metrics\.push|client\.telemetry.*|"
    r"socket\.connection\.setup\.timeout\.max\.ms|partitioner\.(adaptive\.partitioning\.enable|availability\..*)|"
    r"sasl\.login\.(callback\.handler\.)?class|ssl\.(protocol|enabled\.protocols|provider|keymanager\.algorithm|"
    r"trustmanager\.algorithm|(key|trust)store\.type|truststore\.password|secure\.random\.implementation)"
)
# librdkafka's own keys may be set directly.
_NATIVE_PREFIXES: Final = (
    "socket.", "queue.", "queued.", "broker.", "topic.metadata.", "enable.ssl.", "ssl.ca.", "ssl.certificate.",
    "ssl.key.", "debug", "fetch.", "message.", "sticky.",
)  # fmt: skip
_NOTES: Final[Mapping[str, str]] = {
    "max.poll.records": "batches are sized by bytes here, under load only",
    "interceptor.classes": "interceptors are Java classes",
    "partitioner.class": "only Kafka's own partitioners have a counterpart",
}
_NO_NOTE: Final = "librdkafka has no counterpart"
_BUFFER_UNSET: Final = "-1"  # Java: let the system choose, which is librdkafka's default too
_COMPRESSION_LEVEL_MAX: Final = 12  # librdkafka's, of all codecs
_PEM_SUFFIXES: Final = (".pem", ".crt", ".cer")
_PKCS12_SUFFIXES: Final = (".p12", ".pfx")
# As Java's parser: a value is quoted in one of two ways, or a bare word.
_JAAS_OPTION: Final = re.compile(r"""(\w+)\s*=\s*(?:"((?:[^"\\]|\\.)*)"|'((?:[^'\\]|\\.)*)'|([^\s;"']+))""")


@dataclass(frozen=True, slots=True)
class ClientConfig:
    """Settings of one librdkafka client.

    Attributes:
        values: What the client is made with.
        ignored: Java keys that could not be carried over, for a warning.
    """

    values: Mapping[str, ClientValue]
    ignored: tuple[str, ...] = ()

    def warnings(self) -> list[str]:
        """What to tell about the ignored keys, one clause each, with the reason."""
        return [f"the client setting {key} is ignored: {_NOTES.get(key, _NO_NOTE)}" for key in self.ignored]


def resolve(
    kind: ClientKind,
    *,
    worker: Mapping[str, str],
    connector: Mapping[str, str] | None = None,
    defaults: Mapping[str, str] | None = None,
) -> ClientConfig:
    """Settings of one client of the framework.

    Args:
        kind: Which client.
        worker: The worker's whole configuration, resolved.
        connector: The connector's whole configuration, resolved; None for the framework's own clients.
        defaults: The framework's defaults for this client, in Java's keys.

    Raises:
        ConfigError: No broker is named, or a setting that must not be ignored can't be used.
    """
    java = {**JAVA_DEFAULTS, **(defaults or {})}
    if kind == "admin":
        # Kafka Connect's admin clients take the worker's own connection settings; the others take prefixed ones only.
        java.update({key: value for key, value in worker.items() if _is_connection(key)})
    if "bootstrap.servers" in worker:
        java["bootstrap.servers"] = worker["bootstrap.servers"]
    # A worker has no overrides; a key of that shape there is a connector's by mistake.
    own = _with_prefix(worker, f"{kind}.")
    java.update({key: value for key, value in own.items() if not key.startswith("override.")})
    java.update(_with_prefix(connector or {}, f"{kind}.override."))
    if not java.get("bootstrap.servers", "").strip():
        raise ConfigError(
            "bootstrap.servers is not set; the worker's properties must name at least one broker as host:port.",
            key="bootstrap.servers",
        )
    return translate(kind, java)


def translate(kind: ClientKind, java: Mapping[str, str]) -> ClientConfig:
    """Settings for librdkafka from a Java client's.

    Raises:
        ConfigError: A value that must not be ignored (a key store in a Java format, a login module) can't be used.
    """
    java = {key: value.strip() for key, value in java.items()}
    values: dict[str, ClientValue] = {}
    ignored: list[str] = []
    for key, value in java.items():
        special = _SPECIAL.get(key)
        if special is not None:
            values.update(special(value, java))
        elif key in _SAME[kind]:
            values[key] = value
        elif key in _RENAMED:
            if value != _BUFFER_UNSET:
                values[_RENAMED[key]] = value
        elif _SILENT.fullmatch(key):
            continue
        elif key.startswith(_NATIVE_PREFIXES):
            values[key] = value
        else:
            ignored.append(key)
    if {"sasl.oauthbearer.client.id", "sasl.oauthbearer.token.endpoint.url"} & values.keys():
        values.setdefault("sasl.oauthbearer.method", "oidc")
    return ClientConfig(values, tuple(ignored))


def _is_connection(key: str) -> bool:
    return key in _SAME["admin"] or key.startswith(("sasl.", "ssl."))


def _with_prefix(values: Mapping[str, str], prefix: str) -> dict[str, str]:
    return {key.removeprefix(prefix): value for key, value in values.items() if key.startswith(prefix)}


def _jaas(value: str, java: Mapping[str, str]) -> dict[str, str]:
    """User and password out of a JAAS line; other login modules are Java code."""
    options = {
        name: re.sub(r"\\(.)", r"\1", double or single) or bare
        for name, double, single, bare in _JAAS_OPTION.findall(value)
    }
    if "PlainLoginModule" in value or "ScramLoginModule" in value:
        if "username" not in options or "password" not in options:
            raise ConfigError(
                "sasl.jaas.config must hold username and password, such as "
                'org.apache.kafka.common.security.plain.PlainLoginModule required username="…" password="…";',
                key="sasl.jaas.config",
            )
        return {"sasl.username": options["username"], "sasl.password": options["password"]}
    if "OAuthBearerLoginModule" in value:
        names = {"clientId": "client.id", "clientSecret": "client.secret", "scope": "scope"}
        return {f"sasl.oauthbearer.{names[name]}": text for name, text in options.items() if name in names}
    raise ConfigError(
        "sasl.jaas.config names a login module that is Java code; PlainLoginModule, ScramLoginModule and "
        "OAuthBearerLoginModule (with clientId and clientSecret) can be used.",
        key="sasl.jaas.config",
    )


def _truststore(value: str, java: Mapping[str, str]) -> dict[str, str]:
    if java.get("ssl.truststore.type", "JKS").upper() != "PEM" and not value.endswith(_PEM_SUFFIXES):
        raise ConfigError(
            f"ssl.truststore.location={value} is a Java key store, which librdkafka cannot read: export its "
            "certificates as PEM (keytool -exportcert -rfc) and set ssl.truststore.type=PEM.",
            key="ssl.truststore.location",
        )
    return {"ssl.ca.location": value}


def _keystore(value: str, java: Mapping[str, str]) -> dict[str, str]:
    kind = java.get("ssl.keystore.type", "JKS").upper()
    if kind == "PEM" or value.endswith(".pem"):
        return {"ssl.certificate.location": value, "ssl.key.location": value}
    if kind == "PKCS12" or value.endswith(_PKCS12_SUFFIXES):
        return {"ssl.keystore.location": value}
    raise ConfigError(
        f"ssl.keystore.location={value} is a Java key store, which librdkafka cannot read: convert it (keytool "
        "-importkeystore -deststoretype PKCS12) and set ssl.keystore.type=PKCS12, or to PEM and set "
        "ssl.keystore.type=PEM.",
        key="ssl.keystore.location",
    )


def _partitioner(value: str, java: Mapping[str, str]) -> dict[str, str]:
    if value.endswith("RoundRobinPartitioner"):
        return {"partitioner": "random"}
    if not value or value.endswith(("DefaultPartitioner", "UniformStickyPartitioner")):
        return {}
    raise ConfigError(
        f"partitioner.class={value} is a Java class; {_NOTES['partitioner.class']}.", key="partitioner.class"
    )


def _ignore_keys(value: str, java: Mapping[str, str]) -> dict[str, str]:
    return {"partitioner": "random"} if value.lower() == "true" else {}


def _buffer_memory(value: str, java: Mapping[str, str]) -> dict[str, str]:
    if not value.isdecimal():
        raise ConfigError(
            f"Invalid value {value} for configuration buffer.memory: Not a number of type LONG", key="buffer.memory"
        )
    return {"queue.buffering.max.kbytes": str(max(1, int(value) // 1024))}


def _offset_reset(value: str, java: Mapping[str, str]) -> dict[str, str]:
    return {"auto.offset.reset": "error" if value.lower() == "none" else value.lower()}


def _endpoint_identification(value: str, java: Mapping[str, str]) -> dict[str, str]:
    return {"ssl.endpoint.identification.algorithm": value.lower() or "none"}


def _level_of(codec: str) -> Callable[[str, Mapping[str, str]], dict[str, str]]:
    """Librdkafka has one level; Java one of each codec, of which that in use counts."""

    def level(value: str, java: Mapping[str, str]) -> dict[str, str]:
        if java.get("compression.type", "none").lower() != codec:
            return {}
        try:
            return {"compression.level": str(max(-1, min(int(value), _COMPRESSION_LEVEL_MAX)))}
        except ValueError:
            key = f"compression.{codec}.level"
            raise ConfigError(
                f"Invalid value {value} for configuration {key}: Not a number of type INT", key=key
            ) from None

    return level


_SPECIAL: Final[Mapping[str, Callable[[str, Mapping[str, str]], dict[str, str]]]] = {
    "sasl.jaas.config": _jaas,
    "ssl.truststore.location": _truststore,
    "ssl.keystore.location": _keystore,
    "ssl.endpoint.identification.algorithm": _endpoint_identification,
    "auto.offset.reset": _offset_reset,
    "partitioner.class": _partitioner,
    "partitioner.ignore.keys": _ignore_keys,
    "buffer.memory": _buffer_memory,
    "compression.gzip.level": _level_of("gzip"),
    "compression.lz4.level": _level_of("lz4"),
    "compression.zstd.level": _level_of("zstd"),
}
