"""What becomes of a leader's writer when a transaction fails."""

from __future__ import annotations

from typing import Any

import pytest
from confluent_kafka import KafkaError, KafkaException

from wherry.contract.errors import AuthError, FencedError, TransientError, WherryError
from wherry.contract.position import TopicPartition
from wherry.coordinator.store.topiclog import FencedWriter, TopicLog

RECORDS = [(b"key", b"value")]


class Producer:
    """A client whose commit and abort fail as told."""

    def __init__(
        self, commit: KafkaError | None, abort: KafkaError | None = None, delivery: KafkaError | None = None
    ) -> None:
        self._commit, self._abort, self._delivery = commit, abort, delivery
        self.calls: list[str] = []

    def begin_transaction(self) -> None:
        self.calls.append("begin")

    def produce(self, topic: str, value: bytes, key: bytes, on_delivery: Any) -> None:
        self.calls.append("produce")
        if self._delivery is not None:
            on_delivery(self._delivery, None)

    def commit_transaction(self, timeout_s: float) -> None:
        self.calls.append("commit")
        if self._commit is not None:
            raise KafkaException(self._commit)

    def abort_transaction(self, timeout_s: float) -> None:
        self.calls.append("abort")
        if self._abort is not None:
            raise KafkaException(self._abort)


def written(producer: Producer) -> tuple[FencedWriter, list[str], WherryError]:
    """A claimed writer after one write, what it told, and the error of that write."""
    told: list[str] = []

    def fenced() -> None:
        told.append("fenced")
        writer.release()  # as a coordinator does that drops its work

    writer = FencedWriter({}, "connect-cluster-g", fenced)
    writer._claimed, writer._client = True, producer
    with pytest.raises(WherryError) as caught:
        writer.write("configs", RECORDS)
    return writer, told, caught.value


def test_a_write_that_fails_for_now_is_aborted_and_the_lead_is_kept() -> None:
    producer = Producer(KafkaError(KafkaError._TIMED_OUT, "no answer"))
    writer, told, error = written(producer)
    assert isinstance(error, TransientError)
    assert (producer.calls[-1], told) == ("abort", [])
    assert (writer._claimed, writer._client) == (True, producer)


def test_a_writer_that_was_fenced_says_so_and_writes_no_more() -> None:
    producer = Producer(KafkaError(KafkaError._FENCED, "fenced", True))
    writer, told, error = written(producer)
    assert isinstance(error, FencedError)
    assert ("abort" in producer.calls, told) == (False, ["fenced"])
    with pytest.raises(FencedError, match="does not lead"):
        writer.write("configs", RECORDS)


def test_a_transaction_that_cannot_even_be_aborted_gives_up_the_lead(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing could be written ever again otherwise, while this coordinator goes on leading."""
    away = KafkaError(KafkaError._TIMED_OUT, "no answer")
    writer, told, error = written(Producer(away, away))
    assert isinstance(error, TransientError)
    assert told == ["fenced"]
    # Who comes after it hears what is the matter, and not that another one leads.
    with pytest.raises(TransientError, match=r"could not write to configs: no answer"):
        writer.write("others", RECORDS)
    fenced = Producer(KafkaError(KafkaError._FENCED, "fenced", True))
    monkeypatch.setattr(FencedWriter, "_begun", lambda self, timeout_s: fenced)
    writer.claim()
    with pytest.raises(FencedError):
        writer.write("others", RECORDS)


def test_a_transaction_the_broker_never_knew_of_costs_a_new_client_and_not_the_lead(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """So it is where the topic may not be written: its first record was refused."""
    refused = KafkaError(KafkaError.TOPIC_AUTHORIZATION_FAILED, "not allowed")
    unknown = KafkaError(KafkaError.INVALID_TXN_STATE, "no transaction", True)
    anew = Producer(None)
    monkeypatch.setattr(FencedWriter, "_begun", lambda self, timeout_s: anew)
    writer, told, error = written(Producer(refused, unknown))
    assert isinstance(error, AuthError)
    assert (told, writer._claimed, writer._client) == ([], True, anew)


def test_of_records_that_were_refused_the_first_reason_is_told() -> None:
    unsaid = KafkaError(KafkaError._INCONSISTENT, "3 message(s) failed delivery (see individual delivery reports)")
    reason = KafkaError(KafkaError.TOPIC_AUTHORIZATION_FAILED, "not allowed")
    _, told, error = written(Producer(unsaid, None, reason))
    assert isinstance(error, AuthError)
    assert ("not allowed" in error.message, told) == (True, [])


def test_who_waits_in_vain_is_told_how_far_each_partition_was_read() -> None:
    followed = TopicLog("offsets", {}, None, lambda key, value: None, group="g")  # type: ignore[arg-type]
    followed._reached(0, 7)
    ends = {TopicPartition("offsets", 1): 3, TopicPartition("offsets", 0): 7}
    with pytest.raises(TransientError, match=r"could not be read to its end within 0\.01 s: partition 1 to 0 of 3\.$"):
        followed.wait_for(ends, 0.01)


class Ends:
    """An admin client that knows where partitions end, for readers of committed records and of all."""

    def __init__(self, stable: dict[int, int], high: dict[int, int]) -> None:
        self._ends = {True: stable, False: high}
        self.asked: list[bool] = []

    def end_offsets(self, partitions: list[TopicPartition], *, committed: bool = False) -> dict[TopicPartition, int]:
        self.asked.append(committed)
        return {
            each: self._ends[committed][each.partition]
            for each in partitions
            if each.partition in self._ends[committed]
        }


@pytest.mark.parametrize(
    ("stable", "high", "settled"),
    [
        ({0: 5, 1: 7}, {0: 5, 1: 7}, True),
        ({0: 5, 1: 6}, {0: 5, 1: 7}, False),  # a transaction is open
        ({0: 5}, {0: 5}, False),  # nothing is known of the other one
    ],
)
def test_ends_are_settled_where_no_transaction_is_open(
    stable: dict[int, int], high: dict[int, int], settled: bool
) -> None:
    admin = Ends(stable, high)
    log = TopicLog("offsets", {}, admin, lambda key, value: None, group="g")  # type: ignore[arg-type]
    log._next = {0: 0, 1: 0}
    expected = {TopicPartition("offsets", 0): 5, TopicPartition("offsets", 1): 7}
    assert log.settled_ends() == (expected if settled else None)
    # The other way round a transaction begun in between would be taken for settled.
    assert admin.asked == [True, False]


def test_a_partition_whose_end_is_not_known_yet_is_asked_for_again() -> None:
    admin = Ends({0: 5}, {})
    log = TopicLog("offsets", {}, admin, lambda key, value: None, group="g")  # type: ignore[arg-type]
    log._next = {0: 5, 1: 0}
    with pytest.raises(TransientError, match=r"did not tell in time where partition\(s\) 1 of offsets end"):
        log.read_to_end(0.1)
    admin = Ends({0: 5, 1: 7}, {})
    log = TopicLog("offsets", {}, admin, lambda key, value: None, group="g")  # type: ignore[arg-type]
    log._next = {0: 5, 1: 7}
    log.read_to_end(0.1)
