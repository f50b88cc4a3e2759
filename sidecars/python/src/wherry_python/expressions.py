"""Expressions over records: one record at a time, or Arrow columns of a batch.

Compiled once for a stream. What an expression raises is the failure of the record it was raised for; of a batch of
columns the failing records are found by halves. Nothing is shared between records but what modules hold.
"""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from types import CodeType
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from wherry.contract.batch import HEADERS, JSON_TYPE, KEY, TIMESTAMP, VALUE, RowError
from wherry.sdk import Batch, Config, ConfigError, Context, ErrorClass, Record, RecordRejectedError, Transform, key
from wherry.sdk import Transformed as Answer

ROW: Final = "row"
ARROW: Final = "arrow"
MESSAGE_MAX: Final = 500
_REASON: Final = "EXPRESSION"


class PythonConfig(Config):
    """The settings."""

    expression: str = key(
        default="value", importance="high", non_empty=True,
        doc="What becomes the value: an expression over value, key, topic, headers, timestamp_ms, partition, offset.",
    )  # fmt: skip
    filter: str = key(default="", importance="high", doc="Records for which this is not true are left out.")
    key_expression: str = key(default="", doc="What becomes the key; it stays as it is when empty.")
    topic_expression: str = key(default="", doc="What becomes the topic; it stays as it is when empty.")
    mode: str = key(
        default=ROW, one_of=(ROW, ARROW),
        doc="row: over one record at a time; arrow: over columns of a batch, with pa and pc for pyarrow.",
    )  # fmt: skip
    imports: list[str] = key(
        default="datetime,json,math,re", doc="Modules of the standard library that expressions may name."
    )


class PythonTransform(Transform[PythonConfig]):
    """Changes records by expressions in Python."""

    class_name, aliases, version = "wherry.transforms.Python", ("Python",), "0.1.0"

    def __init__(self, config: PythonConfig, context: Context) -> None:
        super().__init__(config, context)
        self._globals = {name: importlib.import_module(name) for name in config.imports}
        if config.mode == ARROW:
            self._globals |= {"pa": pa, "pc": pc}
        self._value, self._filter, self._key, self._topic = (
            _compiled(name, text) if text else None
            for name, text in (
                ("expression", config.expression),
                ("filter", config.filter),
                ("key.expression", config.key_expression),
                ("topic.expression", config.topic_expression),
            )
        )

    @classmethod
    def validate(cls, config: PythonConfig, connect: bool) -> Mapping[str, str]:
        """Says what of the settings can't be compiled or imported."""
        found: dict[str, str] = {}
        for name in ("expression", "filter", "key.expression", "topic.expression"):
            text = getattr(config, name.replace(".", "_"))
            try:
                if text:
                    _compiled(name, text)
            except ConfigError as error:
                found[name] = error.message
        for module in config.imports:
            try:
                importlib.import_module(module)
            except Exception as error:
                found["imports"] = f"The module {module} can't be imported: {error}."
        return found

    # One record at a time.

    def transform_record(self, record: Record) -> Record | None:
        """See `Transform.transform_record`."""
        names = {
            "value": record.value,
            "key": record.key,
            "topic": record.topic,
            "headers": record.headers,
            "timestamp_ms": record.timestamp_ms,
            "partition": record.kafka_partition,
            "offset": record.kafka_offset,
        }
        try:
            if self._filter is not None and not self._run(self._filter, names):
                return None
            value = self._run(self._value, names)
            new_key = record.key if self._key is None else self._run(self._key, names)
            topic = record.topic if self._topic is None else self._run(self._topic, names)
        except Exception as error:
            raise RecordRejectedError(_sentence(error), reason=_REASON) from error
        if not isinstance(topic, str | None):
            raise RecordRejectedError(f"topic.expression gives {topic!r:.100}, which is no text.", reason=_REASON)
        record.schema = _still(record.schema, record.value, value)
        record.key_schema = _still(record.key_schema, record.key, new_key)
        record.value, record.key, record.topic = value, new_key, topic
        return record

    def _run(self, code: CodeType | None, names: Mapping[str, Any]) -> Any:
        # Names are globals of the expression, so that comprehensions and lambdas in it see them, too.
        return eval(code, {**self._globals, **names}) if code is not None else None  # noqa: S307  # what it is for

    # Columns.

    def transform_batch(self, batch: Batch) -> Batch | Answer:
        """See `Transform.transform_batch`."""
        if self.config.mode == ROW:
            return NotImplemented  # type: ignore[no-any-return]
        parts: list[tuple[pa.RecordBatch, np.ndarray[Any, np.dtype[np.int64]]]] = []
        errors: list[RowError] = []
        whole = _all_columns(batch)
        self._columns_of(whole, np.arange(batch.num_rows), parts, errors)
        if not parts:
            return Answer(Batch(whole.slice(0, 0)), [], errors)
        first = parts[0][0].schema
        if any(not part.schema.equals(first) for part, _ in parts):
            raise RecordRejectedError("The expression gives arrays of other types for other rows.", reason=_REASON)
        joined = parts[0][0] if len(parts) == 1 else pa.concat_batches([part for part, _ in parts])
        return Answer(Batch(joined), np.concatenate([rows for _, rows in parts]).tolist(), errors)

    def _columns_of(
        self,
        records: pa.RecordBatch,
        rows: Any,
        parts: list[tuple[pa.RecordBatch, Any]],
        errors: list[RowError],
    ) -> None:
        """Runs the expressions over some rows; by halves where they fail."""
        try:
            made, kept = self._evaluated(records)
        except Exception as error:
            if len(rows) == 1:
                errors.append(RowError(int(rows[0]), ErrorClass.SCHEMA, _REASON, message=_sentence(error)))
                return
            middle = len(rows) // 2
            self._columns_of(records.slice(0, middle), rows[:middle], parts, errors)
            self._columns_of(records.slice(middle), rows[middle:], parts, errors)
        else:
            if made.num_rows:
                parts.append((made, rows if kept is None else rows[kept]))

    def _evaluated(self, records: pa.RecordBatch) -> tuple[pa.RecordBatch, Any]:
        kept = None
        if self._filter is not None:
            mask = _array(self._run(self._filter, _names(records)), records.num_rows, "filter")
            kept = np.flatnonzero(np.asarray(pc.fill_null(mask, False)))
            records = records.take(pa.array(kept))
        names = _names(records)
        changed = {VALUE: _array(self._run(self._value, names), records.num_rows, "expression")}
        if self._key is not None:
            changed[KEY] = _array(self._run(self._key, names), records.num_rows, "key.expression")
        if self._topic is not None:
            topic = _array(self._run(self._topic, names), records.num_rows, "topic.expression")
            changed["topic"] = topic.cast(pa.string())
        made = Batch(records).with_columns(**changed).records
        # JSON that goes on as JSON text is still JSON.
        place = made.schema.get_field_index(VALUE)
        given = records.column(VALUE)
        if given.type == JSON_TYPE and made.column(place).type == pa.string() and self.config.expression == VALUE:
            made = made.set_column(place, records.schema.field(VALUE), given)
        return made, kept


def _all_columns(batch: Batch) -> pa.RecordBatch:
    """The batch with its constants as columns; the offset stays with the engine, which knows it by row."""
    names = (VALUE, KEY, HEADERS, TIMESTAMP, "topic", "partition", "offset")
    columns = {name: batch.column(name) for name in names}
    fields = [
        batch.records.schema.field(name) if name in batch.records.schema.names else pa.field(name, column.type)
        for name, column in columns.items()
        if column is not None
    ]
    return pa.RecordBatch.from_arrays([c for c in columns.values() if c is not None], schema=pa.schema(fields))


def _names(records: pa.RecordBatch) -> dict[str, Any]:
    columns = dict(zip(records.schema.names, records.columns, strict=True))
    found = {name: columns.get(name) for name in (VALUE, KEY, HEADERS, TIMESTAMP, "topic", "partition", "offset")}
    return {
        name: column.storage if column is not None and column.type == JSON_TYPE else column
        for name, column in found.items()
    }


def _array(found: Any, rows: int, what: str) -> pa.Array:
    if isinstance(found, pa.ChunkedArray):
        found = found.combine_chunks()
        found = found.chunk(0) if isinstance(found, pa.ChunkedArray) else found
    if isinstance(found, pa.Scalar):
        found = pa.repeat(found, rows)
    if not isinstance(found, pa.Array) or len(found) != rows:
        size = f" of {len(found)}" if isinstance(found, pa.Array) else ""
        raise TypeError(f"{what} must give an Arrow array of {rows} rows, not a {type(found).__name__}{size}")
    return found


def _compiled(name: str, text: str) -> CodeType:
    try:
        return compile(text.strip(), f"<{name}>", "eval")
    except (SyntaxError, ValueError) as error:
        place = f" at character {error.offset}" if isinstance(error, SyntaxError) and error.offset else ""
        told = error.msg if isinstance(error, SyntaxError) else str(error)
        raise ConfigError(f"{name} is no expression in Python: {told}{place}.", key=name) from None


def _still(schema: Any, before: Any, value: Any) -> Any:
    """The schema of what was there holds as long as the new value has its kind, and its fields and no others."""
    if schema is None or value is None:
        return schema
    if isinstance(schema, pa.StructType):
        return schema if isinstance(value, dict) and set(value) == {field.name for field in schema} else None
    return schema if before is None or type(value) is type(before) else None


def _sentence(error: Exception) -> str:
    return f"{type(error).__name__}: {error}"[:MESSAGE_MAX]
