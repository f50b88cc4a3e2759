"""Avro schemas taken apart: what a type is, with its names resolved. Pure."""

from __future__ import annotations

import dataclasses
import enum
import json
from collections.abc import Iterable, Mapping
from typing import Any, Final

from wherry.worker.convert import DataError

DEPTH_MAX: Final = 100
_OWN_KEYS: Final = frozenset({"type", "name", "namespace", "fields", "items", "values", "symbols", "size", "aliases"})


class AvroKind(enum.Enum):
    """What a type is."""

    NULL = "null"
    BOOLEAN = "boolean"
    INT = "int"
    LONG = "long"
    FLOAT = "float"
    DOUBLE = "double"
    BYTES = "bytes"
    STRING = "string"
    FIXED = "fixed"
    ENUM = "enum"
    ARRAY = "array"
    MAP = "map"
    RECORD = "record"
    UNION = "union"


_PRIMITIVES: Final[Mapping[str, AvroKind]] = {
    kind.value: kind
    for kind in AvroKind
    if kind.value in {"null", "boolean", "int", "long", "float", "double", "bytes", "string"}
}


class Missing(enum.Enum):
    """Says that a field has no default, which is something else than a default of null."""

    MISSING = "missing"


MISSING: Final = Missing.MISSING


@dataclasses.dataclass(frozen=True, slots=True)
class AvroType:
    """One type of an Avro schema.

    Attributes:
        kind: What it is.
        name: Full name of a record, enum or fixed.
        fields: Fields of a record.
        items: Type of an array's items or a map's values.
        branches: Types of a union.
        symbols: Of an enum.
        size: Of a fixed.
        properties: Everything else that the schema says, such as `logicalType`, `doc` and `connect.name`.
    """

    kind: AvroKind
    name: str = ""
    fields: tuple[AvroField, ...] = ()
    items: AvroType | None = None
    branches: tuple[AvroType, ...] = ()
    symbols: tuple[str, ...] = ()
    size: int = 0
    properties: Mapping[str, Any] = dataclasses.field(default_factory=dict)

    @property
    def simple_name(self) -> str:
        """Its name without the namespace, or the name of its kind."""
        return self.name.rpartition(".")[2] or self.kind.value

    @property
    def optional_part(self) -> AvroType | None:
        """The type beside null, in a union of null and one other."""
        if self.kind is not AvroKind.UNION or len(self.branches) != 2:
            return None
        left, right = self.branches
        if left.kind is AvroKind.NULL:
            return right
        return left if right.kind is AvroKind.NULL else None


@dataclasses.dataclass(frozen=True, slots=True)
class AvroField:
    """One field of a record."""

    name: str
    type: AvroType
    default: Any = MISSING
    doc: str | None = None


def parse(text: str, references: Iterable[str] = ()) -> AvroType:
    """Takes a schema apart.

    Args:
        text: The schema as JSON; a name alone is a schema too.
        references: Schemas it refers to, each after those that it refers to itself.

    Raises:
        DataError: It is no Avro schema, or one that columns can't hold.
    """
    parser = _Parser()
    try:
        for reference in references:
            parser.type(json.loads(reference), "", 0)
        return parser.type(_loads(text), "", 0)
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise DataError(f"The Avro schema can't be read: {error!r}", reason="BAD_SCHEMA") from None


def _loads(text: str) -> Any:
    # Registries hand out a schema of one primitive also without quotes.
    return text if text in _PRIMITIVES else json.loads(text)


class _Parser:
    def __init__(self) -> None:
        self._named: dict[str, AvroType | None] = {}

    def type(self, schema: Any, namespace: str, depth: int) -> AvroType:
        if depth > DEPTH_MAX:
            raise DataError(f"The schema is nested more than {DEPTH_MAX} levels deep.", reason="BAD_SCHEMA")
        if isinstance(schema, list):
            return AvroType(
                AvroKind.UNION, branches=tuple(self.type(branch, namespace, depth + 1) for branch in schema)
            )
        if isinstance(schema, str):
            return self._by_name(schema, namespace)
        kind = schema["type"]
        if isinstance(kind, dict | list):
            return self.type(kind, namespace, depth + 1)
        properties = {key: value for key, value in schema.items() if key not in _OWN_KEYS}
        if kind in _PRIMITIVES:
            return AvroType(_PRIMITIVES[kind], properties=properties)
        if kind == "array":
            return AvroType(
                AvroKind.ARRAY, items=self.type(schema["items"], namespace, depth + 1), properties=properties
            )
        if kind == "map":
            return AvroType(
                AvroKind.MAP, items=self.type(schema["values"], namespace, depth + 1), properties=properties
            )
        if kind in {"record", "error", "enum", "fixed"}:
            return self._define(schema, kind, namespace, properties, depth)
        return self._by_name(kind, namespace)

    def _define(
        self, schema: Mapping[str, Any], kind: str, namespace: str, properties: Mapping[str, Any], depth: int
    ) -> AvroType:
        name = schema["name"]
        space = schema.get("namespace", namespace) if "." not in name else name.rpartition(".")[0]
        full = name if "." in name or not space else f"{space}.{name}"
        if kind == "enum":
            found = AvroType(AvroKind.ENUM, full, symbols=tuple(schema["symbols"]), properties=properties)
        elif kind == "fixed":
            found = AvroType(AvroKind.FIXED, full, size=int(schema["size"]), properties=properties)
        else:
            self._named[full] = None
            fields = tuple(self._field(field, space, depth) for field in schema["fields"])
            found = AvroType(AvroKind.RECORD, full, fields=fields, properties=properties)
        self._named[full] = found
        return found

    def _field(self, field: Mapping[str, Any], namespace: str, depth: int) -> AvroField:
        found = self.type(field["type"], namespace, depth + 1)
        return AvroField(field["name"], found, field.get("default", MISSING), field.get("doc"))

    def _by_name(self, name: str, namespace: str) -> AvroType:
        if name in _PRIMITIVES:
            return AvroType(_PRIMITIVES[name])
        for full in [name] if "." in name or not namespace else [f"{namespace}.{name}", name]:
            if full in self._named:
                found = self._named[full]
                if found is None:
                    raise DataError(
                        f"The record {full} holds itself; columns have no room for such a type.", reason="RECURSIVE"
                    )
                return found
        raise DataError(f"The Avro schema names {name}, which it doesn't define.", reason="BAD_SCHEMA")
