"""Positions: where one partition has been read or written to, in Kafka Connect's shape and bytes.

A partition is identified by its serialized bytes, so `compact_json` writes what Kafka Connect's JsonConverter would
write: keys in the order given, no spaces, Java's way of escaping and of printing doubles.
"""

from __future__ import annotations

import contextlib
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, Final

import orjson

from wherry.contract.errors import ConfigError
from wherry.contract.java import double_text

JsonValue = Any

_PLAIN_TYPES: Final = frozenset({str, int, bool, type(None)})
# Any escape, so that the second half of an escaped backslash is never taken for the start of one.
_ESCAPE: Final = re.compile(r"\\(?:u([0-9a-f]{4})|.)")
_HALF: Final = re.compile(r"([\ud800-\udfff])")
_BEYOND: Final = re.compile("[\U00010000-\U0010ffff]")
_KAFKA_TOPIC: Final = "kafka_topic"
_KAFKA_PARTITION: Final = "kafka_partition"
_KAFKA_OFFSET: Final = "kafka_offset"


@dataclass(frozen=True, slots=True)
class Position:
    """Where a partition stands.

    Attributes:
        partition: The partition as compact JSON; compared byte for byte.
        offset: The offset as compact JSON; None means "no position" (the beginning; in a reset: forget it).
    """

    partition: str
    offset: str | None

    @classmethod
    def of(cls, partition: Mapping[str, JsonValue], offset: Mapping[str, JsonValue] | None) -> Position:
        """Makes a position from maps; the order of their keys is kept."""
        return cls(compact_json(partition), None if offset is None else compact_json(offset))

    @property
    def partition_map(self) -> dict[str, JsonValue]:
        """The partition as a map.

        Raises:
            ConfigError: It isn't a JSON object.
        """
        return _object(self.partition, "partition")

    @property
    def offset_map(self) -> dict[str, JsonValue] | None:
        """The offset as a map; None when there is none.

        Raises:
            ConfigError: It isn't a JSON object.
        """
        return None if self.offset is None else _object(self.offset, "offset")


@dataclass(frozen=True, slots=True, order=True)
class TopicPartition:
    """One partition of a Kafka topic."""

    topic: str
    partition: int


def kept_and_forgotten(positions: Sequence[Position]) -> tuple[list[Position], list[Position]]:
    """Positions with an offset, and those whose partition is to be forgotten."""
    return (
        [position for position in positions if position.offset is not None],
        [position for position in positions if position.offset is None],
    )


def compact_json(value: JsonValue) -> str:
    """Serializes a value as Kafka Connect's JsonConverter does.

    Args:
        value: What JSON can hold; mappings keep the order of their keys.

    Returns:
        JSON text without spaces, with characters of the basic plane as they are, those beyond it as two escapes.

    Raises:
        ConfigError: The value holds something that JSON can't.
    """
    if type(value) is dict and all(type(item) in _PLAIN_TYPES for item in value.values()):
        # The usual case: a flat map without doubles, where orjson writes what Jackson would. It refuses integers
        # beyond 64 bits; the other way takes them.
        with contextlib.suppress(TypeError):
            return _jackson_escapes(orjson.dumps(value).decode())
    parts: list[str] = []
    try:
        _write(value, parts)
    except TypeError as error:
        raise ConfigError(f"{value!r} can't be written as JSON: {error}.") from error
    return "".join(parts)


def kafka_partition_json(topic: str, partition: int) -> str:
    """Returns the compact JSON that names a Kafka topic partition."""
    return compact_json({_KAFKA_TOPIC: topic, _KAFKA_PARTITION: partition})


def kafka_position(topic: str, partition: int, offset: int | None) -> Position:
    """Returns the position of a Kafka topic partition.

    Args:
        topic: The topic.
        partition: The partition's number.
        offset: The next offset to read; None means "no position".
    """
    return Position(
        kafka_partition_json(topic, partition), None if offset is None else f'{{"{_KAFKA_OFFSET}":{int(offset)}}}'
    )


def parse_kafka_position(position: Position) -> tuple[TopicPartition, int | None]:
    """Reads the position of a Kafka topic partition.

    Returns:
        The topic partition, and the next offset to read or None.

    Raises:
        ConfigError: The position isn't one of a Kafka topic partition; the sentence says what is missing.
    """
    partition = position.partition_map
    topic, number = partition.get(_KAFKA_TOPIC), partition.get(_KAFKA_PARTITION)
    if not isinstance(topic, str) or not isinstance(number, int) or isinstance(number, bool):
        raise ConfigError(
            f"{position.partition} doesn't name a Kafka topic partition; "
            '{"kafka_topic":"t","kafka_partition":0} would.'
        )
    offsets = position.offset_map
    if offsets is None:
        return TopicPartition(topic, number), None
    offset = offsets.get(_KAFKA_OFFSET)
    if not isinstance(offset, int) or isinstance(offset, bool):
        raise ConfigError(f'{position.offset} isn\'t a Kafka offset; {{"kafka_offset":0}} would be.')
    return TopicPartition(topic, number), offset


def _object(text: str, what: str) -> dict[str, JsonValue]:
    try:
        value = json.loads(text)
    except ValueError as error:
        raise ConfigError(f"The {what} {text!r} isn't JSON: {error}.") from error
    if not isinstance(value, dict):
        raise ConfigError(f"The {what} {text!r} isn't a JSON object.")
    return value


def _write(value: JsonValue, parts: list[str]) -> None:
    """Appends the exact text of a value: the slow, complete path."""
    if isinstance(value, Mapping):
        separator = "{"
        for key, item in value.items():
            if not isinstance(key, str):
                raise TypeError(f"the key {key!r} isn't a text")
            parts.append(separator)
            parts.append(json_string(key))
            parts.append(":")
            _write(item, parts)
            separator = ","
        parts.append("}" if value else "{}")
    elif isinstance(value, (list, tuple)):
        separator = "["
        for item in value:
            parts.append(separator)
            _write(item, parts)
            separator = ","
        parts.append("]" if value else "[]")
    elif isinstance(value, str):
        parts.append(json_string(value))
    elif value is None or isinstance(value, bool):
        parts.append({None: "null", True: "true", False: "false"}[value])
    elif isinstance(value, int):
        parts.append(str(int(value)))
    elif isinstance(value, float):
        parts.append(java_double(value))
    elif isinstance(value, Decimal):
        parts.append(str(value))
    else:
        raise TypeError(f"{type(value).__name__} isn't a JSON type")


def json_string(value: str) -> str:
    """Returns a text as a JSON string, as Jackson writes it."""
    try:
        return _jackson_escapes(orjson.dumps(value).decode())
    except TypeError:
        # Half a pair of surrogates, which UTF-8 can't hold: Jackson escapes it.
        parts = _HALF.split(value)
        texts = [f"\\u{ord(part):04X}" if at % 2 else json_string(part)[1:-1] for at, part in enumerate(parts)]
        return f'"{"".join(texts)}"'


def _jackson_escapes(text: str) -> str:
    """Writes control characters with upper-case digits, and what lies beyond the basic plane as two escapes."""
    if "\\u00" in text:
        text = _ESCAPE.sub(_upper_escape, text)
    return text if _BEYOND.search(text) is None else _BEYOND.sub(_surrogates, text)


def _upper_escape(match: re.Match[str]) -> str:
    return f"\\u{match[1].upper()}" if match[1] else match[0]


def _surrogates(match: re.Match[str]) -> str:
    high, low = divmod(ord(match[0]) - 0x10000, 0x400)
    return f"\\u{0xD800 + high:04X}\\u{0xDC00 + low:04X}"


def java_double(value: float) -> str:
    """Prints a double as Java's `Double.toString` (19 and later) does, and as JSON where it isn't a number.

    Jackson quotes NaN and the infinities.
    """
    if value != value:
        return '"NaN"'
    if value in (float("inf"), float("-inf")):
        return '"Infinity"' if value > 0 else '"-Infinity"'
    return double_text(value)
