"""The converters of this release as the coordinator must know them: names and keys, to check a configuration with.

The worker runs them; rooms do not import one another, so names and keys stand here once more.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

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


def _registry_key(name: str, default: str | None, documentation: str, **rest: Any) -> ConfigKey:
    return ConfigKey(name, default_value=default, documentation=documentation, **rest)


_PASSWORD: dict[str, Any] = {"type": ConfigType.PASSWORD, "importance": Importance.MEDIUM}
_BOOLEAN: dict[str, Any] = {"type": ConfigType.BOOLEAN}
_REGISTRY_KEYS = (
    ConfigKey(
        "schema.registry.url",
        ConfigType.LIST,
        required=True,
        importance=Importance.HIGH,
        documentation="Addresses of the schema registry, separated by commas.",
    ),
    _registry_key(
        "auto.register.schemas", "true", "Whether schemas that the registry lacks are put there.", **_BOOLEAN
    ),
    _registry_key("use.latest.version", "false", "Whether the subject's latest schema is written with.", **_BOOLEAN),
    _registry_key("normalize.schemas", "false", "Whether schemas are compared regardless of layout.", **_BOOLEAN),
    _registry_key(
        "basic.auth.credentials.source", "URL", "Where name and password come from: URL, USER_INFO or SASL_INHERIT."
    ),
    _registry_key("bearer.auth.credentials.source", None, "Where the token comes from: STATIC_TOKEN."),
    *(
        _registry_key(f"{prefix}{name}", None, documentation, **_PASSWORD)
        for prefix in ("", "schema.registry.")
        for name, documentation in (
            ("basic.auth.user.info", "Name and password, with a colon between."),
            ("bearer.auth.token", "Token sent to the registry."),
        )
    ),
    _registry_key("sasl.jaas.config", None, "Login module of SASL_INHERIT.", **_PASSWORD),
    *(
        _registry_key(f"{side}.subject.name.strategy", "TopicNameStrategy", f"How subjects of {side}s are named.")
        for side in ("key", "value")
    ),
    *(
        _registry_key(f"schema.registry.ssl.{store}.{part}", default, f"{what} of the {store}.", **rest)
        for store in ("truststore", "keystore")
        for part, default, what, rest in (
            ("location", None, "File", {}),
            ("type", "JKS", "Type", {}),
            ("password", None, "Password", _PASSWORD),
        )
    ),
    _registry_key("schema.registry.ssl.key.password", None, "Password of the key in the keystore.", **_PASSWORD),
    _registry_key("schema.registry.ssl.keystore.key", None, "Key and certificates as PEM text.", **_PASSWORD),
    _registry_key(
        "schema.registry.ssl.endpoint.identification.algorithm", "https", "Empty takes a certificate of any host."
    ),
)
_AVRO_KEYS = (
    *_REGISTRY_KEYS,
    _registry_key("enhanced.avro.schema.support", "false", "Whether enums stay enums.", **_BOOLEAN),
    _registry_key("connect.meta.data", "true", "Whether Connect's own properties are written.", **_BOOLEAN),
)

_JSON_SCHEMA_KEYS = (
    *_REGISTRY_KEYS,
    *(key for key in _JSON_KEYS if key.name in {"decimal.format", "replace.null.with.default"}),
    _registry_key("use.optional.for.nonrequired", "false", "Whether properties not required are optional.", **_BOOLEAN),
)

_PROTOBUF_KEYS = (
    *_REGISTRY_KEYS,
    _registry_key("optional.for.nullables", "false", "Whether fields that may be null say so.", **_BOOLEAN),
)


@dataclass(frozen=True, slots=True)
class ConverterClass:
    """A converter: its class, its keys, and where it can stand."""

    class_name: str
    keys: tuple[ConfigKey, ...]
    header_only: bool = False
    no_header: bool = False

    @property
    def names(self) -> tuple[str, ...]:
        """Names it answers to."""
        simple = self.class_name.rpartition(".")[2]
        return self.class_name, simple, simple.removesuffix("Converter")

    def stands(self, *, header: bool) -> bool:
        """Whether it can convert headers, or else keys and values."""
        return not self.no_header if header else not self.header_only


_NUMBERS = ("Boolean", "Double", "Float", "Integer", "Long", "Short")
CONVERTERS: tuple[ConverterClass, ...] = (
    ConverterClass("org.apache.kafka.connect.converters.ByteArrayConverter", (_TYPE,)),
    *(ConverterClass(f"org.apache.kafka.connect.converters.{name}Converter", (_TYPE,)) for name in _NUMBERS),
    ConverterClass("org.apache.kafka.connect.json.JsonConverter", _JSON_KEYS),
    ConverterClass("org.apache.kafka.connect.storage.SimpleHeaderConverter", (), header_only=True),
    ConverterClass("org.apache.kafka.connect.storage.StringConverter", (_TYPE, _ENCODING)),
    ConverterClass("io.confluent.connect.avro.AvroConverter", _AVRO_KEYS, no_header=True),
    ConverterClass("io.confluent.connect.json.JsonSchemaConverter", _JSON_SCHEMA_KEYS, no_header=True),
    ConverterClass("io.confluent.connect.protobuf.ProtobufConverter", _PROTOBUF_KEYS, no_header=True),
)
_BY_NAME: Mapping[str, ConverterClass] = {name: found for found in CONVERTERS for name in found.names}


def find(name: str, *, header: bool = False) -> ConverterClass | None:
    """A converter by class name or a short form of it; None when there is none such."""
    found = _BY_NAME.get(name)
    return found if found is not None and found.stands(header=header) else None


def class_names(*, header: bool = False) -> tuple[str, ...]:
    """Class names to offer."""
    return tuple(sorted(found.class_name for found in CONVERTERS if found.stands(header=header)))
