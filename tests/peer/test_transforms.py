"""The same transformations on both, from a file into a topic and from a topic into a file, byte for byte."""

from __future__ import annotations

import json
import time
from dataclasses import dataclass, field

import pytest
from tests.peer.peers import CONNECT, WHERRY, Peer, together
from tests.peer.steps import SINK_CLASS, SOURCE_CLASS
from tests.support.topics import consume, create_topic, end_offsets, produce
from tests.support.waiting import eventually

PACKAGE = "org.apache.kafka.connect.transforms."
JSON = "org.apache.kafka.connect.json.JsonConverter"
KEPT, DROPPED, READ, LETTERS = "kept-{x}", "dropped-{x}", "read-{x}", "letters-{x}"
FLOW_TIMEOUT_S = 120.0
QUIET_S = 3.0
SOURCE_CHAIN = {
    "transforms": "hoist,insert,key,tell,drop",
    "transforms.hoist.type": f"{PACKAGE}HoistField$Value",
    "transforms.hoist.field": "line",
    "transforms.insert.type": f"{PACKAGE}InsertField$Value",
    "transforms.insert.static.field": "origin",
    "transforms.insert.static.value": "file",
    "transforms.insert.partition.field": "partition?",
    "transforms.key.type": f"{PACKAGE}ValueToKey",
    "transforms.key.fields": "origin",
    "transforms.tell.type": f"{PACKAGE}InsertHeader",
    "transforms.tell.header": "kind",
    "transforms.tell.value.literal": "1.0",
    "transforms.drop.type": f"{PACKAGE}Filter",
    "transforms.drop.predicate": "doomed",
    "predicates": "doomed",
    "predicates.doomed.type": f"{PACKAGE}predicates.TopicNameMatches",
    "predicates.doomed.pattern": "dropped-.*",
    "value.converter": JSON,
    "key.converter": JSON,
    "value.converter.schemas.enable": "true",
    "key.converter.schemas.enable": "false",
}
SINK_CHAIN = {
    "transforms": "cast,fields,when",
    "transforms.cast.type": f"{PACKAGE}Cast$Value",
    "transforms.cast.spec": "n:int8,price:string,flag:boolean",
    "transforms.fields.type": f"{PACKAGE}ReplaceField$Value",
    "transforms.fields.exclude": "secret",
    "transforms.fields.renames": "n:number",
    "transforms.when.type": f"{PACKAGE}TimestampConverter$Value",
    "transforms.when.field": "at",
    "transforms.when.target.type": "string",
    "transforms.when.format": "yyyy-MM-dd'T'HH:mm:ss.SSSX",
    "value.converter": JSON,
    "value.converter.schemas.enable": "false",
    "errors.tolerance": "all",
    "errors.deadletterqueue.topic.name": LETTERS,
    "errors.deadletterqueue.topic.replication.factor": "1",
    "errors.deadletterqueue.context.headers.enable": "true",
}
RECORDS: tuple[bytes | None, ...] = (
    b'{"n":300,"price":1e10,"flag":"TRUE","secret":1,"at":1577934245678}',
    b'{"n":"12","price":0.5,"flag":0,"at":null}',
    b'{"n":"x","price":1}',
    b'{"price":true,"zebra":[1,{"a":null}]}',
    b'"no object"',
    None,
    b'{"n":-1.9,"price":null,"flag":0.5,"at":0}',
)
WRITTEN = 5


@dataclass(slots=True)
class Played:
    """What came of it in one of the two."""

    records: list[tuple[bytes | None, bytes | None, list[tuple[str, bytes]]]] = field(default_factory=list)
    dropped: int = 0
    lines: list[str] = field(default_factory=list)
    letters: list[tuple[bytes | None, dict[str, str]]] = field(default_factory=list)


@pytest.fixture(scope="module")
def both(kafka_address: str, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Played]:
    """What both have made of the same records."""
    folder = tmp_path_factory.mktemp("transforms")
    peers = [Peer(name, folder / name, kafka_address) for name in (CONNECT, WHERRY)]
    played = {peer.name: Played() for peer in peers}
    together(peers, lambda peer: _play(peer, played[peer.name]))
    return played


def test_lines_become_the_same_records_with_schema_key_and_header(both: dict[str, Played]) -> None:
    ours = both[WHERRY].records
    assert [json.loads(value or b"")["payload"] for _, value, _ in ours] == [
        {"line": "one", "origin": "file", "partition": None},
        {"line": "two", "origin": "file", "partition": None},
    ]
    assert [(key, headers) for key, _, headers in ours] == [(b'{"origin":"file"}', [("kind", b"1")])] * 2
    assert ours == both[CONNECT].records


def test_a_filter_behind_a_predicate_drops_what_it_is_meant_for(both: dict[str, Played]) -> None:
    assert (both[WHERRY].dropped, both[CONNECT].dropped) == (0, 0)


def test_values_are_written_alike_after_their_transformations(both: dict[str, Played]) -> None:
    assert both[WHERRY].lines == both[CONNECT].lines
    assert both[WHERRY].lines[0] == "{number=44, flag=true, at=2020-01-02T03:04:05.678Z, price=1.0E10}"
    assert len(both[WHERRY].lines) == WRITTEN


def test_records_that_fail_in_a_transformation_are_told_alike(both: dict[str, Played]) -> None:
    assert both[WHERRY].letters == both[CONNECT].letters
    assert [
        (headers["stage"], headers["class.name"], headers["exception.message"]) for _, headers in both[WHERRY].letters
    ] == [
        ("TRANSFORMATION", f"{PACKAGE}Cast$Value", "Value (x) was out of range for requested data type"),
        (
            "TRANSFORMATION",
            f"{PACKAGE}Cast$Value",
            "Only Map objects supported in absence of schema for [cast types], found: java.lang.String",
        ),
    ]


def _play(peer: Peer, played: Played) -> None:
    try:
        peer.start()
        _from_files(peer)
        _into_file(peer)
        _keep(peer, played)
    finally:
        peer.stop()


def _from_files(peer: Peer) -> None:
    for topic in (KEPT, DROPPED):
        name = peer.own(topic)
        create_topic(peer.bootstrap, name)
        (peer.directory / f"{name}.in").write_bytes(b"one\ntwo\n")
        config = {"connector.class": SOURCE_CLASS, "topic": topic, "file": f"{{dir}}/{name}.in", **SOURCE_CHAIN}
        peer.rest.create(name, peer.filled(config))


def _into_file(peer: Peer) -> None:
    topic = create_topic(peer.bootstrap, peer.own(READ))
    create_topic(peer.bootstrap, peer.own(LETTERS))
    produce(peer.bootstrap, topic, [(None, record) for record in RECORDS])
    config = {"connector.class": SINK_CLASS, "topics": READ, "file": "{dir}/sink.out", **SINK_CHAIN}
    peer.rest.create(topic, peer.filled(config))


def _keep(peer: Peer, played: Played) -> None:
    out = peer.directory / "sink.out"
    came = eventually(lambda: out.exists() and out.read_text().count("\n") >= WRITTEN, FLOW_TIMEOUT_S)
    assert came, f"{peer.name} has not written {WRITTEN} lines"
    for message in consume(peer.bootstrap, peer.own(KEPT), 2):
        played.records.append((message.key(), message.value(), message.headers() or []))
    for message in consume(peer.bootstrap, peer.own(LETTERS), 2):
        told = {name.removeprefix("__connect.errors."): value.decode() for name, value in message.headers() or []}
        for volatile in ("exception.stacktrace", "connector.name", "topic"):
            told.pop(volatile)
        played.letters.append((message.value(), told))
    time.sleep(QUIET_S)
    played.dropped = end_offsets(peer.bootstrap, peer.own(DROPPED))[0]
    played.lines = out.read_text().splitlines()
