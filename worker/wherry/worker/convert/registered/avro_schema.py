"""Connect schemas as Avro schemas and back, as Confluent's converter maps them. Pure.

What Avro can't say travels in properties: `connect.type` (INT8, INT16), `connect.name`, `connect.version`,
`connect.doc`, `connect.parameters`, `connect.default`. What Connect can't say travels in parameters: symbols of an
enum, size of a fixed, documentation. A union of more than null and one other is a struct with an optional field for
each branch.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Mapping
from typing import Any, Final

from wherry.contract.data import (
    ABSENT,
    DATE,
    DAY_MS,
    DECIMAL,
    SCALE,
    TIME,
    TIMESTAMP,
    Field,
    Float32,
    Instant,
    Kind,
    Schema,
)
from wherry.contract.payload import scaled, to_payload, unscaled
from wherry.contract.schema import PRECISION
from wherry.worker.convert import DataError
from wherry.worker.convert.registered.avro_types import MISSING, AvroField, AvroKind, AvroType

_NAMESPACE: Final = "io.confluent.connect.avro"
UNION: Final = f"{_NAMESPACE}.Union"
ENUM: Final = f"{_NAMESPACE}.Enum"
_ENUM_DOC: Final = f"{_NAMESPACE}.enum.doc."
_RECORD_DOC: Final = f"{_NAMESPACE}.record.doc"
_FIELD_DOC: Final = f"{_NAMESPACE}.field.doc."
_FIELD_DEFAULT: Final = f"{_NAMESPACE}.field.default"
_FIXED_SIZE: Final = "connect.fixed.size"
_MAP_ENTRY: Final = "MapEntry"
_DEFAULT_NAME: Final = "ConnectDefault"
_JAVA_STRING: Final = "avro.java.string"
_PRECISION_DEFAULT: Final = 64
_NAME: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")

_KINDS: Final[Mapping[AvroKind, Kind]] = {
    AvroKind.BOOLEAN: Kind.BOOLEAN,
    AvroKind.INT: Kind.INT32,
    AvroKind.LONG: Kind.INT64,
    AvroKind.FLOAT: Kind.FLOAT32,
    AvroKind.DOUBLE: Kind.FLOAT64,
    AvroKind.BYTES: Kind.BYTES,
    AvroKind.STRING: Kind.STRING,
    AvroKind.FIXED: Kind.BYTES,
    AvroKind.ENUM: Kind.STRING,
    AvroKind.ARRAY: Kind.ARRAY,
    AvroKind.MAP: Kind.MAP,
    AvroKind.RECORD: Kind.STRUCT,
}
_SMALL: Final = {"int8": Kind.INT8, "int16": Kind.INT16}
_LOGICAL: Final = {
    (AvroKind.INT, "date"): DATE,
    (AvroKind.INT, "time-millis"): TIME,
    (AvroKind.LONG, "timestamp-millis"): TIMESTAMP,
    (AvroKind.BYTES, "decimal"): DECIMAL,
    (AvroKind.FIXED, "decimal"): DECIMAL,
}
_LOGICAL_NAMES: Final = {DATE: "date", TIME: "time-millis", TIMESTAMP: "timestamp-millis", DECIMAL: "decimal"}
_AVRO_NAMES: Final[Mapping[Kind, str]] = {
    Kind.INT8: "int",
    Kind.INT16: "int",
    Kind.INT32: "int",
    Kind.INT64: "long",
    Kind.FLOAT32: "float",
    Kind.FLOAT64: "double",
    Kind.BOOLEAN: "boolean",
    Kind.STRING: "string",
    Kind.BYTES: "bytes",
}


def to_connect(avro: AvroType) -> Schema:
    """Returns the Connect schema of an Avro schema.

    Raises:
        DataError: Connect has no such type.
    """
    part = avro.optional_part
    if part is not None:
        schema = to_connect(part)
        # A default that the type itself carries holds for the null, too.
        return schema.as_optional()
    if avro.kind is AvroKind.UNION:
        return _union(avro)
    if avro.kind is AvroKind.NULL:
        raise DataError("Standalone null schemas are not supported by this converter", reason="BAD_SCHEMA")
    if is_map_of_pairs(avro):
        assert avro.items is not None
        key, value = avro.items.fields
        schema = Schema(Kind.MAP, key=to_connect(key.type), value=to_connect(value.type))
    else:
        schema = _plain(avro)
    return _with_properties(schema, avro)


def is_map_of_pairs(avro: AvroType) -> bool:
    """Whether an array is how a map with other keys than text is written."""
    items = avro.items
    return (
        avro.kind is AvroKind.ARRAY
        and items is not None
        and items.kind is AvroKind.RECORD
        and (items.name == f"{_NAMESPACE}.{_MAP_ENTRY}" or items.properties.get("connect.internal.type") == _MAP_ENTRY)
        and [field.name for field in items.fields] == ["key", "value"]
    )


def logical_of(avro: AvroType) -> str | None:
    """Returns the name of the logical type that a type has by Avro's own word."""
    return _LOGICAL.get((avro.kind, str(avro.properties.get("logicalType", "")).lower()))


def _plain(avro: AvroType) -> Schema:
    kind = _KINDS[avro.kind]
    if avro.kind is AvroKind.RECORD:
        return Schema(kind, fields=tuple(Field(field.name, _field_schema(field)) for field in avro.fields))
    if avro.kind is AvroKind.ARRAY:
        assert avro.items is not None
        return Schema(kind, value=to_connect(avro.items))
    if avro.kind is AvroKind.MAP:
        assert avro.items is not None
        return Schema(kind, key=Schema(Kind.STRING), value=to_connect(avro.items))
    logical = logical_of(avro)
    if logical == DECIMAL:
        parameters = [(SCALE, str(avro.properties.get("scale", 0)))]
        precision = avro.properties.get("precision", _PRECISION_DEFAULT)
        if precision != _PRECISION_DEFAULT:
            parameters.append((PRECISION, str(precision)))
        return Schema(kind, name=DECIMAL, version=1, parameters=tuple(parameters))
    if logical is not None:
        return Schema(kind, name=logical, version=1)
    if avro.kind is AvroKind.INT:
        return Schema(_SMALL.get(avro.properties.get("connect.type", ""), kind))
    return Schema(kind)


def _field_schema(field: AvroField) -> Schema:
    schema = to_connect(field.type)
    if field.default is MISSING or field.default is None:
        return schema
    if schema.optional:
        # Avro allows a default only for the first branch; Connect takes it where that isn't null.
        return schema
    try:
        default = default_value(field.type, schema, field.default)
        to_payload(schema, default)
    except (ValueError, TypeError, KeyError, AttributeError, DataError):
        raise DataError(f"The default of the field {field.name} doesn't fit its type.", reason="BAD_SCHEMA") from None
    if schema.has_default and schema.default == default:
        return schema
    return dataclasses.replace(schema, default=default, parameters=(*schema.parameters, (_FIELD_DEFAULT, "true")))


def default_value(avro: AvroType, schema: Schema, value: Any) -> Any:
    """Returns the value of a default as Avro's schemas write it: bytes are a text of their octets."""
    part = avro.optional_part
    if value is None:
        return None
    if part is not None:
        return default_value(part, schema, value)
    if avro.kind is AvroKind.UNION:
        first = schema.fields[0]
        return {first.name: default_value(avro.branches[0], first.schema, value)}
    logical = schema.logical
    if logical is not None and logical != DECIMAL:
        return Instant(int(value) * (DAY_MS if logical == DATE else 1))
    if avro.kind in {AvroKind.BYTES, AvroKind.FIXED}:
        data = value.encode("latin-1")
        return scaled(data, schema.scale) if logical == DECIMAL else data
    if avro.kind is AvroKind.RECORD:
        return {
            field.name: default_value(field.type, child.schema, value.get(field.name, field.default))
            for field, child in zip(avro.fields, schema.fields, strict=True)
        }
    if avro.kind is AvroKind.ARRAY and schema.value is not None and avro.items is not None:
        return [default_value(avro.items, schema.value, item) for item in value]
    if avro.kind is AvroKind.MAP and schema.value is not None and avro.items is not None:
        return {key: default_value(avro.items, schema.value, item) for key, item in value.items()}
    if avro.kind is AvroKind.DOUBLE:
        return float(value)
    return Float32(float(value)) if avro.kind is AvroKind.FLOAT else value


def _union(avro: AvroType) -> Schema:
    fields: dict[str, Field] = {}
    for branch in avro.branches:
        if branch.kind is AvroKind.NULL:
            continue
        name = branch.simple_name
        if name in fields:
            raise DataError("Multiple union schemas map to the Connect union field name", reason="BAD_SCHEMA")
        fields[name] = Field(name, to_connect(branch).as_optional())
    optional = any(branch.kind is AvroKind.NULL for branch in avro.branches)
    return Schema(Kind.STRUCT, optional=optional, name=UNION, fields=tuple(fields.values()))


def _with_properties(schema: Schema, avro: AvroType) -> Schema:
    """Adds what the properties say, and what Connect keeps of Avro in parameters."""
    properties = avro.properties
    parameters = dict(schema.parameters)
    doc = properties.get("doc")
    if avro.kind is AvroKind.RECORD and not is_default_name(avro.name):
        if doc is not None:
            parameters[_RECORD_DOC] = str(doc)
        parameters.update({_FIELD_DOC + field.name: field.doc for field in avro.fields if field.doc is not None})
    if avro.kind is AvroKind.ENUM:
        if doc is not None:
            parameters[_ENUM_DOC + avro.simple_name] = str(doc)
        parameters[ENUM] = avro.name
        parameters.update({f"{ENUM}.{symbol}": symbol for symbol in avro.symbols})
    if avro.kind is AvroKind.FIXED and schema.logical is None:
        parameters[_FIXED_SIZE] = str(avro.size)
    if _JAVA_STRING in properties:
        parameters[_JAVA_STRING] = str(properties[_JAVA_STRING])
    stated = properties.get("connect.parameters")
    parameters.update({str(key): str(value) for key, value in stated.items()} if isinstance(stated, dict) else {})
    name, version = properties.get("connect.name"), properties.get("connect.version")
    if name is None and avro.name and not is_default_name(avro.name) and schema.logical is None:
        name = avro.name
    changed = dataclasses.replace(
        schema,
        parameters=tuple(parameters.items()),
        name=name if name is not None else schema.name,
        version=int(version) if version is not None else schema.version,
        doc=properties.get("connect.doc", schema.doc),
    )
    if "connect.default" not in properties:
        return changed
    return dataclasses.replace(changed, default=default_value(avro, changed, properties["connect.default"]))


def is_default_name(name: str) -> bool:
    """Whether a record's name was only made up for a struct that has none."""
    head, found, number = name.partition(f"{_NAMESPACE}.{_DEFAULT_NAME}")
    return bool(found) and not head and (not number or number.isdigit())


def from_connect(schema: Schema, *, enhanced: bool = False, metadata: bool = True) -> Any:
    """Returns the Avro schema of a Connect schema, as JSON.

    Args:
        schema: The schema.
        enhanced: Whether strings that were enums become enums again (`enhanced.avro.schema.support`).
        metadata: Whether the properties are written (`connect.meta.data`).
    """
    return _Writer(enhanced, metadata).type(schema)


class _Writer:
    def __init__(self, enhanced: bool, metadata: bool) -> None:
        self._enhanced = enhanced
        self._metadata = metadata
        self._known: dict[Schema, str] = {}
        self._taken: set[str] = set()
        self._namespace = ""

    def type(self, schema: Schema) -> Any:
        if schema.name == UNION and schema.kind is Kind.STRUCT:
            branches = [self._required(field.schema.as_optional(False)) for field in schema.fields]
            return ["null", *branches] if schema.optional else branches
        found = self._required(dataclasses.replace(schema, optional=False))
        if not schema.optional:
            return found
        return [found, "null"] if schema.has_default and schema.default is not None else ["null", found]

    def _required(self, schema: Schema) -> Any:
        kind = schema.kind
        if kind is Kind.STRUCT:
            return self._record(schema)
        if kind is Kind.ARRAY:
            assert schema.value is not None
            form: dict[str, Any] = {"type": "array", "items": self.type(schema.value)}
        elif kind is Kind.MAP:
            form = self._map(schema)
        else:
            form = self._scalar(schema)
        form |= self._properties(schema)
        if kind in {Kind.INT8, Kind.INT16}:
            form["connect.type"] = kind.json_name
        logical = schema.logical
        if logical is not None:
            form["logicalType"] = _LOGICAL_NAMES[logical]
        return form["type"] if len(form) == 1 else form

    def _scalar(self, schema: Schema) -> dict[str, Any]:
        parameters = dict(schema.parameters)
        if schema.logical == DECIMAL:
            return {
                "type": "bytes",
                "scale": schema.scale,
                "precision": int(parameters.get(PRECISION, _PRECISION_DEFAULT)),
            }
        if schema.kind is Kind.BYTES and _FIXED_SIZE in parameters and schema.name:
            return self._named(schema, schema.name, {"type": "fixed"}, {"size": int(parameters[_FIXED_SIZE])})
        if self._enhanced and schema.kind is Kind.STRING and ENUM in parameters:
            prefix = f"{ENUM}."
            symbols = [value for key, value in schema.parameters if key.startswith(prefix)]
            return self._named(schema, parameters[ENUM], {"type": "enum"}, {"symbols": symbols})
        return {"type": _AVRO_NAMES[schema.kind]}

    def _named(self, schema: Schema, name: str, head: dict[str, Any], rest: dict[str, Any]) -> dict[str, Any]:
        if name in self._taken:
            return {"type": name}
        self._taken.add(name)
        return head | self._name_parts(name) | rest

    def _map(self, schema: Schema) -> dict[str, Any]:
        assert schema.key is not None
        assert schema.value is not None
        if schema.key.kind is Kind.STRING and not schema.key.optional:
            return {"type": "map", "values": self.type(schema.value)}
        # Maps with other keys are arrays of pairs; each kind of pair needs a name of its own.
        pair = Schema(Kind.STRUCT, fields=(Field("key", schema.key), Field("value", schema.value)))
        if pair in self._known:
            return {"type": "array", "items": self._known[pair]}
        name = self._free(f"{_NAMESPACE}.{_MAP_ENTRY}")
        self._known[pair] = name
        items: dict[str, Any] = {"type": "record", **self._name_parts(name)}
        outer, self._namespace = self._namespace, _NAMESPACE
        parts = (("key", schema.key), ("value", schema.value))
        items["fields"] = [{"name": part, "type": self.type(found)} for part, found in parts]
        self._namespace = outer
        if not name.endswith(_MAP_ENTRY):
            items["connect.internal.type"] = _MAP_ENTRY
        return {"type": "array", "items": items}

    def _record(self, schema: Schema) -> Any:
        bare = dataclasses.replace(schema, default=ABSENT)
        if bare in self._known:
            return self._known[bare]
        name = schema.name if schema.name and schema.name not in self._taken else None
        name = self._free(schema.name or f"{_NAMESPACE}.{_DEFAULT_NAME}") if name is None else name
        self._taken.add(name)
        self._known[bare] = name
        form: dict[str, Any] = {"type": "record", **self._name_parts(name)}
        parameters = dict(schema.parameters)
        if _RECORD_DOC in parameters:
            form["doc"] = parameters[_RECORD_DOC]
        outer, self._namespace = self._namespace, name.rpartition(".")[0]
        form["fields"] = [self._field(field, parameters) for field in schema.fields]
        self._namespace = outer
        return form | self._properties(schema)

    def _field(self, field: Field, parameters: Mapping[str, str]) -> dict[str, Any]:
        schema = field.schema
        _check_name(field.name)
        form: dict[str, Any] = {"name": field.name, "type": self.type(schema)}
        if _FIELD_DOC + field.name in parameters:
            form["doc"] = parameters[_FIELD_DOC + field.name]
        if schema.has_default and schema.default is not None:
            form["default"] = _avro_default(schema, schema.default)
        elif schema.optional:
            form["default"] = None
        return form

    def _properties(self, schema: Schema) -> dict[str, Any]:
        if not self._metadata:
            return {}
        form: dict[str, Any] = {}
        parameters = dict(schema.parameters)
        # A default that Avro's own schema had is written as such, by the field.
        by_field = parameters.pop(_FIELD_DEFAULT, None) is not None
        if schema.doc is not None:
            form["connect.doc"] = schema.doc
        if schema.version is not None:
            form["connect.version"] = schema.version
        if parameters:
            form["connect.parameters"] = parameters
        if schema.has_default and schema.default is not None and not by_field:
            form["connect.default"] = _avro_default(schema, schema.default)
        if schema.name is not None:
            form["connect.name"] = schema.name
        if _JAVA_STRING in parameters:
            form[_JAVA_STRING] = parameters[_JAVA_STRING]
        return form

    def _name_parts(self, name: str) -> dict[str, str]:
        namespace, _, simple = name.rpartition(".")
        for part in name.split("."):
            _check_name(part)
        return {"name": simple} if namespace == self._namespace else {"name": simple, "namespace": namespace}

    def _free(self, name: str) -> str:
        """Returns a name that isn't taken, with a number behind it where it is."""
        found, number = name, 2
        while found in self._taken:
            found, number = f"{name}{number}", number + 1
        self._taken.add(found)
        return found


def _check_name(name: str) -> None:
    if not _NAME.fullmatch(name):
        raise DataError(
            f"Illegal character in: {name}. Avro's names have letters, digits and underscores.", reason="BAD_SCHEMA"
        )


def _avro_default(schema: Schema, value: Any) -> Any:
    if value is None:
        return None
    if schema.logical == DECIMAL:
        return unscaled(value, schema.scale).decode("latin-1")
    if schema.kind is Kind.BYTES:
        return bytes(value).decode("latin-1")
    if schema.kind is Kind.STRUCT:
        return {field.name: _avro_default(field.schema, value.get(field.name)) for field in schema.fields}
    if schema.kind is Kind.ARRAY and schema.value is not None:
        return [_avro_default(schema.value, item) for item in value]
    if schema.kind is Kind.MAP and schema.value is not None:
        return {str(key): _avro_default(schema.value, item) for key, item in value.items()}
    return to_payload(dataclasses.replace(schema, default=ABSENT), value)
