"""The records: about 200 bytes of JSON, eight fields of mixed types, made once and read by every run."""

from __future__ import annotations

import json
import random
import time
from collections.abc import Callable, Mapping
from pathlib import Path

from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic
from tests.bench.processes import BenchError

CLIENT: dict[str, str | int] = {"log_level": 5}
"""Part of every client's configuration: no notices, which would stand between the lines of the report."""

PARTITIONS = 2
FLUSH_SECONDS = 60.0
SERVE_EVERY = 20_000
BASE_TIME_MS = 1_760_000_000_000

CITIES = ("Amsterdam", "Bergen", "Coimbra", "Dubrovnik", "Edinburgh", "Freiburg", "Gdansk", "Helsinki")
STATES = ("open", "paid", "sent", "back")

TIMESTAMP = "org.apache.kafka.connect.data.Timestamp"
RECORD_FIELDS: tuple[dict[str, object], ...] = (
    {"field": "id", "type": "int64", "optional": False},
    {"field": "customer", "type": "int32", "optional": False},
    {"field": "amount", "type": "double", "optional": False},
    {"field": "express", "type": "boolean", "optional": False},
    {"field": "city", "type": "string", "optional": False},
    {"field": "state", "type": "string", "optional": True},
    {"field": "note", "type": "string", "optional": True},
    {"field": "created", "type": "int64", "optional": False, "name": TIMESTAMP, "version": 1},
)
RECORD_SCHEMA = {"type": "struct", "name": "bench.Order", "optional": False, "fields": RECORD_FIELDS}
"""The records' schema in JsonConverter's own form (`schema.content`)."""

RECORD_COLUMNS = (
    '"id" bigint NOT NULL, "customer" integer NOT NULL, "amount" double precision NOT NULL, '
    '"express" boolean NOT NULL, "city" text NOT NULL, "state" text, "note" text, "created" timestamp NOT NULL'
)
"""The same as a PostgreSQL table."""

NOTES = tuple(
    f"order note {n:02d}: leave it with the neighbours at number {n * 7 % 100:02d}, please" for n in range(64)
)


def record(index: int) -> bytes:
    """The JSON of one record; every value but the note follows from the index and differs between rows."""
    express = "true" if index % 3 == 0 else "false"
    return (
        f'{{"id":{index},"customer":{index * 7919 % 1_000_003},"amount":{index % 100_000 / 100},"express":{express},'
        f'"city":"{CITIES[index & 7]}","state":"{STATES[index & 3]}","note":"{NOTES[index & 63]}",'
        f'"created":{BASE_TIME_MS + index}}}'
    ).encode()


ENVELOPE_HEAD = f'{{"schema":{json.dumps(RECORD_SCHEMA, separators=(",", ":"))},"payload":'.encode()


def envelope(index: int) -> bytes:
    """The same record with its schema, as JsonConverter writes it."""
    return ENVELOPE_HEAD + record(index) + b"}"


def irregular(index: int) -> bytes:
    """The same record, but for a member that is there in every third only and one that nests."""
    more = f',"gift":"G{index % 9973}"' if index % 3 == 0 else ""
    return record(index)[:-1] + f',"parcel":{{"weight":{index % 900},"unit":"g"}}{more}}}'.encode()


def shuffled(index: int) -> bytes:
    """The same as `irregular`, its members in an order of its own: no columns fit them."""
    members = list(json.loads(irregular(index)).items())
    random.Random(index).shuffle(members)
    return json.dumps(dict(members), separators=(",", ":")).encode()


Making = Callable[[int], bytes]
KINDS: Mapping[str, Making] = {"json": record, "envelope": envelope, "irregular": irregular, "shuffled": shuffled}


def schema_text() -> str:
    """The schema as one line of JSON."""
    return json.dumps(RECORD_SCHEMA, separators=(",", ":"))


def create_topic(
    bootstrap: str, topic: str, partitions: int = PARTITIONS, *, config: Mapping[str, str] | None = None
) -> None:
    """Creates a topic and waits until it is there."""
    admin = AdminClient({**CLIENT, "bootstrap.servers": bootstrap})
    wanted = NewTopic(topic, partitions, 1, config=dict(config or {}))
    for future in admin.create_topics([wanted], operation_timeout=30.0).values():
        future.result(timeout=30.0)


def delete_topic(bootstrap: str, topic: str) -> None:
    """Deletes a topic."""
    admin = AdminClient({**CLIENT, "bootstrap.servers": bootstrap})
    for future in admin.delete_topics([topic], operation_timeout=30.0).values():
        future.result(timeout=30.0)


def fill_topic(
    bootstrap: str, topic: str, records: int, *, partitions: int = PARTITIONS, making: Making = record
) -> float:
    """Produces the records, keyed by id, in turn to each partition; gives the records per second."""
    refused: list[str] = []
    producer = Producer(
        {
            **CLIENT,
            "bootstrap.servers": bootstrap,
            "linger.ms": 50,
            "batch.size": 1_000_000,
            "queue.buffering.max.messages": 500_000,
            "queue.buffering.max.kbytes": 262_144,
            "acks": "1",
            "error_cb": lambda error: refused.append(str(error)),
        }
    )
    begun = time.monotonic()
    for index in range(records):
        while True:
            try:
                producer.produce(topic, making(index), str(index), index % partitions)
                break
            except BufferError:
                producer.poll(0.05)
        if index % SERVE_EVERY == 0:
            producer.poll(0)
    if producer.flush(FLUSH_SECONDS) != 0:
        raise BenchError(f"Filling {topic} did not end within {FLUSH_SECONDS:.0f} s: {refused[:1]}")
    return records / (time.monotonic() - begun)


def write_lines(path: Path, lines: int) -> int:
    """Writes the records as a file of lines; gives its size in bytes."""
    with path.open("wb", buffering=1 << 20) as file:
        for index in range(lines):
            file.write(record(index))
            file.write(b"\n")
    return path.stat().st_size
