"""Which converter a pipeline uses."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.support.json_cases import told_of

from wherry.contract.errors import ConfigError
from wherry.worker.convert.json import JsonConverter
from wherry.worker.convert.plain import ByteArrayConverter, StringConverter
from wherry.worker.convert.registry import converters_of, factory_of


@pytest.mark.parametrize("name", ["org.apache.kafka.connect.storage.StringConverter", "StringConverter", "String"])
def test_a_converter_answers_to_its_class_name_and_short_forms(name: str) -> None:
    assert factory_of(name) is StringConverter


def test_the_workers_converters_hold_where_the_connector_sets_none() -> None:
    converters = converters_of({}, {"key.converter": "String", "value.converter": "ByteArray"})
    assert isinstance(converters.key, StringConverter)
    assert isinstance(converters.value, ByteArrayConverter)


def test_a_connectors_converter_takes_none_of_the_workers_settings() -> None:
    worker = {"value.converter": "Json", "value.converter.schemas.enable": "false"}
    own = converters_of({"value.converter": "Json"}, worker).value
    inherited = converters_of({}, worker).value
    assert isinstance(own, JsonConverter)
    assert isinstance(inherited, JsonConverter)
    assert own.uses_schemas
    assert not inherited.uses_schemas


def test_an_unknown_converter_is_refused_with_the_names_there_are() -> None:
    with pytest.raises(ConfigError, match=r"value\.converter: no such converter; there are StringConverter"):
        converters_of({"value.converter": "com.example.Nope"}, {})


GOOD = {
    "String": b"text",
    "ByteArray": b"\x00\xff",
    "Boolean": b"\x01",
    "Short": b"\0\1",
    "Integer": b"\0\0\0\1",
    "Long": b"\0\0\0\0\0\0\0\1",
    "Float": b"\0\0\0\1",
    "Double": b"\0\0\0\0\0\0\0\1",
    "Json": b'{"schema":{"type":"struct","fields":[{"field":"a","type":"int32"}]},"payload":{"a":1}}',
}
POISON = [
    b"", b"\0", b"\xff", b"\xff\xfe\xfd\xfc", b"{", b"}", b"null", b'{"schema":1,"payload":2}', b"[" * 5000,
    b'"\\ud800"', b"\xef\xbb\xbf", b"\0" * 4096, b'{"schema":{"type":"bytes"},"payload":"%"}', b"1e999999999",
    b"1" * 5000,
    b'{"schema":{"type":"int64"},"payload":1e400000000}', b'{"schema":{"type":"struct","fields":[]},"payload":{}}',
    b'{"schema":{"type":"bytes","name":"org.apache.kafka.connect.data.Decimal","parameters":{"scale":"9999999999"}},'
    b'"payload":1}', b'{"schema":{"type":"int32","name":"org.apache.kafka.connect.data.Date"},"payload":2147483647}',
]  # fmt: skip
SETTINGS = {"Json": [{}, {"schemas.enable": "false"}, {"schema.content": '{"type":"int32"}'}], "String": [{}]}


def pairs() -> list[tuple[str, dict[str, str]]]:
    return [(name, chosen) for name in GOOD for chosen in SETTINGS.get(name, [{}])]


def read(name: str, chosen: dict[str, str], values: list[bytes | None]) -> list[Any]:
    """What became of each row: the text of an error, or the value."""
    factory = factory_of(name)
    assert factory is not None
    converted = factory(chosen, is_key=False).to_connect("t", pa.array(values, pa.binary()))
    failed = {failure.row: str(failure.error) for failure in converted.failures}
    good = iter([str(told_of(run.field, value)) for run in converted.runs for value in run.column])
    found = [failed[row] if row in failed else next(good) for row in range(len(values))]
    assert next(good, None) is None
    return found


@pytest.mark.parametrize(("name", "chosen"), pairs())
def test_poison_takes_no_neighbour_with_it(name: str, chosen: dict[str, str]) -> None:
    alone = [read(name, chosen, [poison])[0] for poison in POISON]
    good = read(name, chosen, [GOOD[name]])[0]
    mixed = [each for poison in POISON for each in (GOOD[name], poison, GOOD[name])]
    together = read(name, chosen, mixed)
    assert together[0::3] == together[2::3] == [good] * len(POISON)
    assert list(map(str, together[1::3])) == list(map(str, alone))


@settings(max_examples=60, deadline=None)
@given(st.lists(st.none() | st.binary(max_size=12) | st.sampled_from([*GOOD.values(), *POISON]), max_size=12))
def test_any_bytes_become_a_value_or_an_error_of_their_row(values: list[bytes | None]) -> None:
    for name, chosen in pairs():
        assert len(read(name, chosen, values)) == len(values)
