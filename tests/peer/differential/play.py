"""Plays cases on one of the two systems and gathers what came of them."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.peer.differential.cases import Case
from tests.peer.peers import Peer
from tests.support.topics import consume, create_topic, end_offsets

CREATE_TIMEOUT_S = 60.0
DONE_TIMEOUT_S = 240.0
QUIET_S = 3.0
"""How long nothing more may come from sources before what has come counts as all."""
POLL_S = 0.3
KEPT = {"retention.ms": "-1"}
"""The records are of a fixed day that is long gone; a broker would delete them after half a minute."""
STACK_TRACE = "__connect.errors.exception.stacktrace"

Headers = tuple[tuple[str, bytes | None], ...]
Written = tuple[bytes | None, bytes | None, Headers]


@dataclass(frozen=True, slots=True)
class Outcome:
    """What came of a case on one system, with placeholders in the place of names.

    Attributes:
        status: HTTP status of its creation.
        state: Of the task; empty when there is none.
        lines: What the sink wrote.
        written: What the source wrote.
        dead: The dead letters.
        why: Of a failure, for the reader of a report; not compared.
    """

    status: int
    state: str = ""
    lines: tuple[bytes, ...] = ()
    written: tuple[Written, ...] = ()
    dead: tuple[Written, ...] = ()
    why: str = ""


def play(peer: Peer, cases: Sequence[Case]) -> dict[int, Outcome]:
    """Plays cases side by side on a system that runs; its connectors are deleted afterwards."""
    statuses: dict[int, tuple[int, str]] = {}
    for case in cases:
        _prepare(peer, case)
        config = {**_own(peer, case), "name": _name(peer, case)}
        answer = peer.rest.call(
            "POST", "/connectors", {"name": config["name"], "config": config}, timeout_s=CREATE_TIMEOUT_S
        )
        statuses[case.number] = (answer.status, "" if answer.status == 201 else str(answer.body))
    running = [case for case in cases if statuses[case.number][0] == 201]
    try:
        _wait(peer, running)
        return {
            case.number: _outcome(peer, case)
            if case in running
            else Outcome(statuses[case.number][0], why=statuses[case.number][1])
            for case in cases
        }
    finally:
        for case in running:
            peer.rest.call("DELETE", f"/connectors/{_name(peer, case)}")


def _name(peer: Peer, case: Case) -> str:
    return f"d{case.number}-{peer.suffix}"


def _topic(peer: Peer, case: Case) -> str:
    return f"d{case.number}-{peer.suffix}"


def _dead(peer: Peer, case: Case) -> str:
    return f"dead{case.number}-{peer.suffix}"


def _file(peer: Peer, case: Case) -> Path:
    return peer.directory / f"d{case.number}.txt"


def _own(peer: Peer, case: Case) -> dict[str, str]:
    places = {"{topic}": _topic(peer, case), "{file}": str(_file(peer, case)), "{dead}": _dead(peer, case)}
    return {key: places.get(value, value) for key, value in case.config.items()}


def _prepare(peer: Peer, case: Case) -> None:
    topic = create_topic(peer.bootstrap, _topic(peer, case), config=KEPT)
    if case.is_sink:
        create_topic(peer.bootstrap, _dead(peer, case), config=KEPT)
        _produce(peer.bootstrap, topic, case)
    else:
        _file(peer, case).write_text("".join(f"{line}\n" for line in case.lines))


def _produce(bootstrap: str, topic: str, case: Case) -> None:
    from confluent_kafka import Producer

    producer = Producer({"bootstrap.servers": bootstrap, "linger.ms": 20, "log_level": 0})
    for record in case.records:
        producer.produce(
            topic, record.value, record.key, 0, timestamp=record.timestamp_ms, headers=list(record.headers)
        )
    assert producer.flush(CREATE_TIMEOUT_S) == 0, "the broker did not acknowledge everything in time"


def _wait(peer: Peer, cases: Sequence[Case]) -> None:
    """Waits until every task has failed or read all, and nothing more comes from sources or as a dead letter."""
    deadline = time.monotonic() + DONE_TIMEOUT_S
    waiting = {case.number: case for case in cases}
    written = [_topic(peer, case) if not case.is_sink else _dead(peer, case) for case in cases]
    quiet_since, seen = time.monotonic(), -1
    while time.monotonic() < deadline:
        for case in list(waiting.values()):
            states = peer.rest.states(_name(peer, case))
            done = _has_read_all(peer, case) if case.is_sink else states[1:] == ("RUNNING",)
            if done or "FAILED" in states:
                del waiting[case.number]
        count = sum(end_offsets(peer.bootstrap, topic)[0] for topic in written)
        if count != seen or waiting:
            quiet_since, seen = time.monotonic(), count
        if time.monotonic() - quiet_since >= QUIET_S:
            return
        time.sleep(POLL_S)


def _has_read_all(peer: Peer, case: Case) -> bool:
    offsets = [offset for _, offset in peer.rest.offsets(_name(peer, case))]
    return any(offset is not None and offset["kafka_offset"] == len(case.records) for offset in offsets)


def _outcome(peer: Peer, case: Case) -> Outcome:
    shown = peer.rest.call("GET", f"/connectors/{_name(peer, case)}/status").body
    task: Mapping[str, Any] = next(iter(shown["tasks"]), shown["connector"])
    if not case.is_sink:
        return Outcome(201, task["state"], written=_read(peer, case, _topic(peer, case)), why=task.get("trace") or "")
    path = _file(peer, case)
    lines = tuple(path.read_bytes().split(b"\n")[:-1]) if path.exists() else ()
    return Outcome(201, task["state"], lines, dead=_read(peer, case, _dead(peer, case)), why=task.get("trace") or "")


def _read(peer: Peer, case: Case, topic: str) -> tuple[Written, ...]:
    count = end_offsets(peer.bootstrap, topic)[0]
    messages = consume(peer.bootstrap, topic, count) if count else []
    neutral = _neutral(peer, case)
    return tuple(
        (
            neutral(message.key()),
            neutral(message.value()),
            tuple((name, neutral(value)) for name, value in message.headers() or () if name != STACK_TRACE),
        )
        for message in messages
    )


def _neutral(peer: Peer, case: Case) -> Callable[[bytes | None], bytes | None]:
    own = _name(peer, case).encode()

    def neutral(value: bytes | None) -> bytes | None:
        return value if value is None else value.replace(own, b"{x}")

    return neutral
