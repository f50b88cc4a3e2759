"""A mirror's pump between topics of one broker: transformations on their way."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from confluent_kafka import Producer
from tests.support.pumps import Coordinator, everything, run
from tests.support.topics import create_topic

from wherry.contract import to_proto
from wherry.contract.mirror import OffsetSync, mirror_position
from wherry.contract.plan import Work
from wherry.control.v1 import lease_pb2
from wherry.worker.pipeline import build

TRANSFORMS = "org.apache.kafka.connect.transforms"


def mirrored(bootstrap: str, topic: str, **more: str) -> dict[str, Any]:
    """Copies a topic to its end; what was counted."""
    config = {
        "name": "c",
        "source.cluster.alias": "A",
        "target.cluster.alias": topic,
        "source.cluster.bootstrap.servers": bootstrap,
        **more,
    }
    grant = lease_pb2.OpenLeaseResponse(
        kind=lease_pb2.PIPELINE_KIND_MIRROR, config=config, worker_config={"bootstrap.servers": bootstrap}
    )
    grant.work.CopyFrom(to_proto.work(Work("0", partitions=(mirror_position("A", topic, 0, None).partition,))))
    coordinator = Coordinator()
    run(build(grant, {}), coordinator)
    return coordinator.counts


def filled(bootstrap: str, topic: str) -> None:
    producer = Producer({"bootstrap.servers": bootstrap})
    for number in range(30):
        value = None if number == 9 else b"\xff%d" % number
        headers = [("old", b"\x00\x01")] if number % 3 else [("old", b"\x00"), ("drop", b"")]
        producer.produce(topic, value, b"k%d" % number, timestamp=1_000_000 + number, headers=headers)
    assert producer.flush(60) == 0


def test_headers_are_added_and_records_left_out_while_the_rest_stays_as_it_is(
    bootstrap: str, new_topic: Callable[..., str]
) -> None:
    topic = new_topic()
    filled(bootstrap, topic)
    copy = create_topic(bootstrap, f"A.{topic}", partitions=1)
    syncs = create_topic(bootstrap, f"mm2-offset-syncs.{topic}.internal", partitions=1)
    chain = {
        "transforms": "drop,add",
        "transforms.drop.type": f"{TRANSFORMS}.Filter",
        "transforms.drop.predicate": "marked",
        "transforms.add.type": f"{TRANSFORMS}.InsertHeader",
        "transforms.add.header": "from",
        "transforms.add.value.literal": "here",
        "predicates": "marked",
        "predicates.marked.type": f"{TRANSFORMS}.predicates.HasHeaderKey",
        "predicates.marked.name": "drop",
    }
    counts = mirrored(bootstrap, topic, **chain)
    assert counts["records_read"] == 30
    theirs = [message for message in everything(bootstrap, topic) if len(message.headers()) == 1]
    ours = everything(bootstrap, copy)
    assert [(m.key(), m.value(), m.timestamp()) for m in ours] == [(m.key(), m.value(), m.timestamp()) for m in theirs]
    assert {tuple(m.headers()) for m in ours} == {(("old", b"\x00\x01"), ("from", b"here"))}
    by_offset = {message.offset(): message.key() for message in ours}
    origin = {message.offset(): message.key() for message in everything(bootstrap, topic)}
    told = [OffsetSync.parse(m.key(), m.value()) for m in everything(bootstrap, syncs)]
    assert told
    assert all(by_offset[sync.downstream] == origin[sync.upstream] for sync in told)


def test_records_sent_elsewhere_arrive_there(bootstrap: str, new_topic: Callable[..., str]) -> None:
    topic = new_topic()
    filled(bootstrap, topic)
    other = create_topic(bootstrap, f"routed-{topic}", partitions=1)
    create_topic(bootstrap, f"mm2-offset-syncs.{topic}.internal", partitions=1)
    mirrored(
        bootstrap,
        topic,
        **{
            "transforms": "route",
            "transforms.route.type": f"{TRANSFORMS}.RegexRouter",
            "transforms.route.regex": r"A\.(.*)",
            "transforms.route.replacement": "routed-$1",
        },
    )
    assert [m.key() for m in everything(bootstrap, other)] == [m.key() for m in everything(bootstrap, topic)]
