"""ExtractField, HoistField and ValueToKey: a field as the whole, the whole as a field, fields of the value as key."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, ClassVar

import pyarrow as pa

from wherry.contract.batch import JSON_TYPE
from wherry.contract.data import DataError
from wherry.contract.errors import ConfigError
from wherry.worker.transform import lift
from wherry.worker.transform.base import (
    PACKAGE,
    REPLACE_NULL,
    OnSide,
    boolean,
    maps_of,
    names_of,
    required,
    structs_of,
)
from wherry.worker.transform.columns import Columns
from wherry.worker.transform.failing import Failures, RowsFailedError
from wherry.worker.transform.lift import values_of
from wherry.worker.transform.paths import VERSION_KEY, Path
from wherry.worker.transform.rows import Loose, Rows, Side, Typed


class ExtractField(OnSide):
    """See the module. Settings: field, field.syntax.version, replace.null.with.default."""

    simple_name: ClassVar[str] = "ExtractField"
    purpose: ClassVar[str] = "field extraction"

    def __init__(self, config: Mapping[str, str], *, is_key: bool) -> None:
        super().__init__(config, is_key=is_key)
        self._path = Path(required(config, "field"), config.get(VERSION_KEY, "V1"))

    def change_typed(self, side: Typed, rows: Rows) -> Side:
        """See `OnSide.change_typed`."""
        columns = self.structs(side)
        if columns is None:
            if not side.is_struct:
                # A null of a schema that has no fields; one without a schema is no part of a column here.
                error = DataError("Cannot look up fields on non-struct type")
                raise RowsFailedError(dict.fromkeys(range(len(side)), error))
            columns = Columns.of(side.column)
        field, array = _column(self._path, columns, replace_null=self.replace_null)
        return Typed(field, array)

    def change_loose(self, side: Loose, rows: Rows) -> Side:
        """See `OnSide.change_loose`."""
        columns = side.columns
        if columns is not None and len(self._path.steps) == 1:
            places = columns.places(self._path.steps[0])
            if not places:
                return Loose.nulls(columns.rows)
            if len(places) == 1:
                array = columns.arrays[places[0]]
                if array.type == JSON_TYPE:
                    return Loose(columns.rows, texts=array.storage)
                return Loose.of(values_of(array))
        return Loose.of(_picked(self.maps(side), self._path.value))


class HoistField(OnSide):
    """See the module. Setting: field."""

    simple_name: ClassVar[str] = "HoistField"
    purpose: ClassVar[str] = "hoist field"

    def __init__(self, config: Mapping[str, str], *, is_key: bool) -> None:
        super().__init__(config, is_key=is_key)
        self._field = required(config, "field")

    def change_typed(self, side: Typed, rows: Rows) -> Side:
        """See `OnSide.change_typed`. Null becomes a field that is null."""
        inner = side.field.with_name(self._field)
        struct = pa.StructArray.from_arrays([side.column], fields=[inner])
        return Typed(pa.field(side.field.name, struct.type, nullable=False), struct)

    def change_loose(self, side: Loose, rows: Rows) -> Side:
        """See `OnSide.change_loose`."""
        name = self._field
        columns = side.columns
        if columns is not None:
            inner = pa.ExtensionArray.from_storage(JSON_TYPE, lift.texts(columns))
            return Loose.lifted(Columns((pa.field(name, JSON_TYPE),), (inner,), None, columns.rows))
        return Loose.of([{name: value} for value in side.objects])


class ValueToKey:
    """See the module. Settings: fields, field.syntax.version, replace.null.with.default.

    NB: Kafka Connect 4.3 knows no `field.syntax.version` here; it is a later version's.
    """

    class_name = f"{PACKAGE}ValueToKey"
    _purpose = "copying fields from value to key"

    def __init__(self, config: Mapping[str, str]) -> None:
        version = config.get(VERSION_KEY, "V1")
        if version.strip().upper() not in {"V1", "V2"}:
            raise ConfigError(
                f"Invalid value {version} for configuration {VERSION_KEY}: String must be one of (case insensitive): "
                "V1, V2",
                key=VERSION_KEY,
            )
        self._paths = [Path(name, version) for name in names_of(config, "fields")]
        self._names = [path.text for path in self._paths]
        self._replace_null = boolean(config, REPLACE_NULL, default=True)

    def apply(self, rows: Rows) -> Rows:
        """See `Transform.apply`."""
        side = rows.value
        key = self._typed(side) if isinstance(side, Typed) else self._loose(side)
        return rows.with_side(True, key)

    def _typed(self, side: Typed) -> Typed:
        columns = structs_of(side, self._purpose, null_passes=False)
        assert columns is not None
        fields, arrays = [], []
        for path in self._paths:
            field, array = _column(path, columns, replace_null=self._replace_null, unknown="Field does not exist: {}")
            fields.append(field.with_name(path.text))
            arrays.append(array)
        struct = pa.StructArray.from_arrays(arrays, fields=fields)
        return Typed(pa.field("key", struct.type, nullable=False), struct)

    def _loose(self, side: Loose) -> Loose:
        columns = side.columns
        if columns is not None and all(len(path.steps) == 1 for path in self._paths):
            places = [columns.places(path.text) for path in self._paths]
            # One that isn't there becomes null.
            if all(len(found) == 1 for found in places) and len(set(self._names)) == len(places):
                return Loose.lifted(replace(columns.select([found[0] for found in places]), there=()))
        paths = self._paths
        maps = maps_of(side, self._purpose, null_passes=False)
        return Loose.of(_picked(maps, lambda found: {path.text: path.value(found) for path in paths}))


def _picked(maps: list[dict[str, Any] | None], pick: Callable[[dict[str, Any]], Any]) -> list[Any]:
    failures = Failures()
    picked: list[Any] = []
    for row, found in enumerate(maps):
        try:
            picked.append(None if found is None else pick(found))
        except DataError as error:
            failures.add(row, error)
    failures.check()
    return picked


def _column(
    path: Path, columns: Columns, *, replace_null: bool, unknown: str = "Unknown field: {}"
) -> tuple[pa.Field, pa.Array]:
    """Returns the column of a path; a path that leads nowhere is the error of every row."""
    try:
        return path.column(columns, replace_null=replace_null, unknown=unknown)
    except DataError as error:
        raise RowsFailedError(dict.fromkeys(range(columns.rows), _as_data(error, unknown))) from None


def _as_data(error: DataError, unknown: str) -> DataError:
    """A field that the key should have and the value hasn't is wrong data; one asked for alone a wrong argument."""
    return error if unknown.startswith("Unknown") else DataError(str(error), reason=error.reason)
