"""What a request to alter offsets may say, by the type of the connector.

Decides shapes and messages (Kafka Connect's); never whether the positions exist or are wise.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from wherry.contract.errors import ConfigError
from wherry.contract.position import Position, kafka_position
from wherry.coordinator.api import ApiError, BadRequestError

NOT_STOPPED = (
    "Connectors must be in the STOPPED state before their offsets can be modified. This can be done for the specified "
    "connector by issuing a 'PUT' request to the '/connectors/{name}/stop' endpoint"
)
ALTERED = "The offsets for this connector have been altered successfully"
RESET = "The offsets for this connector have been reset successfully"
NO_PARTITION = "null"
"""What stands for a partition that a request leaves out, or gives as null."""
_INT_MAX = 2**31 - 1
_LONG_MAX = 2**63 - 1


def sink_positions(positions: Sequence[Position]) -> list[Position]:
    """Positions of a sink in their normal form; numbers may come as texts, and other keys are left out.

    Raises:
        BadRequestError: A topic, partition or offset is missing or no number.
    """
    return [_sink_position(position) for position in positions]


def source_positions(positions: Sequence[Position]) -> list[Position]:
    """Positions of a source as they are stored: without those of no partition, which mean nothing.

    Raises:
        ApiError: A partition or offset holds more than plain values, or a partition is missing. The status is 500,
            as in the real worker, where a connector's own check tells it.
    """
    for position in positions:
        for fields in () if position.partition == NO_PARTITION else (position.partition_map,):
            _check_plain(fields)
        _check_plain(position.offset_map or {})
    if any(position.partition == NO_PARTITION and position.offset is not None for position in positions):
        raise ApiError("Partition objects cannot be null")
    return [position for position in positions if position.partition != NO_PARTITION]


def failed_to_alter(name: str, positions: Sequence[Position]) -> str:
    """The message when Kafka took a sink's positions not: it is another for numbers that no topic can have."""
    numbers = [position.offset_map for position in positions]
    if any(number is not None and int(number["kafka_offset"]) < 0 for number in numbers):
        return f"Failed to modify offsets for sink connector {name}"
    return f"Failed to alter consumer group offsets for connector {name}"


def _check_plain(fields: Mapping[str, Any]) -> None:
    for name, value in fields.items():
        kind = None
        if isinstance(value, Mapping):
            kind = "MAP"
        elif isinstance(value, list):
            kind = "ARRAY"
        elif isinstance(value, int) and not -_LONG_MAX - 1 <= value <= _LONG_MAX:
            kind = "class java.math.BigInteger"
        if kind:
            raise ApiError(f"Offsets may only contain primitive types as values, but field {name} contains {kind}")


def _sink_position(position: Position) -> Position:
    if position.partition == NO_PARTITION:
        raise BadRequestError("The partition for a sink connector offset cannot be null or missing")
    try:
        partition, offset = position.partition_map, position.offset_map
    except ConfigError as error:
        raise BadRequestError(error.message) from error
    if "kafka_topic" not in partition or "kafka_partition" not in partition:
        raise BadRequestError(
            "The partition for a sink connector offset must contain the keys 'kafka_topic' and 'kafka_partition'"
        )
    topic, number = partition["kafka_topic"], partition["kafka_partition"]
    if topic is None:
        raise BadRequestError("Kafka topic names must be valid strings and may not be null")
    if number is None:
        raise BadRequestError("Kafka partitions must be valid numbers and may not be null")
    parsed = _number(number, _INT_MAX)
    if parsed is None:
        raise BadRequestError(_unparsable("partition", "Partition", number))
    if offset is None:
        return kafka_position(_text(topic), parsed, None)
    if "kafka_offset" not in offset:
        raise BadRequestError("The offset for a sink connector should either be null or contain the key 'kafka_offset'")
    wanted = _number(offset["kafka_offset"], _LONG_MAX)
    if wanted is None:
        raise BadRequestError(_unparsable("offset", "Offset", offset["kafka_offset"]))
    return kafka_position(_text(topic), parsed, wanted)


def _unparsable(what: str, subject: str, value: Any) -> str:
    return (
        f"Failed to parse the following Kafka {what} value in the provided offsets: '{_text(value)}'. "
        f"{subject} values for sink connectors need to be integers."
    )


def _number(value: Any, maximum: int) -> int | None:
    """An integer given as a number or a text, as Java's `parseInt` takes it; None when it is none."""
    text = _text(value)
    digits = text[1:] if text[:1] in ("+", "-") else text
    if not (digits.isascii() and digits.isdigit()):
        return None
    number = int(text)
    return number if -maximum - 1 <= number <= maximum else None


def _text(value: Any) -> str:
    """A value as Java prints it, for that is how messages quote it."""
    if isinstance(value, str):
        return value
    from wherry.contract.java_text import java_text  # not above: it needs pyarrow, for which a coordinator has no use

    return java_text(value)
