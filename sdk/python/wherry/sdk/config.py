"""Configuration declared once: a class whose attributes are the keys.

class CounterConfig(Config):
topic: str = key(doc="Topic to write to.", importance="high")
batch_size: int = key(default=100, min=1)  # the key batch.size
password: Secret | None = key(default=None)  # a PASSWORD: never shown, never logged
"""

from __future__ import annotations

import types
import typing
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, Final, Self

from wherry.contract.config import (
    ConfigDef,
    ConfigKey,
    ConfigType,
    Importance,
    NonEmptyValidator,
    OneOfValidator,
    PatternValidator,
    RangeValidator,
    Secret,
    Validator,
    Width,
    as_text,
)
from wherry.contract.errors import ConfigError

_REQUIRED: Final = object()
_TYPES: Final[dict[Any, ConfigType]] = {
    bool: ConfigType.BOOLEAN,
    str: ConfigType.STRING,
    int: ConfigType.INT,
    float: ConfigType.DOUBLE,
    list: ConfigType.LIST,
    Secret: ConfigType.PASSWORD,
}


@dataclass(frozen=True, slots=True)
class _Key:
    """What `key` was told, until the class body is complete."""

    default: Any
    settings: Mapping[str, Any] = field(default_factory=dict)


def key(
    *,
    default: Any = _REQUIRED,
    doc: str = "",
    importance: str = "medium",
    name: str = "",
    type: str = "",  # noqa: A002  # the word of Kafka's ConfigDef
    group: str = "",
    width: str = "none",
    display_name: str = "",
    min: float | None = None,  # noqa: A002
    max: float | None = None,  # noqa: A002
    one_of: Sequence[str] = (),
    ignore_case: bool = False,
    pattern: str = "",
    non_empty: bool = False,
    recommended: Sequence[str] = (),
    dependents: Sequence[str] = (),
    aliases: Sequence[str] = (),
) -> Any:
    """Declares a configuration key as an attribute of a `Config` class.

    Args:
        default: Value when none is given; None means null. Without a default the key is required.
        doc: What the key does, in sentences.
        importance: high, medium or low.
        name: Name of the key; by default the attribute's with dots for underscores.
        type: boolean, string, int, short, long, double, list, class or password; by default the annotation's: bool,
            str, int (32 bits), float, list[str], Secret.
        group: Heading it is shown under; keys of a group are numbered in the order of the class body.
        width: none, short, medium or long.
        display_name: Name shown to people.
        min: Smallest number allowed.
        max: Largest number allowed.
        one_of: The only texts allowed; of a list, each entry must be one.
        ignore_case: Whether `one_of` ignores case.
        pattern: Regular expression (RE2 syntax) that a text must match as a whole.
        non_empty: Whether an empty text or list is refused.
        recommended: Values to offer.
        dependents: Keys to validate again when this one changes.
        aliases: Other spellings of the key.
    """
    validators: list[Validator] = []
    if min is not None or max is not None:
        validators.append(RangeValidator(min, max))
    if one_of:
        validators.append(OneOfValidator(tuple(one_of), ignore_case))
    if pattern:
        validators.append(PatternValidator(pattern))
    if non_empty:
        validators.append(NonEmptyValidator())
    settings = {
        "name": name,
        "type": type,
        "documentation": doc,
        "importance": Importance[importance.upper()],
        "group": group,
        "width": Width[width.upper()],
        "display_name": display_name,
        "validators": tuple(validators),
        "recommended_values": tuple(recommended),
        "dependents": tuple(dependents),
        "aliases": tuple(aliases),
    }
    return _Key(default, settings)


class Config:
    """Base of configuration classes.

    Attributes:
        definition: The keys, as Kafka's ConfigDef.
        originals: All values as they were given, keys that aren't declared included; secrets are left out.
    """

    definition: ClassVar[ConfigDef] = ConfigDef()
    originals: Mapping[str, str]
    _names: ClassVar[Mapping[str, str]] = {}

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        hints = typing.get_type_hints(cls)
        keys = {known.name: known for known in cls.definition.keys}
        names = dict(cls._names)
        for attribute, declared in list(vars(cls).items()):
            if isinstance(declared, _Key):
                made = _make(attribute, declared, hints.get(attribute, str), list(keys.values()))
                keys[made.name] = made
                names[attribute] = made.name
                delattr(cls, attribute)
        cls.definition = ConfigDef(keys.values())
        cls._names = names

    @classmethod
    def parse(cls, values: Mapping[str, str | None]) -> Self:
        """Makes a configuration from texts.

        Raises:
            ConfigError: A value is missing or wrong, in Kafka's words.
        """
        parsed = cls.definition.parse(values)
        config = cls()
        for attribute, name in cls._names.items():
            setattr(config, attribute, parsed[name])
        secrets = cls.definition.secret_names()
        config.originals = {name: text for name, text in values.items() if text is not None and name not in secrets}
        return config

    def __repr__(self) -> str:
        values = ", ".join(f"{name}={getattr(self, name, None)!r}" for name in self._names)
        return f"{type(self).__name__}({values})"


def _make(attribute: str, declared: _Key, hint: Any, earlier: Sequence[ConfigKey]) -> ConfigKey:
    settings = dict(declared.settings)
    name = settings.pop("name") or attribute.replace("_", ".")
    kind = _type_of(name, settings.pop("type"), hint)
    required = declared.default is _REQUIRED
    group = settings["group"]
    order = 1 + sum(1 for other in earlier if other.group == group) if group else 0
    return ConfigKey(
        name=name,
        type=kind,
        default_value=None if required else as_text(declared.default),
        required=required,
        order_in_group=order,
        **settings,
    )


def _type_of(name: str, told: str, hint: Any) -> ConfigType:
    if told:
        return ConfigType[told.upper()]
    if typing.get_origin(hint) in (typing.Union, types.UnionType):
        hint = next((option for option in typing.get_args(hint) if option is not type(None)), str)
    kind = _TYPES.get(typing.get_origin(hint) or hint)
    if kind is None:
        raise ConfigError(
            f"The key {name} is annotated with {hint}; bool, str, int, float, list[str] or Secret would do."
        )
    return kind
