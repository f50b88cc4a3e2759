"""Requests to alter a sink's offsets, with the real worker's messages."""

from __future__ import annotations

import pytest

from wherry.contract.position import Position
from wherry.coordinator.api import BadRequestError
from wherry.coordinator.offsets import sink_positions

KEYS = "The partition for a sink connector offset must contain the keys 'kafka_topic' and 'kafka_partition'"
OFFSET = "The offset for a sink connector should either be null or contain the key 'kafka_offset'"


def altered(partition, offset):
    return sink_positions([Position.of(partition, offset)])


@pytest.mark.parametrize("number", [3, "3", "+3"])
def test_numbers_may_be_texts(number):
    found = altered({"kafka_partition": number, "kafka_topic": "t", "x": 1}, {"kafka_offset": number, "y": 2})
    assert found == [Position('{"kafka_topic":"t","kafka_partition":3}', '{"kafka_offset":3}')]


def test_a_null_offset_resets_the_partition():
    assert altered({"kafka_topic": "t", "kafka_partition": 0}, None)[0].offset is None


@pytest.mark.parametrize(
    ("partition", "offset", "message"),
    [
        ({}, None, KEYS),
        ({"kafka_topic": "t"}, {"kafka_offset": 0}, KEYS),
        ({"kafka_partition": 0}, {"kafka_offset": 0}, KEYS),
        (
            {"kafka_topic": None, "kafka_partition": 0},
            None,
            "Kafka topic names must be valid strings and may not be null",
        ),
        (
            {"kafka_topic": "t", "kafka_partition": None},
            None,
            "Kafka partitions must be valid numbers and may not be null",
        ),
        ({"kafka_topic": "t", "kafka_partition": 0}, {}, OFFSET),
        ({"kafka_topic": "t", "kafka_partition": 0}, {"k": 1}, OFFSET),
        (
            {"kafka_topic": "t", "kafka_partition": "x"},
            None,
            "Failed to parse the following Kafka partition value in the provided offsets: 'x'. Partition values for "
            "sink connectors need to be integers.",
        ),
        (
            {"kafka_topic": "t", "kafka_partition": 0},
            {"kafka_offset": 1.5},
            "Failed to parse the following Kafka offset value in the provided offsets: '1.5'. Offset values for sink "
            "connectors need to be integers.",
        ),
    ],
)
def test_a_wrong_shape_is_told_in_kafkas_words(partition, offset, message):
    with pytest.raises(BadRequestError) as refused:
        altered(partition, offset)
    assert refused.value.message == message


@pytest.mark.parametrize("number", [2**31, True, "", "1 ", "٣"])
def test_what_java_would_not_parse_is_refused(number):
    with pytest.raises(BadRequestError):
        altered({"kafka_topic": "t", "kafka_partition": number}, None)
