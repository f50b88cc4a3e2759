"""Rows into Arrow columns and back: the row face's heart.

Rows become one batch as long as their values (and keys) are of one kind: text, bytes, JSON, or a given type.
Everything is done a column at a time; what is the same in all rows becomes a constant.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

import orjson
import pyarrow as pa

from wherry.contract.arrays import array_of
from wherry.contract.batch import (
    HEADERS,
    HEADERS_TYPE,
    JSON_TYPE,
    KEY,
    PARTITION,
    TIMESTAMP,
    TIMESTAMP_TYPE,
    TOPIC,
    VALUE,
    Batch,
    Constants,
    Mark,
)
from wherry.contract.errors import ConnectorBugError, SchemaError
from wherry.contract.position import Position
from wherry.contract.schemaless import loads
from wherry.sdk.records import Record

_NULL: Final = type(None)
_TEXT: Final = frozenset({str, _NULL})
_BYTES: Final = frozenset({bytes, _NULL})


def batches(rows: Sequence[Record], default_topic: str | None, *, every_mark: bool = False) -> Iterator[Batch]:
    """Makes batches of rows, in order; rows of different kinds are cut into runs.

    Args:
        rows: At least one row.
        default_topic: Topic of rows that name none.
        every_mark: Keep the position of every row rather than the last of each partition.
    """
    for run in _runs(rows):
        yield _batch(run, default_topic, every_mark)


def rows_of(batch: Batch) -> list[Record]:
    """Makes the records that a row-wise sink receives; JSON is parsed, structs become dicts."""
    count = batch.num_rows
    nothing = [None] * count
    values = _plain(batch.value)
    keys = nothing if batch.key is None else _plain(batch.key)
    headers = nothing if batch.headers is None else [_pairs(cell) for cell in batch.headers.to_pylist()]
    constants = batch.constants
    times = batch.stored(TIMESTAMP)
    stamps = [constants.timestamp_ms] * count if times is None else times.cast(pa.int64()).to_pylist()
    topics = batch.stored(TOPIC)
    names = [constants.topic] * count if topics is None else topics.to_pylist()
    numbers = batch.stored(PARTITION)
    partitions = [constants.partition] * count if numbers is None else numbers.to_pylist()
    offsets_column = batch.column("offset")
    offsets = nothing if offsets_column is None else offsets_column.to_pylist()
    return [
        Record(
            value,
            key,
            topic,
            headers=header,
            timestamp_ms=stamp,
            kafka_partition=partition,
            kafka_offset=offset,
            original_topic=constants.original_topic,
            original_partition=constants.original_partition,
        )
        for value, key, topic, header, stamp, partition, offset in zip(
            values, keys, names, headers, stamps, partitions, offsets, strict=True
        )
    ]


def _runs(rows: Sequence[Record]) -> Iterator[Sequence[Record]]:
    """Cuts rows where the kind of value or key changes; nulls go with either."""
    if _uniform([row.value for row in rows], [row.schema for row in rows]) and _uniform(
        [row.key for row in rows], [row.key_schema for row in rows]
    ):
        yield rows
        return
    start = 0
    kinds: tuple[Any, Any] = (None, None)
    for index, row in enumerate(rows):
        value, key = _kind(row.value, row.schema), _kind(row.key, row.key_schema)
        if (value is not None and kinds[0] not in (None, value)) or (key is not None and kinds[1] not in (None, key)):
            yield rows[start:index]
            start, kinds = index, (None, None)
        kinds = (kinds[0] if value is None else value, kinds[1] if key is None else key)
    yield rows[start:]


def _uniform(values: list[Any], schemas: list[Any]) -> bool:
    first = schemas[0]
    if any(schema is not first for schema in schemas):
        return False
    found = set(map(type, values))
    return first is not None or found <= _TEXT or found <= _BYTES or not found & {str, bytes}


def _kind(value: Any, schema: Any) -> Any:
    if schema is not None:
        return schema
    return None if value is None else type(value) if isinstance(value, (str, bytes)) else "json"


def _batch(rows: Sequence[Record], default_topic: str | None, every_mark: bool) -> Batch:
    columns = {VALUE: _column([row.value for row in rows], _schema_of(rows, "schema"), "value")}
    keys = [row.key for row in rows]
    if any(key is not None for key in keys):
        columns[KEY] = _column(keys, _schema_of(rows, "key_schema"), "key")
    headers = [row.headers for row in rows]
    if any(headers):
        columns[HEADERS] = pa.array([_header_list(cell) for cell in headers], HEADERS_TYPE)
    stamps = [row.timestamp_ms for row in rows]
    if any(stamp is not None for stamp in stamps):
        columns[TIMESTAMP] = pa.array(stamps, pa.int64()).cast(TIMESTAMP_TYPE)
    topics = {row.topic for row in rows}
    topic = topics.pop() if len(topics) == 1 else None
    if topics:
        columns[TOPIC] = pa.array([row.topic or default_topic for row in rows], pa.string())
    numbers = [row.kafka_partition for row in rows]
    if any(number is not None for number in numbers):
        columns[PARTITION] = pa.array(numbers, pa.int32())
    constants = Constants(topic=None if topics else topic or default_topic)
    records = pa.RecordBatch.from_arrays(list(columns.values()), names=list(columns))
    return Batch(records, constants, _marks(rows, every_mark))


def _schema_of(rows: Sequence[Record], name: str) -> pa.DataType | None:
    schema = next((found for found in (getattr(row, name) for row in rows) if found is not None), None)
    return pa.struct(list(schema)) if isinstance(schema, pa.Schema) else schema


def _column(values: list[Any], data_type: pa.DataType | None, what: str) -> pa.Array:
    if data_type is not None:
        try:
            return array_of(values, data_type)
        except (pa.ArrowException, TypeError, ValueError) as error:
            raise SchemaError(f"A {what} doesn't fit its schema {data_type}: {error}.", reason="BAD_ROW") from error
    found = set(map(type, values))
    if found <= _TEXT:
        return pa.array(values, pa.string())
    if found <= _BYTES:
        return pa.array(values, pa.binary())
    dumps = orjson.dumps
    try:
        texts = [None if value is None else dumps(value) for value in values]
    except TypeError as error:
        raise ConnectorBugError(f"A {what} is neither text, bytes nor JSON: {error}.", reason="BAD_ROW") from error
    # orjson writes UTF-8, so the bytes need no second check.
    binary = pa.array(texts, pa.binary())
    return pa.ExtensionArray.from_storage(JSON_TYPE, binary.view(pa.string()))


def _header_list(headers: Any) -> list[tuple[str, bytes | None]] | None:
    if not headers:
        return None
    pairs = headers.items() if isinstance(headers, Mapping) else headers
    return [(name, value.encode() if isinstance(value, str) else value) for name, value in pairs]


def _marks(rows: Sequence[Record], every_mark: bool) -> tuple[Mark, ...]:
    if every_mark:
        return tuple(
            Mark(place, Position.of(row.partition or {}, row.offset))
            for place, row in enumerate(rows, 1)
            if row.offset is not None
        )
    # Most rows share the very dict that names their partition, so that few have to be serialized.
    last = {id(row.partition): place for place, row in enumerate(rows, 1) if row.offset is not None}
    marks: dict[str, Mark] = {}
    for place in sorted(last.values()):
        row = rows[place - 1]
        position = Position.of(row.partition or {}, row.offset)
        marks[position.partition] = Mark(place, position)
    return tuple(sorted(marks.values(), key=lambda mark: mark.row_count))


def _plain(array: pa.Array) -> list[Any]:
    if array.type == JSON_TYPE:
        return [None if text is None else loads(text) for text in array.storage.to_pylist()]
    return list(array.to_pylist())


def _pairs(cell: Any) -> list[tuple[str, Any]] | None:
    return None if cell is None else [(header["name"], header["value"]) for header in cell]
