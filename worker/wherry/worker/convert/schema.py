"""Connect schemas as Arrow fields and back.

What Arrow can't say travels in field metadata: `connect.name`, `connect.version`, `connect.doc`, `connect.parameters`
(JSON) and `connect.default` (JSON). Connect's logical types become Arrow's own, so that no metadata is needed for them.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Final

import pyarrow as pa

from wherry.worker.convert import DataError

NAME: Final = b"connect.name"
VERSION: Final = b"connect.version"
DOC: Final = b"connect.doc"
PARAMETERS: Final = b"connect.parameters"
DEFAULT: Final = b"connect.default"

_LOGICAL: Final = "org.apache.kafka.connect.data."
DECIMAL: Final = f"{_LOGICAL}Decimal"
DATE: Final = f"{_LOGICAL}Date"
TIME: Final = f"{_LOGICAL}Time"
TIMESTAMP: Final = f"{_LOGICAL}Timestamp"
# Digits of a decimal128; Connect knows only the scale.
DECIMAL_PRECISION: Final = 38
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
    metadata: dict[bytes, bytes] = {}
    if logical is not None and not _is_logical(data_type, logical):
        metadata[NAME] = str(logical).encode()
    if schema.get("version") is not None and NAME in metadata:
        metadata[VERSION] = str(schema["version"]).encode()
    if schema.get("doc") is not None:
        metadata[DOC] = str(schema["doc"]).encode()
    if schema.get("parameters") and not pa.types.is_decimal(data_type):
        metadata[PARAMETERS] = json.dumps(schema["parameters"], separators=(",", ":"), ensure_ascii=False).encode()
    if "default" in schema:
        metadata[DEFAULT] = json.dumps(schema["default"], separators=(",", ":"), ensure_ascii=False).encode()
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
    schema["optional"] = field.nullable
    name = metadata[NAME].decode() if NAME in metadata else name
    if name is not None:
        schema["name"] = name
    if VERSION in metadata or version is not None:
        schema["version"] = int(metadata[VERSION]) if VERSION in metadata else version
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


def _type_of(schema: Mapping[str, Any], kind: str, logical: Any, depth: int) -> pa.DataType:
    if kind in _INTEGERS and logical in _TEMPORAL:
        return _TEMPORAL[logical]
    if kind == "bytes" and logical == DECIMAL:
        return pa.decimal128(DECIMAL_PRECISION, _scale(schema))
    if kind in PRIMITIVES:
        return PRIMITIVES[kind]
    if kind == "array":
        return pa.list_(field_of(_part(schema, "items"), "item", depth + 1))
    if kind == "map":
        key = field_of(_part(schema, "keys"), "key", depth + 1).with_nullable(False)
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


def _scale(schema: Mapping[str, Any]) -> int:
    parameters = schema.get("parameters")
    text = parameters.get("scale") if isinstance(parameters, Mapping) else None
    try:
        return int(str(text))
    except ValueError:
        raise DataError("Invalid Decimal schema: scale parameter not found.", reason="BAD_SCHEMA") from None


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
