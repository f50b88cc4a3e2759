"""Positions read, altered and reset through REST: every shape and state, of a source and of a sink."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from tests.peer.steps import (
    SINK_CLASS,
    SOURCE_CLASS,
    Append,
    Ask,
    Committed,
    Lines,
    Records,
    Settle,
    Shows,
    States,
    Step,
)
from tests.peer.steps_protocol import JSON_BODY, code

SOURCE, SINK, TOPIC = "o-source-{x}", "o-sink-{x}", "o-lines-{x}"
_SOURCE_CONFIG = {"connector.class": SOURCE_CLASS, "file": "{dir}/o.in", "topic": TOPIC}
_SINK_CONFIG = {"connector.class": SINK_CLASS, "file": "{dir}/o.out", "topics": TOPIC}
_FILE = {"filename": "{dir}/o.in"}


def _entries(*entries: Any) -> dict[str, Any]:
    return {"offsets": list(entries)}


def _of_file(offset: Any, partition: Any = None) -> dict[str, Any]:
    return {"partition": _FILE if partition is None else partition, "offset": offset}


def _of_topic(offset: Any, topic: Any = TOPIC, partition: Any = 0) -> dict[str, Any]:
    return {"partition": {"kafka_topic": topic, "kafka_partition": partition}, "offset": {"kafka_offset": offset}}


def _bodies() -> Iterator[Ask]:
    """What is no request at all, whoever is asked."""
    for name, raw in (
        ("unknown field", b'{"offsets": [{"partition": {}, "offset": {}}], "more": 1}'),
        ("unknown field inside", b'{"offsets": [{"partition": {}, "offset": {}, "more": 1}]}'),
        ("a list", b"[]"),
        ("a text", b'"x"'),
        ("offsets as object", b'{"offsets": {}}'),
        ("offsets as text", b'{"offsets": "x"}'),
        ("null offsets", b'{"offsets": null}'),
        ("entry as text", b'{"offsets": ["x"]}'),
        ("null entry", b'{"offsets": [null]}'),
        ("partition as text", b'{"offsets": [{"partition": "x", "offset": {}}]}'),
        ("offset as number", b'{"offsets": [{"partition": {}, "offset": 1}]}'),
        ("trailing garbage", b'{"offsets": []} x'),
    ):
        for connector in (SOURCE, "nobody"):
            path = f"/connectors/{connector}/offsets"
            yield Ask(f"alter {connector} with {name}", "PATCH", path, raw=raw, headers=JSON_BODY, only=code)


def _wrong_for_the_sink() -> Iterator[Ask]:
    for name, entry in (
        ("empty entry", {}),
        ("no partition", {"offset": {"kafka_offset": 1}}),
        ("no offset", {"partition": {"kafka_topic": TOPIC, "kafka_partition": 0}}),
        ("empty partition", {"partition": {}, "offset": {"kafka_offset": 1}}),
        ("topic only", {"partition": {"kafka_topic": TOPIC}, "offset": {"kafka_offset": 1}}),
        ("partition only", {"partition": {"kafka_partition": 0}, "offset": {"kafka_offset": 1}}),
        ("null topic", _of_topic(1, topic=None)),
        ("topic as number", _of_topic(1, topic=5)),
        ("null partition", _of_topic(1, partition=None)),
        ("partition as text", _of_topic(1, partition="one")),
        ("partition as fraction", _of_topic(1, partition=0.5)),
        ("partition beyond int", _of_topic(1, partition=2147483648)),
        ("partition as boolean", _of_topic(1, partition=True)),
        ("negative partition", _of_topic(1, partition=-1)),
        ("partition that is none", _of_topic(1, partition=7)),
        ("topic that is none", _of_topic(1, topic="no-such-topic-{x}")),
        ("null number", _of_topic(None)),
        ("number as text", _of_topic("one")),
        ("number as fraction", _of_topic(1.5)),
        ("number beyond long", _of_topic(9223372036854775808)),
        ("negative number", _of_topic(-1)),
        ("other offset", {"partition": {"kafka_topic": TOPIC, "kafka_partition": 0}, "offset": {"position": 1}}),
        ("empty offset", {"partition": {"kafka_topic": TOPIC, "kafka_partition": 0}, "offset": {}}),
    ):
        yield Ask(f"alter the sink: {name}", "PATCH", f"/connectors/{SINK}/offsets", _entries(entry))


def _wrong_for_the_source() -> Iterator[Ask]:
    for name, entry in (
        ("negative", _of_file({"position": -1})),
        ("text", _of_file({"position": "4"})),
        ("fraction", _of_file({"position": 1.5})),
        ("null position", _of_file({"position": None})),
        ("empty offset", _of_file({})),
        ("other offset", _of_file({"other": 1})),
        ("boolean", _of_file({"position": True})),
        ("list", _of_file({"position": [1]})),
        ("empty partition", _of_file({"position": 1}, {})),
        ("other partition", _of_file({"position": 1}, {"file": "x"})),
        ("no partition", {"offset": {"position": 1}}),
    ):
        yield Ask(f"alter the source: {name}", "PATCH", f"/connectors/{SOURCE}/offsets", _entries(entry))


def _source_at(position: int) -> list[Any]:
    return [_of_file({"position": position})]


STEPS: tuple[Step, ...] = (
    Ask("offsets before anybody", "GET", "/connectors/nobody/offsets"),
    *_bodies(),
    Append("o.in", b"one\ntwo\nthree\nfour\n"),
    Ask(
        "create o-source stopped",
        "POST",
        "/connectors",
        {"name": SOURCE, "config": _SOURCE_CONFIG, "initial_state": "STOPPED"},
    ),
    States(SOURCE, ("STOPPED",)),
    Ask("offsets of a source that never ran", "GET", f"/connectors/{SOURCE}/offsets"),
    Ask("reset offsets that never were", "DELETE", f"/connectors/{SOURCE}/offsets"),
    Ask("alter before the first run", "PATCH", f"/connectors/{SOURCE}/offsets", _entries(_of_file({"position": 4}))),
    Committed(SOURCE, _source_at(4)),
    Ask("resume o-source", "PUT", f"/connectors/{SOURCE}/resume"),
    States(SOURCE, ("RUNNING", "RUNNING")),
    Records(TOPIC, 3),
    Committed(SOURCE, _source_at(19)),
    *_wrong_for_the_source(),
    Ask("pause o-source", "PUT", f"/connectors/{SOURCE}/pause"),
    States(SOURCE, ("PAUSED", "PAUSED")),
    Ask("alter a paused source", "PATCH", f"/connectors/{SOURCE}/offsets", _entries(_of_file({"position": 4}))),
    Ask("reset a paused source", "DELETE", f"/connectors/{SOURCE}/offsets"),
    Ask("offsets of a paused source", "GET", f"/connectors/{SOURCE}/offsets"),
    Ask("stop o-source", "PUT", f"/connectors/{SOURCE}/stop"),
    States(SOURCE, ("STOPPED",)),
    *(Ask(f"stopped, {each.name}", each.method, each.path, each.body) for each in _wrong_for_the_source()),
    Ask(
        "alter two of a source",
        "PATCH",
        f"/connectors/{SOURCE}/offsets",
        _entries(_of_file({"position": 8}), _of_file({"position": 2}, {"filename": "{dir}/other"})),
    ),
    Shows(f"/connectors/{SOURCE}/offsets", 2, only=lambda body: len(body["offsets"])),
    Ask("two of a source", "GET", f"/connectors/{SOURCE}/offsets", only=lambda body: sorted(body["offsets"], key=str)),
    Ask(
        "forget one of a source",
        "PATCH",
        f"/connectors/{SOURCE}/offsets",
        _entries(_of_file(None, {"filename": "{dir}/other"})),
    ),
    Committed(SOURCE, _source_at(8)),
    Ask(
        "alter with extra keys",
        "PATCH",
        f"/connectors/{SOURCE}/offsets",
        _entries(_of_file({"position": 19, "more": "x"})),
    ),
    Settle(),
    Ask("extra keys", "GET", f"/connectors/{SOURCE}/offsets"),
    Ask("create o-sink", "PUT", f"/connectors/{SINK}/config", _SINK_CONFIG),
    States(SINK, ("RUNNING", "RUNNING")),
    Lines("o.out", 3),
    Committed(SINK, [_of_topic(3)]),
    Ask("alter a running sink", "PATCH", f"/connectors/{SINK}/offsets", _entries(_of_topic(1))),
    Ask("alter a running sink wrongly", "PATCH", f"/connectors/{SINK}/offsets", _entries({})),
    Ask("stop o-sink", "PUT", f"/connectors/{SINK}/stop"),
    States(SINK, ("STOPPED",)),
    *_wrong_for_the_sink(),
    Ask("numbers of a sink as texts", "PATCH", f"/connectors/{SINK}/offsets", _entries(_of_topic("1", partition="0"))),
    Committed(SINK, [_of_topic(1)]),
    Ask("beyond the end of a topic", "PATCH", f"/connectors/{SINK}/offsets", _entries(_of_topic(500))),
    Committed(SINK, [_of_topic(500)]),
    Ask(
        "forget one of a sink",
        "PATCH",
        f"/connectors/{SINK}/offsets",
        _entries({"partition": {"kafka_topic": TOPIC, "kafka_partition": 0}, "offset": None}),
    ),
    Committed(SINK, []),
    Ask("reset the sink", "DELETE", f"/connectors/{SINK}/offsets"),
    Ask("reset the sink again", "DELETE", f"/connectors/{SINK}/offsets"),
    Ask("resume o-sink from the start", "PUT", f"/connectors/{SINK}/resume"),
    Lines("o.out", 6),
    Ask("delete o-sink", "DELETE", f"/connectors/{SINK}"),
    Ask("delete o-source", "DELETE", f"/connectors/{SOURCE}"),
    Ask("offsets of a deleted source", "GET", f"/connectors/{SOURCE}/offsets"),
    Ask("alter a deleted source", "PATCH", f"/connectors/{SOURCE}/offsets", _entries(_of_file({"position": 4}))),
    Ask(
        "create o-source again",
        "POST",
        "/connectors",
        {"name": SOURCE, "config": _SOURCE_CONFIG, "initial_state": "STOPPED"},
    ),
    States(SOURCE, ("STOPPED",)),
    Ask("offsets outlive a source", "GET", f"/connectors/{SOURCE}/offsets"),
    Ask("delete o-source for good", "DELETE", f"/connectors/{SOURCE}"),
)
