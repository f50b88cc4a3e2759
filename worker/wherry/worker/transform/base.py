"""What transforms of keys and values have in common: which side they change, what they ask of it, defaults."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, Final, Protocol, runtime_checkable

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from wherry.contract.data import DataError
from wherry.contract.errors import ConfigError
from wherry.contract.schema import DEFAULT, default_of
from wherry.worker.convert.json_rows import connect_value
from wherry.worker.javaclass import class_of, class_of_type
from wherry.worker.transform.columns import Columns
from wherry.worker.transform.failing import Failures, RowsFailedError, SchemaBuildError
from wherry.worker.transform.rows import Loose, Rows, Side, Typed

PACKAGE: Final = "org.apache.kafka.connect.transforms."
REPLACE_NULL: Final = "replace.null.with.default"


class Transform(Protocol):
    """Changes rows on their way."""

    @property
    def class_name(self) -> str:
        """Its class, as Kafka Connect names it."""

    def apply(self, rows: Rows) -> Rows:
        """Returns the rows that take the place of `rows`; fewer when some are dropped.

        Raises:
            RowsFailedError: Some rows can't be transformed; it is called again without them.
        """


@runtime_checkable
class Runs(Protocol):
    """A transform whose answers may have several schemas."""

    def apply_runs(self, rows: Rows) -> list[Rows]:
        """Does what `Transform.apply` does, with an answer of runs of one schema each."""


class OnSide:
    """A transform of keys (`$Key`) or of values (`$Value`)."""

    simple_name: ClassVar[str]
    purpose: ClassVar[str]

    def __init__(self, config: Mapping[str, str], *, is_key: bool) -> None:
        self.is_key = is_key
        self.replace_null = boolean(config, REPLACE_NULL, default=True)

    @property
    def class_name(self) -> str:
        """Its class, as Kafka Connect names it."""
        return f"{PACKAGE}{self.simple_name}${'Key' if self.is_key else 'Value'}"

    def apply(self, rows: Rows) -> Rows:
        """See `Transform.apply`."""
        side = rows.side(self.is_key)
        changed = self.change_typed(side, rows) if isinstance(side, Typed) else self.change_loose(side, rows)
        return rows if changed is side else rows.with_side(self.is_key, changed)

    def change_typed(self, side: Typed, rows: Rows) -> Side:
        """Returns what takes the place of a column with schema."""
        raise NotImplementedError

    def change_loose(self, side: Loose, rows: Rows) -> Side:
        """Returns what takes the place of values without schema."""
        raise NotImplementedError

    def structs(self, side: Typed, *, null_passes: bool = True) -> Columns | None:
        """Takes structs apart; None when all rows are null and pass as they are.

        Raises:
            RowsFailedError: Rows are no structs, or null where that doesn't pass.
        """
        return structs_of(side, self.purpose, null_passes=null_passes)

    def maps(self, side: Loose, *, null_passes: bool = True) -> list[dict[str, Any] | None]:
        """Returns the objects of a side without schema.

        Raises:
            RowsFailedError: Rows are no objects, or null where that doesn't pass.
        """
        return maps_of(side, self.purpose, null_passes=null_passes)


def check_fields(side: Typed, *, null_passes: bool = True) -> None:
    """Refuses a column whose schema has no fields, as Kafka Connect does where it builds another schema first.

    Raises:
        RowsFailedError: It has none.
    """
    if side.is_struct:
        return
    nulls = side.is_null() if null_passes else np.zeros(len(side), np.bool_)
    rows = np.flatnonzero(~nulls).tolist()
    if rows:
        raise RowsFailedError(dict.fromkeys(rows, DataError("Cannot list fields on non-struct type")))


def structs_of(side: Typed, purpose: str, *, null_passes: bool = True) -> Columns | None:
    """See `OnSide.structs`."""
    nulls = side.is_null()
    failures = Failures()
    for row in np.flatnonzero(nulls if side.is_struct else np.ones(len(nulls), np.bool_)).tolist():
        if not (null_passes and nulls[row]):
            found = "null" if nulls[row] else class_of_type(side.field.type)
            failures.add(row, DataError(f"Only Struct objects supported for [{purpose}], found: {found}"))
    failures.check()
    return None if nulls.all() and null_passes else Columns.of(side.column)


def maps_of(side: Loose, purpose: str, *, null_passes: bool = True) -> list[dict[str, Any] | None]:
    """See `OnSide.maps`."""
    objects = side.objects
    failures = Failures()
    for row, value in enumerate(objects):
        if type(value) is not dict and not (value is None and null_passes):
            text = f"Only Map objects supported in absence of schema for [{purpose}], found: {class_of(value)}"
            failures.add(row, DataError(text))
    failures.check()
    return objects


def filled(field: pa.Field, array: pa.Array, columns: Columns, *, on: bool) -> pa.Array:
    """Puts the default of a field in the place of nulls, in structs that aren't null themselves."""
    if not on or not array.null_count or not field.metadata or DEFAULT not in field.metadata:
        return array
    default = default_scalar(field)
    if default is None:
        return array
    missing = array.is_null() if columns.present is None else pc.and_(array.is_null(), columns.present)
    return pc.if_else(missing, default, array)


def all_filled(columns: Columns, *, on: bool) -> Columns:
    """Does so for all fields."""
    if not on:
        return columns
    for place, (field, array) in enumerate(zip(columns.fields, columns.arrays, strict=True)):
        with_default = filled(field, array, columns, on=True)
        if with_default is not array:
            columns = columns.put(place, field, with_default)
    return columns


def default_scalar(field: pa.Field) -> pa.Scalar | None:
    """Returns the default of a field as a value of its type; None when it has none."""
    has_default, default = default_of(field)
    if not has_default or default is None:
        return None
    value = connect_value(field.remove_metadata(), default)
    return value if isinstance(value, pa.Scalar) else pa.scalar(value, field.type)


def struct_field(field: pa.Field, columns: Columns, *, keep_shape: bool) -> pa.Field:
    """Returns the field of structs that were built anew.

    Name, version, documentation and parameters stay; whether they may be null, and their default, only if `keep_shape`.
    """
    metadata = dict(field.metadata or {})
    if not keep_shape:
        metadata.pop(DEFAULT, None)
    nullable = field.nullable and keep_shape
    return pa.field(field.name, pa.struct(list(columns.fields)), nullable=nullable, metadata=metadata or None)


def rebuilt(side: Typed, columns: Columns, *, keep_shape: bool = False) -> Typed:
    """Puts structs of other fields in the place of a column's.

    Raises:
        RowsFailedError: Two fields have the same name, or one has none.
    """
    problem = _unbuildable(columns)
    if problem is not None:
        failures = Failures()
        for row in np.flatnonzero(~side.is_null()).tolist():
            failures.add(row, problem)
        failures.check()
    return Typed(struct_field(side.field, columns, keep_shape=keep_shape), columns.struct())


def _unbuildable(columns: Columns) -> DataError | None:
    names: set[str] = set()
    for field in columns.fields:
        if not field.name:
            return SchemaBuildError("fieldName cannot be null.")
        if field.name in names:
            return SchemaBuildError(f"Cannot create field because of field name duplication {field.name}")
        names.add(field.name)
    return None


def boolean(config: Mapping[str, str], key: str, *, default: bool) -> bool:
    """Reads a setting that is true or false.

    Raises:
        ConfigError: It is neither.
    """
    text = config.get(key)
    if text is None:
        return default
    if text.strip().lower() not in {"true", "false"}:
        raise ConfigError(
            f"Invalid value {text} for configuration {key}: Expected value to be either true or false", key=key
        )
    return text.strip().lower() == "true"


def names_of(config: Mapping[str, str], key: str) -> list[str]:
    """Reads a list; absent is empty."""
    text = config.get(key, "").strip()
    return [item.strip() for item in text.split(",")] if text else []


def required(config: Mapping[str, str], key: str) -> str:
    """Reads a setting that must be given.

    Raises:
        ConfigError: It isn't.
    """
    if key not in config:
        raise ConfigError(f'Missing required configuration "{key}" which has no default value.', key=key)
    return config[key].strip()
