"""Plays cases on one of the two systems and gathers what came of them."""

from __future__ import annotations

import base64
import json
import re
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from tests.peer.differential.cases import TYPED_SOURCE, Case
from tests.peer.differential.wire import Wire
from tests.peer.peers import Peer

CREATE_TIMEOUT_S = 120.0
DONE_TIMEOUT_S = 240.0
QUIET_S = 2.5
"""How long nothing more may come before what has come counts as all, when all has been read."""
LONG_QUIET_S = 10.0
"""The same where a source does not show that it has read all: Kafka Connect commits nothing of what it leaves out."""
POLL_S = 0.4
STACK_TRACE = "__connect.errors.exception.stacktrace"
MADE_BEFORE_MS = 1_760_000_000_000
"""Time stamps of records lie before it, those that a producer gave itself behind it."""

_NO_JSON = object()
_NUMBER = re.compile(r"-?\d+\.\d+(?:[eE][-+]?\d+)?")
_MOMENT = re.compile(r"\w{3} \w{3} \d\d \d\d:\d\d:\d\d UTC \d{4,}|[+-]?\d{4,}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z")
ADDRESS = re.compile(rb"\[B@[0-9a-f]+|java\.nio\.HeapByteBuffer\[pos=0 lim=\d+ cap=\d+\]")
PLACE = re.compile(r"(?<!\$)\{(?:topic|file|dead)\}")
"""What Java prints for an array of bytes is where it lies; ours is how long it is. Neither is of use to anybody."""

Headers = tuple[tuple[str, bytes | None], ...]


class Written(NamedTuple):
    """A record in a topic.

    Attributes:
        place: Its topic's name, with its partition where that is not a matter of chance.
        timestamp_ms: None where it is that of its writing.
    """

    place: str
    key: bytes | None
    value: bytes | None
    headers: Headers
    timestamp_ms: int | None


@dataclass(frozen=True, slots=True)
class Outcome:
    """What came of a case on one system, with placeholders in the place of names.

    Attributes:
        status: HTTP status of its creation.
        state: Of the task; empty when there is none.
        lines: What the sink wrote.
        written: What the source wrote.
        dead: The dead letters.
        why: Trace of a failure. What Kafka Connect's says first as a cause has to be in ours, too.
    """

    status: int
    state: str = ""
    lines: tuple[bytes, ...] = ()
    written: tuple[Written, ...] = ()
    dead: tuple[Written, ...] = ()
    why: str = ""


class Player:
    """Plays on one system that runs.

    Args:
        peer: The system.
        wire: Its broker.
    """

    def __init__(self, peer: Peer, wire: Wire) -> None:
        self._peer, self._wire = peer, wire

    def play(self, cases: Sequence[Case]) -> dict[int, Outcome]:
        """Plays cases side by side; their connectors are deleted afterwards."""
        self._prepare(cases)
        refused: dict[int, Outcome] = {}
        for case in cases:
            config = {**self._own(case), "name": self._name(case)}
            body = {"name": config["name"], "config": config}
            answer = self._peer.rest.call("POST", "/connectors", body, timeout_s=CREATE_TIMEOUT_S)
            if answer.status != 201:
                refused[case.number] = Outcome(answer.status, why=str(answer.body))
        running = [case for case in cases if case.number not in refused]
        try:
            self._wait(running)
            return {**refused, **self._outcomes(running)}
        finally:
            for case in running:
                self._peer.rest.call("DELETE", f"/connectors/{self._name(case)}", timeout_s=CREATE_TIMEOUT_S)

    def _name(self, case: Case) -> str:
        # Of both systems' names the ends are the same: patterns of the cases look at them.
        return f"d{case.number}-{self._peer.suffix}z"

    def _dead(self, case: Case) -> str:
        return f"dead{case.number}-{self._peer.suffix}"

    def _file(self, case: Case) -> Path:
        return self._peer.directory / f"d{case.number}.txt"

    def _own(self, case: Case) -> dict[str, str]:
        places = {"{topic}": self._name(case), "{file}": str(self._file(case)), "{dead}": self._dead(case)}

        def own(value: str) -> str:
            # A dollar before it makes it TimestampRouter's own.
            return PLACE.sub(lambda found: places[found[0]], value)

        return {key: own(value) for key, value in case.config.items()}

    def _prepare(self, cases: Sequence[Case]) -> None:
        topics = {f"{self._name(case)}{suffix}": wide for case in cases for suffix, wide in case.partitions.items()}
        self._wire.create(topics | {self._dead(case): 1 for case in cases if case.is_sink})
        for case in cases:
            if case.is_sink:
                self._wire.produce(self._name(case), case.records, case.compression)
            else:
                self._file(case).write_text("".join(f"{line}\n" for line in case.lines))
        self._wire.flush()

    def _wait(self, cases: Sequence[Case]) -> None:
        """Waits until every task has failed or read all, and nothing more comes from sources or as a dead letter."""
        deadline = time.monotonic() + DONE_TIMEOUT_S
        waiting = {self._name(case): case for case in cases}
        quiet_since, seen = time.monotonic(), -1
        while time.monotonic() < deadline:
            states = self._states()
            for name, case in list(waiting.items()):
                found = states.get(name, ())
                if "FAILED" in found or (self._has_read_all(case) if case.is_sink else self._is_at_end(case)):
                    del waiting[name]
            count = sum(self._wire.ends(self._outputs(cases)).values())
            sources_run = all(
                not case.is_sink and states.get(name, ())[1:] == ("RUNNING",) for name, case in waiting.items()
            )
            if count != seen or not sources_run:
                quiet_since, seen = time.monotonic(), count
            if time.monotonic() - quiet_since >= (LONG_QUIET_S if waiting else QUIET_S):
                return
            time.sleep(POLL_S)

    def _states(self) -> dict[str, tuple[str, ...]]:
        shown = self._peer.rest.call("GET", "/connectors?expand=status").body
        return {
            name: (each["status"]["connector"]["state"], *(task["state"] for task in each["status"]["tasks"]))
            for name, each in shown.items()
        }

    def _outputs(self, cases: Sequence[Case]) -> list[str]:
        """The topics that cases write to; transforms make names of their own around those they are given."""
        sources = [self._name(case) for case in cases if not case.is_sink]
        found = [name for name in self._wire.topics() if any(own in name for own in sources)]
        return [*found, *(self._dead(case) for case in cases if case.is_sink)]

    def _offsets(self, case: Case) -> list[dict[str, Any]]:
        """What is committed; nothing where a busy broker has not answered in time: it is asked again."""
        answer = self._peer.rest.call("GET", f"/connectors/{self._name(case)}/offsets")
        listed = answer.body["offsets"] if answer.status == 200 else ()
        return [entry["offset"] for entry in listed if entry["offset"] is not None]

    def _has_read_all(self, case: Case) -> bool:
        offsets = self._offsets(case)
        return sum(offset["kafka_offset"] for offset in offsets) == len(case.records)

    def _is_at_end(self, case: Case) -> bool:
        offsets = self._offsets(case)
        if case.config["connector.class"] == TYPED_SOURCE:
            return offsets == [{"line": len(case.lines)}]
        return offsets == [{"position": self._file(case).stat().st_size}]

    def _outcomes(self, cases: Sequence[Case]) -> dict[int, Outcome]:
        written = self._wire.read(self._outputs(cases))
        return {case.number: self._outcome(case, written) for case in cases}

    def _outcome(self, case: Case, written: Mapping[str, list[Any]]) -> Outcome:
        name = self._name(case)
        shown = self._peer.rest.call("GET", f"/connectors/{name}/status").body
        task: Mapping[str, Any] = next(iter(shown["tasks"]), shown["connector"])
        state, why = task["state"], (task.get("trace") or "").replace(name, "{x}")
        if not case.is_sink:
            mine = [message for topic, messages in written.items() if name in topic for message in messages]
            return Outcome(201, state, written=self._sources(case, mine), why=why)
        path = self._file(case)
        text = ADDRESS.sub(b"[B@", path.read_bytes().replace(name.encode(), b"{x}")) if path.exists() else b""
        lines = text.split(b"\n")[:-1]
        lines = [*map(_canonical, lines)] if case.shows_records else lines
        dead = [self._neutral(case, message, "dead") for message in written.get(self._dead(case), ())]
        if case.is_wide:
            lines = sorted(lines, key=_placed if case.shows_records else _loosely)
            dead.sort(key=_loosely)
        return Outcome(201, state, tuple(lines), dead=tuple(dead), why=why)

    def _sources(self, case: Case, messages: list[Any]) -> tuple[Written, ...]:
        """Records of a source; where chance chose the partition of those without a key they are ordered otherwise."""
        chance = sum(case.partitions.values()) > 1
        placed, free = [], []
        for message in messages:
            topic = message.topic().replace(self._name(case), "{x}")
            if chance and self._is_free(case, message.key()):
                free.append(self._neutral(case, message, f"{topic}-*"))
            else:
                placed.append(self._neutral(case, message, f"{topic}-{message.partition()}"))
        return (*placed, *sorted(free, key=_loosely))

    def _is_free(self, case: Case, key: bytes | None) -> bool:
        """Whether the partition says nothing: without a key, or by a key that the other system can't have."""
        if key is None or ADDRESS.search(key) is not None or self._name(case).encode() in key:
            return True
        # The order of a map's entries is not the other's, and so neither is the partition that their text decides.
        return key.startswith(b"{") and b'"schema":{' not in key

    def _neutral(self, case: Case, message: Any, place: str) -> Written:
        neutral = _neutral(self._name(case))
        headers = tuple((name, neutral(value)) for name, value in message.headers() or () if name != STACK_TRACE)
        stamp = message.timestamp()[1]
        return Written(
            place, neutral(message.key()), neutral(message.value()), headers, stamp if stamp < MADE_BEFORE_MS else None
        )


def _loosely(record: Any) -> tuple[str, str, str]:
    """A key to sort by that does not mind what may differ: order and forms of a map's entries, numbers and moments.

    Only of those that are the same by that the exact text decides.
    """
    parts = [_alike(part) for part in record] if isinstance(record, Written) else [_alike(record)]
    exact = repr(parts)
    text = _MOMENT.sub("#", exact)
    text = _NUMBER.sub(lambda number: f"{float(number[0]):.6g}", text)
    return "".join(sorted(text)), text, exact


def _alike(part: Any) -> Any:
    """A part of a record, its JSON in one form, and none where it says null, with a schema or without."""
    try:
        value = json.loads(part) if isinstance(part, bytes) else _NO_JSON
    except ValueError:
        value = _NO_JSON
    if value is _NO_JSON:
        return part
    payload = value["payload"] if isinstance(value, dict) and value.keys() == {"schema", "payload"} else value
    return None if payload is None else json.dumps(value, sort_keys=True)


def _placed(line: bytes) -> tuple[str, int, int, tuple[str, str, str]]:
    """A key to sort shown records by: where they come from, which others have only where topics are routed together."""
    shown = json.loads(line)
    return shown["topic"], shown["partition"], shown["offset"], _loosely(line)


def _canonical(line: bytes) -> bytes:
    """A line of JSON, its objects in one order: maps have none, and of a struct's fields the schema tells it.

    Headers show as texts where they are some.
    """
    shown = json.loads(line)
    shown["headers"] = [[name, _header(value)] for name, value in shown["headers"]]
    return json.dumps(shown, sort_keys=True).encode()


def _header(value: Any) -> Any:
    if not isinstance(value, str):
        return value
    return base64.b64decode(value).decode(errors="backslashreplace")


def _neutral(own: str) -> Callable[[bytes | None], bytes | None]:
    def neutral(value: bytes | None) -> bytes | None:
        return None if value is None else ADDRESS.sub(b"[B@", value.replace(own.encode(), b"{x}"))

    return neutral
