"""Random cases, a pure function of the seed: a configuration and the records that go through it.

A sink case goes from a topic through converter and transforms into a file; a source case from the lines of a file
into a topic. Placeholders `{topic}` and `{file}` stand for what differs between the two systems.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass, replace

from tests.peer.differential import chains, texts

SINK = "org.apache.kafka.connect.file.FileStreamSinkConnector"
SOURCE = "org.apache.kafka.connect.file.FileStreamSourceConnector"
STRING = "org.apache.kafka.connect.storage.StringConverter"
JSON = "org.apache.kafka.connect.json.JsonConverter"
BYTES = "org.apache.kafka.connect.converters.ByteArrayConverter"
NUMBERS = {
    f"org.apache.kafka.connect.converters.{name}Converter": width
    for name, width in {"Short": 2, "Integer": 4, "Long": 8, "Float": 4, "Double": 8}.items()
}
SHARE_OF_SOURCES = 0.4
SHARE_TOLERANT = 0.8
BASE_TIMESTAMP_MS = 1_700_000_000_000


@dataclass(frozen=True, slots=True)
class Record:
    """What is written to a topic."""

    key: bytes | None
    value: bytes | None
    headers: tuple[tuple[str, bytes | None], ...]
    timestamp_ms: int


@dataclass(frozen=True, slots=True)
class Case:
    """One connector and what goes through it.

    Attributes:
        number: Its place in the sequence of the seed.
        config: Its configuration.
        records: What a sink reads; empty for a source.
        lines: What a source reads; empty for a sink.
    """

    number: int
    config: dict[str, str]
    records: tuple[Record, ...] = ()
    lines: tuple[str, ...] = ()

    @property
    def is_sink(self) -> bool:
        """Whether it is a sink's."""
        return self.config["connector.class"] == SINK


def cases(seed: int, count: int, records: int, *, plain: bool = False) -> Iterator[Case]:
    """Yields `count` cases with `records` records each; plain ones have no transforms."""
    for number in range(count):
        dice = random.Random(f"{seed}-{number}")
        case = _source(dice, number, records) if dice.random() < SHARE_OF_SOURCES else _sink(dice, number, records)
        yield replace(case, config=_without_transforms(case.config)) if plain else case


def _without_transforms(config: dict[str, str]) -> dict[str, str]:
    return {key: value for key, value in config.items() if not key.startswith(("transforms", "predicates"))}


def _sink(dice: random.Random, number: int, count: int) -> Case:
    config = {"connector.class": SINK, "tasks.max": "1", "topics": "{topic}", "file": "{file}"}
    kind = dice.choice(["schemaless"] * 3 + ["envelope"] * 3 + ["string", "number"])
    shape = texts.shape(dice)
    key_json = dice.random() < 0.3
    config |= {"key.converter": JSON if key_json else STRING}
    if key_json:
        config["key.converter.schemas.enable"] = "false"
    values: list[bytes | None]
    if kind == "schemaless":
        config |= {"value.converter": JSON, "value.converter.schemas.enable": "false"}
        values = [texts.schemaless(dice, shape) for _ in range(count)]
    elif kind == "envelope":
        config |= {"value.converter": JSON, "value.converter.schemas.enable": "true"}
        values = [texts.envelope(dice, shape) for _ in range(count)]
    elif kind == "string":
        config["value.converter"] = STRING
        values = [texts.any_text(dice).encode() for _ in range(count)]
    else:
        converter, width = dice.choice(sorted(NUMBERS.items()))
        config["value.converter"] = converter
        values = [dice.randbytes(width if dice.random() < 0.95 else 3) for _ in range(count)]
    values = [None if dice.random() < 0.04 else value for value in values]
    config |= chains.chain(dice, shape.names, structured=kind in ("schemaless", "envelope"), sink=True)
    config |= _tolerance(dice, sink=True)
    records = tuple(
        Record(
            None if dice.random() < 0.2 else texts.key(dice, key_json),
            value,
            texts.headers(dice),
            BASE_TIMESTAMP_MS + index * 86_399_877,
        )
        for index, value in enumerate(values)
    )
    return Case(number, config, records=records)


def _source(dice: random.Random, number: int, count: int) -> Case:
    config = {"connector.class": SOURCE, "tasks.max": "1", "topic": "{topic}", "file": "{file}"}
    converter = dice.choice([JSON, JSON, JSON, STRING])
    config |= {"key.converter": dice.choice([JSON, STRING]), "value.converter": converter}
    for side in ("key", "value"):
        if config[f"{side}.converter"] == JSON:
            config[f"{side}.converter.schemas.enable"] = dice.choice(["true", "false"])
            if dice.random() < 0.3:
                config[f"{side}.converter.decimal.format"] = dice.choice(["BASE64", "NUMERIC"])
    if dice.random() < 0.3:
        config["header.converter"] = dice.choice([JSON, STRING])
    config |= chains.chain(dice, ("line",), structured=False, sink=False)
    config |= _tolerance(dice, sink=False)
    return Case(number, config, lines=tuple(texts.line(dice) for _ in range(count)))


def _tolerance(dice: random.Random, *, sink: bool) -> dict[str, str]:
    if dice.random() > SHARE_TOLERANT:
        return {}
    tolerance = {"errors.tolerance": "all"}
    if sink:
        tolerance |= {
            "errors.deadletterqueue.topic.name": "{dead}",
            "errors.deadletterqueue.topic.replication.factor": "1",
            "errors.deadletterqueue.context.headers.enable": "true",
        }
    return tolerance
