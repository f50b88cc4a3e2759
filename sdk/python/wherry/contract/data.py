"""Connect's data model: schemas as values, and the Python types that stand for what Java tells apart by class.

A schema says type, optional, default, name, version, documentation and parameters; a logical type is a schema whose
name is one of Kafka Connect's four. `wherry.contract.schema` turns schemas into Arrow fields and back without loss.

Values are plain Python: int, float, str, bytes, bool, list, dict, `decimal.Decimal`, None. Two things that Java tells
by the class of a value, where no schema tells it, have classes here: `Float32`, a single-precision number, and
`Instant`, a `java.util.Date` (the value of Date, Time and Timestamp), which counts ms since the epoch.
"""

from __future__ import annotations

import enum
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, Final, NamedTuple

from wherry.contract.errors import RecordRejectedError

_LOGICAL: Final = "org.apache.kafka.connect.data."
DECIMAL: Final = f"{_LOGICAL}Decimal"
DATE: Final = f"{_LOGICAL}Date"
TIME: Final = f"{_LOGICAL}Time"
TIMESTAMP: Final = f"{_LOGICAL}Timestamp"
TEMPORAL: Final = frozenset({DATE, TIME, TIMESTAMP})
SCALE: Final = "scale"
DAY_MS: Final = 86_400_000


class DataError(RecordRejectedError):
    """A value or schema that Connect's rules refuse.

    Attributes:
        java_class: Class of the exception that Kafka Connect would name in the dead letter queue's headers.
    """

    java_class: ClassVar[str] = "org.apache.kafka.connect.errors.DataException"


class Kind(enum.Enum):
    """Type of a schema; the values are Kafka Connect's names."""

    INT8 = "INT8"
    INT16 = "INT16"
    INT32 = "INT32"
    INT64 = "INT64"
    FLOAT32 = "FLOAT32"
    FLOAT64 = "FLOAT64"
    BOOLEAN = "BOOLEAN"
    STRING = "STRING"
    BYTES = "BYTES"
    ARRAY = "ARRAY"
    MAP = "MAP"
    STRUCT = "STRUCT"

    @property
    def json_name(self) -> str:
        """Its name in JsonConverter's schemas."""
        return _JSON_NAMES.get(self.value, self.value.lower())

    @property
    def rank(self) -> int:
        """Its place among the numbers, from the narrowest to the widest; -1 when it is none."""
        return _RANKS.get(self.value, -1)


_JSON_NAMES: Final = {"FLOAT32": "float", "FLOAT64": "double"}
_RANKS: Final = {name: rank for rank, name in enumerate(("INT8", "INT16", "INT32", "INT64", "FLOAT32", "FLOAT64"))}
KINDS_BY_JSON_NAME: Final[Mapping[str, Kind]] = {kind.json_name: kind for kind in Kind}


class Absent(enum.Enum):
    """Says that there is no default, which is something else than a default of null."""

    ABSENT = "absent"


ABSENT: Final = Absent.ABSENT


@dataclass(frozen=True, slots=True)
class Schema:
    """A Connect schema.

    Attributes:
        kind: Its type.
        optional: Whether null is a value.
        default: Value that stands for a missing one; `ABSENT` when there is none.
        name: Its name; one of the logical types', or any other.
        version: Its version.
        doc: Its documentation.
        parameters: Its parameters, in order.
        key: Schema of a map's keys; None says that they have none in common.
        value: Schema of a map's values or an array's elements; None as above.
        fields: Fields of a struct, in order.
    """

    kind: Kind
    optional: bool = False
    default: Any = field(default=ABSENT, hash=False)
    name: str | None = None
    version: int | None = None
    doc: str | None = None
    parameters: tuple[tuple[str, str], ...] = ()
    key: Schema | None = None
    value: Schema | None = None
    fields: tuple[Field, ...] = ()

    @property
    def has_default(self) -> bool:
        """Whether it has a default."""
        return self.default is not ABSENT

    @property
    def logical(self) -> str | None:
        """Name of its logical type, if its type is one that the name stands on."""
        if self.name in TEMPORAL and self.kind in _INTEGERS:
            return self.name
        return self.name if self.name == DECIMAL and self.kind is Kind.BYTES else None

    @property
    def scale(self) -> int:
        """Scale of a decimal.

        Raises:
            DataError: It has none, or one that is no number.
        """
        try:
            return int(dict(self.parameters)[SCALE])
        except (KeyError, ValueError):
            raise DataError("Invalid Decimal schema: scale parameter not found.", reason="BAD_SCHEMA") from None

    def as_optional(self, optional: bool = True) -> Schema:
        """Returns the schema with null allowed or not."""
        return self if self.optional == optional else replace(self, optional=optional)

    def field_of(self, name: str) -> Schema | None:
        """Returns the schema of a field of a struct; None when there is none of that name."""
        return next((found.schema for found in self.fields if found.name == name), None)


@dataclass(frozen=True, slots=True)
class Field:
    """One field of a struct."""

    name: str
    schema: Schema


class Typed(NamedTuple):
    """A value with its schema; without one it is schemaless."""

    schema: Schema | None
    value: Any


class Float32(float):
    """A single-precision number where no schema says so; its value is exactly representable as such."""

    __slots__ = ()


class Int8(int):
    """A `java.lang.Byte` where no schema says so."""

    __slots__ = ()


class Int16(int):
    """A `java.lang.Short` where no schema says so."""

    __slots__ = ()


class Int32(int):
    """A `java.lang.Integer` where no schema says so."""

    __slots__ = ()


class Instant(int):
    """A moment as `java.util.Date` holds it: ms since the epoch, UTC."""

    __slots__ = ()


class Linked(dict[Any, Any]):
    """A map that was read from its text form, which is of another class in Java than all others."""


class Pairs(tuple[tuple[Any, Any], ...]):
    """A map that is itself a key of a map, and so must not change."""

    __slots__ = ()


_INTEGERS: Final = frozenset({Kind.INT8, Kind.INT16, Kind.INT32, Kind.INT64})

BOOLEAN_SCHEMA: Final = Schema(Kind.BOOLEAN)
INT8_SCHEMA: Final = Schema(Kind.INT8)
INT16_SCHEMA: Final = Schema(Kind.INT16)
INT32_SCHEMA: Final = Schema(Kind.INT32)
INT64_SCHEMA: Final = Schema(Kind.INT64)
FLOAT32_SCHEMA: Final = Schema(Kind.FLOAT32)
FLOAT64_SCHEMA: Final = Schema(Kind.FLOAT64)
STRING_SCHEMA: Final = Schema(Kind.STRING)
BYTES_SCHEMA: Final = Schema(Kind.BYTES)
DATE_SCHEMA: Final = Schema(Kind.INT32, name=DATE, version=1)
TIME_SCHEMA: Final = Schema(Kind.INT32, name=TIME, version=1)
TIMESTAMP_SCHEMA: Final = Schema(Kind.INT64, name=TIMESTAMP, version=1)


def decimal_schema(scale: int) -> Schema:
    """Returns the schema of decimals with so many digits after the point."""
    return Schema(Kind.BYTES, name=DECIMAL, version=1, parameters=((SCALE, str(scale)),))
