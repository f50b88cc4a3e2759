"""What clusters agree on: MirrorMaker's own records read and written byte for byte, names, positions, settings."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from wherry.contract.errors import ConfigError
from wherry.contract.mirror import (
    IDENTITY_POLICY,
    Checkpoint,
    Heartbeat,
    OffsetSync,
    Policy,
    client_settings,
    mirror_position,
    parse_mirror_position,
)
from wherry.contract.position import Position

CASES = json.loads((Path(__file__).parents[2] / "cases" / "mirror" / "records-4.3.1.json").read_text())
KINDS: dict[str, Any] = {"offset_syncs": OffsetSync, "checkpoints": Checkpoint, "heartbeats": Heartbeat}


@pytest.mark.parametrize(("kind", "key", "value"), [(kind, *record) for kind in KINDS for record in CASES[kind]])
def test_mirrormakers_records_are_read_and_written_byte_for_byte(kind: str, key: str, value: str) -> None:
    parsed = KINDS[kind].parse(bytes.fromhex(key), bytes.fromhex(value))
    assert [part.hex() for part in parsed.record()] == [key, value]


def test_the_fields_are_where_mirrormaker_has_them() -> None:
    sync = OffsetSync.parse(*(bytes.fromhex(part) for part in CASES["offset_syncs"][2]))
    assert sync == OffsetSync("t", 0, 101, 101)
    found = Checkpoint.parse(*(bytes.fromhex(part) for part in CASES["checkpoints"][1]))
    assert found == Checkpoint("app", "A.t", 0, 60, 1, "")


@pytest.mark.parametrize("kind", [OffsetSync, Checkpoint, Heartbeat])
@pytest.mark.parametrize(("key", "value"), [(b"", b""), (b"\x00\x05abc", b"\x00" * 40), (b"\xff\xff", b"\x00" * 40)])
def test_damaged_records_are_told_apart(kind: Any, key: bytes, value: bytes) -> None:
    with pytest.raises(ValueError, match=r"record|text"):
        kind.parse(key, value)


def test_a_later_version_is_not_guessed_at() -> None:
    with pytest.raises(ValueError, match="version 1"):
        Heartbeat.parse(b"\x00\x01A\x00\x01B", b"\x00\x01" + b"\x00" * 8)


def test_remote_topics_and_their_origin() -> None:
    policy = Policy.of({"replication.policy.separator": "_"})
    assert policy.remote("A", "t") == "A_t"
    assert policy.origin("A_t") == "A"
    assert policy.origin("t") is None
    assert (policy.offset_syncs("B"), policy.checkpoints("A")) == (
        "mm2-offset-syncs_B_internal",
        "A_checkpoints_internal",
    )
    old = Policy.of(
        {"replication.policy.separator": "_", "replication.policy.internal.topic.separator.enabled": "false"}
    )
    assert old.checkpoints("A") == "A.checkpoints.internal"


def test_an_identity_policy_marks_heartbeats_only() -> None:
    policy = Policy.of({"replication.policy.class": IDENTITY_POLICY, "source.cluster.alias": "A"})
    assert (policy.remote("A", "t"), policy.remote("A", "heartbeats")) == ("t", "A.heartbeats")


def test_a_policy_of_somebody_else_is_refused() -> None:
    with pytest.raises(ConfigError, match=r"org\.example\.Mine"):
        Policy.of({"replication.policy.class": "org.example.Mine"})


@pytest.mark.parametrize(
    ("topic", "internal"),
    [
        ("mm2-offset-syncs.B.internal", True),
        ("A.checkpoints.internal", True),
        ("__consumer_offsets", True),
        ("connect-offsets", False),
        ("orders", False),
    ],
)
def test_internal_topics_are_known(topic: str, internal: bool) -> None:
    assert Policy().is_internal(topic) is internal


def test_a_position_holds_the_record_mirrored_last() -> None:
    position = mirror_position("A", "t", 3, 124)
    assert position == Position('{"cluster":"A","partition":3,"topic":"t"}', '{"offset":124}')
    assert parse_mirror_position(position) == ("A", "t", 3, 124)
    assert parse_mirror_position(mirror_position("A", "t", 3, None)) == ("A", "t", 3, None)


@pytest.mark.parametrize("partition", ['{"topic":"t"}', '{"cluster":"A","partition":"0","topic":"t"}'])
def test_other_positions_are_refused_with_one_that_would_do(partition: str) -> None:
    with pytest.raises(ConfigError, match="is no position of a mirror"):
        parse_mirror_position(Position(partition, '{"offset":1}'))


def test_the_more_special_setting_of_a_client_wins() -> None:
    config = {
        "source.cluster.alias": "A",
        "source.cluster.bootstrap.servers": "a:1",
        "source.cluster.security.protocol": "SSL",
        "consumer.fetch.min.bytes": "1",
        "source.consumer.fetch.min.bytes": "2",
        "target.consumer.fetch.min.bytes": "3",
        "consumer.override.fetch.min.bytes": "4",
    }
    assert client_settings(config, "source", "consumer") == {
        "bootstrap.servers": "a:1",
        "security.protocol": "SSL",
        "fetch.min.bytes": "2",
    }
