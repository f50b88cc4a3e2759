"""Files in, files out, and starts one after another: what both systems live through, and what is kept of it."""

from __future__ import annotations

import json
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from tests.peer.peers import CONNECT, STRING, WHERRY, Peer
from tests.peer.steps import SINK_CLASS, SOURCE_CLASS, wait_until
from tests.support.topics import consume, create_topic, end_offsets, produce, values
from tests.support.waiting import eventually

JSON = "org.apache.kafka.connect.json.JsonConverter"
QUIET_S = 1.5
"""How long nothing more may come before what has come counts as all: beyond Kafka Connect's wait for new lines, 1 s."""

COMMIT_TIMEOUT_S = 60.0

PLAIN, TEXTS, RETURNS = "plain", "texts", "returns"
SOURCES = (PLAIN, TEXTS, RETURNS)
STRINGS, SCHEMALESS, STRUCTS = "strings", "schemaless", "structs"

STRING_VALUES: tuple[bytes | None, ...] = (b"x", "d\u00e9j\u00e0 vu \U0001f600".encode(), b"", None, b'{"a":1}', b" b ")
SCHEMALESS_VALUES: tuple[bytes | None, ...] = (
    b'"text"',
    b"1",
    b"-5",
    b"1.5",
    b"1e10",
    b"12345678901234567890.5",
    b"true",
    b"null",
    None,
    b"[1,2.5,null,[],{}]",
    b'{"a":1}',
    b'{"a":null,"b":{"c":[1,"x"]}}',
)
UNSORTED_VALUE = b'{"zebra":1,"apple":2,"Mango":{"y":1,"x":2}}'
STRUCT_SCHEMA: Mapping[str, Any] = {
    "type": "struct",
    "optional": False,
    "fields": [
        {"field": "i", "type": "int32", "optional": False},
        {"field": "l", "type": "int64", "optional": True},
        {"field": "d", "type": "double", "optional": True},
        {"field": "f", "type": "float", "optional": True},
        {"field": "b", "type": "boolean", "optional": True},
        {"field": "s", "type": "string", "optional": True},
        {"field": "a", "type": "array", "items": {"type": "string", "optional": True}, "optional": True},
        {
            "field": "m",
            "type": "map",
            "keys": {"type": "string", "optional": False},
            "values": {"type": "int32", "optional": True},
            "optional": True,
        },
        {
            "field": "n",
            "type": "struct",
            "optional": True,
            "fields": [{"field": "x", "type": "int8", "optional": True}],
        },
    ],
}
STRUCT_PAYLOADS: tuple[Any, ...] = (
    {"i": 1, "l": 2, "d": 1.5, "f": 0.1, "b": True, "s": "\u20ac", "a": ["x", None], "m": {"k": 1}, "n": {"x": 5}},
    {"i": -1, "l": None, "d": 1e300, "f": 1e-9, "b": False, "s": "", "a": [], "m": {}, "n": {"x": None}},
    {"i": 0, "l": 9007199254740993, "d": 100.0, "f": 3.4e38, "b": None, "s": None, "a": None, "m": None, "n": None},
)


@dataclass(slots=True)
class Kept:
    """What is kept of one system.

    Attributes:
        contents: Values of each source's topic, by connector and by scene.
        positions: Committed position of each source, by connector and by scene.
        files: Lines of each sink's file, by connector.
    """

    contents: dict[tuple[str, str], list[str]] = field(default_factory=dict)
    positions: dict[tuple[str, str], int] = field(default_factory=dict)
    files: dict[str, list[str]] = field(default_factory=dict)


def play(peer: Peer, kept: Kept) -> None:
    """Live through all scenes: the first run, the other program on the same files, and the first one again."""
    for name in SOURCES:
        create_topic(peer.bootstrap, peer.own(f"{name}-{{x}}"))
    try:
        peer.start()
        _first_lines(peer, kept)
        _sinks(peer, kept)
        _next_lines(peer, kept)
        peer.stop()
        _start_again(peer, WHERRY if peer.name == CONNECT else CONNECT, (PLAIN,))
        _append(peer, PLAIN, b"taken over\n")
        _keep(peer, kept, "taken over", {PLAIN: 8})
        peer.stop()
        # The other program has not touched the last two: for them this is a restart and no more.
        _start_again(peer, peer.name, SOURCES)
        _append(peer, PLAIN, b"taken back\n")
        _append(peer, RETURNS, b"restarted\n")
        _append(peer, TEXTS, b"restarted\n")
        _keep(peer, kept, "started again", {PLAIN: 9, RETURNS: 7, TEXTS: 5})
    finally:
        peer.stop()


def _first_lines(peer: Peer, kept: Kept) -> None:
    """Ends of lines of all kinds, an empty line, and a last line that has no end yet."""
    _append(peer, PLAIN, b"one\ntwo\r\n\nlast but one\npar")
    _append(peer, TEXTS, "d\u00e9j\u00e0 vu\n\u20acuro\n\U0001f600\n".encode())
    _append(peer, RETURNS, b"a\rb\r\rc\nd\r")
    _create_sources(peer, SOURCES)
    _keep(peer, kept, "begun", {PLAIN: 4, TEXTS: 3, RETURNS: 4})


def _next_lines(peer: Peer, kept: Kept) -> None:
    """Lines that come while it runs, one of them in two pieces."""
    _append(peer, PLAIN, b"tial\nmore ")
    _append(peer, RETURNS, b"\ne\n")
    time.sleep(QUIET_S)
    _append(peer, PLAIN, b"\nlines\n")
    _append(peer, TEXTS, "\u00fcber\n".encode())
    _keep(peer, kept, "went on", {PLAIN: 7, TEXTS: 4, RETURNS: 6})


def _sinks(peer: Peer, kept: Kept) -> None:
    """What FileStreamSink writes for values of all kinds."""
    structs = tuple(json.dumps({"schema": STRUCT_SCHEMA, "payload": each}).encode() for each in STRUCT_PAYLOADS)
    wanted: dict[str, tuple[tuple[bytes | None, ...], dict[str, str]]] = {
        STRINGS: (STRING_VALUES, {"value.converter": STRING}),
        SCHEMALESS: (SCHEMALESS_VALUES, {"value.converter": JSON, "value.converter.schemas.enable": "false"}),
        "unsorted": ((UNSORTED_VALUE,), {"value.converter": JSON, "value.converter.schemas.enable": "false"}),
        STRUCTS: (structs, {"value.converter": JSON, "value.converter.schemas.enable": "true"}),
    }
    for name, (records, converter) in wanted.items():
        topic = create_topic(peer.bootstrap, peer.own(f"{name}-{{x}}"))
        produce(peer.bootstrap, topic, [(None, value) for value in records])
        config = {"connector.class": SINK_CLASS, "topics": topic, "file": "{dir}/" + f"{name}.out", **converter}
        peer.rest.create(topic, peer.filled(config))
    for name, (records, _) in wanted.items():
        path = peer.directory / f"{name}.out"
        wait_until(
            partial(_has_lines, path, len(records)), f"{peer.name} has written the {len(records)} lines of {name}"
        )
        kept.files[name] = path.read_text().split("\n")


def _has_lines(path: Path, count: int) -> bool:
    return path.exists() and path.read_bytes().count(b"\n") >= count


def _start_again(peer: Peer, program: str, sources: Sequence[str]) -> None:
    """Start with the same files; connectors made through REST are gone in standalone mode, so make them anew."""
    peer.start(program=program)
    _create_sources(peer, sources)


def _create_sources(peer: Peer, sources: Sequence[str]) -> None:
    for name in sources:
        config = {"connector.class": SOURCE_CLASS, "file": "{dir}/" + f"{name}.in", "topic": f"{name}-{{x}}"}
        peer.rest.create(peer.own(f"{name}-{{x}}"), peer.filled(config))


def _append(peer: Peer, name: str, content: bytes) -> None:
    with (peer.directory / f"{name}.in").open("ab") as file:
        file.write(content)


def _keep(peer: Peer, kept: Kept, scene: str, expected: Mapping[str, int]) -> None:
    """Wait for the records of each source, and a little longer, and keep what came and what was committed."""
    for name, count in expected.items():
        consume(peer.bootstrap, peer.own(f"{name}-{{x}}"), count)
    time.sleep(QUIET_S)
    for name in expected:
        # Commits come every second, but a machine that is busy makes them late.
        before = max((position for (other, _), position in kept.positions.items() if other == name), default=0)
        eventually(partial(_is_beyond, peer, name, before), COMMIT_TIMEOUT_S)
    _rest(peer, expected)
    for name in expected:
        topic = peer.own(f"{name}-{{x}}")
        found = values(consume(peer.bootstrap, topic, end_offsets(peer.bootstrap, topic)[0]))
        kept.contents[name, scene] = [(value or b"").decode() for value in found]
        kept.positions[name, scene] = _position(peer, name)


def _position(peer: Peer, name: str) -> int:
    offsets = peer.rest.offsets(peer.own(f"{name}-{{x}}"))
    return max((offset["position"] for _, offset in offsets if offset is not None), default=0)


def _rest(peer: Peer, names: Iterable[str]) -> None:
    """Wait until no position moves any more: what was read bit by bit is committed bit by bit."""
    deadline, before = time.monotonic() + COMMIT_TIMEOUT_S, None
    while before != (found := [_position(peer, name) for name in names]) and time.monotonic() < deadline:
        before = found
        time.sleep(QUIET_S)


def _is_beyond(peer: Peer, name: str, before: int) -> bool:
    return _position(peer, name) > before
