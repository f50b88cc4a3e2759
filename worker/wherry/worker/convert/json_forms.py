"""Schemas as they come in envelopes, made regular: what Kafka Connect's JsonConverter would keep of them.

It ignores members of a wrong kind, refuses parameters that are no text, and reads a default as it reads a payload, so
that a default of the wrong kind becomes 0 or is refused. Afterwards the form is what `schema_of` would give.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, ClassVar, Final

import pyarrow as pa

from wherry.contract.data import KINDS_BY_JSON_NAME, Kind
from wherry.contract.schema import DEPTH_MAX, field_of
from wherry.worker.convert import DataError
from wherry.worker.convert.json_rows import connect_value
from wherry.worker.convert.json_write import WriteOptions, json_texts

_INT_BITS: Final = 32


class SchemaBuilderError(DataError):
    """A schema that contradicts itself."""

    java_class: ClassVar[str] = "org.apache.kafka.connect.errors.SchemaBuilderException"


def regular(form: Any, depth: int = 0) -> dict[str, Any]:
    """Returns the regular form of a schema.

    Raises:
        DataError: It is no schema.
    """
    kind = form.get("type") if isinstance(form, Mapping) else None
    if not isinstance(kind, str):
        raise DataError("Schema must contain 'type' field", reason="BAD_SCHEMA")
    if depth > DEPTH_MAX:
        raise DataError(f"The schema is nested more than {DEPTH_MAX} levels deep.", reason="BAD_SCHEMA")
    known = KINDS_BY_JSON_NAME.get(kind)
    if known is None:
        raise DataError(f"Unknown schema type: {kind}", reason="BAD_SCHEMA")
    made: dict[str, Any] = {"type": kind, **_parts(form, known, depth)}
    made["optional"] = form.get("optional") is True
    for name in ("name", "doc"):
        if isinstance(form.get(name), str):
            made[name] = form[name]
    version = form.get("version")
    if isinstance(version, int) and not isinstance(version, bool):
        made["version"] = _wrapped(version)
    parameters = form.get("parameters")
    if isinstance(parameters, Mapping) and parameters:
        if not all(isinstance(value, str) for value in parameters.values()):
            raise DataError("Schema parameters must have string values.", reason="BAD_SCHEMA")
        made["parameters"] = dict(parameters)
    if "default" in form:
        made.update(_default(made, form["default"]))
    return made


def _parts(form: Mapping[str, Any], kind: Kind, depth: int) -> dict[str, Any]:
    if kind is Kind.ARRAY:
        return {"items": _part(form, "items", "Array schema did not specify the element type", depth)}
    if kind is Kind.MAP:
        for name, text in (("keys", "key"), ("values", "value")):
            if name not in form:
                raise DataError(f"Map schema did not specify the {text} type", reason="BAD_SCHEMA")
        for name in ("keys", "values"):
            if form[name] is None:
                raise SchemaBuilderError(f"{name[:-1]}Schema cannot be null.", reason="BAD_SCHEMA")
        return {name: regular(form[name], depth + 1) for name in ("keys", "values")}
    if kind is not Kind.STRUCT:
        return {}
    fields = form.get("fields")
    if not isinstance(fields, list):
        raise DataError('Struct schema\'s "fields" argument is not an array.', reason="BAD_SCHEMA")
    made: dict[str, dict[str, Any]] = {}
    for field in fields:
        told = field.get("field") if isinstance(field, Mapping) else None
        if not isinstance(told, str):
            raise DataError("Struct schema's field name not specified properly", reason="BAD_SCHEMA")
        if not told:
            raise SchemaBuilderError("fieldName cannot be null.", reason="BAD_SCHEMA")
        if told in made:
            raise SchemaBuilderError(
                f"Cannot create field because of field name duplication {told}", reason="BAD_SCHEMA"
            )
        made[told] = regular(field, depth + 1) | {"field": told}
    return {"fields": list(made.values())}


def _part(form: Mapping[str, Any], name: str, missing: str, depth: int) -> dict[str, Any]:
    if form.get(name) is None:
        raise DataError(missing, reason="BAD_SCHEMA")
    return regular(form[name], depth + 1)


def _default(form: dict[str, Any], default: Any) -> dict[str, Any]:
    """Returns the default as it will be written; nothing where there is none."""
    field = field_of(form)
    value = connect_value(field, default)
    if value is None and field.nullable:
        return {}
    if value is None or form["type"] == "struct":
        # A struct is never equal to one of a schema that is still being made.
        raise SchemaBuilderError("Invalid default value", reason="BAD_SCHEMA")
    texts, _ = json_texts(field, pa.array([value], field.type), WriteOptions())
    return {"default": json.loads(texts[0].as_py())}


def _wrapped(version: int) -> int:
    version &= (1 << _INT_BITS) - 1
    return version - (1 << _INT_BITS) if version >> (_INT_BITS - 1) else version
