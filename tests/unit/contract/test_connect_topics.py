"""Records of the offsets topic: those of the real worker, and what must not be taken for one."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from wherry.contract.connect_topics import OffsetLog, offset_record, offset_records, parse_offset_record
from wherry.contract.position import Position

GOLDEN = json.loads((Path(__file__).parents[2] / "cases/internal_topics.json").read_text())["connect-offsets"]


def test_the_real_workers_records_are_read_and_written_again_byte_for_byte():
    for row in GOLDEN:
        key, value = row["key"].encode(), None if row["value"] is None else row["value"].encode()
        parsed = parse_offset_record(key, value)
        assert parsed is not None
        record = offset_record(*parsed)
        assert (record.key, record.value) == (key, value)


def test_the_last_record_of_a_partition_counts_and_null_forgets_it():
    log = OffsetLog()
    seen = []
    for row in GOLDEN:
        assert log.apply(row["key"].encode(), None if row["value"] is None else row["value"].encode())
        seen.append([position.offset for position in log.positions("src")])
    assert seen == [['{"position":6}'], [], ['{"position":6}']]
    assert log.connectors() == ["src"]


def test_keys_in_another_order_are_another_partition():
    log = OffsetLog()
    for order in ({"a": 1, "b": 2}, {"b": 2, "a": 1}):
        record = offset_record("c", Position.of(order, {"o": len(log.positions("c"))}))
        log.apply(record.key, record.value)
    assert [position.partition for position in log.positions("c")] == ['{"a":1,"b":2}', '{"b":2,"a":1}']


def test_names_and_partitions_with_quotes_and_other_alphabets_come_back():
    position = Position.of({"t\u00fc": 'x"\\],[', "n": None}, {"o": 1.5e300, "\u20ac": "\n"})
    (record,) = offset_records('na"me,\u00e9]', [position])
    assert record.key == '["na\\"me,\u00e9]",{"t\u00fc":"x\\"\\\\],[","n":null}]'.encode()
    assert parse_offset_record(record.key, record.value) == ('na"me,\u00e9]', position)


@pytest.mark.parametrize(
    ("key", "value"),
    [
        (None, b"{}"),
        (b"", b"{}"),
        (b'["c"]', b"{}"),
        (b'["c",1]', b"{}"),
        (b'["c",{"a":1},2]', b"{}"),
        (b'["c", {"a":1}]', b"{}"),
        (b'["c",{"a":1}', b"{}"),
        (b'[1,{"a":1}]', b"{}"),
        (b'["c",{"a":"\xff"}]', b"{}"),
        (b'["c",{"a":1}]', b"[1]"),
        (b'["c",{"a":1}]', b"{"),
    ],
)
def test_what_is_no_position_is_left_aside(key, value):
    log = OffsetLog()
    assert not log.apply(key, value)
    assert log.connectors() == []


def test_a_json_null_forgets_as_a_tombstone_does():
    log = OffsetLog()
    log.apply(b'["c",{"a":1}]', b'{"o":1}')
    assert log.apply(b'["c",{"a":1}]', b"null")
    assert log.positions("c") == []


def test_forgetting_what_was_never_known_is_fine():
    log = OffsetLog()
    assert log.apply(b'["c",{"a":1}]', None)
    assert log.connectors() == []
