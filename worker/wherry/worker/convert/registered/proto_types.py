"""Connect schemas as Protobuf messages and back, after Confluent's converter.

Messages are structs, repeated fields arrays, enums texts; a oneof is a struct of optional fields. Google's Timestamp,
Date and TimeOfDay and Confluent's Decimal are Connect's logical types. Numbers of fields travel in a parameter.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping
from typing import Any, Final

from google.protobuf import descriptor_pb2, descriptor_pool  # type: ignore[import-untyped]  # it publishes no types
from google.protobuf.descriptor import Descriptor, FieldDescriptor

from wherry.contract.data import (
    DATE,
    DATE_SCHEMA,
    DECIMAL,
    SCALE,
    TIME,
    TIME_SCHEMA,
    TIMESTAMP,
    TIMESTAMP_SCHEMA,
    DataError,
    Field,
    Kind,
    Schema,
    decimal_schema,
)
from wherry.worker.convert.registered.proto_text import params_of, parse_proto

DEPTH_MAX: Final = 64
_PREFIX: Final = "io.confluent.connect.protobuf."
TAG: Final = f"{_PREFIX}Tag"
_CONNECT_TYPE: Final = "connect.type"
_SMALL: Final = {"int8": Kind.INT8, "int16": Kind.INT16}
_META_FILE: Final = "confluent/meta.proto"
UNION: Final = f"{_PREFIX}Union"
_ENUM: Final = f"{_PREFIX}Enum"
_MAIN: Final = "main.proto"
TIMESTAMP_MESSAGE: Final = "google.protobuf.Timestamp"
DATE_MESSAGE: Final = "google.type.Date"
TIME_MESSAGE: Final = "google.type.TimeOfDay"
DECIMAL_MESSAGE: Final = "confluent.type.Decimal"
LOGICAL: Final[Mapping[str, Schema]] = {
    TIMESTAMP_MESSAGE: TIMESTAMP_SCHEMA,
    DATE_MESSAGE: DATE_SCHEMA,
    TIME_MESSAGE: TIME_SCHEMA,
}
_MESSAGES: Final = {TIMESTAMP: TIMESTAMP_MESSAGE, DATE: DATE_MESSAGE, TIME: TIME_MESSAGE, DECIMAL: DECIMAL_MESSAGE}
# Files that a schema may import without bringing them along.
_KNOWN_FILES: Final = {
    "google/type/date.proto": (
        'syntax="proto3";package google.type;message Date{int32 year=1;int32 month=2;int32 day=3;}'
    ),
    "google/type/timeofday.proto": (
        'syntax="proto3";package google.type;'
        "message TimeOfDay{int32 hours=1;int32 minutes=2;int32 seconds=3;int32 nanos=4;}"
    ),
    "confluent/type/decimal.proto": (
        'syntax="proto3";package confluent.type;message Decimal{bytes value=1;uint32 precision=2;int32 scale=3;}'
    ),
    "confluent/meta.proto": 'syntax="proto3";package confluent;',
}
_FILES: Final = {
    TIMESTAMP_MESSAGE: "google/protobuf/timestamp.proto",
    DATE_MESSAGE: "google/type/date.proto",
    TIME_MESSAGE: "google/type/timeofday.proto",
    DECIMAL_MESSAGE: "confluent/type/decimal.proto",
}
_KINDS: Final[Mapping[int, Kind]] = {
    FieldDescriptor.TYPE_DOUBLE: Kind.FLOAT64,
    FieldDescriptor.TYPE_FLOAT: Kind.FLOAT32,
    FieldDescriptor.TYPE_INT64: Kind.INT64,
    FieldDescriptor.TYPE_UINT64: Kind.INT64,
    FieldDescriptor.TYPE_INT32: Kind.INT32,
    FieldDescriptor.TYPE_FIXED64: Kind.INT64,
    FieldDescriptor.TYPE_FIXED32: Kind.INT64,
    FieldDescriptor.TYPE_BOOL: Kind.BOOLEAN,
    FieldDescriptor.TYPE_STRING: Kind.STRING,
    FieldDescriptor.TYPE_BYTES: Kind.BYTES,
    FieldDescriptor.TYPE_UINT32: Kind.INT64,
    FieldDescriptor.TYPE_ENUM: Kind.STRING,
    FieldDescriptor.TYPE_SFIXED32: Kind.INT32,
    FieldDescriptor.TYPE_SFIXED64: Kind.INT64,
    FieldDescriptor.TYPE_SINT32: Kind.INT32,
    FieldDescriptor.TYPE_SINT64: Kind.INT64,
}
_NAMES: Final[Mapping[Kind, str]] = {
    Kind.INT8: "int32",
    Kind.INT16: "int32",
    Kind.INT32: "int32",
    Kind.INT64: "int64",
    Kind.FLOAT32: "float",
    Kind.FLOAT64: "double",
    Kind.BOOLEAN: "bool",
    Kind.STRING: "string",
    Kind.BYTES: "bytes",
}


def messages_of(text: str, references: Iterable[tuple[str, str]] = ()) -> list[Descriptor]:
    """Returns the messages of a schema at its top level, in order.

    Args:
        text: The .proto text.
        references: Files that it imports, by name.

    Raises:
        DataError: It can't be read.
    """
    pool = descriptor_pool.DescriptorPool()
    known = {**_KNOWN_FILES, **dict(references)}
    main = parse_proto(text, _MAIN)
    try:
        _add(pool, main, known, set(), 0)
        found = pool.FindFileByName(_MAIN)
        return [found.message_types_by_name[message.name] for message in main.message_type]
    except (TypeError, KeyError, ValueError) as error:
        raise DataError(f"The Protobuf schema can't be used: {error}", reason="BAD_SCHEMA") from None


def _add(
    pool: Any, file: descriptor_pb2.FileDescriptorProto, known: Mapping[str, str], done: set[str], depth: int
) -> None:
    if depth > DEPTH_MAX:
        raise DataError("The Protobuf schema's imports go round in a circle.", reason="BAD_SCHEMA")
    for name in file.dependency:
        if name in done:
            continue
        done.add(name)
        if name in known:
            _add(pool, parse_proto(known[name], name), known, done, depth + 1)
        elif name.startswith("google/protobuf/"):
            pool.AddSerializedFile(_google(name))
        else:
            raise DataError(f"The Protobuf schema imports {name}, which it doesn't have.", reason="BAD_SCHEMA")
    pool.AddSerializedFile(file.SerializeToString())


def _google(name: str) -> bytes:
    import importlib

    module = importlib.import_module(name.removesuffix(".proto").replace("/", ".") + "_pb2")
    data: bytes = module.DESCRIPTOR.serialized_pb
    return data


def to_connect(message: Descriptor, depth: int = 0) -> Schema:
    """Returns the Connect schema of a message.

    Raises:
        DataError: Columns can't hold it.
    """
    if depth > DEPTH_MAX:
        raise DataError(
            f"The message {message.full_name} holds itself; columns have no room for it.", reason="RECURSIVE"
        )
    fields: list[Field] = []
    seen: set[str] = set()
    for field in message.fields:
        oneof = real_oneof(field)
        if oneof is None:
            fields.append(Field(field.name, _tagged(_field_schema(field, depth), field.number)))
        elif oneof.name not in seen:
            seen.add(oneof.name)
            parts = tuple(
                Field(part.name, _tagged(_single(part, depth).as_optional(), part.number)) for part in oneof.fields
            )
            union = Schema(Kind.STRUCT, optional=True, name=f"{UNION}.{oneof.name}", fields=parts)
            fields.append(Field(oneof_field(oneof), union))
    return Schema(Kind.STRUCT, name=message.name, fields=tuple(fields))


def real_oneof(field: FieldDescriptor) -> Any:
    """Returns the oneof that a field belongs to; None for that which only says that a field is optional."""
    oneof = field.containing_oneof
    return None if oneof is None or (len(oneof.fields) == 1 and oneof.name == f"_{field.name}") else oneof


def oneof_field(oneof: Any) -> str:
    """Returns the name of the struct's field that a oneof becomes."""
    return f"{oneof.name}_{oneof.index}"


def is_map(field: FieldDescriptor) -> bool:
    """Whether a field is a map."""
    return bool(field.message_type is not None and field.message_type.GetOptions().map_entry)


def _tagged(schema: Schema, number: int) -> Schema:
    return dataclasses.replace(schema, parameters=(*schema.parameters, (TAG, str(number))))


def _field_schema(field: FieldDescriptor, depth: int) -> Schema:
    if is_map(field):
        key, value = (field.message_type.fields_by_name[name] for name in ("key", "value"))
        parts = _single(key, depth), _single(value, depth).as_optional(False)
        return Schema(Kind.MAP, key=parts[0].as_optional(False), value=parts[1])
    if field.is_repeated:
        return Schema(Kind.ARRAY, value=_single(field, depth).as_optional(False))
    return _single(field, depth)


def _single(field: FieldDescriptor, depth: int) -> Schema:
    if field.type == FieldDescriptor.TYPE_GROUP:
        raise DataError(f"The field {field.full_name} is a group; those can't be read.", reason="BAD_SCHEMA")
    if field.message_type is not None:
        logical = LOGICAL.get(field.message_type.full_name)
        if logical is not None:
            return logical.as_optional()
        if field.message_type.full_name == DECIMAL_MESSAGE:
            return _decimal(field)
        return to_connect(field.message_type, depth + 1).as_optional()
    small = _SMALL.get(params_of(field).get(_CONNECT_TYPE, ""))
    schema = Schema(small or _KINDS[field.type], optional=field.has_presence)
    if field.enum_type is None:
        return schema
    values = [(f"{_ENUM}.{value.name}", str(value.number)) for value in field.enum_type.values]
    return dataclasses.replace(schema, parameters=((_ENUM, field.enum_type.name), *values))


def _decimal(field: FieldDescriptor) -> Schema:
    params = params_of(field)
    if not params.get(SCALE, "").lstrip("-").isdecimal():
        raise DataError(
            f"The field {field.full_name} is a Decimal that doesn't say its scale; columns have one scale.",
            reason="BAD_SCHEMA",
        )
    return decimal_schema(int(params[SCALE])).as_optional()


def from_connect(schema: Schema, *, optional_labels: bool) -> str:
    """Returns the .proto text of a Connect schema.

    Args:
        schema: A struct.
        optional_labels: Whether fields that may be null say so (`optional.for.nullables`); otherwise null is written
            as nothing, which reads as 0 or an empty text.

    Raises:
        DataError: Protobuf has no such type.
    """
    if schema.kind is not Kind.STRUCT:
        raise DataError("Only structs can be written as Protobuf here.", reason="WRONG_TYPE")
    writer = _Writer(optional_labels)
    package, _, name = (schema.name or "ConnectDefault1").rpartition(".")
    body = writer.message(schema, name, 0)
    head = ['syntax = "proto3";']
    head += [f"package {package};"] if package else []
    head += [f'import "{file}";' for file in sorted(writer.files)]
    return "\n".join([*head, "", *body, ""])


class _Writer:
    def __init__(self, optional_labels: bool) -> None:
        self.files: set[str] = set()
        self._labels = optional_labels
        self._unnamed = 1

    def message(self, schema: Schema, name: str, depth: int) -> list[str]:
        indent = "  " * depth
        nested: list[str] = []
        lines: list[str] = []
        for number, field in numbered(schema):
            lines += self._field(field, number, depth + 1, nested, lines)
        return [f"{indent}message {name} {{", *lines, *nested, f"{indent}}}"]

    def _field(self, field: Field, number: int, depth: int, nested: list[str], lines: list[str]) -> list[str]:
        indent, schema = "  " * depth, field.schema
        if schema.name is not None and schema.name.startswith(UNION) and schema.kind is Kind.STRUCT:
            name = schema.name.removeprefix(f"{UNION}.")
            parts = [
                line for tag, part in numbered(schema) for line in self._field(part, tag, depth + 1, nested, lines)
            ]
            return [f"{indent}oneof {name} {{", *(part.replace("optional ", "", 1) for part in parts), f"{indent}}}"]
        if schema.kind is Kind.MAP:
            assert schema.key is not None
            assert schema.value is not None
            if schema.key.kind not in _NAMES or schema.key.kind in {Kind.FLOAT32, Kind.FLOAT64, Kind.BYTES}:
                raise DataError(f"Protobuf has no maps with keys like those of {field.name}.", reason="WRONG_TYPE")
            key, value = _NAMES[schema.key.kind], self._type(schema.value, field.name, depth, nested)
            return [f"{indent}map<{key}, {value}> {field.name} = {number};"]
        if schema.kind is Kind.ARRAY:
            assert schema.value is not None
            if schema.value.kind in {Kind.ARRAY, Kind.MAP}:
                raise DataError(f"Protobuf has no arrays of arrays or maps like {field.name}.", reason="WRONG_TYPE")
            return [f"{indent}repeated {self._type(schema.value, field.name, depth, nested)} {field.name} = {number};"]
        scalar = schema.kind is not Kind.STRUCT and schema.logical is None
        label = "optional " if self._labels and schema.optional and scalar else ""
        meta = self._meta(schema)
        return [f"{indent}{label}{self._type(schema, field.name, depth, nested)} {field.name} = {number}{meta};"]

    def _meta(self, schema: Schema) -> str:
        """Says what the field's type doesn't, as Confluent's converter does."""
        params: dict[str, str] = {}
        if schema.logical == DECIMAL:
            params = {SCALE: str(schema.scale)}
        elif schema.kind in {Kind.INT8, Kind.INT16} and schema.logical is None:
            params = {_CONNECT_TYPE: schema.kind.json_name}
        if not params:
            return ""
        self.files.add(_META_FILE)
        pairs = ", ".join(f'{{key: "{key}", value: "{value}"}}' for key, value in params.items())
        return f" [(confluent.field_meta) = {{params: [{pairs}]}}]"

    def _type(self, schema: Schema, field: str, depth: int, nested: list[str]) -> str:
        logical = schema.logical
        if logical is not None:
            self.files.add(_FILES[_MESSAGES[logical]])
            return f".{_MESSAGES[logical]}"
        if schema.kind is not Kind.STRUCT:
            return _NAMES[schema.kind]
        self._unnamed += not schema.name
        name = schema.name.rpartition(".")[2] if schema.name else f"ConnectDefault{self._unnamed}"
        found = self.message(schema, name, depth)
        if found[0] not in nested:
            nested += found
        return name


def numbered(schema: Schema) -> list[tuple[int, Field]]:
    """Returns the fields of a struct with their numbers: those they had, or else those of their places."""
    taken = {int(number) for field in schema.fields if (number := dict(field.schema.parameters).get(TAG))}
    free = (number for number in range(1, 1 << 29) if number not in taken and not 19_000 <= number < 20_000)
    found = []
    for field in schema.fields:
        if field.schema.name is not None and field.schema.name.startswith(UNION):
            found.append((0, field))
            continue
        stated = dict(field.schema.parameters).get(TAG)
        found.append((int(stated) if stated else next(free), field))
    return found
