"""MaskField: a neutral value, or one given, in the place of what fields hold."""

from __future__ import annotations

from collections.abc import Mapping
from decimal import Decimal, InvalidOperation
from typing import Any, ClassVar, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from wherry.contract.batch import JSON_TYPE
from wherry.contract.data import DataError, Float32, Instant, Int8, Int16, Int32
from wherry.contract.errors import ConfigError
from wherry.contract.java import in_map_order, to_float32
from wherry.contract.schemaless import fraction
from wherry.worker.javaclass import class_of, class_of_type
from wherry.worker.transform.base import OnSide, filled, names_of
from wherry.worker.transform.casting import narrowed
from wherry.worker.transform.columns import Columns
from wherry.worker.transform.failing import Failures
from wherry.worker.transform.lift import json_of, values_of
from wherry.worker.transform.rows import Loose, Rows, Side, Typed

_BITS: Final = {Int8: 8, Int16: 16, Int32: 32, int: 64}


class MaskField(OnSide):
    """See the module. Settings: fields, replacement, replace.null.with.default."""

    simple_name: ClassVar[str] = "MaskField"
    purpose: ClassVar[str] = "mask fields"

    def __init__(self, config: Mapping[str, str], *, is_key: bool) -> None:
        super().__init__(config, is_key=is_key)
        # In the order in which Kafka Connect walks over them: the first error counts.
        self._fields = tuple(in_map_order(names_of(config, "fields")))
        self._replacement = config["replacement"].strip() if "replacement" in config else None
        if self._replacement == "":
            raise ConfigError(
                "Invalid value  for configuration replacement: String must be non-empty", key="replacement"
            )

    def change_typed(self, side: Typed, rows: Rows) -> Side:
        """See `OnSide.change_typed`. The schema stays as it is."""
        columns = self.structs(side, null_passes=False)
        assert columns is not None
        masked = self._typed_columns(columns)
        return Typed(side.field, masked.struct())

    def change_loose(self, side: Loose, rows: Rows) -> Side:
        """See `OnSide.change_loose`. A field that isn't there becomes one that is null."""
        columns = side.columns
        if columns is not None:
            return Loose.lifted(self._loose_columns(columns))
        failures = Failures()
        changed = []
        for row, found in enumerate(self.maps(side, null_passes=False)):
            assert found is not None
            found = found.copy()
            for name in self._fields:
                try:
                    found[name] = self._masked(found.get(name))
                except DataError as error:
                    failures.add(row, error)
            changed.append(found)
        failures.check()
        return Loose.of(changed)

    def _typed_columns(self, columns: Columns) -> Columns:
        failures = Failures()
        for place, field in enumerate(columns.fields):
            array = filled(field, columns.arrays[place], columns, on=self.replace_null)
            if field.name in self._fields:
                array = self._masked_array(array, failures)
            columns = columns.put(place, field, array)
        failures.check()
        return columns

    def _loose_columns(self, columns: Columns) -> Columns:
        failures = Failures()
        for name in self._fields:
            columns = columns.everywhere(name, pa.string())
            for place in columns.places(name):
                array = columns.arrays[place]
                masked = self._masked_texts if array.type == JSON_TYPE else self._masked_array
                columns = columns.changed(place, columns.fields[place], masked(array, failures))
        failures.check()
        return columns

    def _masked_texts(self, array: pa.Array, failures: Failures) -> pa.Array:
        """Masks values without schema that are of no single kind."""
        changed: list[Any] = []
        for row, value in enumerate(values_of(array)):
            try:
                changed.append(self._masked(value))
            except DataError as error:
                failures.add(row, error)
                changed.append(None)
        return json_of(changed)

    def _masked_array(self, array: pa.Array, failures: Failures) -> pa.Array:
        if array.null_count == len(array):
            return array
        try:
            masked = self._masked_scalar(array.type)
        except DataError as error:
            for row in np.flatnonzero(np.asarray(array.is_valid())).tolist():
                failures.add(row, error)
            return array
        return pc.if_else(array.is_valid(), masked, pa.scalar(None, array.type))

    def _masked_scalar(self, data_type: pa.DataType) -> pa.Scalar:
        if pa.types.is_string(data_type):
            return pa.scalar("" if self._replacement is None else self._replacement)
        if pa.types.is_integer(data_type):
            return pa.scalar(narrowed(int(self._number()), data_type.bit_width), data_type)
        if pa.types.is_floating(data_type):
            number = to_float32(self._number()) if data_type == pa.float32() else float(self._number())
            return pa.scalar(number, data_type)
        if pa.types.is_decimal(data_type):
            return pa.scalar(self._scaled(data_type), data_type)
        if self._replacement is None:
            if pa.types.is_boolean(data_type):
                return pa.scalar(False)
            if pa.types.is_temporal(data_type):
                return pa.scalar(0, pa.int64() if pa.types.is_timestamp(data_type) else pa.int32()).cast(data_type)
            if pa.types.is_list(data_type) or pa.types.is_map(data_type):
                return pa.scalar([], data_type)
        raise self._unmaskable(class_of_type(data_type))

    def _masked(self, value: Any) -> Any:
        if value is None:
            return None
        if isinstance(value, str):
            return "" if self._replacement is None else self._replacement
        bits = _BITS.get(type(value))
        if bits is not None:
            return type(value)(narrowed(int(self._number()), bits))
        if isinstance(value, float):
            single = isinstance(value, Float32)
            return Float32(to_float32(self._number())) if single else float(self._number())
        if self._replacement is None:
            if isinstance(value, bool):
                return False
            if isinstance(value, Instant):
                return Instant(0)
            if isinstance(value, list | dict):
                return type(value)()
        raise self._unmaskable(class_of(value))

    def _number(self) -> Decimal:
        """Returns the number that stands in the place of others; it is read when it is needed, as in Kafka Connect."""
        if self._replacement is None:
            return Decimal(0)
        try:
            number = fraction(self._replacement)
        except ValueError:
            number = Decimal("NaN")
        if number.is_zero():
            return abs(number)  # a decimal of Java has no negative zero
        if not number.is_finite() or "_" in self._replacement:
            raise DataError(f"Unable to convert {self._replacement} (class java.lang.String) to a number")
        return number

    def _scaled(self, data_type: pa.DataType) -> Decimal:
        # NB: Kafka Connect keeps the number's own scale, which no converter can write if it isn't the schema's.
        try:
            number = self._number()
        except DataError:
            raise DataError(f"Unable to convert {self._replacement} (class java.lang.String) to number") from None
        try:
            return number.quantize(Decimal(1).scaleb(-data_type.scale))
        except InvalidOperation:
            raise DataError(f"{self._replacement} has too many digits.") from None

    def _unmaskable(self, class_name: str) -> DataError:
        if self._replacement is None:
            return DataError(f"Cannot mask value of type: class {class_name}")
        return DataError(f"Cannot mask value of type class {class_name} with custom replacement.")
