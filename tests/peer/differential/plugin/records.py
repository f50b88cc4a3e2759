"""What `java/` is for Kafka Connect: a source of records of any schema, and a sink that shows all it gets to see."""

from __future__ import annotations

import base64
import datetime
import itertools
import json
import math
from collections.abc import Iterator, Mapping
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa

from wherry.contract.batch import HEADERS_TYPE, JSON_TYPE, TIMESTAMP_TYPE
from wherry.contract.data import DATE, DECIMAL, TIME, DataError, Kind, Schema
from wherry.contract.payload import from_payload, scaled, to_payload
from wherry.contract.schema import from_field, from_form, to_field, to_form
from wherry.contract.schemaless import loads
from wherry.sdk import (
    Batch,
    CaughtUp,
    Config,
    Mark,
    Offsets,
    Plan,
    RecordRejectedError,
    RowError,
    Sink,
    Source,
    Task,
    Transform,
    Work,
    key,
    serve,
)

EPOCH = datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC)


class SourceConfig(Config):
    file: str = key(doc="File of records.", importance="high")
    topic: str = key(doc="Topic they go to.", importance="high")


class Records(Source[SourceConfig]):
    class_name, version = "wherry.peer.RecordsSource", "1"
    parkable = False

    def plan(self, offsets: Offsets, max_tasks: int) -> Plan:
        return Plan(tasks=[Task(partitions=[{"file": self.config.file}])])

    def read(self, work: Work, offsets: Offsets) -> Iterator[Batch | CaughtUp]:
        partition = {"file": self.config.file}
        described = [json.loads(line, parse_float=Decimal) for line in Path(self.config.file).read_text().splitlines()]
        done = int((offsets.get(partition) or {"line": 0})["line"])
        for _, group in itertools.groupby(described[done:], _shape):
            rows = list(group)
            done += len(rows)
            yield Batch(_batch(rows), topic=self.config.topic, marks=[Mark(len(rows), partition, {"line": done})])
        while not self.stopping:
            yield CaughtUp()
            self.wait(0.1)


class SinkConfig(Config):
    file: str = key(doc="File to append to.", importance="high")
    refuse: str = key(default="", doc="Text of a value to refuse.", importance="low")


class Shown(Sink[SinkConfig]):
    class_name, version = "wherry.peer.RecordsSink", "1"

    def write_batch(self, batch: Batch) -> list[RowError]:
        values = batch.value.to_pylist() if self.config.refuse else ()
        refused = [row for row, value in enumerate(values) if str(value) == self.config.refuse]
        lines = "".join(f"{line}\n" for row, line in enumerate(_shown(batch)) if row not in refused)
        with Path(self.config.file).open("a", encoding="utf-8", errors="surrogatepass") as file:
            file.write(lines)
        return [RowError.of(row, RecordRejectedError("It is refused by name.")) for row in refused]


class RepartitionConfig(Config):
    partition: str = key(doc="The partition to give.", importance="high")


class Repartition(Transform[RepartitionConfig]):
    class_name, version = "wherry.peer.Repartition", "1"

    def transform_batch(self, batch: Batch) -> Batch:
        return batch.with_columns(partition=pa.array([int(self.config.partition)] * batch.num_rows, pa.int32()))


def _shape(row: Mapping[str, Any]) -> str:
    """Rows with the same schemas come in one batch; a null without a schema is of none."""
    return json.dumps([None if row[part] is None else [row[part]["schema"]] for part in ("key", "value")], default=str)


def _batch(rows: list[Mapping[str, Any]]) -> pa.RecordBatch:
    columns = {part: _column(part, [row[part] for row in rows]) for part in ("key", "value")}
    stamps = [row["timestamp"] for row in rows]
    if any(stamp is not None for stamp in stamps):
        columns["timestamp"] = _plain("timestamp", pa.array(stamps, pa.int64()).cast(TIMESTAMP_TYPE))
    if any(row["partition"] is not None for row in rows):
        columns["partition"] = _plain("partition", pa.array([row["partition"] for row in rows], pa.int32()))
    headers = [[(name, _header(value)) for name, value in row["headers"]] or None for row in rows]
    if any(headers):
        columns["headers"] = _plain("headers", pa.array(headers, HEADERS_TYPE))
    return pa.RecordBatch.from_arrays(
        [array for _, array in columns.values()], schema=pa.schema([field for field, _ in columns.values()])
    )


def _plain(name: str, array: pa.Array) -> tuple[pa.Field, pa.Array]:
    return pa.field(name, array.type), array


def _column(name: str, described: list[Any]) -> tuple[pa.Field, pa.Array]:
    if described[0] is None:
        return _plain(name, pa.nulls(len(described)))
    form = described[0]["schema"]
    if form is None:
        # Read once more as the engine reads it: numbers of more than 64 bits wrap, as in Java's source.
        read = [loads(json.dumps(each["payload"], default=float)) for each in described]
        texts = [json.dumps(each, separators=(",", ":")) for each in read]
        return _plain(name, pa.ExtensionArray.from_storage(JSON_TYPE, pa.array(texts, pa.string())))
    schema = from_form(form)
    field = to_field(schema, name)
    values = [_for_arrow(schema, from_payload(schema, each["payload"])) for each in described]
    return field, pa.array(values, field.type)


def _for_arrow(schema: Schema | None, value: Any) -> Any:
    """A value of the data model as pyarrow takes it."""
    if value is None or schema is None:
        return value
    if schema.logical == DATE:
        return (EPOCH + datetime.timedelta(milliseconds=int(value))).date()
    if schema.logical == TIME:
        return (EPOCH + datetime.timedelta(milliseconds=int(value))).time()
    if schema.logical is not None and schema.logical != DECIMAL:
        return EPOCH + datetime.timedelta(milliseconds=int(value))
    if schema.kind is Kind.STRUCT:
        return {field.name: _for_arrow(field.schema, value.get(field.name)) for field in schema.fields}
    if schema.kind is Kind.ARRAY:
        return [_for_arrow(schema.value, item) for item in value]
    if schema.kind is Kind.MAP:
        return [(_for_arrow(schema.key, name), _for_arrow(schema.value, item)) for name, item in value.items()]
    return value


def _header(described: Any) -> bytes | None:
    """Sidecars give plain headers: texts."""
    return None if described is None or described["payload"] is None else str(described["payload"]).encode()


def _shown(batch: Batch) -> Iterator[str]:
    columns = {name: batch.column(name) for name in ("topic", "partition", "offset", "timestamp", "headers")}
    cells = {name: [None] * batch.num_rows if array is None else array.to_pylist() for name, array in columns.items()}
    typed = {name: _typed(batch, name) for name in ("key", "value")}
    for row in range(batch.num_rows):
        stamp = cells["timestamp"][row]
        yield json.dumps(
            {
                "topic": cells["topic"][row],
                "partition": cells["partition"][row],
                "offset": cells["offset"][row],
                "original_topic": _or(batch.constants.original_topic, cells["topic"][row]),
                "original_partition": _or(batch.constants.original_partition, cells["partition"][row]),
                "original_offset": cells["offset"][row],
                "timestamp": None if stamp is None else round((stamp - EPOCH).total_seconds() * 1000),
                "key": typed["key"][row],
                "value": typed["value"][row],
                "headers": [[header["name"], _base64(header["value"])] for header in cells["headers"][row] or ()],
            }
        )


def _or(original: Any, present: Any) -> Any:
    return present if original is None else original


def _base64(data: bytes | str | None) -> str | None:
    plain = data.encode() if isinstance(data, str) else data
    return None if plain is None else base64.b64encode(plain).decode()


def _typed(batch: Batch, name: str) -> list[Any]:
    array = batch.stored(name)
    if array is None:
        return [None] * batch.num_rows
    field = batch.records.schema.field(name)
    if pa.types.is_null(field.type):
        return [None] * batch.num_rows
    schema = from_field(field)
    if schema is None:
        texts = array.storage.to_pylist()
        return [None if text is None else {"schema": None, "payload": loads(text)} for text in texts]
    form = to_form(schema)
    return [_payload(schema, form, _from_arrow(schema, value)) for value in array.to_pylist()]


def _payload(schema: Schema, form: Any, value: Any) -> Any:
    if value is None:
        return None
    try:
        return {"schema": form, "payload": _quoted(to_payload(schema, value))}
    except DataError:
        return {"unwritable": True}


def _quoted(payload: Any) -> Any:
    """A payload as Jackson writes it: what JSON has no number for is a text."""
    match payload:
        case float() if not math.isfinite(payload):
            return json.dumps(payload)
        case list():
            return [_quoted(item) for item in payload]
        case dict():
            return {name: _quoted(item) for name, item in payload.items()}
        case _:
            return payload


def _from_arrow(schema: Schema, value: Any) -> Any:
    """A value of pyarrow as the data model has it: maps are mappings."""
    if value is None:
        return None
    if schema.kind is Kind.STRUCT:
        return {field.name: _from_arrow(field.schema, value[field.name]) for field in schema.fields}
    if schema.kind is Kind.ARRAY and schema.value is not None:
        return [_from_arrow(schema.value, item) for item in value]
    if schema.kind is Kind.MAP and schema.key is not None and schema.value is not None:
        return {_from_arrow(schema.key, name): _from_arrow(schema.value, item) for name, item in value}
    if schema.logical == DECIMAL and isinstance(value, bytes):
        return scaled(value, schema.scale)
    return value


if __name__ == "__main__":
    serve(Records, Shown, Repartition)
