"""Kafka client settings: from the Java clients' keys, which people write, to librdkafka's, which we run.

Decides translation and precedence, which are Kafka Connect's: the framework's default, then the worker's `consumer.`,
`producer.` or `admin.` prefix, then the connector's `….override.` keys. Makes no client and logs nothing. What becomes
of each key stands in `kafka_client_keys.py`; what has no effect is named in the answer, so that nobody believes it
works; what must not be ignored (a key store that can't be read, a login module in Java) is refused.
"""

from __future__ import annotations

import difflib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final

from wherry.contract.errors import ConfigError
from wherry.contract.kafka_client_keys import CLIENT_KEYS, FORMER_KEYS, ClientKind, Fate
from wherry.contract.kafka_security import sasl, tls

__all__ = ["CLIENT_KINDS", "ClientConfig", "ClientKind", "ClientValue", "resolve", "translate"]

ClientValue = str | int | bool
CLIENT_KINDS: Final[tuple[ClientKind, ...]] = ("producer", "consumer", "admin")

# Java's defaults, where librdkafka's differ and it shows: a broker that is back is found within a second.
JAVA_DEFAULTS: Final[Mapping[str, str]] = {"reconnect.backoff.ms": "50", "reconnect.backoff.max.ms": "1000"}

# librdkafka's own keys may be set directly.
_NATIVE_PREFIXES: Final = (
    "socket.", "queue.", "queued.", "broker.", "topic.metadata.", "enable.ssl.", "ssl.ca.", "ssl.certificate.",
    "ssl.key.", "debug", "fetch.", "message.", "sticky.", "https.",
)  # fmt: skip
_NATIVE: Final = frozenset(
    [
        "partitioner",
        "compression.level",
        "sasl.username",
        "sasl.password",
        "sasl.oauthbearer.method",
        "sasl.oauthbearer.client.id",
        "sasl.oauthbearer.client.secret",
        "sasl.oauthbearer.extensions",
        "sasl.oauthbearer.grant.type",
        "sasl.kerberos.keytab",
        "sasl.kerberos.principal",
        "ssl.curves.list",
        "ssl.sigalgs.list",
        "ssl.providers",
        "client.rack",
    ]
)
_FREE_PREFIX: Final = "metrics.context."
_NO_NOTE: Final = "librdkafka has no counterpart"
_LIKENESS: Final = 0.8
_BUFFER_UNSET: Final = "-1"  # Java: let the system choose, which is librdkafka's default too
_COMPRESSION_LEVEL_MAX: Final = 12  # librdkafka's, of all codecs
_SOCKET_TIMEOUT_MS_MAX: Final = 300_000  # librdkafka's own bound
_SHORTEST_MS: Final = 1000  # librdkafka's own bound of some times
_FETCH_WAIT_MS: Final = 500  # Java's default


@dataclass(frozen=True, slots=True)
class ClientConfig:
    """Settings of one librdkafka client.

    Attributes:
        values: What the client is made with.
        ignored: Java keys that could not be carried over, for a warning.
        unused: Java keys that have nothing to say here, for a remark.
        kind: Which client.
    """

    values: Mapping[str, ClientValue]
    ignored: tuple[str, ...] = ()
    unused: tuple[str, ...] = ()
    kind: ClientKind = "admin"

    def warnings(self) -> list[str]:
        """What to tell about the ignored keys, one clause each, with the reason."""
        return [f"the client setting {key} is ignored: {_why(self.kind, key)}" for key in self.ignored]

    def remarks(self) -> list[str]:
        """What to tell about the keys without meaning here, one clause each, with the reason."""
        return [f"the client setting {key} has no meaning here: {_why(self.kind, key)}" for key in self.unused]


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
        ConfigError: A value that must not be ignored (a key store, a login module in Java) can't be used.
    """
    java = {key: value.strip() for key, value in java.items()}
    values: dict[str, ClientValue] = {}
    ignored: list[str] = []
    unused: list[str] = []
    for key, value in java.items():
        known = CLIENT_KEYS[kind].get(key)
        if known is None:
            if key in _NATIVE or key.startswith(_NATIVE_PREFIXES):
                values[key] = value
            else:
                (unused if key in FORMER_KEYS or key.startswith(_FREE_PREFIX) else ignored).append(key)
        elif known.native:
            if value != _BUFFER_UNSET or not key.endswith(".buffer.bytes"):
                values[known.native] = value
        elif known.fate is Fate.UNAVAILABLE:
            if value:
                ignored.append(key)
        elif known.fate is Fate.MEANINGLESS:
            unused.append(key)
        elif key in _SPECIAL:
            values.update(_SPECIAL[key](value, java))
    values.update(tls(java))
    values.update(sasl(java))
    if {"sasl.oauthbearer.client.id", "sasl.oauthbearer.token.endpoint.url"} & values.keys():
        values.setdefault("sasl.oauthbearer.method", "oidc")
    return ClientConfig(values, tuple(ignored), tuple(unused), kind)


def _why(kind: ClientKind, key: str) -> str:
    known = CLIENT_KEYS[kind].get(key)
    if known is not None:
        return known.note
    if key in FORMER_KEYS:
        return FORMER_KEYS[key]
    if key.startswith(_FREE_PREFIX):
        return "figures are gathered by Wherry, not by the client"
    near = difflib.get_close_matches(key, CLIENT_KEYS[kind], n=1, cutoff=_LIKENESS)
    if near:
        return f"no {kind} has it; did you mean {near[0]}?"
    others = [other for other in CLIENT_KINDS if key in CLIENT_KEYS[other]]
    return f"it is a setting of a {others[0]}, not of a {kind}" if others else _NO_NOTE


def _is_connection(key: str) -> bool:
    known = CLIENT_KEYS["admin"].get(key)
    used = known is not None and known.fate in (Fate.HONOURED, Fate.OTHERWISE)
    return used or key in _NATIVE or key.startswith(("sasl.", "ssl."))


def _with_prefix(values: Mapping[str, str], prefix: str) -> dict[str, str]:
    return {key.removeprefix(prefix): value for key, value in values.items() if key.startswith(prefix)}


def _number(key: str, value: str, type_: str = "INT") -> int:
    try:
        return int(value)
    except ValueError:
        raise ConfigError(
            f"Invalid value {value} for configuration {key}: Not a number of type {type_}", key=key
        ) from None


def _partitioner(value: str, java: Mapping[str, str]) -> dict[str, str]:
    if value.endswith("RoundRobinPartitioner"):
        return {"partitioner": "random"}
    if not value or value.endswith(("DefaultPartitioner", "UniformStickyPartitioner")):
        return {}
    raise ConfigError(
        f"partitioner.class={value} is a Java class; only Kafka's own partitioners have a counterpart.",
        key="partitioner.class",
    )


def _ignore_keys(value: str, java: Mapping[str, str]) -> dict[str, str]:
    return {"partitioner": "random"} if value.lower() == "true" else {}


def _buffer_memory(value: str, java: Mapping[str, str]) -> dict[str, str]:
    return {"queue.buffering.max.kbytes": str(max(1, _number("buffer.memory", value, "LONG") // 1024))}


def _offset_reset(value: str, java: Mapping[str, str]) -> dict[str, str]:
    known = {"none": "error", "earliest": "earliest", "latest": "latest"}
    if value.lower() not in known:
        raise ConfigError(
            f"Invalid value {value} for configuration auto.offset.reset: earliest, latest and none can be used here.",
            key="auto.offset.reset",
        )
    return {"auto.offset.reset": known[value.lower()]}


def _at_least(key: str) -> Callable[[str, Mapping[str, str]], dict[str, str]]:
    """Librdkafka refuses less than a second."""
    return lambda value, java: {key: str(max(_number(key, value), _SHORTEST_MS))}


def _request_timeout(value: str, java: Mapping[str, str]) -> dict[str, str]:
    """A broker may hold a fetch so long without being thought dead."""
    fetch_ms = _number("fetch.max.wait.ms", java.get("fetch.max.wait.ms", str(_FETCH_WAIT_MS)))
    timeout_ms = max(_number("request.timeout.ms", value), fetch_ms + _SHORTEST_MS)
    return {"socket.timeout.ms": str(min(timeout_ms, _SOCKET_TIMEOUT_MS_MAX))}


def _level_of(codec: str) -> Callable[[str, Mapping[str, str]], dict[str, str]]:
    """Librdkafka has one level; Java one of each codec, of which that in use counts."""

    def level(value: str, java: Mapping[str, str]) -> dict[str, str]:
        if java.get("compression.type", "none").lower() != codec:
            return {}
        number = _number(f"compression.{codec}.level", value)
        return {"compression.level": str(max(-1, min(number, _COMPRESSION_LEVEL_MAX)))}

    return level


# How the keys that are honoured otherwise are, but for TLS and SASL, which are seen as a whole.
_SPECIAL: Final[Mapping[str, Callable[[str, Mapping[str, str]], dict[str, str]]]] = {
    "auto.offset.reset": _offset_reset,
    "buffer.memory": _buffer_memory,
    "compression.gzip.level": _level_of("gzip"),
    "compression.lz4.level": _level_of("lz4"),
    "compression.zstd.level": _level_of("zstd"),
    "partitioner.class": _partitioner,
    "partitioner.ignore.keys": _ignore_keys,
    "request.timeout.ms": _request_timeout,
    "socket.connection.setup.timeout.ms": _at_least("socket.connection.setup.timeout.ms"),
    "transaction.timeout.ms": _at_least("transaction.timeout.ms"),
}
