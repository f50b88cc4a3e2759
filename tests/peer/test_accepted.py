"""What is accepted as a difference is no more than its reason says."""

from __future__ import annotations

import json
from typing import Any

import pytest
from tests.peer.differential.accepted import reason_for
from tests.peer.differential.cases import FILE_SINK, SHOWN_SINK, TYPED_SOURCE, Case, Record
from tests.peer.differential.play import Written
from tests.peer.differential.report import Difference

MASK = "org.apache.kafka.connect.transforms.MaskField$Value"


def line(one: bytes, other: bytes, *, sink: str = FILE_SINK) -> Difference:
    return Difference(Case(1, {"connector.class": sink}), "lines", 0, one, other, ([one], [other]))


@pytest.mark.parametrize(
    ("one", "other", "accepted"),
    [
        (b"{a=1, b={c=2}}", b"{b={c=2}, a=1}", True),
        (b"{a=1, b=2}", b"{b=1, a=2}", False),
        (b"{a=1, b=2}", b"{a=1}", False),
        (b"Struct{a=1,b=2}", b"Struct{b=2,a=1}", False),
        (b"{d=Mon Dec 15 00:00:00 UTC 1969}", b"{d=1969-12-15T00:00:00.000Z}", True),
        (b"{d=Mon Dec 15 00:00:00 UTC 1969}", b"{d=1969-12-16T00:00:00.000Z}", False),
        (b"{d=Sun Feb 28 00:00:00 UTC 225059}", b"{d=-225063-07-14T00:00:00.000Z}", True),
        (b"{d=Sun Feb 28 00:00:00 UTC 225059}", b"{d=+225059-02-28T00:00:00.000Z}", False),
        (b"{d=Mon Dec 15 00:00:00 UTC 1969}", b"{d=-1468800000}", False),
        (b"Struct{d=Mon Dec 15 00:00:00 UTC 1969}", b"Struct{d=1969-12-15T00:00:00.000Z}", False),
        (b"[B@", b"text", True),
        (b"1.0E10", b"1.0E11", False),
    ],
)
def test_a_line_may_differ_in_the_order_of_a_map_and_in_the_form_of_a_date(
    one: bytes, other: bytes, accepted: bool
) -> None:
    assert (reason_for(line(one, other)) is not None) == accepted


def written(key: bytes | None, value: bytes | None) -> Written:
    return Written("{x}-*", key, value, (), None)


def enveloped(schema: Any, payload: Any) -> bytes:
    return json.dumps({"schema": schema, "payload": payload}).encode()


MAP = {"type": "map", "keys": {"type": "string"}, "values": {"type": "int32"}}
STRUCT = {"type": "struct", "fields": [{"field": "a", "type": "int32"}, {"field": "b", **MAP}]}


@pytest.mark.parametrize(
    ("one", "other", "accepted"),
    [
        (enveloped(None, {"a": "\u4e2d", "b": 2}), enveloped(None, {"b": 2, "a": "\u4e2d"}), True),
        (
            b'{"schema":null,"payload":{"a":"\\u4e2d","b":2}}',
            '{"schema":null,"payload":{"b":2,"a":"中"}}'.encode(),
            True,
        ),
        (enveloped(None, {"a": 1, "b": 2}), enveloped(None, {"a": 2, "b": 1}), False),
        (enveloped(None, {"a": 1, "b": {"c": 2}}), enveloped(None, {"a": 1, "b": {}, "c": 2}), False),
        (enveloped(None, {"a": 1}), enveloped(None, {"a": 1.0}), False),
        (enveloped(MAP, {"a": 1, "b": 2}), enveloped(MAP, {"b": 2, "a": 1}), True),
        (enveloped(STRUCT, {"a": 1, "b": {"x": 1, "y": 2}}), enveloped(STRUCT, {"a": 1, "b": {"y": 2, "x": 1}}), True),
        (enveloped(STRUCT, {"a": 1, "b": {"x": 1}}), enveloped(STRUCT, {"b": {"x": 1}, "a": 1}), False),
        (enveloped(MAP, {"a": 1}), enveloped({**MAP, "optional": False}, {"a": 1}), False),
    ],
)
def test_the_order_of_members_may_differ_where_a_hash_map_makes_it(one: bytes, other: bytes, accepted: bool) -> None:
    pair = written(b"{a=1, b=2}", one), written(b"{b=2, a=1}", other)
    difference = Difference(Case(1, {"connector.class": TYPED_SOURCE}), "written", 0, *pair, ([pair[0]], [pair[1]]))
    assert (reason_for(difference) is not None) == accepted


def test_a_record_may_differ_in_key_and_value_for_two_reasons_and_not_in_a_third_column() -> None:
    one, other = written(b"{a=1, b=2}", b"null"), written(b"{b=2, a=1}", None)
    case = Case(1, {"connector.class": TYPED_SOURCE})
    assert reason_for(Difference(case, "written", 0, one, other)) is not None
    other = other._replace(timestamp_ms=3)
    assert reason_for(Difference(case, "written", 0, one, other)) is None


def test_numbers_of_double_precision_are_compared_to_the_last_digit() -> None:
    assert reason_for(line(b"{a=1.2345678901234, b=2}", b"{b=2, a=1.2345678901235}")) is None
    assert reason_for(line(b"1.2345678901234", b"1.2345678901235")) is None
    assert reason_for(line(b"{a=2.001E10, b=2}", b"{b=2, a=2.0E10}")) is None
    assert reason_for(line(b"{a=1.17549435E-38, b=2}", b"{b=2, a=1.1754944E-38}")) is not None


def shown(value: Any, offset: int = 3) -> bytes:
    return json.dumps({"offset": offset, "key": None, "value": value}, sort_keys=True).encode()


@pytest.mark.parametrize(
    ("one", "other", "accepted"),
    [
        ({"unwritable": True}, {"schema": None, "payload": {"d": "1969-12-15T00:00:00.000Z"}}, True),
        ({"unwritable": True}, {"schema": None, "payload": {"d": -1_468_800_000}}, False),
        ({"unwritable": True}, {"schema": {"type": "string"}, "payload": "1969-12-15T00:00:00.000Z"}, False),
        ({"unwritable": True}, None, False),
    ],
)
def test_what_kafka_connect_cannot_show_must_hold_a_date(one: Any, other: Any, accepted: bool) -> None:
    assert (reason_for(line(shown(one), shown(other), sink=SHOWN_SINK)) is not None) == accepted


def masked(replacement: str, written: list[bytes], ours: list[bytes], *, field: str = "price") -> Difference:
    decimal = {"type": "bytes", "name": "org.apache.kafka.connect.data.Decimal", "parameters": {"scale": "2"}}
    value = {"schema": {"type": "struct", "fields": [{**decimal, "field": "price"}]}, "payload": {"price": "AQ=="}}
    config = {"connector.class": TYPED_SOURCE, "transforms.m.type": MASK}
    config |= {"transforms.m.fields": field, "transforms.m.replacement": replacement}
    case = Case(1, config, lines=(json.dumps({"key": None, "value": value}),))
    both = tuple([Written("{x}-0", None, each, (), None) for each in records] for records in (written, ours))
    return Difference(case, "written", 0, both[0][0] if both[0] else None, both[1][0], (both[0], both[1]))


def test_decimals_masked_by_another_scale_may_be_missing_in_kafka_connect_and_nothing_else() -> None:
    assert reason_for(masked("7", [b"2"], [b"1", b"2"])) is not None
    assert reason_for(masked("7", [b"3"], [b"1", b"2"])) is None
    assert reason_for(masked("7", [b"1"], [b"2"])) is None
    assert reason_for(masked("1.50", [b"2"], [b"1", b"2"])) is None
    assert reason_for(masked("7", [b"2"], [b"1", b"2"], field="other")) is None


def test_records_of_a_topic_count_as_those_of_a_file() -> None:
    difference = masked("7", [b"2"], [b"1", b"2"])
    text = difference.case.lines[0]
    envelope = json.dumps(json.loads(text)["value"]).encode()
    case = Case(2, difference.case.config, records=(Record(None, envelope, (), 0),))
    assert reason_for(Difference(case, "state", 0, ("FAILED", ""), ("RUNNING", ""))) is not None
    assert reason_for(Difference(case, "state", 0, ("RUNNING", ""), ("FAILED", ""))) is None
