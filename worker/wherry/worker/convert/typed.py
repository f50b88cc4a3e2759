"""The step before a typed sink: values get the schema the sink asks for, and the sink gets told the schema they have.

A value of bare JSON is parsed straight into the schema of the target. A value that already has a schema keeps it; the
target is made to take it whenever it changes.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Final

import pyarrow as pa

from wherry.contract.batch import JSON_TYPE, Batch
from wherry.worker.convert.json_read import parse_json
from wherry.worker.convert.step import Stage, StageFailure, Stepped, cut_failures

# Asks the sink for a topic's target, with the schema of key and value or None; answers with the schema it wants.
EnsureTarget = Callable[[str, pa.Schema | None], pa.Schema | None]
SCHEMAS_KNOWN_MAX: Final = 256


class TypedValues:
    """Gives a typed sink the values it asks for."""

    def __init__(self, ensure: EnsureTarget, class_name: str) -> None:
        self._ensure = ensure
        self._class_name = class_name
        self._wanted: dict[str, pa.DataType | None] = {}
        self._told: dict[str, pa.Schema] = {}

    def apply(self, batch: Batch, raw: Batch) -> Stepped:
        """See `Step.apply`."""
        if not batch.num_rows:
            return Stepped(((batch, raw),))
        pieces: list[tuple[Batch, Batch]] = []
        failures: list[StageFailure] = []
        for start, length, topic in batch_topics(batch):
            whole = length == batch.num_rows
            part, part_raw = (batch, raw) if whole else (batch.slice(start, length), raw.slice(start, length))
            stepped = self._apply_topic(topic, part, part_raw)
            pieces += stepped.pieces
            failures += stepped.failures
        return Stepped(tuple(pieces), tuple(failures))

    def _apply_topic(self, topic: str, batch: Batch, raw: Batch) -> Stepped:
        value = batch.value
        if value.type != JSON_TYPE:
            self._tell(topic, batch)
            return Stepped(((batch, raw),))
        wanted = self._wanted_type(topic)
        if wanted is None:
            return Stepped(((batch, raw),))
        converted = parse_json(value.storage, pa.field("value", wanted))
        failures = tuple(
            StageFailure(raw, failure.row, Stage.VALUE_CONVERTER, self._class_name, failure.error)
            for failure in converted.failures
        )
        if failures:
            batch, raw = cut_failures(batch, raw, {failure.row for failure in failures})
        field, column = converted.runs[0].field, converted.runs[0].column
        return Stepped(((with_value(batch, field, column), raw),), failures)

    def _wanted_type(self, topic: str) -> pa.DataType | None:
        if topic not in self._wanted:
            if len(self._wanted) >= SCHEMAS_KNOWN_MAX:
                self._wanted.clear()
            schema = self._ensure(topic, None)
            self._wanted[topic] = None if schema is None else value_type(schema)
        return self._wanted[topic]

    def _tell(self, topic: str, batch: Batch) -> None:
        schema = batch.records.schema
        fields = [schema.field(name) for name in ("key", "value") if name in schema.names]
        told = pa.schema(fields)
        known = self._told.get(topic)
        if known is not None and known.equals(told, check_metadata=True):
            return
        self._ensure(topic, told)
        if len(self._told) >= SCHEMAS_KNOWN_MAX:
            self._told.clear()
        self._told[topic] = told


def value_type(schema: pa.Schema) -> pa.DataType:
    """Returns the type of the values: that of a field named value, or a struct of the fields themselves."""
    if "value" in schema.names and set(schema.names) <= {"key", "value"}:
        return schema.field("value").type
    return pa.struct(list(schema))


def with_value(batch: Batch, field: pa.Field, column: pa.Array) -> Batch:
    """Returns a batch with another value column and its field."""
    schema = batch.records.schema
    index = schema.get_field_index("value")
    columns = list(batch.records.columns)
    columns[index] = column
    schema = schema.set(index, field.with_name("value"))
    return dataclasses.replace(batch, records=pa.RecordBatch.from_arrays(columns, schema=schema))


def batch_topics(batch: Batch) -> list[tuple[int, int, str]]:
    """Returns the runs of rows of one topic as start, length and topic."""
    column = batch.stored("topic")
    if column is None:
        return [(0, batch.num_rows, batch.constants.topic or "")]
    topics = column.to_pylist()
    runs, start = [], 0
    for row in range(1, len(topics) + 1):
        if row == len(topics) or topics[row] != topics[start]:
            runs.append((start, row - start, topics[start] or ""))
            start = row
    return runs
