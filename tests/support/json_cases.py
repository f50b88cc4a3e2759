"""Reads the case tables of the JsonConverter, and tells what becomes of a column in their words.

A value is told as the tables tell it: whole numbers, texts, truth values and lists as they are; `{"Float": …}` and
`{"Double": …}` as Java prints them; `{"hex": …}`, `{"decimal": …}`, `{"ms": …}`; `{"map": pairs}` and
`{"struct": fields}`. A value without schema is told in the same way.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa

from wherry.contract.batch import JSON_TYPE
from wherry.contract.data import Float32
from wherry.contract.java import double_text, float_text
from wherry.contract.schema import field_of, schema_of
from wherry.contract.schemaless import loads
from wherry.worker.convert import Converted
from wherry.worker.transform.objects import json_text

FOLDER = Path(__file__).resolve().parents[1] / "cases/json"
DAY_MS = 86_400_000


@dataclass(frozen=True)
class Group:
    """Cases of one converter."""

    settings: dict[str, str]
    rows: list[list[Any]]

    def __str__(self) -> str:
        return json.dumps(self.settings)


def groups(table: str) -> list[Group]:
    """The groups of a table."""
    found = json.loads((FOLDER / f"{table}.json").read_text())
    return [Group(group["settings"], group["rows"]) for group in found["groups"]]


def bytes_of(told: Any) -> bytes | None:
    """Bytes as the tables tell them."""
    if isinstance(told, dict):
        return bytes.fromhex(told["hex"])
    return None if told is None else str(told).encode()


def outcomes(converted: Converted, rows: int) -> list[dict[str, Any]]:
    """What became of each row: a schema and a value, or an error."""
    failed = {failure.row: failure.error for failure in converted.failures}
    good = _good(converted)
    found = [
        {"error": [failed[row].java_class, str(failed[row])]} if row in failed else next(good) for row in range(rows)
    ]
    assert next(good, None) is None
    return found


def told_of(field: pa.Field, value: pa.Scalar) -> Any:
    """A value of a column as the tables tell it."""
    data_type = value.type
    if not value.is_valid:
        return None
    if data_type == JSON_TYPE:
        return loosely_told(loads(value.as_py()))
    if pa.types.is_float32(data_type):
        return {"Float": float_text(Float32(value.as_py()))}
    if pa.types.is_floating(data_type):
        return {"Double": double_text(value.as_py())}
    if pa.types.is_binary(data_type):
        return {"hex": value.as_py().hex()}
    if pa.types.is_decimal(data_type):
        return {"decimal": str(value.as_py())}
    if pa.types.is_temporal(data_type):
        return {"ms": value.value * (DAY_MS if pa.types.is_date32(data_type) else 1)}
    if pa.types.is_struct(data_type):
        return {"struct": {child.name: told_of(child, value[index]) for index, child in enumerate(data_type)}}
    if pa.types.is_map(data_type):
        fields = data_type.key_field, data_type.item_field
        pairs = [[told_of(fields[0], pair["key"]), told_of(fields[1], pair["value"])] for pair in value.values]
        return {"map": sorted(pairs, key=json.dumps)}
    if pa.types.is_list(data_type):
        return [told_of(data_type.value_field, item) for item in value.values]
    return value.as_py()


def loosely_told(value: Any) -> Any:
    """A value without schema as the tables tell it."""
    if isinstance(value, float):
        return {"Double": double_text(value)}
    if isinstance(value, dict):
        return {"map": sorted([[key, loosely_told(item)] for key, item in value.items()], key=json.dumps)}
    if isinstance(value, list):
        return [loosely_told(item) for item in value]
    return value


def column_of(schema: dict[str, Any] | None, told: Any, rows: int) -> tuple[pa.Field, pa.Array]:
    """A column of equal values, made from what the tables tell."""
    if schema is None:
        text = None if told is None else loose_text(told)
        texts = pa.array([text] * rows, pa.string())
        return pa.field("value", JSON_TYPE), pa.ExtensionArray.from_storage(JSON_TYPE, texts)
    field = field_of(schema)
    return field, pa.array([_made(field.type, told)] * rows, field.type)


def loose_text(told: Any) -> str:
    """The JSON of a value without schema."""
    if isinstance(told, dict) and "Double" in told:
        return json_text(float(told["Double"]))
    if isinstance(told, dict):
        return "{" + ",".join(f"{json_text(key)}:{loose_text(item)}" for key, item in told["map"]) + "}"
    if isinstance(told, list):
        return "[" + ",".join(map(loose_text, told)) + "]"
    return json_text(told)


def _made(data_type: pa.DataType, told: Any) -> Any:
    if isinstance(told, list):
        return [_made(data_type.value_type, item) for item in told]
    if not isinstance(told, dict):
        return told
    ((kind, value),) = told.items()
    if kind == "map":
        return [(_made(data_type.key_type, key), _made(data_type.item_type, item)) for key, item in value]
    if kind == "struct":
        return {child.name: _made(child.type, value.get(child.name)) for child in data_type}
    if kind == "ms":
        return value // DAY_MS if pa.types.is_date32(data_type) else value
    return {"hex": bytes.fromhex, "decimal": Decimal}.get(kind, float)(value)


def _good(converted: Converted) -> Iterator[dict[str, Any]]:
    for run in converted.runs:
        schema = None if run.field.type == JSON_TYPE else schema_of(run.field)
        for value in run.column:
            yield {"schema": schema, "value": told_of(run.field, value)}
