"""What an operator may do next, drawn at random: requests good, bad and odd, and new records."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from random import Random
from typing import Any

from tests.peer.steps import SINK_CLASS, SOURCE_CLASS, Append, Ask
from tests.peer.steps_protocol import JSON_BODY, code
from tests.peer.walks.configs import SOURCE, Config, Place, drawn

TRUTHS = ("true", "false", "True", "", "1", "x")
STATES = ("RUNNING", "PAUSED", "STOPPED", "stopped", "Paused", "DESTROYED", "", None, 1)
TASKS = ("0", "0", "0", "1", "2", "7", "-1", "x", "00", "1.0", "99999999999")
READ = ("", "/config", "/status", "/tasks", "/topics", "/offsets", "/tasks/0/status", "/tasks/1/status")
UNREADABLE = ("/tasks-config", "/pause", "/restart", "/tasks/x/status", "/tasks/0", "/nothing", "/topics/reset")
ACCEPTED_TYPES = (
    *("application/json", "*/*", "text/html", "application/*;q=0.5", "text/html, application/json;q=0.1"),
    *("", "application/json;q=0", "application/xml"),
)
QUERIES = ("x=y", "expand=status", "forward=true", "includeTasks", "=", "&&", "a=%20", "%F0%9F%98%80=1")
METHODS = ("GET", "PUT", "POST", "PATCH", "DELETE", "HEAD", "OPTIONS", "TRACE")
OTHERS = (
    *("nobody", "no%20body", "n%C3%A9", "no+body", "nobody;a=b", "%E2%82%AC", "nobody%20", "a%7Bb%7D", "l" * 3000),
    *("%F0%9F%98%80", "...", "~", "*", "NULL"),
)
CODED = ("nobody%0A", "nobody%7F", "%2e", "%2F", "nobody%2Fstatus", "%25", "%5C", "%00", "nobody%00")
BROKEN: Mapping[str, bytes] = {
    "blank": b"  ",
    "no JSON": b"{nonsense",
    "a list": b"[]",
    "a list of objects": b"[{}]",
    "a text": b'"x"',
    "a number": b"1",
    "null": b"null",
    "trailing": b"{} x",
    "broken UTF-8": b'{"a": "\xff"}',
    "single quotes": b"{'a': 'b'}",
    "a comment": b'{"a": "b" /* c */}',
    "nested": b'{"a": {"b": "c"}}',
    "a list within": b'{"a": ["b"]}',
    "NUL": b'{"a": "\x00"}',
    "deep": b"[" * 1200 + b"]" * 1200,
    "empty key": b'{"": ""}',
    "UTF-16": '{"a": "b"}'.encode("utf-16"),
}
TYPES = ("text/plain", "application/json;charset=utf-8", "application/xml", "APPLICATION/JSON", "text/json")
ODD_CHANGES: Sequence[Config] = (
    *({"name": None}, {"connector.class": None}, {"tasks.max": 2}, {"a": True, "b": 1.50}),
)
LINES = 3


@dataclass(frozen=True, slots=True)
class Send:
    """Write records to a topic."""

    name: str
    topic: str
    values: tuple[bytes | None, ...]


Move = Ask | Append | Send
Drawing = Callable[[Random, Place], Move]


def created(random: Random, place: Place, *, plain: bool = False) -> Ask:
    """Make a connector, by POST or PUT."""
    found = drawn(random, place, twists=0) if plain else drawn(random, place)
    if random.random() < 0.4:
        return _put(place, found.config, found.told)
    body: dict[str, Any] = {"name": place.name, "config": found.config}
    told = f"create {place.kind}: {found.told}"
    if random.random() < 0.4:
        body["initial_state"] = random.choice(STATES[:5] if plain else STATES)
        told += f", {body['initial_state']!r}"
    # The names of states that there are not is told by a parser's own text.
    broken = body.get("initial_state", "RUNNING") in ("DESTROYED", "", 1)
    if not plain and random.random() < 0.08:
        return _named_otherwise(random, place, body, broken=broken)
    return Ask(told, "POST", "/connectors", body, only=code if broken else None)


def _named_otherwise(random: Random, place: Place, body: dict[str, Any], *, broken: bool) -> Ask:
    twist = random.choice(("other name in the config", "blanks", "no name", "null name", "number", "more", "no config"))
    config = dict(body["config"])
    changed: dict[str, Any] = {
        "other name in the config": {**body, "config": {**config, "name": "another"}},
        "blanks": {**body, "name": f" {place.name} "},
        "no name": {"config": config},
        "null name": {**body, "name": None},
        "number": {**body, "name": 5, "config": {**config, "tasks.max": "0"}},
        "more": {**body, "more": 1},
        "no config": {"name": place.name},
    }[twist]
    only = code if broken or twist in ("more", "no config") else None
    return Ask(f"create {place.kind} with {twist}", "POST", "/connectors", changed, only=only)


def _put(place: Place, config: Config, told: str) -> Ask:
    return Ask(f"put {place.kind}: {told}", "PUT", f"/connectors/{place.name}/config", dict(config))


def changed(random: Random, place: Place) -> Ask:
    """Change a configuration: to a good one, to the same, to a wrong one, to another kind."""
    kind = random.random()
    if kind < 0.2:
        return _put(place, place.base, "plain")
    if kind < 0.3:
        other = {
            **place.base,
            "connector.class": SINK_CLASS if place.kind == SOURCE else SOURCE_CLASS,
            "topics": place.topic,
            "topic": place.topic,
        }
        return _put(place, other, "the other kind")
    found = drawn(random, place)
    return _put(place, found.config, found.told)


def patched(random: Random, place: Place) -> Ask:
    """Change some keys of a configuration."""
    found = drawn(random, place, twists=1)
    changes = {key: value for key, value in found.config.items() if place.base.get(key, "") != value}
    for key in random.sample(["tasks.max", "transforms", "errors.tolerance", "value.converter", "nothing"], 2):
        if random.random() < 0.3:
            changes[key] = None
    if random.random() < 0.1:
        changes |= random.choice(ODD_CHANGES)
    told = f"patch {place.kind}: {found.told} {sorted(key for key, value in changes.items() if value is None)}"
    return Ask(told, "PATCH", f"/connectors/{place.name}/config", changes)


def lived(random: Random, place: Place) -> Ask:
    """Pause, resume, stop."""
    word = random.choice(("pause", "resume", "stop"))
    return Ask(f"{word} {place.kind}", "PUT", f"/connectors/{place.name}/{word}")


def stopped(random: Random, place: Place) -> Ask:
    """Stop, as one does before altering offsets."""
    return Ask(f"stop {place.kind}", "PUT", f"/connectors/{place.name}/stop")


def resumed(random: Random, place: Place) -> Ask:
    """Resume, as one does after it."""
    return Ask(f"resume {place.kind}", "PUT", f"/connectors/{place.name}/resume")


def restarted(random: Random, place: Place) -> Ask:
    """Restart a connector, with its tasks or what has failed of them."""
    parts = [
        f"{key}={random.choice(TRUTHS) if random.random() < 0.3 else 'true'}"
        for key in ("includeTasks", "onlyFailed")
        if random.random() < 0.6
    ]
    query = f"?{'&'.join(parts)}" if parts else ""
    return Ask(f"restart {place.kind} {query}", "POST", f"/connectors/{place.name}/restart{query}", only=without_traces)


def task_restarted(random: Random, place: Place) -> Ask:
    """Restart one task."""
    task = random.choice(TASKS)
    return Ask(f"restart task {task} of {place.kind}", "POST", f"/connectors/{place.name}/tasks/{task}/restart")


def without_traces(body: Any) -> Any:
    """Without traces, which are a Java stack there and a sentence here; whether there is one stays."""
    if isinstance(body, dict):
        return {key: bool(value) if key == "trace" else without_traces(value) for key, value in body.items()}
    return [without_traces(each) for each in body] if isinstance(body, list) else body


def altered(random: Random, place: Place) -> Ask:
    """Alter offsets, rightly or wrongly."""
    path = f"/connectors/{place.name}/offsets"
    kind = random.random()
    if kind < 0.08:
        told = random.choice(sorted(BROKEN))
        return Ask(f"alter {place.kind}: body {told}", "PATCH", path, raw=BROKEN[told], headers=JSON_BODY, only=code)
    if kind < 0.16:
        body = random.choice([{"offsets": []}, {}, {"offsets": None}, {"offset": []}, {"offsets": {}}])
        only = code if body in ({"offset": []}, {"offsets": {}}) else None
        return Ask(f"alter {place.kind}: {json.dumps(body)}", "PATCH", path, body, only=only)
    entries, told = _entries(random, place)
    return Ask(f"alter {place.kind}: {told}", "PATCH", path, {"offsets": entries})


def _entries(random: Random, place: Place) -> tuple[list[Any], str]:
    right = random.random() < 0.5
    if place.kind == SOURCE:
        number = random.choice((0, 4, 8, 500)) if right else random.choice(WRONG_POSITIONS)
        entry: dict[str, Any] = {"partition": {"filename": f"{{dir}}/{place.file}"}, "offset": {"position": number}}
        wrong: Sequence[tuple[str, Any]] = (
            ("another file", {"filename": "{dir}/other"}),
            ("no file", {}),
            ("another key", {"file": "x"}),
            ("more", {"filename": f"{{dir}}/{place.file}", "more": 1}),
            ("as number", {"filename": 5}),
            ("a sink's", {"kafka_topic": place.topic, "kafka_partition": 0}),
            ("null", None),
        )
    else:
        number = random.choice((0, 1, 2, "1", 500)) if right else random.choice(WRONG_POSITIONS)
        entry = {
            "partition": {"kafka_topic": place.topic, "kafka_partition": 0},
            "offset": {"kafka_offset": number},
        }
        wrong = (
            ("another topic", {"kafka_topic": "no-such-topic-{x}", "kafka_partition": 0}),
            ("no partition", {"kafka_topic": place.topic}),
            ("partition as text", {"kafka_topic": place.topic, "kafka_partition": "0"}),
            ("partition that is none", {"kafka_topic": place.topic, "kafka_partition": 7}),
            ("partition below none", {"kafka_topic": place.topic, "kafka_partition": -1}),
            ("more", {"kafka_topic": place.topic, "kafka_partition": 0, "more": 1}),
            ("a source's", {"filename": f"{{dir}}/{place.file}"}),
            ("null", None),
        )
    told = f"to {number!r}"
    if not right and random.random() < 0.5:
        what, entry["partition"] = random.choice(wrong)
        told = f"{what} {told}"
    if random.random() < 0.2:
        entry["offset"], told = None, f"{told}, forgotten"
    elif not right and random.random() < 0.3:
        entry["offset"] = random.choice([{}, {"other": 1}, {**entry["offset"], "more": "x"}])
        told = f"{told}, {sorted(entry['offset'])}"
    entries = [entry]
    if random.random() < 0.1:
        entries, told = [entry, entry], f"{told}, twice"
    return entries, told


WRONG_POSITIONS: tuple[Any, ...] = (-1, "4", "x", 1.5, None, True, [1], {"a": 1}, 2**63, 2**31, "", " 1")


def forgotten(random: Random, place: Place) -> Ask:
    """Reset all offsets."""
    return Ask(f"reset {place.kind}", "DELETE", f"/connectors/{place.name}/offsets")


def deleted(random: Random, place: Place) -> Ask:
    """Delete a connector."""
    return Ask(f"delete {place.kind}", "DELETE", f"/connectors/{place.name}")


def topics_reset(random: Random, place: Place) -> Ask:
    """Forget which topics were used."""
    return Ask(f"reset topics of {place.kind}", "PUT", f"/connectors/{place.name}/topics/reset")


def looked(random: Random, place: Place) -> Ask:
    """Read something, with odd queries and headers now and then."""
    part = random.choice(READ if random.random() < 0.8 else UNREADABLE)
    path, headers = f"/connectors/{place.name}{part}", None
    if random.random() < 0.3:
        path += f"?{random.choice(QUERIES)}"
    if random.random() < 0.3:
        headers = {"Accept": random.choice(ACCEPTED_TYPES)}
    only = without_traces if "status" in part else None
    return Ask(f"get {path.replace(place.name, '')} {headers or ''}", "GET", path, headers=headers, only=only)


def listed(random: Random, place: Place) -> Ask:
    """List connectors: of all there are, that one."""
    query = random.choice(("", "?expand=status", "?expand=info", "?expand=info&expand=status", "?expand=x", "?expand="))

    def own(body: Any) -> Any:
        if isinstance(body, dict) and "error_code" not in body:
            return without_traces(body.get(place.name))
        return place.name in body if isinstance(body, list) else body

    return Ask(f"list {query}", "GET", f"/connectors{query}", only=own)


def validated(random: Random, place: Place) -> Ask:
    """Validate a configuration that has several things wrong."""
    found = drawn(random, place, validated=True, twists=random.randint(1, 3))
    plugin = "FileStreamSource" if place.kind == SOURCE else "FileStreamSink"
    path = f"/connector-plugins/{plugin}/config/validate"
    return Ask(f"validate {place.kind}: {found.told}", "PUT", path, {"name": place.name, **found.config})


def broken(random: Random, place: Place) -> Ask:
    """Send a body that is none."""
    method, path = random.choice(
        (
            ("POST", "/connectors"),
            ("PUT", f"/connectors/{place.name}/config"),
            ("PATCH", f"/connectors/{place.name}/config"),
            ("PATCH", f"/connectors/{place.name}/offsets"),
            ("PUT", "/connector-plugins/FileStreamSink/config/validate"),
        )
    )
    told = random.choice(sorted(BROKEN))
    where = path.rpartition("/")[2]
    return Ask(f"{method} {where}: body {told}", method, path, raw=BROKEN[told], headers=JSON_BODY, only=code)


def typed(random: Random, place: Place) -> Ask:
    """Send a body of another type, or one to what wants none."""
    method, part = random.choice(
        (
            *(("PUT", "/config"), ("PATCH", "/config"), ("PATCH", "/offsets"), ("PUT", "/pause"), ("PUT", "/resume")),
            *(("POST", "/restart"), ("POST", "/tasks/0/restart"), ("PUT", "/topics/reset"), ("DELETE", "/offsets")),
        )
    )
    kind = random.choice(TYPES)
    told = f"{method} {part} as {kind}"
    headers = {"Content-Type": kind, "Accept": "application/json"}
    return Ask(told, method, f"/connectors/{place.name}{part}", raw=b'{"tasks.max": "1"}', headers=headers, only=code)


def duplicated(random: Random, place: Place) -> Ask:
    """Send a body whose keys repeat."""
    pairs: list[tuple[str, str]] = [
        *place.base.items(),
        ("tasks.max", random.choice("023")),
        ("tasks.max", random.choice("0123")),
    ]
    # Placeholders are not put into raw bodies but for one, so that a file that is none has to do.
    pairs = [(key, "/none/x" if key == "file" else value) for key, value in pairs]
    raw = "{" + ", ".join(f"{json.dumps(key)}: {json.dumps(value)}" for key, value in pairs) + "}"
    path = f"/connectors/{place.name}/config"
    return Ask(f"put {place.kind}: keys twice", "PUT", path, raw=raw.encode(), headers=JSON_BODY)


def elsewhere(random: Random, place: Place) -> Ask:
    """Ask about what isn't there, or in a way that isn't."""
    method = random.choice(METHODS)
    part = random.choice((*READ, *UNREADABLE, "/resume", "/stop", "/tasks/0/restart"))
    name = random.choice((place.name, place.name, *OTHERS, *CODED))
    if name == place.name and method in ("PUT", "POST", "DELETE", "PATCH"):
        part = random.choice(UNREADABLE[3:6])  # the others would do something
    headers = {"Accept": "application/json"} if method == "OPTIONS" else None
    told = "coded name" if name in CODED else "wrong way"
    shown = name[:40] if name != place.name else "it"
    only = without_traces if method == "GET" else None
    body: Any = {} if method in ("PUT", "PATCH") and part in ("/config", "/offsets") else None
    return Ask(f"{told} {method} {shown}{part}", method, f"/connectors/{name}{part}", body, headers=headers, only=only)


def plugins(random: Random, place: Place) -> Ask:
    """Ask for the keys of a plugin."""
    name = random.choice(
        ("FileStreamSource", "FileStreamSink", "JsonConverter", "Filter", "HoistField$Value", "Nothing", "%20", "")
    )
    query = random.choice(("", "?version=", "?version=4.3.1", "?version=9", "?x=y"))
    return Ask(f"keys of {name}{query}", "GET", f"/connector-plugins/{name}/config{query}")


def more(random: Random, place: Place) -> Move:
    """New records for a connector to read."""
    count = random.randint(1, LINES)
    if place.kind == SOURCE:
        return Append(place.file, b"".join(b"line %d\n" % random.randint(0, 99) for _ in range(count)))
    kinds: tuple[bytes | None, ...] = (b"text", b"{}", b'{"a": 1}', b"5", None, b"12345678")
    return Send("more records", place.topic, tuple(random.choice(kinds) for _ in range(count)))


DRAWINGS: Mapping[Drawing, int] = {
    lived: 20,
    stopped: 10,
    resumed: 10,
    changed: 14,
    patched: 10,
    restarted: 12,
    task_restarted: 6,
    altered: 18,
    forgotten: 6,
    created: 8,
    deleted: 6,
    topics_reset: 3,
    looked: 8,
    listed: 4,
    validated: 6,
    broken: 4,
    typed: 3,
    duplicated: 2,
    elsewhere: 5,
    plugins: 2,
    more: 10,
}
