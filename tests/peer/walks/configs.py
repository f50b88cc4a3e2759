"""Random configurations: some good, some refused, some that fail once they run."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from random import Random
from typing import Any

from tests.peer.steps import SINK_CLASS, SOURCE_CLASS
from tests.peer.steps_validation import SINKS, SOURCES

STRING = "org.apache.kafka.connect.storage.StringConverter"
JSON = "org.apache.kafka.connect.json.JsonConverter"
BYTES = "org.apache.kafka.connect.converters.ByteArrayConverter"
LONG = "org.apache.kafka.connect.converters.LongConverter"
TRANSFORMS = "org.apache.kafka.connect.transforms"
PREDICATES = f"{TRANSFORMS}.predicates"
SOURCE, SINK = "source", "sink"
TWISTS_MAX = 2

Config = Mapping[str, Any]

_NEVER_MADE = frozenset(
    {
        # What is shown is the same, what comes of it is not: lines beyond it stay in a buffer there.
        *("batch size zero", "batch size null", "batch size wrong"),
        # Files and topics of all walks, or none of their own.
        *("offsets topic", "regex", "regex only", "tasks.max largest", "override own group"),
        # Brokers that aren't there are waited for, longer than a step.
        "override list",
        # The second request is answered otherwise than the first, and so by what others have asked before.
        *("plugin version missing", "converter version missing", "converter unknown", "header converter unknown"),
    }
)
"""Twists of the validation's tables that are validated, and never created."""

_COMMON: Mapping[str, Config] = {
    "two tasks": {"tasks.max": "2"},
    "three tasks": {"tasks.max": "3"},
    "json": {"value.converter": JSON, "value.converter.schemas.enable": "false"},
    "json with schemas": {"value.converter": JSON},
    "bytes": {"value.converter": BYTES},
    "longs": {"value.converter": LONG},
    "longs, tolerated": {"value.converter": LONG, "errors.tolerance": "all"},
    "tolerant": {"errors.tolerance": "all", "errors.log.enable": "true"},
    "unknown key": {"nothing.of.ours": "x"},
    "hoist": {"transforms": "h", "transforms.h.type": f"{TRANSFORMS}.HoistField$Value", "transforms.h.field": "f"},
    "hoist without field": {"transforms": "h", "transforms.h.type": f"{TRANSFORMS}.HoistField$Value"},
    "cast what is no struct": {
        "transforms": "c",
        "transforms.c.type": f"{TRANSFORMS}.Cast$Value",
        "transforms.c.spec": "int32",
    },
    "cast to nothing": {"transforms": "c", "transforms.c.type": f"{TRANSFORMS}.Cast$Value", "transforms.c.spec": "x"},
    "replace in text": {
        "transforms": "r",
        "transforms.r.type": f"{TRANSFORMS}.ReplaceField$Value",
        "transforms.r.exclude": "a",
    },
    "insert header": {
        "transforms": "i",
        "transforms.i.type": f"{TRANSFORMS}.InsertHeader",
        "transforms.i.header": "h",
        "transforms.i.value.literal": "1",
    },
    "unknown transform": {"transforms": "u", "transforms.u.type": "com.acme.Nothing"},
    "transform without type": {"transforms": "u"},
    "transform twice": {"transforms": "i,i", "transforms.i.type": f"{TRANSFORMS}.DropHeaders"},
    "empty transform": {"transforms": ""},
    "unknown predicate": {
        "transforms": "d",
        "transforms.d.type": f"{TRANSFORMS}.DropHeaders",
        "transforms.d.headers": "x",
        "transforms.d.predicate": "nope",
    },
    "predicate": {
        "transforms": "h",
        "transforms.h.type": f"{TRANSFORMS}.HoistField$Value",
        "transforms.h.field": "f",
        "transforms.h.predicate": "p",
        "transforms.h.negate": "true",
        "predicates": "p",
        "predicates.p.type": f"{PREDICATES}.RecordIsTombstone",
    },
    "predicate that names": {
        "transforms": "d",
        "transforms.d.type": f"{TRANSFORMS}.DropHeaders",
        "transforms.d.headers": "x",
        "transforms.d.predicate": "p",
        "predicates": "p",
        "predicates.p.type": f"{PREDICATES}.TopicNameMatches",
        "predicates.p.pattern": "w.*",
    },
    "predicate of no class": {"predicates": "p", "predicates.p.type": "com.acme.Nothing"},
    "negate alone": {
        "transforms": "d",
        "transforms.d.type": f"{TRANSFORMS}.DropHeaders",
        "transforms.d.headers": "x",
        "transforms.d.negate": "true",
    },
    "secret": {"tasks.max": "${file:{dir}/secrets:tasks}"},
    "secret that is none": {"errors.retry.timeout": "${file:{dir}/secrets:nothing}"},
    "provider that is none": {"nothing.of.ours": "${vault:x:y}"},
}
_OF_SOURCES: Mapping[str, Config] = {
    **_COMMON,
    "short class": {"connector.class": "FileStreamSource"},
    "class of the other kind": {"connector.class": SINK_CLASS},
    "no file": {"file": "{dir}/none.in"},
    "topic that cannot be": {"topic": "not a topic/{x}"},
    "producer": {"producer.override.linger.ms": "5", "producer.override.acks": "1"},
    "topic of two": {"topic.creation.default.partitions": "2", "topic.creation.default.replication.factor": "1"},
    "topic of none": {"topic.creation.default.partitions": "0", "topic.creation.default.replication.factor": "1"},
    "routed": {
        "transforms": "r",
        "transforms.r.type": f"{TRANSFORMS}.RegexRouter",
        "transforms.r.regex": "(.*)",
        "transforms.r.replacement": "$1-routed",
    },
    "exactly once": {"exactly.once.support": "required"},
}
_OF_SINKS: Mapping[str, Config] = {
    **_COMMON,
    "short class": {"connector.class": "FileStreamSinkConnector"},
    "class of the other kind": {"connector.class": SOURCE_CLASS},
    "no folder": {"file": "{dir}/none/x.out"},
    "topic that is missing": {"topics": "missing-{x}"},
    "two topics": {"topics": "{topic},{topic}-other"},
    "regex of one": {"topics": None, "topics.regex": "{topic}.*"},
    "topic by secret": {"topics": "${file:{dir}/secrets:letter}{topic after w}"},
    "consumer": {"consumer.override.max.poll.records": "1"},
    "consumer from the end": {"consumer.override.auto.offset.reset": "latest"},
    "consumer fails": {"consumer.override.auto.offset.reset": "none"},
    "dead letters": {
        "errors.tolerance": "all",
        "value.converter": JSON,
        "errors.deadletterqueue.topic.name": "{topic}-dead",
        "errors.deadletterqueue.topic.replication.factor": "1",
    },
}


@dataclass(frozen=True, slots=True)
class Place:
    """One connector of a walk.

    Attributes:
        name: Its name.
        kind: What it is at first, `source` or `sink`.
        topic: What it writes or reads.
        file: What it reads or writes, below the peer's folder.
    """

    name: str
    kind: str
    topic: str
    file: str

    @property
    def base(self) -> Config:
        """A configuration that works."""
        if self.kind == SOURCE:
            return {
                "connector.class": SOURCE_CLASS,
                "tasks.max": "1",
                "file": f"{{dir}}/{self.file}",
                "topic": self.topic,
            }
        return {"connector.class": SINK_CLASS, "tasks.max": "1", "file": f"{{dir}}/{self.file}", "topics": self.topic}


@dataclass(frozen=True, slots=True)
class Drawn:
    """A configuration and what is special about it."""

    config: Config
    told: str


def drawn(random: Random, place: Place, *, validated: bool = False, twists: int | None = None) -> Drawn:
    """Draw a configuration for a connector; `validated` ones are never created and may be odder."""
    table = _table(place.kind, validated=validated)
    count = random.randint(0, TWISTS_MAX) if twists is None else twists
    chosen = random.sample(sorted(table), count)
    config = dict(place.base)
    for twist in chosen:
        config |= {key: _placed(value, place) for key, value in table[twist].items()}
    # A null means the key's absence as often as it means null.
    if random.random() < 0.5 and not validated:
        config = {key: value for key, value in config.items() if value is not None}
    return Drawn(config, " + ".join(chosen) or "plain")


def _table(kind: str, *, validated: bool) -> dict[str, Config]:
    mine, others = (_OF_SOURCES, SOURCES) if kind == SOURCE else (_OF_SINKS, SINKS)
    allowed = {name: changes for name, changes in others.items() if validated or _is_made(name, changes)}
    return {**allowed, **mine}


def _is_made(name: str, changes: Config) -> bool:
    return name not in _NEVER_MADE and "name" not in changes


def _placed(value: Any, place: Place) -> Any:
    if not isinstance(value, str):
        return value
    return value.replace("{topic}", place.topic).replace("{topic after w}", place.topic.removeprefix("w"))
