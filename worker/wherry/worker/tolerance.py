"""What is done with rows that can't be delivered: fail, skip, log, send to the dead letter queue.

Kafka Connect's rules: with `errors.tolerance=none` the row still goes to the dead letter queue, then the task fails;
with `all` it is skipped. A dead letter is the row as it was read, with `__connect.errors.*` headers appended after its
own if asked for. `flush` comes before the positions are reported, so that no row is neither delivered nor kept.

Beyond Kafka Connect: sources may have a dead letter queue, too (its keys begin with `wherry.`, because Kafka Connect
passes over its own ones there). A source's row has no bytes yet, so its letter holds JSON and says so in a header.
And tolerance may end: `wherry.errors.stop.failures` of the last `wherry.errors.stop.records` records fail the task.

A log line says which record it was, never what it held, nor for sources (Kafka Connect prints those whole): logs are
read by more people than topics.
"""

from __future__ import annotations

import dataclasses
import json
import logging
import time
import traceback
from collections.abc import Mapping, Sequence
from typing import ClassVar, Final, Protocol

import pyarrow as pa

from wherry.contract.batch import HEADERS_TYPE, Batch, Constants, RowError, of_value
from wherry.contract.errors import ConfigError, ErrorClass, SchemaError, WherryError, error_for
from wherry.worker.convert import DataError
from wherry.worker.convert.json import JsonConverter
from wherry.worker.convert.step import Stage, StageFailure, keep_rows
from wherry.worker.endpoints import Remaining, Writer
from wherry.worker.policy import RetryPolicy, StopThreshold

logger: Final = logging.getLogger("wherry.worker.errors")

HEADER_PREFIX: Final = "__connect.errors."
# What a letter names as the class that failed when a sink refuses a record, whichever sink it is.
SINK_TASK: Final = "org.apache.kafka.connect.sink.SinkTask"
# Key and value of a letter that had no bytes when it failed are JSON; `wherry dlq replay` looks for this.
ENCODING_HEADER: Final = "__wherry.errors.encoding"
QUEUE_KEYS: Final = "errors.deadletterqueue."
# The same keys for a source: Kafka Connect ignores its own ones there, so they can't be given a meaning.
SOURCE_QUEUE_KEYS: Final = "wherry.errors.deadletterqueue."
STOP_FAILURES_KEY: Final = "wherry.errors.stop.failures"
STOP_RECORDS_KEY: Final = "wherry.errors.stop.records"
STOP_RECORDS_DEFAULT: Final = 1_000
# A dead letter queue that takes nothing for so long fails the task.
DEAD_LETTER_FLUSH_S: Final = 30.0


class ToleranceExceededError(SchemaError):
    """A row failed and the connector tolerates none."""


class DeadLetterError(SchemaError):
    """The dead letter queue did not take rows; they are neither delivered nor kept, so the task fails.

    Attributes:
        count: How many.
    """

    def __init__(self, message: str, count: int) -> None:
        super().__init__(message, reason="DEAD_LETTER_REFUSED")
        self.count = count


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
        dead_letter_topic: Where failed rows go; empty for nowhere.
        dead_letter_replication: Replication factor it is created with.
        context_headers: Whether dead letters tell what happened.
        stop_failures: So many failed records among `stop_records` end the tolerance; 0 never does.
        stop_records: See `stop_failures`.
    """

    tolerate: bool = False
    log: bool = False
    log_messages: bool = False
    retry_timeout_ms: int = 0
    retry_delay_max_ms: int = 60_000
    dead_letter_topic: str = ""
    dead_letter_replication: int = 3
    context_headers: bool = False
    stop_failures: int = 0
    stop_records: int = STOP_RECORDS_DEFAULT

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
        queue = QUEUE_KEYS if sink else SOURCE_QUEUE_KEYS
        return cls(
            tolerate=tolerance == "all",
            log=_boolean(config, "errors.log.enable"),
            log_messages=_boolean(config, "errors.log.include.messages"),
            retry_timeout_ms=_integer(config, "errors.retry.timeout", 0),
            retry_delay_max_ms=_integer(config, "errors.retry.delay.max.ms", 60_000),
            dead_letter_topic=config.get(f"{queue}topic.name", "").strip(),
            dead_letter_replication=_integer(config, f"{queue}topic.replication.factor", 3),
            context_headers=_boolean(config, f"{queue}context.headers.enable"),
            stop_failures=_integer(config, STOP_FAILURES_KEY, 0),
            stop_records=_integer(config, STOP_RECORDS_KEY, STOP_RECORDS_DEFAULT),
        )

    @property
    def retry(self) -> RetryPolicy:
        """How long an operation on records is tried again."""
        return RetryPolicy(self.retry_timeout_ms / 1000, self.retry_delay_max_ms / 1000)

    @property
    def keeps_rows(self) -> bool:
        """Whether a failed row's bytes are wanted."""
        return bool(self.dead_letter_topic)


@dataclasses.dataclass(frozen=True, slots=True)
class GivenUp:
    """What became of failed rows.

    Attributes:
        skipped: How many were passed over.
        dead_letters: How many letters were written.
        logged: How many were logged.
        failed: How many there were, up to the one that ends the task.
        error: What ends the task; None while it goes on.
    """

    skipped: int = 0
    dead_letters: int = 0
    logged: int = 0
    failed: int = 0
    error: WherryError | None = None


class Giving(Protocol):
    """What the pump asks of a tolerance."""

    def saw(self, rows: int) -> None:
        """A batch of so many rows was read; comes before its failures."""

    def give_up(self, failures: Sequence[StageFailure]) -> GivenUp:
        """Logs the rows and keeps them, and says whether the task may go on."""

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
        self._threshold = StopThreshold(rules.stop_failures, rules.stop_records)
        self._as_json = JsonConverter({"schemas.enable": "false"}, is_key=False)

    def saw(self, rows: int) -> None:
        """See `Giving.saw`."""
        self._threshold.saw(rows)

    def give_up(self, failures: Sequence[StageFailure]) -> GivenUp:
        """See `Giving.give_up`. Without tolerance the row is in the dead letter queue all the same.

        Raises:
            WherryError: The dead letter queue takes nothing.
        """
        # The steps tell their failures one after another; Kafka Connect takes one record through all of them.
        failures = _each_record_once(sorted(failures, key=_place))
        letters = logged = 0
        for count, failure in enumerate(failures, 1):
            if self._rules.log:
                logger.error(self._log_line(failure), extra={"connector": self._connector, "task": self._task})
                logged += 1
            if self._dead_letters is not None and failure.raw.num_rows:
                letter = self._letter(failure)
                self._dead_letters.write(letter, letter)
                self._unflushed = True
                letters += 1
            if self._threshold.failed(failure.row) or not self._rules.tolerate:
                # The task ends at its first bad record too many: those after it have not been tried yet.
                return GivenUp(count - 1, letters, logged, count, self._at_the_end(failure))
        return GivenUp(len(failures), letters, logged, len(failures))

    def _at_the_end(self, failure: StageFailure) -> WherryError:
        """Makes the letters durable; returns what the task ends with."""
        try:
            self.flush(_within(DEAD_LETTER_FLUSH_S))
        except DeadLetterError as error:
            return error
        return self._exceeded(failure)

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
            raise DeadLetterError(
                f"{len(failed)} records could not be written to the dead letter queue "
                f"{self._rules.dead_letter_topic}: {failed[0].error.message}",
                len(failed),
            )
        self._unflushed = False

    def close(self) -> None:
        """Releases the dead letter writer."""
        if self._dead_letters is not None:
            self._dead_letters.close()

    def _exceeded(self, failure: StageFailure) -> WherryError:
        rules = self._rules
        remedy = "Set errors.tolerance=all to skip such records."
        if rules.tolerate:
            remedy = (
                f"{rules.stop_failures} of the last {rules.stop_records} records have failed, which is where "
                f"{STOP_FAILURES_KEY} ends the tolerance."
            )
        message = (
            f"Tolerance exceeded in error handler: {failure.stage.value} with class {failure.executing} failed for "
            f"{_whereabouts(failure)}: {failure.error.message.rstrip(': .')}. {remedy}"
        )
        if failure.error.error_class is ErrorClass.SCHEMA:
            return ToleranceExceededError(message, reason=failure.error.reason)
        return error_for(failure.error.error_class, message, reason=failure.error.reason)

    def _log_line(self, failure: StageFailure) -> str:
        line = (
            f"Error encountered in task {self._connector}-{self._task}. Executing stage '{failure.stage.value}' with "
            f"class '{failure.executing}': {failure.error.message}"
        )
        return f"{line} [{_whereabouts(failure)}]" if self._rules.log_messages else line

    def _letter(self, failure: StageFailure) -> Batch:
        """Makes the dead letter of a row: its own bytes and time, and headers after its own."""
        row = keep_rows(failure.raw, [failure.row])
        headers = row.headers[0].as_py() if row.headers is not None else None
        pairs = [(pair["name"], pair["value"]) for pair in headers or ()]
        if self._rules.context_headers:
            pairs += [(HEADER_PREFIX + name, _encoded(text)) for name, text in self._context(failure)]
        columns = {name: row.stored(name) for name in ("value", "key")}
        if any(column is not None and column.type not in _BYTES for column in columns.values()):
            columns = {name: self._bytes_of(row, name, column) for name, column in columns.items()}
            pairs.append((ENCODING_HEADER, b"json"))
        columns["timestamp"] = row.timestamp
        if pairs:
            entries = [{"name": name, "value": value} for name, value in pairs]
            columns["headers"] = pa.array([entries], HEADERS_TYPE)
        present = {name: column for name, column in columns.items() if column is not None}
        records = pa.RecordBatch.from_arrays(list(present.values()), names=list(present))
        return Batch(records, Constants(topic=self._rules.dead_letter_topic))

    def _bytes_of(self, row: Batch, name: str, column: pa.Array | None) -> pa.Array | None:
        """The JSON of a value that had no bytes; of one that has no JSON the text that Python shows."""
        if column is None:
            return None
        converted = self._as_json.from_connect("", row.records.schema.field(name), column)
        if not converted.failures and converted.runs:
            return converted.runs[0].column
        text = json.dumps(column[0].as_py(), ensure_ascii=False, default=str)
        return pa.array([text.encode(errors="replace")], pa.binary())

    def _context(self, failure: StageFailure) -> list[tuple[str, str | None]]:
        topic, partition, offset = _source_of(failure.raw, failure.row)
        error = failure.error
        return [
            ("topic", topic),
            ("partition", _text(partition)),
            ("offset", _text(offset)),
            ("connector.name", self._connector),
            ("task.id", str(self._task)),
            ("stage", failure.stage.value),
            ("class.name", SINK_TASK if failure.stage is Stage.TASK_PUT else failure.executing),
            ("exception.class.name", error.java_class),
            ("exception.message", error.message),
            ("exception.stacktrace", "".join(traceback.format_exception(error)).strip()),
        ]


def row_failure(raw: Batch | None, error: RowError, stage: Stage, executing: str) -> StageFailure:
    """Makes the failure of a row that an endpoint refused."""
    known = PutError(error.message or error.reason, reason=error.reason or "ROW_REFUSED", error_class=error.error_class)
    known.field_path = error.field_path
    return StageFailure(_NOTHING if raw is None else raw, error.row, stage, executing, known)


def unread_failure(batch: Batch, error: RowError, executing: str) -> StageFailure:
    """Makes the failure of a row that a source could not read: all there is of it are the bytes it tells, if any."""
    told = row_failure(None, error, Stage.TASK_POLL, executing)
    if not error.raw:
        return dataclasses.replace(told, row=0)
    topics = batch.topics()
    constants = Constants(topic=topics[0] if len(topics) == 1 else None)
    return dataclasses.replace(told, raw=of_value(pa.array([error.raw], pa.binary()), constants=constants), row=0)


def _source_of(raw: Batch, row: int) -> tuple[str | None, int | None, int | None]:
    if row >= raw.num_rows:
        return raw.constants.topic, raw.constants.partition, None
    one = raw.slice(row, 1)
    values = []
    for name in ("topic", "partition", "offset"):
        column = one.column(name)
        values.append(None if column is None else column[0].as_py())
    return values[0], values[1], values[2]


def _within(seconds: float) -> Remaining:
    deadline = time.monotonic() + seconds
    return lambda: deadline - time.monotonic()


def _place(failure: StageFailure) -> tuple[str, int, int]:
    """Where a failed row stood among those of its batch: topic, partition and offset, or its row."""
    topic, partition, offset = _source_of(failure.raw, failure.row)
    return topic or "", partition or 0, failure.row if offset is None else offset


def record_of(raw: Batch, row: int) -> tuple[str, int, int] | None:
    """Topic, partition and offset of the record that a row was read from; None where it has none."""
    topic, partition, offset = _source_of(raw, row)
    return None if offset is None else (topic or "", partition or 0, offset)


def _each_record_once(failures: Sequence[StageFailure]) -> list[StageFailure]:
    """Leaves one failure of each record: a transformation may have made several rows of it."""
    known: set[tuple[str, int, int]] = set()
    first = []
    for failure in failures:
        record = record_of(failure.raw, failure.row)
        if record is None or record not in known:
            first.append(failure)
        if record is not None:
            known.add(record)
    return first


def _text(number: int | None) -> str | None:
    return None if number is None else str(number)


def _encoded(text: str | None) -> bytes | None:
    return None if text is None else text.encode()


def _whereabouts(failure: StageFailure) -> str:
    topic, partition, offset = _source_of(failure.raw, failure.row)
    if topic is None and partition is None:
        return "a record"
    if partition is None:
        return f"a record for topic {topic}"
    return f"topic {topic}, partition {partition}, offset {offset}"


def _boolean(config: Mapping[str, str], key: str) -> bool:
    return config.get(key, "false").strip().lower() == "true"


def _integer(config: Mapping[str, str], key: str, default: int) -> int:
    text = config.get(key, str(default)).strip()
    try:
        return int(text)
    except ValueError:
        raise ConfigError(f"Invalid value {text} for configuration {key}: Not a number.", key=key) from None


_BYTES: Final = frozenset({pa.binary(), pa.large_binary(), pa.null()})
_NOTHING: Final = Batch(pa.record_batch([pa.nulls(0)], names=["value"]))
