"""Flatten: fields of nested structs and maps as fields of the outermost, named by their path."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from wherry.contract.batch import JSON_TYPE
from wherry.contract.data import DataError
from wherry.contract.java import in_map_order
from wherry.contract.schema import DEFAULT
from wherry.worker.transform import lift
from wherry.worker.transform.base import OnSide, default_scalar, filled, rebuilt
from wherry.worker.transform.columns import Columns, There
from wherry.worker.transform.failing import RowsFailedError
from wherry.worker.transform.rows import Loose, Rows, Side, Typed

_Member = tuple[pa.Field, pa.Array, There]


class Flatten(OnSide):
    """See the module. Setting: delimiter. Lists stay; a map within a schema is refused."""

    simple_name: ClassVar[str] = "Flatten"
    purpose: ClassVar[str] = "flattening"

    def __init__(self, config: Mapping[str, str], *, is_key: bool) -> None:
        super().__init__(config, is_key=is_key)
        self._delimiter = config.get("delimiter", ".").strip()

    def change_typed(self, side: Typed, rows: Rows) -> Side:
        """See `OnSide.change_typed`."""
        columns = self.structs(side)
        if columns is None:
            return side
        fields: list[pa.Field] = []
        arrays: list[pa.Array] = []
        present = np.flatnonzero(~side.is_null()).tolist()
        try:
            self._collect(columns, "", side.field.nullable, fields, arrays)
        except DataError as error:
            raise RowsFailedError(dict.fromkeys(present, error)) from None
        return rebuilt(side, Columns(tuple(fields), tuple(arrays), columns.present, columns.rows))

    def change_loose(self, side: Loose, rows: Rows) -> Side:
        """See `OnSide.change_loose`."""
        columns = side.columns
        if columns is not None:
            lifted = self._lifted(columns)
            if lifted is not None:
                return Loose.lifted(lifted)
        return Loose.of([None if found is None else self._flat(found) for found in self.maps(side)])

    def _collect(
        self, columns: Columns, prefix: str, optional: bool, fields: list[pa.Field], arrays: list[pa.Array]
    ) -> None:
        for field, array in zip(columns.fields, columns.arrays, strict=True):
            name = f"{prefix}{self._delimiter}{field.name}" if prefix else field.name
            if pa.types.is_map(field.type):
                raise DataError(
                    f"Flatten transformation does not support MAP for record with schemas (for field {name})."
                )
            nullable = optional or field.nullable
            if pa.types.is_struct(field.type):
                self._collect(Columns.of(array), name, nullable, fields, arrays)
                continue
            fields.append(_renamed(field, name, nullable))
            # Within a struct that is null nothing is filled in.
            arrays.append(filled(field, array, columns, on=True))

    def _lifted(self, columns: Columns) -> Columns | None:
        """Flattens members that are objects; None where these fit no columns, or two get the same name."""
        if not any(field.type == JSON_TYPE for field in columns.fields):
            return columns
        flat = self._within(columns, "")
        if flat is None:
            return None
        fields, arrays, there = zip(*flat, strict=True) if flat else ((), (), ())
        made = Columns(tuple(fields), tuple(arrays), None, columns.rows, tuple(there))
        return made if made.has_each_once() else None

    def _within(self, columns: Columns, prefix: str) -> list[_Member] | None:
        members: list[_Member] = []
        for place, (field, array) in enumerate(zip(columns.fields, columns.arrays, strict=True)):
            there = columns.where(place)
            name = f"{prefix}{self._delimiter}{field.name}" if prefix else field.name
            objects = _objects(array)
            if objects is None:
                members.append((field.with_name(name), array, there))
                continue
            others = pc.invert(objects) if there is None else pc.and_not(there, objects)
            if others.true_count:
                rest = pa.ExtensionArray.from_storage(JSON_TYPE, pc.if_else(objects, None, array.storage))
                members.append((pa.field(name, JSON_TYPE), rest, others))
            inner = _inner(array.storage, objects)
            more = None if inner is None else self._within(inner, name)
            if more is None:
                return None
            members += more
        return members

    def _flat(self, found: dict[str, Any]) -> dict[str, Any]:
        flat: dict[str, Any] = {}
        if self._fill(flat, found, "") > len(flat):
            # Of two that get the same name the later one stays, in the order of Java's maps.
            flat |= dict(self._pairs(found, "", in_map_order(found)))
        return flat

    def _fill(self, flat: dict[str, Any], found: dict[str, Any], prefix: str) -> int:
        """Puts members where they belong; returns how many there were, also of those that got the same name."""
        count = 0
        for key, value in found.items():
            name = f"{prefix}{self._delimiter}{key}" if prefix else key
            if type(value) is dict:
                count += self._fill(flat, value, name)
            else:
                flat[name] = value
                count += 1
        return count

    def _pairs(self, found: dict[str, Any], prefix: str, order: Iterable[str]) -> Iterator[tuple[str, Any]]:
        for key in order:
            value = found[key]
            name = f"{prefix}{self._delimiter}{key}" if prefix else key
            if type(value) is dict:
                yield from self._pairs(value, name, in_map_order(value))
            else:
                yield name, value


def _objects(array: pa.Array) -> pa.BooleanArray | None:
    """Says which values are objects; None when none is."""
    if array.type != JSON_TYPE:
        return None
    found = pc.fill_null(pc.starts_with(array.storage, "{"), False)
    return found if found.true_count else None


def _inner(texts: pa.Array, objects: pa.BooleanArray) -> Columns | None:
    """Returns the members of values that are objects; None when they fit no columns."""
    whole = objects.true_count == len(texts)
    inner = texts if whole else texts.filter(objects)
    found = lift.some(inner)
    if found is None or len(found[1]) < len(inner):
        return None
    columns = found[0]
    if whole:
        return columns
    # Back to where the objects are; elsewhere they have no member.
    order = np.cumsum(np.asarray(objects)) - 1
    spread = columns.take(pa.array(order, pa.int64(), mask=~np.asarray(objects)))
    masks = tuple(objects if mask is None else pc.fill_null(mask, False) for mask in spread.there)
    return replace(spread, rows=len(texts), there=masks)


def _renamed(field: pa.Field, name: str, nullable: bool) -> pa.Field:
    metadata = field.metadata
    if metadata and DEFAULT in metadata and default_scalar(field) is None:
        metadata = {key: value for key, value in metadata.items() if key != DEFAULT}
    return pa.field(name, field.type, nullable=nullable, metadata=metadata)
