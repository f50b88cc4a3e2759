"""Reading an offsets topic from a broker inside the process."""

from __future__ import annotations

import time
from types import SimpleNamespace
from typing import Any

import pytest
from confluent_kafka import Producer

from wherry.contract.connect_topics import offset_records
from wherry.contract.errors import TransientError
from wherry.contract.offsets_topic import _latest, read_positions
from wherry.contract.position import Position

ATTEMPTS = 50
# A client that waits for nothing takes a tenth of that; one that does, half a second each time: one quick one is proof.
QUICK_S = 0.4


def test_what_was_stored_last_is_read_and_at_once() -> None:
    producer = Producer({"bootstrap.servers": "none", "test.mock.num.brokers": 1, "linger.ms": 0, "log_level": 0})
    broker = next(iter(producer.list_topics(timeout=60).brokers.values()))
    stored = [Position(f'{{"p":{number}}}', f'{{"n":{number}}}') for number in range(20)]
    for positions in (stored[:5], [Position(stored[0].partition, '{"n":100}')], stored[5:]):
        for record in offset_records("c", positions):
            producer.produce("offsets", record.value, record.key)
    for record in offset_records("other", stored):
        producer.produce("offsets", record.value, record.key)
    assert producer.flush(60) == 0
    shortest = float("inf")
    for _ in range(ATTEMPTS):
        begun = time.monotonic()
        found = read_positions({"bootstrap.servers": f"{broker.host}:{broker.port}"}, "offsets", "c")
        shortest = min(shortest, time.monotonic() - begun)
        assert len(found) == len(stored)
        assert found[stored[0].partition].offset == '{"n":100}'
        assert found[stored[19].partition] == stored[19]
        if shortest < QUICK_S:
            break
    assert shortest < QUICK_S


def test_a_partition_whose_end_is_not_told_is_not_taken_for_an_empty_one() -> None:
    def told(asked: list[Any], timeout: float) -> list[Any]:
        return [SimpleNamespace(partition=each.partition, offset=7 - 8 * each.partition, error=None) for each in asked]

    consumer = SimpleNamespace(offsets_for_times=told)
    assert _latest(consumer, "offsets", [0], 0.0) == {0: 7}
    with pytest.raises(TransientError, match="did not tell where partition 1 of offsets ends"):
        _latest(consumer, "offsets", [0, 1], 0.0)
