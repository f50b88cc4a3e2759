"""Topics that sources make: by the same rules on both, refused alike, and left alone where they are there already."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from tests.peer.peers import CONNECT, WHERRY, Peer, together
from tests.peer.steps import SOURCE_CLASS
from tests.support.topics import TIMEOUT_S, create_topic, end_offsets
from tests.support.waiting import eventually

from wherry.coordinator.dev.kafka import EmbeddedKafka
from wherry.coordinator.kafka import KafkaAdmin

SETTLE_TIMEOUT_S = 180.0
CLOSED = "closed-"
"""What the names of topics begin with that nobody may make."""
BROKER = {
    "num.partitions": "2",
    "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    "allow.everyone.if.no.acl.found": "true",
}
SHOWN = ("cleanup.policy", "retention.ms", "segment.bytes", "min.insync.replicas")
NUMBERS = {"default.partitions": "3", "default.replication.factor": "1"}


NO_FACTOR = 'Missing required configuration "topic.creation.default.replication.factor" which has no default value.'
NO_PARTITIONS = 'Missing required configuration "topic.creation.default.partitions" which has no default value.'
POSITIVE = "Number of partitions must be positive, or -1 to use the broker's default"
NO_INT = "for configuration topic.creation.default.partitions: Not a number of type INT"


@dataclass(frozen=True, slots=True)
class Case:
    """The `topic.creation.*` keys of a source, and what its failure says on both; its topic, and partitions it has."""

    keys: Mapping[str, str]
    told: str = ""
    topic: str = "{x}-{case}"
    there: int = 0
    more: Mapping[str, str] = field(default_factory=dict)


ROUTED = {
    "transforms": "route",
    "transforms.route.type": "org.apache.kafka.connect.transforms.RegexRouter",
    "transforms.route.regex": ".*-(.*)",
    "transforms.route.replacement": "routed-{x}-$1",
}
CASES: Mapping[str, Case] = {
    "none": Case({}),
    "numbers": Case(NUMBERS),
    "brokers": Case({"default.partitions": "-1", "default.replication.factor": "-1"}),
    "settings": Case({**NUMBERS, "default.retention.ms": "7000000", "default.segment.bytes": "2097152"}),
    "compacted": Case({**NUMBERS, "default.cleanup.policy": "compact"}, "ecord"),
    "first": Case(
        {
            **NUMBERS,
            "groups": "a, b",
            "a.include": ".*-first",
            "a.partitions": "4",
            "b.include": ".*",
            "b.partitions": "5",
        }
    ),
    "order": Case(
        {
            **NUMBERS,
            "groups": "b,a",
            "a.include": ".*",
            "a.partitions": "4",
            "b.include": ".*",
            "b.partitions": "5",
        }
    ),
    "excluded": Case(
        {
            **NUMBERS,
            "groups": "a,b",
            "a.include": ".*",
            "a.exclude": ".*-excluded, other",
            "a.partitions": "4",
            "b.include": "x,.*-excluded",
            "b.retention.ms": "5000000",
        }
    ),
    "inherits": Case(
        {
            **NUMBERS,
            "default.cleanup.policy": "compact",
            "groups": "a",
            "a.include": ".*",
            "a.segment.bytes": "2097152",
        }
    ),
    "unnamed": Case({**NUMBERS, "groups": "a", "a.include": "x", "b.include": ".*", "b.partitions": "5"}),
    "noinclude": Case({**NUMBERS, "groups": "a", "a.partitions": "5"}),
    "emptyinclude": Case({**NUMBERS, "groups": "a", "a.include": "", "a.partitions": "5"}),
    "defaultnamed": Case({**NUMBERS, "groups": "default,a", "a.include": ".*", "a.partitions": "5"}),
    "partly": Case({**NUMBERS, "groups": "a", "a.include": "partly", "a.partitions": "5"}),
    "upper": Case({**NUMBERS, "groups": "a", "a.include": ".*-UPPER", "a.partitions": "5"}),
    "groupbroker": Case(
        {
            **NUMBERS,
            "groups": "a",
            "a.include": ".*",
            "a.partitions": "-1",
            "a.replication.factor": "-1",
        }
    ),
    "dotted": Case({**NUMBERS, "groups": "a,a.b", "a.b.include": ".*", "a.b.partitions": "5"}),
    "routed": Case({**NUMBERS, "groups": "a", "a.include": "routed-.*", "a.partitions": "6"}, more=ROUTED),
    "there": Case({**NUMBERS, "default.cleanup.policy": "compact"}, there=1),
    "groupsonly": Case({"groups": "a", "a.include": ".*", "a.partitions": "5", "a.replication.factor": "1"}, NO_FACTOR),
    "strange": Case({"nonsense": "1"}, NO_FACTOR),
    "nofactor": Case({"default.partitions": "3"}, NO_FACTOR),
    "nopartitions": Case({"default.replication.factor": "1"}, NO_PARTITIONS),
    "onlysettings": Case({"default.cleanup.policy": "compact"}, NO_FACTOR),
    "zero": Case({**NUMBERS, "default.partitions": "0"}, POSITIVE),
    "minus": Case({**NUMBERS, "default.partitions": "-2"}, POSITIVE),
    "text": Case({**NUMBERS, "default.partitions": "x"}, NO_INT),
    "blank": Case({**NUMBERS, "default.partitions": " 4 "}),
    "emptynumber": Case({**NUMBERS, "default.partitions": ""}, NO_INT),
    "fraction": Case({**NUMBERS, "default.partitions": "1.0"}, NO_INT),
    "huge": Case({**NUMBERS, "default.partitions": "2147483648"}, NO_INT),
    "factor0": Case({**NUMBERS, "default.replication.factor": "0"}, "Replication factor must be positive"),
    "factorminus": Case({**NUMBERS, "default.replication.factor": "-2"}, "Replication factor must be positive"),
    "factor9": Case({**NUMBERS, "default.replication.factor": "9"}, "only 1 broker(s) are registered"),
    "factorhuge": Case({**NUMBERS, "default.replication.factor": "40000"}, "Not a number of type SHORT"),
    "groupzero": Case({**NUMBERS, "groups": "a", "a.include": "x", "a.partitions": "0"}, POSITIVE),
    "badinclude": Case({**NUMBERS, "groups": "a", "a.include": "a(b"}, "Unclosed group near index 3"),
    "badexclude": Case(
        {**NUMBERS, "groups": "a", "a.include": ".*", "a.exclude": "a(b"}, "Unclosed group near index 3"
    ),
    "badsetting": Case(
        {**NUMBERS, "default.retention.ms": "soon"},
        "Invalid value soon for configuration retention.ms: Not a number of type LONG",
    ),
    "badpolicy": Case(
        {**NUMBERS, "default.cleanup.policy": "burn"},
        "Invalid value burn for configuration cleanup.policy: String must be one of: compact, delete",
    ),
    "nosetting": Case({**NUMBERS, "default.no.such.setting": "1"}, "Unknown topic config name: no.such.setting"),
    "badname": Case(NUMBERS, "topic", topic="{x}-bad/name"),
    "closed": Case(
        NUMBERS,
        "nsure that the task is authorized to create topics or that the topic exists",
        topic=f"{CLOSED}{{x}}-{{case}}",
    ),
    "closedthere": Case(NUMBERS, topic=f"{CLOSED}{{x}}-{{case}}", there=1),
    "closednone": Case({}, "uthoriz", topic=f"{CLOSED}{{x}}-{{case}}"),
}


# Where workers make no topics: brokers do, and by their own rules.
SWITCHED_OFF = {"topic.creation.enable": "false"}
CASES_SWITCHED_OFF: Mapping[str, Case] = {
    "none": Case({}),
    "numbers": Case(NUMBERS),
    "groups": Case({**NUMBERS, "groups": "a", "a.include": ".*", "a.partitions": "5"}),
    "nofactor": Case({"default.partitions": "3"}),
    "zero": Case({**NUMBERS, "default.partitions": "0"}),
    "badinclude": Case({**NUMBERS, "groups": "a", "a.include": "a(b"}),
    "there": Case(NUMBERS, there=1),
}


@dataclass(frozen=True, slots=True)
class Outcome:
    """States of the connector and its tasks, what they say, and the topic: partitions, settings, records."""

    states: tuple[str, ...]
    trace: str
    topic: tuple[int, Mapping[str, str], int] | None


@pytest.fixture(scope="module")
def guarded() -> Iterator[str]:
    """A broker where topics of some names may not be made."""
    with EmbeddedKafka(options=BROKER) as broker:
        yield broker.bootstrap


@pytest.fixture(scope="module")
def both(guarded: str, tmp_path_factory: pytest.TempPathFactory) -> Mapping[str, Mapping[str, Outcome]]:
    """What came of the same sources on both."""
    peers = _peers(guarded, tmp_path_factory.mktemp("creation"), CASES)
    _close(guarded)
    return _played(peers, CASES)


@pytest.fixture(scope="module")
def switched_off(kafka_address: str, tmp_path_factory: pytest.TempPathFactory) -> Mapping[str, Mapping[str, Outcome]]:
    """The same, where workers are told to make no topics."""
    folder = tmp_path_factory.mktemp("switched-off")
    peers = _peers(kafka_address, folder, CASES_SWITCHED_OFF, settings=SWITCHED_OFF)
    return _played(peers, CASES_SWITCHED_OFF)


@pytest.mark.parametrize("name", CASES)
def test_both_make_the_same_topic_or_refuse_it_alike(both: Mapping[str, Mapping[str, Outcome]], name: str) -> None:
    real, ours, told = both[CONNECT][name], both[WHERRY][name], CASES[name].told
    assert (ours.states, ours.topic) == (real.states, real.topic)
    assert told in real.trace
    assert told in ours.trace
    assert ("FAILED" in real.states) is bool(told)


@pytest.mark.parametrize("name", CASES_SWITCHED_OFF)
def test_a_worker_that_makes_no_topics_leaves_them_to_brokers(
    switched_off: Mapping[str, Mapping[str, Outcome]], name: str
) -> None:
    real, ours, told = switched_off[CONNECT][name], switched_off[WHERRY][name], CASES_SWITCHED_OFF[name].told
    assert (ours.states, ours.topic) == (real.states, real.topic)
    assert told in real.trace
    assert told in ours.trace
    assert ("FAILED" in real.states) is bool(told)


def _peers(bootstrap: str, folder: Path, cases: Mapping[str, Case], **more: Mapping[str, str]) -> list[Peer]:
    """Both, not started yet; topics that have to be there are."""
    peers = [Peer(name, folder / name, bootstrap, distributed=True, **more) for name in (CONNECT, WHERRY)]
    for peer in peers:
        for name, case in cases.items():
            if case.there:
                create_topic(bootstrap, _topic(peer, name, case), partitions=case.there)
    return peers


def _played(peers: list[Peer], cases: Mapping[str, Case]) -> Mapping[str, Mapping[str, Outcome]]:
    found: dict[str, dict[str, Outcome]] = {peer.name: {} for peer in peers}
    together(peers, lambda peer: _play(peer, cases, found[peer.name]))
    return found


def _play(peer: Peer, cases: Mapping[str, Case], found: dict[str, Outcome]) -> None:
    peer.start()
    try:
        for name, case in cases.items():
            (peer.directory / f"{name}.in").write_bytes(b"one\n")
            config = {
                "connector.class": SOURCE_CLASS, "topic": _topic(peer, name, case, routed=False),
                "file": f"{{dir}}/{name}.in", **{f"topic.creation.{key}": text for key, text in case.keys.items()},
                **case.more,
            }  # fmt: skip
            answer = peer.ask("POST", "/connectors", {"name": name, "config": config})
            assert answer.status == 201, answer
        for name, case in cases.items():
            topic = _topic(peer, name, case)
            settled = eventually(lambda: _settled(peer, name, case, topic), SETTLE_TIMEOUT_S)  # noqa: B023 (called now)
            status = peer.ask("GET", f"/connectors/{name}/status").body
            assert settled, f"{peer.name}, {name}: {status}"
            parts = [status["connector"], *status["tasks"]]
            found[name] = Outcome(
                tuple(part["state"] for part in parts),
                "\n".join(part.get("trace") or "" for part in parts),
                _made(peer.bootstrap, topic),
            )
    finally:
        peer.stop()


def _settled(peer: Peer, name: str, case: Case, topic: str) -> bool:
    if case.told:
        return "FAILED" in peer.rest.states(name)
    return (_made(peer.bootstrap, topic) or (0, {}, 0))[2] > 0


def _topic(peer: Peer, name: str, case: Case, *, routed: bool = True) -> str:
    topic = f"routed-{{x}}-{name}" if routed and case.more else case.topic.replace("{case}", name)
    return peer.own(topic)


def _made(bootstrap: str, topic: str) -> tuple[int, Mapping[str, str], int] | None:
    admin = KafkaAdmin({"bootstrap.servers": bootstrap})
    partitions = admin.topics().get(topic)
    if partitions is None:
        return None
    settings = admin.topic_config(topic)
    return partitions, {key: settings[key] for key in SHOWN}, sum(end_offsets(bootstrap, topic).values())


def _close(bootstrap: str) -> None:
    """Let nobody make topics of some names; all else is open."""
    from confluent_kafka import admin

    def acl(kind: str, name: str, pattern: str, operation: str, permission: str) -> admin.AclBinding:
        return admin.AclBinding(
            getattr(admin.ResourceType, kind), name, getattr(admin.ResourcePatternType, pattern), "User:*", "*",
            getattr(admin.AclOperation, operation), getattr(admin.AclPermissionType, permission),
        )  # fmt: skip

    acls = [
        acl("BROKER", "kafka-cluster", "LITERAL", "ALL", "ALLOW"),
        acl("BROKER", "kafka-cluster", "LITERAL", "CREATE", "DENY"),
        acl("TOPIC", "*", "LITERAL", "ALL", "ALLOW"),
        acl("TOPIC", CLOSED, "PREFIXED", "CREATE", "DENY"),
    ]
    client = admin.AdminClient({"bootstrap.servers": bootstrap, "log_level": 0})
    for future in client.create_acls(acls).values():
        future.result(TIMEOUT_S)
