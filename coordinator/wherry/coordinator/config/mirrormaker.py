"""MirrorMaker 2's own file: which flows it names, and the worker and the connectors that each of them is. Pure.

A file names clusters (`clusters = A, B`), says of each how it is reached (`A.bootstrap.servers`), and of each pair what
flows (`A->B.enabled`, `A->B.topics`). Every flow is a Kafka Connect cluster of its own on its target, with the group
`A-mm2`, the topics `mm2-configs.A.internal` and so on, and up to three connectors under fixed names. All of that is
kept to the letter, so that a flow goes on where MirrorMaker has left it, and MirrorMaker where Wherry has.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final

from wherry.contract import mirror
from wherry.contract.errors import ConfigError

CONNECTOR_CLASSES: Final = (mirror.SOURCE_CLASS, mirror.HEARTBEAT_CLASS, mirror.CHECKPOINT_CLASS)
_BYTES: Final = "org.apache.kafka.connect.converters.ByteArrayConverter"
_KINDS: Final = ("producer", "consumer", "admin")
_HEARTBEATS: Final = "emit.heartbeats.enabled"
_ENABLED: Final = "enabled"

# What a cluster says of itself for all its clients; given for none in particular, it holds for each.
_CLIENT_KEYS: Final = frozenset(
    {
        "bootstrap.servers", "security.protocol", "security.providers", "sasl.mechanism", "sasl.jaas.config",
        "sasl.client.callback.handler.class", "sasl.login.callback.handler.class", "sasl.login.class",
        "sasl.kerberos.service.name", "sasl.kerberos.kinit.cmd", "sasl.kerberos.ticket.renew.window.factor",
        "sasl.kerberos.ticket.renew.jitter", "sasl.kerberos.min.time.before.relogin",
        "sasl.login.refresh.window.factor", "sasl.login.refresh.window.jitter",
        "sasl.login.refresh.min.period.seconds", "sasl.login.refresh.buffer.seconds",
        "sasl.login.connect.timeout.ms", "sasl.login.read.timeout.ms", "sasl.login.retry.backoff.max.ms",
        "sasl.login.retry.backoff.ms", "sasl.oauthbearer.scope.claim.name", "sasl.oauthbearer.sub.claim.name",
        "sasl.oauthbearer.token.endpoint.url", "sasl.oauthbearer.jwks.endpoint.url",
        "sasl.oauthbearer.jwks.endpoint.refresh.ms", "sasl.oauthbearer.jwks.endpoint.retry.backoff.max.ms",
        "sasl.oauthbearer.jwks.endpoint.retry.backoff.ms", "sasl.oauthbearer.clock.skew.seconds",
        "sasl.oauthbearer.expected.audience", "sasl.oauthbearer.expected.issuer", "ssl.protocol", "ssl.provider",
        "ssl.cipher.suites", "ssl.enabled.protocols", "ssl.keystore.type", "ssl.keystore.key",
        "ssl.keystore.certificate.chain", "ssl.keystore.location", "ssl.keystore.password", "ssl.key.password",
        "ssl.truststore.type", "ssl.truststore.certificates", "ssl.truststore.location", "ssl.truststore.password",
        "ssl.keymanager.algorithm", "ssl.trustmanager.algorithm", "ssl.endpoint.identification.algorithm",
        "ssl.secure.random.implementation", "ssl.engine.factory.class", "ssl.client.auth",
    }
)  # fmt: skip
_SECURITY_KEYS: Final = _CLIENT_KEYS - {"bootstrap.servers"}
# Keys at the top of a file that reach connectors; any other has to be said of a flow (`A->B.key`).
_CONNECTOR_KEYS: Final = frozenset(
    {
        "tasks.max", "tasks.max.enforce", "key.converter", "value.converter", "header.converter", "transforms",
        "predicates", "config.action.reload", "errors.retry.timeout", "errors.retry.delay.max.ms", "errors.tolerance",
        "errors.log.enable", "errors.log.include.messages", "enabled", "admin.timeout.ms", "replication.policy.class",
        "replication.policy.separator", "replication.policy.internal.topic.separator.enabled",
        "forwarding.admin.class", "topics", "topics.exclude", "config.properties.exclude", "topic.filter.class",
        "config.property.filter.class", "consumer.poll.timeout.ms", "refresh.topics.enabled",
        "refresh.topics.interval.seconds", "sync.topic.configs.enabled", "sync.topic.configs.interval.seconds",
        "sync.topic.acls.enabled", "sync.topic.acls.interval.seconds", "replication.factor",
        "offset-syncs.topic.replication.factor", "offset.lag.max", "offset-syncs.topic.location",
        "emit.offset-syncs.enabled", "heartbeats.replication.enabled", "groups", "groups.exclude",
        "group.filter.class", "refresh.groups.enabled", "refresh.groups.interval.seconds", "emit.checkpoints.enabled",
        "emit.checkpoints.interval.seconds", "sync.group.offsets.enabled", "sync.group.offsets.interval.seconds",
        "checkpoints.topic.replication.factor", "emit.heartbeats.enabled", "emit.heartbeats.interval.seconds",
        "heartbeats.topic.replication.factor",
    }
)  # fmt: skip
# MirrorMaker drops what belongs to a transformation here, and so refuses the connector.
_CONNECTOR_PREFIXES: Final = ("config.providers", "replication.policy", "transforms.", "predicates.")
_WORKER_PREFIXES: Final = (
    "offset.storage", "config.storage", "status.storage", "key.converter", "value.converter", "header.converter",
    "task.", "worker.", "replication.policy", "config.providers",
    # Not MirrorMaker's: what a worker of ours has of its own.
    "wherry.", "plugin.path",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Flow:
    """One direction between two clusters.

    Attributes:
        source: Alias of the cluster that is read.
        target: Alias of the cluster that is written, on which the flow's worker lives.
        worker: Settings of its worker, as of a distributed one.
        connectors: Configurations of its connectors by name.
    """

    source: str
    target: str
    worker: Mapping[str, str]
    connectors: Mapping[str, Mapping[str, str]]

    @property
    def name(self) -> str:
        """How files name it."""
        return f"{self.source}->{self.target}"


def flows_of(values: Mapping[str, str], targets: Iterable[str] = ()) -> list[Flow]:
    """Returns the flows of a file, in the order of its clusters.

    Args:
        values: The file.
        targets: Clusters that are near; flows into others are left to others. None takes all.

    Raises:
        ConfigError: No clusters are named, one has no address, or nothing flows.
    """
    clusters = _names(values)
    if not clusters:
        raise ConfigError("clusters is not set: name the clusters, as in `clusters = A, B`.", key="clusters")
    near = [name for part in targets for each in part.split(",") if (name := each.strip())]
    strange = [name for name in near if name not in clusters]
    if strange:
        raise ConfigError(f"{strange[0]} is not one of the clusters: {', '.join(clusters)}.", key="clusters")
    pairs = [
        (source, target)
        for source, target in itertools.permutations(clusters, 2)
        if _runs(values, source, target) and (not near or target in near)
    ]
    if not pairs:
        example = f"{clusters[0]}->{clusters[1]}" if len(clusters) > 1 else "A->B"
        raise ConfigError(f"Nothing flows: enable a flow, as in `{example}.enabled = true`.", key=f"{example}.enabled")
    for name in dict.fromkeys(itertools.chain.from_iterable(pairs)):
        if not _cluster(values, name).get("bootstrap.servers", "").strip():
            key = f"{name}.bootstrap.servers"
            raise ConfigError(f"{key} is not set; it names the brokers of the cluster {name} as host:port.", key=key)
    return [
        Flow(source, target, _worker(values, source, target), _connectors(values, source, target))
        for source, target in pairs
    ]


def unused(values: Mapping[str, str]) -> list[str]:
    """Keys at the top of a file that reach nobody, as with MirrorMaker: they have to be said of a flow or a cluster."""
    clusters = _names(values)
    reached = (
        *(f"{name}." for name in clusters),
        *(f"{source}->{target}." for source, target in itertools.permutations(clusters, 2)),
        *_CONNECTOR_PREFIXES,
        *_WORKER_PREFIXES,
    )
    known = _CONNECTOR_KEYS | _CLIENT_KEYS | {"clusters", "dedicated.mode.enable.internal.rest"}
    return [key for key in values if key not in known and not key.startswith(reached)]


def _names(values: Mapping[str, str]) -> list[str]:
    return [name for part in values.get("clusters", "").split(",") if (name := part.strip())]


def _runs(values: Mapping[str, str], source: str, target: str) -> bool:
    """Whether a flow has anything to do: one that only beats is wanted, too, for the flow in the other direction."""
    pair = f"{source}->{target}."
    beats = values.get(f"{pair}{_HEARTBEATS}", values.get(_HEARTBEATS, "true"))
    return _is_true(values.get(f"{pair}{_ENABLED}", "false")) or _is_true(beats)


def _connectors(values: Mapping[str, str], source: str, target: str) -> dict[str, dict[str, str]]:
    common = {
        key: value
        for key, value in values.items()
        if key in _CONNECTOR_KEYS or key in _SECURITY_KEYS or key.startswith(_CONNECTOR_PREFIXES)
    }
    for side, alias in (("source", source), ("target", target)):
        for key, value in _cluster(values, alias).items():
            own = key.startswith(tuple(f"{kind}." for kind in _KINDS))
            common[f"{side}.{key}" if own else f"{side}.cluster.{key}"] = value
    aliases = {"source.cluster.alias": source, "target.cluster.alias": target}
    pair = f"{source}->{target}."
    of_pair = _below(values, pair)
    found = {}
    for class_name in CONNECTOR_CLASSES:
        name = class_name.rpartition(".")[2]
        given = {"name": name, "connector.class": class_name, **aliases}
        found[name] = {**given, **common, **of_pair, _ENABLED: of_pair.get(_ENABLED, common.get(_ENABLED, "false"))}
    return found


def _worker(values: Mapping[str, str], source: str, target: str) -> dict[str, str]:
    defaults = {
        "group.id": f"{source}-mm2",
        "client.id": f"{source}->{target}",
        **{f"{kind}.storage.topic": f"mm2-{name}.{source}.internal" for kind, name in _TOPICS.items()},
        **{f"{side}.converter": _BYTES for side in ("key", "value", "header")},
        # Nobody asks MirrorMaker over REST; here it shows what goes on, on a port of its own.
        "listeners": "http://127.0.0.1:0",
    }
    shared = {key: value for key, value in values.items() if key.startswith(_WORKER_PREFIXES)}
    return {**defaults, **shared, **_cluster(values, target)}


_TOPICS: Final = {"config": "configs", "offset": "offsets", "status": "status"}


def _cluster(values: Mapping[str, str], alias: str) -> dict[str, str]:
    """What is said of a cluster; of its clients in general also for each kind of them, where that kind says nothing."""
    own = _below(values, f"{alias}.")
    for key in _CLIENT_KEYS:
        value = own.get(key, values.get(key))
        if value is None:
            continue
        own.setdefault(key, value)
        for kind in _KINDS:
            own.setdefault(f"{kind}.{key}", value)
    return own


def _below(values: Mapping[str, str], prefix: str) -> dict[str, str]:
    return {key.removeprefix(prefix): value for key, value in values.items() if key.startswith(prefix)}


def _is_true(text: str) -> bool:
    return text.strip().lower() == "true"
