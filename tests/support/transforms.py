"""Reads the case tables and plays their records: one at a time, and many of the same in one batch."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa

from wherry.contract.batch import HEADERS_TYPE, JSON_TYPE, TIMESTAMP_TYPE, Batch, Constants
from wherry.contract.schema import field_of
from wherry.worker.convert.json import JsonConverter
from wherry.worker.convert.registry import converters_of
from wherry.worker.transform.registry import chain_of
from wherry.worker.transform.step import Transforms

FOLDER = Path(__file__).resolve().parents[1] / "cases/transforms"
PLAIN = {"replace.null.with.default": "false"}
HEADERS = converters_of({"header.converter": "SimpleHeaderConverter"}, {}).headers
READER, WRITER = JsonConverter(PLAIN, is_key=False), JsonConverter(PLAIN, is_key=False)


@dataclass(frozen=True)
class Case:
    """One configuration, and what becomes of records; `refused` where it can't even be used."""

    table: str
    name: str
    config: dict[str, str]
    records: list[tuple[dict[str, Any], dict[str, Any]]]
    refused: str = ""

    def __str__(self) -> str:
        return f"{self.table}: {self.name}"


def cases() -> Iterator[Case]:
    """All cases of all tables."""
    for path in sorted(FOLDER.glob("*.json")):
        for case in json.loads(path.read_text()):
            yield Case(
                path.stem, case["name"], config_of(case["chain"]), case.get("records", []), case.get("refused", "")
            )


def config_of(chain: list[dict[str, Any]]) -> dict[str, str]:
    """A connector's keys for a chain."""
    config: dict[str, str] = {}
    predicates = []
    for number, link in enumerate(chain):
        config[f"transforms.t{number}.type"] = link["class"]
        config |= {f"transforms.t{number}.{key}": value for key, value in link["config"].items()}
        if "predicate" in link:
            predicates.append(f"p{number}")
            config |= {
                f"transforms.t{number}.predicate": f"p{number}",
                f"transforms.t{number}.negate": str(link["negate"]).lower(),
                f"predicates.p{number}.type": link["predicate"],
            }
            config |= {f"predicates.p{number}.{key}": value for key, value in link["predicate_config"].items()}
    return config | {
        "transforms": ",".join(f"t{number}" for number in range(len(chain))),
        "predicates": ",".join(predicates),
    }


def play(case: Case, record: Mapping[str, Any], rows: int) -> dict[str, Any]:
    """What becomes of a record, as the tables say it; all rows of a batch must fare alike."""
    batch = batch_of(record, rows)
    links = chain_of(case.config, is_sink=not record.get("source", False))
    stepped = Transforms(links).apply(batch, batch)
    if stepped.failures:
        assert [failure.row for failure in stepped.failures] == list(range(rows))
        error = stepped.failures[-1].error
        return {"error": [error.java_class, str(error)]}
    if stepped.filtered:
        assert stepped.filtered == rows
        return {"dropped": True}
    ((after, raw),) = stepped.pieces
    assert (after.num_rows, raw.num_rows) == (rows, rows)
    return _answer(after, rows - 1, record.get("topic", "t"))


def batch_of(record: Mapping[str, Any], rows: int) -> Batch:
    """Many of the same record as one batch."""
    is_source = record.get("source", False)
    columns = {"value": _column(record.get("value"), rows) or (pa.field("value", pa.null()), pa.nulls(rows))}
    key = _column(record.get("key"), rows)
    if key is not None:
        columns["key"] = key
    if record.get("timestamp") is not None:
        times = pa.array([record["timestamp"]] * rows, TIMESTAMP_TYPE)
        columns["timestamp"] = (pa.field("timestamp", TIMESTAMP_TYPE), times)
    if record.get("headers"):
        pairs = [{"name": name, "value": None if text == "null" else text.encode()} for name, text in record["headers"]]
        columns["headers"] = (pa.field("headers", HEADERS_TYPE), pa.array([pairs] * rows, HEADERS_TYPE))
    if not is_source:
        columns["offset"] = (pa.field("offset", pa.int64()), pa.array([record.get("offset", 0)] * rows, pa.int64()))
    schema = pa.schema([field.with_name(name) for name, (field, _) in columns.items()])
    records = pa.RecordBatch.from_arrays([column for _, column in columns.values()], schema=schema)
    return Batch(records, Constants(record.get("topic", "t"), None if is_source else record.get("partition", 0)))


def dressed(data_type: pa.DataType, column: pa.Array) -> pa.Array:
    """The column under a type with other metadata."""
    if not pa.types.is_struct(data_type):
        return column
    children = [dressed(field.type, child) for field, child in zip(data_type, column.flatten(), strict=True)]
    mask = column.is_null() if column.null_count else None
    return pa.StructArray.from_arrays(children, fields=list(data_type), mask=mask)


def equal(one: Any, other: Any) -> bool:
    """Equal with the kinds of numbers; floats that print otherwise in Java 17 count by their value and sign."""
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(equal(one[key], other[key]) for key in one)
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(map(equal, one, other))
    if isinstance(one, float) and isinstance(other, float):
        same = one == other or pa.scalar(one, pa.float32()) == pa.scalar(other, pa.float32())
        return same and math.copysign(1.0, one) == math.copysign(1.0, other)
    return type(one) is type(other) and bool(one == other)


def _column(told: Mapping[str, Any] | None, rows: int) -> tuple[pa.Field, pa.Array] | None:
    if told is None:
        return None
    if "null_of" in told:
        field = field_of(told["null_of"]["schema"])
        return field, pa.nulls(rows, field.type)
    if "schema" not in told:
        text = None if told["payload"] is None else json.dumps(told["payload"])
        return pa.field("value", JSON_TYPE), pa.ExtensionArray.from_storage(
            JSON_TYPE, pa.array([text] * rows, pa.string())
        )
    # Read without defaults: what is null must be so for the transform to see.
    bare = {"schema": _bare(told["schema"]), "payload": told["payload"]}
    converted = READER.to_connect("t", pa.array([json.dumps(bare).encode()] * rows, pa.binary()))
    assert not converted.failures
    field = field_of(told["schema"])
    return field, dressed(field.type, converted.runs[0].column)


def _bare(schema: Mapping[str, Any]) -> dict[str, Any]:
    kept = {key: value for key, value in schema.items() if key != "default"}
    return kept | ({"fields": [_bare(field) for field in schema["fields"]]} if "fields" in schema else {})


def _answer(batch: Batch, row: int, topic: str) -> dict[str, Any]:
    answer: dict[str, Any] = {"value": _side(batch, "value", row)}
    key = _side(batch, "key", row)
    if key is not None:
        answer["key"] = key
    if batch.column("topic")[row].as_py() != topic:
        answer["topic"] = batch.column("topic")[row].as_py()
    if batch.headers is not None:
        pairs = HEADERS.written(batch.headers, for_sink=True).runs[0].column[row].as_py()
        answer["headers"] = [
            [pair["name"], None if pair["value"] is None else pair["value"].decode()] for pair in pairs
        ]
    return answer


def _side(batch: Batch, name: str, row: int) -> Any:
    column = batch.stored(name)
    if column is None or not column[row].is_valid:
        return None
    field = batch.records.schema.field(name)
    if field.type == JSON_TYPE:
        return {"schema": None, "payload": json.loads(column.storage[row].as_py())}
    converted = WRITER.from_connect("t", field, column.slice(row, 1))
    return {"unwritable": True} if converted.failures else json.loads(converted.runs[0].column[0].as_py())
