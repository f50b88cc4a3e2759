"""Messages of the contract into domain types.

Numbers of enums that this side doesn't know (a newer peer's) become the value that the proto names for "not set".
"""

from __future__ import annotations

import enum
from collections.abc import Iterable
from typing import TypeVar

from wherry.connector.v1 import common_pb2, frame_pb2, plugin_pb2, source_pb2
from wherry.contract import limits as limits_module
from wherry.contract.batch import Constants, Mark, RowError
from wherry.contract.config import (
    ConfigDef,
    ConfigKey,
    ConfigType,
    Importance,
    NonEmptyValidator,
    OneOfValidator,
    PatternValidator,
    RangeValidator,
    Validator,
    Width,
)
from wherry.contract.description import Capabilities, ClassDescription, Role, SinkClass, SourceClass
from wherry.contract.errors import ConnectorBugError, ErrorClass
from wherry.contract.plan import Plan, Work
from wherry.contract.position import Position

_Enum = TypeVar("_Enum", bound=enum.IntEnum)


def position(message: common_pb2.Position) -> Position:
    """Converts a position."""
    return Position(message.partition_json, message.offset_json if message.HasField("offset_json") else None)


def positions(messages: Iterable[common_pb2.Position]) -> tuple[Position, ...]:
    """Converts positions."""
    return tuple(position(message) for message in messages)


def mark(message: common_pb2.Mark) -> Mark:
    """Converts a mark."""
    return Mark(message.row_count, position(message.position))


def row_error(message: common_pb2.RowError) -> RowError:
    """Converts a row error."""
    return RowError(
        message.row,
        known(ErrorClass, message.error_class, ErrorClass.BUG),
        message.reason,
        message.field_path,
        message.message,
        message.raw,
    )


def constants(message: frame_pb2.RecordConstants) -> Constants:
    """Converts constants."""
    return Constants(
        message.topic if message.HasField("topic") else None,
        message.partition if message.HasField("partition") else None,
        message.first_offset if message.HasField("first_offset") else None,
        message.timestamp_ms if message.HasField("timestamp_ms") else None,
        message.original_topic if message.HasField("original_topic") else None,
        message.original_partition if message.HasField("original_partition") else None,
    )


def limits(message: common_pb2.Limits) -> limits_module.Limits:
    """Converts limits; 0 becomes the default."""
    default = limits_module.Limits()
    return limits_module.Limits(
        message.message_bytes_max or default.message_bytes_max,
        message.frame_bytes_target or default.frame_bytes_target,
        message.row_bytes_max or default.row_bytes_max,
        message.frames_unacked_max or default.frames_unacked_max,
        message.bytes_unacked_max or default.bytes_unacked_max,
    )


def work(message: source_pb2.Work) -> Work:
    """Converts a task or split."""
    return Work(
        message.id,
        message.descriptor,
        dict(message.config),
        message.order_group,
        tuple(message.partitions_json),
        message.rows_estimate,
        message.bytes_estimate,
    )


def plan(message: source_pb2.PlanResponse) -> Plan:
    """Converts a plan."""
    return Plan(
        tuple(map(work, message.tasks)),
        tuple(map(work, message.splits)),
        message.replan_after_ms,
        positions(message.retired),
        positions(message.reached),
        message.complete,
    )


def config_key(message: plugin_pb2.ConfigKey) -> ConfigKey:
    """Converts a configuration key."""
    return ConfigKey(
        name=message.name,
        type=known(ConfigType, message.type, ConfigType.STRING),
        default_value=message.default_value if message.HasField("default_value") else None,
        required=message.required,
        importance=known(Importance, message.importance, Importance.MEDIUM),
        documentation=message.documentation,
        group=message.group,
        order_in_group=message.order_in_group,
        width=known(Width, message.width, Width.NONE),
        display_name=message.display_name,
        dependents=tuple(message.dependents),
        validators=tuple(check for check in map(validator, message.validators) if check is not None),
        recommended_values=tuple(message.recommended_values),
        aliases=tuple(message.aliases),
    )


def validator(message: plugin_pb2.Validator) -> Validator | None:
    """Converts a validator; None for one that this side doesn't know, which the sidecar then checks by itself."""
    check = message.WhichOneof("check")
    if check == "range":
        bounds = message.range
        return RangeValidator(
            bounds.min if bounds.HasField("min") else None, bounds.max if bounds.HasField("max") else None
        )
    if check == "one_of":
        return OneOfValidator(tuple(message.one_of.values), message.one_of.ignore_case)
    if check == "pattern":
        return PatternValidator(message.pattern)
    return NonEmptyValidator() if check == "non_empty" and message.non_empty else None


def class_description(message: plugin_pb2.ClassDescription) -> ClassDescription:
    """Converts the description of a class.

    Raises:
        ConnectorBugError: It has no name or no role.
    """
    role = known(Role, message.role, None)
    if role is None or not message.class_name:
        raise ConnectorBugError(
            f"The plugin describes a class {message.class_name!r} without a name or a role.", reason="BAD_DESCRIPTION"
        )
    able = message.capabilities
    return ClassDescription(
        class_name=message.class_name,
        role=role,
        config=ConfigDef(map(config_key, message.config)),
        aliases=tuple(message.aliases),
        version=message.version,
        partition_schema_json=message.partition_schema_json,
        offset_schema_json=message.offset_schema_json,
        source_class=known(SourceClass, message.source_class, None),
        sink_class=known(SinkClass, message.sink_class, None),
        capabilities=Capabilities(
            able.splits,
            able.watch,
            able.parkable,
            able.alter_offsets,
            able.typed,
            able.raw,
            able.transaction_boundaries,
            able.deletes,
        ),
        documentation=message.documentation,
    )


_Default = TypeVar("_Default")


def known(enum_type: type[_Enum], number: int, default: _Default) -> _Enum | _Default:
    """Returns the member of an enum with a number, or a default when there is none."""
    try:
        return enum_type(number)
    except ValueError:
        return default
