"""What is counted of records that fail: the figures of Kafka Connect's JMX, and those of our REST API."""

from __future__ import annotations

import subprocess
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

import pytest
from tests.peer.peers import CONNECT, WHERRY, Peer, together
from tests.peer.steps import SINK_CLASS, SOURCE_CLASS
from tests.support.topics import create_topic, produce
from tests.support.waiting import eventually

from wherry.coordinator.dev.java import find_java
from wherry.coordinator.dev.ports import free_ports

SOURCE: Final = Path(__file__).with_name("jmx") / "Counts.java"
GROUP: Final = "task-error-metrics"
PACKAGE: Final = "org.apache.kafka.connect.transforms."
JSON: Final = "org.apache.kafka.connect.json.JsonConverter"
DOUBLE: Final = "org.apache.kafka.connect.converters.DoubleConverter"
SETTLE_TIMEOUT_S: Final = 180.0
JMX_TIMEOUT_S: Final = 180.0
QUIET_S: Final = 2.5
NAMES: Final[Mapping[str, str]] = {
    "total-record-failures": "failures",
    "total-record-errors": "errors",
    "total-records-skipped": "skipped",
    "total-retries": "retries",
    "total-errors-logged": "logged",
    "deadletterqueue-produce-requests": "dead_letters",
    "deadletterqueue-produce-failures": "dead_letter_failures",
}
ALL: Final = {"errors.tolerance": "all"}
LOGGED: Final = {"errors.log.enable": "true"}
DEAD: Final = {
    "errors.deadletterqueue.topic.name": "dead-{x}",
    "errors.deadletterqueue.topic.replication.factor": "1",
}
BARE: Final = {"value.converter": JSON, "value.converter.schemas.enable": "false"}
CAST: Final = {
    "transforms": "cast",
    "transforms.cast.type": f"{PACKAGE}Cast$Value",
    "transforms.cast.spec": "int32",
}
HEADER: Final = {
    "header.converter": DOUBLE,
    "transforms": "add",
    "transforms.add.type": f"{PACKAGE}InsertHeader",
    "transforms.add.header": "h",
    "transforms.add.value.literal": "2024-01-02",
}


@dataclass(frozen=True, slots=True)
class Case:
    """Settings, how many failures are counted, the records of a sink or the lines of a source; whether the task fails.

    `topic` has the settings of a topic that is made before; without any, a source's makes itself. `beyond` is what we
    count and Kafka Connect does not: records that a producer does not get rid of are failures to it, but neither errors
    nor skipped, and none of it where they end the task.
    """

    config: Mapping[str, str]
    failures: int
    records: tuple[bytes, ...] = ()
    lines: tuple[str, ...] = ()
    fails: bool = False
    topic: Mapping[str, str] = field(default_factory=dict)
    beyond: Mapping[str, int] = field(default_factory=dict)


def _passed(count: int) -> dict[str, int]:
    return {"total-record-errors": count, "total-records-skipped": count}


POISON: Final = (b"1", b"{damaged", b"2", b"tru", b"3")
LINES: Final = ("1", "x", "2", "y", "3")
LARGE: Final = ("1", "x" * 5_000, "2", "y" * 5_000, "3")
ASKED: Final = {"producer.override.max.request.size": "2000"}
TAKEN: Final = {"max.message.bytes": "2000"}
ENDS: Final = {"total-record-failures": 1, "total-record-errors": 1, "total-errors-logged": 1}
NOWHERE: Final = {
    "transforms": "route",
    "transforms.route.type": f"{PACKAGE}RegexRouter",
    "transforms.route.regex": ".*",
    "transforms.route.replacement": "no topic",
}
CASES: Final[Mapping[str, Case]] = {
    "skipped": Case(ALL | BARE, 2, POISON),
    "letters": Case(ALL | LOGGED | DEAD | BARE, 2, POISON),
    "failed": Case(LOGGED | DEAD | BARE, 1, POISON, fails=True),
    "silent": Case(BARE, 1, POISON, fails=True),
    "retried": Case(ALL | LOGGED | DEAD | BARE | {"errors.retry.timeout": "500"}, 2, POISON),
    "transformed": Case(ALL | LOGGED | CAST, 2, POISON),
    "untransformed": Case(LOGGED | DEAD | CAST, 1, POISON, fails=True),
    "lines": Case(ALL | LOGGED | CAST, 2, lines=LINES),
    "badlines": Case(LOGGED | CAST, 1, lines=LINES, fails=True),
    "headers": Case(ALL | LOGGED | HEADER, 5, lines=LINES),
    "unsent": Case(ALL | LOGGED | ASKED, 2, lines=LARGE, beyond=_passed(2)),
    "notsent": Case(LOGGED | ASKED, 0, lines=LARGE, fails=True, beyond=ENDS),
    "refused": Case(ALL | LOGGED, 1, lines=LARGE[1:2], topic=TAKEN, beyond=_passed(1)),
    "nottaken": Case(LOGGED, 0, lines=LARGE[1:2], fails=True, topic=TAKEN, beyond=ENDS),
    "nowhere": Case(ALL | LOGGED | NOWHERE, 5, lines=LINES, beyond=_passed(5)),
}


@dataclass(slots=True)
class Counted:
    """By connector, and Kafka Connect's name of the figure."""

    figures: dict[str, dict[str, int]] = field(default_factory=dict)


@pytest.fixture(scope="module")
def both(kafka_address: str, tmp_path_factory: pytest.TempPathFactory) -> Mapping[str, Counted]:
    """What both have counted of the same records."""
    folder = tmp_path_factory.mktemp("counts")
    port = free_ports(1)[0]
    jmx = {
        "port": port, "rmi.port": port, "authenticate": "false", "ssl": "false", "host": "127.0.0.1",
    }  # fmt: skip
    options = [f"-Dcom.sun.management.jmxremote.{key}={value}" for key, value in jmx.items()]
    options.append("-Djava.rmi.server.hostname=127.0.0.1")
    peers = [
        Peer(CONNECT, folder / CONNECT, kafka_address, jvm_options=options),
        Peer(WHERRY, folder / WHERRY, kafka_address),
    ]
    counted = {peer.name: Counted() for peer in peers}
    together(peers, lambda peer: _play(peer, counted[peer.name], port))
    return counted


@pytest.mark.parametrize("name", CASES)
def test_both_count_the_same(both: Mapping[str, Counted], name: str) -> None:
    beyond = CASES[name].beyond
    wanted = {key: count + beyond.get(key, 0) for key, count in both[CONNECT].figures[name].items()}
    assert both[WHERRY].figures[name] == wanted


def _play(peer: Peer, counted: Counted, port: int) -> None:
    for name, case in CASES.items():
        if case.topic:
            create_topic(peer.bootstrap, f"{name}-{peer.suffix}", config=dict(case.topic))
        if case.records:
            produce(peer.bootstrap, create_topic(peer.bootstrap, f"{name}-{peer.suffix}"), list(case.records))
    peer.start()
    try:
        for name, case in CASES.items():
            (peer.directory / f"{name}.txt").write_text("".join(f"{line}\n" for line in case.lines))
            kind = {"connector.class": SINK_CLASS, "topics": f"{name}-{{x}}"}
            if case.lines:
                kind = {"connector.class": SOURCE_CLASS, "topic": f"{name}-{{x}}"}
            config = {**kind, "tasks.max": "1", "file": f"{{dir}}/{name}.txt", **case.config}
            answer = peer.ask("POST", "/connectors", {"name": f"{name}-{{x}}", "config": config})
            assert answer.status == 201, answer
        assert eventually(lambda: _counted(peer, counted, port), SETTLE_TIMEOUT_S), f"{peer.name}: {counted.figures}"
        # What came last may not be counted everywhere yet.
        time.sleep(QUIET_S)
        assert _counted(peer, counted, port), f"{peer.name}: {counted.figures}"
    finally:
        peer.stop()


def _counted(peer: Peer, counted: Counted, port: int) -> bool:
    """Whether all that has to be given up was; a task that fails is not asked for more than that."""
    found = _jmx(port) if peer.name == CONNECT else _rest(peer)
    counted.figures = {name.removesuffix(f"-{peer.suffix}"): each for name, each in found.items()}
    states = {name: peer.rest.states(f"{name}-{peer.suffix}")[1:] for name in CASES}
    return all(
        counted.figures.get(name, {}).get("total-record-failures", 0) >= case.failures
        and states[name] == ("FAILED" if case.fails else "RUNNING",)
        for name, case in CASES.items()
    )


def _jmx(port: int) -> dict[str, dict[str, int]]:
    command = [str(find_java().executable), str(SOURCE), str(port), GROUP]
    told = subprocess.run(command, check=True, capture_output=True, text=True, timeout=JMX_TIMEOUT_S)
    found: dict[str, dict[str, int]] = {}
    for line in told.stdout.splitlines():
        connector, key, value = line.split("\t")
        if key in NAMES:
            found.setdefault(connector.strip('"'), {})[key] = round(float(value))
    return found


def _rest(peer: Peer) -> dict[str, dict[str, int]]:
    shown = peer.rest.call("GET", "/wherry/v1/connectors").body["connectors"]
    first = {each["name"]: each["tasks"][0] for each in shown if each["tasks"]}
    return {name: {key: task[ours] for key, ours in NAMES.items()} for name, task in first.items()}
