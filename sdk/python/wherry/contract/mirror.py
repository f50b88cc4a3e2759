"""What MirrorMaker 2 agrees on between clusters: names of topics, records of its internal topics, its positions.

Kept so that its tools and client library read what we write, and we read what it has written: remote topics are named
by a policy, offset syncs and checkpoints and heartbeats are Kafka's own binary structures (big-endian; a text is its
length in 16 bits and its UTF-8), and a position says which offset of the source cluster was mirrored last.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from wherry.contract.errors import ConfigError
from wherry.contract.position import Position

SOURCE_CLASS: Final = "org.apache.kafka.connect.mirror.MirrorSourceConnector"
CHECKPOINT_CLASS: Final = "org.apache.kafka.connect.mirror.MirrorCheckpointConnector"
HEARTBEAT_CLASS: Final = "org.apache.kafka.connect.mirror.MirrorHeartbeatConnector"
HEARTBEATS_TOPIC: Final = "heartbeats"
DEFAULT_POLICY: Final = "org.apache.kafka.connect.mirror.DefaultReplicationPolicy"
IDENTITY_POLICY: Final = "org.apache.kafka.connect.mirror.IdentityReplicationPolicy"

_VERSION: Final = 0
_SHORT, _INT, _LONG = struct.Struct(">h"), struct.Struct(">i"), struct.Struct(">q")


@dataclass(frozen=True, slots=True)
class Policy:
    """How topics of one cluster are named in another.

    Attributes:
        identity: Names stay as they are; only heartbeats are marked.
        separator: Stands between alias and topic.
        internal_separator: What stands in the names of internal topics.
        source: Alias of the cluster that is read, which an identity policy can't tell from a name.
    """

    identity: bool = False
    separator: str = "."
    internal_separator: str = "."
    source: str = ""

    @classmethod
    def of(cls, config: Mapping[str, str]) -> Policy:
        """Reads a connector's keys.

        Raises:
            ConfigError: The policy is a Java class of somebody else's.
        """
        name = config.get("replication.policy.class", DEFAULT_POLICY).strip()
        if name not in (DEFAULT_POLICY, IDENTITY_POLICY):
            raise ConfigError(
                f"Invalid value {name} for configuration replication.policy.class: {DEFAULT_POLICY} and "
                f"{IDENTITY_POLICY} are there; others are Java classes.",
                key="replication.policy.class",
            )
        separator = config.get("replication.policy.separator", ".")
        own = config.get("replication.policy.internal.topic.separator.enabled", "true").strip().lower() != "false"
        source = config.get("source.cluster.alias", "").strip()
        return cls(name == IDENTITY_POLICY, separator, separator if own else ".", source)

    def remote(self, alias: str, topic: str) -> str:
        """Name that a topic of the cluster `alias` has in other clusters."""
        if self.identity and not self.is_heartbeats(topic):
            return topic
        return f"{alias}{self.separator}{topic}"

    def origin(self, topic: str) -> str | None:
        """Alias of the cluster that a remote topic comes from; None if it is none."""
        if self.identity and not self.is_heartbeats(topic):
            return self.source or None
        alias, separator, rest = topic.partition(self.separator)
        return alias if separator and rest else None

    def is_heartbeats(self, topic: str) -> bool:
        """Whether a topic holds heartbeats, of this cluster or of another."""
        return topic == HEARTBEATS_TOPIC or topic.endswith(f"{self.separator}{HEARTBEATS_TOPIC}")

    def is_internal(self, topic: str) -> bool:
        """Whether a topic belongs to MirrorMaker or Kafka Connect themselves."""
        mark = self.internal_separator
        mm2 = topic.startswith("mm2") and topic.endswith(f"{mark}internal")
        return mm2 or self.is_checkpoints(topic) or topic.endswith(("-internal", ".internal")) or topic.startswith("__")

    def is_checkpoints(self, topic: str) -> bool:
        """Whether a topic holds checkpoints."""
        return topic.endswith(f"{self.internal_separator}checkpoints{self.internal_separator}internal")

    def offset_syncs(self, other: str) -> str:
        """Topic of offset syncs; `other` is the cluster at the other end of the flow, seen from where it lies."""
        return f"mm2-offset-syncs{self.internal_separator}{other}{self.internal_separator}internal"

    def checkpoints(self, source: str) -> str:
        """Topic, in the target cluster, of checkpoints of groups of the cluster `source`."""
        return f"{source}{self.internal_separator}checkpoints{self.internal_separator}internal"


@dataclass(frozen=True, slots=True)
class OffsetSync:
    """Says that one record lies at two offsets: of the source cluster's partition and of its copy."""

    topic: str
    partition: int
    upstream: int
    downstream: int

    def record(self) -> tuple[bytes, bytes]:
        """Key and value."""
        return _text(self.topic) + _INT.pack(self.partition), _LONG.pack(self.upstream) + _LONG.pack(self.downstream)

    @classmethod
    def parse(cls, key: bytes, value: bytes) -> OffsetSync:
        """Reads a record.

        Raises:
            ValueError: It is none.
        """
        reader, offsets = _Reader(key), _Reader(value)
        return cls(reader.text(), reader.number(_INT), offsets.number(_LONG), offsets.number(_LONG))


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """Where a consumer group of the source cluster stands in a remote topic."""

    group: str
    topic: str
    partition: int
    upstream: int
    downstream: int
    metadata: str = ""

    def record(self) -> tuple[bytes, bytes]:
        """Key and value."""
        key = _text(self.group) + _text(self.topic) + _INT.pack(self.partition)
        offsets = _LONG.pack(self.upstream) + _LONG.pack(self.downstream)
        return key, _SHORT.pack(_VERSION) + offsets + _text(self.metadata)

    @classmethod
    def parse(cls, key: bytes, value: bytes) -> Checkpoint:
        """Reads a record.

        Raises:
            ValueError: It is none.
        """
        names, body = _Reader(key), _Reader(value)
        _check_version(body.number(_SHORT))
        group, topic, partition = names.text(), names.text(), names.number(_INT)
        return cls(group, topic, partition, body.number(_LONG), body.number(_LONG), body.text())


@dataclass(frozen=True, slots=True)
class Heartbeat:
    """Says that the flow from one cluster to another was alive at a time."""

    source: str
    target: str
    timestamp_ms: int

    def record(self) -> tuple[bytes, bytes]:
        """Key and value."""
        return _text(self.source) + _text(self.target), _SHORT.pack(_VERSION) + _LONG.pack(self.timestamp_ms)

    @classmethod
    def parse(cls, key: bytes, value: bytes) -> Heartbeat:
        """Reads a record.

        Raises:
            ValueError: It is none.
        """
        names, body = _Reader(key), _Reader(value)
        _check_version(body.number(_SHORT))
        return cls(names.text(), names.text(), body.number(_LONG))


def mirror_partition(cluster: str, topic: str, partition: int) -> dict[str, str | int]:
    """Names a partition of a cluster, with its keys in the order in which Java walks over them."""
    return {"cluster": cluster, "partition": partition, "topic": topic}


def mirror_position(cluster: str, topic: str, partition: int, offset: int | None) -> Position:
    """The position after a record: unlike Kafka's own, it holds the offset of that record."""
    return Position.of(mirror_partition(cluster, topic, partition), None if offset is None else {"offset": offset})


def parse_mirror_position(position: Position) -> tuple[str, str, int, int | None]:
    """Cluster, topic, partition, and the offset of the record mirrored last or None.

    Raises:
        ConfigError: The position isn't one of a mirror.
    """
    partition, offsets = position.partition_map, position.offset_map
    cluster, topic, number = partition.get("cluster"), partition.get("topic"), partition.get("partition")
    offset = None if offsets is None else offsets.get("offset")
    sound = isinstance(cluster, str) and isinstance(topic, str) and isinstance(number, int)
    if not sound or not (offset is None or isinstance(offset, int)):
        raise ConfigError(
            f"{position.partition} with {position.offset} is no position of a mirror; "
            '{"cluster":"A","partition":0,"topic":"t"} with {"offset":0} would be.'
        )
    return str(cluster), str(topic), int(number), offset  # type: ignore[arg-type]  # checked above


def client_settings(config: Mapping[str, str], cluster: str, kind: str) -> dict[str, str]:
    """A Java client's settings for one of the two clusters, from a connector's keys.

    Args:
        config: The connector's configuration.
        cluster: `source` or `target`.
        kind: `consumer`, `producer` or `admin`.
    """
    settings: dict[str, str] = {}
    own = {f"{cluster}.{each}." for each in ("consumer", "producer", "admin", "cluster")}
    for prefix in (f"{cluster}.cluster.", f"{kind}.", f"{cluster}.{kind}."):
        for key, value in config.items():
            if key.startswith(prefix) and not (prefix == f"{kind}." and key.startswith(tuple(own))):
                settings[key.removeprefix(prefix)] = value
    settings.pop("alias", None)
    return {key: value for key, value in settings.items() if not key.startswith("override.")}


def _text(text: str) -> bytes:
    data = text.encode()
    return _SHORT.pack(len(data)) + data


def _check_version(version: int) -> None:
    if version != _VERSION:
        raise ValueError(f"records of version {version} are not known")


class _Reader:
    """Takes fields off the front of a record's bytes."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._at = 0

    def number(self, kind: struct.Struct) -> int:
        try:
            (value,) = kind.unpack_from(self._data, self._at)
        except struct.error as error:
            raise ValueError(f"the record ends after {len(self._data)} bytes: {error}") from None
        self._at += kind.size
        return int(value)

    def text(self) -> str:
        size = self.number(_SHORT)
        end = self._at + size
        if size < 0 or end > len(self._data):
            raise ValueError(f"a text of {size} bytes does not fit into the record")
        text = self._data[self._at : end].decode()
        self._at = end
        return text
