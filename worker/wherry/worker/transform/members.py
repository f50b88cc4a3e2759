"""Which members objects have, in which order, and of which kinds: learned from some of them.

It is a guess. What holds for the others as well is found when they are read.
"""

from __future__ import annotations

import re
from typing import Any, Final

import pyarrow as pa

from wherry.contract.batch import JSON_TYPE

# Objects with more members than this are rare, or use names as if they were values.
MEMBERS_MAX: Final = 256
_KINDS: Final = {str: pa.string(), int: pa.int64(), float: pa.float64(), bool: pa.bool_()}
_PLAIN_NAME: Final = re.compile(r"[^\"\\\x00-\x1f]*")


class Members:
    """What is known of the members of some objects."""

    def __init__(self) -> None:
        self._names: list[str] = []
        self._kinds: dict[str, pa.DataType | None] = {}
        self._learned = False

    def __bool__(self) -> bool:
        return self._learned

    def learn(self, value: Any) -> bool:
        """Learns from a value; tells whether anything was new.

        Values that are no object, or have the members in another order, are passed over.
        """
        if type(value) is not dict or not all(map(_PLAIN_NAME.fullmatch, value)):
            return False
        names = self._merged(list(value))
        if names is None or len(names) > MEMBERS_MAX:
            return False
        new = not self._learned or len(names) > len(self._names)
        self._names, self._learned = names, True
        for name, item in value.items():
            known = self._kinds.get(name)
            found = known if item is None else _KINDS.get(type(item), JSON_TYPE)
            # One that isn't always of the same kind is kept as text.
            kind = found if known in (None, found) else JSON_TYPE
            new = new or kind != known
            self._kinds[name] = kind
        return new

    def fields(self) -> list[pa.Field]:
        """Returns the members. Null says nothing of its kind, and is the same in all of them."""
        return [pa.field(name, self._kinds[name] or pa.string()) for name in self._names]

    def _merged(self, names: list[str]) -> list[str] | None:
        """Puts new names behind those that stand before them; None where known ones come in another order."""
        merged, at = self._names.copy(), 0
        places = {name: place for place, name in enumerate(merged)}
        added = 0
        for name in names:
            place = places.get(name)
            if place is None:
                merged.insert(at, name)
                added += 1
                at += 1
            elif place + added < at:
                return None
            else:
                at = place + added + 1
        return merged
