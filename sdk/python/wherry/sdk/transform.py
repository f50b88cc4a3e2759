"""The author's base class of transformations."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from wherry.contract.batch import RowError
from wherry.contract.description import Capabilities, Role
from wherry.sdk.plugin import ConfigT, Plugin
from wherry.sdk.records import Batch, Record


@dataclass(frozen=True, slots=True)
class Transformed:
    """What became of a batch, where rows don't come one from one.

    Attributes:
        batch: The new rows.
        lineage: For each new row the index of the row it came from; it never falls. Rows that nothing came from are
            left out of the flow.
        row_errors: Rows that failed; nothing may come from them.
    """

    batch: Batch
    lineage: Sequence[int]
    row_errors: Sequence[RowError] = ()


class Transform(Plugin[ConfigT]):
    """Changes records on their way, from sources or to sinks: `transforms.x.type` names its class.

    Override one of `transform_record` and `transform_batch`. The same record gives the same answer: the engine may ask
    again. Each stream has an object of its own, called by one thread.
    """

    role = Role.TRANSFORM

    def open(self, task: int) -> None:
        """Starts the work for a task."""

    def transform_record(self, record: Record) -> Record | Iterable[Record] | None:
        """Says what takes the place of a record: one (it may be changed in place), several, or None to leave it out.

        A record with a schema comes with `schema` (and `key_schema`), and goes on with it unless that is changed; set
        it to None to go on without.

        Raises:
            RecordRejectedError: This record can't be transformed; the others go on.
            TransientError: The batch is offered once more, as `errors.retry.timeout` says.
        """
        raise NotImplementedError

    def transform_batch(self, batch: Batch) -> Batch | Transformed:
        """Says what takes the place of a batch: a batch of as many rows, each from that of the same index, or more.

        `batch.with_columns(value=…)` keeps key, headers, topic and time. NotImplemented, which is what it answers where
        it isn't overridden, has `transform_record` called for each row.
        """
        return NotImplemented  # type: ignore[no-any-return]  # as Python's operators say it

    def close(self) -> None:
        """The stream has ended, well or not: release what it holds."""

    @classmethod
    def capabilities(cls) -> Capabilities:
        """Returns what the class can do."""
        return Capabilities(parkable=True)
