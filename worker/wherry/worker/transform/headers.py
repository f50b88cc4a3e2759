"""DropHeaders, InsertHeader and HeaderFrom. What they add has Connect's types; the header converter writes it."""

from __future__ import annotations

import datetime
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, ClassVar, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from wherry.contract import headers, values
from wherry.contract.batch import Batch
from wherry.contract.data import DAY_MS, DataError, Float32, Instant
from wherry.contract.data import Typed as TypedValue
from wherry.contract.errors import ConfigError
from wherry.contract.java import in_map_order
from wherry.contract.schema import from_field
from wherry.worker.transform.base import PACKAGE, OnSide, all_filled, filled, names_of, rebuilt, required
from wherry.worker.transform.casting import numbers_of
from wherry.worker.transform.failing import MissingError, RowsFailedError
from wherry.worker.transform.rows import Loose, Rows, Side, Typed

_NO_FIELD: Final = (
    'Cannot invoke "org.apache.kafka.connect.data.Field.schema()" because the return value of '
    '"org.apache.kafka.connect.data.Schema.field(String)" is null'
)


class DropHeaders:
    """Removes headers by name. Setting: headers."""

    class_name = f"{PACKAGE}DropHeaders"

    def __init__(self, config: Mapping[str, str]) -> None:
        self._names = frozenset(names_of(config, "headers"))

    def apply(self, rows: Rows) -> Rows:
        """See `Transform.apply`."""
        column = rows.rest.headers
        if column is None:
            return rows
        kept = headers.keep(column, lambda name: name not in self._names)
        return rows if kept is column else replace(rows, rest=_with_headers(rows.rest, kept))


class InsertHeader:
    """Adds a header, whose value is inferred from a text. Settings: header, value.literal."""

    class_name = f"{PACKAGE}InsertHeader"

    def __init__(self, config: Mapping[str, str]) -> None:
        self._name = required(config, "header")
        self._entry = headers.entry(self._name, values.parse(required(config, "value.literal")))

    def apply(self, rows: Rows) -> Rows:
        """See `Transform.apply`."""
        column = headers.append(rows.rest.headers, [[self._entry]] * len(rows))
        return replace(rows, rest=_with_headers(rows.rest, column))


class HeaderFrom(OnSide):
    """Copies or moves fields to headers. Settings: fields, headers, operation, replace.null.with.default."""

    simple_name: ClassVar[str] = "HeaderFrom"
    purpose: ClassVar[str] = "header"

    def __init__(self, config: Mapping[str, str], *, is_key: bool) -> None:
        super().__init__(config, is_key=is_key)
        self._fields, self._headers = names_of(config, "fields"), names_of(config, "headers")
        self._operation = required(config, "operation").lower()
        if self._operation not in {"move", "copy"}:
            raise ConfigError(
                f"Invalid value {config['operation']} for configuration operation: String must be one of: move, copy",
                key="operation",
            )
        if len(self._fields) != len(self._headers):
            raise ConfigError("'fields' config must have the same number of elements as 'headers' config.")
        self.purpose = f"header {self._operation}"  # type: ignore[misc]  # it tells what is done

    def apply(self, rows: Rows) -> Rows:
        """See `Transform.apply`."""
        side = rows.side(self.is_key)
        changed, columns = self._typed(side) if isinstance(side, Typed) else self._loose(side)
        added = [
            [headers.entry(name, value) for name, value in zip(self._headers, row, strict=True)]
            for row in zip(*columns, strict=True)
        ]
        column = headers.append(rows.rest.headers, added)
        return replace(rows.with_side(self.is_key, changed), rest=_with_headers(rows.rest, column))

    def _typed(self, side: Typed) -> tuple[Side, list[list[TypedValue]]]:
        columns = self.structs(side, null_passes=False)
        assert columns is not None
        found: list[list[TypedValue]] = []
        for name in self._fields:
            place = columns.place(name)
            if place < 0:
                raise RowsFailedError(dict.fromkeys(range(columns.rows), MissingError(_NO_FIELD)))
            field = columns.fields[place]
            array = filled(field, columns.arrays[place], columns, on=self.replace_null)
            schema = from_field(field)
            values_of_field = [TypedValue(schema, value) for value in _plain_values(array)]
            if array.null_count:
                _require(values_of_field)
            found.append(values_of_field)
        if self._operation == "copy":
            return side, found
        kept = [place for place, field in enumerate(columns.fields) if field.name not in self._fields]
        return rebuilt(side, all_filled(columns.select(kept), on=self.replace_null)), found

    def _loose(self, side: Loose) -> tuple[Side, list[list[TypedValue]]]:
        maps = self.maps(side, null_passes=False)
        found = [[TypedValue(None, _ordered((value or {}).get(name))) for value in maps] for name in self._fields]
        if self._operation == "copy":
            return side, found
        gone = set(self._fields)
        return Loose.of(
            [{key: item for key, item in (value or {}).items() if key not in gone} for value in maps]
        ), found


def _require(found: list[TypedValue]) -> None:
    """Fails the rows whose null can't become a header."""
    failed: dict[int, DataError] = {}
    for row, value in enumerate(found):
        try:
            headers.require(value)
        except DataError as error:
            failed[row] = error
    if failed:
        raise RowsFailedError(failed)


def has_header(batch: Batch, name: str) -> Any:
    """Says which rows have a header of a name."""
    column = batch.headers
    found = np.zeros(batch.num_rows, np.bool_)
    if column is not None:
        named = pc.equal(pc.list_flatten(column).field("name"), name)
        found[np.asarray(headers.rows_of_headers(column).filter(named))] = True
    return found


def _with_headers(batch: Batch, column: pa.Array) -> Batch:
    """Returns the batch with other headers; without any there is no column."""
    return batch.with_columns(headers=column if len(pc.list_flatten(column)) else None)


def _ordered(value: Any) -> Any:
    """Puts maps in the order in which Java prints them."""
    if isinstance(value, dict):
        return {key: _ordered(value[key]) for key in in_map_order(value)}
    return [_ordered(item) for item in value] if isinstance(value, list) else value


def _plain_values(array: pa.Array) -> list[Any]:
    # Moments as numbers first: Python's own dates end at the year 9999.
    scale = DAY_MS if pa.types.is_date32(array.type) else 1
    if pa.types.is_temporal(array.type):
        return [None if number is None else Instant(number * scale) for number in numbers_of(array).to_pylist()]
    return [_plain(value, array.type) for value in array.to_pylist()]


def _plain(value: Any, data_type: pa.DataType) -> Any:
    """Gives a value of a column the Python type by which `Values` tells it."""
    if value is None:
        return None
    if data_type == pa.float32():
        return Float32(value)
    if isinstance(value, datetime.date | datetime.time):
        return Instant(values.milliseconds(value))
    if pa.types.is_struct(data_type):
        return {field.name: _plain(value[field.name], field.type) for field in data_type}
    if pa.types.is_list(data_type):
        return [_plain(item, data_type.value_type) for item in value]
    if pa.types.is_map(data_type):
        return {_plain(key, data_type.key_type): _plain(item, data_type.item_type) for key, item in value}
    return value
