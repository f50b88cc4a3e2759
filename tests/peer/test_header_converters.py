"""Random headers through Kafka Connect's own header converters and through ours: read, written, refused alike."""

from __future__ import annotations

from pathlib import Path

from tests.peer.headers.answers import of_kafka_connect, of_wherry, unlike
from tests.peer.headers.questions import drawn

SEED, COUNT = 20_260, 400


def test_random_headers_are_read_written_and_refused_as_kafka_connects_own_classes_do(tmp_path: Path) -> None:
    questions = list(drawn(SEED, COUNT))
    answers = zip(questions, of_kafka_connect(questions, tmp_path), of_wherry(questions), strict=True)
    assert [found for found in answers if unlike(*found)] == []
