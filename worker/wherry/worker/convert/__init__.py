"""Converters: between the bytes of Kafka records and columns with Connect's types.

A converter works on whole columns. It proves per batch that its fast way gives the same answer as Kafka Connect's
converter would, and takes the rows for which it can't prove it one by one. Rows that can't be converted come back as
failures; all other rows are in the runs, in their order. Rows of different schemas come as different runs.

Converters are found by Kafka Connect's class names and their short forms in `registry`.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import ClassVar, Protocol

import pyarrow as pa

from wherry.contract.data import DataError

__all__ = ["Converted", "Converter", "DataError", "Failure", "Run"]


@dataclasses.dataclass(frozen=True, slots=True)
class Failure:
    """A row that could not be converted, by its index in the column."""

    row: int
    error: DataError


@dataclasses.dataclass(frozen=True, slots=True)
class Run:
    """Converted rows of one schema.

    Attributes:
        field: Name, type, nullability and `connect.*` metadata of the column.
        column: The rows.
    """

    field: pa.Field
    column: pa.Array

    @classmethod
    def of(cls, column: pa.Array, metadata: Mapping[str, str] | None = None, *, nullable: bool = True) -> Run:
        """Makes a run from a column whose field says nothing more than its type."""
        return cls(pa.field("value", column.type, nullable=nullable, metadata=metadata), column)


@dataclasses.dataclass(frozen=True, slots=True)
class Converted:
    """A converted column: the rows that went well, cut into runs, and those that failed."""

    runs: tuple[Run, ...]
    failures: tuple[Failure, ...] = ()


class Converter(Protocol):
    """Converts one of key and value; made once per pipeline."""

    class_name: ClassVar[str]

    def to_connect(self, topic: str, column: pa.Array) -> Converted:
        """Converts the bytes of records that were read from a topic."""

    def from_connect(self, topic: str, field: pa.Field, column: pa.Array) -> Converted:
        """Converts a column into the bytes of records for a topic; the runs are binary."""
