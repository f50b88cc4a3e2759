"""What is done with rows that can't be delivered: fail, skip, log, send to the dead letter queue.

Kafka Connect's rules: with `errors.tolerance=none` the row still goes to the dead letter queue, then the task fails;
with `all` it is skipped. A dead letter is the row as it was read, with `__connect.errors.*` headers appended after its
own if asked for. `flush` comes before the positions are reported, so that no row is neither delivered nor kept.
"""

from __future__ import annotations

import dataclasses
import logging
import time
import traceback
from collections.abc import Mapping, Sequence
from typing import ClassVar, Final, Protocol

import pyarrow as pa

from wherry.contract.batch import HEADERS_TYPE, Batch, Constants, RowError
from wherry.contract.errors import ConfigError, ErrorClass, SchemaError, WherryError, error_for
from wherry.worker.convert import DataError
from wherry.worker.convert.step import Stage, StageFailure, keep_rows
from wherry.worker.endpoints import Remaining, Writer

logger: Final = logging.getLogger("wherry.worker.errors")

HEADER_PREFIX: Final = "__connect.errors."
# A dead letter queue that takes nothing for so long fails the task.
DEAD_LETTER_FLUSH_S: Final = 30.0


class ToleranceExceededError(SchemaError):
    """A row failed and the connector tolerates none."""


class PutError(DataError):
    """A destination refused a row."""

    java_class: ClassVar[str] = "org.apache.kafka.connect.errors.ConnectException"


@dataclasses.dataclass(frozen=True, slots=True)
class ErrorRules:
    """The `errors.*` keys of a connector.

    Attributes:
        tolerate: Whether failed rows are skipped.
        log: Whether each failure is logged.
        log_messages: Whether the log says which record it was.
        retry_timeout_ms: How long an operation is retried; -1 is for ever.
        retry_delay_max_ms: Longest delay between retries.
        dead_letter_topic: Where failed rows go; empty for nowhere. Sinks only.
        dead_letter_replication: Replication factor it is created with.
        context_headers: Whether dead letters tell what happened.
    """

    tolerate: bool = False
    log: bool = False
    log_messages: bool = False
    retry_timeout_ms: int = 0
    retry_delay_max_ms: int = 60_000
    dead_letter_topic: str = ""
    dead_letter_replication: int = 3
    context_headers: bool = False

    @classmethod
    def of(cls, config: Mapping[str, str], *, sink: bool) -> ErrorRules:
        """Reads the rules.

        Raises:
            ConfigError: A value is none of those allowed.
        """
        tolerance = config.get("errors.tolerance", "none").strip()
        if tolerance not in {"none", "all"}:
            raise ConfigError(
                f"Invalid value {tolerance} for configuration errors.tolerance: String must be one of: none, all",
                key="errors.tolerance",
            )
        queue = "errors.deadletterqueue."
        return cls(
            tolerate=tolerance == "all",
            log=_boolean(config, "errors.log.enable"),
            log_messages=_boolean(config, "errors.log.include.messages"),
            retry_timeout_ms=_integer(config, "errors.retry.timeout", 0),
            retry_delay_max_ms=_integer(config, "errors.retry.delay.max.ms", 60_000),
            dead_letter_topic=config.get(f"{queue}topic.name", "").strip() if sink else "",
            dead_letter_replication=_integer(config, f"{queue}topic.replication.factor", 3),
            context_headers=_boolean(config, f"{queue}context.headers.enable"),
        )

    @property
    def keeps_rows(self) -> bool:
        """Whether a failed row's bytes are wanted."""
        return bool(self.dead_letter_topic)


@dataclasses.dataclass(frozen=True, slots=True)
class GivenUp:
    """What became of failed rows."""

    skipped: int = 0
    dead_letters: int = 0


class Giving(Protocol):
    """What the pump asks of a tolerance."""

    def give_up(self, failures: Sequence[StageFailure]) -> GivenUp:
        """Logs the rows and keeps them; raises when none is tolerated."""

    def flush(self, remaining: Remaining) -> None:
        """Makes what was kept durable."""


class Tolerance:
    """Applies the rules to rows that failed.

    Args:
        rules: The rules.
        connector: Name of the connector.
        task: Number of the task.
        dead_letters: Writer to the dead letter topic; None without one.
    """

    def __init__(self, rules: ErrorRules, connector: str, task: int, dead_letters: Writer | None) -> None:
        self._rules = rules
        self._connector = connector
        self._task = task
        self._dead_letters = dead_letters
        self._unflushed = False

    def give_up(self, failures: Sequence[StageFailure]) -> GivenUp:
        """See `Giving.give_up`.

        Raises:
            ToleranceExceededError: Nothing is tolerated; the rows are in the dead letter queue all the same.
        """
        letters = 0
        for failure in failures:
            if self._rules.log:
                logger.error(self._log_line(failure), extra={"connector": self._connector, "task": self._task})
            if self._dead_letters is not None and failure.raw.num_rows:
                letter = self._letter(failure)
                self._dead_letters.write(letter, letter)
                self._unflushed = True
                letters += 1
        if failures and not self._rules.tolerate:
            deadline = time.monotonic() + DEAD_LETTER_FLUSH_S
            self.flush(lambda: deadline - time.monotonic())
            raise self._exceeded(failures[0])
        return GivenUp(len(failures), letters)

    def flush(self, remaining: Remaining) -> None:
        """See `Giving.flush`.

        Raises:
            WherryError: A dead letter could not be written.
        """
        if self._dead_letters is None or not self._unflushed:
            return
        self._dead_letters.flush(remaining)
        failed = self._dead_letters.failed_rows()
        if failed:
            raise SchemaError(
                f"{len(failed)} records could not be written to the dead letter queue "
                f"{self._rules.dead_letter_topic}: {failed[0].error.message}"
            )
        self._unflushed = False

    def close(self) -> None:
        """Releases the dead letter writer."""
        if self._dead_letters is not None:
            self._dead_letters.close()

    def _exceeded(self, failure: StageFailure) -> WherryError:
        message = (
            f"Tolerance exceeded in error handler: {failure.stage.value} with class {failure.executing} failed for "
            f"{_whereabouts(failure)}: {failure.error.message.rstrip(': ')}. "
            "Set errors.tolerance=all to skip such records."
        )
        if failure.error.error_class is ErrorClass.SCHEMA:
            return ToleranceExceededError(message, reason=failure.error.reason)
        return error_for(failure.error.error_class, message, reason=failure.error.reason)

    def _log_line(self, failure: StageFailure) -> str:
        line = (
            f"Error encountered in task {self._connector}-{self._task}. Executing stage '{failure.stage.value}' with "
            f"class '{failure.executing}': {failure.error.message}"
        )
        # Only where the record was, never what it held: logs are read by more people than topics.
        return f"{line} [{_whereabouts(failure)}]" if self._rules.log_messages else line

    def _letter(self, failure: StageFailure) -> Batch:
        """Makes the dead letter of a row: its own bytes and time, and headers after its own."""
        row = keep_rows(failure.raw, [failure.row])
        headers = row.headers[0].as_py() if row.headers is not None else None
        pairs = [(pair["name"], pair["value"]) for pair in headers or ()]
        if self._rules.context_headers:
            pairs += [(HEADER_PREFIX + name, text.encode()) for name, text in self._context(failure)]
        columns = {name: row.stored(name) for name in ("value", "key") if row.stored(name) is not None}
        columns["timestamp"] = row.timestamp
        if pairs:
            entries = [{"name": name, "value": value} for name, value in pairs]
            columns["headers"] = pa.array([entries], HEADERS_TYPE)
        present = {name: column for name, column in columns.items() if column is not None}
        records = pa.RecordBatch.from_arrays(list(present.values()), names=list(present))
        return Batch(records, Constants(topic=self._rules.dead_letter_topic))

    def _context(self, failure: StageFailure) -> list[tuple[str, str]]:
        topic, partition, offset = _source_of(failure)
        error = failure.error
        return [
            ("topic", str(topic)),
            ("partition", str(partition)),
            ("offset", str(offset)),
            ("connector.name", self._connector),
            ("task.id", str(self._task)),
            ("stage", failure.stage.value),
            ("class.name", failure.executing),
            ("exception.class.name", error.java_class),
            ("exception.message", error.message),
            ("exception.stacktrace", "".join(traceback.format_exception(error)).strip()),
        ]


def row_failure(raw: Batch | None, error: RowError, stage: Stage, executing: str) -> StageFailure:
    """Makes the failure of a row that an endpoint refused."""
    known = PutError(error.message or error.reason, reason=error.reason or "ROW_REFUSED", error_class=error.error_class)
    known.field_path = error.field_path
    return StageFailure(_NOTHING if raw is None else raw, error.row, stage, executing, known)


def _source_of(failure: StageFailure) -> tuple[str | None, int | None, int | None]:
    raw, row = failure.raw, failure.row
    if row >= raw.num_rows:
        return raw.constants.topic, raw.constants.partition, None
    one = raw.slice(row, 1)
    values = []
    for name in ("topic", "partition", "offset"):
        column = one.column(name)
        values.append(None if column is None else column[0].as_py())
    return values[0], values[1], values[2]


def _whereabouts(failure: StageFailure) -> str:
    topic, partition, offset = _source_of(failure)
    if topic is None and partition is None:
        return "a record"
    return f"topic {topic}, partition {partition}, offset {offset}"


def _boolean(config: Mapping[str, str], key: str) -> bool:
    return config.get(key, "false").strip().lower() == "true"


def _integer(config: Mapping[str, str], key: str, default: int) -> int:
    text = config.get(key, str(default)).strip()
    try:
        return int(text)
    except ValueError:
        raise ConfigError(f"Invalid value {text} for configuration {key}: Not a number.", key=key) from None


_NOTHING: Final = Batch(pa.record_batch([pa.nulls(0)], names=["value"]))
