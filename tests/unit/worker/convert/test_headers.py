"""Header converters; the table of what they write was recorded from Kafka Connect 4.3.1."""

from __future__ import annotations

import base64
import json
import random
from pathlib import Path

import pyarrow as pa
import pytest
from tests.peer.headers.answers import converter_of, of_wherry, unlike
from tests.peer.headers.questions import CONFIGS

from wherry.contract import headers, values
from wherry.contract.batch import HEADERS_TYPE, Batch, of_value
from wherry.contract.data import INT8_SCHEMA, INT32_SCHEMA, STRING_SCHEMA, Typed
from wherry.contract.errors import ConfigError
from wherry.worker.convert.registry import Converters, converters_of
from wherry.worker.convert.step import FromConnect, Stage, ToConnect, WriteHeaders

CASES = Path(__file__).parents[3] / "cases"
WRITTEN = json.loads((CASES / "headers/write.json").read_text())
TEXTS = [case for case in json.loads((CASES / "values/text.json").read_text()) if len(case[0]) < 70]
ANSWERS = [
    ({"config": CONFIGS[name], **question}, answer)
    for name, question, answer in json.loads((CASES / "headers/answers.json").read_text())
]
NEVER_PROVEN = {"String UTF-16", "String US-ASCII"}
MODES = {
    "schemas": {"header.converter": "JsonConverter"},
    "bare": {"header.converter": "Json", "header.converter.schemas.enable": "false"},
    "text": {"header.converter": "org.apache.kafka.connect.storage.StringConverter"},
}
FIELD = pa.field("headers", HEADERS_TYPE)


def made(**config: str) -> Converters:
    plain = {"key.converter": "ByteArray", "value.converter": "ByteArray"}
    return converters_of(plain | {name.replace("_", "."): value for name, value in config.items()}, {})


def batch(*rows: list[tuple[str, bytes | None]] | None) -> Batch:
    return of_value(pa.array([b"v"] * len(rows), pa.binary()), headers=pa.array(rows, HEADERS_TYPE))


def read(converters: Converters, *data: bytes | None) -> list[bytes | None]:
    [(converted, _)] = ToConnect(converters).apply(*[batch(*([("h", one)] for one in data))] * 2).pieces
    assert converted.headers is not None
    return [row[0]["value"] for row in converted.headers.to_pylist()]


@pytest.mark.parametrize(("mode", "text", "written", "fails"), WRITTEN)
def test_a_typed_header_is_written_as_kafka_connect_does(mode: str, text: str, written: str, fails: bool) -> None:
    column = headers.append(None, [[headers.entry("h", values.parse(text))]])
    converted = converters_of(MODES[mode], {}).headers.from_connect("t", FIELD, column)
    assert bool(converted.failures) == fails
    if not fails:
        found = converted.runs[0].column[0].as_py()[0]["value"]
        assert (None if found is None else found.decode()) == written


def test_headers_are_read_written_and_refused_as_kafka_connects_own_classes_do() -> None:
    questions, answers = zip(*ANSWERS, strict=True)
    found = zip(questions, answers, of_wherry(questions), strict=True)
    assert [each for each in found if unlike(*each)] == []


@pytest.mark.parametrize("name", CONFIGS)
def test_whatever_is_proven_to_stay_as_it_is_would_be_written_so(name: str) -> None:
    converter = converter_of(CONFIGS[name])
    read = [question["data"] for question, answer in ANSWERS if "data" in question and "written" in answer]
    kept = 0
    for text in dict.fromkeys(read):
        data = None if text is None else base64.b64decode(text)
        if converter.keeps(pa.array([data], pa.binary())):
            kept += 1
            assert converter.write(converter.read(data)) == data
    assert bool(kept) == (name not in NEVER_PROVEN)


def test_texts_that_begin_like_numbers_are_proven_to_stay_only_where_they_do() -> None:
    dice, converter, kept = random.Random(1), converter_of(CONFIGS["Simple"]), 0
    for _ in range(3_000):
        data = "".join(dice.choices("0123456789+-.eEfdLxTZ_/a", k=dice.choice([1, 2, 10, 13, 24, 25, 40]))).encode()
        if converter.keeps(pa.array([data], pa.binary())):
            kept += 1
            assert converter.write(converter.read(data)) == data
    assert kept > 1_000
    assert not converter.keeps(pa.array([b"493-1-0-1T"], pa.binary()))
    assert converter.keeps(pa.array([b"00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"], pa.binary()))


def test_one_value_that_changes_does_not_change_those_beside_it() -> None:
    row = [("a", b"007"), ("b", None), ("a", b'"x"'), ("c", b"007"), ("d", b"")]
    converters = made(header_converter="Json", header_converter_schemas_enable="false")
    [(converted, _)] = ToConnect(converters).apply(*[batch(row, None, row[2:])] * 2).pieces
    assert converted.headers is not None
    pairs = [
        None if each is None else [(one["name"], one["value"]) for one in each]
        for each in converted.headers.to_pylist()
    ]
    changed = [("a", b"7"), ("b", None), ("a", b'"x"'), ("c", b"7"), ("d", None)]
    assert pairs == [changed, None, changed[2:]]


def test_a_sources_plain_headers_are_written_in_the_encoding_that_was_asked_for() -> None:
    raw = batch([("a", "\u00e4".encode()), ("b", b"")])
    converters = made(header_converter="String", header_converter_converter_encoding="UTF-16")
    [(written, _)] = FromConnect(converters).apply(raw, raw).pieces
    assert written.headers is not None
    assert [one["value"] for one in written.headers.to_pylist()[0]] == [b"\xfe\xff\0\xe4", b""]


def test_simple_headers_reach_a_sink_as_the_text_of_what_is_read() -> None:
    texts = [text.encode() for text, *_ in TEXTS]
    assert read(made(), *texts) == [None if out is None else out.encode() for *_, out in TEXTS]


def test_texts_that_are_read_as_they_are_share_their_buffers() -> None:
    column = pa.array([[("a", b"abc-1"), ("b", b"-12"), ("a", None)], None, [("c", b"0")]], HEADERS_TYPE)
    converted = made().headers.to_connect("t", column)
    assert converted.runs[0].column is column


@pytest.mark.parametrize("count", [3, 6000])
def test_headers_keep_their_order_and_their_repeats(count: int) -> None:
    rows = [[("b", b"1,000"), ("a", str(index).encode()), ("b", b"x y")] for index in range(count)]
    [(converted, _)] = ToConnect(made()).apply(*[batch(*rows)] * 2).pieces
    assert converted.headers is not None
    last = converted.headers.to_pylist()[-1]
    assert [(one["name"], one["value"]) for one in last] == [("b", b"1"), ("a", b"%d" % (count - 1)), ("b", b"x y")]


def test_damaged_header_bytes_are_text_and_never_an_error() -> None:
    assert read(made(), b"a\xff", None, b"") == ["a\ufffd".encode(), None, b""]


@pytest.mark.parametrize(
    ("converter", "good", "bad"),
    [
        ("Json", b'{"schema":{"type":"int8"},"payload":1}', b"1"),
        ("Integer", b"\0\0\0\1", b"1"),
        ("Boolean", b"\1", b"\2"),
    ],
)
def test_a_header_that_cannot_be_read_fails_its_row_alone(converter: str, good: bytes, bad: bytes) -> None:
    raw = batch([("a", good)], [("a", good), ("b", bad), ("c", bad)], None, [("a", None)])
    stepped = ToConnect(made(header_converter=converter)).apply(raw, raw)
    assert [(failure.row, failure.stage) for failure in stepped.failures] == [(1, Stage.HEADER_CONVERTER)]
    assert stepped.failures[0].executing.endswith(f".{converter}Converter")
    assert sum(piece.num_rows for piece, _ in stepped.pieces) == 3


def test_a_sources_plain_headers_stay_as_they_are_under_the_converters_of_text_and_bytes() -> None:
    raw = batch([("a", b"1,000"), ("b", b"\xff"), ("a", None)])
    for name in ("Simple", "String", "ByteArray"):
        converters = made(header_converter=f"{name}HeaderConverter" if name == "Simple" else name)
        [(written, _)] = FromConnect(converters).apply(raw, raw).pieces
        assert written.headers == raw.headers


def test_a_sources_plain_headers_are_text_or_bytes_to_the_json_converter() -> None:
    raw = batch([("a", b"x"), ("b", b"\xff"), ("c", None)])
    [(written, _)] = FromConnect(made(header_converter="Json")).apply(raw, raw).pieces
    assert written.headers is not None
    assert [one["value"] for one in written.headers.to_pylist()[0]] == [
        b'{"schema":{"type":"string","optional":false},"payload":"x"}',
        b'{"schema":{"type":"bytes","optional":false},"payload":"/w=="}',
        None,
    ]


def test_typed_headers_of_transforms_become_bytes_for_a_sink_and_others_stay() -> None:
    raw = batch([("a", b"\xff1,000")], None)
    column = headers.append(raw.headers, [[headers.entry("n", Typed(INT8_SCHEMA, 5))], []])
    typed = raw.with_columns(headers=column)
    [(written, _)] = WriteHeaders(made()).apply(typed, raw).pieces
    assert written.headers is not None
    assert written.headers.type == HEADERS_TYPE
    assert written.headers.to_pylist()[0] == [{"name": "a", "value": b"\xff1,000"}, {"name": "n", "value": b"5"}]
    assert WriteHeaders(made()).apply(raw, raw).pieces[0][0] is raw


def test_a_typed_header_that_its_converter_cannot_write_is_text_to_a_sink() -> None:
    raw = batch(None, None)
    column = headers.append(None, [[headers.entry("n", values.parse('["a","b"]'))], []])
    (piece,) = WriteHeaders(made(header_converter="Double")).apply(raw.with_columns(headers=column), raw).pieces
    assert piece[0].headers is not None
    assert piece[0].headers.to_pylist() == [[{"name": "n", "value": b'["a","b"]'}], None]


def test_a_typed_header_that_its_converter_cannot_write_fails_the_record_of_a_mirror() -> None:
    raw = batch([("old", b"1")], [("old", b"2")])
    column = headers.append(raw.headers, [[headers.entry("n", values.parse('["a","b"]'))], []])
    strict = WriteHeaders(made(header_converter="Double"), for_sink=False)
    stepped = strict.apply(raw.with_columns(headers=column), raw)
    assert [(failure.row, failure.stage) for failure in stepped.failures] == [(0, Stage.HEADER_CONVERTER)]
    [(kept, _)] = stepped.pieces
    assert kept.headers is not None
    assert kept.headers.to_pylist() == [[{"name": "old", "value": b"2"}]]


def test_number_converters_take_only_their_own_type_as_a_header() -> None:
    column = headers.append(None, [[headers.entry("n", Typed(INT32_SCHEMA, 5))]])
    integer = converters_of({"header.converter": "Integer"}, {}).headers
    assert integer.from_connect("t", FIELD, column).runs[0].column.to_pylist()[0][0]["value"] == b"\0\0\0\5"
    text = headers.append(None, [[headers.entry("n", Typed(STRING_SCHEMA, "5"))]])
    [failure] = integer.from_connect("t", FIELD, text).failures
    assert str(failure.error) == "Failed to serialize to integer (was class java.lang.String): "


def test_an_unknown_header_converter_is_told_with_those_there_are() -> None:
    with pytest.raises(ConfigError, match=r"Invalid value Nope for configuration header.converter.*SimpleHeader"):
        made(header_converter="Nope")


def test_the_simple_header_converter_is_none_for_values() -> None:
    with pytest.raises(ConfigError, match=r"value.converter"):
        converters_of({"value.converter": "SimpleHeaderConverter"}, {})
