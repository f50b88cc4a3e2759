"""DropHeaders, InsertHeader and HeaderFrom. Headers are bytes here: the text form that Connect's `Values` writes."""

from __future__ import annotations

import datetime
from collections.abc import Mapping, Sequence
from dataclasses import replace
from decimal import Decimal
from typing import Any, ClassVar, Final

import numpy as np
import pyarrow as pa

from wherry.contract import values
from wherry.contract.batch import HEADERS_TYPE, Batch
from wherry.contract.data import DataError, Float32, Instant
from wherry.contract.errors import ConfigError
from wherry.worker.transform.base import PACKAGE, OnSide, filled, names_of, rebuilt, required
from wherry.worker.transform.failing import MissingError, RowsFailedError
from wherry.worker.transform.rows import Columns, Loose, Rows, Side, Typed

# Headers of one row: name and bytes.
Pairs = Sequence[tuple[str, bytes | None]]
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
        if rows.rest.headers is None:
            return rows
        kept = [[pair for pair in pairs if pair[0] not in self._names] for pairs in header_pairs(rows.rest)]
        return replace(rows, rest=with_headers(rows.rest, kept))


class InsertHeader:
    """Adds a header, whose value is inferred from a text. Settings: header, value.literal."""

    class_name = f"{PACKAGE}InsertHeader"

    def __init__(self, config: Mapping[str, str]) -> None:
        self._name = required(config, "header")
        found = values.parse(required(config, "value.literal"))
        text = values.format(found.value, found.schema)
        self._value = None if text is None else text.encode()

    def apply(self, rows: Rows) -> Rows:
        """See `Transform.apply`."""
        return replace(rows, rest=append_headers(rows.rest, [[(self._name, self._value)]] * len(rows)))


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
        added = [list(zip(self._headers, row, strict=True)) for row in zip(*columns, strict=True)]
        changed_rows = rows.with_side(self.is_key, changed)
        return replace(changed_rows, rest=append_headers(rows.rest, added))

    def _typed(self, side: Typed) -> tuple[Side, list[list[bytes | None]]]:
        columns = self.structs(side, null_passes=False)
        assert columns is not None
        found: list[list[bytes | None]] = []
        for name in self._fields:
            place = columns.place(name)
            if place < 0:
                raise RowsFailedError(dict.fromkeys(range(columns.rows), MissingError(_NO_FIELD)))
            field = columns.fields[place]
            array = filled(field, columns.arrays[place], columns, on=self.replace_null)
            found.append([_bytes(_plain(value, field.type)) for value in array.to_pylist()])
        if self._operation == "copy":
            return side, found
        kept = [place for place, field in enumerate(columns.fields) if field.name not in self._fields]
        return rebuilt(side, _filled(columns.select(kept), on=self.replace_null)), found

    def _loose(self, side: Loose) -> tuple[Side, list[list[bytes | None]]]:
        maps = self.maps(side, null_passes=False)
        found = [[_bytes((value or {}).get(name)) for value in maps] for name in self._fields]
        if self._operation == "copy":
            return side, found
        gone = set(self._fields)
        return Loose.of([{key: item for key, item in (value or {}).items() if key not in gone} for value in maps]), found


def header_pairs(batch: Batch) -> list[list[tuple[str, bytes | None]]]:
    """Returns the headers of each row."""
    headers = batch.headers
    if headers is None:
        return [[] for _ in range(batch.num_rows)]
    return [[(pair["name"], pair["value"]) for pair in pairs or ()] for pairs in headers.to_pylist()]


def with_headers(batch: Batch, rows: Sequence[Pairs]) -> Batch:
    """Returns the batch with other headers; without any there is no column."""
    if not any(rows):
        return batch.with_columns(headers=None)
    column = pa.array([[{"name": name, "value": value} for name, value in row] for row in rows], HEADERS_TYPE)
    return batch.with_columns(headers=column)


def append_headers(batch: Batch, added: Sequence[Pairs]) -> Batch:
    """Returns the batch with headers after those each row has."""
    return with_headers(batch, [[*own, *more] for own, more in zip(header_pairs(batch), added, strict=True)])


def has_header(batch: Batch, name: str) -> Any:
    """Says which rows have a header of a name."""
    headers = batch.headers
    if headers is None:
        return np.zeros(batch.num_rows, np.bool_)
    return np.fromiter(
        (any(pair["name"] == name for pair in pairs or ()) for pairs in headers.to_pylist()), np.bool_, batch.num_rows
    )


def _filled(columns: Columns, *, on: bool) -> Columns:
    from wherry.worker.transform.base import all_filled

    return all_filled(columns, on=on)


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


def _bytes(value: Any) -> bytes | None:
    try:
        text = values.format(value)
    except DataError:
        text = str(value if not isinstance(value, Decimal) else format(value, "f"))
    return None if text is None else text.encode()
