"""Objects column by column: structs with a schema, and objects without one, in which a member may be missing."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from wherry.contract.batch import JSON_TYPE

Positions = npt.NDArray[np.int64]
There: TypeAlias = pa.BooleanArray | None


@dataclass(frozen=True, slots=True)
class Columns:
    """The fields of structs, or the members of objects without schema.

    Members of no single type are a column of JSON texts, which are written as they stand. The same name may stand in
    several places, as long as no object has it more than once.

    Attributes:
        fields: Their schemas.
        arrays: Their values; null where the struct itself is, and where a member is missing.
        present: Which structs aren't null; None when none is.
        rows: Number of rows.
        there: For each member, which objects have it at all: None where all do. Empty for structs.
    """

    fields: tuple[pa.Field, ...]
    arrays: tuple[pa.Array, ...]
    present: pa.BooleanArray | None
    rows: int
    there: tuple[There, ...] = ()

    @classmethod
    def of(cls, column: pa.StructArray) -> Columns:
        """Takes a column of structs apart."""
        present = column.is_valid() if column.null_count else None
        return cls(tuple(column.type), tuple(column.flatten()), present, len(column))

    @property
    def is_plain(self) -> bool:
        """Whether no member is missing anywhere, nor held as text."""
        return not any(mask is not None for mask in self.there) and not any(
            field.type == JSON_TYPE for field in self.fields
        )

    def struct(self) -> pa.StructArray:
        """Puts the structs together again; members that are missing are null."""
        mask = None if self.present is None else pc.invert(self.present)
        if not self.fields:
            return pa.array(
                [{}] * self.rows if mask is None else [None if null else {} for null in mask.to_pylist()], pa.struct([])
            )
        return pa.StructArray.from_arrays(list(self.arrays), fields=list(self.fields), mask=mask)

    def place(self, name: str) -> int:
        """Returns the index of a field; -1 when there is none of that name."""
        return next((place for place, field in enumerate(self.fields) if field.name == name), -1)

    def places(self, name: str) -> list[int]:
        """Returns the indices of all members of a name."""
        return [place for place, field in enumerate(self.fields) if field.name == name]

    def where(self, place: int) -> There:
        """Says which objects have a member; None when all do."""
        return self.there[place] if self.there else None

    def put(self, place: int, field: pa.Field, array: pa.Array, there: There = None) -> Columns:
        """Returns the columns with one replaced, or with one more at the end; by default all objects have it."""
        fields, arrays, masks = list(self.fields), list(self.arrays), self._masks()
        fields[place : place + 1], arrays[place : place + 1], masks[place : place + 1] = [field], [array], [there]
        return replace(self, fields=tuple(fields), arrays=tuple(arrays), there=tuple(masks))

    def changed(self, place: int, field: pa.Field, array: pa.Array) -> Columns:
        """Returns the columns with one replaced where it is."""
        return self.put(place, field, array, self.where(place))

    def select(self, places: Sequence[int]) -> Columns:
        """Returns some of the columns, in the order given."""
        return replace(
            self,
            fields=tuple(self.fields[place] for place in places),
            arrays=tuple(self.arrays[place] for place in places),
            there=tuple(self.there[place] for place in places) if self.there else (),
        )

    def take(self, positions: pa.Array) -> Columns:
        """Returns some objects."""
        return Columns(
            self.fields,
            tuple(taken(array, positions) for array in self.arrays),
            None if self.present is None else self.present.take(positions),
            len(positions),
            tuple(None if mask is None else mask.take(positions) for mask in self.there),
        )

    def everywhere(self, name: str, data_type: pa.DataType) -> Columns:
        """Returns the columns with a member that all objects have: null, and their last one, where it was missing."""
        places = self.places(name)
        missing: There = None
        for place in places:
            mask = self.where(place)
            if mask is None:
                return self
            missing = pc.invert(mask) if missing is None else pc.and_not(missing, mask)
        if missing is not None and not missing.true_count:
            return self
        kind = self.fields[places[0]].type if places else data_type
        return self.put(len(self.fields), pa.field(name, kind), nulls(self.rows, kind), missing)

    def has_each_once(self) -> bool:
        """Whether no object has two members of the same name."""
        for name in {field.name for field in self.fields}:
            masks = [self.where(place) for place in self.places(name)]
            if len(masks) > 1 and (None in masks or _overlap(masks)):
                return False
        return True

    def _masks(self) -> list[There]:
        return list(self.there) if self.there else [None] * len(self.fields)


def taken(array: pa.Array, positions: pa.Array) -> pa.Array:
    """Returns some rows of a column, null where the position is."""
    if array.type == JSON_TYPE:
        return pa.ExtensionArray.from_storage(JSON_TYPE, array.storage.take(positions))
    return array.take(positions)


def nulls(rows: int, data_type: pa.DataType) -> pa.Array:
    """Returns a column of nulls."""
    if data_type == JSON_TYPE:
        return pa.ExtensionArray.from_storage(JSON_TYPE, pa.nulls(rows, JSON_TYPE.storage_type))
    return pa.nulls(rows, data_type)


def _overlap(masks: Sequence[Any]) -> bool:
    seen = masks[0]
    for mask in masks[1:]:
        if pc.and_(seen, mask).true_count:
            return True
        seen = pc.or_(seen, mask)
    return False
