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
