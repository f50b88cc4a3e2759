"""The author's base class of sources."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, ClassVar

from wherry.contract.description import Capabilities, Role, SourceClass
from wherry.contract.errors import RecordRejectedError
from wherry.contract.position import Position
from wherry.sdk.plan import Offsets, Plan, Task, Work
from wherry.sdk.plugin import ConfigT, Plugin
from wherry.sdk.records import Batch, CaughtUp, Mark, Record

Yielded = Record | Batch | Mark | CaughtUp | RecordRejectedError


class Source(Plugin[ConfigT]):
    """Reads from another system.

    Attributes:
        source_class: REPLAYABLE: the same offsets give the same rows. LEASED: a row is gone once it is settled.
        splits: Whether plans have splits.
        parkable: Whether an idle task may be stopped: nothing arrives that only a running stream would see.
        watches: Whether `context.plan_changed` is called when the plan would be another.
        transaction_boundaries: Whether every offset ends a transaction; the SDK then keeps the offset of every row.
    """

    role = Role.SOURCE
    source_class: ClassVar[SourceClass] = SourceClass.REPLAYABLE
    splits: ClassVar[bool] = False
    parkable: ClassVar[bool] = True
    watches: ClassVar[bool] = False
    transaction_boundaries: ClassVar[bool] = False

    def plan(self, offsets: Offsets, max_tasks: int) -> Plan:
        """Says what there is to do. The same offsets and state of the other system must give the same plan.

        Args:
            offsets: All stored offsets of the connector.
            max_tasks: Most tasks wanted: tasks.max.
        """
        return Plan(tasks=[Task()])

    def read(self, work: Work, offsets: Offsets) -> Iterator[Yielded]:
        """Reads a task or a split, as a generator.

        It yields records or batches; `Mark(0, partition, offset)` to move a position without rows; `CaughtUp()` when
        there is nothing more now; a `RecordRejectedError` for a row that can't be read. It looks at `self.stopping`
        or waits by `self.wait` wherever it would block. When it returns, a split is done; a task has caught up for
        good.

        Args:
            work: What to read.
            offsets: Where its partitions stand.

        Raises:
            WherryError: The stream ends; its class says what the engine does next. Any other exception is a BUG.
        """
        raise NotImplementedError

    def committed(self, positions: Sequence[Position]) -> None:
        """Rows up to these positions are durable at the destination: settle them upstream.

        Called on the stream's object from another thread than `read`.
        """

    @classmethod
    def capabilities(cls) -> Capabilities:
        """Returns what the class can do."""
        base: Any = Plugin
        return Capabilities(
            splits=cls.splits,
            watch=cls.watches,
            parkable=cls.parkable,
            alter_offsets=cls.overrides("alter_offsets", base),
            transaction_boundaries=cls.transaction_boundaries,
        )
