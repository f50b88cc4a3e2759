"""SetSchemaMetadata: another name or version for a struct's schema."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

import numpy as np

from wherry.contract.data import DataError
from wherry.contract.errors import ConfigError
from wherry.contract.schema import NAME, VERSION
from wherry.worker.transform.base import OnSide, all_filled
from wherry.worker.transform.columns import Columns
from wherry.worker.transform.failing import RowsFailedError
from wherry.worker.transform.rows import Loose, Rows, Side, Typed


class SetSchemaMetadata(OnSide):
    """See the module. Settings: schema.name, schema.version, replace.null.with.default."""

    simple_name: ClassVar[str] = "SetSchemaMetadata"
    purpose: ClassVar[str] = "updating schema metadata"

    def __init__(self, config: Mapping[str, str], *, is_key: bool) -> None:
        super().__init__(config, is_key=is_key)
        self._metadata: dict[bytes, bytes] = {}
        if "schema.name" in config:
            self._metadata[NAME] = config["schema.name"].strip().encode()
        if "schema.version" in config:
            self._metadata[VERSION] = str(int(config["schema.version"].strip())).encode()
        if not self._metadata:
            raise ConfigError("Neither schema name nor version configured")

    def change_typed(self, side: Typed, rows: Rows) -> Side:
        """See `OnSide.change_typed`."""
        if not side.is_struct:
            error = DataError("Cannot list fields on non-struct type")
            raise RowsFailedError(dict.fromkeys(range(len(side)), error))
        field = side.field.with_metadata({**(side.field.metadata or {}), **self._metadata})
        column = side.column
        if self.replace_null and column.null_count < len(column):
            columns = Columns.of(column)
            with_defaults = all_filled(columns, on=True)
            column = column if with_defaults is columns else with_defaults.struct()
        return Typed(field, column)

    def change_loose(self, side: Loose, rows: Rows) -> Side:
        """See `OnSide.change_loose`. Only null passes."""
        present = np.flatnonzero(~side.is_null()).tolist()
        if present:
            error = DataError("Schema required for [updating schema metadata]")
            raise RowsFailedError(dict.fromkeys(present, error))
        return side
