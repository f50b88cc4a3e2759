"""Domain types into messages of the contract; `from_proto` is the way back."""

from __future__ import annotations

from collections.abc import Iterable

from wherry.connector.v1 import common_pb2, frame_pb2, plugin_pb2, source_pb2
from wherry.contract import limits as limits_module
from wherry.contract.batch import Constants, Mark, RowError
from wherry.contract.config import ConfigKey, NonEmptyValidator, OneOfValidator, PatternValidator, Validator, Width
from wherry.contract.description import Capabilities, ClassDescription
from wherry.contract.plan import Plan, Work
from wherry.contract.position import Position
from wherry.contract.texts import cut_text


def position(value: Position) -> common_pb2.Position:
    """Converts a position."""
    return common_pb2.Position(partition_json=value.partition, offset_json=value.offset)


def positions(values: Iterable[Position]) -> list[common_pb2.Position]:
    """Converts positions."""
    return [position(value) for value in values]


def mark(value: Mark) -> common_pb2.Mark:
    """Converts a mark."""
    return common_pb2.Mark(row_count=value.row_count, position=position(value.position))


def row_error(value: RowError) -> common_pb2.RowError:
    """Converts a row error; texts and bytes over their limits are cut."""
    return common_pb2.RowError(
        row=value.row,
        error_class=int(value.error_class),  # type: ignore[arg-type]  # the enums share their numbers
        reason=value.reason,
        field_path=value.field_path,
        message=cut_text(value.message, limits_module.ROW_ERROR_MESSAGE_BYTES_MAX),
        raw=value.raw[: limits_module.ROW_ERROR_RAW_BYTES_MAX],
    )


def constants(value: Constants) -> frame_pb2.RecordConstants:
    """Converts constants."""
    return frame_pb2.RecordConstants(
        topic=value.topic,
        partition=value.partition,
        first_offset=value.first_offset,
        timestamp_ms=value.timestamp_ms,
        original_topic=value.original_topic,
        original_partition=value.original_partition,
    )


def limits(value: limits_module.Limits) -> common_pb2.Limits:
    """Converts limits."""
    return common_pb2.Limits(
        message_bytes_max=value.message_bytes_max,
        frame_bytes_target=value.frame_bytes_target,
        row_bytes_max=value.row_bytes_max,
        frames_unacked_max=value.frames_unacked_max,
        bytes_unacked_max=value.bytes_unacked_max,
    )


def work(value: Work) -> source_pb2.Work:
    """Converts a task or split."""
    return source_pb2.Work(
        id=value.id,
        descriptor=value.descriptor,
        config=value.config,
        order_group=value.order_group,
        partitions_json=value.partitions,
        rows_estimate=value.rows_estimate,
        bytes_estimate=value.bytes_estimate,
    )


def plan(value: Plan) -> source_pb2.PlanResponse:
    """Converts a plan."""
    return source_pb2.PlanResponse(
        tasks=map(work, value.tasks),
        splits=map(work, value.splits),
        replan_after_ms=value.replan_after_ms,
        retired=positions(value.retired),
        reached=positions(value.reached),
        complete=value.complete,
    )


def config_key(value: ConfigKey) -> plugin_pb2.ConfigKey:
    """Converts a configuration key."""
    return plugin_pb2.ConfigKey(
        name=value.name,
        type=int(value.type),  # type: ignore[arg-type]  # the enums share their numbers
        default_value=value.default_value,
        required=value.required,
        importance=int(value.importance),  # type: ignore[arg-type]
        documentation=value.documentation,
        group=value.group,
        order_in_group=value.order_in_group,
        width=None if value.width is Width.NONE else int(value.width),  # type: ignore[arg-type]
        display_name=value.display_name,
        dependents=value.dependents,
        validators=map(validator, value.validators),
        recommended_values=value.recommended_values,
        aliases=value.aliases,
    )


def validator(value: Validator) -> plugin_pb2.Validator:
    """Converts a validator."""
    if isinstance(value, OneOfValidator):
        return plugin_pb2.Validator(
            one_of=plugin_pb2.OneOfValidator(values=value.values, ignore_case=value.ignore_case)
        )
    if isinstance(value, PatternValidator):
        return plugin_pb2.Validator(pattern=value.pattern)
    if isinstance(value, NonEmptyValidator):
        return plugin_pb2.Validator(non_empty=True)
    return plugin_pb2.Validator(range=plugin_pb2.RangeValidator(min=value.min, max=value.max))


def capabilities(value: Capabilities) -> plugin_pb2.Capabilities:
    """Converts capabilities."""
    return plugin_pb2.Capabilities(
        splits=value.splits,
        watch=value.watch,
        parkable=value.parkable,
        alter_offsets=value.alter_offsets,
        typed=value.typed,
        raw=value.raw,
        transaction_boundaries=value.transaction_boundaries,
        deletes=value.deletes,
    )


def class_description(value: ClassDescription) -> plugin_pb2.ClassDescription:
    """Converts the description of a class."""
    return plugin_pb2.ClassDescription(
        class_name=value.class_name,
        aliases=value.aliases,
        role=int(value.role),  # type: ignore[arg-type]
        version=value.version,
        config=map(config_key, value.config.keys),
        partition_schema_json=value.partition_schema_json,
        offset_schema_json=value.offset_schema_json,
        source_class=int(value.source_class or 0),  # type: ignore[arg-type]
        sink_class=int(value.sink_class or 0),  # type: ignore[arg-type]
        capabilities=capabilities(value.capabilities),
        documentation=value.documentation,
    )
