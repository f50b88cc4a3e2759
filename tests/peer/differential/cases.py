"""Random cases, a pure function of the seed: a configuration and the records that go through it.

A sink case goes from topics through converters and transforms into a file; a source case from the lines of a file into
a topic. A text goes in and out of FileStream; a record with everything a connector sees goes in and out of the peers'
own connectors (`java/`, `plugin/`). `{topic}`, `{file}` and `{dead}` stand for what differs between the two systems.
"""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from tests.peer.differential import chains, texts

FILE_SINK = "org.apache.kafka.connect.file.FileStreamSinkConnector"
FILE_SOURCE = "org.apache.kafka.connect.file.FileStreamSourceConnector"
SHOWN_SINK = "wherry.peer.RecordsSink"
TYPED_SOURCE = "wherry.peer.RecordsSource"
SINKS = frozenset({FILE_SINK, SHOWN_SINK})
STRING = "org.apache.kafka.connect.storage.StringConverter"
SIMPLE = "org.apache.kafka.connect.storage.SimpleHeaderConverter"
JSON = "org.apache.kafka.connect.json.JsonConverter"
BYTES = "org.apache.kafka.connect.converters.ByteArrayConverter"
BOOLEAN = "org.apache.kafka.connect.converters.BooleanConverter"
NUMBERS = {
    f"org.apache.kafka.connect.converters.{name}Converter": width
    for name, width in {"Short": 2, "Integer": 4, "Long": 8, "Float": 4, "Double": 8}.items()
}
BINARY = {**NUMBERS, BOOLEAN: 1}
SHARE_OF_SOURCES = 0.45
SHARE_TOLERANT = 0.75
BASE_TIMESTAMP_MS = 1_700_000_000_000
STEP_MS = 86_399_877
COMPRESSIONS = ("none", "gzip", "lz4", "zstd", "snappy")


@dataclass(frozen=True, slots=True)
class Record:
    """What is written to a topic.

    Attributes:
        topic: What its topic's name has behind `{topic}`.
    """

    key: bytes | None
    value: bytes | None
    headers: tuple[tuple[str, bytes | None], ...]
    timestamp_ms: int
    topic: str = ""
    partition: int = 0


@dataclass(frozen=True, slots=True)
class Case:
    """One connector and what goes through it.

    Attributes:
        number: Its place in the sequence of the seed.
        config: Its configuration.
        records: What a sink reads; empty for a source.
        lines: What a source reads; empty for a sink.
        partitions: Topics it reads from or writes to, by what their names have behind `{topic}`.
        compression: Of the topics it reads.
    """

    number: int
    config: dict[str, str]
    records: tuple[Record, ...] = ()
    lines: tuple[str, ...] = ()
    partitions: Mapping[str, int] = field(default_factory=lambda: {"": 1})
    compression: str = "none"

    @property
    def is_sink(self) -> bool:
        """Whether it is a sink's."""
        return self.config["connector.class"] in SINKS

    @property
    def shows_records(self) -> bool:
        """Whether what its sink writes is the JSON of whole records."""
        return self.config["connector.class"] == SHOWN_SINK

    @property
    def is_wide(self) -> bool:
        """Whether it has several partitions, between which there is no order."""
        return sum(self.partitions.values()) > 1


def cases(seed: int, count: int, records: int, *, first: int = 0, plain: bool = False) -> Iterator[Case]:
    """Yields the cases from `first` to before `count`, with `records` records each; plain ones have no transforms."""
    for number in range(first, count):
        dice = random.Random(f"{seed}-{number}")
        case = _source(dice, number, records) if dice.random() < SHARE_OF_SOURCES else _sink(dice, number, records)
        yield replace(case, config=_without_transforms(case.config)) if plain else case


def _without_transforms(config: dict[str, str]) -> dict[str, str]:
    return {key: value for key, value in config.items() if not key.startswith(("transforms", "predicates"))}


def _sink(dice: random.Random, number: int, count: int) -> Case:
    config = {"connector.class": dice.choice([FILE_SINK, SHOWN_SINK]), "tasks.max": "1", "file": "{file}"}
    partitions = dice.choice([{"": 1}, {"": 1}, {"": 3}, {"-a": 1, "-b": 2}])
    config |= _topics(dice, partitions)
    shape = texts.shape(dice)
    kind = dice.choice(["schemaless"] * 3 + ["envelope"] * 4 + ["string", "number", "bytes"])
    converter, values = _values(dice, kind, shape, count)
    config |= {f"value.converter{key}": value for key, value in converter.items()}
    converter, keys = _values(dice, _key_kind(dice), texts.shape(dice, width=2), count)
    config |= {f"key.converter{key}": value for key, value in converter.items()}
    config |= _header_converter(dice)
    header = _header(dice, config)
    config |= chains.chain(dice, shape.names, structured=kind in ("schemaless", "envelope"), sink=True)
    config |= _tolerance(dice, sink=True)
    places = [(suffix, each) for suffix, wide in partitions.items() for each in range(wide)]
    records = tuple(
        Record(
            None if dice.random() < 0.2 else keys[index],
            None if dice.random() < 0.04 else value,
            texts.headers(dice, header),
            BASE_TIMESTAMP_MS + index * STEP_MS,
            *dice.choice(places),
        )
        for index, value in enumerate(values)
    )
    return Case(number, config, records, partitions=partitions, compression=dice.choice(COMPRESSIONS))


def _topics(dice: random.Random, partitions: Mapping[str, int]) -> dict[str, str]:
    if dice.random() < 0.2:
        return {"topics.regex": "{topic}.*" if dice.random() < 0.5 else "{topic}(-a|-b)?"}
    return {"topics": ",".join(f"{{topic}}{suffix}" for suffix in partitions)}


def _key_kind(dice: random.Random) -> str:
    return dice.choice(["string", "string", "text", "schemaless", "envelope", "number", "bytes"])


def _values(dice: random.Random, kind: str, shape: texts.Shape, count: int) -> tuple[dict[str, str], list[bytes]]:
    """A converter, as keys behind `value.converter`, and bytes for it, some of them damaged."""
    if kind == "schemaless":
        config = {"": JSON, ".schemas.enable": "false"}
        return config, [texts.schemaless(dice, shape) for _ in range(count)]
    if kind == "text":
        return {"": JSON, ".schemas.enable": "false"}, [texts.key(dice, is_json=True) for _ in range(count)]
    if kind == "envelope":
        config = {"": JSON, ".schemas.enable": "true"}
        if dice.random() < 0.2:
            config[".replace.null.with.default"] = dice.choice(["true", "false"])
        if dice.random() < 0.1:
            config[".schemas.cache.size"] = dice.choice(["0", "1", "1000"])
        if dice.random() < 0.08:
            config[".schema.content"] = json.dumps(shape.schema)
            return config, [texts.payload(dice, shape) for _ in range(count)]
        # A topic whose schema changes now and then.
        shapes = [shape, *([texts.evolved(dice, shape)] if dice.random() < 0.25 else [])]
        return config, [texts.envelope(dice, dice.choice(shapes)) for _ in range(count)]
    if kind == "string":
        encoding = dice.choice(["", "", "", "ISO-8859-1", "UTF-16", "US-ASCII"])
        config = {"": STRING} | ({".converter.encoding": encoding} if encoding else {})
        return config, [texts.any_text(dice).encode(encoding or "utf-8", "replace") for _ in range(count)]
    if kind == "bytes":
        return {"": BYTES}, [dice.randbytes(dice.randint(0, 9)) for _ in range(count)]
    name, width = dice.choice(sorted(BINARY.items()))
    return {"": name}, [_number(dice, width) for _ in range(count)]


def _number(dice: random.Random, width: int) -> bytes:
    if dice.random() < 0.05:
        return dice.randbytes(dice.choice([0, 3]))
    return bytes([dice.choice([0, 1, 1, 2])]) if width == 1 else dice.randbytes(width)


def _header_converter(dice: random.Random) -> dict[str, str]:
    if dice.random() < 0.35:
        return {}
    number = dice.choice(sorted(BINARY))
    chosen = dice.choice([SIMPLE, STRING, STRING, BYTES, JSON, JSON, JSON, number, number])
    config = {"header.converter": chosen}
    if chosen == STRING and dice.random() < 0.4:
        config["header.converter.converter.encoding"] = dice.choice(["UTF-16", "ISO-8859-1", "US-ASCII"])
    if chosen == JSON:
        config["header.converter.schemas.enable"] = dice.choice(["true", "false"])
        if dice.random() < 0.2:
            config["header.converter.replace.null.with.default"] = dice.choice(["true", "false"])
        if dice.random() < 0.2:
            config["header.converter.decimal.format"] = "NUMERIC"
    return config


def _header(dice: random.Random, config: Mapping[str, str]) -> Callable[[], bytes | None]:
    """What makes headers for the converter of a configuration, some of which it can't read."""
    chosen = config.get("header.converter", SIMPLE)
    encoding = config.get("header.converter.converter.encoding", "UTF-8")

    def fitting() -> bytes | None:
        if chosen == JSON:
            return texts.json_header(dice, schemas=config["header.converter.schemas.enable"] == "true")
        if chosen in BINARY:
            return _number(dice, BINARY[chosen])
        if encoding != "UTF-8":
            return texts.line(dice).encode(encoding, "replace")
        return texts.header(dice)

    return lambda: texts.header(dice) if dice.random() < 0.07 else fitting()


def _source(dice: random.Random, number: int, count: int) -> Case:
    return _typed_source(dice, number, count) if dice.random() < 0.55 else _line_source(dice, number, count)


def _line_source(dice: random.Random, number: int, count: int) -> Case:
    config = {"connector.class": FILE_SOURCE, "tasks.max": "1", "topic": "{topic}", "file": "{file}"}
    config |= _writers(dice, [JSON, JSON, JSON, STRING], [JSON, STRING])
    config |= chains.chain(dice, ("line",), structured=False, sink=False)
    config |= _tolerance(dice, sink=False)
    lines = tuple(texts.line(dice) for _ in range(count))
    return Case(number, config, lines=lines, partitions=dice.choice([{"": 1}, {"": 3}]))


def _typed_source(dice: random.Random, number: int, count: int) -> Case:
    config = {"connector.class": TYPED_SOURCE, "tasks.max": "1", "topic": "{topic}", "file": "{file}"}
    shape, plain = texts.shape(dice), dice.random() < 0.25
    shapes = [shape, *([texts.evolved(dice, shape)] if dice.random() < 0.3 else [])]
    primitive = texts.primitive(dice)
    kind = dice.choice(["struct"] * 4 + ["map", "primitive"])
    keys = dice.choice(["none", "primitive", "struct"])
    # No null keys with a schema: to us they are none, which leaves their partition to chance.
    key_shape, key_schema = texts.shape(dice, width=2), {**texts.primitive(dice), "optional": False}
    fitting = [*BINARY, BYTES] if kind == "primitive" else [JSON]
    config |= _writers(dice, [JSON, JSON, JSON, STRING, dice.choice(fitting)], [JSON, JSON, STRING])
    partitions = dice.choice([{"": 1}, {"": 3}])

    def described(what: str, of: Mapping[str, Any], scalar: Mapping[str, Any]) -> Any:
        if what == "none":
            return None
        if what == "map":
            return {"schema": None, "payload": json.loads(texts.schemaless(dice, shape, sound=True))}
        form = of if what == "struct" else scalar
        return {"schema": form, "payload": texts.of_schema(dice, form)}

    lines = [
        {
            "key": None if dice.random() < 0.2 else described(keys, key_shape.schema, key_schema),
            "value": None if dice.random() < 0.04 else described(kind, dice.choice(shapes).schema, primitive),
            "headers": [] if plain else texts.typed_headers(dice),
            "partition": dice.randrange(sum(partitions.values())) if dice.random() < 0.3 else None,
            "timestamp": BASE_TIMESTAMP_MS + index * STEP_MS if dice.random() < 0.8 else None,
        }
        for index in range(count)
    ]
    config |= chains.chain(dice, shape.names, structured=kind != "primitive", sink=False)
    config |= _tolerance(dice, sink=False)
    if any(value.endswith("Router") for value in config.values()):
        # For a partition that a topic does not have Kafka Connect waits for ever; we fail.
        lines = [{**line, "partition": None} for line in lines]
    if config.get("header.converter", SIMPLE) not in (SIMPLE, STRING, JSON):
        # A header of a sidecar is bytes, which fits other converters than the text that Java's source gives.
        lines = [{**line, "headers": []} for line in lines]
    return Case(number, config, lines=tuple(map(json.dumps, lines)), partitions=partitions)


def _writers(dice: random.Random, for_values: list[str], for_keys: list[str]) -> dict[str, str]:
    config = {"key.converter": dice.choice(for_keys), "value.converter": dice.choice(for_values)}
    for side in ("key", "value"):
        if config[f"{side}.converter"] == JSON:
            config[f"{side}.converter.schemas.enable"] = dice.choice(["true", "false"])
            if dice.random() < 0.3:
                config[f"{side}.converter.decimal.format"] = dice.choice(["BASE64", "NUMERIC", "numeric"])
            if dice.random() < 0.2:
                config[f"{side}.converter.replace.null.with.default"] = dice.choice(["true", "false"])
    if dice.random() < 0.6:
        config |= _header_converter(dice)
    return config


def _tolerance(dice: random.Random, *, sink: bool) -> dict[str, str]:
    config: dict[str, str] = {}
    if dice.random() < SHARE_TOLERANT:
        config["errors.tolerance"] = "all" if dice.random() < 0.98 else "ALL"
    elif dice.random() < 0.3:
        config["errors.tolerance"] = "none"
    if dice.random() < 0.1:
        config |= {"errors.log.enable": "true", "errors.log.include.messages": dice.choice(["true", "false"])}
    if dice.random() < 0.1:
        config |= {"errors.retry.timeout": dice.choice(["0", "100"]), "errors.retry.delay.max.ms": "50"}
    if sink and dice.random() < 0.85:
        config["errors.deadletterqueue.topic.name"] = "{dead}"
        config["errors.deadletterqueue.topic.replication.factor"] = "1"
        if dice.random() < 0.85:
            config["errors.deadletterqueue.context.headers.enable"] = "true"
    return config
