"""TimestampConverter: moments as text, as number, and as Connect's Date, Time and Timestamp."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, Final

import numpy as np
import pyarrow as pa

from wherry.contract.batch import TIMESTAMP_TYPE
from wherry.contract.data import DAY_MS, DataError, Instant
from wherry.contract.errors import ConfigError
from wherry.contract.schema import NAME
from wherry.worker.javaclass import class_of
from wherry.worker.transform.base import OnSide, all_filled, check_fields, rebuilt, required
from wherry.worker.transform.columns import Columns
from wherry.worker.transform.dateformat import DateFormat, PatternError
from wherry.worker.transform.failing import Failures, MissingError, UnknownTypeError
from wherry.worker.transform.rows import Loose, Rows, Side, Typed

TARGETS: Final = ("string", "unix", "Date", "Time", "Timestamp")
_TYPES: Final[Mapping[str, pa.DataType]] = {
    "string": pa.string(),
    "unix": pa.int64(),
    "Date": pa.date32(),
    "Time": pa.time32("ms"),
    "Timestamp": TIMESTAMP_TYPE,
}
# How many units make a ms, or how many ms a unit.
_PER_MS: Final = {"microseconds": 1000, "nanoseconds": 1_000_000}
PRECISIONS: Final = ("nanoseconds", "microseconds", "milliseconds", "seconds")
_LONG_MAX: Final = 2**63 - 1
_LONG_MIN: Final = -(2**63)
_NO_FORMAT: Final = 'Cannot invoke "java.text.SimpleDateFormat.parse(String)" because "config.format" is null'


class TimestampConverter(OnSide):
    """See the module. Settings: target.type, field, format, unix.precision, replace.null.with.default."""

    simple_name: ClassVar[str] = "TimestampConverter"
    purpose: ClassVar[str] = "converting timestamp formats"

    def __init__(self, config: Mapping[str, str], *, is_key: bool) -> None:
        super().__init__(config, is_key=is_key)
        self._target = required(config, "target.type")
        self._field = config.get("field", "").strip()
        self._precision = config.get("unix.precision", "milliseconds").strip()
        for key, value, allowed in (
            ("target.type", self._target, TARGETS),
            ("unix.precision", self._precision, PRECISIONS),
        ):
            if value not in allowed:
                raise ConfigError(
                    f"Invalid value {value} for configuration {key}: String must be one of: {', '.join(allowed)}",
                    key=key,
                )
        self._format = _format(config.get("format", "").strip(), needed=self._target == "string")

    def change_typed(self, side: Typed, rows: Rows) -> Side:
        """See `OnSide.change_typed`."""
        if not self._field:
            failures = Failures()
            array = self._array(side.column, side.field, failures)
            failures.check()
            return Typed(pa.field(side.field.name, _TYPES[self._target], nullable=side.field.nullable), array)
        columns = self.structs(side)
        if columns is None:
            check_fields(side, null_passes=False)
            return side
        columns = all_filled(columns, on=self.replace_null)
        place = columns.place(self._field)
        if place >= 0:
            failures = Failures()
            field = columns.fields[place]
            array = self._array(columns.arrays[place], field, failures, columns)
            failures.check()
            columns = columns.put(place, pa.field(field.name, array.type, nullable=field.nullable), array)
        return rebuilt(side, columns, keep_shape=True)

    def change_loose(self, side: Loose, rows: Rows) -> Side:
        """See `OnSide.change_loose`."""
        if self._field:
            columns = side.columns
            # A date without schema has no column of its own.
            if columns is not None and self._target in {"string", "unix"}:
                lifted = self._lifted(columns)
                if lifted is not None:
                    return Loose.lifted(lifted)
        failures = Failures()
        changed: list[Any] = []
        for row, value in enumerate(self.maps(side) if self._field else side.objects):
            try:
                changed.append(None if value is None else self._changed(value))
            except DataError as error:
                failures.add(row, error)
        failures.check()
        return Loose.of(changed)

    def _lifted(self, columns: Columns) -> Columns | None:
        columns = columns.everywhere(self._field, pa.string())
        failures = Failures()
        for place in columns.places(self._field):
            array = columns.arrays[place]
            if array.type not in (pa.int64(), pa.string()):
                return None
            array = self._array(array, columns.fields[place], failures)
            columns = columns.changed(place, pa.field(self._field, array.type), array)
        failures.check()
        return columns

    def _changed(self, value: Any) -> Any:
        if not self._field:
            return self._converted(value)
        changed = value.copy()
        found = changed.get(self._field)
        changed[self._field] = None if found is None else self._converted(found)
        return changed

    def _converted(self, value: Any) -> Any:
        """Converts one value without schema."""
        if isinstance(value, str):
            moment = self._parsed(value)
        elif isinstance(value, Instant):
            moment = int(value)
        elif type(value) is int:
            moment = self._from_unix(value)
        else:
            raise DataError(f"TimestampConverter does not support class {class_of(value)} objects as timestamps")
        if self._target == "string":
            assert self._format is not None
            return self._format.format(moment)
        if self._target == "unix":
            return self._to_unix(moment)
        if self._target == "Date":
            return Instant(moment - moment % DAY_MS)
        return Instant(moment % DAY_MS if self._target == "Time" else moment)

    def _array(self, array: pa.Array, field: pa.Field, failures: Failures, columns: Columns | None = None) -> pa.Array:
        moments = self._moments(array, field, failures, columns)
        found = np.asarray(moments.fill_null(0))
        mask = np.asarray(moments.is_null()) if moments.null_count else None
        if self._target == "string":
            assert self._format is not None
            texts: dict[int, str] = {}
            for moment in np.unique(found).tolist():
                texts[moment] = self._format.format(moment)
            return pa.array([texts[moment] for moment in found.tolist()], pa.string(), mask=mask)
        if self._target == "unix":
            if self._precision != "milliseconds":
                found = np.fromiter(map(self._to_unix, found.tolist()), np.int64, len(found))
            return pa.array(found, pa.int64(), mask=mask)
        if self._target == "Date":
            return pa.array((found // DAY_MS).astype(np.int32), pa.int32(), mask=mask).cast(pa.date32())
        if self._target == "Time":
            return pa.array((found % DAY_MS).astype(np.int32), pa.int32(), mask=mask).cast(pa.time32("ms"))
        return pa.array(found, pa.int64(), mask=mask).cast(TIMESTAMP_TYPE)

    def _moments(self, array: pa.Array, field: pa.Field, failures: Failures, columns: Columns | None) -> pa.Array:
        """Returns ms since the epoch."""
        source = array.type
        if pa.types.is_timestamp(source):
            return array.cast(pa.timestamp("ms", source.tz)).cast(pa.int64())
        if pa.types.is_date32(source):
            return pa.compute.multiply(array.cast(pa.int32()).cast(pa.int64()), DAY_MS)
        if pa.types.is_time32(source):
            return array.cast(pa.int32()).cast(pa.int64())
        if source == pa.int64():
            if self._precision == "milliseconds":
                return array
            return pa.array([None if n is None else self._from_unix(n) for n in array.to_pylist()], pa.int64())
        if pa.types.is_string(source):
            return self._parsed_array(array, failures)
        error = UnknownTypeError(
            f"Schema Schema{{{_schema_name(field)}}} does not correspond to a known timestamp type format"
        )
        present = (
            np.ones(len(array), np.bool_) if columns is None or columns.present is None else np.asarray(columns.present)
        )
        for row in np.flatnonzero(present).tolist():
            failures.add(row, error)
        return pa.nulls(len(array), pa.int64())

    def _parsed_array(self, array: pa.Array, failures: Failures) -> pa.Array:
        known: dict[str, int | DataError | None] = {}
        for text in array.unique().to_pylist():
            if text is not None:
                try:
                    known[text] = self._parsed(text)
                except DataError as error:
                    known[text] = error
        moments: list[int | None] = []
        for row, text in enumerate(array.to_pylist()):
            found = None if text is None else known[text]
            if isinstance(found, DataError):
                failures.add(row, found)
                found = None
            moments.append(found)
        return pa.array(moments, pa.int64())

    def _parsed(self, text: str) -> int:
        if self._format is None:
            raise MissingError(_NO_FORMAT)
        moment = self._format.parse(text)
        if moment is None:
            raise DataError(
                f"Could not parse timestamp: value ({text}) does not match pattern ({self._format.pattern})"
            )
        return moment

    def _from_unix(self, number: int) -> int:
        per_ms = _PER_MS.get(self._precision)
        if per_ms is not None:
            return _cut(number, per_ms)
        return number if self._precision == "milliseconds" else _saturated(number * 1000)

    def _to_unix(self, moment: int) -> int:
        per_ms = _PER_MS.get(self._precision)
        if per_ms is not None:
            return _saturated(moment * per_ms)
        return moment if self._precision == "milliseconds" else _cut(moment, 1000)


def _format(text: str, *, needed: bool) -> DateFormat | None:
    if not text:
        if needed:
            raise ConfigError(
                "TimestampConverter requires format option to be specified when using string timestamps", key="format"
            )
        return None
    try:
        return DateFormat(text)
    except PatternError as error:
        raise ConfigError(
            f"Invalid value java.lang.IllegalArgumentException: {error} for configuration TimestampConverter requires "
            f"a SimpleDateFormat-compatible pattern for string timestamps: {text}",
            key="format",
        ) from None


def _schema_name(field: pa.Field) -> str:
    from wherry.contract.schema import schema_of

    name = str(schema_of(field)["type"]).upper()
    name = {"FLOAT": "FLOAT32", "DOUBLE": "FLOAT64"}.get(name, name)
    named = (field.metadata or {}).get(NAME)
    return f"{named.decode()}:{name}" if named else name


def _cut(number: int, by: int) -> int:
    """Divides towards zero."""
    return number // by if number >= 0 else -(-number // by)


def _saturated(number: int) -> int:
    return min(max(number, _LONG_MIN), _LONG_MAX)
