"""Random values as they stand in topics and files: JSON with and without schema, plain texts, keys, headers, poison."""

from __future__ import annotations

import base64
import json
import random
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

NAMES = ("id", "name", "a", "b", "when", "price", "nested", "tags", "map", "flag", "x.y")
SHARE_OF_POISON = 0.03
SHARE_OF_SURPRISES = 0.06
POISON = (
    b"", b"{", b"nope", b'{"a":}', b"\xff\xfe\x00", b'{"schema":null}', b"[1,", b'"', b"1 2", b'{"a":1}{}', b"  ",
    b"9\n\x8d", b"\xef\xbb\xbf",
)  # fmt: skip
ALPHABETS = ("abcxyz", "ABC 019_-", "\u00e4\u00f6\u00fc\u20ac", "\U0001f600\u4e2d", "\\\"'{}[]:,=\t")
INTEGERS = {"int8": 8, "int16": 16, "int32": 32, "int64": 64}
LOGICAL = {
    "org.apache.kafka.connect.data.Date": "int32",
    "org.apache.kafka.connect.data.Time": "int32",
    "org.apache.kafka.connect.data.Timestamp": "int64",
    "org.apache.kafka.connect.data.Decimal": "bytes",
}
DAY_MS = 86_400_000
FIELDS_MAX = 6
LITERALS = (
    "1", "-1", "127", "128", "70000", "5000000000", "1.0", "1.5", "1e400", "true", "null", '"quoted"', "[1,2]", '["a"]',
    '{"a":1}', "[1,[2]]", "2020-01-02", "03:04:05.678Z", "2020-01-02T03:04:05.678Z", "1,000", "NaN", "\\", "{}", "[]",
)  # fmt: skip

ODD_LITERALS = (
    "[{}]", "[1,2.5]", "[1,null]", "[null]", '{"z":1,"b":2,"aa":3}', "{1:2}", '["2020-01-02"]', '{"a":[1,2]}', "0.1",
    '{"d":2020-01-02}', "25:61:61.000Z", "-0.0", "12345678901234567890", "  padded ", "\u00e4", "00:00:00.000Z", "1e39",
    "1970-01-01", "1970-01-01T00:00:00.000Z", "[1.5,2]", '[1,"a"]', '{"a":1,"b":"x"}', "007", "nul", "true ", "null ",
)  # fmt: skip
ODD_JSON = (
    b"", b"  ", b"007", b"1 2", b'"a"b', b"-0", b"1.0", b"1e400", b'{"a":1,"a":2}', b"null", b" null ", b"nul", b"NaN",
    b'{"z":1,"b":2,"aa":[1.50,{}]}', b"[1, 2]", b"12345678901234567890", b"9\n\x8d", b'{"schema":null,"payload":1}',
    b'{"schema":null,"payload":null}', b'{"payload":1,"schema":{"type":"int8"}}',
    b'{"schema":{"type":"int8","optional":true},"payload":null}', b'{"schema":{"type":"int8"},"payload":null}',
    b'{"schema":{"type":"int8","optional":true,"default":3},"payload":null}',
    b'{"schema":{"type":"int8"},"payload":300}',
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Shape:
    """What the records of a case have in common: a Connect schema as JSON; its top is a struct."""

    schema: dict[str, Any]

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the fields."""
        return tuple(field["field"] for field in self.schema["fields"])


def shape(dice: random.Random, width: int = FIELDS_MAX) -> Shape:
    """A random struct schema."""
    return Shape(_struct(dice, depth=0, width=width))


def evolved(dice: random.Random, like: Shape) -> Shape:
    """The same struct with a field more, a field less, or other qualities."""
    fields = list(like.schema["fields"])
    if dice.random() < 0.5 and len(fields) > 1:
        fields.pop(dice.randrange(len(fields)))
    free = [name for name in NAMES if name not in like.names]
    if free:
        fields.append({**_schema(dice, 1), "field": dice.choice(free)})
    return Shape({**like.schema, "fields": fields, "version": 7, "name": "com.example.Next"})


def primitive(dice: random.Random) -> dict[str, Any]:
    """A schema that is no struct."""
    made = {"type": "struct"}
    while made["type"] == "struct":
        made = _schema(dice, 2)
    return made


def payload(dice: random.Random, like: Shape) -> bytes:
    """The bare JSON of a value of the shape, where the schema is known beforehand."""
    return dice.choice(POISON) if dice.random() < SHARE_OF_POISON else _dumped(dice, of_schema(dice, like.schema))


def schemaless(dice: random.Random, like: Shape, *, sound: bool = False) -> bytes:
    """JSON without a schema: objects of the shape, some of them irregular, and now and then something else."""
    roll = 1.0 if sound else dice.random()
    if roll < SHARE_OF_POISON:
        return dice.choice(POISON)
    if roll < SHARE_OF_POISON + SHARE_OF_SURPRISES:
        return _dumped(dice, anything(dice, 0))
    payload = {field["field"]: _plain(dice, field) for field in like.schema["fields"] if dice.random() < 0.92}
    if dice.random() < 0.1:
        payload[dice.choice(NAMES)] = anything(dice, 1)
    return _dumped(dice, payload)


def envelope(dice: random.Random, like: Shape) -> bytes:
    """JSON with its schema; some payloads break it."""
    if dice.random() < SHARE_OF_POISON:
        return dice.choice(POISON)
    payload = of_schema(dice, like.schema)
    if dice.random() < SHARE_OF_SURPRISES:
        name = dice.choice(like.names)
        payload = {**payload, name: anything(dice, 1)}
    return _dumped(dice, {"schema": like.schema, "payload": payload})


def any_text(dice: random.Random) -> str:
    """A text of up to 12 characters."""
    alphabet = dice.choice(ALPHABETS)
    return "".join(dice.choice(alphabet) for _ in range(dice.randint(0, 12)))


def line(dice: random.Random) -> str:
    """A line of a file: texts, numbers, dates, JSON."""
    return dice.choice(
        [
            any_text(dice).replace("\t", " "),
            str(dice.randint(-(2**40), 2**40)),
            str(dice.randint(-200, 200)),
            repr(dice.uniform(-1e6, 1e6)),
            f"20{dice.randint(0, 60):02}-{dice.randint(1, 12):02}-{dice.randint(1, 28):02}",
            f"2024-0{dice.randint(1, 9)}-11 0{dice.randint(0, 9)}:30:{dice.randint(0, 59):02}",
            dice.choice(["true", "false", "True", "null", "", "NaN", "1e3", "+7", " 1"]),
        ]
    )


def key(dice: random.Random, is_json: bool) -> bytes:
    """A key: a text or a number, as JSON or plain."""
    value: Any = dice.choice([any_text(dice), dice.randint(-5, 5)])
    return json.dumps(value, ensure_ascii=False).encode() if is_json else str(value).encode()


def headers(dice: random.Random, value: Callable[[], bytes | None]) -> tuple[tuple[str, bytes | None], ...]:
    """Up to three headers, whose names may repeat, of values as they come."""
    return tuple((dice.choice(["h1", "h2", "trace"]), value()) for _ in range(dice.choice([0, 0, 1, 2, 3])))


def header(dice: random.Random) -> bytes | None:
    """A header of no particular kind: most are texts, some any bytes."""
    roll = dice.random()
    if roll < 0.1:
        return None
    if roll < 0.2:
        return dice.randbytes(dice.randint(0, 9))
    return dice.choice([*LITERALS, *ODD_LITERALS]).encode() if roll < 0.5 else line(dice).encode()


def json_header(dice: random.Random, *, schemas: bool) -> bytes | None:
    """A header of JSON, some of it in other forms than it would be written in, with its schema or without."""
    roll = dice.random()
    if roll < 0.1:
        return header(dice)
    if roll < 0.25:
        return dice.choice(ODD_JSON)
    if not schemas:
        return schemaless(dice, shape(dice, width=3)) if roll < 0.5 else _dumped(dice, anything(dice))
    if roll < 0.4:
        return envelope(dice, shape(dice, width=3))
    of = primitive(dice)
    value = anything(dice, 1) if dice.random() < 0.1 else of_schema(dice, of)
    return _dumped(dice, {"schema": of if dice.random() < 0.95 else None, "payload": value})


def typed_headers(dice: random.Random) -> list[tuple[str, Any]]:
    """Headers of a source's records: texts, for that is what a sidecar can say."""
    text = {"type": "string", "optional": False}
    return [
        (dice.choice(["h1", "h2"]), {"schema": text, "payload": any_text(dice)})
        for _ in range(dice.choice([0, 0, 0, 1, 2]))
    ]


def _struct(dice: random.Random, depth: int, width: int = 3) -> dict[str, Any]:
    names = dice.sample(NAMES, dice.randint(1, width))
    made = {"type": "struct", "fields": [{**_schema(dice, depth + 1), "field": name} for name in names]}
    made["optional"] = depth > 0 and dice.random() < 0.5
    if dice.random() < 0.3:
        made |= {"name": "com.example.Thing", "version": dice.randint(1, 3)}
    if dice.random() < 0.1:
        made |= {"doc": "What it is.", "parameters": {"unit": "m", "also": "x"}}
    return made


def _schema(dice: random.Random, depth: int) -> dict[str, Any]:
    kinds = ["bytes", "int8", "int16", "int32", "int64", "float", "double", "boolean", "string", "string", "logical"]
    if depth < 3:
        kinds += ["array", "map", "struct"]
    kind = dice.choice(kinds)
    optional = dice.random() < 0.6
    if kind == "struct":
        return _struct(dice, depth)
    if kind == "array":
        return {"type": "array", "items": _schema(dice, depth + 1), "optional": optional}
    if kind == "map":
        keys = {"type": dice.choice(["string"] * 5 + ["int32"]), "optional": False}
        return {"type": "map", "keys": keys, "values": _schema(dice, depth + 1), "optional": optional}
    if kind == "logical":
        name, base = dice.choice(sorted(LOGICAL.items()))
        made: dict[str, Any] = {"type": base, "optional": optional, "name": name, "version": 1}
        made |= {"parameters": {"scale": str(dice.randint(0, 4))}} if base == "bytes" else {}
        return made | ({"default": of_schema(dice, {**made, "optional": False})} if dice.random() < 0.1 else {})
    made = {"type": kind, "optional": optional}
    if dice.random() < 0.15:
        made["default"] = of_schema(dice, {**made, "optional": False})
    if dice.random() < 0.05:
        made |= {"name": "com.example.Kind", "version": 2, "doc": "A kind.", "parameters": {"p": "q"}}
    return made


def of_schema(dice: random.Random, schema: Mapping[str, Any]) -> Any:
    """A payload that the schema allows."""
    if schema.get("optional") and dice.random() < 0.15:
        return None
    kind, name = schema["type"], schema.get("name", "")
    if kind == "struct":
        return {field["field"]: of_schema(dice, field) for field in schema["fields"]}
    if kind == "array":
        return [of_schema(dice, schema["items"]) for _ in range(dice.randint(0, 3))]
    if kind == "map":
        # One entry: the order of Java's hash maps is not ours to follow.
        value = of_schema(dice, schema["values"])
        if schema["keys"]["type"] != "string":
            return [[dice.randint(-9, 9), value]] if dice.random() < 0.5 else []
        return {dice.choice("kl"): value} if dice.random() < 0.5 else {}
    if name.endswith(".Date"):
        return dice.randint(-20_000, 40_000)
    if name.endswith(".Time"):
        return dice.randint(0, DAY_MS - 1)
    if name.endswith(".Timestamp"):
        return dice.randint(-(10**12), 2 * 10**12)
    if name.endswith(".Decimal"):
        number = dice.randint(-(10**9), 10**9)
        return base64.b64encode(number.to_bytes((number.bit_length() // 8) + 1, "big", signed=True)).decode()
    if kind in INTEGERS:
        bits = dice.choice([4, INTEGERS[kind]])
        return dice.randint(-(2 ** (bits - 1)), 2 ** (bits - 1) - 1)
    if kind == "bytes":
        return base64.b64encode(dice.randbytes(dice.randint(0, 5))).decode()
    if kind in ("float", "double"):
        return dice.choice([0.0, 1.5, -2.25, 1e10, 1e-5, 123456.75, dice.uniform(-1e3, 1e3)])
    return dice.random() < 0.5 if kind == "boolean" else any_text(dice)


def _plain(dice: random.Random, schema: dict[str, Any]) -> Any:
    """Much like it, for JSON without a schema."""
    return anything(dice, 1) if dice.random() < 0.05 else of_schema(dice, schema)


def anything(dice: random.Random, depth: int = 0) -> Any:
    """Any JSON value."""
    kind = dice.choice(["null", "bool", "int", "big", "float", "text", "list", "object"])
    if kind == "list" and depth < 3:
        return [anything(dice, depth + 1) for _ in range(dice.randint(0, 3))]
    if kind == "object" and depth < 3:
        return {dice.choice(NAMES): anything(dice, depth + 1)} if dice.random() < 0.8 else {}
    return {
        "null": None,
        "bool": dice.random() < 0.5,
        "int": dice.randint(-300, 300),
        "big": dice.randint(-(2**66), 2**66),
        "float": dice.choice([0.5, -1e20, 3.0, 1e-7, 1.1]),
    }.get(kind, any_text(dice))


def _dumped(dice: random.Random, value: Any) -> bytes:
    separators = dice.choice([(",", ":"), (", ", ": ")])
    return json.dumps(value, separators=separators, ensure_ascii=dice.random() < 0.5).encode()
