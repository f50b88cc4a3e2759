"""Rows between two transforms: key and value each as a typed column or without schema, and the rest as it came.

A value without schema is JSON text that nobody may have parsed. `Loose` parses it when a transform first looks inside
and writes it when the chain has ended, so that a chain parses once. It has up to three forms, made when asked for:

- texts: JSON, as it came;
- objects: one Python value for each row, in which a missing field differs from a null one;
- columns: one Arrow column for each member, if all rows provably are objects whose texts say nothing that columns can't
  (`lift.py`).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from wherry.contract.batch import JSON_TYPE, Batch
from wherry.contract.data import DataError
from wherry.contract.schemaless import BAD_JSON
from wherry.worker.transform import lift
from wherry.worker.transform.columns import Columns, Positions
from wherry.worker.transform.failing import RowsFailedError
from wherry.worker.transform.objects import parse_objects, write_objects

LOOSE_FIELD: Final = pa.field("value", JSON_TYPE)


@dataclass(frozen=True, slots=True)
class Typed:
    """A column with a schema."""

    field: pa.Field
    column: pa.Array

    def __len__(self) -> int:
        return len(self.column)

    def take(self, positions: pa.Array) -> Typed:
        """Returns some rows."""
        return Typed(self.field, self.column.take(positions))

    def is_null(self) -> npt.NDArray[np.bool_]:
        """Says which rows are null."""
        return np.asarray(self.column.is_null())

    def column_of(self) -> tuple[pa.Field, pa.Array]:
        """Returns field and column."""
        return self.field, self.column

    @property
    def is_struct(self) -> bool:
        """Whether the rows are structs."""
        return bool(pa.types.is_struct(self.field.type))


class Loose:
    """A column without schema; see the module. Never changes, but for forms that are made and kept."""

    __slots__ = ("_columns", "_objects", "_texts", "_tried", "rows")

    def __init__(
        self,
        rows: int,
        *,
        texts: pa.Array | None = None,
        objects: list[Any] | None = None,
        columns: Columns | None = None,
    ) -> None:
        self.rows = rows
        self._texts = texts
        self._objects = objects
        self._columns = columns
        self._tried = columns is not None or texts is None

    @classmethod
    def nulls(cls, rows: int) -> Loose:
        """Returns rows that are null."""
        return cls(rows, objects=[None] * rows)

    @classmethod
    def of(cls, objects: list[Any]) -> Loose:
        """Returns rows of Python values."""
        return cls(len(objects), objects=objects)

    @classmethod
    def lifted(cls, columns: Columns) -> Loose:
        """Returns rows that are objects of the same fields."""
        return cls(columns.rows, columns=columns)

    def __len__(self) -> int:
        return self.rows

    @property
    def texts(self) -> pa.Array | None:
        """The rows as JSON, where they came so or have been written."""
        return self._texts

    @property
    def columns(self) -> Columns | None:
        """The rows as columns; None when it can't be proven that this says the same."""
        if not self._tried:
            self._tried = True
            self._columns = None if self._objects is not None else self._lift()
        return self._columns

    @property
    def objects(self) -> list[Any]:
        """The rows as Python values, not to be changed.

        Raises:
            RowsFailedError: Texts are no JSON.
        """
        if self._objects is None:
            if self._columns is not None:
                self._objects = lift.lower(self._columns)
            else:
                assert self._texts is not None
                self._objects, bad = parse_objects(self._texts)
                if bad:
                    self._objects = None
                    error = DataError(BAD_JSON, reason="BAD_JSON")
                    raise RowsFailedError(dict.fromkeys(bad, error), converter=True)
        return self._objects

    def take(self, positions: pa.Array) -> Loose:
        """Returns some rows."""
        texts = None if self._texts is None else self._texts.take(positions)
        if self._columns is not None:
            return Loose(len(positions), texts=texts, columns=self._columns.take(positions))
        if texts is not None and self._objects is None:
            return Loose(len(positions), texts=texts)
        objects = self.objects
        return Loose(len(positions), texts=texts, objects=[objects[position] for position in positions.to_pylist()])

    def held(self, columns: Columns, positions: pa.Array | None = None) -> Loose:
        """Returns some rows, or all, as they are and with columns that say the same."""
        texts = self._texts if self._texts is None or positions is None else self._texts.take(positions)
        return Loose(columns.rows, texts=texts, columns=columns)

    def is_null(self) -> npt.NDArray[np.bool_]:
        """Says which rows are null."""
        if self._texts is not None:
            return np.asarray(self._texts.is_null())
        if self._columns is not None:
            return np.zeros(self.rows, np.bool_)
        return np.fromiter((value is None for value in self.objects), np.bool_, self.rows)

    def column_of(self) -> tuple[pa.Field, pa.Array]:
        """Returns field and column: JSON texts."""
        if self._texts is None:
            if self._columns is not None:
                self._texts = lift.texts(self._columns)
            else:
                self._texts = write_objects(self.objects)
        return LOOSE_FIELD, pa.ExtensionArray.from_storage(JSON_TYPE, self._texts)

    def _lift(self) -> Columns | None:
        assert self._texts is not None
        return lift.lift(self._texts)


Side = Typed | Loose


@dataclass(frozen=True, slots=True)
class Rows:
    """Rows on their way through a chain.

    Attributes:
        index: For each row, which row of the batch it comes from.
        key: The keys.
        value: The values.
        rest: Topic, partition, offset, timestamp and headers; its own values and keys count for nothing.
    """

    index: Positions
    key: Side
    value: Side
    rest: Batch

    def __len__(self) -> int:
        return len(self.index)

    def side(self, is_key: bool) -> Side:
        """Returns the keys or the values."""
        return self.key if is_key else self.value

    def with_side(self, is_key: bool, side: Side) -> Rows:
        """Returns the rows with other keys or values."""
        return replace(self, key=side) if is_key else replace(self, value=side)

    def take(self, positions: Positions) -> Rows:
        """Returns some rows, in the order given; a row may be given more than once."""
        taken = pa.array(positions, pa.int64())
        return Rows(self.index[positions], self.key.take(taken), self.value.take(taken), _take(self.rest, taken))


def side_of(field: pa.Field, column: pa.Array) -> Side:
    """Returns the rows of a column."""
    if column.type == JSON_TYPE:
        return Loose(len(column), texts=column.storage)
    if pa.types.is_null(column.type):
        return Loose.nulls(len(column))
    return Typed(field, column)


def rows_of(batch: Batch) -> Rows:
    """Takes a batch apart."""
    schema, count = batch.records.schema, batch.num_rows
    key = batch.key
    keys = Loose.nulls(count) if key is None else side_of(schema.field("key"), key)
    rest = batch.with_columns(key=None, value=pa.nulls(count)).with_marks()
    return Rows(np.arange(count), keys, side_of(schema.field("value"), batch.value), rest)


def batch_of(rows: Rows) -> Batch:
    """Puts a batch together; it has no marks."""
    rest = rows.rest
    schema = rest.records.schema
    fields, arrays = [], []
    for name in schema.names:
        if name == "value":
            field, array = rows.value.column_of()
            fields.append(field.with_name("value"))
            arrays.append(array)
        else:
            fields.append(schema.field(name))
            arrays.append(rest.records.column(name))
    if isinstance(rows.key, Typed) or not rows.key.is_null().all():
        field, array = rows.key.column_of()
        fields.append(field.with_name("key"))
        arrays.append(array)
    return replace(rest, records=pa.RecordBatch.from_arrays(arrays, schema=pa.schema(fields)))


def _take(batch: Batch, positions: pa.Array) -> Batch:
    columns, fields = list(batch.records.columns), list(batch.records.schema)
    if batch.constants.first_offset is not None:
        columns.append(batch.column("offset"))
        fields.append(pa.field("offset", pa.int64()))
    taken = [column.take(positions) for column in columns]
    return replace(
        batch,
        records=pa.RecordBatch.from_arrays(taken, schema=pa.schema(fields)),
        constants=replace(batch.constants, first_offset=None),
    )
