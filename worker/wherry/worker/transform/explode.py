"""Explode: one row for each element of a list, or for each entry of a map.

The rows of a record keep its key, headers, topic, time, partition and offset, stand one after another in the order of
the elements, and move the position only together: a mark stands after the last of them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from wherry.contract.data import DataError
from wherry.contract.errors import ConfigError
from wherry.contract.limits import MIB
from wherry.worker.javaclass import class_of, class_of_type
from wherry.worker.transform.base import boolean, maps_of, rebuilt, structs_of
from wherry.worker.transform.columns import Columns
from wherry.worker.transform.failing import ArgumentError, Failures, RowsFailedError
from wherry.worker.transform.own import OWN_PACKAGE, one_of, whole_number
from wherry.worker.transform.paths import VERSION_KEY, Path
from wherry.worker.transform.rows import Loose, Rows, Side, Typed

ELEMENTS_DEFAULT: Final = 10_000
ELEMENTS_MAX: Final = 1_000_000
# Each row carries the other fields of its record; what one record becomes may not be larger than this.
RECORD_BYTES_MAX: Final = 256 * MIB
# Records of fewer elements are not measured.
MEASURED_FROM: Final = 256
_PURPOSE: Final = "explosion"
_EMPTY: Final = ("drop", "keep", "fail")


@dataclass(frozen=True, slots=True)
class _Taken:
    """Which elements become rows.

    Attributes:
        rows: For each new row the row it comes from.
        elements: For each new row its element's index; meaningless where `missing`.
        missing: Which new rows have no element: the record is null, or its list empty.
    """

    rows: npt.NDArray[np.int64]
    elements: npt.NDArray[np.int64]
    missing: npt.NDArray[np.bool_]


class Explode:
    """See the module. Settings: field, field.syntax.version, keep.fields, index.field, on.empty, elements.max."""

    class_name = f"{OWN_PACKAGE}Explode"

    def __init__(self, config: Mapping[str, str]) -> None:
        self._field = config.get("field", "").strip()
        self._path = Path(self._field, config.get(VERSION_KEY, "V1"))
        self._keep_fields = boolean(config, "keep.fields", default=True) and bool(self._field)
        self._index_field = config.get("index.field", "").strip()
        self._on_empty = one_of(config, "on.empty", "drop", _EMPTY)
        self._elements_max = whole_number(config, "elements.max", ELEMENTS_DEFAULT, 1, ELEMENTS_MAX)
        if self._index_field and not self._keep_fields:
            raise ConfigError(
                "index.field adds a field to the record, so it needs field, and keep.fields=true.", key="index.field"
            )

    def apply(self, rows: Rows) -> Rows:
        """See `Transform.apply`."""
        side = rows.value
        if isinstance(side, Typed):
            return self._typed(side, rows)
        return self._loose(side, rows)

    # Columns.

    def _typed(self, side: Typed, rows: Rows) -> Rows:
        nulls = side.is_null()
        if nulls.all():
            return rows
        columns: Columns | None = None
        field, lists = side.field, side.column
        if self._field:
            columns = structs_of(side, _PURPOSE)
            assert columns is not None
            field, lists = self._found(columns, nulls)
        element, offsets, elements = _elements(field, lists, nulls)
        empty = np.asarray(lists.is_null()) | (np.diff(offsets) == 0)
        counts = np.where(empty, 0, np.diff(offsets))
        taken = self._taken(counts, nulls, side.column)
        found = elements.take(pa.array(offsets[taken.rows] + taken.elements, pa.int64(), mask=taken.missing))
        if self._on_empty == "keep":
            element = element.with_nullable(True)
        exploded = rows.take(taken.rows)
        return exploded.with_side(False, self._put(exploded.value, columns is not None, element, found, taken))

    def _found(self, columns: Columns, nulls: npt.NDArray[np.bool_]) -> tuple[pa.Field, pa.Array]:
        """Returns the field to explode.

        Raises:
            RowsFailedError: There is none, which is so for all records of the schema.
        """
        try:
            return self._path.column(columns, replace_null=False)
        except DataError as error:
            names = ", ".join(field.name for field in columns.fields) or "no field at all"
            text = f"The value has no field {self._field} to explode; it has {names}"
            if not isinstance(error, ArgumentError):
                text = f"{text}, and something on the way to it has no fields"
            raise RowsFailedError(dict.fromkeys(np.flatnonzero(~nulls).tolist(), DataError(text))) from None

    def _put(self, side: Side, inside: bool, element: pa.Field, found: pa.Array, taken: _Taken) -> Typed:
        assert isinstance(side, Typed)
        if not (inside and self._keep_fields):
            nullable = element.nullable or side.field.nullable
            return Typed(element.with_name(side.field.name).with_nullable(nullable), found)
        columns = _with_field(Columns.of(side.column), self._path.steps, element, found)
        if self._index_field:
            indices = pa.array(taken.elements, pa.int32(), mask=taken.missing)
            columns = columns.put(len(columns.fields), pa.field(self._index_field, pa.int32()), indices)
        return rebuilt(side, columns, keep_shape=True)

    def _taken(self, counts: npt.NDArray[np.int64], nulls: npt.NDArray[np.bool_], column: pa.Array | None) -> _Taken:
        """Says which elements become rows.

        Raises:
            RowsFailedError: Records have too many elements, or none where one is wanted.
        """
        failures = Failures()
        for row in np.flatnonzero(counts > self._elements_max).tolist():
            text = f"The record has {counts[row]} elements; elements.max allows {self._elements_max}"
            failures.add(row, DataError(text, reason="TOO_MANY_ELEMENTS"))
        if column is not None and self._keep_fields:
            for row in np.flatnonzero(counts >= MEASURED_FROM).tolist():
                _check_size(failures, row, int(counts[row]), int(column.slice(row, 1).nbytes))
        none = (counts == 0) & ~nulls
        if self._on_empty == "fail":
            for row in np.flatnonzero(none).tolist():
                failures.add(row, DataError(f"There is nothing to explode in {self._where()}", reason="NO_ELEMENTS"))
        failures.check()
        alone = nulls | none if self._on_empty == "keep" else nulls
        lengths = np.where(alone, 1, counts)
        rows = np.repeat(np.arange(len(counts)), lengths)
        starts = np.cumsum(lengths) - lengths
        return _Taken(rows, np.arange(len(rows)) - starts[rows], alone[rows])

    def _where(self) -> str:
        return f"the field {self._field}" if self._field else "the value"

    # Objects.

    def _loose(self, side: Loose, rows: Rows) -> Rows:
        nulls = side.is_null()
        if nulls.all():
            return rows
        objects = maps_of(side, _PURPOSE) if self._field else side.objects
        failures = Failures()
        lists: list[Any] = []
        for row, value in enumerate(objects):
            found = None
            try:
                found = self._list_of(value)
            except DataError as error:
                failures.add(row, error)
            if found is not None and type(found) is not list:
                failures.add(row, _no_list(class_of(found)))
            lists.append(found)
        failures.check()
        taken = self._taken(np.fromiter((len(found or ()) for found in lists), np.int64, len(lists)), nulls, None)
        changed: list[Any] = []
        for row, place, missing in zip(
            taken.rows.tolist(), taken.elements.tolist(), taken.missing.tolist(), strict=True
        ):
            element = None if missing else lists[row][place]
            changed.append(self._row(objects[row], element, None if missing else place))
        return rows.take(taken.rows).with_side(False, Loose.of(changed))

    def _list_of(self, value: Any) -> Any:
        found = self._path.value(value) if self._field and value is not None else value
        if type(found) is dict:
            return [{"key": key, "value": item} for key, item in found.items()]
        return found

    def _row(self, whole: Any, element: Any, index: int | None) -> Any:
        if whole is None or not self._keep_fields:
            return element
        made = _with_member(whole, self._path.steps, element)
        return {**made, self._index_field: index} if self._index_field else made


def _with_field(columns: Columns, steps: tuple[str, ...], element: pa.Field, found: pa.Array) -> Columns:
    """Returns columns with the element in the place of the list, however deep that is."""
    place = columns.place(steps[0])
    field, array = element.with_name(steps[0]), found
    if len(steps) > 1:
        # What is null on the way stays null: it has nothing in it, and so nothing was taken out of it.
        inner = _with_field(Columns.of(columns.arrays[place]), steps[1:], element, found).struct()
        field, array = columns.fields[place].with_type(inner.type), inner
    return columns.put(place, field, array)


def _with_member(whole: dict[str, Any], steps: tuple[str, ...], element: Any) -> dict[str, Any]:
    """Returns an object with the element in the place of the list; what is absent on the way stays absent."""
    if len(steps) == 1:
        return {**whole, steps[0]: element}
    inner = whole.get(steps[0])
    return whole if inner is None else {**whole, steps[0]: _with_member(inner, steps[1:], element)}


def _elements(
    field: pa.Field, lists: pa.Array, nulls: npt.NDArray[np.bool_]
) -> tuple[pa.Field, npt.NDArray[np.int64], pa.Array]:
    """Returns the schema of elements, where each row's begin, and all of them.

    Raises:
        RowsFailedError: These are neither lists nor maps.
    """
    kind = field.type
    if pa.types.is_map(kind):
        entry = pa.struct([kind.key_field.with_name("key"), kind.item_field.with_name("value")])
        elements = pa.StructArray.from_arrays([lists.keys, lists.items], fields=list(entry))
        return pa.field("entry", entry, nullable=False), np.asarray(lists.offsets, np.int64), elements
    if pa.types.is_list(kind) or pa.types.is_large_list(kind):
        return kind.value_field, np.asarray(lists.offsets, np.int64), lists.values
    raise RowsFailedError(dict.fromkeys(np.flatnonzero(~nulls).tolist(), _no_list(class_of_type(kind))))


def _no_list(found: str) -> DataError:
    return DataError(f"Only lists and maps can be exploded, found: {found}")


def _check_size(failures: Failures, row: int, count: int, size: int) -> None:
    if count * size > RECORD_BYTES_MAX:
        text = (
            f"The record of {size} bytes would become {count} rows with all its fields, more than "
            f"{RECORD_BYTES_MAX // MIB} MiB; with keep.fields=false each row is its element alone"
        )
        failures.add(row, DataError(text, reason="TOO_LARGE"))
