"""Cast: fields, or whole keys and values, to another primitive type, as Java narrows and prints."""

from __future__ import annotations

import base64
from collections.abc import Mapping
from typing import Any, ClassVar, Final

import numpy as np
import pyarrow as pa

from wherry.contract.batch import JSON_TYPE
from wherry.contract.data import DataError
from wherry.contract.errors import ConfigError
from wherry.contract.java import in_map_order
from wherry.contract.schema import DEFAULT
from wherry.worker.transform.base import OnSide, all_filled, check_fields, default_scalar, names_of, rebuilt
from wherry.worker.transform.casting import CastError, cast_array, loose_cast
from wherry.worker.transform.columns import Columns
from wherry.worker.transform.failing import Failures, RowsFailedError
from wherry.worker.transform.lift import values_of
from wherry.worker.transform.rows import Loose, Rows, Side, Typed

TARGETS: Final[Mapping[str, pa.DataType]] = {
    "int8": pa.int8(),
    "int16": pa.int16(),
    "int32": pa.int32(),
    "int64": pa.int64(),
    "float32": pa.float32(),
    "float64": pa.float64(),
    "boolean": pa.bool_(),
    "string": pa.string(),
}


class Cast(OnSide):
    """See the module. Settings: spec, replace.null.with.default."""

    simple_name: ClassVar[str] = "Cast"
    purpose: ClassVar[str] = "cast types"

    def __init__(self, config: Mapping[str, str], *, is_key: bool) -> None:
        super().__init__(config, is_key=is_key)
        self._whole: pa.DataType | None = None
        self._fields: dict[str, pa.DataType] = {}
        for item in names_of(config, "spec"):
            name, colon, target = item.rpartition(":")
            kind = TARGETS.get(target.strip().lower())
            if kind is None:
                raise ConfigError(f"Invalid type found in casting spec: {target}", key="spec")
            if colon:
                self._fields[name.strip()] = kind
            else:
                self._whole = kind
        # In the order in which Kafka Connect walks over them: the first error counts.
        self._fields = {name: self._fields[name] for name in in_map_order(self._fields)}
        self._casts = [(name, loose_cast(kind)) for name, kind in self._fields.items()]
        if not self._fields and self._whole is None:
            raise ConfigError("Must specify at least one field to cast.", key="spec")

    def change_typed(self, side: Typed, rows: Rows) -> Side:
        """See `OnSide.change_typed`."""
        if self._whole is not None:
            return self._whole_typed(side, self._whole)
        check_fields(side)
        columns = self.structs(side)
        if columns is None:
            return side
        return rebuilt(side, self._cast_typed(all_filled(columns, on=self.replace_null)), keep_shape=True)

    def change_loose(self, side: Loose, rows: Rows) -> Side:
        """See `OnSide.change_loose`."""
        if self._whole is not None:
            return Loose.of(_each(side.objects, self._whole))
        columns = side.columns
        if columns is not None:
            return Loose.lifted(self._cast_loose(columns))
        failures = Failures()
        changed: list[Any] = []
        for row, value in enumerate(self.maps(side)):
            if value is None:
                changed.append(value)
                continue
            value = value.copy()
            for name, cast in self._casts:
                try:
                    value[name] = cast(value.get(name))
                except DataError as error:
                    failures.add(row, error)
            changed.append(value)
        failures.check()
        return Loose.of(changed)

    def _whole_typed(self, side: Typed, target: pa.DataType) -> Typed:
        if side.column.null_count == len(side):
            return side
        failures = Failures()
        column = cast_array(side.column, target, failures)
        failures.check()
        return Typed(_cast_field(side.field, target, whole=True), column)

    def _cast_typed(self, columns: Columns) -> Columns:
        failures = Failures()
        # The first error of a row counts, in the order of the schema.
        for place, field in enumerate(columns.fields):
            target = self._fields.get(field.name)
            if target is None:
                continue
            array = cast_array(columns.arrays[place], target, failures)
            try:
                cast = _cast_field(field, target)
            except DataError as error:
                # The default can't be cast, so there is no schema for any row.
                present = (
                    range(columns.rows) if columns.present is None else columns.present.indices_nonzero().to_pylist()
                )
                raise RowsFailedError(dict.fromkeys(present, error)) from None
            columns = columns.put(place, cast, array)
        failures.check()
        return columns

    def _cast_loose(self, columns: Columns) -> Columns:
        failures = Failures()
        # The first error of a row counts, in the order of the settings. A field that isn't there becomes one of null.
        for name, target in self._fields.items():
            columns = columns.everywhere(name, target)
            for place in columns.places(name):
                array = columns.arrays[place]
                cast = _cast_texts if array.type == JSON_TYPE else cast_array
                columns = columns.changed(place, pa.field(name, target), cast(array, target, failures))
        failures.check()
        return columns


def _cast_field(field: pa.Field, target: pa.DataType, *, whole: bool = False) -> pa.Field:
    """Returns the field of another type: a struct's loses name and documentation, but not its default."""
    metadata = dict(field.metadata or {})
    kept = dict(metadata) if whole else {}
    kept.pop(DEFAULT, None)
    if DEFAULT in metadata:
        default = default_scalar(field)
        if default is not None:
            kept[DEFAULT] = _default(default, target)
    return pa.field(field.name, target, nullable=field.nullable, metadata=kept or None)


def _default(value: pa.Scalar, target: pa.DataType) -> bytes:
    from wherry.worker.transform.objects import json_text

    failures = Failures()
    array = cast_array(pa.array([value.as_py()], value.type), target, failures)
    try:
        failures.check()
    except RowsFailedError as failed:
        raise failed.failures[0] from None
    result = array[0].as_py()
    if target == pa.float32():
        result = float(str(np.float32(result)))
    return json_text(base64.b64encode(result).decode() if isinstance(result, bytes) else result).encode()


def _cast_texts(array: pa.Array, target: pa.DataType, failures: Failures) -> pa.Array:
    """Casts values without schema that are of no single kind."""
    changed: list[Any] = []
    cast = loose_cast(target)
    for row, value in enumerate(values_of(array)):
        try:
            changed.append(cast(value))
        except DataError as error:
            failures.add(row, error)
            changed.append(None)
    return pa.array(changed, target)


def _each(values: list[Any], target: pa.DataType) -> list[Any]:
    failures = Failures()
    changed: list[Any] = []
    cast = loose_cast(target)
    for row, value in enumerate(values):
        try:
            changed.append(cast(value))
        except CastError as error:
            failures.add(row, error)
    failures.check()
    return changed
