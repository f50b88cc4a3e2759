"""Random chains of transforms and predicates over given field names."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence

PACKAGE = "org.apache.kafka.connect.transforms."
TYPES = ("int8", "int16", "int32", "int64", "float32", "float64", "boolean", "string")
FORMATS = ("yyyy-MM-dd", "yyyy-MM-dd HH:mm:ss", "yyyyMMddHHmmssSSS", "EEE, d MMM yyyy")
CHAIN_MAX = 4
ABSENT = "absent"

_Maker = Callable[[random.Random, Sequence[str]], dict[str, str]]


def chain(dice: random.Random, names: Sequence[str], *, structured: bool, sink: bool) -> dict[str, str]:
    """Configuration of up to four transforms, some under a predicate.

    Args:
        dice: Where chance comes from.
        names: Fields of the records.
        structured: Whether values are structs or maps from the start; others are put into one first.
        sink: Whether the records come from a topic, with a time stamp that both systems see.
    """
    steps: list[dict[str, str]] = []
    if not structured and dice.random() < 0.85:
        steps.append({"type": f"{PACKAGE}HoistField$Value", "field": names[0] if not sink else "line"})
    for _ in range(dice.choice([0, 1, 1, 2, 2, 3, 4]) if steps or structured else dice.randint(0, 1)):
        steps.append(dice.choice(SINK_MAKERS if sink else SOURCE_MAKERS)(dice, names))
    steps = steps[:CHAIN_MAX]
    config: dict[str, str] = {"transforms": ",".join(f"t{index}" for index in range(len(steps)))} if steps else {}
    guarded = False
    for index, step in enumerate(steps):
        config |= {f"transforms.t{index}.{key}": value for key, value in step.items()}
        if (index or structured) and (step["type"].endswith("Filter") or dice.random() < 0.15):
            config[f"transforms.t{index}.predicate"] = "p"
            config[f"transforms.t{index}.negate"] = dice.choice(["true", "false"])
            guarded = True
    return config | (_predicate(dice) if guarded else {})


def _predicate(dice: random.Random) -> dict[str, str]:
    kind = dice.choice(["RecordIsTombstone", "HasHeaderKey", "TopicNameMatches"])
    config = {"predicates": "p", "predicates.p.type": f"{PACKAGE}predicates.{kind}"}
    if kind == "HasHeaderKey":
        config["predicates.p.name"] = dice.choice(["h1", "trace", "nope"])
    elif kind == "TopicNameMatches":
        config["predicates.p.pattern"] = dice.choice([".*", "d.*", "x+"])
    return config


def _field(dice: random.Random, names: Sequence[str]) -> str:
    return ABSENT if dice.random() < 0.07 else dice.choice(names)


def _fields(dice: random.Random, names: Sequence[str]) -> list[str]:
    return dice.sample(list(names), dice.randint(1, min(3, len(names))))


def _cast(dice: random.Random, names: Sequence[str]) -> dict[str, str]:
    spec = ",".join(f"{name}:{dice.choice(TYPES)}" for name in _fields(dice, names))
    return {"type": f"{PACKAGE}Cast$Value", "spec": spec if dice.random() < 0.95 else dice.choice(TYPES)}


def _replace(dice: random.Random, names: Sequence[str]) -> dict[str, str]:
    config = {"type": f"{PACKAGE}ReplaceField$Value"}
    for part in dice.sample(["exclude", "include", "renames"], dice.randint(1, 2)):
        chosen = _fields(dice, names)
        config[part] = (
            ",".join(f"{name}:r{index}" for index, name in enumerate(chosen)) if part == "renames" else ",".join(chosen)
        )
    return config


def _insert(dice: random.Random, names: Sequence[str]) -> dict[str, str]:
    config = {"type": f"{PACKAGE}InsertField$Value", "static.field": f"s{dice.randint(0, 2)}", "static.value": "it's"}
    if dice.random() < 0.3:
        config["partition.field"] = "p0"
    return config


def _insert_sink(dice: random.Random, names: Sequence[str]) -> dict[str, str]:
    config = _insert(dice, names)
    if dice.random() < 0.5:
        config["offset.field"] = dice.choice(["o", "o!", "o?"])
    if dice.random() < 0.5:
        config["timestamp.field"] = "ts"
    return config


def _mask(dice: random.Random, names: Sequence[str]) -> dict[str, str]:
    config = {"type": f"{PACKAGE}MaskField$Value", "fields": ",".join(_fields(dice, names))}
    return config | ({"replacement": dice.choice(["7", "x", "300", "1.5"])} if dice.random() < 0.4 else {})


def _extract(dice: random.Random, names: Sequence[str]) -> dict[str, str]:
    return {"type": f"{PACKAGE}ExtractField$Value", "field": _field(dice, names)}


def _hoist(dice: random.Random, names: Sequence[str]) -> dict[str, str]:
    return {"type": f"{PACKAGE}HoistField${dice.choice(['Key', 'Value'])}", "field": "hoisted"}


def _flatten(dice: random.Random, names: Sequence[str]) -> dict[str, str]:
    return {"type": f"{PACKAGE}Flatten$Value"} | ({"delimiter": "_"} if dice.random() < 0.5 else {})


def _value_to_key(dice: random.Random, names: Sequence[str]) -> dict[str, str]:
    return {"type": f"{PACKAGE}ValueToKey", "fields": _field(dice, names)}


def _timestamps(dice: random.Random, names: Sequence[str]) -> dict[str, str]:
    target = dice.choice(["string", "unix", "Date", "Time", "Timestamp"])
    config = {"type": f"{PACKAGE}TimestampConverter$Value", "target.type": target, "format": dice.choice(FORMATS)}
    config["field"] = _field(dice, names)
    return config | ({"unix.precision": dice.choice(["seconds", "microseconds"])} if dice.random() < 0.3 else {})


def _insert_header(dice: random.Random, names: Sequence[str]) -> dict[str, str]:
    literal = dice.choice(["1", "1.5", "true", "text", '["a","b"]', "2024-01-02", "[1,2,3]", "-70000"])
    return {"type": f"{PACKAGE}InsertHeader", "header": "ins", "value.literal": literal}


def _drop_headers(dice: random.Random, names: Sequence[str]) -> dict[str, str]:
    return {"type": f"{PACKAGE}DropHeaders", "headers": dice.choice(["h1", "h1,trace", "ins"])}


def _header_from(dice: random.Random, names: Sequence[str]) -> dict[str, str]:
    config = {"type": f"{PACKAGE}HeaderFrom$Value", "fields": dice.choice(names), "headers": "from"}
    return config | {"operation": dice.choice(["move", "copy"])}


def _schema(dice: random.Random, names: Sequence[str]) -> dict[str, str]:
    return {"type": f"{PACKAGE}SetSchemaMetadata$Value", "schema.name": "com.example.New", "schema.version": "4"}


def _filter(dice: random.Random, names: Sequence[str]) -> dict[str, str]:
    return {"type": f"{PACKAGE}Filter"}


SOURCE_MAKERS: tuple[_Maker, ...] = (
    _cast, _cast, _replace, _insert, _mask, _extract, _hoist, _flatten, _value_to_key, _timestamps,
    _insert_header, _insert_header, _drop_headers, _header_from, _schema, _filter,
)  # fmt: skip
SINK_MAKERS: tuple[_Maker, ...] = (*SOURCE_MAKERS, _insert_sink)
