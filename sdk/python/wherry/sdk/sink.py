"""The author's base class of sinks."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

import pyarrow as pa

from wherry.contract.batch import RowError
from wherry.contract.description import Capabilities, Role, SinkClass
from wherry.contract.errors import ConnectorBugError, ErrorClass, RecordRejectedError
from wherry.contract.position import Position
from wherry.contract.schemaless import bad_json
from wherry.contract.target import Target
from wherry.sdk._columns import rows_of
from wherry.sdk.plugin import ConfigT, Context, Plugin
from wherry.sdk.records import Batch, Record

Json = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class SinkTask:
    """What a stream is to write.

    Attributes:
        pipeline: Name of the pipeline whose positions are stored: the connector.
        task: Number of the task.
        generation: Generation of the lease.
        partitions: Partitions the task will write.
    """

    pipeline: str
    task: int = 0
    generation: int = 0
    partitions: Sequence[Json] = ()


@dataclass(frozen=True, slots=True)
class Flushed:
    """What a flush has achieved, where positions alone don't say it all.

    Attributes:
        positions: Positions that are safe to commit; empty means all that came before the flush.
        token: Two-phase: what `commit` needs, at most 64 KiB.
    """

    positions: Sequence[Position] = ()
    token: bytes = b""


class Sink(Plugin[ConfigT]):
    """Writes to another system.

    Override one of `write_record`, `write` and `write_batch`, and `flush` where rows are not durable at once.
    Each is called by one thread.

    A TRANSACTIONAL sink stores rows together with the mark that stands after them. A batch without marks is a piece of
    one that was cut, because schemas change in it or it is too large for one message: made durable by itself it would
    come again after a crash, so it waits for the batch that brings the mark, or for `flush`.

    Attributes:
        sink_class: APPEND, IDEMPOTENT, TWO_PHASE or TRANSACTIONAL; decides which guarantee a pipeline can give.
        typed: Whether it wants records with a schema: the engine parses JSON into the schema of `ensure_target`.
        raw: Whether it takes key, value and header bytes untouched, whatever converters are configured; not together
            with `typed`.
        deletes: Whether a null value deletes the row of its key.
        parkable: Whether an idle task may be stopped until records come: it keeps nothing that a close would lose.
        batch_seq: Number of the batch being written, for `reject`.
    """

    role = Role.SINK
    sink_class: ClassVar[SinkClass] = SinkClass.APPEND
    typed: ClassVar[bool] = False
    raw: ClassVar[bool] = False
    deletes: ClassVar[bool] = False
    parkable: ClassVar[bool] = True

    def __init__(self, config: ConfigT, context: Context) -> None:
        super().__init__(config, context)
        self.batch_seq = 0
        self.account = Account()
        self.tell: Callable[..., None] = _nobody

    def open(self, task: SinkTask) -> Iterable[Position] | None:
        """Starts a task.

        Returns:
            Positions stored with the data (transactional sinks), which win over the engine's; None for none.
        """
        return None

    def write_record(self, record: Record) -> None:
        """Writes one row.

        Raises:
            RecordRejectedError: This row can't be written; the others go on.
        """
        raise NotImplementedError

    def write(self, records: list[Record]) -> list[RowError] | None:
        """Writes rows; returns the errors of those that can't be written."""
        errors: list[RowError] = []
        for row, record in enumerate(records):
            try:
                self.write_record(record)
            except RecordRejectedError as error:
                errors.append(RowError.of(row, error))
        return errors

    def write_batch(self, batch: Batch) -> list[RowError] | None:
        """Writes a batch; returns the errors of the rows that can't be written."""
        try:
            rows = rows_of(batch)
        except (ValueError, OverflowError):
            return self._write_readable(batch)
        return self.write(rows)

    def _write_readable(self, batch: Batch) -> list[RowError]:
        """Finds the rows that Python can't tell.

        Nobody has parsed JSON without a schema before, and a moment may lie beyond the years that Python knows.
        """
        bad = bad_json(batch.value) | ({} if batch.key is None else bad_json(batch.key))
        errors = [RowError(row, ErrorClass.SCHEMA, "BAD_JSON", message=why) for row, why in bad.items()]
        kept, rows = [], []
        for row in range(batch.num_rows):
            if row in bad:
                continue
            try:
                rows += rows_of(Batch.of(batch.slice(row, 1)))
            except (ValueError, OverflowError) as error:
                why = f"A value can't be read: {error}."
                errors.append(RowError(row, ErrorClass.SCHEMA, "OUT_OF_RANGE", message=why))
            else:
                kept.append(row)
        return errors + [replace(error, row=kept[error.row]) for error in self.write(rows) or ()]

    def flush(self, final: bool) -> Flushed | Iterable[Position] | None:
        """Makes everything durable that was written.

        Args:
            final: The stream is about to end.

        Returns:
            None when everything is durable; the safe positions when it is less; or `Flushed`.
        """
        return None

    def partitions_changed(self, partitions: Sequence[Json]) -> None:
        """The task writes these partitions from now on."""

    def close(self) -> None:
        """The stream has ended, well or not: release what it holds."""

    def ensure_target(self, topic: str, schema: pa.Schema | None, dry_run: bool) -> Target:
        """Makes the target of a topic able to take rows of a schema; None means that the records have none."""
        return Target(topic)

    def commit(self, tokens: Sequence[bytes], positions: Sequence[Position]) -> bool:
        """Two-phase: applies staged data; returns whether it had been applied before."""
        raise ConnectorBugError(f"{self.class_name} is not a two-phase sink.", reason="NOT_TWO_PHASE")

    @classmethod
    def sink_class_of(cls, config: ConfigT) -> SinkClass:
        """Returns the sink class under a configuration."""
        return cls.sink_class

    def reject(self, batch_seq: int, errors: Iterable[RowError]) -> None:
        """Reports rows of an earlier batch that turned out to fail; they go out with the next flush."""
        self.account.late.setdefault(batch_seq, []).extend(errors)

    def filtered(self, count: int) -> None:
        """Says that rows were left out on purpose."""
        self.account.filtered += count

    def backoff(self, delay_ms: int, reason: str) -> None:
        """Asks the engine to send nothing for a while."""
        self.tell("backoff", delay_ms=delay_ms, reason=reason)

    def rewind(self, positions: Iterable[Position]) -> None:
        """Asks the engine to go back."""
        self.tell("rewind", positions=tuple(positions))

    def pause(self, partitions: Iterable[Json]) -> None:
        """Has these partitions paused from now on, and others resumed."""
        self.tell("pause", partitions=tuple(partitions))

    @classmethod
    def capabilities(cls) -> Capabilities:
        """Returns what the class can do."""
        base: Any = Plugin
        return Capabilities(
            parkable=cls.parkable,
            typed=cls.typed,
            raw=cls.raw,
            deletes=cls.deletes,
            alter_offsets=cls.overrides("alter_offsets", base),
        )


@dataclass(slots=True)
class Account:
    """Rows since the last flush: those in must be written, failed or filtered.

    Attributes:
        taken: Rows that came.
        failed: Rows that failed and were told with an ack.
        filtered: Rows left out on purpose.
        late: Rows that failed and are told with the flush, by batch number.
    """

    taken: int = 0
    failed: int = 0
    filtered: int = 0
    late: dict[int, list[RowError]] = field(default_factory=dict)

    @property
    def failed_in_all(self) -> int:
        """Rows that failed, early and late."""
        return self.failed + sum(map(len, self.late.values()))

    @property
    def written(self) -> int:
        """Rows written.

        Raises:
            ConnectorBugError: More rows failed or were filtered than came.
        """
        written = self.taken - self.failed_in_all - self.filtered
        if written < 0:
            raise ConnectorBugError(
                f"The sink says that {self.failed_in_all} rows failed and {self.filtered} were filtered, of "
                f"{self.taken} that came.",
                reason="BAD_ACCOUNT",
            )
        return written


def _nobody(_what: str, **_values: Any) -> None:
    """Where messages go before the stream is open."""
