"""Sends dead letters back: reads a dead letter topic, sends what the rules want, keeps the progress in a group.

Records and progress are written in one Kafka transaction, so that a replay that is killed and run again sends nothing
twice. It ends at the ends the topic had when it began: records that fail once more and come back as new letters are
left for the next replay. The order of each partition is kept.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from wherry.contract.errors import ConfigError, TransientError, WherryError
from wherry.coordinator.dlq.letters import Left, Letter, Resend, Rules, decide

CALL_TIMEOUT_S: Final = 30.0
POLL_TIMEOUT_S: Final = 1.0
# Waiting for records that the topic's ends promise.
SILENCE_MAX_S: Final = 30.0
# Letters of one transaction.
BATCH_LETTERS: Final = 500
REASONS_MAX: Final = 20

Settings = Mapping[str, Any]


@dataclass(slots=True)
class Replayed:
    """What a replay has done so far.

    Attributes:
        read: Letters read.
        sent: Records sent, or with a dry run those that would be.
        filtered: Letters that the filters left out.
        left: Letters that were wanted and could not be sent.
        topics: Records sent, by topic.
        reasons: Why letters were left, and how many for each reason.
    """

    read: int = 0
    sent: int = 0
    filtered: int = 0
    left: int = 0
    topics: dict[str, int] = field(default_factory=dict)
    reasons: dict[str, int] = field(default_factory=dict)

    def note(self, what: Resend | Left) -> None:
        """Count one letter."""
        self.read += 1
        if isinstance(what, Resend):
            self.sent += 1
            self.topics[what.topic] = self.topics.get(what.topic, 0) + 1
        elif not what.wanted:
            self.filtered += 1
        else:
            self.left += 1
            if what.reason in self.reasons or len(self.reasons) < REASONS_MAX:
                self.reasons[what.reason] = self.reasons.get(what.reason, 0) + 1


class Replay:
    """One replay of a dead letter topic.

    Args:
        topic: The dead letter topic.
        rules: Which letters go where.
        group: Consumer group that keeps the progress.
        consumer: librdkafka's settings for reading, with bootstrap.servers.
        producer: The same for sending.
    """

    def __init__(self, topic: str, rules: Rules, group: str, consumer: Settings, producer: Settings) -> None:
        self._topic = topic
        self._rules = rules
        self._group = group
        self._consumer_settings = {
            "log_level": 0, **consumer, "group.id": group, "enable.auto.commit": False,
            "isolation.level": "read_committed", "auto.offset.reset": "earliest", "enable.partition.eof": True,
        }  # fmt: skip
        self._producer_settings = {
            "log_level": 0, "partitioner": "murmur2_random", **producer, "transactional.id": group, "acks": "all",
            "enable.idempotence": True,
        }  # fmt: skip
        self._consumer: Any = None
        self._partitions: dict[str, int] = {}

    def run(
        self,
        *,
        dry_run: bool = False,
        skip: bool = False,
        limit: int | None = None,
        told: Callable[[Letter, Resend | Left], None] = lambda letter, what: None,
        progress: Callable[[Replayed], None] = lambda done: None,
    ) -> Replayed:
        """Replay what is there now.

        Args:
            dry_run: Send nothing and keep no progress.
            skip: Pass over letters that are wanted and can't be sent; otherwise the replay ends before the first one.
            limit: Most letters to read; None for all.
            told: Hears of each letter and what becomes of it.
            progress: Hears after each transaction.

        Raises:
            WherryError: It could not go on; what was sent before is known as progress.
        """
        from confluent_kafka import Consumer, KafkaException, Producer

        done = Replayed()
        try:
            self._consumer = Consumer(self._consumer_settings)
            producer = None if dry_run else Producer(self._producer_settings)
            if producer is not None:
                producer.init_transactions(CALL_TIMEOUT_S)
            for letters in self._batches(self._ends(), limit):
                decided = [(letter, decide(letter, self._rules)) for letter in letters]
                stop = None if skip or dry_run else next(filter(_is_stuck, decided), None)
                going = decided if stop is None else decided[: decided.index(stop)]
                records = [what for _, what in going if isinstance(what, Resend)]
                self._check_topics(records)
                if producer is not None and going:
                    self._send(producer, [letter for letter, _ in going], records)
                for letter, what in going if stop is None else [*going, stop]:
                    done.note(what)
                    told(letter, what)
                progress(done)
                if stop is not None:
                    break
        except KafkaException as error:
            raise _error(error, f"Replaying {self._topic}") from error
        finally:
            if self._consumer is not None:
                self._consumer.close()
        return done

    def _ends(self) -> dict[int, tuple[int, int]]:
        """Where each partition is gone on from, and where it ends; takes the partitions up."""
        from confluent_kafka import KafkaException, TopicPartition

        known = self._partitions_of(self._topic)
        if not known:
            raise ConfigError(f"There is no topic {self._topic}: give the name of a dead letter topic.")
        natives = [TopicPartition(self._topic, number) for number in known]
        spans: dict[int, tuple[int, int]] = {}
        for native in self._consumer.committed(natives, timeout=CALL_TIMEOUT_S):
            if native.error is not None:
                # Taken for one without progress, its letters would be sent once more.
                raise KafkaException(native.error)
            low, high = self._consumer.get_watermark_offsets(native, timeout=CALL_TIMEOUT_S)
            start = max(low, native.offset)
            if start < high:
                spans[native.partition] = (start, high)
        self._consumer.assign([TopicPartition(self._topic, number, start) for number, (start, _) in spans.items()])
        return spans

    def _batches(self, spans: dict[int, tuple[int, int]], limit: int | None) -> Iterator[list[Letter]]:
        """Yields the letters up to the ends; what lies behind an end is not looked at."""
        open_ends = {partition: end for partition, (_, end) in spans.items()}
        left = limit
        silent_s = 0.0
        while open_ends and (left is None or left > 0):
            wanted = BATCH_LETTERS if left is None else min(BATCH_LETTERS, left)
            messages = self._consumer.consume(wanted, POLL_TIMEOUT_S)
            letters = [letter for message in messages if (letter := self._taken(message, open_ends)) is not None]
            silent_s = 0.0 if messages else silent_s + POLL_TIMEOUT_S
            if letters:
                left = None if left is None else left - len(letters)
                yield letters
            if silent_s >= SILENCE_MAX_S:
                raise TransientError(f"Nothing more came from {self._topic} for {SILENCE_MAX_S:.0f} s.")

    def _taken(self, message: Any, open_ends: dict[int, int]) -> Letter | None:
        """Returns a message as a letter if it lies before its partition's end; strikes out a partition that is done."""
        from confluent_kafka import KafkaError

        partition, error = message.partition(), message.error()
        if error is not None and error.code() != KafkaError._PARTITION_EOF:
            raise TransientError(f"Reading {self._topic} failed: {error.str()}.")
        end = open_ends.get(partition, 0)
        # The last offsets may hold ends of transactions, which are no records: the partition's end is told apart.
        if error is not None or message.offset() >= end - 1:
            open_ends.pop(partition, None)
        return None if error is not None or message.offset() >= end else _letter(message)

    def _check_topics(self, records: list[Resend]) -> None:
        """Refuse topics and partitions that don't exist: a typing error must not make a topic."""
        for topic in {record.topic for record in records} - self._partitions.keys():
            self._partitions[topic] = len(self._partitions_of(topic))
        for record in records:
            known = self._partitions[record.topic]
            if not known:
                raise ConfigError(f"There is no topic {record.topic} to send to: make it, or name another with --to.")
            if record.topic == self._topic:
                raise ConfigError(f"Letters can't be sent to {self._topic} itself: the replay would never end.")
            if record.partition is not None and record.partition >= known:
                raise ConfigError(
                    f"Topic {record.topic} has {known} partition(s), and a record came from partition "
                    f"{record.partition}: the topic was made anew. Name it with --to to send by key."
                )

    def _partitions_of(self, topic: str) -> list[int]:
        """Numbers of a topic's partitions; none when there is no such topic."""
        from confluent_kafka import KafkaError, KafkaException

        found = self._consumer.list_topics(topic, timeout=CALL_TIMEOUT_S).topics[topic]
        if found.error is None:
            return sorted(found.partitions)
        missing = (KafkaError.UNKNOWN_TOPIC_OR_PART, KafkaError._UNKNOWN_TOPIC, KafkaError.TOPIC_EXCEPTION)
        if found.error.code() in missing:
            return []
        raise KafkaException(found.error)

    def _send(self, producer: Any, letters: list[Letter], records: list[Resend]) -> None:
        """Sends the records of a batch and keeps the progress, both or neither."""
        from confluent_kafka import KafkaException, TopicPartition

        failures: list[Any] = []

        def delivered(error: Any, _: Any) -> None:
            if error is not None:
                failures.append(error)

        reached = {letter.partition: letter.offset + 1 for letter in letters}
        producer.begin_transaction()
        try:
            for record in records:
                partition = {} if record.partition is None else {"partition": record.partition}
                producer.produce(
                    record.topic, record.value, record.key, headers=list(record.headers) or None,
                    timestamp=record.timestamp_ms, on_delivery=delivered, **partition,
                )  # fmt: skip
                producer.poll(0)
            if producer.flush(CALL_TIMEOUT_S) or failures:
                reason = failures[0].str() if failures else f"not acknowledged within {CALL_TIMEOUT_S:.0f} s"
                raise TransientError(f"A record could not be sent: {reason}.")
            positions = [TopicPartition(self._topic, number, offset) for number, offset in reached.items()]
            producer.send_offsets_to_transaction(positions, self._consumer.consumer_group_metadata(), CALL_TIMEOUT_S)
            producer.commit_transaction(CALL_TIMEOUT_S)
        except (KafkaException, WherryError, BufferError):
            producer.abort_transaction(CALL_TIMEOUT_S)
            raise


def _is_stuck(decided: tuple[Letter, Resend | Left]) -> bool:
    return isinstance(decided[1], Left) and decided[1].wanted


def _letter(message: Any) -> Letter:
    return Letter(
        message.partition(), message.offset(), message.key(), message.value(),
        tuple((name, value) for name, value in message.headers() or ()), max(0, message.timestamp()[1]),
    )  # fmt: skip


def _error(error: Any, doing: str) -> WherryError:
    told = error.args[0]
    text = f"{doing} failed: {told.str().rstrip('.')} ({told.name()})."
    return ConfigError(text) if told.name() in ("_INVALID_ARG", "UNKNOWN_TOPIC_OR_PART") else TransientError(text)
