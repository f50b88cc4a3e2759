"""Turns records into columns. Pure; a record that has no fields is an error of its own."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import orjson
import pyarrow as pa
import pyarrow.compute as pc

from wherry.contract.batch import Batch, RowError
from wherry.contract.errors import ErrorClass

NOT_AN_OBJECT = "the value is not an object; a table needs fields"


@dataclass(frozen=True, slots=True)
class Rows:
    """Columns for one table, and the rows that could not become any."""

    columns: pa.RecordBatch
    errors: tuple[RowError, ...] = ()


def rows_of(batch: Batch, first: int = 0) -> Rows:
    """Flattens the values of a batch.

    Args:
        batch: Records of one topic.
        first: Index of its first row, for errors.

    Returns:
        One column for each field. Tombstones and values that are no objects are errors.
    """
    value = batch.value
    if pa.types.is_struct(value.type):
        return _from_struct(value, first)
    storage = value.storage if isinstance(value, pa.ExtensionArray) else value
    if not (pa.types.is_string(storage.type) or pa.types.is_binary(storage.type)):
        return Rows(_empty(), tuple(_error(first + i, NOT_AN_OBJECT) for i in range(batch.num_rows)))
    return _from_json(storage.to_pylist(), first)


def _from_struct(value: pa.StructArray, first: int) -> Rows:
    errors: tuple[RowError, ...] = ()
    if value.null_count:
        gone = [i for i, null in enumerate(pc.is_null(value).to_pylist()) if null]
        errors = tuple(_error(first + i, "the value is null") for i in gone)
        value = value.drop_null()
    names = [field.name for field in value.type]
    return Rows(pa.RecordBatch.from_arrays(value.flatten(), names=names), errors)


def _from_json(texts: list[Any], first: int) -> Rows:
    objects: list[dict[str, Any]] = []
    errors: list[RowError] = []
    for i, text in enumerate(texts):
        parsed = _parse(text)
        if isinstance(parsed, dict):
            objects.append(parsed)
        else:
            errors.append(_error(first + i, parsed))
    names = dict.fromkeys(name for row in objects for name in row)
    columns = {name: column(values) for name in names if (values := [row.get(name) for row in objects])}
    known = {name: array for name, array in columns.items() if not pa.types.is_null(array.type)}
    return Rows(pa.RecordBatch.from_pydict(known) if known else _empty(), tuple(errors))


def column(values: list[Any]) -> pa.Array:
    """Values of one field: numbers widen, what doesn't fit together becomes JSON text."""
    try:
        return pa.array(values)
    except (pa.ArrowInvalid, pa.ArrowTypeError, OverflowError):
        pass
    if all(value is None or (isinstance(value, int | float) and not isinstance(value, bool)) for value in values):
        return pa.array([None if value is None else float(value) for value in values], pa.float64())
    return pa.array([None if value is None else _as_text(value) for value in values], pa.string())


def _as_text(value: Any) -> str:
    return value if isinstance(value, str) else orjson.dumps(value).decode()


def _parse(text: str | bytes | None) -> dict[str, Any] | str:
    """The object, or what is wrong with it."""
    if text is None:
        return "the value is null"
    try:
        parsed = orjson.loads(text)
    except orjson.JSONDecodeError as error:
        return f"the value is not JSON: {error}"
    return parsed if isinstance(parsed, dict) else NOT_AN_OBJECT


def _error(row: int, message: str) -> RowError:
    return RowError(row, ErrorClass.SCHEMA, "NOT_A_ROW", message=message)


def _empty() -> pa.RecordBatch:
    return pa.RecordBatch.from_arrays([], names=[])
