"""Rows given to a sink, and rows seen from a source."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Final, NamedTuple

import pyarrow as pa

from wherry.conformance.failure import UsageError
from wherry.conformance.subject import ClassSubject, Sample, Variables
from wherry.contract.batch import JSON_TYPE, Batch, Constants, Mark, of_value
from wherry.contract.position import kafka_position

TOPIC: Final = "conformance"
PARTITION: Final = 0
SHORT_TEXT: Final = "text"


class Row(NamedTuple):
    """A row as it came from a source; comparable."""

    topic: str | None
    key: str
    value: str


def rows_of(batch: Batch) -> list[Row]:
    """Returns the rows of a batch."""
    topics = _plain(batch.column("topic"), batch.num_rows)
    keys = _plain(batch.column("key"), batch.num_rows)
    values = _plain(batch.column("value"), batch.num_rows)
    return [Row(topic, repr(key), repr(value)) for topic, key, value in zip(topics, keys, values, strict=True)]


def sample_batch(
    subject: ClassSubject, variables: Variables, *, first: int, count: int, text: str = SHORT_TEXT, bad_row: int = -1
) -> Batch:
    """Makes rows for a sink as they come from a Kafka topic partition.

    Args:
        subject: Says how rows look.
        variables: Variables of the case.
        first: Number and offset of the first row.
        count: Number of rows.
        text: What `$text` stands for.
        bad_row: Index of a row that gets the subject's bad value; -1 for none.
    """
    numbers = range(first, first + count)
    samples = [subject.bad_value if index == bad_row else subject.value.sample for index in range(count)]
    filled = [variables.fill(sample, n=n, text=text) for sample, n in zip(samples, numbers, strict=True)]
    columns: dict[str, pa.Array] = {}
    if subject.key is not None:
        keys = [variables.fill(subject.key.sample, n=n, text=SHORT_TEXT) for n in numbers]
        columns["key"] = column(subject.key, keys)
    mark = Mark(count, kafka_position(TOPIC, PARTITION, first + count))
    return of_value(
        column(subject.value, filled),
        constants=Constants(topic=TOPIC, partition=PARTITION, first_offset=first),
        marks=(mark,),
        **columns,
    )


def column(sample: Sample, values: list[Any]) -> pa.Array:
    """Makes a column of one kind."""
    if sample.kind == "text":
        return pa.array([None if value is None else str(value) for value in values], pa.string())
    if sample.kind == "number":
        return pa.array([None if value is None else int(value) for value in values], pa.int64())
    if sample.kind == "bytes":
        return pa.array([None if value is None else str(value).encode() for value in values], pa.binary())
    if sample.kind == "json":
        texts = [value if value is None or isinstance(value, str) else json.dumps(value) for value in values]
        return pa.ExtensionArray.from_storage(JSON_TYPE, pa.array(texts, pa.string()))
    return pa.array(values, struct_type(sample.fields))


def struct_type(fields: Mapping[str, str]) -> pa.DataType:
    """Makes a struct type of names of Arrow types.

    Raises:
        UsageError: A name isn't one of Arrow's.
    """
    try:
        return pa.struct([pa.field(name, pa.type_for_alias(alias)) for name, alias in fields.items()])
    except ValueError as error:
        raise UsageError(f"A field's type must be one of Arrow's, such as int64 or string: {error}.") from error


def _plain(array: pa.Array | None, count: int) -> list[Any]:
    if array is None:
        return [None] * count
    if isinstance(array, pa.ExtensionArray):
        array = array.storage
    return list(array.to_pylist())
