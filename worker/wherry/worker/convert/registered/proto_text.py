"""The text of .proto files into descriptors: what a registry keeps of a Protobuf schema. Pure.

Messages, enums, oneofs, maps, groups of numbers and imports are read; options, services and extensions are passed over,
because they don't change the bytes. Types stay as they are named; protobuf's own pool finds them.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from typing import Final

from google.protobuf import descriptor_pb2  # type: ignore[import-untyped]  # it publishes no types
from google.protobuf.descriptor import FieldDescriptor

from wherry.contract.data import DataError

DEPTH_MAX: Final = 64
_META: Final = "confluent.field_meta"
_PART: Final = re.compile(
    r"""\s+|//[^\n]*|/\*.*?\*/|(?P<text>"(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*')|(?P<word>[\w.+-]+)|(?P<sign>.)""",
    re.DOTALL,
)
_SCALARS: Final = {
    name: getattr(descriptor_pb2.FieldDescriptorProto, f"TYPE_{name.upper()}")
    for name in (
        *("double", "float", "int64", "uint64", "int32", "fixed64", "fixed32", "bool", "string", "bytes", "uint32"),
        *("sfixed32", "sfixed64", "sint32", "sint64"),
    )
}
_LABELS: Final = {
    "optional": descriptor_pb2.FieldDescriptorProto.LABEL_OPTIONAL,
    "required": descriptor_pb2.FieldDescriptorProto.LABEL_REQUIRED,
    "repeated": descriptor_pb2.FieldDescriptorProto.LABEL_REPEATED,
}


def parse_proto(text: str, name: str) -> descriptor_pb2.FileDescriptorProto:
    """Reads a file.

    Raises:
        DataError: It is no .proto text, or has what isn't known here.
    """
    parser = _Parser(text, name)
    try:
        return parser.file()
    except (StopIteration, ValueError, KeyError) as error:
        raise DataError(
            f"The Protobuf schema {name} can't be read: {error or 'it ends too early'}.", reason="BAD_SCHEMA"
        ) from None


def params_of(field: FieldDescriptor) -> dict[str, str]:
    """Returns the parameters that a field's `confluent.field_meta` has."""
    if not field.json_name.startswith("["):
        return {}
    params: dict[str, str] = json.loads(field.json_name)[1]
    return params


def _pairs(options: Sequence[str]) -> Iterator[tuple[str, str]]:
    """Finds `key: "k", value: "v"` among the words of an option."""
    for place, word in enumerate(options):
        if word == "key" and options[place + 1 : place + 2] == [":"] and "value" in options[place : place + 5]:
            value = options.index("value", place)
            yield options[place + 2][1:-1], options[value + 2][1:-1]


def _parts(text: str) -> Iterator[str]:
    for match in _PART.finditer(text):
        if match.lastgroup:
            yield match[0]


class _Parser:
    def __init__(self, text: str, name: str) -> None:
        self._parts = list(_parts(text))
        self._place = 0
        self._file = descriptor_pb2.FileDescriptorProto(name=name, syntax="proto2")

    def file(self) -> descriptor_pb2.FileDescriptorProto:
        while self._place < len(self._parts):
            word = self._next()
            if word == "syntax":
                self._expect("=")
                self._file.syntax = self._unquoted()
                self._expect(";")
            elif word == "package":
                self._file.package = self._next()
                self._expect(";")
            elif word == "import":
                if self._peek() in {"public", "weak"}:
                    self._next()
                self._file.dependency.append(self._unquoted())
                self._expect(";")
            elif word == "message":
                self._message(self._file.message_type.add(), 0)
            elif word == "enum":
                self._enum(self._file.enum_type.add())
            elif word != ";":
                self._skip()
        return self._file

    def _message(self, message: descriptor_pb2.DescriptorProto, depth: int) -> None:
        if depth > DEPTH_MAX:
            raise ValueError("its messages are nested too deeply")
        message.name = self._next()
        self._expect("{")
        while (word := self._next()) != "}":
            if word == "message":
                self._message(message.nested_type.add(), depth + 1)
            elif word == "enum":
                self._enum(message.enum_type.add())
            elif word == "oneof":
                self._oneof(message)
            elif word in {"option", "reserved", "extensions", "extend"}:
                self._skip()
            elif word != ";":
                self._field(message, word)
        synthetic = [field for field in message.field if field.proto3_optional]
        for field in synthetic:
            field.oneof_index = len(message.oneof_decl)
            message.oneof_decl.add().name = f"_{field.name}"

    def _field(self, message: descriptor_pb2.DescriptorProto, word: str, oneof: int | None = None) -> None:
        field = message.field.add()
        label = _LABELS.get(word)
        kind = word if label is None else self._next()
        field.label = label or _LABELS["optional"]
        if kind == "map" and self._peek() == "<":
            self._map(message, field)
            return
        if kind == "group":
            raise ValueError("groups are not known here")
        if kind in _SCALARS:
            field.type = _SCALARS[kind]
        else:
            field.type_name = kind
        field.name = self._next()
        if label == _LABELS["optional"] and self._file.syntax == "proto3":
            field.proto3_optional = True
        if oneof is not None:
            field.oneof_index = oneof
        self._number(field)

    def _number(self, field: descriptor_pb2.FieldDescriptorProto) -> None:
        self._expect("=")
        field.number = int(self._next(), 0)
        if self._peek() == "[":
            options = self._brackets()
            if "packed" in options:
                field.options.packed = options[options.index("packed") + 2] == "true"
            if _META in options:
                # The name in JSON is of no use here, and gives what the field says about itself a place.
                field.json_name = json.dumps([field.name, dict(_pairs(options))])
        self._expect(";")

    def _map(self, message: descriptor_pb2.DescriptorProto, field: descriptor_pb2.FieldDescriptorProto) -> None:
        self._expect("<")
        key = self._next()
        self._expect(",")
        value = self._next()
        self._expect(">")
        field.name = self._next()
        field.label = _LABELS["repeated"]
        entry = message.nested_type.add()
        entry.name = "".join(part[:1].upper() + part[1:] for part in field.name.split("_")) + "Entry"
        entry.options.map_entry = True
        for number, (name, kind) in enumerate((("key", key), ("value", value)), 1):
            part = entry.field.add(name=name, number=number, label=_LABELS["optional"])
            if kind in _SCALARS:
                part.type = _SCALARS[kind]
            else:
                part.type_name = kind
        field.type_name = entry.name
        self._number(field)

    def _oneof(self, message: descriptor_pb2.DescriptorProto) -> None:
        index = len(message.oneof_decl)
        message.oneof_decl.add().name = self._next()
        self._expect("{")
        while (word := self._next()) != "}":
            if word == "option":
                self._skip()
            elif word != ";":
                self._field(message, word, index)

    def _enum(self, enum: descriptor_pb2.EnumDescriptorProto) -> None:
        enum.name = self._next()
        self._expect("{")
        while (word := self._next()) != "}":
            if word == "option":
                start = self._place
                self._skip()
                told = self._parts[start : self._place]
                enum.options.allow_alias = enum.options.allow_alias or told[:3] == ["allow_alias", "=", "true"]
            elif word == "reserved":
                self._skip()
            elif word != ";":
                self._expect("=")
                enum.value.add(name=word, number=int(self._next(), 0))
                if self._peek() == "[":
                    self._brackets()
                self._expect(";")

    def _brackets(self) -> list[str]:
        start, depth = self._place, 0
        while True:
            part = self._next()
            depth += (part == "[") - (part == "]")
            if not depth:
                return self._parts[start : self._place]

    def _skip(self) -> None:
        """Passes over a statement: up to its semicolon, or the end of its block."""
        depth = 0
        while True:
            part = self._next()
            depth += (part == "{") - (part == "}")
            if depth == 0 and part in {";", "}"}:
                return

    def _next(self) -> str:
        if self._place >= len(self._parts):
            raise ValueError("it ends too early")
        self._place += 1
        return self._parts[self._place - 1]

    def _peek(self) -> str:
        return self._parts[self._place] if self._place < len(self._parts) else ""

    def _expect(self, sign: str) -> None:
        found = self._next()
        if found != sign:
            raise ValueError(f"it has {found!r} where {sign!r} should be")

    def _unquoted(self) -> str:
        return self._next()[1:-1]
