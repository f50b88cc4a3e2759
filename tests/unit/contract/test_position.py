"""Positions: bytes as Kafka Connect writes them."""

from __future__ import annotations

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from wherry.contract.errors import ConfigError
from wherry.contract.position import (
    Position,
    TopicPartition,
    compact_json,
    java_double,
    kafka_partition_json,
    kafka_position,
    parse_kafka_position,
)

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=10,
)


@given(st.dictionaries(st.text(), VALUES, max_size=5))
@settings(deadline=None)
def test_compact_json_reads_back_with_its_keys_in_order(value: dict[str, object]) -> None:
    back = json.loads(compact_json(value))
    assert back == value
    assert list(back) == list(value)


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ({"b": 1, "a": 2}, '{"b":1,"a":2}'),
        ({"é": "ü"}, '{"é":"ü"}'),
        ({"c": '\x1f\x1e\n\\u001f"'}, '{"c":"\\u001F\\u001E\\n\\\\u001f\\""}'),
        ({"n": [1.0, {"x": None}], "big": 2**70}, '{"n":[1.0,{"x":null}],"big":1180591620717411303424}'),
        ({"big": 2**70}, '{"big":1180591620717411303424}'),
        ({}, "{}"),
        ({"l": [], "d": {}}, '{"l":[],"d":{}}'),
        ({"t": (1, True)}, '{"t":[1,true]}'),
    ],
)
def test_compact_json_is_what_jackson_writes(value: dict[str, object], text: str) -> None:
    assert compact_json(value) == text


@pytest.mark.parametrize(
    ("value", "text"),
    [  # as printed by jshell, Java 17
        (1.0, "1.0"),
        (1e7, "1.0E7"),
        (12345678.9, "1.23456789E7"),
        (0.001, "0.001"),
        (0.0009, "9.0E-4"),
        (9999999.0, "9999999.0"),
        (1e20, "1.0E20"),
        (-2.5e-10, "-2.5E-10"),
        (123.456, "123.456"),
        (-0.0, "-0.0"),
        (float("nan"), '"NaN"'),
        (float("-inf"), '"-Infinity"'),
    ],
)
def test_doubles_are_printed_as_java_prints_them(value: float, text: str) -> None:
    assert java_double(value) == text


def test_what_json_cannot_hold_is_refused() -> None:
    with pytest.raises(ConfigError, match="can't be written as JSON"):
        compact_json({"a": {1: 2}})
    with pytest.raises(ConfigError, match="can't be written as JSON"):
        compact_json({"a": object()})


def test_a_kafka_position_goes_both_ways() -> None:
    position = kafka_position("orders", 3, 42)
    assert position == Position('{"kafka_topic":"orders","kafka_partition":3}', '{"kafka_offset":42}')
    assert parse_kafka_position(position) == (TopicPartition("orders", 3), 42)
    assert kafka_partition_json("orders", 3) == position.partition
    assert parse_kafka_position(kafka_position("orders", 3, None)) == (TopicPartition("orders", 3), None)


@pytest.mark.parametrize(
    ("partition", "offset", "sentence"),
    [
        ('{"kafka_topic":"t"}', None, "doesn't name a Kafka topic partition"),
        ('{"kafka_topic":"t","kafka_partition":true}', None, "doesn't name a Kafka topic partition"),
        ('{"kafka_topic":"t","kafka_partition":0}', '{"pos":1}', "isn't a Kafka offset"),
        ("[1]", None, "isn't a JSON object"),
        ("{", None, "isn't JSON"),
    ],
)
def test_what_is_no_kafka_position_is_refused(partition: str, offset: str | None, sentence: str) -> None:
    with pytest.raises(ConfigError, match=sentence):
        parse_kafka_position(Position(partition, offset))


def test_maps_come_back_from_a_position() -> None:
    position = Position.of({"file": "a"}, {"pos": 1})
    assert (position.partition_map, position.offset_map) == ({"file": "a"}, {"pos": 1})
    assert Position.of({"file": "a"}, None).offset_map is None
