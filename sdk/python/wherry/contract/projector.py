"""Reading a value of one schema as one of another: Kafka Connect's SchemaProjector, for columns and for single values.

A newer schema may widen numbers, leave fields out, add fields that are optional or have a default, and require what was
optional if it gives a default. Names and parameters must be the same; versions and documentation may differ. What does
not fit inside structs, arrays and maps is found when there is one to be read.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from wherry.contract.arrays import array_of
from wherry.contract.batch import JSON_TYPE
from wherry.contract.data import DATE, DAY_MS, DataError, Instant, Kind, Schema
from wherry.contract.java import to_float32
from wherry.contract.schema import from_field

__all__ = ["SchemaProjectorError", "project", "project_column"]

_PRIMITIVES: Final = frozenset(
    {
        Kind.INT8, Kind.INT16, Kind.INT32, Kind.INT64, Kind.FLOAT32, Kind.FLOAT64, Kind.BOOLEAN, Kind.STRING,
        Kind.BYTES,
    }
)  # fmt: skip


class SchemaProjectorError(DataError):
    """A value of one schema can't be read as one of another."""

    java_class = "org.apache.kafka.connect.errors.SchemaProjectorException"


def project(source: Schema, value: Any, target: Schema) -> Any:
    """Reads a value as one of another schema.

    Args:
        source: Its schema.
        value: The value: structs and maps as dicts.
        target: The other schema.

    Raises:
        SchemaProjectorError: The schemas don't fit.
    """
    _check(source, target)
    if source.optional and not target.optional:
        _check_default(target)
        return target.default if value is None else _project(source, value, target)
    return None if value is None else _project(source, value, target)


def project_column(field: pa.Field, column: pa.Array, target: pa.Field) -> pa.Array:
    """Reads a column as one of another schema.

    Args:
        field: Its Arrow field, with Connect's metadata.
        column: The values.
        target: The field it is to have.

    Returns:
        A column of the target's type.

    Raises:
        SchemaProjectorError: The schemas don't fit, and there is a value that shows it.
        DataError: A side has no schema.
    """
    if JSON_TYPE in (field.type, target.type):
        raise DataError("What has no schema can't be read as another schema's.", reason="NO_SCHEMA")
    source, wanted = from_field(field), from_field(target)
    assert source is not None
    assert wanted is not None
    return _column(source, column, wanted, target)


def _check_default(target: Schema) -> None:
    if not target.has_default or target.default is None:
        raise SchemaProjectorError(
            "Writer schema is optional, however, target schema does not provide a default value.",
            reason="NO_DEFAULT",
        )


def _check(source: Schema, target: Schema) -> None:
    """Refuses schemas that don't fit by themselves, whatever is inside them."""
    if source.kind is not target.kind and not _widens(source.kind, target.kind):
        raise SchemaProjectorError(
            f"Schema type mismatch. source type: {source.kind.value} and target type: {target.kind.value}",
            reason="TYPE_MISMATCH",
        )
    if source.name != target.name:
        raise SchemaProjectorError(
            f"Schema name mismatch. source name: {_told(source.name)} and target name: {_told(target.name)}",
            reason="NAME_MISMATCH",
        )
    if dict(source.parameters) != dict(target.parameters):
        raise SchemaProjectorError(
            f"Schema parameters not equal. source parameters: {_map_text(source)} and target parameters: "
            f"{_map_text(target)}",
            reason="PARAMETERS_MISMATCH",
        )


def _widens(source: Kind, target: Kind) -> bool:
    return 0 <= source.rank <= target.rank


def _told(name: str | None) -> str:
    return "null" if name is None else name


def _map_text(schema: Schema) -> str:
    if not schema.parameters:
        return "null"
    return "{" + ", ".join(f"{name}={value}" for name, value in schema.parameters) + "}"


# Single values.


def _project(source: Schema, value: Any, target: Schema) -> Any:
    kind = target.kind
    if kind in _PRIMITIVES:
        return _widened(value, target) if source.kind is not kind else value
    if kind is Kind.STRUCT:
        return _struct(source, value, target)
    if kind is Kind.ARRAY:
        return [_inner(source.value, item, target.value) for item in value]
    return {
        _inner(source.key, name, target.key): _inner(source.value, item, target.value) for name, item in value.items()
    }


def _inner(source: Schema | None, value: Any, target: Schema | None) -> Any:
    if source is None or target is None:
        raise DataError("What has no schema can't be read as another schema's.", reason="NO_SCHEMA")
    return project(source, value, target)


def _widened(value: Any, target: Schema) -> Any:
    if target.kind is Kind.FLOAT64:
        return float(value)
    if target.kind is Kind.FLOAT32:
        return to_float32(float(value))
    return value


def _struct(source: Schema, value: Mapping[str, Any], target: Schema) -> dict[str, Any]:
    made: dict[str, Any] = {}
    for field in target.fields:
        schema = source.field_of(field.name)
        if schema is not None:
            made[field.name] = _in_field(field.name, lambda s=schema, f=field: project(s, value.get(f.name), f.schema))
        else:
            made[field.name] = _of_new_field(field.name, field.schema, source)
    return made


def _of_new_field(name: str, schema: Schema, source: Schema) -> Any:
    if schema.optional:
        return None
    if schema.has_default and schema.default is not None:
        return schema.default
    told = source.kind.value if source.name is None else f"{source.name}:{source.kind.value}"
    raise SchemaProjectorError(
        f"Required field `{name}` is missing from source schema: Schema{{{told}}}", reason="FIELD_MISSING"
    )


def _in_field(name: str, read: Any) -> Any:
    try:
        return read()
    except SchemaProjectorError as error:
        made = SchemaProjectorError(f"Error projecting {name}: {error.message}", reason=error.reason)
        made.field_path = f"{name}.{error.field_path}" if error.field_path else name
        raise made from error


# Columns.


def _column(source: Schema, column: pa.Array, target: Schema, wanted: pa.Field) -> pa.Array:
    if not len(column):
        return pa.array([], wanted.type)
    _check(source, target)
    fills = source.optional and not target.optional
    if fills:
        _check_default(target)
    if column.null_count == len(column):
        made = pa.nulls(len(column), wanted.type)
    else:
        made = _parts(source, column, target, wanted)
    if not fills or not made.null_count:
        return made
    return (
        pc.if_else(made.is_null(), _scalar(target, wanted), made)
        if _is_flat(wanted.type)
        else _filled(made, target, wanted)
    )


def _parts(source: Schema, column: pa.Array, target: Schema, wanted: pa.Field) -> pa.Array:
    kind = target.kind
    mask = column.is_null() if column.null_count else None
    if kind in _PRIMITIVES:
        # Rounded as Java does, to the nearest.
        return column if column.type == wanted.type else column.cast(wanted.type, safe=False)
    if kind is Kind.STRUCT:
        present = column.drop_null() if mask is not None else column
        arrays = [_field_column(source, present, field, target) for field in wanted.type]
        if mask is not None:
            # Fields of a null struct are no values, so they were left aside; they are null here.
            places = pc.if_else(mask, None, pc.subtract(pc.cumulative_sum(pc.invert(mask).cast(pa.int64())), 1))
            arrays = [array.take(places) for array in arrays]
        return _struct_array(arrays, wanted.type, mask, len(column))
    if kind is Kind.ARRAY:
        assert source.value is not None
        assert target.value is not None
        lists = _compact(column)
        elements = _column(source.value, lists.values, target.value, wanted.type.value_field)
        return pa.ListArray.from_arrays(lists.offsets, elements, type=wanted.type, mask=mask)
    assert source.key is not None
    assert source.value is not None
    assert target.key is not None
    assert target.value is not None
    maps = _compact(column)
    keys = _column(source.key, maps.keys, target.key, wanted.type.key_field)
    items = _column(source.value, maps.items, target.value, wanted.type.item_field)
    offsets = maps.offsets
    if mask is not None:
        offsets = pc.if_else(pa.concat_arrays([mask, pa.array([False])]), None, offsets)
    return pa.MapArray.from_arrays(offsets, keys, items, wanted.type)


def _field_column(source: Schema, present: pa.StructArray, field: pa.Field, target: Schema) -> pa.Array:
    schema, wanted = source.field_of(field.name), target.field_of(field.name)
    assert wanted is not None
    if schema is not None:
        inner = present.field(field.name) if not present.offset else pc.struct_field(present, field.name)
        return _in_field(field.name, lambda: _column(schema, inner, wanted, field))
    value = _of_new_field(field.name, wanted, source)
    if value is None:
        return pa.nulls(len(present), field.type)
    return array_of([_arrow_value(wanted, value)] * len(present), field.type)


def _struct_array(arrays: list[pa.Array], kind: pa.StructType, mask: Any, rows: int) -> pa.Array:
    if not arrays:
        nulls = mask.to_pylist() if mask is not None else [False] * rows
        return pa.array([None if null else {} for null in nulls], kind)
    return pa.StructArray.from_arrays(arrays, fields=list(kind), mask=mask)


def _compact(column: pa.Array) -> pa.Array:
    """The lists or maps with no elements but theirs, so that what a null hides, or a slice left out, is no value."""
    return pa.concat_arrays([column.take(pa.array(range(len(column)), pa.int64()))])


def _is_flat(kind: pa.DataType) -> bool:
    return not pa.types.is_nested(kind)


def _scalar(target: Schema, wanted: pa.Field) -> pa.Scalar:
    return pa.scalar(_arrow_value(target, target.default), wanted.type)


def _filled(made: pa.Array, target: Schema, wanted: pa.Field) -> pa.Array:
    default = array_of([_arrow_value(target, target.default)], wanted.type)
    places = pc.if_else(made.is_null(), len(made), pa.array(range(len(made)), pa.int64()))
    return pa.concat_arrays([made, default]).take(places)


def _arrow_value(schema: Schema, value: Any) -> Any:
    """A value as Arrow takes it: maps as pairs, moments in their own unit."""
    if value is None:
        return None
    if isinstance(value, Instant):
        if schema.kind is Kind.INT64:
            return int(value)
        return int(value) // DAY_MS if schema.name == DATE else int(value)
    if schema.kind is Kind.STRUCT:
        return {field.name: _arrow_value(field.schema, value.get(field.name)) for field in schema.fields}
    if schema.kind is Kind.ARRAY and schema.value is not None:
        return [_arrow_value(schema.value, item) for item in value]
    if schema.kind is Kind.MAP and schema.key is not None and schema.value is not None:
        key, inner = schema.key, schema.value
        return [(_arrow_value(key, name), _arrow_value(inner, item)) for name, item in value.items()]
    return value
