"""Requests to alter offsets, with the real worker's messages."""

from __future__ import annotations

import pytest

from wherry.contract.position import Position
from wherry.coordinator.api import ApiError, BadRequestError
from wherry.coordinator.offsets import NO_PARTITION, failed_to_alter, sink_positions, source_positions

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
        (
            {"kafka_topic": "t", "kafka_partition": 0},
            {"kafka_offset": {"a": [1, True, None]}},
            "Failed to parse the following Kafka offset value in the provided offsets: '{a=[1, true, null]}'. Offset "
            "values for sink connectors need to be integers.",
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


@pytest.mark.parametrize(
    ("partition", "offset", "message"),
    [
        ({"f": [1]}, {"p": 1}, "field f contains ARRAY"),
        ({"f": "x"}, {"p": {"a": 1}}, "field p contains MAP"),
        ({"f": "x"}, {"p": 2**63}, r"field p contains class java\.math\.BigInteger"),
        (None, {"p": 1}, "Partition objects cannot be null"),
    ],
)
def test_a_sources_position_that_is_not_plain_is_refused(partition, offset, message):
    position = Position(NO_PARTITION, '{"p":1}') if partition is None else Position.of(partition, offset)
    with pytest.raises(ApiError, match=message) as caught:
        source_positions([position])
    assert caught.value.status == 500


def test_a_sources_plain_positions_are_taken_as_they_are_and_nothing_of_nothing_is_left_out():
    good = Position.of({"f": "x"}, {"p": 1, "d": 1.5, "b": True, "n": None, "t": "y"})
    assert source_positions([good, Position(NO_PARTITION, None), Position.of({}, None)]) == [
        good,
        Position.of({}, None),
    ]


def test_a_sinks_position_without_partition_is_refused():
    with pytest.raises(BadRequestError, match="cannot be null or missing"):
        sink_positions([Position(NO_PARTITION, None)])


def test_a_sinks_null_number_is_no_number():
    with pytest.raises(BadRequestError, match="offset value in the provided offsets: 'null'"):
        sink_positions([Position.of({"kafka_topic": "t", "kafka_partition": 0}, {"kafka_offset": None})])


@pytest.mark.parametrize(
    ("number", "begins"), [(-1, "Failed to modify offsets"), (5, "Failed to alter consumer group")]
)
def test_what_kafka_does_not_take_is_told_as_kafka_connect_tells_it(number, begins):
    position = Position.of({"kafka_topic": "t", "kafka_partition": 0}, {"kafka_offset": number})
    assert failed_to_alter("c", [position]).startswith(begins)
