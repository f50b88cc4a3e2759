"""InsertField: where a record comes from, when, and a text of one's own, as fields."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import pyarrow as pa

from wherry.contract.batch import TIMESTAMP_TYPE, Batch
from wherry.contract.data import DataError
from wherry.contract.errors import ConfigError
from wherry.worker.transform.base import OnSide, all_filled, rebuilt
from wherry.worker.transform.columns import Columns
from wherry.worker.transform.failing import RowsFailedError
from wherry.worker.transform.rows import Loose, Rows, Side, Typed


@dataclass(frozen=True, slots=True)
class _Inserted:
    """One field: its name, whether it may be null, and which column it takes; none for the text of one's own."""

    name: str
    optional: bool
    column: str
    data_type: pa.DataType


# In the order they are inserted in, whatever the order of the settings.
_COLUMNS: tuple[tuple[str, str, pa.DataType], ...] = (
    ("topic.field", "topic", pa.string()),
    ("partition.field", "partition", pa.int32()),
    ("offset.field", "offset", pa.int64()),
    ("timestamp.field", "timestamp", TIMESTAMP_TYPE),
    ("static.field", "", pa.string()),
)


class InsertField(OnSide):
    """See the module. Settings: topic.field … static.field, static.value, replace.null.with.default."""

    simple_name: ClassVar[str] = "InsertField"
    purpose: ClassVar[str] = "field insertion"

    def __init__(self, config: Mapping[str, str], *, is_key: bool, is_sink: bool) -> None:
        super().__init__(config, is_key=is_key)
        self._is_sink = is_sink
        self._inserted = [
            _parse(config[key].strip(), column, data_type) for key, column, data_type in _COLUMNS if key in config
        ]
        self._static = config.get("static.value", "").strip()
        if not self._inserted:
            raise ConfigError("No field insertion configured")
        if "static.field" in config and "static.value" not in config:
            raise ConfigError(
                "Invalid value null for configuration static.value: No value specified for static field: "
                f"{config['static.field']}",
                key="static.value",
            )

    def change_typed(self, side: Typed, rows: Rows) -> Side:
        """See `OnSide.change_typed`."""
        columns = self.structs(side)
        if columns is None:
            return side
        self._check_offsets(side.is_null())
        columns = all_filled(columns, on=self.replace_null)
        for inserted in self._inserted:
            array = self._array(inserted, rows.rest)
            field = pa.field(inserted.name, inserted.data_type, nullable=inserted.optional)
            columns = columns.put(len(columns.fields), field, array)
        return rebuilt(side, columns)

    def change_loose(self, side: Loose, rows: Rows) -> Side:
        """See `OnSide.change_loose`."""
        columns = side.columns
        if columns is not None:
            lifted = self._lifted(columns, rows.rest)
            if lifted is not None:
                self._check_offsets(side.is_null())
                return Loose.lifted(lifted)
        maps = self.maps(side)
        self._check_offsets(side.is_null())
        values = [(inserted.name, _plain(self._array(inserted, rows.rest)).to_pylist()) for inserted in self._inserted]
        changed: list[Any] = []
        for row, found in enumerate(maps):
            if found is None:
                changed.append(None)
                continue
            found = found.copy()
            for name, column in values:
                if column[row] is not None:
                    found[name] = column[row]
            changed.append(found)
        return Loose.of(changed)

    def _check_offsets(self, nulls: Any) -> None:
        if self._is_sink or all(inserted.column != "offset" for inserted in self._inserted):
            return
        error = DataError(
            "Only SinkRecord supported for [field insertion], found: org.apache.kafka.connect.source.SourceRecord"
        )
        failed = {row: error for row, null in enumerate(nulls.tolist()) if not null}
        if failed:
            raise RowsFailedError(failed)

    def _lifted(self, columns: Columns, rest: Batch) -> Columns | None:
        """Inserts into columns; what isn't there is left out. None where only some rows' fields would be replaced."""
        for inserted in self._inserted:
            array = _plain(self._array(inserted, rest))
            field = pa.field(inserted.name, array.type)
            places = columns.places(inserted.name)
            if array.null_count == len(array):
                continue
            if array.null_count:
                if places:
                    return None
                columns = columns.put(len(columns.fields), field, array, array.is_valid())
                continue
            columns = columns.everywhere(inserted.name, array.type)
            for place in columns.places(inserted.name):
                columns = columns.changed(place, field, array)
        return columns

    def _array(self, inserted: _Inserted, rest: Batch) -> pa.Array:
        if not inserted.column:
            return pa.repeat(pa.scalar(self._static, pa.string()), rest.num_rows)
        array = rest.column(inserted.column)
        return pa.nulls(rest.num_rows, inserted.data_type) if array is None else array.cast(inserted.data_type)


def _parse(text: str, column: str, data_type: pa.DataType) -> _Inserted:
    """Reads a name with its suffix: `!` for required, `?` for optional, which is also the default."""
    if text.endswith("!"):
        return _Inserted(text[:-1], False, column, data_type)
    return _Inserted(text.removesuffix("?"), True, column, data_type)


def _plain(array: pa.Array) -> pa.Array:
    """Without schema a time is a number of ms."""
    return array.cast(pa.int64()) if array.type == TIMESTAMP_TYPE else array
