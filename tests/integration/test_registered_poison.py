"""Poison for the converters of a schema registry through a whole worker: neighbours arrive, letters keep the bytes.

The registry is real, behind a proxy that can be closed or seem to have lost a schema. Records are framed here by hand,
so that what is read was not written by what reads it.
"""

from __future__ import annotations

import contextlib
import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

import httpx2
import pytest
from confluent_kafka import Producer
from tests.support.registry_proxy import Door, guarded
from tests.support.standalone import Standalone
from tests.support.topics import consume, create_topic, end_offsets
from tests.support.waiting import eventually

from wherry.coordinator.dev.kafka import EmbeddedKafka
from wherry.coordinator.dev.registry import LocalRegistry

LIMIT_S = 120.0
CONTEXT = "__connect.errors."
NOBODYS_ID = 0x7FFF_FFFF


@dataclass(frozen=True, slots=True)
class Kind:
    """One of the three: its converter, its word in messages, and how a record of a number looks.

    Attributes:
        type: What the registry calls it.
        schema: Text of the schema; `{}` is the name of its only field, a long.
        body: A record's bytes behind the schema's id.
    """

    type: str
    converter: str
    word: str
    schema: str
    body: Callable[[str, int], bytes]

    def register(self, registry: LocalRegistry, topic: str, name: str) -> int:
        """Put the schema with a field of this name among the topic's, and return its id."""
        text = self.schema.replace("{}", name)
        answer = httpx2.post(
            f"{registry.url}/subjects/{topic}-value/versions", json={"schema": text, "schemaType": self.type}
        )
        return int(answer.raise_for_status().json()["id"])

    def record(self, schema_id: int, name: str, number: int) -> bytes:
        """Return a whole record."""
        return b"\0" + schema_id.to_bytes(4, "big") + self.body(name, number)


# Numbers below 64 take one byte in all of them.
KINDS = {
    "avro": Kind(
        "AVRO", "io.confluent.connect.avro.AvroConverter", "Avro",
        '{"type":"record","name":"Row","fields":[{"name":"{}","type":"long"}]}',
        lambda _, number: bytes([number << 1]),
    ),
    "proto": Kind(
        "PROTOBUF", "io.confluent.connect.protobuf.ProtobufConverter", "Protobuf",
        'syntax = "proto3"; message Row { int64 {} = 1; }',
        lambda _, number: b"\0\x08" + bytes([number]),
    ),
    "json": Kind(
        "JSON", "io.confluent.connect.json.JsonSchemaConverter", "JSON Schema",
        '{"type":"object","title":"Row","properties":{"{}":{"type":"integer","connect.type":"int64"}}}',
        lambda name, number: json.dumps({name: number}).encode(),
    ),
}  # fmt: skip


@dataclass(slots=True)
class Site:
    """A worker, and what it stands between."""

    worker: Standalone
    registry: LocalRegistry
    bootstrap: str
    door: Door
    folder: Path
    doors: contextlib.ExitStack = field(default_factory=contextlib.ExitStack)

    def create(self, name: str, kind: Kind, config: dict[str, str]) -> None:
        """Create a connector whose values are of this kind."""
        own = {"value.converter": kind.converter, "value.converter.schema.registry.url": self.door.url(tls=False)}
        self.worker.rest.create(name, {**own, **config})

    def sink(self, name: str, kind: Kind, topic: str, **config: str) -> None:
        """Create a sink that writes a line for each record."""
        settings = {key.replace("_", "."): value for key, value in config.items()}
        self.create(
            name,
            kind,
            {"connector.class": "FileStreamSink", "topics": topic, "file": f"{self.folder}/{name}", **settings},
        )

    def lines(self, name: str) -> list[str]:
        """Return what a sink has written."""
        path = self.folder / name
        return path.read_text().splitlines() if path.exists() else []

    def failure(self, name: str) -> str:
        """Wait until the connector's only task has failed, and return its trace."""
        self.worker.rest.wait_for_states(name, "RUNNING", "FAILED")
        return str(self.worker.rest.get(f"/connectors/{name}/status")["tasks"][0]["trace"])

    def restart(self, name: str) -> None:
        """Restart the connector's only task, as an operator does."""
        assert self.worker.rest.call("POST", f"/connectors/{name}/tasks/0/restart").status == 204

    def close_door(self) -> None:
        """Take the registry away."""
        self.doors.close()

    def open_door(self) -> None:
        """Bring the registry back."""
        self.doors.enter_context(guarded(self.registry.url, door=self.door))


@pytest.fixture(scope="module")
def site(kafka: EmbeddedKafka, registry: LocalRegistry, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    with contextlib.ExitStack() as doors:
        door = doors.enter_context(guarded(registry.url))
        # Nobody helps when the registry is back.
        settings = {"wherry.restart.base.ms": "300", "wherry.restart.delay.max.ms": "1000", "wherry.restart.max": "-1"}
        with Standalone(bootstrap=kafka.bootstrap, settings=settings) as worker:
            yield Site(worker, registry, kafka.bootstrap, door, tmp_path_factory.mktemp("poison"), doors)


def send(bootstrap: str, topic: str, *values: bytes | None) -> None:
    producer = Producer({"bootstrap.servers": bootstrap})
    for number, value in enumerate(values):
        producer.produce(topic, value, b"k%d" % number, headers=[("own", b"%d" % number)], timestamp=1_000 + number)
    assert producer.flush(60) == 0


def rows(name: str, *numbers: int) -> list[str]:
    return [f"Struct{{{name}={number}}}" for number in numbers]


def poison(kind: Kind, good: bytes, others: bytes) -> dict[bytes, str]:
    """Values that can't be read, and what is told of each."""
    return {
        b"\xff\xfe garbage": "Unknown magic byte!",
        b"\x01" + good[1:]: "Unknown magic byte!",
        b"{}": "Unknown magic byte!",
        b"": "Unknown magic byte!",
        good[:3]: "The bytes end within the schema's id",
        b"\0" + NOBODYS_ID.to_bytes(4, "big") + good[5:]: f"404 (schema {NOBODYS_ID})",
        good[:-1]: "The bytes",
        others: "this converter reads",
    }


def test_neighbours_of_poison_arrive_and_its_letters_hold_the_original_bytes(site: Site) -> None:
    sent: dict[str, dict[bytes, str]] = {}
    for word, kind in KINDS.items():
        topic = create_topic(site.bootstrap, f"kept-{word}")
        other = next(each for each in KINDS.values() if each is not kind)
        good = kind.register(site.registry, topic, "n")
        others = other.record(other.register(site.registry, f"{topic}-other", "n"), "n", 1)
        sent[word] = poison(kind, kind.record(good, "n", 1), others)
        values = [kind.record(good, "n", 0)]
        for number, bad in enumerate(sent[word], 1):
            values += [bad, kind.record(good, "n", number)]
        send(site.bootstrap, topic, *values)
        site.sink(
            f"kept-{word}", kind, topic, errors_tolerance="all", errors_deadletterqueue_topic_name=f"dead-{word}",
            errors_deadletterqueue_topic_replication_factor="1",
            errors_deadletterqueue_context_headers_enable="true",
        )  # fmt: skip
    for word, kind in KINDS.items():
        name, bad = f"kept-{word}", sent[word]
        wanted = rows("n", *range(len(bad) + 1))
        assert eventually(lambda n=name, w=wanted: site.lines(n) == w, LIMIT_S), site.lines(name)  # type: ignore[misc]
        letters = consume(site.bootstrap, f"dead-{word}", len(bad))
        assert [letter.value() for letter in letters] == list(bad)
        for number, (letter, told) in enumerate(zip(letters, bad.values(), strict=True)):
            offset = 2 * number + 1
            assert (letter.key(), letter.timestamp()[1]) == (b"k%d" % offset, 1_000 + offset)
            headers = {key: value.decode() for key, value in letter.headers()}
            message = headers.pop(f"{CONTEXT}exception.message")
            assert message.startswith(f"Failed to deserialize data for topic {name} to {kind.word}: ")
            assert told in message
            assert headers.pop(f"{CONTEXT}exception.stacktrace")
            assert headers == {"own": str(offset)} | {
                f"{CONTEXT}{key}": value
                for key, value in {
                    "topic": name, "partition": "0", "offset": str(offset), "connector.name": name, "task.id": "0",
                    "stage": "VALUE_CONVERTER", "class.name": kind.converter,
                    "exception.class.name": "org.apache.kafka.connect.errors.DataException",
                }.items()
            }  # fmt: skip
        site.worker.rest.wait_for_states(name, "RUNNING", "RUNNING")


def test_without_tolerance_the_task_fails_in_kafka_connects_words_and_goes_on_when_the_cause_is_gone(
    site: Site,
) -> None:
    for word, kind in KINDS.items():
        topic = create_topic(site.bootstrap, f"strict-{word}")
        known, lost = (kind.register(site.registry, topic, name) for name in ("n", "m"))
        site.door.lost.add(lost)
        send(site.bootstrap, topic, *(kind.record(known, "n", n) for n in (1, 2)), kind.record(lost, "m", 3))
        send(site.bootstrap, topic, kind.record(known, "n", 4))
        site.sink(f"strict-{word}", kind, topic)
    for word, kind in KINDS.items():
        trace = site.failure(f"strict-{word}")
        assert "Tolerance exceeded in error handler" in trace
        assert f"Failed to deserialize data for topic strict-{word} to {kind.word}: " in trace
        assert "offset 2" in trace
    site.door.lost.clear()
    for word in KINDS:
        site.restart(f"strict-{word}")
    for word in KINDS:
        name, wanted = f"strict-{word}", [*rows("n", 1, 2), *rows("m", 3), *rows("n", 4)]
        assert eventually(lambda n=name, w=wanted: site.lines(n) == w, LIMIT_S), site.lines(name)  # type: ignore[misc]
        site.worker.rest.wait_for_states(name, "RUNNING", "RUNNING")


def test_a_registry_that_goes_away_costs_no_record_and_writes_no_letter(site: Site) -> None:
    ids: dict[str, int] = {}
    for word, kind in KINDS.items():
        topic = create_topic(site.bootstrap, f"away-{word}")
        ids[word] = kind.register(site.registry, topic, "m")
        known = kind.register(site.registry, topic, "n")
        send(site.bootstrap, topic, kind.record(known, "n", 1))
        site.sink(
            f"away-{word}", kind, topic, errors_tolerance="all", errors_deadletterqueue_topic_name="dead-away",
            errors_deadletterqueue_topic_replication_factor="1",
        )  # fmt: skip
    for word in KINDS:
        assert eventually(lambda w=word: site.lines(f"away-{w}") == rows("n", 1), LIMIT_S)  # type: ignore[misc]
    site.close_door()
    for word, kind in KINDS.items():
        # Poison needs no registry to be told, but its turn comes after the record before it.
        send(site.bootstrap, f"away-{word}", kind.record(ids[word], "m", 2), b"\1", kind.record(ids[word], "m", 3))
    told = lambda: site.worker.log_path.read_text(errors="replace")  # noqa: E731
    for word in KINDS:
        assert eventually(lambda w=word: f"schema {ids[w]}): " in told(), LIMIT_S)  # type: ignore[misc]
        assert site.lines(f"away-{word}") == rows("n", 1)
    site.open_door()
    for word in KINDS:
        wanted = [*rows("n", 1), *rows("m", 2, 3)]
        assert eventually(lambda w=word, r=wanted: site.lines(f"away-{w}") == r, LIMIT_S), site.lines(f"away-{word}")  # type: ignore[misc]
    assert [letter.value() for letter in consume(site.bootstrap, "dead-away", 3)] == [b"\1"] * 3
    assert end_offsets(site.bootstrap, "dead-away") == {0: 3}


def source(site: Site, name: str, kind: Kind, **config: str) -> Path:
    """Create a source of CSV files whose topic takes compatible schemas only; return where files are put."""
    folder = site.folder / name
    for part in ("in", "bad"):
        (folder / part).mkdir(parents=True)
    settings = {
        "connector.class": "wherry.spooldir.SpoolDirSource", "topic": create_topic(site.bootstrap, name),
        "input.path": f"{folder}/in", "error.path": f"{folder}/bad", "cleanup.policy": "none",
        "empty.poll.wait.ms": "200", "file.minimum.age.ms": "0",
        **{key.replace("_", "."): value for key, value in config.items()},
    }  # fmt: skip
    drop(folder, "one", "id,n", "1,1")
    site.create(name, kind, settings)
    return folder


def drop(folder: Path, name: str, *lines: str) -> None:
    part = folder / name
    part.write_text("\n".join([*lines, ""]))
    part.rename(folder / "in" / f"{name}.csv")


def compatibility(site: Site, topic: str, level: str) -> None:
    httpx2.put(f"{site.registry.url}/config/{topic}-value", json={"compatibility": level}).raise_for_status()


def written(site: Site, topic: str) -> int:
    return end_offsets(site.bootstrap, topic)[0]


def test_a_schema_that_the_registry_refuses_skips_rows_or_fails_the_task_until_it_is_allowed(site: Site) -> None:
    # One that tolerates shows what all of them do: which rows failed is the converter's affair, told by the others.
    cases = [*((word, "none") for word in KINDS), ("avro", "all")]
    folders = {
        f"from-{word}-{tolerance}": source(site, f"from-{word}-{tolerance}", KINDS[word], errors_tolerance=tolerance)
        for word, tolerance in cases
    }
    for name, folder in folders.items():
        assert eventually(lambda n=name: written(site, n) == 1, LIMIT_S), name  # type: ignore[misc]
        compatibility(site, name, "FULL")
        # What was a number is a text now.
        drop(folder, "two", "id,n", "two,2")
    for word, kind in KINDS.items():
        trace = site.failure(f"from-{word}-none")
        assert "Tolerance exceeded in error handler" in trace
        assert f"Failed to serialize {kind.word} data from topic from-{word}-none: " in trace
        assert "409" in trace
        compatibility(site, f"from-{word}-none", "NONE")
        site.restart(f"from-{word}-none")
    drop(folders["from-avro-all"], "three", "id,n", "3,3")
    for name in folders:
        assert eventually(lambda n=name: written(site, n) == 2, LIMIT_S), (name, site.worker.rest.states(name))  # type: ignore[misc]
        ids = [message.value()[1:5] for message in consume(site.bootstrap, name, 2)]
        assert len(set(ids)) == (1 if name.endswith("all") else 2)
        site.worker.rest.wait_for_states(name, "RUNNING", "RUNNING")
