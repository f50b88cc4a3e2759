"""What a worker refuses or adds because its settings say so, the real Kafka Connect's answers beside Wherry's."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest
from tests.peer.accepted import ACCEPTED
from tests.peer.compare import differences, unwanted
from tests.peer.peers import CONNECT, WHERRY, Peer, together
from tests.peer.steps import SINK_CLASS, SOURCE_CLASS, Ask
from tests.support.rest import Answer

SETTINGS: Mapping[str, str] = {
    "connector.client.config.override.policy": "Principal",
    "topic.tracking.enable": "false",
    "access.control.allow.origin": "http://ui,http://other",
    "access.control.allow.methods": "GET,PUT",
    "response.http.headers.config": "set X-Frame-Options: DENY, add Cache-Control: no-cache, setDate Expires: 0",
    "admin.listeners": "",
}
HEADERS = (
    *("Access-Control-Allow-Origin", "Access-Control-Allow-Headers", "Access-Control-Max-Age", "Vary"),
    *("Access-Control-Allow-Credentials", "X-Frame-Options", "Cache-Control"),
)
SOURCE = {"name": "c-{x}", "connector.class": SOURCE_CLASS, "topic": "t", "file": "{dir}/f"}
SINK = {"name": "c-{x}", "connector.class": SINK_CLASS, "topics": "t", "file": "{dir}/f"}
JAAS = {"sasl.jaas.config": "x", "sasl.mechanism": "PLAIN", "security.protocol": "PLAINTEXT"}
UI = {"Origin": "http://ui", "Accept": "application/json"}
ASKS = {"Access-Control-Request-Method": "PUT", "Access-Control-Request-Headers": "x-y"}
VALIDATE = "/connector-plugins/FileStream{}/config/validate"


def _overrides(client: str, settings: Mapping[str, str]) -> dict[str, str]:
    return {f"{client}.override.{key}": value for key, value in settings.items()}


def _checks() -> list[Ask]:
    tables: tuple[tuple[str, str, dict[str, str], dict[str, Any]], ...] = (
        ("allowed", "Source", SOURCE, _overrides("producer", JAAS)),
        (
            "refused",
            "Source",
            SOURCE,
            _overrides("producer", {"linger.ms": "5", "foo": "1", "security.protocol": "SSL"}),
        ),
        ("of no client", "Source", SOURCE, _overrides("consumer", {"max.poll.records": "5"})),
        ("of a sink", "Sink", SINK, _overrides("consumer", {"max.poll.records": "5", "sasl.mechanism": "PLAIN"})),
        (
            "of its dead letters",
            "Sink",
            SINK,
            {
                "errors.deadletterqueue.topic.name": "d",
                **_overrides("admin", {"retries": "1"}),
                **_overrides("producer", {"acks": "1"}),
            },
        ),
    )
    checks = [
        Ask(f"validate {name}", "PUT", VALIDATE.format(kind), {**base, **more}) for name, kind, base, more in tables
    ]
    creates = [
        Ask(f"create {name}", "PUT", "/connectors/c-{x}/config", {**base, **more})
        for name, _, base, more in tables
        if name in ("refused", "of a sink")
    ]
    return [*checks, *creates]


STEPS = (
    *_checks(),
    Ask("topics", "GET", "/connectors/nobody/topics"),
    Ask("topics reset", "PUT", "/connectors/nobody/topics/reset"),
    Ask("no loggers", "GET", "/admin/loggers"),
    Ask("no logger", "PUT", "/admin/loggers/root", {"level": "INFO"}),
    Ask("from nowhere", "GET", "/connectors"),
    Ask("from the page", "GET", "/connectors", headers=UI),
    Ask("from another", "GET", "/connectors", headers={**UI, "Origin": "http://else"}),
    Ask("error for the page", "GET", "/connectors/nobody", headers=UI),
    Ask("no path for the page", "GET", "/nothing", headers=UI),
    Ask("question of the page", "OPTIONS", "/connectors/nobody", headers={**UI, **ASKS}),
    Ask("question of another", "OPTIONS", "/connectors/nobody", headers={**UI, **ASKS, "Origin": "http://else"}),
    Ask("no question", "OPTIONS", "/connectors/nobody", headers=UI),
)  # fmt: skip


@pytest.fixture(scope="module")
def answers(kafka_address: str, tmp_path_factory: pytest.TempPathFactory) -> dict[str, dict[str, Answer]]:
    """What both have answered to each step."""
    folder = tmp_path_factory.mktemp("closed")
    peers = [
        Peer(name, folder / name, kafka_address, distributed=name == CONNECT, settings=SETTINGS)
        for name in (CONNECT, WHERRY)
    ]
    given: dict[str, dict[str, Answer]] = {peer.name: {} for peer in peers}

    def live(peer: Peer) -> None:
        try:
            peer.start()
            given[peer.name] = {step.name: step.run(peer) for step in STEPS}
        finally:
            peer.stop()

    together(peers, live)
    return given


@pytest.mark.parametrize("step", [step.name for step in STEPS])
def test_a_closed_worker_answers_as_kafka_connects_does(answers: dict[str, dict[str, Answer]], step: str) -> None:
    connect, wherry = answers[CONNECT][step], answers[WHERRY][step]
    wrong = unwanted(step, differences(connect, wherry), ACCEPTED)
    assert not wrong, "\n".join(map(str, wrong))
    for header in HEADERS:
        assert wherry.headers.get(header) == connect.headers.get(header), header
    assert ("Expires" in wherry.headers) == ("Expires" in connect.headers)
    methods = "Access-Control-Allow-Methods"
    assert sorted(wherry.headers.get(methods, "").split(",")) == sorted(connect.headers.get(methods, "").split(","))
