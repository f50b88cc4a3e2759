"""Restarts in every combination, failed tasks, states at creation, topics, levels of loggers."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from tests.peer.steps import SINK_CLASS, SOURCE_CLASS, Append, Ask, Records, Settle, Shows, States, Steady, Step
from tests.peer.steps_protocol import JSON_BODY, code

GOOD, BAD, TOPIC = "s-good-{x}", "s-bad-{x}", "s-lines-{x}"
_SOURCE = {"connector.class": SOURCE_CLASS, "file": "{dir}/s.in", "topic": TOPIC}
# The file lies in a folder that is none, so that its task fails when it starts.
_FAILS = {"connector.class": SINK_CLASS, "file": "{dir}/none/x", "topics": TOPIC}
_QUERIES = ("", "?includeTasks=true", "?onlyFailed=true", "?includeTasks=true&onlyFailed=true")
_MORE_QUERIES = (
    *("?includeTasks=false", "?includeTasks=True", "?includeTasks=", "?includeTasks=1", "?includeTasks=yes"),
    *("?includeTasks=true&includeTasks=false", "?INCLUDETASKS=true", "?includeTasks=false&onlyFailed=true", "?x=y"),
)
SHORT_S = 0.5


def _without_trace(body: Any) -> Any:
    """Without traces, which are a Java stack there and a sentence here; whether there is one stays."""
    if isinstance(body, dict):
        return {key: bool(value) if key == "trace" else _without_trace(value) for key, value in body.items()}
    return [_without_trace(each) for each in body] if isinstance(body, list) else body


def _restarts(
    connector: str, states: tuple[str, ...], word: str, queries: tuple[str, ...] = _QUERIES
) -> Iterator[Step]:
    for query in queries:
        path = f"/connectors/{connector}/restart{query}"
        yield Ask(f"restart {word} {query}", "POST", path, only=_without_trace)
        yield Steady(connector, states, SHORT_S)


def _created() -> Iterator[Step]:
    for given, states in (
        ("PAUSED", ("PAUSED",)),
        ("stopped", ("STOPPED",)),
        ("Running", ("RUNNING", "RUNNING")),
    ):
        name = f"s-{given.lower()}-{{x}}"
        body = {"name": name, "config": {**_SOURCE, "file": "{dir}/none.in"}, "initial_state": given}
        yield Ask(f"create {given}", "POST", "/connectors", body)
        yield States(name, states)
        for path in ("", "/status", "/tasks"):
            yield Ask(f"created {given}: {path or '/'}", "GET", f"/connectors/{name}{path}")
        yield Ask(f"created {given}: restart", "POST", f"/connectors/{name}/restart")
        yield Ask(f"created {given}: restart all", "POST", f"/connectors/{name}/restart?includeTasks=true")
        yield Steady(name, states, SHORT_S)
        yield Ask(f"created {given}: again", "POST", "/connectors", body)
        yield Ask(f"created {given}: resume", "PUT", f"/connectors/{name}/resume")
        yield States(name, ("RUNNING", "RUNNING"))
        yield Ask(f"created {given}: pause", "PUT", f"/connectors/{name}/pause")
        yield States(name, ("PAUSED", "PAUSED"))
        yield Ask(f"created {given}: stop", "PUT", f"/connectors/{name}/stop")
        yield States(name, ("STOPPED",))
        yield Ask(f"created {given}: stop again", "PUT", f"/connectors/{name}/stop")
        yield Ask(f"created {given}: pause when stopped", "PUT", f"/connectors/{name}/pause")
        yield States(name, ("PAUSED",))
        yield Ask(f"created {given}: task status", "GET", f"/connectors/{name}/tasks/0/status")
        yield Ask(f"created {given}: delete", "DELETE", f"/connectors/{name}")


def _failed() -> Iterator[Step]:
    yield Ask("create what fails", "PUT", f"/connectors/{BAD}/config", _FAILS)
    yield States(BAD, ("RUNNING", "FAILED"))
    yield Ask("failed: status", "GET", f"/connectors/{BAD}/status", only=_without_trace)
    yield Ask("failed: task", "GET", f"/connectors/{BAD}/tasks/0/status", only=_without_trace)
    yield from _restarts(BAD, ("RUNNING", "FAILED"), "what failed")
    yield Ask("failed: restart the task", "POST", f"/connectors/{BAD}/tasks/0/restart")
    yield Steady(BAD, ("RUNNING", "FAILED"))
    yield Ask("failed: pause", "PUT", f"/connectors/{BAD}/pause")
    yield States(BAD, ("PAUSED", "FAILED"))
    yield Ask("failed: resume", "PUT", f"/connectors/{BAD}/resume")
    yield States(BAD, ("RUNNING", "FAILED"))
    yield Ask("failed: stop", "PUT", f"/connectors/{BAD}/stop")
    yield States(BAD, ("STOPPED",))
    yield Ask("failed: all of it", "GET", f"/connectors/{BAD}/status")
    yield Ask("failed: delete", "DELETE", f"/connectors/{BAD}")


def _lists() -> Iterator[Ask]:
    for query in (
        "expand=status",
        "expand=info",
        "expand=status&expand=info",
        "expand=other",
        "expand=",
        "expand",
        "expand=STATUS",
        "expand=info,status",
        "expand=info&expand=info",
    ):
        yield Ask(f"list with {query}", "GET", f"/connectors?{query}")


def _topics() -> Iterator[Step]:
    path = f"/connectors/{GOOD}/topics"
    yield Shows(path, {GOOD: {"topics": [TOPIC]}})  # Wherry tells of topics with its reports, one a second
    yield Ask("topics used", "GET", f"/connectors/{GOOD}/topics")
    yield Ask("topics forgotten", "PUT", f"/connectors/{GOOD}/topics/reset")
    yield Shows(path, {GOOD: {"topics": []}})
    yield Ask("topics after a reset", "GET", f"/connectors/{GOOD}/topics")
    yield Append("s.in", b"four\n")
    yield Records(TOPIC, 4)
    yield Shows(path, {GOOD: {"topics": [TOPIC]}})
    yield Ask("topics used again", "GET", f"/connectors/{GOOD}/topics")


def _loggers() -> Iterator[Step]:
    path = "/admin/loggers/org.apache.kafka.x{x}"
    yield Ask("level of nobody", "GET", "/admin/loggers/no.such.logger")
    for name, body in (
        ("unknown", {"level": "NOPE"}),
        ("number", {"level": 5}),
        ("absent", {}),
        ("other key", {"x": "y"}),
        ("null", {"level": None}),
    ):
        yield Ask(f"level {name}", "PUT", path, body)
        yield Ask(f"level {name} for all", "PUT", f"{path}?scope=cluster", body)
    yield Ask("level empty", "PUT", path, {"level": ""}, only=code)
    yield Ask("level as list", "PUT", path, raw=b'{"level": []}', headers=JSON_BODY, only=code)
    yield Ask("level set", "PUT", path, {"level": "debug"})
    yield Ask("level set again", "PUT", path, {"level": "DEBUG"})
    yield Ask("level for all", "PUT", f"{path}?scope=cluster", {"level": "WARN"})
    yield Ask("level for the worker", "PUT", f"{path}?scope=Worker", {"level": "ERROR"})
    yield Ask("level for anything", "PUT", f"{path}?scope=x", {"level": "INFO"})
    yield Ask("level for All", "PUT", f"{path}?scope=CLUSTER", {"level": "TRACE"})
    yield Settle()  # it comes around by a topic
    yield Ask("level now", "GET", path, only=lambda body: (body["level"], type(body["last_modified"]).__name__))


STEPS: tuple[Step, ...] = (
    Append("s.in", b"one\ntwo\nthree\n"),
    Ask("create s-good", "PUT", f"/connectors/{GOOD}/config", _SOURCE),
    States(GOOD, ("RUNNING", "RUNNING")),
    Records(TOPIC, 3),
    *_lists(),
    *_topics(),
    *_restarts(GOOD, ("RUNNING", "RUNNING"), "what runs", _QUERIES + _MORE_QUERIES),
    Ask("restart no task", "POST", f"/connectors/{GOOD}/tasks/9/restart"),
    Ask("restart a task below none", "POST", f"/connectors/{GOOD}/tasks/-1/restart"),
    Ask("pause s-good", "PUT", f"/connectors/{GOOD}/pause"),
    States(GOOD, ("PAUSED", "PAUSED")),
    *_restarts(GOOD, ("PAUSED", "PAUSED"), "what pauses"),
    Ask("restart a paused task", "POST", f"/connectors/{GOOD}/tasks/0/restart"),
    Steady(GOOD, ("PAUSED", "PAUSED")),
    Ask("stop s-good", "PUT", f"/connectors/{GOOD}/stop"),
    States(GOOD, ("STOPPED",)),
    *_restarts(GOOD, ("STOPPED",), "what is stopped"),
    Ask(
        "change to a sink",
        "PUT",
        f"/connectors/{GOOD}/config",
        {"connector.class": SINK_CLASS, "file": "{dir}/s.out", "topics": TOPIC},
    ),
    Ask("type after it", "GET", f"/connectors/{GOOD}", only=lambda body: body.get("type")),
    Ask("delete s-good", "DELETE", f"/connectors/{GOOD}"),
    *_failed(),
    *_created(),
    *_loggers(),
)
