"""Records of Kafka Connect's offsets topic: positions of sources as key and value bytes, both ways.

A key is the compact JSON array of the connector's name and the partition map, a value the compact JSON of the offset
map, or null where a position was forgotten. Keys count byte for byte: the same maps in another order of their keys are
another partition, for Kafka Connect too. Pure: bytes in, positions out.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final

from wherry.contract.position import Position, compact_json

PRODUCER_SETTINGS: Final[Mapping[str, str]] = {"partitioner": "murmur2_random"}
"""What a librdkafka producer must be told, so that a key falls into the partition that Java's producer gives it:
compaction works within a partition, and a record elsewhere would never replace the old one."""

_DECODER: Final = json.JSONDecoder()


@dataclass(frozen=True, slots=True)
class OffsetRecord:
    """One record of an offsets topic; a value of None forgets the position."""

    key: bytes
    value: bytes | None


def offset_record(connector: str, position: Position) -> OffsetRecord:
    """The record that stores a position of a connector."""
    value = None if position.offset is None else position.offset.encode()
    return OffsetRecord(_key(connector, position.partition), value)


def offset_records(connector: str, positions: Iterable[Position]) -> list[OffsetRecord]:
    """The records that store positions of a connector, in their order."""
    return [offset_record(connector, position) for position in positions]


def parse_offset_record(key: bytes | None, value: bytes | None) -> tuple[str, Position] | None:
    """The connector and the position that a record stores; None for what Kafka Connect would not find either."""
    named = _parse_key(key)
    if named is None:
        return None
    connector, partition = named
    if value is None:
        return connector, Position(partition, None)
    try:
        text = value.decode()
        offset = json.loads(text)
    except ValueError:
        return None
    if offset is None:
        return connector, Position(partition, None)
    return (connector, Position(partition, text)) if isinstance(offset, dict) else None


class OffsetLog:
    """What the records of an offsets topic, taken in order, say of every connector. Not safe for many threads."""

    def __init__(self) -> None:
        self._positions: dict[str, dict[str, Position]] = {}

    def apply(self, key: bytes | None, value: bytes | None) -> bool:
        """Take in one record; False when it is none of a position, and was left aside."""
        parsed = parse_offset_record(key, value)
        if parsed is None:
            return False
        connector, position = parsed
        positions = self._positions.setdefault(connector, {})
        if position.offset is None:
            positions.pop(position.partition, None)
            if not positions:
                del self._positions[connector]
        else:
            positions[position.partition] = position
        return True

    def positions(self, connector: str) -> list[Position]:
        """All positions of a connector, in the order they were first written."""
        return list(self._positions.get(connector, {}).values())

    def connectors(self) -> list[str]:
        """Connectors that have positions."""
        return list(self._positions)


def _key(connector: str, partition: str) -> bytes:
    return f"[{compact_json(connector)},{partition}]".encode()


def _parse_key(key: bytes | None) -> tuple[str, str] | None:
    if key is None or not key.startswith(b'["'):
        return None
    try:
        text = key.decode()
        connector, end = _DECODER.raw_decode(text, 1)
        partition = text[end + 1 : -1]
        is_map = partition.startswith("{") and isinstance(json.loads(partition), dict)
    except ValueError:
        return None
    if not is_map or not isinstance(connector, str) or _key(connector, partition) != key:
        return None  # written in another way (spaces, escapes): nobody looks it up under these bytes
    return connector, partition
