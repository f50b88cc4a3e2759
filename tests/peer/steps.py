"""The life of a source and a sink through REST, as a list of steps for both systems."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from tests.peer.peers import Peer
from tests.support.rest import Answer
from tests.support.topics import consume

RECORDS_TIMEOUT_S = 120.0
POLL_S = 0.1
STEADY_POLL_S = 0.05
SOURCE = "source-{x}"
SINK = "sink-{x}"
TOPIC = "lines-{x}"
SOURCE_CLASS = "org.apache.kafka.connect.file.FileStreamSourceConnector"
SINK_CLASS = "org.apache.kafka.connect.file.FileStreamSinkConnector"
SOURCE_CONFIG = {"connector.class": SOURCE_CLASS, "tasks.max": "1", "file": "{dir}/lines.in", "topic": TOPIC}
SINK_CONFIG = {"connector.class": SINK_CLASS, "tasks.max": "1", "file": "{dir}/lines.out", "topics": TOPIC}
AT_START = [{"partition": {"filename": "{dir}/lines.in"}, "offset": {"position": 4}}]


@dataclass(frozen=True, slots=True)
class Ask:
    """A request whose answers are compared; `only` picks what both can have in common."""

    name: str
    method: str
    path: str
    body: Any = None
    only: Callable[[Any], Any] | None = None
    raw: bytes | None = None
    headers: Mapping[str, str] | None = None

    def run(self, peer: Peer) -> Answer:
        """Send it."""
        answer = peer.ask(self.method, self.path, self.body, raw=self.raw, headers=self.headers)
        return Answer(answer.status, self.only(answer.body), answer.headers) if self.only else answer


@dataclass(frozen=True, slots=True)
class States:
    """Wait until a connector and its tasks are in these states."""

    connector: str
    states: tuple[str, ...]

    def run(self, peer: Peer) -> None:
        """Wait."""
        peer.rest.wait_for_states(peer.own(self.connector), *self.states)


@dataclass(frozen=True, slots=True)
class Settle:
    """Wait for what shows no end."""

    seconds: float = 1.0

    def run(self, peer: Peer) -> None:
        """Wait."""
        time.sleep(self.seconds)


@dataclass(frozen=True, slots=True)
class Steady:
    """Wait until a connector and its tasks have been in these states for a while, by answers and not by the clock.

    For restarts, whose states are the same before and after: a worker that stands still answers nothing either.
    """

    connector: str
    states: tuple[str, ...]
    seconds: float = 1.0

    def run(self, peer: Peer) -> None:
        """Wait."""
        name, alike = peer.own(self.connector), 0
        deadline = time.monotonic() + RECORDS_TIMEOUT_S
        while alike < self.seconds / STEADY_POLL_S:
            found = peer.rest.states(name)
            alike = alike + 1 if found == self.states else 0
            assert alike or time.monotonic() < deadline, f"{name} is {found}, not {self.states}"
            time.sleep(STEADY_POLL_S)


@dataclass(frozen=True, slots=True)
class Records:
    """Wait until a topic holds so many records."""

    topic: str
    count: int

    def run(self, peer: Peer) -> None:
        """Wait."""
        found = consume(peer.bootstrap, peer.own(self.topic), self.count, timeout_s=RECORDS_TIMEOUT_S)
        assert len(found) >= self.count, f"{peer.name} sent {len(found)} records of {self.count} to {self.topic}"


@dataclass(frozen=True, slots=True)
class Lines:
    """Wait until a file has so many lines."""

    file: str
    count: int

    def run(self, peer: Peer) -> None:
        """Wait."""
        path = peer.directory / self.file
        wait_until(
            lambda: path.exists() and path.read_bytes().count(b"\n") >= self.count,
            f"{peer.name} has written {self.count} lines to {self.file}",
        )


@dataclass(frozen=True, slots=True)
class Committed:
    """Wait until the committed offsets of a connector are these."""

    connector: str
    offsets: list[Any] = field(default_factory=list)

    def run(self, peer: Peer) -> None:
        """Wait."""
        path, wanted = f"/connectors/{self.connector}/offsets", {"offsets": self.offsets}
        wait_until(lambda: peer.ask("GET", path).body == wanted, f"{peer.name} shows {wanted}")


@dataclass(frozen=True, slots=True)
class Shows:
    """Wait until what is read somewhere, or what `only` picks of it, is this."""

    path: str
    body: Any
    only: Callable[[Any], Any] = lambda body: body

    def run(self, peer: Peer) -> None:
        """Wait."""
        wait_until(
            lambda: self.only(peer.ask("GET", self.path).body) == self.body,
            f"{peer.name} shows {self.body} at {self.path}",
        )


@dataclass(frozen=True, slots=True)
class Append:
    """Write bytes to the end of a file."""

    file: str
    content: bytes

    def run(self, peer: Peer) -> None:
        """Write."""
        with (peer.directory / self.file).open("ab") as file:
            file.write(self.content)


Step = Ask | States | Steady | Settle | Records | Lines | Committed | Shows | Append


def wait_until(condition: Callable[[], bool], what: str) -> None:
    """Wait for something, a bounded time."""
    deadline = time.monotonic() + RECORDS_TIMEOUT_S
    while not condition():
        assert time.monotonic() < deadline, f"Waited {RECORDS_TIMEOUT_S:.0f} s in vain until {what}"
        time.sleep(POLL_S)


def _file_stream(plugins: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The plugins that both have, without their versions."""
    return [{"class": each["class"], "type": each["type"]} for each in plugins if "FileStream" in each["class"]]


def _source_at(position: int) -> list[Any]:
    return [{"partition": {"filename": "{dir}/lines.in"}, "offset": {"position": position}}]


def _sink_at(offset: int) -> list[Any]:
    return [
        {"partition": {"kafka_topic": TOPIC, "kafka_partition": 0}, "offset": {"kafka_offset": offset}},
    ]


def _of_unknown() -> Iterator[Ask]:
    """Every call about a connector that does not exist."""
    for method, path in (
        ("GET", ""),
        ("GET", "/config"),
        ("GET", "/status"),
        ("GET", "/tasks"),
        ("GET", "/tasks/0/status"),
        ("GET", "/topics"),
        ("GET", "/offsets"),
        ("PUT", "/topics/reset"),
        ("PUT", "/pause"),
        ("PUT", "/resume"),
        ("PUT", "/stop"),
        ("POST", "/restart"),
        ("POST", "/restart?includeTasks=true"),
        ("POST", "/tasks/0/restart"),
        ("DELETE", ""),
        ("DELETE", "/offsets"),
    ):
        yield Ask(f"unknown connector: {method} {path or '/'}", method, f"/connectors/nobody{path}")
    yield Ask("unknown connector: PATCH offsets", "PATCH", "/connectors/nobody/offsets", {"offsets": AT_START})
    yield Ask("unknown connector: PATCH config", "PATCH", "/connectors/nobody/config", {"tasks.max": "1"})


def _shown(connector: str, when: str) -> Iterator[Ask]:
    """All one can read of a connector."""
    for path in ("", "/config", "/status", "/tasks", "/topics", "/offsets"):
        yield Ask(f"{connector} {when}: GET {path or '/'}", "GET", f"/connectors/{connector}{path}")


BEFORE: tuple[Step, ...] = (
    Ask("root", "GET", "/"),
    Ask("health", "GET", "/health"),
    Ask("no connectors", "GET", "/connectors"),
    Ask("plugins", "GET", "/connector-plugins", only=_file_stream),
    Ask("source keys", "GET", "/connector-plugins/FileStreamSource/config"),
    Ask("sink keys", "GET", "/connector-plugins/FileStreamSinkConnector/config"),
    Ask("keys of an unknown plugin", "GET", "/connector-plugins/Nothing/config"),
    Ask(
        "validate a good source",
        "PUT",
        "/connector-plugins/FileStreamSource/config/validate",
        {"name": SOURCE, **SOURCE_CONFIG},
    ),
    Ask(
        "validate a bad source",
        "PUT",
        "/connector-plugins/FileStreamSource/config/validate",
        {"connector.class": SOURCE_CLASS, "tasks.max": "dog", "batch.size": "x"},
    ),
    Ask(
        "validate a good sink",
        "PUT",
        "/connector-plugins/FileStreamSink/config/validate",
        {"name": SINK, **SINK_CONFIG},
    ),
    Ask(
        "validate against another class",
        "PUT",
        "/connector-plugins/FileStreamSink/config/validate",
        {"name": SOURCE, **SOURCE_CONFIG},
    ),
    *_of_unknown(),
)

REFUSED: tuple[Step, ...] = (
    Ask("create without class", "POST", "/connectors", {"name": "bad", "config": {"topic": "t"}}),
    Ask(
        "create with unknown class",
        "POST",
        "/connectors",
        {"name": "bad", "config": {"connector.class": "NoSuchThing"}},
        # the rest of the text lists what is installed
        only=lambda body: {**body, "message": body["message"].partition(", available")[0]},
    ),
    Ask("create without topic", "POST", "/connectors", {"name": "bad", "config": {"connector.class": SOURCE_CLASS}}),
    Ask(
        "create with wrong types",
        "POST",
        "/connectors",
        {"name": "bad", "config": {**SOURCE_CONFIG, "tasks.max": "dog", "batch.size": "many"}},
    ),
    Ask("create with another name", "POST", "/connectors", {"name": "bad", "config": {"name": "x", **SOURCE_CONFIG}}),
    Ask("create with a control character", "POST", "/connectors", {"name": "b\u0007d", "config": SOURCE_CONFIG}),
    Ask("create a sink without topics", "PUT", "/connectors/bad/config", {"connector.class": SINK_CLASS}),
    Ask(
        "create a sink with topics twice",
        "PUT",
        "/connectors/bad/config",
        {**SINK_CONFIG, "topics.regex": "x.*"},
    ),
    Ask("path that is none", "GET", "/connector"),
    Ask("method that is none", "POST", "/connectors/nobody/config", {}),
    Ask("task that is no number", "GET", "/connectors/nobody/tasks/x/status"),
)

LIFE: tuple[Step, ...] = (
    Append("lines.in", b"one\ntwo\nthree\n"),
    Ask("create a source by POST", "POST", "/connectors", {"name": SOURCE, "config": SOURCE_CONFIG}),
    States(SOURCE, ("RUNNING", "RUNNING")),
    Ask("create the source again", "POST", "/connectors", {"name": SOURCE, "config": SOURCE_CONFIG}),
    Records(TOPIC, 3),
    Ask("create a sink by PUT", "PUT", f"/connectors/{SINK}/config", SINK_CONFIG),
    States(SINK, ("RUNNING", "RUNNING")),
    Lines("lines.out", 3),
    Committed(SOURCE, _source_at(14)),
    Committed(SINK, _sink_at(3)),
    Shows(f"/connectors/{SOURCE}/topics", {SOURCE: {"topics": [TOPIC]}}),
    Shows(f"/connectors/{SINK}/topics", {SINK: {"topics": [TOPIC]}}),
    Ask("list", "GET", "/connectors", only=sorted),
    Ask("list with all", "GET", "/connectors?expand=status&expand=info"),
    *_shown(SOURCE, "running"),
    *_shown(SINK, "running"),
    Ask("task status", "GET", f"/connectors/{SOURCE}/tasks/0/status"),
    Ask("status of no task", "GET", f"/connectors/{SOURCE}/tasks/7/status"),
    Ask("slash: list", "GET", "/connectors/", only=sorted),
    Ask("slash: connector", "GET", f"/connectors/{SINK}/"),
    Ask("slash: status", "GET", f"/connectors/{SINK}/status/"),
    Ask("slash: plugins", "GET", "/connector-plugins/", only=_file_stream),
    Ask("alter offsets of a running source", "PATCH", f"/connectors/{SOURCE}/offsets", {"offsets": AT_START}),
    Ask("reset offsets of a running sink", "DELETE", f"/connectors/{SINK}/offsets"),
    Ask("restart an unknown task", "POST", f"/connectors/{SOURCE}/tasks/3/restart"),
)

STATES: tuple[Step, ...] = (
    Ask("pause", "PUT", f"/connectors/{SOURCE}/pause"),
    States(SOURCE, ("PAUSED", "PAUSED")),
    *_shown(SOURCE, "paused"),
    Ask("pause a paused one", "PUT", f"/connectors/{SOURCE}/pause"),
    Append("lines.in", b"four\n"),
    Ask("resume", "PUT", f"/connectors/{SOURCE}/resume"),
    States(SOURCE, ("RUNNING", "RUNNING")),
    Records(TOPIC, 4),
    Committed(SOURCE, _source_at(19)),
    Ask("restart", "POST", f"/connectors/{SOURCE}/restart"),
    Steady(SOURCE, ("RUNNING", "RUNNING")),
    Ask("restart with slash", "POST", f"/connectors/{SOURCE}/restart/"),
    Steady(SOURCE, ("RUNNING", "RUNNING")),
    Ask("restart with tasks", "POST", f"/connectors/{SOURCE}/restart?includeTasks=true"),
    Steady(SOURCE, ("RUNNING", "RUNNING")),
    Ask("restart what failed", "POST", f"/connectors/{SOURCE}/restart?includeTasks=true&onlyFailed=true"),
    Steady(SOURCE, ("RUNNING", "RUNNING")),
    Ask("restart a task", "POST", f"/connectors/{SOURCE}/tasks/0/restart"),
    Steady(SOURCE, ("RUNNING", "RUNNING")),
    Append("lines.in", b"five\n"),
    Records(TOPIC, 5),
    Lines("lines.out", 5),
    Ask("stop", "PUT", f"/connectors/{SOURCE}/stop"),
    States(SOURCE, ("STOPPED",)),
    *_shown(SOURCE, "stopped"),
    Ask("restart a task that was", "POST", f"/connectors/{SOURCE}/tasks/0/restart"),
)

OFFSETS: tuple[Step, ...] = (
    Ask("no offsets to alter", "PATCH", f"/connectors/{SOURCE}/offsets", {"offsets": []}),
    Ask("no body", "PATCH", f"/connectors/{SOURCE}/offsets", {}),
    Ask(
        "negative position",
        "PATCH",
        f"/connectors/{SOURCE}/offsets",
        {"offsets": [{**AT_START[0], "offset": {"position": -1}}]},
    ),
    Ask(
        "position that is text",
        "PATCH",
        f"/connectors/{SOURCE}/offsets",
        {"offsets": [{**AT_START[0], "offset": {"position": "4"}}]},
    ),
    Ask("alter offsets", "PATCH", f"/connectors/{SOURCE}/offsets", {"offsets": AT_START}),
    Committed(SOURCE, AT_START),
    Ask("altered", "GET", f"/connectors/{SOURCE}/offsets"),
    Ask("resume from altered offsets", "PUT", f"/connectors/{SOURCE}/resume"),
    Records(TOPIC, 9),
    States(SOURCE, ("RUNNING", "RUNNING")),
    Ask("stop again", "PUT", f"/connectors/{SOURCE}/stop"),
    States(SOURCE, ("STOPPED",)),
    Ask("reset offsets", "DELETE", f"/connectors/{SOURCE}/offsets"),
    Committed(SOURCE, []),
    Ask("reset", "GET", f"/connectors/{SOURCE}/offsets"),
    Ask("reset offsets again", "DELETE", f"/connectors/{SOURCE}/offsets"),
    Lines("lines.out", 9),
    Ask("stop the sink", "PUT", f"/connectors/{SINK}/stop"),
    States(SINK, ("STOPPED",)),
    Ask(
        "alter offsets of the sink",
        "PATCH",
        f"/connectors/{SINK}/offsets",
        {"offsets": _sink_at(7)},
    ),
    Committed(SINK, _sink_at(7)),
    Ask("resume the sink", "PUT", f"/connectors/{SINK}/resume"),
    Lines("lines.out", 11),
    States(SINK, ("RUNNING", "RUNNING")),
    Ask("stop the sink again", "PUT", f"/connectors/{SINK}/stop"),
    States(SINK, ("STOPPED",)),
    Ask("reset offsets of the sink", "DELETE", f"/connectors/{SINK}/offsets"),
    Ask("offsets of the sink after it", "GET", f"/connectors/{SINK}/offsets"),
)

END: tuple[Step, ...] = (
    Ask("change by PUT", "PUT", f"/connectors/{SOURCE}/config", {**SOURCE_CONFIG, "batch.size": "100"}),
    Ask("change by PATCH", "PATCH", f"/connectors/{SOURCE}/config", {"batch.size": None, "tasks.max": "2"}),
    Ask("changed", "GET", f"/connectors/{SOURCE}/config"),
    Ask("change to a bad config", "PUT", f"/connectors/{SOURCE}/config", {**SOURCE_CONFIG, "tasks.max": "0"}),
    Ask(
        "create it stopped",
        "POST",
        "/connectors",
        {"name": "still-{x}", "config": SINK_CONFIG, "initial_state": "STOPPED"},
    ),
    States("still-{x}", ("STOPPED",)),
    *_shown("still-{x}", "created stopped"),
    Ask("delete it", "DELETE", "/connectors/still-{x}"),
    Ask("topics reset", "PUT", f"/connectors/{SOURCE}/topics/reset"),
    # Kafka Connect answers before its own status topic has come back to it.
    Shows(f"/connectors/{SOURCE}/topics", {SOURCE: {"topics": []}}),
    Ask("topics after it", "GET", f"/connectors/{SOURCE}/topics"),
    Ask("delete the source", "DELETE", f"/connectors/{SOURCE}"),
    Ask("delete the sink with slash", "DELETE", f"/connectors/{SINK}/"),
    Ask("none left", "GET", "/connectors"),
    *_shown(SOURCE, "deleted"),
    Ask("delete the source again", "DELETE", f"/connectors/{SOURCE}"),
)

STEPS: tuple[Step, ...] = (*BEFORE, *REFUSED, *LIFE, *STATES, *OFFSETS, *END)
