"""Text and bytes."""

from __future__ import annotations

import pyarrow as pa
import pytest

from wherry.contract.batch import JSON_TYPE
from wherry.contract.errors import ConfigError
from wherry.worker.convert.plain import ByteArrayConverter, StringConverter

TEXT = StringConverter({}, is_key=False)


def written(column: pa.Array) -> list[bytes | None]:
    converted = TEXT.from_connect("t", pa.field("value", column.type), column)
    return converted.runs[0].column.to_pylist()


def json_column(*texts: str | None) -> pa.Array:
    return pa.ExtensionArray.from_storage(JSON_TYPE, pa.array(texts, pa.string()))


def test_bytes_are_read_as_text_and_null_stays_null() -> None:
    converted = TEXT.to_connect("t", pa.array([b"a", None, "ü".encode(), b""], pa.binary()))
    assert converted.runs[0].column.to_pylist() == ["a", None, "ü", ""]
    assert converted.failures == ()


def test_damaged_input_becomes_the_replacement_character() -> None:
    converted = TEXT.to_connect("t", pa.array([b"a\xffb", b"ok"], pa.binary()))
    assert converted.runs[0].column.to_pylist() == ["a\ufffdb", "ok"]


def test_texts_of_two_bytes_a_character_are_big_endian_and_begin_with_a_mark() -> None:
    wide = StringConverter({"converter.encoding": "UTF-16"}, is_key=False)
    found = wide.to_connect("t", pa.array([b"\0a", b"\xff\xfea\0", b""], pa.binary())).runs[0].column
    assert found.to_pylist() == ["a", "a", ""]
    written = wide.from_connect("t", pa.field("value", pa.string()), pa.array(["a", ""])).runs[0].column
    assert written.to_pylist() == [b"\xfe\xff\0a", b""]


def test_another_encoding_is_honoured_both_ways() -> None:
    latin = StringConverter({"converter.encoding": "ISO-8859-1"}, is_key=False)
    assert latin.to_connect("t", pa.array([b"\xfc"], pa.binary())).runs[0].column.to_pylist() == ["ü"]
    column = pa.array(["ü", "€"])
    assert latin.from_connect("t", pa.field("value", column.type), column).runs[0].column.to_pylist() == [b"\xfc", b"?"]


def test_an_unknown_encoding_is_refused_in_a_sentence() -> None:
    with pytest.raises(ConfigError, match="no such encoding"):
        StringConverter({"converter.encoding": "KLINGON"}, is_key=False)


def test_text_is_written_as_it_is() -> None:
    assert written(pa.array(["a", None, "ü"])) == [b"a", None, "ü".encode()]


def test_a_schemaless_map_is_written_as_java_prints_it() -> None:
    column = json_column('{"a":1,"b":"x","c":null,"d":[1.0,true],"e":{}}', None, "null", '"text"', "1e10")
    assert written(column) == [b"{a=1, b=x, c=null, d=[1.0, true], e={}}", None, None, b"text", b"1.0E10"]


def test_a_struct_is_written_without_its_null_fields() -> None:
    column = pa.array(
        [{"a": 1, "b": None}, {"a": None, "b": [1, 2]}], pa.struct([("a", pa.int8()), ("b", pa.list_(pa.int8()))])
    )
    assert written(column) == [b"Struct{a=1}", b"Struct{b=[1, 2]}"]


def test_numbers_are_written_in_javas_form() -> None:
    assert written(pa.array([1.0, 1e-5, 1e7, float("nan"), None])) == [b"1.0", b"1.0E-5", b"1.0E7", b"NaN", None]


def test_bytes_pass_through_the_byte_converter_untouched() -> None:
    column = pa.array([b"\x00\xff", None], pa.binary())
    converter = ByteArrayConverter({}, is_key=False)
    assert converter.to_connect("t", column).runs[0].column is column
    assert converter.from_connect("t", pa.field("value", column.type), column).runs[0].column.equals(column)


def test_the_byte_converter_refuses_what_is_not_bytes_and_lets_null_through() -> None:
    column = pa.array([1, None, 2], pa.int8())
    converted = ByteArrayConverter({}, is_key=False).from_connect("t", pa.field("value", column.type), column)
    assert [failure.row for failure in converted.failures] == [0, 2]
    assert str(converted.failures[0].error) == "Invalid schema type for ByteArrayConverter: INT8"
    assert converted.runs[0].column.to_pylist() == [None]
