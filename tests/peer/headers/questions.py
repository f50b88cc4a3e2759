"""Questions to header converters, a pure function of the seed: bytes to read and write again, values to write.

A question is what `Headers.java` takes: `config` (the class under an empty name) and one of `data` (base64), `literal`
(as InsertHeader has it), `java` with `text` (a value without a schema), `value` (schema and payload).
"""

from __future__ import annotations

import base64
import json
import random
from collections.abc import Iterator, Mapping
from typing import Any, Final

from tests.peer.differential import texts

_KAFKA: Final = "org.apache.kafka.connect."
_JSON: Final = f"{_KAFKA}json.JsonConverter"
_TEXT: Final = f"{_KAFKA}storage.StringConverter"
_STRUCT: Final = {
    "type": "struct",
    "fields": [
        {"field": "a", "type": "int32", "optional": True, "default": 7},
        {"field": "b", "type": "string", "optional": True},
    ],
}
WIDTHS: Final = {"Boolean": 1, "Short": 2, "Integer": 4, "Long": 8, "Float": 4, "Double": 8}
CONFIGS: Final[Mapping[str, Mapping[str, str]]] = {
    "Simple": {"": f"{_KAFKA}storage.SimpleHeaderConverter"},
    "String": {"": _TEXT},
    "String UTF-16": {"": _TEXT, "converter.encoding": "UTF-16"},
    "String ISO-8859-1": {"": _TEXT, "converter.encoding": "ISO-8859-1"},
    "String US-ASCII": {"": _TEXT, "converter.encoding": "US-ASCII"},
    "Json": {"": _JSON},
    "Json bare": {"": _JSON, "schemas.enable": "false"},
    "Json nulls": {"": _JSON, "replace.null.with.default": "false"},
    "Json numeric": {"": _JSON, "decimal.format": "NUMERIC"},
    "Json content": {"": _JSON, "schema.content": json.dumps(_STRUCT)},
    "Json content int": {"": _JSON, "schema.content": '{"type":"int32"}'},
    "ByteArray": {"": f"{_KAFKA}converters.ByteArrayConverter"},
    **{name: {"": f"{_KAFKA}converters.{name}Converter"} for name in WIDTHS},
}
LITERALS: Final = (
    *texts.LITERALS, "[{}]", "[1,2.5]", "[1,null]", "[null]", '{"a":1,"b":2}', '{"z":1,"b":2,"aa":3,"q":4}', "{1:2}",
    '{"a":"x"}', '["2020-01-02"]', '{"a":[1,2]}', '{"d":2020-01-02}', "25:61:61.000Z", "1.5e300", "-0", "-0.0", "0.1",
    "12345678901234567890", "[true]", "[[1],[2]]", "  padded ", "\u00e4", "\U0001f600", "1970-01-01T00:00:00.000Z",
    "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01", "1e9f0000-89ab-4cde-8012-0123456789ab", "493-1-0-1T",
    "00:00:00.000Z", "1970-01-01", "3.4e38", "1e39", "[1.5,2]", "[128,1]", '[1,"a"]', '{"a":1,"b":"x"}',
)  # fmt: skip
ODD_JSON: Final = (
    b"", b"  ", b"\xef\xbb\xbf", b"\xef\xbb\xbf1", b"\0 ", b"007", b"1 2", b'"a"b', b"-0", b"1.0", b"1e400",
    b'{"a":1,"a":2}', b"null", b" null ", b"nul", b"NaN",
    b'"\\u0041\\ud800"', b'{"b":1,"a":2}', b"[1, 2]", b"12345678901234567890", b"9\n\x8d", b'{"a":1.50}',
    b'{"schema":null,"payload":1}', b'{"schema":null,"payload":null}', b'{"payload":1,"schema":{"type":"int8"}}',
    b'{"schema":{"type":"int8","optional":true},"payload":null}', b'{"schema":{"type":"int8"},"payload":null}',
    b'{"schema":{"type":"int8","optional":true,"default":3},"payload":null}', b'{"a":1,"payload":2}',
)  # fmt: skip
ODD_NUMBERS: Final = (
    b"\x7f\xc0\0\1", b"\xff\xf8\0\0\0\0\0\1", b"\x80\0\0\0\0\0\0\0", b"\0", b"\1", b"\2", b"\0\1", b"\0\0\0\5",
    b"\xff" * 8,
)  # fmt: skip
DAMAGED: Final = (
    b"\xff\xd5\xb4\xcd\xed\xb6A",
    b"\xc0\x80",
    b"a\xffb",
    b"\xfe\xff\0a",
    b"\xff\xfea\0",
    b"\0a",
    b"\xd8\0\0a\0b",
)
SINGLES: Final = (
    ("Byte", "5"), ("Short", "5"), ("Integer", "5"),
    ("Float", "1.5"), ("Date", "86400000"), ("Date", "5"), ("Date", "1577934245678"), ("BigDecimal", "1.50"),
)  # fmt: skip
KEYS: Final = ("string", "int32", "int8", "int64", "double", "boolean")


def fixed() -> Iterator[dict[str, Any]]:
    """Yields what every converter is asked, whatever the seed."""
    found = [*(each.encode() for each in LITERALS), *ODD_JSON, *ODD_NUMBERS, *DAMAGED]
    for config in CONFIGS.values():
        yield {"config": config, "data": None}
        yield from ({"config": config, "data": _base64(data)} for data in dict.fromkeys(found))
        yield from ({"config": config, "literal": literal} for literal in dict.fromkeys(LITERALS))
        yield from ({"config": config, "java": kind, "text": text} for kind, text in SINGLES)


def drawn(seed: int, count: int) -> Iterator[dict[str, Any]]:
    """Yields `count` random questions to each converter; no two of them share a case of chance."""
    for name, config in CONFIGS.items():
        dice = random.Random(f"{seed}-{name}")
        for _ in range(count):
            if dice.random() < 0.6:
                data = _data(dice, name)
                yield {"config": config, "data": None if data is None else _base64(data)}
            else:
                yield {"config": config, **_value(dice, texts_only=name.startswith("String"))}


def _base64(data: bytes) -> str:
    return base64.b64encode(data).decode()


def _value(dice: random.Random, *, texts_only: bool) -> dict[str, Any]:
    if dice.random() < 0.4:
        return {"literal": dice.choice(LITERALS) if dice.random() < 0.6 else texts.line(dice)}
    if dice.random() < 0.15:
        payload = texts.anything(dice)
        return {"value": {"schema": None, "payload": payload}}
    schema = texts.shape(dice).schema if dice.random() < 0.5 else texts.primitive(dice)
    if texts_only and '"bytes"' in json.dumps(schema):
        # Java prints where an array of bytes lies.
        schema = {"type": "int32", "optional": True}
    return {"value": {"schema": schema, "payload": texts.of_schema(dice, schema)}}


def _data(dice: random.Random, name: str) -> bytes | None:
    roll = dice.random()
    if roll < 0.1:
        return None if roll < 0.05 else dice.randbytes(dice.randint(0, 9))
    if roll < 0.3:
        return dice.choice([dice.choice(LITERALS).encode(), texts.line(dice).encode(), *ODD_JSON, *texts.POISON])
    if name in WIDTHS:
        width = WIDTHS[name]
        return bytes([dice.choice([0, 1, 1, 2])]) if width == 1 else dice.randbytes(width)
    if name in ("Json", "Json nulls", "Json numeric"):
        return texts.envelope(dice, texts.shape(dice)) if roll < 0.6 else _envelope(dice)
    if name == "Json bare":
        members = {texts.any_text(dice): texts.anything(dice) for _ in range(dice.randint(0, 20))}
        return json.dumps(members).encode() if roll < 0.6 else texts.schemaless(dice, texts.shape(dice))
    if name.startswith("Json content"):
        return json.dumps(
            dice.choice([{"a": 1}, {"b": "x"}, {"a": None}, 5, "x", None, [1], {"a": 1.5, "b": 2}])
        ).encode()
    if name == "String UTF-16":
        text = texts.any_text(dice)
        return dice.choice([text.encode("utf-16"), text.encode("utf-16-be"), dice.randbytes(dice.randint(0, 9))])
    return texts.line(dice).encode()


def _envelope(dice: random.Random) -> bytes:
    """A value that is no struct, often a map with many keys; or a schema, or a payload, that is not there."""
    schema: Any = texts.primitive(dice)
    payload: Any = texts.of_schema(dice, schema)
    if dice.random() < 0.4:
        keys = {"type": dice.choice(KEYS), "optional": False}
        entries = [(texts.of_schema(dice, keys), texts.of_schema(dice, schema)) for _ in range(dice.randint(0, 20))]
        schema = {"type": "map", "keys": keys, "values": schema, "optional": dice.random() < 0.5}
        payload = dict(entries) if keys["type"] == "string" else [list(entry) for entry in entries]
    if dice.random() < 0.15:
        payload = texts.anything(dice)
    schema = None if dice.random() < 0.1 else schema
    payload = None if dice.random() < 0.1 else payload
    return json.dumps({"schema": schema, "payload": payload}, ensure_ascii=dice.random() < 0.5).encode()
