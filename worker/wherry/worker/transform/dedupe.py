"""Dedupe: leaves out rows whose key, or fields, came before within a window of so many keys and so much time.

What it promises: a row is left out only if one with the same key went through the same task within the window. It does
not promise that no repeated row passes: what it remembers is lost when the lease ends, when its pipeline is made anew
after a fault, and when the destination asks to go back; and each task remembers for itself.

It has state, which other transforms don't, so it must know which batch it looks at. A batch that is tried again is
looked at as if for the first time, and a row that is offered to the destination once more passes.
"""

from __future__ import annotations

import hashlib
import time
from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final, Protocol, runtime_checkable

import numpy as np

from wherry.contract.data import DataError
from wherry.contract.errors import ConfigError
from wherry.worker.transform.base import maps_of, names_of, structs_of
from wherry.worker.transform.failing import RowsFailedError
from wherry.worker.transform.own import OWN_PACKAGE, whole_number
from wherry.worker.transform.rows import Rows, Side, Typed

WINDOW_MS_DEFAULT: Final = 600_000
WINDOW_RECORDS_DEFAULT: Final = 100_000
# About 200 bytes each.
WINDOW_RECORDS_MAX: Final = 5_000_000
_WINDOW_MS_MAX: Final = 2**53
_DIGEST_BYTES: Final = 16
_PURPOSE: Final = "deduplication"


@runtime_checkable
class Stateful(Protocol):
    """A transform that remembers rows."""

    def begin(self) -> None:
        """What comes now is a new batch: what was seen in the last one holds."""

    def undo(self) -> None:
        """The last batch comes again: what was seen in it doesn't hold."""

    def forget(self) -> None:
        """Rows of long ago come again: nothing holds."""


class Dedupe:
    """See the module. Settings: fields, window.ms, window.records.

    Args:
        config: The settings.
        clock: Seconds, rising.
    """

    class_name = f"{OWN_PACKAGE}Dedupe"

    def __init__(self, config: Mapping[str, str], clock: Callable[[], float] = time.monotonic) -> None:
        self._fields = names_of(config, "fields")
        if len(set(self._fields)) < len(self._fields):
            raise ConfigError("fields names a field twice.", key="fields")
        self._window_s = whole_number(config, "window.ms", WINDOW_MS_DEFAULT, 1, _WINDOW_MS_MAX) / 1000
        self._records = whole_number(config, "window.records", WINDOW_RECORDS_DEFAULT, 1, WINDOW_RECORDS_MAX)
        self._clock = clock
        self._seen: OrderedDict[bytes, float] = OrderedDict()
        self._fresh: dict[bytes, float] = {}

    def begin(self) -> None:
        """See `Stateful.begin`."""
        for digest, moment in self._fresh.items():
            self._seen[digest] = moment
            self._seen.move_to_end(digest)
        self._fresh = {}
        while len(self._seen) > self._records:
            self._seen.popitem(last=False)
        oldest = self._clock() - self._window_s
        while self._seen and next(iter(self._seen.values())) <= oldest:
            self._seen.popitem(last=False)

    def undo(self) -> None:
        """See `Stateful.undo`."""
        self._fresh = {}

    def forget(self) -> None:
        """See `Stateful.forget`."""
        self._fresh = {}
        self._seen.clear()

    def apply(self, rows: Rows) -> Rows:
        """See `Transform.apply`. Rows without a key, or whose fields are all null, can't be told apart and pass."""
        now = self._clock()
        kept = np.ones(len(rows), np.bool_)
        for row, digest in enumerate(self._digests(rows)):
            if digest is None:
                continue
            seen = self._fresh.get(digest)
            if seen is None:
                seen = self._seen.get(digest)
            if seen is not None and now - seen < self._window_s:
                kept[row] = False
            else:
                self._fresh[digest] = now
        return rows if kept.all() else rows.take(np.flatnonzero(kept))

    def _digests(self, rows: Rows) -> Iterator[bytes | None]:
        values = _values(rows.key) if not self._fields else self._picked(rows.value)
        nothing = None if not self._fields else (None,) * len(self._fields)
        for value in values:
            if value is None or value == nothing:
                yield None
            else:
                yield hashlib.blake2b(
                    repr(_canonical(value)).encode(errors="surrogatepass"), digest_size=_DIGEST_BYTES
                ).digest()

    def _picked(self, side: Side) -> list[Any]:
        """The values of the fields, row by row; None for a row that is null."""
        if not isinstance(side, Typed):
            columns = side.columns
            if columns is None or not columns.is_plain:
                return [
                    None if value is None else tuple(value.get(name) for name in self._fields)
                    for value in maps_of(side, _PURPOSE)
                ]
        else:
            columns = structs_of(side, _PURPOSE)
            if columns is None:
                return [None] * len(side)
        places = [columns.place(name) for name in self._fields]
        absent = [name for name, place in zip(self._fields, places, strict=True) if place < 0]
        if absent and isinstance(side, Typed):
            error = DataError(f"The value has no field {absent[0]} to tell records apart by")
            raise RowsFailedError(dict.fromkeys(np.flatnonzero(~side.is_null()).tolist(), error))
        nothing = [None] * len(side)
        return list(
            zip(*(nothing if place < 0 else columns.arrays[place].to_pylist() for place in places), strict=True)
        )


def _values(side: Side) -> list[Any]:
    if isinstance(side, Typed):
        return side.column.to_pylist()  # type: ignore[no-any-return]
    columns = side.columns
    return side.objects if columns is None or not columns.is_plain else columns.struct().to_pylist()


def _canonical(value: Any) -> Any:
    """Puts the members of objects in one order: JSON has none."""
    if isinstance(value, dict):
        return {name: _canonical(value[name]) for name in sorted(value)}
    if isinstance(value, list | tuple):
        return [_canonical(item) for item in value]
    return value
