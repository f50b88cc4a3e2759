"""ReplaceField: leaves fields out, keeps only some, gives them other names."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np

from wherry.contract.data import DataError
from wherry.contract.errors import ConfigError
from wherry.contract.java import in_map_order
from wherry.worker.transform.base import OnSide, all_filled, rebuilt
from wherry.worker.transform.columns import Columns
from wherry.worker.transform.failing import RowsFailedError
from wherry.worker.transform.rows import Loose, Rows, Side, Typed


class ReplaceField(OnSide):
    """See the module. Settings: exclude, include, renames, replace.null.with.default."""

    simple_name: ClassVar[str] = "ReplaceField"
    purpose: ClassVar[str] = "field replacement"

    def __init__(self, config: Mapping[str, str], *, is_key: bool) -> None:
        super().__init__(config, is_key=is_key)
        self._exclude = frozenset(_items(config, "exclude"))
        self._include = frozenset(_items(config, "include"))
        self._renames: dict[str, str] = {}
        for item in _items(config, "renames"):
            parts = item.split(":")
            if len(parts) != 2 or not parts[1]:
                raise ConfigError(
                    f"Invalid value [{config['renames']}] for configuration renames: Invalid rename mapping: {item}",
                    key="renames",
                )
            self._renames[parts[0]] = parts[1]
        self._sources = {target: name for name, target in self._renames.items()}

    def change_typed(self, side: Typed, rows: Rows) -> Side:
        """See `OnSide.change_typed`."""
        columns = self.structs(side)
        if columns is None:
            return side
        columns = all_filled(columns, on=self.replace_null)
        renamed = self._renamed(columns)
        for place, field in enumerate(renamed.fields):
            # Kafka Connect looks a value up by what its new name was before.
            source = self._sources.get(field.name)
            if source is None:
                continue
            origin = columns.place(source)
            if origin < 0:
                error = DataError(f"{source} is not a valid field name")
                raise RowsFailedError(dict.fromkeys(np.flatnonzero(~side.is_null()).tolist(), error))
            if columns.fields[origin].type == field.type:
                renamed = renamed.put(place, field, columns.arrays[origin])
        return rebuilt(side, renamed)

    def change_loose(self, side: Loose, rows: Rows) -> Side:
        """See `OnSide.change_loose`."""
        columns = side.columns
        if columns is not None:
            renamed = self._renamed(columns)
            if renamed.has_each_once():
                return Loose.lifted(renamed)
        return Loose.of([None if found is None else self._changed(found) for found in self.maps(side)])

    def _keeps(self, name: str) -> bool:
        return name not in self._exclude and (not self._include or name in self._include)

    def _renamed(self, columns: Columns) -> Columns:
        kept = columns.select([place for place, field in enumerate(columns.fields) if self._keeps(field.name)])
        for place, field in enumerate(kept.fields):
            name = self._renames.get(field.name)
            if name is not None:
                kept = kept.changed(place, field.with_name(name), kept.arrays[place])
        return kept

    def _changed(self, found: dict[str, Any]) -> dict[str, Any]:
        kept = found.keys() - self._exclude if not self._include else (found.keys() & self._include) - self._exclude
        renames = self._renames
        changed = {renames.get(name, name): value for name, value in found.items() if name in kept}
        if len(changed) == len(kept):
            return changed
        return {target: found[name] for target, name in self._plan(tuple(found))}

    def _plan(self, names: tuple[str, ...]) -> list[tuple[str, str]]:
        """Returns the names that objects of these fields get, and where their values come from."""
        kept = [name for name in names if self._keeps(name)]
        targets = [self._renames.get(name, name) for name in kept]
        # The later one stays; Kafka Connect walks over its maps in their own order.
        last = {self._renames.get(name, name): name for name in in_map_order(names) if name in set(kept)}
        return [(target, last[target]) for target in dict.fromkeys(targets)]


def _items(config: Mapping[str, str], key: str) -> list[str]:
    """Reads a list. Blanks around commas go, those around colons stay."""
    text = config.get(key, "").strip()
    return [item.strip() for item in text.split(",")] if text else []
