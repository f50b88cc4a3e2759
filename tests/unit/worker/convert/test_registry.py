"""Which converter a pipeline uses."""

from __future__ import annotations

import pytest

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
