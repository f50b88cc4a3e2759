"""Random chains of transforms and predicates over given field names, some of them with options that are wrong."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence

from tests.peer.differential import texts

PACKAGE = "org.apache.kafka.connect.transforms."
TYPES = ("int8", "int16", "int32", "int64", "float32", "float64", "boolean", "string")
FORMATS = (
    "yyyy-MM-dd", "yyyy-MM-dd HH:mm:ss", "yyyyMMddHHmmssSSS", "EEE, d MMM yyyy", "yyyy-MM-dd'T'HH:mm:ss.SSSXXX",
    "dd/MM/yy h:mm a", "yyyy-DDD", "H:m:s", "G yyyy MMMM", "YYYY-'W'ww-u",
)  # fmt: skip
CHAIN_MAX = 5
ABSENT = "absent"
SHARE_ON_KEYS = 0.2
SHARE_WRONG = 0.02

_Maker = Callable[[random.Random, Sequence[str]], dict[str, str]]


def chain(dice: random.Random, names: Sequence[str], *, structured: bool, sink: bool) -> dict[str, str]:
    """Configuration of up to five transforms, some under a predicate.

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
    steps = [_spoiled(dice, step) if dice.random() < SHARE_WRONG else step for step in steps[:CHAIN_MAX]]
    config: dict[str, str] = {"transforms": ",".join(f"t{index}" for index in range(len(steps)))} if steps else {}
    guards: dict[str, str] = {}
    for index, step in enumerate(steps):
        config |= {f"transforms.t{index}.{key}": value for key, value in step.items()}
        if (index or structured) and (step["type"].endswith("Filter") or dice.random() < 0.2):
            alias = dice.choice(["p", "q"])
            config[f"transforms.t{index}.predicate"] = alias
            if dice.random() < 0.7:
                config[f"transforms.t{index}.negate"] = dice.choice(["true", "false"])
            guards |= {} if any(key.startswith(f"predicates.{alias}.") for key in guards) else _predicate(dice, alias)
    aliases = sorted({key.split(".")[1] for key in guards})
    return config | guards | ({"predicates": ",".join(aliases)} if aliases else {})


def _predicate(dice: random.Random, alias: str) -> dict[str, str]:
    kind = dice.choice(["RecordIsTombstone", "HasHeaderKey", "TopicNameMatches"])
    config = {f"predicates.{alias}.type": f"{PACKAGE}predicates.{kind}"}
    if kind == "HasHeaderKey":
        config[f"predicates.{alias}.name"] = dice.choice(["h1", "trace", "nope", "ins"])
    elif kind == "TopicNameMatches":
        config[f"predicates.{alias}.pattern"] = dice.choice([".*", "d.*", "x+", "d[0-9]+-.*", "(?!d).*", ".*a|.*b"])
    return config


def _spoiled(dice: random.Random, step: dict[str, str]) -> dict[str, str]:
    """One option taken away, emptied or filled with what can't be right."""
    keys = [key for key in step if key != "type"]
    if not keys:
        return step
    key = dice.choice(keys)
    if dice.random() < 0.35:
        return {name: value for name, value in step.items() if name != key}
    return {**step, key: dice.choice(["", "nope", "a:b:c", "[", "-1", ",", "a,,b"])}


def _side(dice: random.Random) -> str:
    return "Key" if dice.random() < SHARE_ON_KEYS else "Value"


def _of(dice: random.Random, kind: str) -> dict[str, str]:
    config = {"type": f"{PACKAGE}{kind}${_side(dice)}"}
    return config | ({"replace.null.with.default": dice.choice(["true", "false"])} if dice.random() < 0.25 else {})


def _field(dice: random.Random, names: Sequence[str]) -> str:
    return ABSENT if dice.random() < 0.07 else dice.choice(names)


def _fields(dice: random.Random, names: Sequence[str]) -> list[str]:
    chosen = dice.sample(list(names), dice.randint(1, min(3, len(names))))
    return [*chosen, ABSENT] if dice.random() < 0.05 else chosen


def _cast(dice: random.Random, names: Sequence[str]) -> dict[str, str]:
    spec = ",".join(f"{name}:{dice.choice(TYPES)}" for name in _fields(dice, names))
    return {**_of(dice, "Cast"), "spec": spec if dice.random() < 0.92 else dice.choice(TYPES)}


def _replace(dice: random.Random, names: Sequence[str]) -> dict[str, str]:
    config = _of(dice, "ReplaceField")
    for part in dice.sample(["exclude", "include", "renames"], dice.randint(1, 2)):
        chosen = _fields(dice, names)
        config[part] = (
            ",".join(f"{name}:r{index}" for index, name in enumerate(chosen)) if part == "renames" else ",".join(chosen)
        )
    return config


def _insert(dice: random.Random, names: Sequence[str]) -> dict[str, str]:
    static = dice.choice([f"s{dice.randint(0, 2)}", f"s{dice.randint(0, 2)}", "s!", "s?", dice.choice(names)])
    config = {**_of(dice, "InsertField"), "static.field": static, "static.value": "it's"}
    if dice.random() < 0.3:
        config["partition.field"] = dice.choice(["p0", "p0!", "p0?"])
    if dice.random() < 0.2:
        config["topic.field"] = dice.choice(["topic", "topic!"])
    return config


def _insert_sink(dice: random.Random, names: Sequence[str]) -> dict[str, str]:
    config = _insert(dice, names)
    if dice.random() < 0.5:
        config["offset.field"] = dice.choice(["o", "o!", "o?"])
    if dice.random() < 0.5:
        config["timestamp.field"] = dice.choice(["ts", "ts", "ts!"])
    return config


def _mask(dice: random.Random, names: Sequence[str]) -> dict[str, str]:
    config = {**_of(dice, "MaskField"), "fields": ",".join(_fields(dice, names))}
    return config | ({"replacement": dice.choice(["7", "x", "300", "1.5", "-0"])} if dice.random() < 0.4 else {})


def _path(dice: random.Random, names: Sequence[str]) -> dict[str, str]:
    """A field by its name, or by a path, which may lead nowhere."""
    if dice.random() < 0.6:
        return {"field": _field(dice, names)}
    steps = [dice.choice(names) for _ in range(dice.randint(1, 3))]
    steps = [f"`{step}`" if "." in step or dice.random() < 0.1 else step for step in steps]
    return {"field": ".".join(steps), "field.syntax.version": dice.choice(["V2", "V2", "v2", "V1"])}


def _extract(dice: random.Random, names: Sequence[str]) -> dict[str, str]:
    return {**_of(dice, "ExtractField"), **_path(dice, names)}


def _hoist(dice: random.Random, names: Sequence[str]) -> dict[str, str]:
    return {"type": f"{PACKAGE}HoistField${dice.choice(['Key', 'Value'])}", "field": "hoisted"}


def _flatten(dice: random.Random, names: Sequence[str]) -> dict[str, str]:
    delimiter = {"delimiter": dice.choice(["_", "-", "", "::"])} if dice.random() < 0.5 else {}
    return {"type": f"{PACKAGE}Flatten${_side(dice)}"} | delimiter


def _value_to_key(dice: random.Random, names: Sequence[str]) -> dict[str, str]:
    config = {"type": f"{PACKAGE}ValueToKey"}
    if dice.random() < 0.3:
        path = _path(dice, names)
        path["fields"] = path.pop("field")
        return config | path
    return config | {"fields": ",".join(_fields(dice, names))}


def _timestamps(dice: random.Random, names: Sequence[str]) -> dict[str, str]:
    target = dice.choice(["string", "unix", "Date", "Time", "Timestamp"])
    config = {**_of(dice, "TimestampConverter"), "target.type": target, "format": dice.choice(FORMATS)}
    if dice.random() < 0.92:
        config["field"] = _field(dice, names)
    precision = dice.choice(["seconds", "microseconds", "nanoseconds", "milliseconds"])
    return config | ({"unix.precision": precision} if dice.random() < 0.4 else {})


def _insert_header(dice: random.Random, names: Sequence[str]) -> dict[str, str]:
    literal = dice.choice([
        "1", "1.5", "true", "text", '["a","b"]', "2024-01-02", "[1,2,3]", "-70000", '{"a":1,"b":2}', "null", '"q"',
        "2024-01-02T03:04:05.678Z", "1e400", "[1,2.5]", '{"a":"x"}', "12:34:56.789Z", " padded ", "[]", "{}",
        *texts.ODD_LITERALS, *texts.LITERALS,
    ])  # fmt: skip
    return {"type": f"{PACKAGE}InsertHeader", "header": dice.choice(["ins", "h1"]), "value.literal": literal}


def _drop_headers(dice: random.Random, names: Sequence[str]) -> dict[str, str]:
    return {"type": f"{PACKAGE}DropHeaders", "headers": dice.choice(["h1", "h1,trace", "ins", "none"])}


def _header_from(dice: random.Random, names: Sequence[str]) -> dict[str, str]:
    chosen = _fields(dice, names)[:2]
    config = {**_of(dice, "HeaderFrom"), "fields": ",".join(chosen)}
    config["headers"] = ",".join(["from", "also"][: len(chosen)]) if len(chosen) < 3 else "from"
    return config | {"operation": dice.choice(["move", "copy"])}


def _schema(dice: random.Random, names: Sequence[str]) -> dict[str, str]:
    config = {**_of(dice, "SetSchemaMetadata"), "schema.name": "com.example.New", "schema.version": "4"}
    if dice.random() < 0.4:
        del config[dice.choice(["schema.name", "schema.version"])]
    return config


def _filter(dice: random.Random, names: Sequence[str]) -> dict[str, str]:
    return {"type": f"{PACKAGE}Filter"}


def _regex_router(dice: random.Random, names: Sequence[str]) -> dict[str, str]:
    regex, replacement = dice.choice([
        ("(.*)", "$1-r"), (".*", "$0-all"), ("(d[0-9]+)-(.*)", "$1-$2-two"), ("no(.*)", "$1"), ("(.*)", "$1-x.y_z"),
        ("(?<n>d[0-9]+-.*)", "${n}-named"), ("(.*)", "$2"), ("(.*)-b", "$1-a"),
    ])  # fmt: skip
    return {"type": f"{PACKAGE}RegexRouter", "regex": regex, "replacement": replacement}


def _timestamp_router(dice: random.Random, names: Sequence[str]) -> dict[str, str]:
    config = {"type": f"{PACKAGE}TimestampRouter"}
    if dice.random() < 0.6:
        config["topic.format"] = dice.choice(["${topic}_${timestamp}", "${topic}.t"])
    if dice.random() < 0.5:
        config["timestamp.format"] = dice.choice(["yyyy", "yyyy-MM", "yyyyMM"])
    return config


SOURCE_MAKERS: tuple[_Maker, ...] = (
    _cast, _cast, _replace, _insert, _mask, _extract, _hoist, _flatten, _value_to_key, _timestamps,
    _insert_header, _insert_header, _insert_header, _drop_headers,
    _header_from, _header_from, _header_from, _schema, _filter, _regex_router, _timestamp_router,
)  # fmt: skip
SINK_MAKERS: tuple[_Maker, ...] = (*SOURCE_MAKERS, _insert_sink, _insert_sink)
