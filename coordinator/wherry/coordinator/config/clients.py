"""Kafka client settings: from the Java clients' keys, which people write, to librdkafka's, which we run.

Decides translation and precedence (framework default < worker prefix < connector override); makes no client. What has
no counterpart is named in a warning, so that nobody believes it works; what only makes sense in Java (serializers,
metric reporters) is left out in silence.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Literal

from wherry.contract.errors import ConfigError

_log = logging.getLogger(__name__)

ClientKind = Literal["producer", "consumer", "admin"]

# Framework's own settings; Java's defaults are given where librdkafka's differ and it shows to users.
FRAMEWORK_DEFAULTS: Mapping[ClientKind, Mapping[str, str]] = {
    "producer": {
        "acks": "all",
        "enable.idempotence": "false",
        "delivery.timeout.ms": "2147483647",
        "max.in.flight.requests.per.connection": "1",
        "partitioner": "murmur2_random",  # a key goes to the partition that a Java producer would choose
    },
    "consumer": {"auto.offset.reset": "earliest", "enable.auto.commit": "false", "isolation.level": "read_uncommitted"},
    "admin": {},
}

_SAME_COMMON = (
    "bootstrap.servers client.id client.rack client.dns.lookup connections.max.idle.ms metadata.max.age.ms "
    "reconnect.backoff.ms reconnect.backoff.max.ms retry.backoff.ms retry.backoff.max.ms security.protocol "
    "sasl.mechanism sasl.kerberos.service.name sasl.oauthbearer.token.endpoint.url sasl.oauthbearer.scope "
    "ssl.key.password ssl.cipher.suites ssl.ca.location ssl.certificate.location ssl.key.location sasl.username "
    "sasl.password enable.ssl.certificate.verification"
)
_SAME: Mapping[ClientKind, frozenset[str]] = {
    "producer": frozenset(
        f"{_SAME_COMMON} acks batch.size linger.ms compression.type delivery.timeout.ms enable.idempotence "
        "max.in.flight.requests.per.connection retries request.timeout.ms transactional.id transaction.timeout.ms "
        "partitioner message.max.bytes sticky.partitioning.linger.ms".split()
    ),
    "consumer": frozenset(
        f"{_SAME_COMMON} auto.offset.reset enable.auto.commit fetch.min.bytes fetch.max.bytes isolation.level "
        "max.partition.fetch.bytes group.id group.instance.id session.timeout.ms heartbeat.interval.ms "
        "max.poll.interval.ms check.crcs allow.auto.create.topics queued.max.messages.kbytes".split()
    ),
    "admin": frozenset(_SAME_COMMON.split()),
}
_RENAMED: Mapping[str, str] = {
    "fetch.max.wait.ms": "fetch.wait.max.ms",
    "max.request.size": "message.max.bytes",
    "send.buffer.bytes": "socket.send.buffer.bytes",
    "receive.buffer.bytes": "socket.receive.buffer.bytes",
    "compression.gzip.level": "compression.level",
    "compression.lz4.level": "compression.level",
    "compression.zstd.level": "compression.level",
    "ssl.truststore.certificates": "ssl.ca.pem",
    "ssl.keystore.certificate.chain": "ssl.certificate.pem",
    "ssl.keystore.key": "ssl.key.pem",
    "ssl.keystore.password": "ssl.keystore.password",
}
# No counterpart, and nothing lost: they configure Java's own machinery, or what our pump does by other means.
_SILENT = re.compile(
    r"(key|value)\.(de)?serializer|metric\..*|metrics\..*|auto\.include\.jmx\.reporter|max\.block\.ms|"
    r"default\.api\.timeout\.ms|exclude\.internal\.topics|partition\.assignment\.strategy|group\.protocol|"
    r"enable\.metrics\.push|socket\.connection\.setup\..*|ssl\.(protocol|enabled\.protocols|keymanager\.algorithm|"
    r"trustmanager\.algorithm|(key|trust)store\.type|secure\.random\.implementation)|client\.telemetry.*"
)
_NOTES: Mapping[str, str] = {
    "max.poll.records": "batches are sized by bytes here, under load only",
    "interceptor.classes": "interceptors are Java classes",
    "partitioner.class": "only Kafka's own partitioners have a counterpart",
}
_BUFFER_UNSET = "-1"  # Java: let the system choose, which is librdkafka's default too
_JAAS_OPTION = re.compile(r'(\w+)\s*=\s*"((?:[^"\\]|\\.)*)"')


@dataclass(frozen=True, slots=True)
class ClientSettings:
    """Settings for one librdkafka client, and the Java keys that could not be carried over."""

    config: Mapping[str, str]
    ignored: tuple[str, ...] = ()


def translate(kind: ClientKind, java: Mapping[str, str]) -> ClientSettings:
    """Settings for librdkafka from a Java client's.

    Raises:
        ConfigError: A value that must not be ignored (a key store in a Java format, a login module) cannot be used.
    """
    config: dict[str, str] = {}
    ignored: list[str] = []
    for key, value in java.items():
        special = _SPECIAL.get(key)
        if special is not None:
            config.update(special(value, java))
        elif key in _SAME[kind]:
            config[key] = value
        elif key in _RENAMED:
            if value != _BUFFER_UNSET:
                config[_RENAMED[key]] = value
        elif not _SILENT.fullmatch(key):
            ignored.append(key)
    return ClientSettings(config, tuple(ignored))


def settings(
    kind: ClientKind, *, worker: Mapping[str, str], connector: Mapping[str, str] | None = None
) -> ClientSettings:
    """Settings of one client of the framework.

    Args:
        kind: Which client.
        worker: The worker's whole configuration, resolved.
        connector: The connector's whole configuration, resolved; None for the framework's own clients.
    """
    java = dict(FRAMEWORK_DEFAULTS[kind])
    if kind == "admin":
        # Kafka Connect's admin clients take the worker's own connection settings; the others take prefixed ones only.
        java.update({key: value for key, value in worker.items() if key in _SAME["admin"] or key in _SPECIAL})
    if "bootstrap.servers" in worker:
        java["bootstrap.servers"] = worker["bootstrap.servers"]
    java.update(_with_prefix(worker, f"{kind}."))
    if connector is not None:
        java.update(_with_prefix(connector, f"{kind}.override."))
    translated = translate(kind, {key: value.strip() for key, value in java.items()})
    return ClientSettings(with_java_default(kind, translated.config), translated.ignored)


def with_java_default(kind: ClientKind, config: Mapping[str, str]) -> dict[str, str]:
    """Fill in what librdkafka would choose otherwise and refuse in combination."""
    full = dict(config)
    if kind == "producer" and full.get("enable.idempotence", "").lower() == "true":
        full.setdefault("acks", "all")
    if full.get("sasl.mechanism") and "security.protocol" not in full:
        full["security.protocol"] = "plaintext"
    return full


def warn_ignored(where: str, found: ClientSettings) -> None:
    """Log which settings do nothing, each with the reason if it is a known one."""
    for key in found.ignored:
        note = _NOTES.get(key, "librdkafka has no counterpart")
        _log.warning("%s: the client setting %s is ignored: %s.", where, key, note)


def _with_prefix(values: Mapping[str, str], prefix: str) -> dict[str, str]:
    cut = len(prefix)
    found = {key[cut:]: value for key, value in values.items() if key.startswith(prefix)}
    return {key: value for key, value in found.items() if not key.startswith("override.")}


def _jaas(value: str, java: Mapping[str, str]) -> dict[str, str]:
    """User and password out of a JAAS line; other login modules are Java code."""
    options = {name: re.sub(r"\\(.)", r"\1", text) for name, text in _JAAS_OPTION.findall(value)}
    if "PlainLoginModule" in value or "ScramLoginModule" in value:
        if "username" not in options or "password" not in options:
            raise ConfigError(
                "sasl.jaas.config must hold username and password, such as "
                'org.apache.kafka.common.security.plain.PlainLoginModule required username="…" password="…";',
                key="sasl.jaas.config",
            )
        return {"sasl.username": options["username"], "sasl.password": options["password"]}
    if "OAuthBearerLoginModule" in value:
        client = {"clientId": "sasl.oauthbearer.client.id", "clientSecret": "sasl.oauthbearer.client.secret"}
        found = {client[name]: text for name, text in options.items() if name in client}
        return {"sasl.oauthbearer.method": "oidc", **found} if found else {}
    raise ConfigError(
        "sasl.jaas.config names a login module that is Java code; PlainLoginModule, ScramLoginModule and "
        "OAuthBearerLoginModule (with clientId and clientSecret) can be used.",
        key="sasl.jaas.config",
    )


def _truststore(value: str, java: Mapping[str, str]) -> dict[str, str]:
    if java.get("ssl.truststore.type", "JKS").upper() != "PEM" and not value.endswith((".pem", ".crt", ".cer")):
        raise _java_store("ssl.truststore", value)
    return {"ssl.ca.location": value}


def _keystore(value: str, java: Mapping[str, str]) -> dict[str, str]:
    kind = java.get("ssl.keystore.type", "JKS").upper()
    if kind == "PEM" or value.endswith(".pem"):
        return {"ssl.certificate.location": value, "ssl.key.location": value}
    if kind == "PKCS12" or value.endswith((".p12", ".pfx")):
        return {"ssl.keystore.location": value}
    raise _java_store("ssl.keystore", value)


def _java_store(key: str, path: str) -> ConfigError:
    return ConfigError(
        f"{key}.location={path} is a Java key store, which librdkafka cannot read: export it as PEM (keytool "
        f"-importkeystore to PKCS12, then openssl pkcs12) and set {key}.type=PEM.",
        key=f"{key}.location",
    )


def _partitioner(value: str, java: Mapping[str, str]) -> dict[str, str]:
    if value.endswith("RoundRobinPartitioner"):
        return {"partitioner": "random"}
    if not value or value.endswith(("DefaultPartitioner", "UniformStickyPartitioner")):
        return {}
    raise ConfigError(
        f"partitioner.class={value} is a Java class; {_NOTES['partitioner.class']}.", key="partitioner.class"
    )


def _buffer_memory(value: str, java: Mapping[str, str]) -> dict[str, str]:
    if not value.isdecimal():
        raise ConfigError(f"Invalid value {value} for configuration buffer.memory: Not a number of type LONG")
    return {"queue.buffering.max.kbytes": str(max(1, int(value) // 1024))}


def _endpoint_identification(value: str, java: Mapping[str, str]) -> dict[str, str]:
    return {"ssl.endpoint.identification.algorithm": value.lower() or "none"}


_SPECIAL: Mapping[str, Callable[[str, Mapping[str, str]], dict[str, str]]] = {
    "sasl.jaas.config": _jaas,
    "ssl.truststore.location": _truststore,
    "ssl.truststore.password": lambda value, java: {},
    "ssl.keystore.location": _keystore,
    "ssl.endpoint.identification.algorithm": _endpoint_identification,
    "partitioner.class": _partitioner,
    "buffer.memory": _buffer_memory,
    "sasl.login.callback.handler.class": lambda value, java: {},
    "sasl.login.class": lambda value, java: {},
}
