"""Connect schemas as Arrow fields and back, without loss.

What Arrow can't say travels in field metadata: `connect.name`, `connect.version`, `connect.doc`, `connect.parameters`
(JSON) and `connect.default` (JSON). Connect's logical types become Arrow's own and need metadata only where they are
unusual: another version than 1 (empty: none), another integer type than theirs (`connect.type`), parameters besides
the scale. A map's keys can't be null in Arrow; that they may in Connect is `connect.optional`.

Beside the Arrow field a schema has two more forms: `data.Schema`, and the JSON that JsonConverter writes.
"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Mapping
from typing import Any, Final

import pyarrow as pa

from wherry.contract.batch import JSON_TYPE
from wherry.contract.data import (
    DATE,
    DECIMAL,
    KINDS_BY_JSON_NAME,
    SCALE,
    TIME,
    TIMESTAMP,
    DataError,
    Field,
    Kind,
    Schema,
)
from wherry.contract.payload import from_payload, to_payload

NAME: Final = b"connect.name"
VERSION: Final = b"connect.version"
DOC: Final = b"connect.doc"
PARAMETERS: Final = b"connect.parameters"
DEFAULT: Final = b"connect.default"
BASE: Final = b"connect.type"
OPTIONAL: Final = b"connect.optional"

# Parameter that says how many digits a decimal has at most; Connect itself knows only the scale.
PRECISION: Final = "connect.decimal.precision"
# Digits of a decimal128 and of a decimal256.
DECIMAL_PRECISION: Final = 38
DECIMAL_PRECISION_MAX: Final = 76
DEPTH_MAX: Final = 100

PRIMITIVES: Final[Mapping[str, pa.DataType]] = {
    "boolean": pa.bool_(),
    "int8": pa.int8(),
    "int16": pa.int16(),
    "int32": pa.int32(),
    "int64": pa.int64(),
    "float": pa.float32(),
    "double": pa.float64(),
    "bytes": pa.binary(),
    "string": pa.string(),
}
_NAMES: Final = {data_type: name for name, data_type in PRIMITIVES.items()}
_TEMPORAL: Final[Mapping[str, pa.DataType]] = {
    DATE: pa.date32(),
    TIME: pa.time32("ms"),
    TIMESTAMP: pa.timestamp("ms", "UTC"),
}
_INTEGERS: Final = frozenset({"int8", "int16", "int32", "int64"})
_BASES: Final[Mapping[str, str]] = {DATE: "int32", TIME: "int32", TIMESTAMP: "int64"}
_LOGICAL_VERSION: Final = 1


def field_of(schema: Mapping[str, Any], name: str = "value", depth: int = 0) -> pa.Field:
    """Makes the Arrow field of a schema in JsonConverter's form.

    Raises:
        DataError: It is no schema.
    """
    if not isinstance(schema, Mapping):
        raise DataError(f"Unknown schema type: {schema}", reason="BAD_SCHEMA")
    if depth > DEPTH_MAX:
        raise DataError(f"The schema is nested more than {DEPTH_MAX} levels deep.", reason="BAD_SCHEMA")
    kind = schema.get("type")
    if not isinstance(kind, str):
        raise DataError("Schema must contain 'type' field", reason="BAD_SCHEMA")
    logical = schema.get("name")
    data_type = _type_of(schema, kind, logical, depth)
    metadata = _metadata(schema, kind, data_type)
    return pa.field(name, data_type, nullable=schema.get("optional") is True, metadata=metadata or None)


def schema_of(field: pa.Field, *, inside: bool = False) -> dict[str, Any]:
    """Makes JsonConverter's form of a field, its keys in the order Kafka Connect writes them.

    Args:
        field: The field.
        inside: Whether it is a field of a struct, which carries its name.

    Raises:
        DataError: Connect has no such type.
    """
    metadata = field.metadata or {}
    schema, name, version, parameters = _shape(field)
    schema["optional"] = field.nullable or OPTIONAL in metadata
    if BASE in metadata:
        schema["type"] = metadata[BASE].decode()
    name = metadata[NAME].decode() if NAME in metadata else name
    if name is not None:
        schema["name"] = name
    if VERSION in metadata:
        version = int(metadata[VERSION]) if metadata[VERSION] else None
    if version is not None:
        schema["version"] = version
    if DOC in metadata:
        schema["doc"] = metadata[DOC].decode()
    if PARAMETERS in metadata:
        parameters = json.loads(metadata[PARAMETERS])
    if parameters:
        schema["parameters"] = parameters
    if DEFAULT in metadata:
        schema["default"] = json.loads(metadata[DEFAULT])
    if inside:
        schema["field"] = field.name
    return schema


def default_of(field: pa.Field) -> tuple[bool, Any]:
    """Returns whether a field has a default, and the default as JSON."""
    metadata = field.metadata or {}
    if DEFAULT not in metadata:
        return False, None
    return True, json.loads(metadata[DEFAULT])


def to_field(schema: Schema | None, name: str = "value") -> pa.Field:
    """Makes the Arrow field of a schema; None is that of schemaless values.

    Raises:
        DataError: Arrow can't hold it: an array or map whose elements have no schema in common.
    """
    return pa.field(name, JSON_TYPE) if schema is None else field_of(to_form(schema), name)


def from_field(field: pa.Field) -> Schema | None:
    """Makes the schema of an Arrow field; None for that of schemaless values.

    Raises:
        DataError: Connect has no such type.
    """
    return None if field.type == JSON_TYPE else from_form(schema_of(field))


def to_form(schema: Schema, name: str | None = None, *, numeric_decimals: bool = False) -> dict[str, Any]:
    """Returns JsonConverter's form of a schema, its keys in the order Kafka Connect writes them.

    Args:
        schema: The schema.
        name: Name of the struct's field that it is the schema of.
        numeric_decimals: Decimals that are defaults as numbers.
    """

    def part(inner: Schema | None, field: str | None = None) -> dict[str, Any] | None:
        return None if inner is None else to_form(inner, field, numeric_decimals=numeric_decimals)

    form: dict[str, Any] = {"type": schema.kind.json_name}
    if schema.kind is Kind.ARRAY:
        form["items"] = part(schema.value)
    elif schema.kind is Kind.MAP:
        form["keys"] = part(schema.key)
        form["values"] = part(schema.value)
    elif schema.kind is Kind.STRUCT:
        form["fields"] = [part(field.schema, field.name) for field in schema.fields]
    form["optional"] = schema.optional
    optional = {"name": schema.name, "version": schema.version, "doc": schema.doc}
    form.update({key: value for key, value in optional.items() if value is not None})
    if schema.parameters:
        form["parameters"] = dict(schema.parameters)
    if schema.has_default:
        default = schema.default
        form["default"] = None if default is None else to_payload(schema, default, numeric_decimals=numeric_decimals)
    if name is not None:
        form["field"] = name
    return form


def from_form(form: Mapping[str, Any], depth: int = 0) -> Schema:
    """Makes the schema of JsonConverter's form.

    Raises:
        DataError: It is no schema.
    """
    kind = KINDS_BY_JSON_NAME.get(form.get("type", "")) if isinstance(form, Mapping) else None
    if kind is None or depth > DEPTH_MAX:
        field_of(form, depth=depth)  # tells what is wrong
        raise DataError(f"Unknown schema type: {form}", reason="BAD_SCHEMA")

    def part(name: str) -> Schema | None:
        return None if form.get(name) is None else from_form(form[name], depth + 1)

    schema = Schema(
        kind,
        optional=form.get("optional") is True,
        name=form.get("name"),
        version=form.get("version"),
        doc=form.get("doc"),
        parameters=tuple((form.get("parameters") or {}).items()),
        key=part("keys") if kind is Kind.MAP else None,
        value=part("values" if kind is Kind.MAP else "items") if kind in {Kind.MAP, Kind.ARRAY} else None,
        fields=tuple(Field(child["field"], from_form(child, depth + 1)) for child in form.get("fields", ()))
        if kind is Kind.STRUCT
        else (),
    )
    if "default" not in form:
        return schema
    default = form["default"]
    return dataclasses.replace(schema, default=None if default is None else from_payload(schema, default))


def _type_of(schema: Mapping[str, Any], kind: str, logical: Any, depth: int) -> pa.DataType:
    if kind in _INTEGERS and logical in _TEMPORAL:
        return _TEMPORAL[logical]
    if kind == "bytes" and logical == DECIMAL:
        return _decimal_type(schema)
    if kind in PRIMITIVES:
        return PRIMITIVES[kind]
    if kind == "array":
        return pa.list_(field_of(_part(schema, "items"), "item", depth + 1))
    if kind == "map":
        key = field_of(_part(schema, "keys"), "key", depth + 1)
        if key.nullable:
            key = key.with_metadata({**(key.metadata or {}), OPTIONAL: b"true"}).with_nullable(False)
        return pa.map_(key, field_of(_part(schema, "values"), "value", depth + 1))
    if kind == "struct":
        fields = schema.get("fields")
        if not isinstance(fields, list):
            raise DataError('Struct schema\'s "fields" argument is not an array.', reason="BAD_SCHEMA")
        return pa.struct([_struct_field(child, depth) for child in fields])
    raise DataError(f"Unknown schema type: {kind}", reason="BAD_SCHEMA")


def _struct_field(child: Any, depth: int) -> pa.Field:
    name = child.get("field") if isinstance(child, Mapping) else None
    if not isinstance(name, str):
        raise DataError("Struct schema's field name not specified properly", reason="BAD_SCHEMA")
    if not name:
        raise DataError("fieldName cannot be null.", reason="BAD_SCHEMA")
    return field_of(child, name, depth + 1)


def _part(schema: Mapping[str, Any], key: str) -> Mapping[str, Any]:
    part = schema.get(key)
    if not isinstance(part, Mapping):
        raise DataError(f"{schema.get('type')} schema did not specify its {key}", reason="BAD_SCHEMA")
    return part


def _decimal_type(schema: Mapping[str, Any]) -> pa.DataType:
    parameters = schema.get("parameters")
    parameters = parameters if isinstance(parameters, Mapping) else {}
    try:
        scale = int(str(parameters.get(SCALE)))
    except ValueError:
        raise DataError("Invalid Decimal schema: scale parameter not found.", reason="BAD_SCHEMA") from None
    digits = str(parameters.get(PRECISION, ""))
    try:
        wide = digits.isdecimal() and DECIMAL_PRECISION < int(digits) <= DECIMAL_PRECISION_MAX
        if abs(scale) > DECIMAL_PRECISION_MAX:
            raise ValueError
        if wide or abs(scale) > DECIMAL_PRECISION:
            return pa.decimal256(DECIMAL_PRECISION_MAX, scale)
        return pa.decimal128(DECIMAL_PRECISION, scale)
    except (ValueError, OverflowError, pa.ArrowInvalid):
        raise DataError(f"A decimal can't have the scale {scale}.", reason="BAD_SCHEMA") from None


def _metadata(schema: Mapping[str, Any], kind: str, data_type: pa.DataType) -> dict[bytes, bytes]:
    """Returns what of a schema the Arrow type doesn't say."""
    metadata: dict[bytes, bytes] = {}
    name, version, parameters = schema.get("name"), schema.get("version"), schema.get("parameters")
    logical = name is not None and _is_logical(data_type, name)
    if logical and _BASES.get(str(name), kind) != kind:
        metadata[BASE] = kind.encode()
    if name is not None and not logical:
        metadata[NAME] = str(name).encode()
    if version != (_LOGICAL_VERSION if logical else None):
        metadata[VERSION] = b"" if version is None else str(version).encode()
    if schema.get("doc") is not None:
        metadata[DOC] = str(schema["doc"]).encode()
    if parameters and not (pa.types.is_decimal(data_type) and set(parameters) == {SCALE}):
        metadata[PARAMETERS] = _compact(parameters)
    if "default" in schema:
        metadata[DEFAULT] = _compact(schema["default"])
    return metadata


def _compact(value: Any) -> bytes:
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False).encode("utf-8", "surrogatepass")


def _is_logical(data_type: pa.DataType, logical: str) -> bool:
    return bool(pa.types.is_decimal(data_type) or data_type == _TEMPORAL.get(logical))


def _shape(field: pa.Field) -> tuple[dict[str, Any], str | None, int | None, dict[str, str] | None]:
    """Returns the type with its parts, and name, version and parameters of a logical type."""
    data_type = field.type
    if data_type in _NAMES:
        return {"type": _NAMES[data_type]}, None, None, None
    if pa.types.is_date32(data_type):
        return {"type": "int32"}, DATE, 1, None
    if pa.types.is_time32(data_type):
        return {"type": "int32"}, TIME, 1, None
    if pa.types.is_timestamp(data_type):
        return {"type": "int64"}, TIMESTAMP, 1, None
    if pa.types.is_decimal(data_type):
        return {"type": "bytes"}, DECIMAL, 1, {"scale": str(data_type.scale)}
    if pa.types.is_list(data_type) or pa.types.is_large_list(data_type):
        return {"type": "array", "items": schema_of(data_type.value_field)}, None, None, None
    if pa.types.is_map(data_type):
        keys, values = schema_of(data_type.key_field), schema_of(data_type.item_field)
        return {"type": "map", "keys": keys, "values": values}, None, None, None
    if pa.types.is_struct(data_type):
        return {"type": "struct", "fields": [schema_of(child, inside=True) for child in data_type]}, None, None, None
    if pa.types.is_large_string(data_type):
        return {"type": "string"}, None, None, None
    if pa.types.is_unsigned_integer(data_type):
        return {"type": {8: "int16", 16: "int32", 32: "int64"}.get(data_type.bit_width, "int64")}, None, None, None
    if pa.types.is_large_binary(data_type) or pa.types.is_fixed_size_binary(data_type):
        return {"type": "bytes"}, None, None, None
    raise DataError(f"Connect has no type for {data_type}, the type of {field.name}.", reason="WRONG_TYPE")
