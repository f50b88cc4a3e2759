"""What a request to alter offsets may say, by the type of the connector.

Decides shapes and messages (Kafka Connect's); never whether the positions exist or are wise.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from wherry.contract.errors import ConfigError
from wherry.contract.position import Position, kafka_position
from wherry.coordinator.api import BadRequestError

NOT_STOPPED = (
    "Connectors must be in the STOPPED state before their offsets can be modified. This can be done for the specified "
    "connector by issuing a 'PUT' request to the '/connectors/{name}/stop' endpoint"
)
ALTERED = "The offsets for this connector have been altered successfully"
RESET = "The offsets for this connector have been reset successfully"
_INT_MAX = 2**31 - 1
_LONG_MAX = 2**63 - 1


def sink_positions(positions: Sequence[Position]) -> list[Position]:
    """Positions of a sink in their normal form; numbers may come as texts, and other keys are left out.

    Raises:
        BadRequestError: A topic, partition or offset is missing or no number.
    """
    return [_sink_position(position) for position in positions]


def _sink_position(position: Position) -> Position:
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
    if offset.get("kafka_offset") is None:
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
    return value if isinstance(value, str) else str(value).lower() if isinstance(value, bool) else str(value)
