"""What a Kafka client's error means."""

from __future__ import annotations

import pytest
from confluent_kafka import KafkaError

from wherry.contract.errors import ErrorClass
from wherry.worker.endpoints.kafka_errors import CLASSES, error_of, is_reconnecting


@pytest.mark.parametrize(
    ("code", "error_class"),
    [
        (KafkaError._ALL_BROKERS_DOWN, ErrorClass.TRANSIENT),
        (KafkaError._AUTHENTICATION, ErrorClass.AUTH),
        (KafkaError.TOPIC_AUTHORIZATION_FAILED, ErrorClass.AUTH),
        (KafkaError._AUTO_OFFSET_RESET, ErrorClass.OFFSET_LOST),
        (KafkaError.UNKNOWN_TOPIC_OR_PART, ErrorClass.CONFIG),
        (KafkaError.MSG_SIZE_TOO_LARGE, ErrorClass.SCHEMA),
        (KafkaError._FENCED, ErrorClass.FENCED),
        (KafkaError._BAD_MSG, ErrorClass.BUG),
    ],
)
def test_a_code_has_one_class(code: int, error_class: ErrorClass) -> None:
    assert error_of(KafkaError(code), "Reading").error_class is error_class


def test_an_error_is_one_sentence_with_cause_and_remedy() -> None:
    error = error_of(KafkaError(KafkaError._AUTO_OFFSET_RESET, "gone"), "Reading topic t, partition 0")
    assert str(error).startswith("Reading topic t, partition 0 failed: gone (_AUTO_OFFSET_RESET).")
    assert "Alter the connector's offsets" in str(error)
    assert error.reason == "AUTO_OFFSET_RESET"


def test_every_code_that_reconnects_by_itself_is_transient() -> None:
    reconnecting = [code for code in CLASSES if is_reconnecting(KafkaError(code))]
    assert reconnecting
    assert all(CLASSES[code].error_class is ErrorClass.TRANSIENT for code in reconnecting)
