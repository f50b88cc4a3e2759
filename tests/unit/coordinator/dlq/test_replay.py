"""What a replay asks of Kafka before it begins, as far as answers may be whole or not."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
from confluent_kafka import KafkaError

from wherry.contract.errors import ConfigError, TransientError, WherryError
from wherry.coordinator.dlq.letters import Rules
from wherry.coordinator.dlq.replay import Replay


class Letters:
    """A dead letter topic of two partitions with ten letters each, as a consumer sees it."""

    def __init__(self, *progress: tuple[int, Any], missing: Any = None) -> None:
        self.progress = progress
        self.missing = missing
        self.assigned: list[tuple[int, int]] = []

    def list_topics(self, topic: str, timeout: float) -> Any:
        partitions = {} if self.missing else dict.fromkeys(range(len(self.progress)))
        return SimpleNamespace(topics={topic: SimpleNamespace(error=self.missing, partitions=partitions)})

    def committed(self, natives: list[Any], timeout: float) -> list[Any]:
        return [
            SimpleNamespace(partition=native.partition, topic=native.topic, offset=offset, error=error)
            for native, (offset, error) in zip(natives, self.progress, strict=True)
        ]

    def get_watermark_offsets(self, native: Any, timeout: float) -> tuple[int, int]:
        return 0, 10

    def assign(self, natives: list[Any]) -> None:
        self.assigned = [(native.partition, native.offset) for native in natives]

    def consume(self, count: int, timeout: float) -> list[Any]:
        return []

    def close(self) -> None:
        return


def replayed(letters: Letters, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("confluent_kafka.Consumer", lambda settings: letters)
    monkeypatch.setattr("wherry.coordinator.dlq.replay.SILENCE_MAX_S", 0.0)
    Replay("dead", Rules(), "g", {}, {}).run(dry_run=True)


def test_a_replay_goes_on_where_it_was(monkeypatch: pytest.MonkeyPatch) -> None:
    letters = Letters((-1001, None), (4, None))
    with pytest.raises(TransientError, match="Nothing more came"):
        replayed(letters, monkeypatch)
    assert letters.assigned == [(0, 0), (1, 4)]


def test_progress_that_is_not_told_is_not_taken_for_none(monkeypatch: pytest.MonkeyPatch) -> None:
    letters = Letters((-1001, KafkaError(KafkaError.NOT_COORDINATOR)), (4, None))
    with pytest.raises(TransientError, match="Replaying dead failed"):
        replayed(letters, monkeypatch)
    assert letters.assigned == []


@pytest.mark.parametrize(
    ("code", "raised", "said"),
    [
        (KafkaError.UNKNOWN_TOPIC_OR_PART, ConfigError, "There is no topic dead"),
        (KafkaError.LEADER_NOT_AVAILABLE, TransientError, "Replaying dead failed"),
    ],
)
def test_a_topic_that_is_not_told_of_now_is_not_taken_for_a_missing_one(
    code: int, raised: type[WherryError], said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(raised, match=said):
        replayed(Letters(missing=KafkaError(code)), monkeypatch)
