"""JsonConverter against what the real one does."""

from __future__ import annotations

import contextlib
import json
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from wherry.contract.batch import JSON_TYPE
from wherry.contract.data import DATE, DECIMAL, TIME, TIMESTAMP
from wherry.contract.errors import ConfigError
from wherry.contract.schema import field_of
from wherry.worker.convert import Converted
from wherry.worker.convert.json import BAD_JSON, JsonConverter
from wherry.worker.convert.json_read import _fast, _OddRowError, _storage, parse_json
from wherry.worker.convert.json_rows import connect_value

pytestmark = pytest.mark.usefixtures("both_ways")

ENVELOPES = JsonConverter({}, is_key=False)
BARE = JsonConverter({"schemas.enable": "false"}, is_key=False)


def envelope(schema: Any, payload: str) -> bytes:
    return f'{{"schema":{json.dumps(schema, separators=(",", ":"))},"payload":{payload}}}'.encode()


def read(converter: JsonConverter, *values: bytes | None) -> Converted:
    return converter.to_connect("t", pa.array(values, pa.binary()))


def payload_of(schema: dict[str, Any], payload: str) -> Any:
    converted = read(ENVELOPES, envelope(schema, payload))
    assert not converted.failures, converted.failures[0].error
    return converted.runs[0].column[0].as_py()


def failure_of(schema: dict[str, Any], payload: str) -> str:
    return str(read(ENVELOPES, envelope(schema, payload)).failures[0].error)


def write(converter: JsonConverter, schema: dict[str, Any], *values: Any) -> list[bytes | None]:
    field = field_of(schema)
    return converter.from_connect("t", field, pa.array(values, field.type)).runs[0].column.to_pylist()


# Bare JSON


def test_bare_json_stays_text() -> None:
    converted = read(BARE, b'{"a": 1}', b"[1]", None)
    assert converted.runs[0].column.type == JSON_TYPE
    assert converted.runs[0].column.storage.to_pylist() == ['{"a": 1}', "[1]", None]


def test_empty_bytes_and_the_text_null_are_null() -> None:
    assert read(BARE, b"", b"null", b"true").runs[0].column.storage.to_pylist() == [None, None, "true"]


def test_blanks_alone_are_null_too_but_a_mark_alone_is_no_json() -> None:
    converted = read(BARE, b" ", b"\t\r\n", b"\xef\xbb\xbf ", b"\0 ", b"\xef\xbb\xbf", b"\x0c")
    assert converted.runs[0].column.storage.to_pylist() == [None] * 4
    assert [failure.row for failure in converted.failures] == [4, 5]


def test_blanks_and_damage_fare_alike_where_nobody_parses_and_where_the_schema_is_fixed() -> None:
    assert read(BARE, b" ", b"\t\n", b"1 ").runs[0].column.storage.to_pylist() == [None, None, "1 "]
    fixed = JsonConverter({"schema.content": '{"type":"int32"}'}, is_key=False)
    converted = read(fixed, b"  ", b"", b"9\n\xff", b" 7 ", b"9\xff", b"\xef\xbb\xbf")
    assert converted.runs[0].column.to_pylist() == [0, 0, 9, 7]
    assert [failure.row for failure in converted.failures] == [4, 5]


def test_damage_behind_the_first_value_is_not_looked_at() -> None:
    converted = read(BARE, b"9\n\xff", b'{"a":1}\xff', b"9\xff", b'"\xff"')
    assert [json.loads(text) for text in converted.runs[0].column.storage.to_pylist()] == [9, {"a": 1}]
    assert [failure.row for failure in converted.failures] == [2, 3]


def test_defaults_of_decimals_are_numbers_where_decimals_are() -> None:
    numeric = JsonConverter({"decimal.format": "NUMERIC"}, is_key=False)
    decimal = {"type": "bytes", "name": DECIMAL, "version": 1, "parameters": {"scale": "1"}, "optional": True}
    schema = {"type": "struct", "fields": [{**decimal, "default": "Ag==", "field": "d"}]}
    [data] = write(numeric, schema, {"d": None})
    written = json.loads(data or b"", parse_float=Decimal)
    assert written["schema"]["fields"][0]["default"] == Decimal("0.2")
    assert written["payload"] == {"d": Decimal("0.2")}


def test_damaged_json_is_told_apart_when_somebody_can_do_something_about_it() -> None:
    converted = read(BARE, b'{"a":1}', b'{"a":', b"nope", b"2")
    assert [failure.row for failure in converted.failures] == [1, 2]
    assert converted.runs[0].column.storage.to_pylist() == ['{"a":1}', "2"]


@pytest.mark.parametrize(
    ("data", "text"), [(b"1 2", "1"), (b'"a"b', '"a"'), (b'{"a":1}{"b":2}', '{"a":1}'), (b"007", "7")]
)
def test_what_follows_the_first_value_is_ignored_as_in_kafka_connect(data: bytes, text: str) -> None:
    assert read(BARE, data, b"{}").runs[0].column.storage.to_pylist() == [text, "{}"]


@pytest.mark.parametrize(
    "data", [b"+1", b".5", b"5.", b"NaN", b"'x'", b"/**/1", b"[1,]", b'{"a":1,}', b"\xff", b"[" * 5000]
)
def test_what_kafka_connect_refuses_is_refused(data: bytes) -> None:
    assert [failure.row for failure in read(BARE, data).failures] == [0]


def test_bytes_that_are_no_text_fail_even_unchecked() -> None:
    converted = read(BARE, b'"\xff"', b"1")
    assert [failure.row for failure in converted.failures] == [0]


# Envelopes


def test_records_of_one_schema_make_one_run() -> None:
    schema = {"type": "struct", "fields": [{"type": "int32", "field": "a"}]}
    rows = [envelope(schema, f'{{"a":{number}}}') for number in range(100)]
    converted = read(ENVELOPES, *rows[:50], None, *rows[50:])
    assert len(converted.runs) == 1
    values = converted.runs[0].column.to_pylist()
    assert values[50] is None
    assert [value["a"] for value in values if value] == list(range(100))


def test_a_change_of_schema_starts_another_run_and_keeps_the_order() -> None:
    one, other = {"type": "int32"}, {"type": "string", "optional": True}
    converted = read(
        ENVELOPES, envelope(one, "1"), envelope(other, '"x"'), envelope(one, "2"), b'{"schema":null,"payload":[1]}'
    )
    assert [run.column.to_pylist() for run in converted.runs] == [[1], ["x"], [2], ["[1]"]]


def test_spaces_and_another_order_of_the_members_give_the_same() -> None:
    rows = [b'{"payload": 1, "schema": {"type": "int32"}}', b'{ "schema" : {"type":"int32"}, "payload" : 2 }']
    converted = read(ENVELOPES, *rows)
    assert [run.column.to_pylist() for run in converted.runs] == [[1, 2]]


@pytest.mark.parametrize(
    "data", [b"", b"null", b"1", b"{}", b'{"schema":{"type":"int8"}}', b'{"schema":{"type":"int8"},"payload":1,"x":2}']
)
def test_what_is_no_envelope_fails_with_kafka_connects_words(data: bytes) -> None:
    error = read(ENVELOPES, data).failures[0].error
    assert str(error).startswith('JsonConverter with schemas.enable requires "schema" and "payload" fields')


def test_an_envelope_with_more_members_is_refused_among_good_ones() -> None:
    schema = {"type": "int8"}
    bad = envelope(schema, "1")[:-1] + b',"x":2}'
    converted = read(ENVELOPES, envelope(schema, "1"), bad, envelope(schema, "2"))
    assert [failure.row for failure in converted.failures] == [1]
    assert [run.column.to_pylist() for run in converted.runs] == [[1, 2]]


@pytest.mark.parametrize(
    ("kind", "payload", "value"),
    [
        ("int8", "128", -128),
        ("int64", str(1 << 64), 0),
        ("int32", "1.9", 1),
        ("int32", "-1.9", -1),
        ("int32", '"12"', 0),
        ("int32", "true", 0),
        ("int32", "[1]", 0),
        ("int32", "{}", 0),
        ("boolean", "1", False),
        ("boolean", '"true"', False),
        ("string", "1", None),
        ("double", '"x"', 0.0),
        ("double", "-0.0", 0.0),
        ("double", "1e309", float("inf")),
        ("double", "1e400", float("inf")),
        ("int32", "007", 7),
        ("string", '"\\ud800"', "?"),
    ],
)
def test_a_wrong_kind_becomes_what_kafka_connect_makes_of_it(kind: str, payload: str, value: Any) -> None:
    got = payload_of({"type": kind}, payload)
    assert got == value
    assert str(got) == str(value)


def test_a_member_given_twice_counts_the_last_time() -> None:
    schema = {"type": "struct", "fields": [{"type": "int32", "field": "a"}]}
    assert payload_of(schema, '{"a":1,"a":2}') == {"a": 2}


def test_unknown_members_are_ignored_and_missing_ones_are_null() -> None:
    schema = {"type": "struct", "fields": [{"type": "int32", "field": "a", "optional": True}]}
    assert payload_of(schema, '{"b":1}') == {"a": None}


def test_a_missing_required_field_fails() -> None:
    schema = {"type": "struct", "fields": [{"type": "int32", "field": "a"}]}
    assert failure_of(schema, "{}") == "Invalid null value for required INT32 field"


def test_a_missing_field_with_a_default_takes_it() -> None:
    schema = {"type": "struct", "fields": [{"type": "int32", "field": "a", "default": 7}]}
    assert payload_of(schema, "{}") == {"a": 7}


def test_a_default_of_the_wrong_kind_becomes_zero() -> None:
    schema = {"type": "struct", "fields": [{"type": "int32", "field": "a", "default": "q"}]}
    assert payload_of(schema, '{"a":null}') == {"a": 0}


@pytest.mark.parametrize(
    ("schema", "payload", "text"),
    [
        ({"type": "int32", "name": DATE}, "18628", "2021-01-01"),
        ({"type": "int32", "name": TIME}, "3723004", "01:02:03.004000"),
        ({"type": "int64", "name": TIMESTAMP}, "0", "1970-01-01 00:00:00+00:00"),
        ({"type": "bytes", "name": DECIMAL, "parameters": {"scale": "2"}}, '"AMg="', "2.00"),
        ({"type": "bytes", "name": DECIMAL, "parameters": {"scale": "2"}}, "12.5", "12.50"),
        ({"type": "bytes"}, '"AP8="', "b'\\x00\\xff'"),
    ],
)
def test_logical_types_are_read(schema: dict[str, Any], payload: str, text: str) -> None:
    assert str(payload_of(schema, payload)) == text


@pytest.mark.parametrize("payload", ["2147483648", "1.5", '"x"', "true"])
def test_a_date_that_is_no_day_number_fails(payload: str) -> None:
    assert "underlying representation should be integer but was" in failure_of({"type": "int32", "name": DATE}, payload)


def test_containers_of_the_wrong_kind_fail() -> None:
    assert "Structs should be encoded" in failure_of({"type": "struct", "fields": []}, "[]")
    maps = {"type": "map", "keys": {"type": "string"}, "values": {"type": "int8"}}
    assert "Maps with string fields" in failure_of(maps, "[]")


@pytest.mark.parametrize(("payload", "items"), [("{}", []), ('{"k":7}', [7]), ("55", []), ('"x"', [])])
def test_an_array_takes_whatever_can_be_walked_over(payload: str, items: list[int]) -> None:
    assert payload_of({"type": "array", "items": {"type": "int8"}}, payload) == items


def test_a_wrong_kind_that_became_null_fails_in_a_struct_that_requires_the_field() -> None:
    struct = {"type": "struct", "fields": [{"type": "string", "field": "id"}]}
    assert failure_of(struct, '{"id":true}') == (
        'Invalid value: null used for required field: "id", schema type: STRING'
    )


def test_it_fails_below_arrays_too() -> None:
    required = {"type": "array", "items": {"type": "bytes"}}
    struct = {"type": "struct", "fields": [{"type": "array", "items": required, "field": "a"}]}
    assert failure_of(struct, '{"a":[[1]]}') == (
        'Invalid value: null used for required element of array element of array field: "a", schema type: BYTES'
    )


def test_bytes_of_a_wrong_kind_are_null() -> None:
    assert payload_of({"type": "bytes", "optional": True}, "[1]") is None


def test_characters_beyond_the_basic_plane_are_written_as_two_escapes() -> None:
    assert write(ENVELOPES, {"type": "string"}, "\U0001f600\u4e2d") == [
        b'{"schema":{"type":"string","optional":false},"payload":"\\uD83D\\uDE00\xe4\xb8\xad"}'
    ]


def test_a_map_with_other_keys_is_a_list_of_pairs_both_ways() -> None:
    schema = {
        "type": "map",
        "keys": {"type": "int32", "optional": False},
        "values": {"type": "int8", "optional": False},
        "optional": False,
    }
    assert payload_of(schema, "[[1,2],[3,4]]") == [(1, 2), (3, 4)]
    assert json.loads(write(ENVELOPES, schema, [(1, 2), (3, 4)])[0] or b"")["payload"] == [[1, 2], [3, 4]]


def test_the_schema_of_a_maps_values_goes_with_the_column() -> None:
    """A transform that builds a struct anew has no other word of it."""
    values = {"type": "string", "optional": True, "default": "d", "name": "v", "doc": "of a value"}
    maps = {
        "type": "map",
        "keys": {"type": "string"},
        "values": {"type": "map", "keys": {"type": "string"}, "values": values},
    }
    schema = {"type": "struct", "fields": [{"field": "m", **maps}]}
    run = read(ENVELOPES, envelope(schema, '{"m":{"a":{"b":null}}}')).runs[0]
    assert run.column.type.equals(run.field.type, check_metadata=True)


def test_a_fixed_schema_reads_bare_payloads() -> None:
    converter = JsonConverter({"schema.content": '{"type":"int32"}'}, is_key=False)
    converted = read(converter, b"1", b'"x"', b"", None, b"null", b'{"schema":1,"payload":2}')
    assert converted.runs[0].column.to_pylist() == [1, 0, 0, None, 0]
    assert [failure.row for failure in converted.failures] == [4]


def test_no_bytes_are_no_struct_of_a_fixed_schema() -> None:
    schema = '{"type":"struct","fields":[{"type":"int32","optional":true,"field":"a"}]}'
    converted = read(JsonConverter({"schema.content": schema}, is_key=False), b'{"a":1}', b"", b"nope")
    assert converted.runs[0].column.to_pylist() == [{"a": 1}]
    assert [(failure.row, str(failure.error)) for failure in converted.failures] == [
        (1, "Structs should be encoded as JSON objects, but found MISSING"),
        (2, BAD_JSON),
    ]


def test_a_decimal_without_bytes_is_no_number() -> None:
    decimal = {"type": "bytes", "name": DECIMAL, "version": 1, "parameters": {"scale": "2"}}
    assert failure_of(decimal, '""') == "Invalid bytes for Decimal field"


def test_a_fixed_schema_that_is_none_is_refused() -> None:
    with pytest.raises(ConfigError, match=r"schema\.content is no schema"):
        JsonConverter({"schema.content": '{"type":"nope"}'}, is_key=False)


# Writing

STRUCT = {
    "type": "struct",
    "fields": [
        {"type": "int32", "optional": False, "field": "a"},
        {"type": "string", "optional": True, "field": "b"},
        {"type": "double", "optional": True, "field": "c"},
    ],
    "optional": False,
    "name": "x",
}


def test_an_envelope_is_written_byte_for_byte_as_kafka_connect_writes_it() -> None:
    assert write(ENVELOPES, STRUCT, {"a": 1, "b": 'q"\n', "c": 1e300}) == [
        b'{"schema":{"type":"struct","fields":[{"type":"int32","optional":false,"field":"a"},'
        b'{"type":"string","optional":true,"field":"b"},{"type":"double","optional":true,"field":"c"}],'
        b'"optional":false,"name":"x"},"payload":{"a":1,"b":"q\\"\\n","c":1.0E300}}'
    ]


def test_bare_output_is_the_payload_alone_and_null_is_no_value() -> None:
    assert write(BARE, STRUCT, {"a": 1, "b": None, "c": 5.0}, None) == [b'{"a":1,"b":null,"c":5.0}', None]


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (float("nan"), b'"NaN"'),
        (float("inf"), b'"Infinity"'),
        (9.223372036854776e18, b"9.223372036854776E18"),
        (0.001, b"0.001"),
        (0.0, b"0.0"),
        (-0.0, b"-0.0"),
        (1e7, b"1.0E7"),
    ],
)
def test_doubles_are_written_in_javas_form(value: float, text: bytes) -> None:
    assert write(BARE, {"type": "double"}, value) == [text]


def test_floats_are_written_with_the_digits_of_a_float() -> None:
    assert write(BARE, {"type": "float"}, 0.1, 3.4e38, 1.5) == [b"0.1", b"3.4E38", b"1.5"]


def test_control_characters_are_escaped_with_upper_case_digits() -> None:
    assert write(BARE, {"type": "string"}, "\x1f\x7f/é\\u00ab") == ['"\\u001F\x7f/é\\\\u00ab"'.encode()]


def test_decimals_are_base64_or_numbers_as_configured() -> None:
    schema = {"type": "bytes", "name": DECIMAL, "parameters": {"scale": "2"}}
    numeric = JsonConverter({"schemas.enable": "false", "decimal.format": "numeric"}, is_key=False)
    values = [Decimal("2.00"), Decimal("-1.28"), Decimal("-1.29"), Decimal("12345678901234567890123456789012.34")]
    assert write(numeric, schema, *values) == [b"2.00", b"-1.28", b"-1.29", b"12345678901234567890123456789012.34"]
    assert write(BARE, schema, *values[:3]) == [b'"AMg="', b'"gA=="', b'"/38="']


def test_null_where_the_schema_wants_a_value_fails_its_row_only() -> None:
    field = field_of(STRUCT)
    column = pa.array([{"a": 1}, {"a": None}, {"a": 3}], field.type)
    converted = BARE.from_connect("t", field, column)
    assert [failure.row for failure in converted.failures] == [1]
    assert len(converted.runs[0].column) == 2


def test_null_becomes_the_default_unless_configured_otherwise() -> None:
    schema = {"type": "struct", "fields": [{"type": "int32", "field": "a", "default": 7, "optional": True}]}
    keeping = JsonConverter({"schemas.enable": "false", "replace.null.with.default": "false"}, is_key=False)
    assert write(BARE, schema, {"a": None}) == [b'{"a":7}']
    assert write(keeping, schema, {"a": None}) == [b'{"a":null}']


def test_schemaless_values_are_written_untouched_and_with_a_null_schema() -> None:
    column = pa.ExtensionArray.from_storage(JSON_TYPE, pa.array(['{"a":1}', None]))
    field = pa.field("value", JSON_TYPE)
    assert BARE.from_connect("t", field, column).runs[0].column.to_pylist() == [b'{"a":1}', None]
    assert ENVELOPES.from_connect("t", field, column).runs[0].column.to_pylist() == [
        b'{"schema":null,"payload":{"a":1}}',
        None,
    ]


def test_a_slice_of_a_column_is_written_as_its_own_rows() -> None:
    column = pa.array(["a", '"', "c", None, "e"]).slice(2)
    assert BARE.from_connect("t", pa.field("value", pa.string()), column).runs[0].column.to_pylist() == [
        b'"c"',
        None,
        b'"e"',
    ]
    lists = pa.array([[1], [2, 3], None, [], [4]]).slice(1)
    assert BARE.from_connect("t", pa.field("value", lists.type), lists).runs[0].column.to_pylist() == [
        b"[2,3]",
        None,
        b"[]",
        b"[4]",
    ]


# The fast way and the exact way

FLAT = {
    "type": "struct",
    "fields": [
        {"type": "int16", "optional": True, "field": "a"},
        {"type": "string", "optional": True, "field": "b"},
        {"type": "double", "optional": True, "field": "c"},
        {"type": "boolean", "optional": True, "field": "d"},
        {"type": "array", "items": {"type": "int32", "optional": True}, "optional": True, "field": "e"},
        {"type": "struct", "fields": [{"type": "int64", "field": "z"}], "optional": True, "field": "f"},
        {"type": "int64", "name": TIMESTAMP, "optional": True, "field": "g"},
    ],
    "optional": True,
}
MESSY = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(1 << 66), 1 << 66)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from("abcdefgz"), inner, max_size=7),
    max_leaves=8,
)


@settings(max_examples=100, deadline=None)
@given(st.lists(st.dictionaries(st.sampled_from("abcdefg"), MESSY, max_size=7), min_size=1, max_size=5))
def test_the_fast_way_never_differs_from_the_exact_one(payloads: list[dict[str, Any]]) -> None:
    field = field_of(FLAT)
    texts = pa.array([json.dumps(payload) for payload in payloads])
    storage = _storage(field.type)
    assert storage is not None
    try:
        fast = _fast(texts, field, storage)
    except _OddRowError:
        fast = None
    if fast is not None:
        exact = pa.array([connect_value(field, json.loads(text)) for text in texts.to_pylist()], field.type)
        assert fast.to_pylist() == exact.to_pylist()
        assert fast.type == field.type


def test_uniform_payloads_go_the_fast_way() -> None:
    field = field_of(FLAT)
    storage = _storage(field.type)
    assert storage is not None
    texts = pa.array(['{"a":1,"b":"x","c":1.5,"d":true,"e":[1,null],"f":{"z":1},"g":5}', "{}", None] * 10)
    assert _fast(texts, field, storage) is not None


@pytest.mark.parametrize(
    "texts", [['{"a":1}\n{"a":2}', ""], ['{"a":1}}{"v":{"a":2}', " "], ['{"c":NaN}', "{}"], ['1},{"v":2', "{}"]]
)
def test_texts_that_only_together_look_like_rows_are_not_taken_for_them(texts: list[str]) -> None:
    field = field_of(FLAT)
    storage = _storage(field.type)
    assert storage is not None
    with contextlib.suppress(_OddRowError):
        assert _fast(pa.array(texts), field, storage) is None


@pytest.mark.parametrize("odd", ['{"a":"x"}', '{"a":1.5}', '{"a":1,"a":0}'])
@pytest.mark.parametrize("places", [[500], [0, 1, 999], list(range(0, 1000, 7)), list(range(1000))])
def test_surprising_rows_among_many_change_nothing_for_the_others(odd: str, places: list[int]) -> None:
    field = field_of(FLAT)
    texts = ['{"a":9}'] * 1000
    for place in places:
        texts[place] = odd
    converted = parse_json(pa.array(texts), field, connect_value)
    expected = [connect_value(field, json.loads(text))["a"] for text in texts]
    assert [row["a"] for row in converted.runs[0].column.to_pylist()] == expected
    assert not converted.failures


@pytest.mark.parametrize("moment", [-1, 86_400_001])
def test_a_time_beyond_a_day_is_an_error_among_many_rows_too(moment: int) -> None:
    schema = {"type": "struct", "fields": [{"type": "int32", "name": TIME, "field": "a"}]}
    values = [envelope(schema, f'{{"a":{value}}}') for value in [5] * 50 + [moment] + [86_399_999] * 50]
    converted = read(ENVELOPES, *values)
    assert [failure.row for failure in converted.failures] == [50]
    assert "Time values must use number of milliseconds" in str(converted.failures[0].error)


def test_damaged_rows_among_many_are_told_by_their_index() -> None:
    texts = ['{"a":9}'] * 1000
    for place in (3, 500, 999):
        texts[place] = "{damaged"
    converted = parse_json(pa.array(texts), field_of(FLAT), connect_value)
    assert [failure.row for failure in converted.failures] == [3, 500, 999]
    assert len(converted.runs[0].column) == 997


def test_a_typed_sink_gets_errors_instead_of_zeros() -> None:
    wanted = pa.field(
        "value",
        pa.struct([("a", pa.int32()), ("b", pa.string()), ("t", pa.timestamp("us")), ("d", pa.decimal128(10, 2))]),
    )
    texts = pa.array(
        ['{"a":1,"t":"2024-01-02T03:04:05","d":1.5}', '{"a":"x"}', '{"a":3000000000}', '{"b":{"q":1}}', "[1]"]
    )
    converted = parse_json(texts, wanted)
    assert [failure.row for failure in converted.failures] == [1, 2, 4]
    assert [row["b"] for row in converted.runs[0].column.to_pylist()] == [None, '{"q":1}']
    assert str(converted.runs[0].column[0].as_py()["d"]) == "1.50"
    assert "Field a is of type int32" in str(converted.failures[0].error)
