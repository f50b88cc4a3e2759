"""Connect schemas as JSON Schema and back, as Confluent's converter maps them. Pure.

What JSON Schema can't say travels in `connect.type`, `connect.version`, `connect.parameters` and `connect.index` (the
place of a struct's field); name and documentation are title and description. Null beside one other type makes it
optional. Unions of several types have no columns and are refused.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any, Final

from wherry.contract.data import ABSENT, DECIMAL, KINDS_BY_JSON_NAME, DataError, Field, Kind, Schema
from wherry.contract.payload import from_payload, to_payload

DEPTH_MAX: Final = 100
_TYPE, _VERSION, _PARAMETERS, _INDEX = "connect.type", "connect.version", "connect.parameters", "connect.index"
_KINDS: Final[Mapping[str, Kind]] = {
    **KINDS_BY_JSON_NAME,
    "float32": Kind.FLOAT32,
    "float64": Kind.FLOAT64,
}
_PLAIN: Final[Mapping[str, Kind]] = {
    "boolean": Kind.BOOLEAN,
    "integer": Kind.INT64,
    "number": Kind.FLOAT64,
    "string": Kind.STRING,
    "array": Kind.ARRAY,
    "object": Kind.STRUCT,
}
# Which of Connect's types may stand behind a type of JSON.
_ALLOWED: Final[Mapping[str, frozenset[Kind]]] = {
    "integer": frozenset({Kind.INT8, Kind.INT16, Kind.INT32, Kind.INT64}),
    "number": frozenset({Kind.FLOAT32, Kind.FLOAT64, Kind.BYTES, Kind.INT8, Kind.INT16, Kind.INT32, Kind.INT64}),
    "string": frozenset({Kind.STRING, Kind.BYTES}),
    "array": frozenset({Kind.ARRAY, Kind.MAP}),
    "object": frozenset({Kind.STRUCT, Kind.MAP}),
    "boolean": frozenset({Kind.BOOLEAN}),
}


class Reading:
    """Reads the Connect schema of a JSON Schema."""

    def __init__(self, root: Any, references: Mapping[str, Any], *, nonrequired_optional: bool) -> None:
        """Takes the schema.

        Args:
            root: The schema, parsed.
            references: Schemas that it refers to, by the name it calls them.
            nonrequired_optional: Whether properties that aren't required are optional
                (`use.optional.for.nonrequired`).
        """
        self._root = root
        self._references = references
        self._nonrequired_optional = nonrequired_optional

    def schema(self) -> Schema:
        """Returns the Connect schema.

        Raises:
            DataError: Columns can't hold what it describes.
        """
        try:
            return self._schema(self._root, self._root, 0)
        except (KeyError, TypeError, AttributeError, ValueError) as error:
            raise DataError(f"The JSON Schema can't be read: {error!r}", reason="BAD_SCHEMA") from None

    def _schema(self, form: Any, root: Any, depth: int) -> Schema:
        if depth > DEPTH_MAX:
            raise DataError("The JSON Schema is nested too deeply, or holds itself.", reason="RECURSIVE")
        if not isinstance(form, Mapping):
            raise DataError("A JSON Schema that allows anything has no columns.", reason="BAD_SCHEMA")
        if "$ref" in form:
            return self._schema(*self._referred(form["$ref"], root), depth + 1)
        for key in ("oneOf", "anyOf"):
            if key in form:
                return self._one_of(form, form[key], root, depth)
        if "allOf" in form:
            return self._all_of(form, root, depth)
        kind = form.get("type", "object" if "properties" in form else "string" if "enum" in form else None)
        if isinstance(kind, list):
            return self._one_of(form, [{**form, "type": name} for name in kind], root, depth)
        if kind not in _PLAIN:
            raise DataError(f"A JSON Schema of type {kind} has no columns.", reason="BAD_SCHEMA")
        return self._typed(form, kind, root, depth)

    def _typed(self, form: Mapping[str, Any], name: str, root: Any, depth: int) -> Schema:
        kind = _KINDS.get(str(form.get(_TYPE)), _PLAIN[name])
        if kind not in _ALLOWED[name]:
            raise DataError(f"A JSON Schema says {_TYPE} {form[_TYPE]} of a type {name}.", reason="BAD_SCHEMA")
        schema = Schema(
            kind,
            name=form.get("title"),
            version=form.get(_VERSION),
            doc=form.get("description"),
            parameters=tuple((str(key), str(value)) for key, value in (form.get(_PARAMETERS) or {}).items()),
        )
        if kind is Kind.ARRAY:
            schema = dataclasses.replace(schema, value=self._schema(form["items"], root, depth + 1))
        elif kind is Kind.MAP and name == "object":
            value = self._schema(form["additionalProperties"], root, depth + 1)
            schema = dataclasses.replace(schema, key=Schema(Kind.STRING), value=value)
        elif kind is Kind.MAP:
            raise DataError("Maps with other keys than text can't be read from JSON here.", reason="BAD_SCHEMA")
        elif kind is Kind.STRUCT:
            schema = dataclasses.replace(schema, fields=self._fields(form, root, depth))
        if "default" not in form or form["default"] is None:
            return schema
        return dataclasses.replace(schema, default=from_payload(schema, form["default"]))

    def _fields(self, form: Mapping[str, Any], root: Any, depth: int) -> tuple[Field, ...]:
        properties = list((form.get("properties") or {}).items())
        last = len(properties)
        places = [part.get(_INDEX, last) if isinstance(part, Mapping) else last for _, part in properties]
        order = sorted(range(last), key=lambda number: places[number])
        required = set(form.get("required") or ())
        fields = []
        for number in order:
            name, part = properties[number]
            schema = self._schema(part, root, depth + 1)
            if self._nonrequired_optional and name not in required:
                schema = schema.as_optional()
            fields.append(Field(name, schema))
        return tuple(fields)

    def _one_of(self, form: Mapping[str, Any], branches: Sequence[Any], root: Any, depth: int) -> Schema:
        others = [branch for branch in branches if not (isinstance(branch, Mapping) and branch.get("type") == "null")]
        if len(others) != 1:
            raise DataError(
                f"A JSON Schema allows {len(others)} types for one value; columns hold one.", reason="UNION"
            )
        schema = self._schema(others[0], root, depth + 1)
        if "default" in form and form["default"] is not None and not schema.has_default:
            schema = dataclasses.replace(schema, default=from_payload(schema, form["default"]))
        return schema.as_optional(schema.optional or len(others) < len(branches))

    def _all_of(self, form: Mapping[str, Any], root: Any, depth: int) -> Schema:
        parts = [self._schema(part, root, depth + 1) for part in form["allOf"]]
        if "properties" in form:
            parts.append(self._typed({key: form[key] for key in form if key != "allOf"}, "object", root, depth))
        if len(parts) == 1:
            return parts[0]
        if any(part.kind is not Kind.STRUCT for part in parts):
            raise DataError("A JSON Schema joins types that are no objects.", reason="UNION")
        fields = {field.name: field for part in parts for field in part.fields}
        return Schema(Kind.STRUCT, name=form.get("title"), fields=tuple(fields.values()))

    def _referred(self, name: str, root: Any) -> tuple[Any, Any]:
        """Returns what a reference stands for, and the document that it stands in."""
        document, _, path = name.partition("#")
        if document:
            if document not in self._references:
                raise DataError(f"The JSON Schema refers to {document}, which it doesn't have.", reason="BAD_SCHEMA")
            root = self._references[document]
        found = root
        for step in path.strip("/").split("/") if path.strip("/") else ():
            found = found[step.replace("~1", "/").replace("~0", "~")]
        return found, root


def from_connect(schema: Schema, *, numeric_decimals: bool, nonrequired_optional: bool) -> dict[str, Any]:
    """Returns the JSON Schema of a Connect schema.

    Raises:
        DataError: JSON Schema has no such type.
    """

    def inner(part: Schema | None) -> dict[str, Any]:
        assert part is not None
        return from_connect(part, numeric_decimals=numeric_decimals, nonrequired_optional=nonrequired_optional)

    kind = schema.kind
    form: dict[str, Any] = {}
    if kind is Kind.STRUCT:
        properties = {field.name: {**inner(field.schema), _INDEX: index} for index, field in enumerate(schema.fields)}
        form = {"type": "object", "properties": properties}
        required = [field.name for field in schema.fields if not field.schema.optional]
        if nonrequired_optional and required:
            form["required"] = required
    elif kind is Kind.ARRAY:
        form = {"type": "array", "items": inner(schema.value)}
    elif kind is Kind.MAP:
        if schema.key is None or schema.key.kind is not Kind.STRING:
            raise DataError("Maps with other keys than text can't be written as JSON here.", reason="BAD_SCHEMA")
        form = {"type": "object", _TYPE: "map", "additionalProperties": inner(schema.value)}
    elif kind is Kind.BYTES:
        numeric = numeric_decimals and schema.logical == DECIMAL
        form = {"type": "number" if numeric else "string", _TYPE: "bytes"}
    elif kind in {Kind.BOOLEAN, Kind.STRING}:
        form = {"type": kind.json_name}
    else:
        number = "number" if kind in {Kind.FLOAT32, Kind.FLOAT64} else "integer"
        form = {"type": number, _TYPE: kind.value.lower()}
    stated = {"title": schema.name, "description": schema.doc, _VERSION: schema.version}
    form |= {key: value for key, value in stated.items() if value is not None}
    if schema.parameters:
        form[_PARAMETERS] = dict(schema.parameters)
    if schema.has_default and schema.default is not None:
        form["default"] = to_payload(dataclasses.replace(schema, default=ABSENT), schema.default)
    return {"oneOf": [{"type": "null"}, form]} if schema.optional else form
