"""Which topics are mirrored by whom, how settings follow, how offsets are translated; keys are MirrorMaker's."""

from __future__ import annotations

import json
from concurrent.futures import Future
from contextlib import nullcontext
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from confluent_kafka import KafkaError, TopicPartition

from wherry.contract.errors import AuthError, ConfigError, TransientError, WherryError
from wherry.contract.mirror import Checkpoint, OffsetSync, Policy
from wherry.sdk import Context, Offsets
from wherry_mirror import checkpoint
from wherry_mirror.acls import Acl, mirrored_acls
from wherry_mirror.checkpoint import MirrorCheckpoint, is_news
from wherry_mirror.clusters import Cluster
from wherry_mirror.config import SourceConfig
from wherry_mirror.filters import dealt, matcher, mirrored
from wherry_mirror.heartbeat import MirrorHeartbeat
from wherry_mirror.settings import Setting, changed, wanted_settings
from wherry_mirror.source import MirrorSource
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
    wanted = mirrored(
        policy or Policy(),
        target="B",
        included=matcher([".*"], "topics"),
        excluded=matcher(["left.*", "__.*"], "topics.exclude"),
        heartbeats=heartbeats,
    )
    return sorted(filter(wanted, names))


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
    own = {"retention.ms": "2", "cleanup.policy": "compact", "segment.ms": "9", "min.insync.replicas": "1"}
    found = {name: Setting(value) for name, value in own.items()} | {"flush.ms": Setting("5", of_topic=False)}
    assert changed(wanted, found, excluded) == {"retention.ms": "1", "segment.ms": None}


def test_what_somebody_chose_is_copied_and_defaults_only_when_asked_for() -> None:
    settings = {
        "retention.ms": Setting("1"),
        "flush.ms": Setting("2", of_topic=False),
        "segment.bytes": Setting("3", is_default=True, of_topic=False),
        "index.interval.bytes": Setting("4", of_topic=False, of_file=True),
        "min.insync.replicas": Setting("5"),
    }
    excluded = matcher(["min.*"], "x")
    chosen = {"retention.ms": "1", "flush.ms": "2"}
    assert wanted_settings(settings, excluded, defaults=False) == chosen
    assert wanted_settings(settings, excluded, defaults=True) == {**chosen, "segment.bytes": "3"}


@pytest.mark.parametrize(
    ("permission", "operation", "expected"),
    [("ALLOW", "READ", "READ"), ("ALLOW", "ALL", "READ"), ("ALLOW", "WRITE", None), ("ALLOW", "DELETE", "DELETE"),
     ("DENY", "WRITE", "WRITE"), ("DENY", "ALL", "ALL")],
)  # fmt: skip
def test_rights_to_write_stay_behind(permission: str, operation: str, expected: str | None) -> None:
    acl = Acl("orders", "User:u", "*", operation, permission)
    found = mirrored_acls([acl], lambda topic: True, lambda topic: f"A.{topic}")
    assert [(each.topic, each.operation, each.permission) for each in found] == (
        [("A.orders", expected, permission)] if expected else []
    )


def test_rules_of_prefixes_and_of_other_topics_stay_behind() -> None:
    acls = [Acl("ord", "User:u", "*", "READ", "ALLOW", literal=False), Acl("x", "User:u", "*", "READ", "ALLOW")]
    assert mirrored_acls(acls, lambda topic: topic != "x", str) == []


@pytest.mark.parametrize(
    ("upstream", "downstream", "expected"), [(10, 5, False), (12, 5, False), (12, 6, True), (9, 5, True), (9, 3, True)]
)
def test_a_checkpoint_is_written_when_a_group_is_further_on_there_or_went_back_here(
    upstream: int, downstream: int, expected: bool
) -> None:
    last = Checkpoint("g", "A.t", 0, 10, 5)
    assert is_news(Checkpoint("g", "A.t", 0, upstream, downstream), last) is expected
    assert is_news(last, None)


def test_exactly_once_is_refused_while_records_of_rolled_back_transactions_would_be_copied() -> None:
    clusters = {f"{side}.cluster.bootstrap.servers": "h:1" for side in ("source", "target")}
    given = {"source.cluster.alias": "A", "exactly.once.support": "required", **clusters}

    def errors(**more: str) -> dict[str, str]:
        config = {**given, **{name.replace("_", "."): value for name, value in more.items()}}
        return dict(MirrorSource.validate(SourceConfig.parse(config), connect=False))

    assert "source.consumer.isolation.level=read_committed" in errors()["exactly.once.support"]
    assert errors(**{"source.consumer.isolation.level": "read_committed"}) == {}
    assert errors(exactly_once_support="requested") == {}


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


class Told:
    """What a consumer hands out: a record, or that the end was met."""

    def __init__(self, value: bytes | None) -> None:
        self._value = value

    def error(self) -> Any:
        return None if self._value is not None else KafkaError(KafkaError._PARTITION_EOF)

    def key(self) -> bytes:
        return b"k"

    def value(self) -> bytes | None:
        return self._value


class Script:
    """A consumer that hands out what it is told to, then nothing."""

    def __init__(self, *rounds: list[Told]) -> None:
        self.rounds = list(rounds)

    def assign(self, _: Any) -> None:
        return

    def consume(self, *_: Any) -> list[Told]:
        return self.rounds.pop(0) if self.rounds else []


def test_the_end_of_a_topic_is_remembered_as_it_is_told_once(monkeypatch: pytest.MonkeyPatch) -> None:
    script = Script([Told(None)])
    monkeypatch.setattr(checkpoint, "Consumer", lambda _: script)
    taken: list[bytes] = []
    follower = checkpoint.Follower(
        Cluster({"target.cluster.bootstrap.servers": "h:1"}, "target", 1.0), "t", lambda _, value: taken.append(value)
    )
    source: Any = SimpleNamespace(stopping=False)
    follower.read(source)  # an empty topic
    follower.read(source)  # still empty: nobody says so again
    script.rounds = [[Told(b"1")], [Told(b"2"), Told(None)]]
    follower.read(source)
    assert taken == [b"1", b"2"]


def test_a_topic_whose_end_never_comes_ends_the_wait(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(checkpoint, "Consumer", lambda _: Script())
    monkeypatch.setattr(checkpoint, "SYNCS_READ_S", 0.05)
    follower = checkpoint.Follower(Cluster({}, "target", 1.0), "t", lambda *_: None)
    with pytest.raises(TransientError, match="could not be read to their end in time"):
        follower.read(SimpleNamespace(stopping=False))  # type: ignore[arg-type]


class Group:
    """A target cluster with one group, of which it tells offset and error by partition."""

    def __init__(self, told: dict[int, tuple[int, Any]], refused: Any = None) -> None:
        self.told = told
        self.refused = refused
        self.moved: dict[tuple[str, int], int] = {}

    def committed(self, natives: list[TopicPartition], _: float) -> list[Any]:
        return [
            SimpleNamespace(topic=each.topic, partition=each.partition, metadata="", offset=offset, error=error)
            for each in natives
            for offset, error in [self.told[each.partition]]
        ]

    def close(self) -> None:
        return

    def alter_consumer_group_offsets(self, request: list[Any]) -> dict[str, Future[Any]]:
        done: Future[Any] = Future()
        self.moved |= {(each.topic, each.partition): each.offset for each in request[0].topic_partitions}
        done.set_result(SimpleNamespace(topic_partitions=[SimpleNamespace(error=self.refused)]))
        return {request[0].group_id: done}


def cluster_of(group: Group, monkeypatch: pytest.MonkeyPatch) -> Cluster:
    cluster = Cluster({"target.cluster.bootstrap.servers": "h:1"}, "target", 1.0)
    monkeypatch.setattr("wherry_mirror.clusters.Consumer", lambda _: group)
    monkeypatch.setattr(cluster, "_admin_client", group)
    monkeypatch.setattr(cluster, "has_members", lambda _: False)
    monkeypatch.setattr(cluster, "topics", lambda: {"a.t": 4})
    return cluster


def test_a_group_is_moved_forwards_and_not_where_its_place_is_not_told(monkeypatch: pytest.MonkeyPatch) -> None:
    hidden = KafkaError(KafkaError.TOPIC_AUTHORIZATION_FAILED)
    group = Group({0: (5, None), 1: (50, None), 2: (-1001, None), 3: (-1001, hidden)})
    found = [Checkpoint("g", "a.t", number, 10, 10, "") for number in range(4)]
    checkpoint.MirrorCheckpoint._move(None, cluster_of(group, monkeypatch), "g", found)  # type: ignore[arg-type]
    assert group.moved == {("a.t", 0): 10, ("a.t", 2): 10}


@pytest.mark.parametrize(
    ("code", "said"),
    [
        (None, None),
        (KafkaError.UNKNOWN_MEMBER_ID, None),
        (KafkaError.TOPIC_AUTHORIZATION_FAILED, AuthError),
        (KafkaError.NOT_COORDINATOR, TransientError),
    ],
)
def test_a_partition_that_is_not_moved_is_told_unless_somebody_uses_the_group(
    code: int | None, said: type[WherryError] | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    cluster = cluster_of(Group({}, None if code is None else KafkaError(code)), monkeypatch)
    with nullcontext() if said is None else pytest.raises(said, match="did not move group g"):
        cluster.commit("g", {("a.t", 0): 7})


class Clusters:
    """A source and a target cluster by what is asked of them; the target refuses some topics."""

    def __init__(self, source: dict[str, int], target: dict[str, int], *refused: str) -> None:
        self.here, self.there, self.refused = source, target, refused

    def __call__(self, _: Any, side: str, __: float) -> Any:
        topics = {"source": self.here, "target": self.there}[side]
        return SimpleNamespace(
            topics=lambda: topics,
            topic_settings=lambda names: {},
            ensure=lambda *_: None,
            create=lambda name, count, *_: self.put(name, count),
            grow=self.put,
        )

    def put(self, name: str, count: int) -> None:
        if name in self.refused:
            raise AuthError(f"no right to {name}")
        self.there[name] = count


def planned(clusters: Clusters, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    monkeypatch.setattr("wherry_mirror.source.Cluster", clusters)
    config = {
        "source.cluster.alias": "a", "target.cluster.alias": "b", "source.cluster.bootstrap.servers": "h:1",
        "target.cluster.bootstrap.servers": "h:2", "sync.topic.configs.enabled": "false",
        "sync.topic.acls.enabled": "false",
    }  # fmt: skip
    plan = MirrorSource(SourceConfig.parse(config), Context("m", 1)).plan(Offsets([]), 1)
    assert plan.replan_after_ms == (30_000 if clusters.refused else 600_000)
    return (plan.tasks[0].config or {})["task.assigned.partitions"].split(",")


def test_a_topic_that_is_refused_holds_up_no_other(monkeypatch: pytest.MonkeyPatch) -> None:
    clusters = Clusters({"grown": 3, "bad": 2, "good": 1}, {"a.grown": 2}, "a.bad", "a.grown")
    assert planned(clusters, monkeypatch) == ["good-0", "grown-0", "grown-1"]
    assert clusters.there == {"a.grown": 2, "a.good": 1}


def test_topics_are_made_and_grown(monkeypatch: pytest.MonkeyPatch) -> None:
    clusters = Clusters({"grown": 3, "good": 1}, {"a.grown": 2})
    assert planned(clusters, monkeypatch) == ["good-0", "grown-0", "grown-1", "grown-2"]
    assert clusters.there == {"a.grown": 3, "a.good": 1}


def test_where_every_topic_is_refused_the_plan_says_why(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(AuthError, match=r"no right to a\.bad"):
        planned(Clusters({"bad": 2}, {}, "a.bad"), monkeypatch)
