"""How a transform says that rows can't be transformed: one error for each, under the class Kafka Connect would name."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, ClassVar

from wherry.contract.data import DataError

if TYPE_CHECKING:
    from wherry.worker.transform.rows import Rows


class ArgumentError(DataError):
    """What Java calls an illegal argument."""

    java_class: ClassVar[str] = "java.lang.IllegalArgumentException"


class GroupError(DataError):
    """A replacement names a group that the expression doesn't have."""

    java_class: ClassVar[str] = "java.lang.IndexOutOfBoundsException"


class MissingError(DataError):
    """Kafka Connect runs into a null here."""

    java_class: ClassVar[str] = "java.lang.NullPointerException"


class SchemaBuildError(DataError):
    """No schema can be built like this."""

    java_class: ClassVar[str] = "org.apache.kafka.connect.errors.SchemaBuilderException"


class UnknownTypeError(DataError):
    """A type that isn't provided for."""

    java_class: ClassVar[str] = "org.apache.kafka.connect.errors.ConnectException"


class RowsFailedError(Exception):
    """Some rows can't be transformed; the step cuts them out and tries the others again.

    Attributes:
        failures: The errors, by place of the row.
        converter: The row isn't what its converter took it for: it counts as the converter's failure.
        others: What became of the other rows, where that is known already; None where they are to be tried again.
    """

    def __init__(
        self, failures: Mapping[int, DataError], *, converter: bool = False, others: tuple[Rows, ...] | None = None
    ) -> None:
        super().__init__(f"{len(failures)} rows can't be transformed")
        self.failures = failures
        self.converter = converter
        self.others = others


class Failures:
    """Collects the errors of rows while a transform goes on."""

    __slots__ = ("_found",)

    def __init__(self) -> None:
        self._found: dict[int, DataError] = {}

    def add(self, row: int, error: DataError) -> None:
        """Notes the error of a row; the first one counts."""
        self._found.setdefault(row, error)

    @property
    def rows(self) -> tuple[int, ...]:
        """The rows that failed."""
        return tuple(self._found)

    def check(self) -> None:
        """Raises when there were any."""
        if self._found:
            raise RowsFailedError(self._found)
