"""MirrorMaker 2 and `wherry mirror` on the same file and the same source cluster: what each leaves in its target.

Then Wherry takes over where MirrorMaker was stopped.
"""

from __future__ import annotations

import contextlib
import json
import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import (
    AclBinding,
    AclBindingFilter,
    AclOperation,
    AclPermissionType,
    AdminClient,
    ConfigResource,
    ConfigSource,
    NewPartitions,
    ResourcePatternType,
    ResourceType,
)
from tests.support.mirroring import Mirror
from tests.support.pumps import everything
from tests.support.topics import commit, create_topic
from tests.support.waiting import eventually

from wherry.contract.mirror import Checkpoint, Heartbeat, OffsetSync
from wherry.coordinator.dev.kafka import EmbeddedKafka
from wherry.coordinator.dev.mirrormaker import RealMirrorMaker

LIMIT_S = 120.0
GUARDED = {
    "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    "allow.everyone.if.no.acl.found": "true",
    "super.users": "User:ANONYMOUS",
}
# Set for all brokers alike: what is chosen in a broker's file is not copied, and shows in every topic.
ACLS = [
    ("orders", "LITERAL", "User:reader", "READ", "ALLOW"),
    ("orders", "LITERAL", "User:writer", "WRITE", "ALLOW"),
    ("orders", "LITERAL", "User:all", "ALL", "ALLOW"),
    ("orders", "LITERAL", "User:denied", "ALL", "DENY"),
    ("orders", "LITERAL", "User:nobody", "WRITE", "DENY"),
    ("orders", "LITERAL", "User:tables", "DESCRIBE", "ALLOW"),
    ("ord", "PREFIXED", "User:prefix", "READ", "ALLOW"),
    ("*", "LITERAL", "User:star", "READ", "ALLOW"),
    ("left.out", "LITERAL", "User:reader", "READ", "ALLOW"),
]
COUNT = 1_000
# Where each group stands in orders 0 and 1.
GROUPS = {"done": (500, 500), "shop": (300, 150), "begin": (0, 1), "console-consumer-1": (5, 5)}
MIRRORED = {("done", "A.orders", 0), ("done", "A.orders", 1), ("shop", "A.orders", 0)}


def file_of(source: str, target: str, alias: str) -> dict[str, str]:
    ones = ("", "checkpoints.topic.", "heartbeats.topic.", "offset-syncs.topic.")
    stores = ("offset.storage.", "status.storage.", "config.storage.")
    quick = (
        "emit.checkpoints", "sync.group.offsets", "refresh.topics", "refresh.groups", "sync.topic.configs",
        "sync.topic.acls",
    )  # fmt: skip
    return {
        "clusters": f"A, {alias}",
        "A.bootstrap.servers": source,
        f"{alias}.bootstrap.servers": target,
        f"A->{alias}.enabled": "true",
        f"A->{alias}.topics": "orders, left.*, absent",
        f"A->{alias}.topics.exclude": "left.*",
        "tasks.max": "2",
        "sync.group.offsets.enabled": "true",
        # Nothing flows back.
        "emit.heartbeats.enabled": "false",
        f"A->{alias}.emit.heartbeats.enabled": "true",
        **{f"{prefix}replication.factor": "1" for prefix in (*ones, *stores)},
        **{f"{what}.interval.seconds": "1" for what in quick},
        f"{alias}.offset.flush.interval.ms": "1000",
    }


def fill(bootstrap: str, numbers: range) -> None:
    producer = Producer({"bootstrap.servers": bootstrap, "linger.ms": 20})
    for number in numbers:
        value = None if number % 10 == 9 else b"\xff\x00%d" % number
        headers = [("h", b"\x01"), ("h", None), ("t", b"text")] if number % 2 else None
        producer.produce(
            "orders", value, b"k%d" % number, partition=number % 2, timestamp=1_000_000 + number, headers=headers
        )
    assert producer.flush(60) == 0


def prepare(source: EmbeddedKafka) -> None:
    """Topics, records, groups and rights of the source cluster."""
    # Records as old as these must not be deleted for their age.
    settings = {"retention.ms": "777000", "cleanup.policy": "compact", "min.insync.replicas": "1"}
    create_topic(source.bootstrap, "orders", partitions=2, config=settings)
    for name in ("left.out", "other"):
        create_topic(source.bootstrap, name, partitions=1)
    fill(source.bootstrap, range(COUNT))
    admin = AdminClient({"bootstrap.servers": source.bootstrap})
    for group, offsets in GROUPS.items():
        commit(source.bootstrap, group, [TopicPartition("orders", *each) for each in enumerate(offsets)])
    bindings = [
        AclBinding(
            ResourceType.TOPIC, name, ResourcePatternType[pattern], principal, "*", AclOperation[operation],
            AclPermissionType[permission],
        )
        for name, pattern, principal, operation, permission in ACLS
    ]  # fmt: skip
    for future in admin.create_acls(bindings).values():
        future.result(60)


@dataclass
class Target:
    """What is in a target cluster, and what is told of it in the source cluster.

    Attributes:
        bootstrap: Its address.
        alias: What the file calls it. Each has its own, for offset syncs lie in the source cluster that both share.
        source: Address of the source cluster.
    """

    bootstrap: str
    alias: str = ""
    source: str = ""

    def __post_init__(self) -> None:
        self.admin = AdminClient({"bootstrap.servers": self.bootstrap, "log_level": 0})

    def records(self, topic: str) -> list[Any]:
        known = self.admin.list_topics(timeout=60).topics
        return everything(self.bootstrap, topic) if topic in known else []

    def copied(self) -> list[Any]:
        """Records of the remote topic as they lie there."""
        return sorted(
            (m.partition(), m.offset(), m.key(), m.value(), m.timestamp(), tuple(m.headers() or ()))
            for m in self.records("A.orders")
        )

    def topics(self) -> dict[str, int]:
        """Partitions by topic, without those that brokers make for themselves."""
        found = self.admin.list_topics(timeout=60).topics.items()
        return {name: len(each.partitions) for name, each in found if not name.startswith("__")}

    def settings(self, topic: str) -> dict[str, str]:
        """What was chosen for a topic itself."""
        (future,) = self.admin.describe_configs([ConfigResource(ResourceType.TOPIC, topic)]).values()
        chosen = ConfigSource.DYNAMIC_TOPIC_CONFIG.value
        return {name: entry.value for name, entry in future.result(60).items() if entry.source == chosen}

    def acls(self) -> set[str]:
        any_acl = AclBindingFilter(
            ResourceType.ANY, None, ResourcePatternType.ANY, None, None, AclOperation.ANY, AclPermissionType.ANY
        )
        return {str(each) for each in self.admin.describe_acls(any_acl).result(60)}

    def syncs(self) -> list[OffsetSync]:
        found = everything(self.source, f"mm2-offset-syncs.{self.alias}.internal")
        return [OffsetSync.parse(m.key(), m.value()) for m in found]

    def checkpoints(self) -> dict[tuple[str, str, int], Checkpoint]:
        found = [Checkpoint.parse(m.key(), m.value()) for m in self.records("A.checkpoints.internal")]
        return {(each.group, each.topic, each.partition): each for each in found}

    def committed(self, group: str) -> list[int]:
        consumer = Consumer({"bootstrap.servers": self.bootstrap, "group.id": group})
        try:
            found = consumer.committed([TopicPartition("A.orders", number) for number in (0, 1)], 60)
            return [each.offset for each in found]
        finally:
            consumer.close()

    def connectors(self) -> dict[str, Any]:
        """Configurations in the config topic, the last of each, without this cluster's address and name."""
        found = {
            message.key(): json.loads(message.value().replace(self.bootstrap.encode(), b"target"))["properties"]
            for message in self.records("mm2-configs.A.internal")
            if message.key().startswith(b"connector-") and message.value()
        }
        for config in found.values():
            config.pop("target.cluster.listeners", None)  # the test's own
            assert config.pop("target.cluster.alias") == self.alias
        return found

    def offsets(self) -> dict[bytes, bytes]:
        found = {m.key(): m.value() for m in self.records("mm2-offsets.A.internal")}
        return {key: value for key, value in found.items() if b"MirrorSource" in key}

    def lacks(self, *later: str) -> list[str]:
        """What is not there yet, of that which is waited for."""
        there = {
            "records": len(self.copied()) == COUNT,
            "checkpoints": {("done", "A.orders", 0), ("done", "A.orders", 1)} <= set(self.checkpoints()),
            "group offsets": min(self.committed("done")) > 0,
            "rights": len(self.acls()) >= 5,
            "heartbeats": len(self.records("heartbeats")) >= 2,
            "positions": {json.loads(value)["offset"] for value in self.offsets().values()} == {COUNT // 2 - 1},
        }
        return [what for what, found in there.items() if not found and what not in later]


@dataclass
class Both:
    """Both targets, and who wrote them."""

    source: EmbeddedKafka
    theirs: Target
    ours: Target
    mirrormaker: RealMirrorMaker
    wherry: Mirror


def troubles(mirrormaker: RealMirrorMaker) -> str:
    """What MirrorMaker complains of."""
    lines = mirrormaker.log_path.read_text(errors="replace").splitlines()
    return "\n".join([line for line in lines if " ERROR " in line or " WARN " in line][-20:])


@pytest.fixture(scope="module")
def both() -> Iterator[Both]:
    """Both at work at the same time, until each has done all there is to do."""
    with contextlib.ExitStack() as running:
        source, one, other = (running.enter_context(EmbeddedKafka(options=GUARDED)) for _ in range(3))
        prepare(source)
        mirrormaker = RealMirrorMaker(file_of(source.bootstrap, one.bootstrap, "B"))
        running.callback(mirrormaker.close)
        wherry = running.enter_context(Mirror(file_of(source.bootstrap, other.bootstrap, "C"), target="C"))
        mirrormaker.start()
        theirs, ours = Target(one.bootstrap, "B", source.bootstrap), Target(other.bootstrap, "C", source.bootstrap)
        found = Both(source, theirs, ours, mirrormaker, wherry)
        # Whether MirrorMaker writes a checkpoint hangs on which offset syncs it has read since it started.
        unsure = ("checkpoints", "group offsets")
        assert eventually(lambda: not theirs.lacks(*unsure), LIMIT_S), f"{theirs.lacks()}\n{troubles(mirrormaker)}"
        assert eventually(lambda: not ours.lacks(), LIMIT_S), f"{ours.lacks()}\n{wherry.log_tail()}"
        yield found


def test_records_lie_where_they_lay_with_all_they_had(both: Both) -> None:
    assert both.ours.copied() == both.theirs.copied()


def test_topics_and_their_settings_are_the_same(both: Both) -> None:
    assert both.ours.topics() == both.theirs.topics()
    internal = [f"mm2-{kind}.A.internal" for kind in ("configs", "offsets", "status")]
    for topic in ("A.orders", "A.checkpoints.internal", "heartbeats", *internal):
        eventually(lambda topic=topic: both.ours.settings(topic) == both.theirs.settings(topic), LIMIT_S)  # type: ignore[misc]
        assert both.ours.settings(topic) == both.theirs.settings(topic), topic


def test_the_same_rights_were_copied(both: Both) -> None:
    eventually(lambda: both.ours.acls() == both.theirs.acls(), LIMIT_S)
    assert both.ours.acls() == both.theirs.acls()


def test_connectors_and_positions_are_stored_alike(both: Both) -> None:
    assert both.ours.connectors() == both.theirs.connectors()
    assert both.ours.offsets() == both.theirs.offsets()


def test_offset_syncs_are_true_and_no_coarser(both: Both) -> None:
    for target in (both.ours, both.theirs):
        # Copies of whole topics: every record lies at the offset it had.
        assert all(sync.upstream == sync.downstream for sync in target.syncs())

    def last(target: Target) -> dict[tuple[str, int], int]:
        return {(sync.topic, sync.partition): sync.upstream for sync in target.syncs()}

    theirs = last(both.theirs)
    eventually(lambda: all(last(both.ours).get(place, -1) >= theirs[place] for place in theirs), LIMIT_S)
    ours = last(both.ours)
    assert ours.keys() == theirs.keys()
    assert all(ours[place] >= theirs[place] for place in theirs)


def test_checkpoints_are_as_theirs_or_finer_and_never_too_far(both: Both) -> None:
    """MirrorMaker forgets the older offset syncs when it starts to read them, and then has none for slow groups."""

    def settled() -> bool:
        found = both.ours.checkpoints()
        return set(found) >= MIRRORED and {found["done", "A.orders", number].downstream for number in (0, 1)} == {500}

    assert eventually(settled, LIMIT_S), both.ours.checkpoints()
    ours, theirs = both.ours.checkpoints(), both.theirs.checkpoints()
    assert {each.group for each in ours.values()} == {"done", "shop", "begin"}
    assert set(theirs) <= set(ours)
    for place, checkpoint in ours.items():
        assert checkpoint.upstream == GROUPS[checkpoint.group][checkpoint.partition]
        assert checkpoint.downstream <= checkpoint.upstream
        if place in theirs:
            assert theirs[place].upstream == checkpoint.upstream
            assert theirs[place].downstream <= checkpoint.downstream
    for group in ("done", "shop", "begin"):
        told = [ours[group, "A.orders", number].downstream for number in (0, 1)]
        assert eventually(lambda group=group, told=told: both.ours.committed(group) == told, LIMIT_S)  # type: ignore[misc]
    assert both.ours.committed("console-consumer-1") == both.theirs.committed("console-consumer-1")


def test_heartbeats_differ_in_their_times_alone(both: Both) -> None:
    def beats(target: Target) -> set[tuple[bytes, str]]:
        found = [(m.key(), Heartbeat.parse(m.key(), m.value())) for m in target.records("heartbeats")]
        assert {beat.target for _, beat in found} == {target.alias}
        return {(key.replace(target.alias.encode(), b"?"), beat.source) for key, beat in found}

    assert beats(both.ours) == beats(both.theirs)


def test_a_flow_goes_on_where_mirrormaker_was_stopped(both: Both) -> None:
    both.mirrormaker.stop()
    both.wherry.stop()
    admin = AdminClient({"bootstrap.servers": both.source.bootstrap})
    admin.create_partitions([NewPartitions("orders", 3)])["orders"].result(60)
    fill(both.source.bootstrap, range(COUNT, COUNT + 100))
    # Beats in the other direction are a flow of their own, in a process of its own.
    file = {**file_of(both.source.bootstrap, both.theirs.bootstrap, "B"), "emit.heartbeats.enabled": "true"}
    source = Target(both.source.bootstrap)
    with Mirror(file, target="B") as wherry:
        assert eventually(lambda: len(both.theirs.copied()) >= COUNT + 100, LIMIT_S), wherry.log_tail()
        assert eventually(lambda: both.theirs.topics()["A.orders"] == 3, LIMIT_S), wherry.log_tail()
        assert eventually(lambda: len(source.records("heartbeats")) >= 2, LIMIT_S), wherry.log_tail()
        time.sleep(1)
        code, _ = wherry.stop()
        assert code == 0
        assert eventually(lambda: wherry.processes() == [], 60), wherry.processes()
    beats = [Heartbeat.parse(m.key(), m.value()) for m in source.records("heartbeats")]
    assert {(beat.source, beat.target) for beat in beats} == {("B", "A")}
    keys = [key for _, _, key, *_ in both.theirs.copied()]
    # Each once: it went on from MirrorMaker's positions.
    assert sorted(keys) == sorted(b"k%d" % number for number in range(COUNT + 100))
