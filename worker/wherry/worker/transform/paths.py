"""Paths to fields, in the two notations of `field.syntax.version`: V1 is one literal name, V2 takes steps.

In V2 a dot parts steps. A step with dots in its name stands between backticks; one opens only at the start of a step
and closes only before a dot or the end. A backslash takes the meaning from a backtick that would close.
"""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from wherry.contract.data import DataError
from wherry.contract.errors import ConfigError
from wherry.worker.javaclass import class_of
from wherry.worker.transform.base import filled
from wherry.worker.transform.columns import Columns
from wherry.worker.transform.failing import ArgumentError

VERSION_KEY = "field.syntax.version"
_NESTED = "nested field access"


class Path:
    """Where a field is."""

    def __init__(self, text: str, version: str = "V1") -> None:
        self.text = text
        self.steps = (text,) if version.strip().upper() != "V2" else parse_path(text)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Path) and (self.text, self.steps) == (other.text, other.steps)

    def __hash__(self) -> int:
        return hash((self.text, self.steps))

    def value(self, found: dict[str, Any]) -> Any:
        """Returns what is there in an object without schema; None when nothing is.

        Raises:
            DataError: There is something on the way that has no fields.
        """
        value: Any = found
        for step in self.steps[:-1]:
            value = value.get(step)
            if value is None:
                return None
            if type(value) is not dict:
                raise DataError(
                    f"Only Map objects supported in absence of schema for [{_NESTED}], found: {class_of(value)}"
                )
        return value.get(self.steps[-1])

    def column(
        self, columns: Columns, *, replace_null: bool, unknown: str = "Unknown field: {}"
    ) -> tuple[pa.Field, pa.Array]:
        """Returns the field and its column.

        Raises:
            ArgumentError: There is none.
            DataError: There is something on the way that has no fields.
        """
        for step in self.steps[:-1]:
            place = columns.place(step)
            if place < 0:
                raise ArgumentError(unknown.format(self.text))
            if not pa.types.is_struct(columns.fields[place].type):
                raise DataError("Cannot look up fields on non-struct type")
            columns = Columns.of(columns.arrays[place])
        place = columns.place(self.steps[-1])
        if place < 0:
            raise ArgumentError(unknown.format(self.text))
        field = columns.fields[place]
        return field, filled(field, columns.arrays[place], columns, on=replace_null)


def parse_path(text: str) -> tuple[str, ...]:
    """Takes a path in V2 notation apart.

    Raises:
        ConfigError: A backtick that opens is never closed.
    """
    steps: list[str] = []
    rest, start = text, 0
    while True:
        if not rest.startswith("`"):
            step, dot, rest = rest.partition(".")
            steps.append(step)
            if not dot:
                return tuple(steps)
            start += len(step) + 1
            continue
        end = _closing(rest)
        if end < 0:
            raise ConfigError(
                f"Incomplete backtick pair in path: [{text}], consider adding a backslash before backtick at position "
                f"{start} to escape it",
                key="field",
            )
        # A backslash goes only where it was needed: any other stays, as before the last backtick but one.
        steps.append(rest[1:end].replace("\\`.", "`."))
        if end + 1 >= len(rest):
            return tuple(steps)
        start += end + 2
        rest = rest[end + 2 :]


def _closing(text: str) -> int:
    """Returns where the backtick at the start is closed; -1 when it isn't."""
    place = 0
    while True:
        place = text.find("`", place + 1)
        if place < 0:
            return -1
        at_end = place + 1 == len(text) or text[place + 1] == "."
        if at_end and text[place - 1] != "\\":
            return place
