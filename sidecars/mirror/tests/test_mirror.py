"""Which topics are mirrored by whom, how settings follow, how offsets are translated; keys are MirrorMaker's."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from wherry.contract.errors import ConfigError
from wherry.contract.mirror import OffsetSync, Policy
from wherry_mirror.checkpoint import MirrorCheckpoint
from wherry_mirror.filters import dealt, matcher, mirrored_topics
from wherry_mirror.heartbeat import MirrorHeartbeat
from wherry_mirror.source import MirrorSource, changed
from wherry_mirror.syncs import KEPT_MAX, SyncStore

KEYS = json.loads((Path(__file__).parents[3] / "tests" / "cases" / "mirror" / "keys-4.3.1.json").read_text())
CLASSES: dict[str, Any] = {"Source": MirrorSource, "Checkpoint": MirrorCheckpoint, "Heartbeat": MirrorHeartbeat}
# Java only: an admin client of one's own.
NOT_HERE = {"forwarding.admin.class"}


@pytest.mark.parametrize("kind", CLASSES)
def test_keys_types_defaults_and_importance_are_mirrormakers(kind: str) -> None:
    ours = {
        key.name: [key.name, key.type.name, key.default_value, key.required, key.importance.name]
        for key in CLASSES[kind].definition().keys
    }
    assert ours == {key[0]: key for key in KEYS[kind] if key[0] not in NOT_HERE}


def topics(*names: str, policy: Policy | None = None, heartbeats: bool = True) -> list[str]:
    return mirrored_topics(
        names,
        policy or Policy(),
        target="B",
        included=matcher([".*"], "topics"),
        excluded=matcher(["left.*", "__.*"], "topics.exclude"),
        heartbeats=heartbeats,
    )


def test_internal_excluded_and_returning_topics_are_left_out() -> None:
    there = (
        "orders",
        "left.out",
        "B.orders",
        "C.orders",
        "mm2-offset-syncs.B.internal",
        "A.checkpoints.internal",
        "__x",
    )
    assert topics(*there) == ["C.orders", "orders"]


def test_heartbeats_go_along_if_they_may_and_never_back() -> None:
    assert topics("heartbeats", "C.heartbeats", "B.heartbeats") == ["C.heartbeats", "heartbeats"]
    assert topics("heartbeats", heartbeats=False) == []


def test_names_kept_by_an_identity_policy_are_copied_whatever_they_look_like() -> None:
    assert topics("orders", "B.orders", policy=Policy(identity=True, source="A")) == ["B.orders", "orders"]


def test_a_pattern_that_is_none_is_refused_with_its_key() -> None:
    with pytest.raises(ConfigError, match=r"Invalid value \( for configuration groups"):
        matcher(["("], "groups")


def test_partitions_are_dealt_out_in_turn() -> None:
    parts = [("a", 0), ("a", 1), ("b", 0)]
    assert dealt(parts, 2) == [[("a", 0), ("b", 0)], [("a", 1)]]
    assert dealt(parts, 9) == [[parts[0]], [parts[1]], [parts[2]]]
    assert dealt([], 2) == []


def test_settings_follow_their_origin_and_those_excluded_stay() -> None:
    excluded = matcher(["min.*"], "x")
    wanted = {"retention.ms": "1", "cleanup.policy": "compact"}
    found = {"retention.ms": "2", "cleanup.policy": "compact", "segment.ms": "9", "min.insync.replicas": "1"}
    assert changed(wanted, found, excluded) == {"retention.ms": "1", "segment.ms": None}


def store(*syncs: tuple[int, int]) -> SyncStore:
    made = SyncStore()
    for upstream, downstream in syncs:
        made.add(OffsetSync("t", 0, upstream, downstream))
    return made


@pytest.mark.parametrize(
    ("upstream", "expected"), [(0, 0), (1, 1), (60, 1), (101, 101), (102, 102), (200, 150), (999, 151)]
)
def test_an_offset_is_translated_to_just_after_the_latest_sync_before_it(upstream: int, expected: int) -> None:
    assert store((0, 0), (101, 101), (200, 150)).translated("t", 0, upstream) == expected


def test_nothing_is_known_before_the_first_sync_or_of_another_partition() -> None:
    assert store((10, 0)).translated("t", 0, 9) is None
    assert store((10, 0)).translated("t", 1, 10) is None


def test_a_topic_made_anew_voids_what_was_known() -> None:
    made = store((100, 100), (200, 200))
    made.add(OffsetSync("t", 0, 0, 300))
    assert made.translated("t", 0, 150) == 301
    made.add(OffsetSync("t", 0, 50, 10))
    assert made.translated("t", 0, 150) == 11


def test_many_syncs_are_thinned_out_and_never_translate_too_far() -> None:
    made = store(*((n * 10, n * 7) for n in range(10_000)))
    assert len(made._syncs["t", 0]) <= KEPT_MAX
    for upstream in range(0, 100_000, 997):
        found = made.translated("t", 0, upstream)
        assert found is not None
        assert found <= upstream // 10 * 7 + 1
    assert made.translated("t", 0, 99_990) == 69_993
