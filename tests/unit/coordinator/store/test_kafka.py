"""What is told when Kafka takes no records."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from wherry.contract.errors import TransientError
from wherry.coordinator.api import TargetState
from wherry.coordinator.store.configlog import connector_records
from wherry.coordinator.store.kafka import KafkaConfigStore, Place


class Away:
    """A writer whose broker is away."""

    def write(self, topic: str, records: Any) -> Any:
        raise TransientError(f"Kafka could not write to {topic}: no answer.")


def store() -> KafkaConfigStore:
    admin: Any = None
    topic: Any = type("Topic", (), {"name": "my-config"})
    made = KafkaConfigStore(Place(topic, {"bootstrap.servers": "none:1"}, admin, "g", Away(), lambda: None))
    made.kept._ready = True
    for key, value in connector_records("c", {"name": "c"}, None, before=None):
        made._state.apply(key.encode(), value)
    return made


@pytest.mark.parametrize(
    ("act", "what"),
    [
        (lambda kept: kept.put_target_state("c", TargetState.PAUSED), "target state"),
        (lambda kept: kept.put_logger_level("org.x", "INFO"), "logger level"),
    ],
)
def test_what_could_not_be_written_is_told_in_kafka_connects_words_and_then_why(
    act: Callable[[KafkaConfigStore], None], what: str
) -> None:
    with pytest.raises(TransientError) as caught:
        act(store())
    assert caught.value.message == f"Error writing {what} to Kafka: Kafka could not write to my-config: no answer."


def test_what_is_not_there_is_not_written() -> None:
    store().put_target_state("unknown", TargetState.PAUSED)
