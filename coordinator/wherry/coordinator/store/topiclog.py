"""One of Kafka Connect's topics as a log: read from its beginning, followed for ever, written at its end.

A thread hands every record, in order within a partition, to whoever keeps the state; `read_to_end` waits until all that
was there at the call has been handed over, `write` until what it wrote has. Only committed records count. Decides
nothing of what records mean.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, Protocol

from wherry.contract.connect_topics import PRODUCER_SETTINGS
from wherry.contract.errors import FencedError, TransientError, WherryError
from wherry.contract.position import TopicPartition
from wherry.contract.transactions import init_transactions
from wherry.coordinator.kafka import KafkaAdmin, kafka_error

log = logging.getLogger(__name__)

WRITE_TIMEOUT_S: Final = 30.0
READ_TIMEOUT_S: Final = 30.0
START_TIMEOUT_S: Final = 60.0
"""A topic of a large cluster is read from its beginning."""
POLL_S: Final = 0.5
FETCH_WAIT_MS: Final = 200
"""The client notices the end of a transaction at its next fetch only, so this bounds how long a write is waited for."""
CONSUME_MAX: Final = 1_000
CLAIM_TIMEOUT_S: Final = 10.0
METADATA_TIMEOUT_S: Final = 10.0
APPEAR_TIMEOUT_S: Final = 10.0
CLOSE_TIMEOUT_S: Final = 2.0

# Calls raise what concerns them. Without a callback, the client raises fatal errors wherever it just is.
_QUIET: Final = {"log_level": 0, "error_cb": lambda error: None}

Bytes = tuple[bytes | None, bytes | None]
"""Key and value of a record."""


class Writer(Protocol):
    """Writes records to topics."""

    def write(self, topic: str, records: Sequence[Bytes]) -> dict[TopicPartition, int]:
        """Write records in order; the answer tells the offset after the last one of each partition.

        Raises:
            WherryError: They are not all durable.
        """


class PlainWriter:
    """Writes each record for itself, safe for many threads.

    Args:
        config: Connection settings of librdkafka.
    """

    def __init__(self, config: Mapping[str, Any]) -> None:
        self._config = {
            **_QUIET,
            **config,
            **PRODUCER_SETTINGS,
            "acks": "all",
            "max.in.flight": 1,  # retries keep the order
            "linger.ms": 1,
            "delivery.timeout.ms": int(WRITE_TIMEOUT_S * 1000),
        }
        self._lock = threading.Lock()
        self._client: Any = None

    def write(self, topic: str, records: Sequence[Bytes]) -> dict[TopicPartition, int]:
        """Write records in order."""
        delivery = _Delivery(len(records))
        producer = self._producer()
        for key, value in records:
            _produce(producer, topic, key, value, delivery)
        delivery.wait(producer, topic)
        return delivery.ends(topic)

    def close(self) -> None:
        """Let go of the connection."""
        with self._lock:
            client, self._client = self._client, None
        if client is not None:
            client.flush(CLOSE_TIMEOUT_S)

    def _producer(self) -> Any:
        with self._lock:
            if self._client is None:
                from confluent_kafka import Producer

                self._client = Producer(self._config)
            return self._client


class FencedWriter:
    """Writes all records of a call together or not at all, and never after a later one has claimed the same id.

    `claim` before the first write. Where the cluster grants no transactions, it goes on without them and says so once:
    then only the membership keeps two leaders apart.

    Args:
        config: Connection settings of librdkafka.
        transactional_id: The name that only one writer may have.
        fenced: Told when nothing can be written without a new claim: another one has claimed the id, or a transaction
            could not be ended.
        topic: One that exists by the time of the first claim; it quickens claims.
    """

    def __init__(
        self,
        config: Mapping[str, Any],
        transactional_id: str,
        fenced: Callable[[], None] = lambda: None,
        *,
        topic: str = "",
    ) -> None:
        self._topic = topic
        self._plain = PlainWriter(config)
        self._config = {
            **_QUIET,
            **config,
            **PRODUCER_SETTINGS,
            "acks": "all",
            "enable.idempotence": True,
            "transactional.id": transactional_id,
            "linger.ms": 1,
            "transaction.timeout.ms": int(WRITE_TIMEOUT_S * 1000),
        }
        self._id = transactional_id
        self._fenced = fenced
        self._lock = threading.Lock()
        self._client: Any = None
        self._claimed = False
        self._trouble = ""
        """What has made the last claim void, if it was no other coordinator."""

    def claim(self, timeout_s: float = CLAIM_TIMEOUT_S) -> None:
        """Fence whoever has written under this id before.

        Raises:
            WherryError: The cluster did not answer as it should; try again.
        """
        from confluent_kafka import KafkaException

        with self._lock:
            self._client, self._trouble = None, ""
            self._claimed = True
            try:
                self._client = self._begun(timeout_s)
            except KafkaException as error:
                failure = kafka_error(f"claim the transactional id {self._id}", error)
                log.warning(
                    "%s The config topic is written without transactions; grant Write and Describe on the "
                    "transactional id %s to have a deposed leader fenced by the broker too.",
                    failure.message,
                    self._id,
                )

    def _begun(self, timeout_s: float) -> Any:
        from confluent_kafka import Producer

        producer = Producer(self._config)
        init_transactions(producer, timeout_s, self._topic)
        return producer

    def write(self, topic: str, records: Sequence[Bytes]) -> dict[TopicPartition, int]:
        """Write records in order, as one transaction."""
        with self._lock:
            if self._trouble:  # found out by whoever wrote before; those behind it would wait as long in vain
                raise TransientError(self._trouble)
            if not self._claimed:
                raise FencedError(f"This coordinator does not lead, and may not write to {topic}.")
            try:
                return self._write(topic, records)
            except WherryError as failure:
                error, lost = failure, not self._claimed
        if lost:
            self._fenced()  # NB: without the lock, for whoever hears it calls `release`.
        raise error

    def _write(self, topic: str, records: Sequence[Bytes]) -> dict[TopicPartition, int]:
        from confluent_kafka import KafkaException

        if self._client is None:
            return self._plain.write(topic, records)
        producer, delivery = self._client, _Delivery(len(records))
        try:
            producer.begin_transaction()
            for key, value in records:
                _produce(producer, topic, key, value, delivery)
            # NB: committing flushes; `flush` leaves the error of a fenced client pending, to break what follows.
            producer.commit_transaction(WRITE_TIMEOUT_S)
        except (KafkaException, WherryError) as error:
            raise self._failed(topic, producer, error, delivery) from error
        delivery.wait(producer, topic)  # committed is delivered: only the answers are outstanding
        return delivery.ends(topic)

    def release(self) -> None:
        """Write no more until the next claim."""
        with self._lock:
            self._claimed = False
            self._client = None

    def close(self) -> None:
        """Let go of the connections."""
        self.release()
        self._plain.close()

    def _failed(self, topic: str, producer: Any, error: Exception, delivery: _Delivery) -> WherryError:
        from confluent_kafka import KafkaException

        if isinstance(error, KafkaException) and error.args[0].fatal():
            self._claimed, self._client = False, None
            return FencedError(f"Another coordinator leads now; nothing was written to {topic}.")
        try:
            self._abort(producer)
        except KafkaException as second:
            # What became of the transaction is not known, so that only a new claim can write again: whoever leads next
            # makes one, be it this coordinator.
            log.warning("A transaction of %s could not be aborted, and the lead is given up: %s", self._id, second)
            self._claimed, self._client = False, None
        # The client itself only says how many records were refused.
        told = error if isinstance(error, WherryError) else kafka_error(f"write to {topic}", delivery.failure or error)
        if not self._claimed:
            self._trouble = told.message
        return told

    def _abort(self, producer: Any) -> None:
        from confluent_kafka import KafkaError, KafkaException

        try:
            producer.abort_transaction(CLAIM_TIMEOUT_S)
        except KafkaException as error:
            if error.args[0].code() != KafkaError.INVALID_TXN_STATE:
                raise
            # The broker knows of no transaction, having refused its first record, say; the client holds that for
            # fatal. It looks at who claims first, so that this says, too, that nobody else has claimed the id.
            self._client = self._begun(CLAIM_TIMEOUT_S)


class TopicLog:
    """Follows one topic.

    Args:
        topic: Its name.
        config: Connection settings of librdkafka.
        admin: Tells end offsets.
        apply: Takes in a record; called in one thread.
        group: The worker's group.id, which the client needs to know though it joins nothing here.
    """

    def __init__(
        self,
        topic: str,
        config: Mapping[str, Any],
        admin: KafkaAdmin,
        apply: Callable[[bytes | None, bytes | None], object],
        *,
        group: str,
    ) -> None:
        self.topic = topic
        self._admin = admin
        self._apply = apply
        self._config = {
            **_QUIET,
            **config,
            "group.id": group,
            "enable.auto.commit": False,
            "enable.partition.eof": True,
            "isolation.level": "read_committed",
            "auto.offset.reset": "earliest",
            "allow.auto.create.topics": False,
            "fetch.wait.max.ms": FETCH_WAIT_MS,
        }
        self._moved = threading.Condition()
        self._next: dict[int, int] = {}
        self._closing = threading.Event()
        self._thread = threading.Thread(target=self._follow, name=f"log-{topic}", daemon=True)

    def start(self) -> None:
        """Begin to follow, and return when all there is now has been taken in.

        Raises:
            WherryError: The topic is missing or cannot be read in time.
        """
        self._next = dict.fromkeys(range(self._partitions()), 0)
        self._thread.start()
        self.read_to_end(START_TIMEOUT_S)

    def _partitions(self) -> int:
        """How many there are; a topic that was made a moment ago may not have come to every broker's knowledge."""
        deadline = time.monotonic() + APPEAR_TIMEOUT_S
        while (found := self._admin.topics().get(self.topic)) is None:
            if time.monotonic() >= deadline:
                raise TransientError(
                    f"The topic {self.topic} is not there, or this worker may not see it: grant it Describe and Read."
                )
            self._closing.wait(POLL_S)
        return found

    def read_to_end(self, timeout_s: float = READ_TIMEOUT_S) -> None:
        """Wait until every record that is there now has been taken in.

        Raises:
            WherryError: Not in time.
        """
        deadline = time.monotonic() + timeout_s
        ends = self._all_ends(deadline)
        self.wait_for(ends, max(deadline - time.monotonic(), 0.0))

    def _all_ends(self, deadline: float) -> dict[TopicPartition, int]:
        """Where each partition ends: one whose leader can't tell for a moment is not taken for one without records."""
        partitions = [TopicPartition(self.topic, number) for number in self._next]
        while len(ends := self._admin.end_offsets(partitions, committed=True)) < len(partitions):
            if time.monotonic() >= deadline:
                unknown = ", ".join(str(each.partition) for each in partitions if each not in ends)
                raise TransientError(f"Kafka did not tell in time where partition(s) {unknown} of {self.topic} end.")
            self._closing.wait(POLL_S)
        return ends

    def settled_ends(self) -> dict[TopicPartition, int] | None:
        """Where the partitions end; None while a transaction is open in any of them, or where that can't be told.

        Raises:
            WherryError: Kafka could not be asked.
        """
        partitions = [TopicPartition(self.topic, number) for number in self._next]
        # In this order: what is begun in between makes them differ, and is not taken for settled.
        stable = self._admin.end_offsets(partitions, committed=True)
        high = self._admin.end_offsets(partitions)
        return stable if stable == high and len(stable) == len(partitions) else None

    def wait_for(self, ends: Mapping[TopicPartition, int], timeout_s: float = READ_TIMEOUT_S) -> None:
        """Wait until these offsets have been reached.

        Raises:
            TransientError: Not in time.
        """
        with self._moved:
            reached = self._moved.wait_for(
                lambda: all(self._next.get(partition.partition, 0) >= end for partition, end in ends.items()), timeout_s
            )
        if not reached:
            short = ", ".join(
                f"partition {partition.partition} to {self._next.get(partition.partition, 0)} of {end}"
                for partition, end in sorted(ends.items(), key=lambda each: each[0].partition)
                if self._next.get(partition.partition, 0) < end
            )
            raise TransientError(
                f"The topic {self.topic} could not be read to its end within {timeout_s:g} s: {short}."
            )

    def close(self) -> None:
        """Follow no more."""
        self._closing.set()
        if self._thread.is_alive():
            self._thread.join(CLOSE_TIMEOUT_S)

    def _follow(self) -> None:
        from confluent_kafka import OFFSET_BEGINNING, Consumer
        from confluent_kafka import TopicPartition as Native

        consumer = Consumer(self._config)
        try:
            consumer.assign([Native(self.topic, number, OFFSET_BEGINNING) for number in self._next])
            told = ""
            while not self._closing.is_set():
                first = consumer.poll(POLL_S)  # `consume` alone would wait for a thousand
                for message in () if first is None else (first, *consumer.consume(CONSUME_MAX, 0)):
                    told = self._take(message, told)
        except Exception:
            log.exception("The topic %s is no longer followed", self.topic)
        finally:
            consumer.close()

    def _take(self, message: Any, told: str) -> str:
        from confluent_kafka import KafkaError

        error = message.error()
        if error is None:
            self._apply(message.key(), message.value())
            self._reached(message.partition(), message.offset() + 1)
            return ""
        if error.code() == KafkaError._PARTITION_EOF:
            # Also past what is no record: the marks of transactions.
            self._reached(message.partition(), message.offset())
            return ""
        text = str(error.str())
        if text != told:
            log.warning("The topic %s cannot be read at the moment: %s", self.topic, text)
        return text

    def _reached(self, partition: int, offset: int) -> None:
        with self._moved:
            if offset > self._next.get(partition, 0):
                self._next[partition] = offset
                self._moved.notify_all()


class _Delivery:
    """What became of the records of one write."""

    def __init__(self, count: int) -> None:
        self._lock = threading.Lock()
        self._left = count
        self._error: Any = None
        self._ends: dict[int, int] = {}

    def wait(self, producer: Any, topic: str) -> None:
        """Wait until every record has been answered for."""
        deadline = time.monotonic() + WRITE_TIMEOUT_S + 1
        while self._left:
            producer.poll(0.02)  # short: another thread's poll may serve our answers
            if time.monotonic() > deadline:
                raise TransientError(f"Kafka did not take the records for {topic} within {WRITE_TIMEOUT_S:g} s.")

    def told(self, error: Any, message: Any) -> None:
        """Take in the answer for one record."""
        with self._lock:
            self._left -= 1
            if error is not None:
                self._error = self._error or error
            else:
                partition, end = message.partition(), message.offset() + 1
                self._ends[partition] = max(end, self._ends.get(partition, 0))

    @property
    def failure(self) -> Any:
        """Why a record was not taken, the first one; None when none was refused, or only for another's sake."""
        from confluent_kafka import KafkaError

        with self._lock:
            error = self._error
        purged = error is not None and error.code() in (KafkaError._PURGE_QUEUE, KafkaError._PURGE_INFLIGHT)
        return None if purged else error

    def ends(self, topic: str) -> dict[TopicPartition, int]:
        """The offset after the last record of each partition."""
        with self._lock:
            if self._error is not None:
                raise kafka_error(f"write to {topic}", self._error)
            return {TopicPartition(topic, partition): end for partition, end in self._ends.items()}


def _produce(producer: Any, topic: str, key: bytes | None, value: bytes | None, delivery: _Delivery) -> None:
    from confluent_kafka import KafkaException

    try:
        producer.produce(topic, value, key, on_delivery=delivery.told)
    except (BufferError, KafkaException) as error:
        raise kafka_error(f"write to {topic}", error) from error
