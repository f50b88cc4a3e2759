"""Writes a source's records and the positions after them to Kafka in one transaction.

Whoever opens a writer of the same transactional id fences all before it, and only then reads where to go on: what an
older one had under way is committed or rolled back by that time. So the positions read here are the truth, whatever
the last writer came to know of its own commits.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from confluent_kafka import KafkaError, KafkaException

from wherry.contract.batch import Batch, RowError
from wherry.contract.connect_topics import offset_records
from wherry.contract.errors import FencedError, SchemaError, TransientError, WherryError
from wherry.contract.kafka_clients import ClientConfig, ClientValue
from wherry.contract.offsets_topic import positions_reader
from wherry.contract.position import Position
from wherry.contract.transactions import init_transactions
from wherry.worker.endpoints import WAIT_SLICE_S, FailedRow, Flushed, Remaining
from wherry.worker.endpoints.kafka_errors import error_of
from wherry.worker.endpoints.kafka_writer import KafkaWriter
from wherry.worker.endpoints.topics import TopicCreator

# A transaction coordinator that is only just starting, or finishing what a dead writer began, takes seconds.
INIT_TIMEOUT_S: Final = 60.0
ABORT_TIMEOUT_S: Final = 5.0
CLOSE_ABORT_TIMEOUT_S: Final = 1.0
REPORT_WAIT_S: Final = 2.0
REPORT_POLL_S: Final = 0.01
# Fewer rows than these on their way are waited for at once.
BEHIND_ROWS: Final = 500
_FENCED: Final = frozenset({KafkaError._FENCED, KafkaError.INVALID_PRODUCER_EPOCH, KafkaError.PRODUCER_FENCED})


class TransactionalWriter:
    """A `Writer` to topics whose flush commits a transaction with the positions staged for it.

    Args:
        client: Settings of the producer, with its transactional.id.
        consumer: Settings of the consumer that reads the stored positions.
        connector: Name of the connector.
        offsets_topic: Where its positions are stored.
        creator: Creates the topics of records; None leaves that to the broker.
        offsets_creator: Creates the offsets topic.
        make: Makes the writer of records from the producer's settings.
        confirm: Raises WherryError unless the lease is in force. Asked once older writers are fenced: whoever opens
            last wins, be it the worker of a lease that is long over and only now comes round to opening (as in KIP-618,
            where a task looks for newer task configurations after it has initialized its producer).
    """

    def __init__(
        self,
        client: ClientConfig,
        consumer: Mapping[str, ClientValue],
        connector: str,
        offsets_topic: str,
        *,
        creator: TopicCreator | None = None,
        offsets_creator: TopicCreator | None = None,
        make: Callable[[ClientConfig], KafkaWriter] | None = None,
        confirm: Callable[[], None] = lambda: None,
    ) -> None:
        self._connector = connector
        self._topic = offsets_topic
        self._id = str(client.values["transactional.id"])
        self._open = False
        self._staged: tuple[Position, ...] = ()
        if offsets_creator is not None:
            offsets_creator.ensure(offsets_topic)
        self._inner = KafkaWriter(client, creator=creator) if make is None else make(client)
        self._producer = self._inner.producer
        try:
            with positions_reader(consumer, offsets_topic, connector) as read:
                self._until(self._begin_epoch, _time_left(INIT_TIMEOUT_S), "open its transactions")
                confirm()
                # Not before: what an older writer had under way is settled now.
                found = read()
        except WherryError:
            self._inner.close()
            raise
        self._stored = tuple(position for position in found.values() if position.offset is not None)

    def ready(self, timeout_s: float) -> bool:
        """See `Writer.ready`."""
        try:
            return self._inner.ready(timeout_s)
        except WherryError as error:
            raise self._reason(error) from error

    def write(self, batch: Batch, raw: Batch) -> None:
        """See `Writer.write`."""
        if not batch.num_rows:
            return
        self._begin()
        try:
            self._inner.write(batch, raw)
        except WherryError as error:
            raise self._reason(error) from error

    def stage(self, positions: Sequence[Position]) -> None:
        """Names the positions that the next flush stores: those after all rows written."""
        self._staged = tuple(positions)

    def flush(self, remaining: Remaining, *, final: bool = False) -> Flushed:
        """Commits rows and staged positions together; see `Writer.flush`."""
        positions, self._staged = self._staged, ()
        if positions:
            self._begin()
            self._produce_offsets(positions)
        if self._open:
            self._until(self._producer.commit_transaction, remaining, "commit a transaction")
            self._open = False
        return self._inner.flush(remaining, final=final)

    def abort(self) -> None:
        """Rolls back what was written since the last flush."""
        self._staged = ()
        if self._open:
            self._until(self._producer.abort_transaction, _time_left(ABORT_TIMEOUT_S), "roll a transaction back")
            self._open = False
            # Reports of delivery may have come until now.
            self._inner.forget()

    @property
    def behind(self) -> bool:
        """Whether so many rows are still on their way that a flush would have to wait for them."""
        return len(self._producer) > BEHIND_ROWS

    def failed_rows(self) -> list[FailedRow]:
        """See `Writer.failed_rows`. A row that the broker refused has spoilt its transaction."""
        if self._inner.undelivered is not None:
            raise _spoilt(self._inner.undelivered)
        return self._inner.failed_rows()

    def rewinds(self) -> tuple[Position, ...]:
        """Never: Kafka takes what it is given."""
        return ()

    def paused_partitions(self) -> tuple[str, ...]:
        """Never any."""
        return ()

    @property
    def needs_flush(self) -> bool:
        """Never: nothing is kept."""
        return False

    @property
    def stored(self) -> tuple[Position, ...]:
        """Positions of the connector as they were when all older writers of this id had been fenced."""
        return self._stored

    @property
    def trouble(self) -> str:
        """What keeps the producer from its brokers now."""
        return self._inner.trouble

    def close(self) -> None:
        """See `Writer.close`. What was not committed is rolled back: now, or by the next writer of this id."""
        if self._open:
            self._open = False
            with contextlib.suppress(KafkaException):
                self._producer.abort_transaction(CLOSE_ABORT_TIMEOUT_S)
        self._inner.close()

    def _begin_epoch(self, timeout_s: float) -> None:
        init_transactions(self._producer, timeout_s, self._topic)

    def _begin(self) -> None:
        if self._open:
            return
        try:
            self._producer.begin_transaction()
        except KafkaException as error:
            raise self._reason(error_of(error.args[0], "Beginning a transaction")) from error
        self._open = True

    def _produce_offsets(self, positions: Sequence[Position]) -> None:
        for record in offset_records(self._connector, positions):
            while True:
                try:
                    self._producer.produce(self._topic, record.value, record.key)
                except BufferError:
                    self._inner.wait_for_room()
                    continue
                except KafkaException as error:
                    raise self._reason(error_of(error.args[0], f"Writing to topic {self._topic}")) from error
                break

    def _until(self, act: Callable[[float], Any], remaining: Remaining, what: str) -> None:
        """Calls something of the producer again until it is done; its calls may be repeated after a time-out."""
        while True:
            left = remaining()
            if left <= 0:
                raise TransientError(f"Kafka did not {what} of {self._id} in time. {self.trouble}".rstrip())
            try:
                act(min(left, WAIT_SLICE_S))
                return
            except KafkaException as error:
                known = error.args[0]
                if known.retriable() and not known.fatal() and not known.txn_requires_abort():
                    continue
                raise self._reason(error_of(known, f"Kafka could not {what} of {self._id}: it")) from error

    def _await_report(self) -> Any:
        """Waits for the report of the record that spoilt the transaction, if one did; answers what `_fatal` does.

        The client fails the transaction first and reports on its records then, in another thread; who looks between
        the two would take for something passing what fails each time.
        """
        deadline = time.monotonic() + REPORT_WAIT_S
        while (fatal := self._fatal()) is None and self._inner.undelivered is None:
            if not len(self._producer) or time.monotonic() >= deadline:
                break
            time.sleep(REPORT_POLL_S)
        return fatal

    def _fatal(self) -> Any:
        """The error after which the producer takes nothing more; None if there is none."""
        try:
            self._producer.poll(0)
        except KafkaException as error:
            # The client library raises it where it is first noticed.
            if error.args[0].fatal():
                return error.args[0]
        return self._inner.fatal_error

    def _reason(self, error: WherryError) -> WherryError:
        """Finds out why the producer goes on no more: it says so in other places than where it is noticed."""
        over = error.reason in {"STATE", "FATAL"} or error.reason.startswith(("TXN_", "PURGE"))
        fatal = self._fatal()
        if over and fatal is None:
            fatal = self._await_report()
        # It may be the very error that was raised, and be told nowhere else any more.
        if isinstance(error, FencedError) or (fatal is not None and fatal.code() in _FENCED):
            return FencedError(
                f"Another producer has taken over the transactional id {self._id}, or a transaction was open for "
                "longer than transaction.timeout.ms; what was not committed is read again."
            )
        if self._inner.undelivered is not None:
            return _spoilt(self._inner.undelivered)
        if fatal is not None:
            return error_of(fatal, "Writing to Kafka")
        if over:
            return TransientError(f"A transaction has failed and is done again: {error}", reason=error.reason)
        return error


def _spoilt(refused: RowError) -> SchemaError:
    return SchemaError(
        f"A record was refused within a transaction, which fails as a whole: {refused.message}", reason=refused.reason
    )


def _time_left(seconds: float) -> Remaining:
    deadline = time.monotonic() + seconds
    return lambda: deadline - time.monotonic()
