"""Which client settings a connector may override, and who may ask: the real Kafka Connect's answers beside Wherry's."""

from __future__ import annotations

import base64
from collections.abc import Iterator, Mapping
from typing import Any

import pytest
from tests.peer.accepted import ACCEPTED
from tests.peer.compare import differences, unwanted
from tests.peer.peers import CLUSTER, CONNECT, WHERRY, Peer, basic, together
from tests.peer.steps import SINK_CLASS, SOURCE_CLASS, Ask
from tests.peer.steps_protocol import JSON_BODY
from tests.support.rest import Answer

POLICY = "connector.client.config.override"
SOURCE = {"name": "p-{x}", "connector.class": SOURCE_CLASS, "topic": "t", "file": "{dir}/f"}
SINK = {"name": "p-{x}", "connector.class": SINK_CLASS, "topics": "t", "file": "{dir}/f"}
LETTERS = {"errors.deadletterqueue.topic.name": "d-{x}", "errors.deadletterqueue.topic.replication.factor": "1"}
VALIDATE = "/connector-plugins/FileStream{}/config/validate"
OVERRIDES: tuple[tuple[str, str, Mapping[str, Any]], ...] = (
    ("nothing", "Source", {}),
    ("linger", "Source", {"producer.override.linger.ms": "5"}),
    ("linger and more", "Source", {"producer.override.linger.ms": "5", "producer.override.acks": "1"}),
    ("jaas", "Source", {"producer.override.sasl.jaas.config": "x", "admin.override.security.protocol": "PLAINTEXT"}),
    ("admin", "Source", {"admin.override.retries": "3", "admin.override.linger.ms": "5"}),
    ("another client's", "Source", {"consumer.override.max.poll.records": "5"}),
    ("an unknown key", "Source", {"producer.override.foo": "1"}),
    ("an empty key", "Source", {"producer.override.": "1"}),
    ("no value", "Source", {"producer.override.linger.ms": None}),
    ("another case", "Source", {"producer.override.LINGER.MS": "5"}),
    ("poll", "Sink", {"consumer.override.max.poll.records": "5"}),
    ("poll and more", "Sink", {"consumer.override.max.poll.records": "5", "consumer.override.fetch.min.bytes": "1"}),
    ("letters", "Sink", {**LETTERS, "producer.override.linger.ms": "5", "admin.override.retries": "1"}),
)


def _overridden() -> Iterator[Ask]:
    for name, kind, more in OVERRIDES:
        config = {**(SOURCE if kind == "Source" else SINK), **more}
        yield Ask(f"validate {kind}: {name}", "PUT", VALIDATE.format(kind), config)
        if more:
            # One key is wrong in any case, so that nothing has to be started and deleted.
            config = {**config, "tasks.max": "0"}
            yield Ask(f"create {kind}: {name}", "POST", "/connectors", {"name": "p-{x}", "config": config})


def _asked() -> Iterator[Ask]:
    asking: tuple[tuple[str, str], ...] = (
        ("wrong", basic("ann", "wrong")),
        ("no such user", basic("eve", "")),
        ("second user", basic("bob", "p:w")),
        ("lower case", basic("ann", "secret").replace("Basic", "basic")),
        ("no colon", "Basic " + base64.b64encode(b"ann").decode()),
        ("bearer", "Bearer secret"),
        ("empty", ""),
    )
    requests: tuple[tuple[str, str, Any], ...] = (
        ("GET", "/", None),
        ("GET", "/health", None),
        ("GET", "/connectors", None),
        ("GET", "/nothing", None),
        ("DELETE", "/connectors/nobody", None),
        ("PUT", "/connectors/nobody/pause", None),
        ("POST", "/connectors/nobody/tasks", []),
        ("PUT", "/connectors/nobody/fence", None),
        ("PUT", "/admin/loggers/root?scope=cluster", {"level": "NOPE"}),
    )
    for who, header in asking:
        for method, path, body in requests:
            sent = {"Accept": "application/json", "Authorization": header, **(JSON_BODY if body is not None else {})}
            yield Ask(f"{who}: {method} {path}", method, path, body, headers=sent)


RUNS: Mapping[str, tuple[dict[str, str], dict[str, str], tuple[Ask, ...]]] = {
    "none": ({f"{POLICY}.policy": "None"}, {}, tuple(_overridden())),
    "allowlist": (
        {f"{POLICY}.policy": "Allowlist", f"{POLICY}.allowlist": "linger.ms,max.poll.records,retries"},
        {"ann": "secret", "bob": "p:w"},
        (*_overridden(), *_asked()),
    ),
}
ASKED = [(run, step.name) for run, (_, _, steps) in RUNS.items() for step in steps]
Answers = dict[tuple[str, str], dict[str, Answer]]


@pytest.fixture(scope="module")
def answers(kafka_address: str, tmp_path_factory: pytest.TempPathFactory) -> Answers:
    """What both have answered to each step under each of the settings."""
    folder = tmp_path_factory.mktemp("policies")
    given: Answers = {asked: {} for asked in ASKED}

    def live(peer: Peer, run: str, steps: tuple[Ask, ...]) -> None:
        try:
            peer.start()
            for step in steps:
                given[run, step.name][_kind(peer.name)] = step.run(peer)
        finally:
            peer.stop()

    for run, (settings, users, steps) in RUNS.items():
        peers = [
            Peer(name, folder / run / name, kafka_address, distributed=name == CONNECT, settings=settings, users=users)
            for name in (CONNECT, CLUSTER if users else WHERRY)
        ]
        together(peers, lambda peer: live(peer, run, steps))  # noqa: B023 - ends before the next one begins
    return given


def _kind(name: str) -> str:
    return CONNECT if name == CONNECT else WHERRY


@pytest.mark.parametrize(("run", "step"), ASKED)
def test_a_worker_with_rules_answers_as_kafka_connects_does(answers: Answers, run: str, step: str) -> None:
    given = answers[run, step]
    wrong = unwanted(step, differences(given[CONNECT], given[WHERRY]), ACCEPTED)
    assert not wrong, "\n".join(map(str, wrong))
