"""The converters of this release as the coordinator must know them: names and keys, to check a configuration with.

The worker runs them; rooms do not import one another, so names and keys stand here once more.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from wherry.contract.config import ConfigKey, ConfigType, Importance, OneOfValidator, Width

_TYPE = ConfigKey("converter.type", required=True, importance=Importance.LOW, documentation="key, value or header.")
_ENCODING = ConfigKey(
    "converter.encoding",
    default_value="UTF-8",
    importance=Importance.HIGH,
    documentation="Name of the character set of texts.",
    width=Width.MEDIUM,
    display_name="Encoding",
)
_SCHEMAS, _SERIALIZATION = "Schemas", "Serialization"
_JSON_KEYS = (
    _TYPE,
    ConfigKey(
        "schemas.enable",
        ConfigType.BOOLEAN,
        "true",
        importance=Importance.HIGH,
        documentation="Whether each message carries its schema beside its payload.",
        group=_SCHEMAS,
        order_in_group=0,
        width=Width.MEDIUM,
        display_name="Enable Schemas",
    ),
    ConfigKey(
        "schemas.cache.size",
        ConfigType.INT,
        "1000",
        importance=Importance.HIGH,
        documentation="Number of schemas kept.",
        group=_SCHEMAS,
        order_in_group=1,
        width=Width.MEDIUM,
        display_name="Schema Cache Size",
    ),
    ConfigKey(
        "schema.content",
        importance=Importance.HIGH,
        documentation="Schema of messages that carry none.",
        group=_SCHEMAS,
        order_in_group=2,
        width=Width.MEDIUM,
        display_name="Schema Content",
    ),
    ConfigKey(
        "decimal.format",
        default_value="BASE64",
        importance=Importance.LOW,
        documentation="How decimals are written: BASE64 or NUMERIC.",
        group=_SERIALIZATION,
        order_in_group=0,
        width=Width.MEDIUM,
        display_name="Decimal Format",
        validators=(OneOfValidator(("NUMERIC", "BASE64"), ignore_case=True),),
    ),
    ConfigKey(
        "replace.null.with.default",
        ConfigType.BOOLEAN,
        "true",
        importance=Importance.LOW,
        documentation="Whether a null is read as its field's default.",
        group=_SERIALIZATION,
        order_in_group=1,
        width=Width.MEDIUM,
        display_name="Replace null with default",
    ),
)


@dataclass(frozen=True, slots=True)
class ConverterClass:
    """A converter: its class, its keys, and where it can stand."""

    class_name: str
    keys: tuple[ConfigKey, ...]
    header_only: bool = False

    @property
    def names(self) -> tuple[str, ...]:
        """Names it answers to."""
        simple = self.class_name.rpartition(".")[2]
        return self.class_name, simple, simple.removesuffix("Converter")


_NUMBERS = ("Boolean", "Double", "Float", "Integer", "Long", "Short")
CONVERTERS: tuple[ConverterClass, ...] = (
    ConverterClass("org.apache.kafka.connect.converters.ByteArrayConverter", (_TYPE,)),
    *(ConverterClass(f"org.apache.kafka.connect.converters.{name}Converter", (_TYPE,)) for name in _NUMBERS),
    ConverterClass("org.apache.kafka.connect.json.JsonConverter", _JSON_KEYS),
    ConverterClass("org.apache.kafka.connect.storage.SimpleHeaderConverter", (), header_only=True),
    ConverterClass("org.apache.kafka.connect.storage.StringConverter", (_TYPE, _ENCODING)),
)
_BY_NAME: Mapping[str, ConverterClass] = {name: found for found in CONVERTERS for name in found.names}


def find(name: str, *, header: bool = False) -> ConverterClass | None:
    """A converter by class name or a short form of it; None when there is none such."""
    found = _BY_NAME.get(name)
    return None if found is None or (found.header_only and not header) else found


def class_names(*, header: bool = False) -> tuple[str, ...]:
    """Class names to offer."""
    return tuple(sorted(found.class_name for found in CONVERTERS if header or not found.header_only))
