"""Which converter a pipeline uses: class names, their short forms, and whose settings they take."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from typing import Any, Final

from wherry.contract.errors import ConfigError
from wherry.worker.convert import Converter
from wherry.worker.convert.json import JsonConverter
from wherry.worker.convert.plain import ByteArrayConverter, StringConverter

Factory = Callable[..., Converter]

# By class name; short forms are the simple name, and that without "Converter".
CONVERTERS: Final[Mapping[str, Factory]] = {
    StringConverter.class_name: StringConverter,
    ByteArrayConverter.class_name: ByteArrayConverter,
    JsonConverter.class_name: JsonConverter,
}
DEFAULT_CONVERTER: Final = JsonConverter.class_name


@dataclasses.dataclass(frozen=True, slots=True)
class Converters:
    """The two converters of a pipeline."""

    key: Converter
    value: Converter


def converters_of(config: Mapping[str, str], worker_config: Mapping[str, str], **options: Any) -> Converters:
    """Makes the converters of a connector.

    Args:
        config: The connector's configuration. A converter set here takes none of the worker's settings.
        worker_config: The worker's configuration, which holds otherwise.
        options: Passed on to converters that take them, such as `check_json`.

    Raises:
        ConfigError: A class is unknown, or a setting is wrong.
    """
    return Converters(
        _converter("key", config, worker_config, options), _converter("value", config, worker_config, options)
    )


def factory_of(name: str) -> Factory | None:
    """Returns the converter of a class name or one of its short forms; None when there is none."""
    for class_name, factory in CONVERTERS.items():
        simple = class_name.rpartition(".")[2]
        if name in {class_name, simple, simple.removesuffix("Converter")}:
            return factory
    return None


def _converter(
    side: str, config: Mapping[str, str], worker_config: Mapping[str, str], options: Mapping[str, Any]
) -> Converter:
    key = f"{side}.converter"
    source = config if config.get(key) else worker_config
    name = (source.get(key) or DEFAULT_CONVERTER).strip()
    factory = factory_of(name)
    if factory is None:
        known = ", ".join(known.rpartition(".")[2] for known in CONVERTERS)
        raise ConfigError(
            f"Invalid value {name} for configuration {key}: no such converter; there are {known}.", key=key
        )
    prefix = f"{key}."
    settings = {name.removeprefix(prefix): value for name, value in source.items() if name.startswith(prefix)}
    extra = options if factory is JsonConverter else {}
    return factory(settings, is_key=side == "key", **extra)
