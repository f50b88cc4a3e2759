"""Records that can't be delivered: what the dead letter topic gets, byte for byte and header for header.

Both read the same poison; each has topics of its own. The stack trace is the only header whose text may differ: one is
Java's, the other Python's. A sink that shows what it gets is told of records that transformations have moved where they
were read, as the letters are.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Producer
from tests.peer.differential.plugins import PLUGIN, built
from tests.peer.peers import CONNECT, WHERRY, Peer, together
from tests.peer.steps import SINK_CLASS, wait_until
from tests.support.topics import consume, create_topic, group_offsets

JSON = "org.apache.kafka.connect.json.JsonConverter"
CONVERTERS = "org.apache.kafka.connect.converters"
TRACE = "__connect.errors.exception.stacktrace"
QUIET_S = 3.0
ALL = {"errors.tolerance": "all"}
WITH_CONTEXT = {"errors.deadletterqueue.context.headers.enable": "true"}
BARE_JSON = {"value.converter": JSON, "value.converter.schemas.enable": "false"}

Record = Mapping[str, Any]
Letter = tuple[Any, ...]


@dataclass(frozen=True, slots=True)
class Case:
    """Records, the configuration that fails some, and how many letters there are."""

    records: tuple[Record, ...]
    config: Mapping[str, str]
    letters: int
    fails: bool = False


CASES: Mapping[str, Case] = {
    "json": Case(
        (
            {"value": b'{"a":1}'},
            {"value": b"{damaged", "key": b"k", "headers": [("own", b"1"), ("own", b"2"), ("empty", b"")]},
            {"value": b"tru", "headers": [("__connect.errors.topic", b"an older one"), ("none", None)]},
            {"value": None, "key": b"tombstone"},
            {"value": b"\xff\xfe\x00", "timestamp": 1_577_934_245_678},
        ),
        {**ALL, **WITH_CONTEXT, **BARE_JSON},
        3,
    ),
    "keys": Case(
        ({"value": b"1", "key": b"{damaged"}, {"value": b"2", "key": None}, {"value": b"3", "key": b'"k"'}),
        {**ALL, **WITH_CONTEXT, "key.converter": JSON, "key.converter.schemas.enable": "false"},
        1,
    ),
    "both": Case(
        ({"value": b"{damaged", "key": b"{damaged"},),
        {**ALL, **WITH_CONTEXT, **BARE_JSON, "key.converter": JSON, "key.converter.schemas.enable": "false"},
        1,
    ),
    "envelope": Case(
        (
            {"value": b'{"a":1}'},
            {"value": b""},
            {"value": b'{"schema":{"type":"int32"},"payload":1}'},
            {"value": b'{"schema":{"type":"nonsense"},"payload":1}'},
            {"value": b'{"schema":{"type":"int32"},"payload":null}'},
        ),
        {**ALL, **WITH_CONTEXT, "value.converter": JSON},
        4,
    ),
    "numbers": Case(
        ({"value": b"\x00\x00\x00\x01"}, {"value": b"\x01"}, {"value": b""}, {"value": None}),
        {**ALL, **WITH_CONTEXT, "value.converter": f"{CONVERTERS}.IntegerConverter"},
        2,
    ),
    "moved": Case(
        ({"value": b"1"}, {"value": b"no number", "key": b"k"}, {"value": b"2"}, {"value": b"3"}),
        {
            **ALL,
            **WITH_CONTEXT,
            "connector.class": "wherry.peer.RecordsSink",
            "refuse": "2",
            "transforms": "route,move,cast",
            "transforms.route.type": "org.apache.kafka.connect.transforms.RegexRouter",
            "transforms.route.regex": "moved-(.*)",
            "transforms.route.replacement": "elsewhere-$1",
            "transforms.move.type": "wherry.peer.Repartition",
            "transforms.move.partition": "7",
            "transforms.cast.type": "org.apache.kafka.connect.transforms.Cast$Value",
            "transforms.cast.spec": "int32",
        },
        2,
    ),
    "plain": Case(
        ({"value": b"{damaged", "key": b"k", "headers": [("own", b"1")]}, {"value": b"{again"}),
        {**ALL, **BARE_JSON},
        2,
    ),
    "none": Case(
        ({"value": b"1"}, {"value": b"{damaged", "key": b"k"}, {"value": b"3"}, {"value": b"{again"}),
        {**WITH_CONTEXT, **BARE_JSON},
        1,
        fails=True,
    ),
}


@dataclass(slots=True)
class Kept:
    """What is kept of one system: by case the letters, and afterwards its status and committed offset."""

    letters: dict[str, list[Letter]] = field(default_factory=dict)
    states: dict[str, str] = field(default_factory=dict)
    offsets: dict[str, int | None] = field(default_factory=dict)
    shown: list[Any] = field(default_factory=list)


def play(peer: Peer, kept: Kept) -> None:
    """Feed the poison of all cases to one system."""
    for name, case in CASES.items():
        fill(peer.bootstrap, create_topic(peer.bootstrap, f"{name}-{peer.suffix}"), case.records)
    peer.start()
    try:
        for name, case in CASES.items():
            config = {
                "connector.class": SINK_CLASS, "tasks.max": "1", "topics": f"{name}-{{x}}", "file": f"{{dir}}/{name}",
                "errors.deadletterqueue.topic.name": f"dead-{name}-{{x}}",
                "errors.deadletterqueue.topic.replication.factor": "1", **case.config,
            }  # fmt: skip
            answer = peer.ask("POST", "/connectors", {"name": f"{name}-{{x}}", "config": config})
            assert answer.status == 201, answer
        for name, case in CASES.items():
            dead = f"dead-{name}-{peer.suffix}"
            messages = consume(peer.bootstrap, dead, case.letters, timeout_s=60.0)
            kept.letters[name] = [letter_of(peer, message) for message in messages]
            wanted = "FAILED" if case.fails else "RUNNING"
            wait_until(lambda name=name, wanted=wanted: state_of(peer, name) == wanted, f"{name} is {wanted}")
            kept.states[name] = state_of(peer, name)
        for name, case in CASES.items():
            group, place = f"connect-{name}-{peer.suffix}", (f"{name}-{peer.suffix}", 0)
            if not case.fails:
                end = len(case.records)
                wait_until(
                    lambda g=group, p=place, e=end: group_offsets(peer.bootstrap, g, p[0]).get(p) == e, f"{name} ends"
                )
            kept.offsets[name] = group_offsets(peer.bootstrap, group, place[0]).get(place)
        lines = (peer.directory / "moved").read_text().splitlines()
        kept.shown = [json.loads(peer.neutral(line)) for line in lines]
    finally:
        peer.stop()


def fill(bootstrap: str, topic: str, records: tuple[Record, ...]) -> None:
    producer = Producer({"bootstrap.servers": bootstrap})
    for record in records:
        producer.produce(topic, **record)
    assert producer.flush(60) == 0


def state_of(peer: Peer, name: str) -> str:
    tasks = peer.ask("GET", f"/connectors/{name}-{{x}}/status").body.get("tasks", [])
    return str(tasks[0]["state"]) if tasks else ""


def letter_of(peer: Peer, message: Any) -> Letter:
    headers = [
        (name, None if value is None else peer.neutral(value.decode(errors="replace")))
        for name, value in message.headers() or []
        if name != TRACE
    ]
    traces = sum(name == TRACE for name, _ in message.headers() or [])
    # The time of a record that was given none is that of its writing, which is not the same for both.
    time_ms = message.timestamp()[1]
    return message.key(), message.value(), headers, traces, time_ms if time_ms < 1_600_000_000_000 else "now"


@pytest.fixture(scope="module")
def both(kafka_address: str, tmp_path_factory: pytest.TempPathFactory) -> Mapping[str, Kept]:
    """What both have made of the same poison."""
    folder: Path = tmp_path_factory.mktemp("letters")
    plugins = {CONNECT: f"{built(folder)}", WHERRY: f"{PLUGIN}"}
    peers = [Peer(name, folder / name, kafka_address, settings={"plugin.path": plugins[name]}) for name in plugins]
    kept = {peer.name: Kept() for peer in peers}
    together(peers, lambda peer: play(peer, kept[peer.name]))
    return kept


@pytest.mark.parametrize("case", CASES)
def test_both_write_the_same_letters(both: Mapping[str, Kept], case: str) -> None:
    real = both[CONNECT].letters[case]
    assert len(real) == CASES[case].letters
    assert both[WHERRY].letters[case] == real


def test_both_tell_a_sink_where_the_records_were_read_that_it_finds_elsewhere(both: Mapping[str, Kept]) -> None:
    places = ("topic", "partition", "offset", "original_topic", "original_partition", "original_offset")
    real = [[record[place] for place in places] for record in both[CONNECT].shown]
    assert real == [["elsewhere-{x}", 7, offset, "moved-{x}", 0, offset] for offset in (0, 3)]
    assert [[record[place] for place in places] for record in both[WHERRY].shown] == real


@pytest.mark.parametrize("case", CASES)
def test_both_go_on_or_fail_alike_at_the_same_offset(both: Mapping[str, Kept], case: str) -> None:
    assert both[WHERRY].states[case] == both[CONNECT].states[case]
    assert both[WHERRY].offsets[case] == both[CONNECT].offsets[case]
