"""Which converters a pipeline uses: class names, their short forms, and whose settings they take."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any, Final

from wherry.contract.errors import ConfigError
from wherry.worker.convert import Converter
from wherry.worker.convert.header_json import JsonHeaders
from wherry.worker.convert.header_kinds import BooleanHeaders, BytesHeaders, NumberHeaders, TextHeaders
from wherry.worker.convert.headers import HeaderConverter, HeaderSide, SimpleHeaderConverter
from wherry.worker.convert.json import JsonConverter
from wherry.worker.convert.numbers import (
    BooleanConverter,
    DoubleConverter,
    FloatConverter,
    IntegerConverter,
    LongConverter,
    NumberConverter,
    ShortConverter,
)
from wherry.worker.convert.plain import ByteArrayConverter, StringConverter
from wherry.worker.convert.registered.avro import AvroConverter
from wherry.worker.convert.registered.framing import RegisteredConverter
from wherry.worker.convert.registered.json import JsonSchemaConverter
from wherry.worker.convert.registered.protobuf import ProtobufConverter

Factory = type[Any]

# By class name; short forms are the simple name, and that without "Converter".
CONVERTERS: Final[Mapping[str, Factory]] = {
    factory.class_name: factory
    for factory in (
        StringConverter,
        ByteArrayConverter,
        JsonConverter,
        BooleanConverter,
        ShortConverter,
        IntegerConverter,
        LongConverter,
        FloatConverter,
        DoubleConverter,
        AvroConverter,
        JsonSchemaConverter,
        ProtobufConverter,
    )
}
DEFAULT_CONVERTER: Final = JsonConverter.class_name
DEFAULT_HEADER_CONVERTER: Final = SimpleHeaderConverter.class_name


@dataclasses.dataclass(frozen=True, slots=True)
class Converters:
    """The converters of a pipeline."""

    key: Converter
    value: Converter
    headers: HeaderSide = dataclasses.field(default_factory=lambda: HeaderSide(SimpleHeaderConverter()))


def converters_of(config: Mapping[str, str], worker_config: Mapping[str, str]) -> Converters:
    """Makes the converters of a connector.

    Args:
        config: The connector's configuration. A converter set here takes none of the worker's settings, and settings
            for one that isn't set here count for nothing.
        worker_config: The worker's configuration, which holds otherwise.

    Raises:
        ConfigError: A class is unknown, or a setting is wrong.
    """
    return Converters(
        _converter("key", config, worker_config),
        _converter("value", config, worker_config),
        _header_converter(config, worker_config),
    )


def factory_of(name: str) -> Factory | None:
    """Returns the converter of a class name or one of its short forms; None when there is none."""
    return next((factory for class_name, factory in CONVERTERS.items() if name in _names(class_name)), None)


def _names(class_name: str) -> tuple[str, str, str]:
    simple = class_name.rpartition(".")[2]
    return class_name, simple, simple.removesuffix("Converter")


def _settings(
    side: str, config: Mapping[str, str], worker_config: Mapping[str, str], default: str
) -> tuple[str, dict[str, str]]:
    """Returns the class of a side's converter and its own settings."""
    key = f"{side}.converter"
    source = config if config.get(key) else worker_config
    prefix = f"{key}."
    settings = {name.removeprefix(prefix): value for name, value in source.items() if name.startswith(prefix)}
    return (source.get(key) or default).strip(), settings


def _converter(side: str, config: Mapping[str, str], worker_config: Mapping[str, str]) -> Converter:
    name, settings = _settings(side, config, worker_config, DEFAULT_CONVERTER)
    factory = factory_of(name)
    if factory is None:
        raise _unknown(name, side, CONVERTERS)
    made: Converter = factory(settings, is_key=side == "key")
    return made


def _header_converter(config: Mapping[str, str], worker_config: Mapping[str, str]) -> HeaderSide:
    name, settings = _settings("header", config, worker_config, DEFAULT_HEADER_CONVERTER)
    if name in _names(SimpleHeaderConverter.class_name):
        return HeaderSide(SimpleHeaderConverter())
    factory = factory_of(name)
    if factory is None or issubclass(factory, RegisteredConverter):
        raise _unknown(name, "header", [*CONVERTERS, SimpleHeaderConverter.class_name])
    return HeaderSide(_single(factory(settings, is_key=False)))


def _single(converter: Any) -> HeaderConverter:
    """Makes the header converter of one for keys and values."""
    if isinstance(converter, JsonConverter):
        return JsonHeaders(converter)
    if isinstance(converter, StringConverter):
        return TextHeaders(converter.charset)
    if isinstance(converter, BooleanConverter):
        return BooleanHeaders(converter)
    return NumberHeaders(converter) if isinstance(converter, NumberConverter) else BytesHeaders()


def _unknown(name: str, side: str, known: Any) -> ConfigError:
    names = ", ".join(found.rpartition(".")[2] for found in known)
    key = f"{side}.converter"
    return ConfigError(f"Invalid value {name} for configuration {key}: no such converter; there are {names}.", key=key)
