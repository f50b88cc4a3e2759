"""Configuration as data: Kafka's ConfigDef with its types, checks and wording.

A `ConfigDef` parses texts into values and finds what is wrong with them without any sidecar running. Messages are
Kafka's to the letter where Kafka has one. It never contacts anything and never prints a secret.
"""

from __future__ import annotations

import enum
import math
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from wherry.contract.errors import ConfigError
from wherry.contract.java import BLANKS
from wherry.contract.position import java_double

HIDDEN: Final = "[hidden]"
_INTEGER: Final = re.compile(r"[+-]?\d+")
_DOUBLE: Final = re.compile(r"[+-]?(NaN|Infinity|(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?[dDfF]?)")
_LIST_COMMA: Final = re.compile(r"\s*,\s*", re.ASCII)


class ConfigType(enum.IntEnum):
    """Type of a configuration value: Kafka's ConfigDef.Type, numbered as in the proto."""

    BOOLEAN = 1
    STRING = 2
    INT = 3
    SHORT = 4
    LONG = 5
    DOUBLE = 6
    LIST = 7
    CLASS = 8
    PASSWORD = 9


class Importance(enum.IntEnum):
    """Kafka's ConfigDef.Importance."""

    HIGH = 1
    MEDIUM = 2
    LOW = 3


class Width(enum.IntEnum):
    """Kafka's ConfigDef.Width, a hint for forms."""

    NONE = 0
    SHORT = 1
    MEDIUM = 2
    LONG = 3


_INTEGER_BITS: Final = {ConfigType.SHORT: 16, ConfigType.INT: 32, ConfigType.LONG: 64}


class Secret:
    """The value of a PASSWORD key: it never shows itself, `reveal` hands it out."""

    __slots__ = ("_text",)

    def __init__(self, text: str) -> None:
        self._text = text

    def reveal(self) -> str:
        """Returns the secret text."""
        return self._text

    def __repr__(self) -> str:
        return HIDDEN

    __str__ = __repr__

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Secret) and other._text == self._text

    def __hash__(self) -> int:
        return hash(self._text)


@dataclass(frozen=True, slots=True)
class RangeValidator:
    """A number within bounds; None doesn't bind."""

    min: float | None = None
    max: float | None = None

    def problem(self, value: Any) -> str | None:
        """Returns what is wrong with a value, in Kafka's words; None when nothing is."""
        if value is None:
            return "Value must be non-null"
        if self.min is not None and value < self.min:
            return f"Value must be at least {_number(self.min)}"
        if self.max is not None and value > self.max:
            return f"Value must be no more than {_number(self.max)}"
        return None


@dataclass(frozen=True, slots=True)
class OneOfValidator:
    """One of a few texts; of a list, each entry must be one."""

    values: tuple[str, ...]
    ignore_case: bool = False

    def problem(self, value: Any) -> str | None:
        """Returns what is wrong with a value, in Kafka's words; None when nothing is."""
        allowed = {item.upper() for item in self.values} if self.ignore_case else set(self.values)
        given = value if isinstance(value, list) else [value]
        if all(item is not None and (item.upper() if self.ignore_case else item) in allowed for item in given):
            return None
        case = " (case insensitive)" if self.ignore_case else ""
        return f"String must be one of{case}: {', '.join(self.values)}"


@dataclass(frozen=True, slots=True)
class PatternValidator:
    """A text that matches a regular expression as a whole."""

    pattern: str

    def problem(self, value: Any) -> str | None:
        """Returns what is wrong with a value; None when nothing is."""
        given = value if isinstance(value, list) else [value]
        if all(item is not None and re.fullmatch(self.pattern, str(item)) for item in given):
            return None
        return f"Value must match the pattern {self.pattern}"


@dataclass(frozen=True, slots=True)
class NonEmptyValidator:
    """A text or list that isn't empty."""

    def problem(self, value: Any) -> str | None:
        """Returns what is wrong with a value, in Kafka's words; None when nothing is."""
        if value is None or len(value.reveal() if isinstance(value, Secret) else value):
            return None
        return "List must be non-empty" if isinstance(value, list) else "String must be non-empty"


Validator = RangeValidator | OneOfValidator | PatternValidator | NonEmptyValidator


@dataclass(frozen=True, slots=True)
class ConfigKey:
    """One configuration key: Kafka's ConfigDef.ConfigKey with validators as data.

    Attributes:
        name: Name of the key.
        type: Type of its value.
        default_value: Default as text; None together with required=False means null.
        required: Whether a value must be given; a key with a default never is.
        importance: How much it matters.
        documentation: What it does, in sentences.
        group: Heading it is shown under; empty means none.
        order_in_group: Place within the group; without a group it has none.
        width: Width of an input field.
        display_name: Name shown to people; empty means `name`.
        dependents: Keys to validate again when this one changes.
        validators: Checks that hold for every value.
        recommended_values: Values offered when they don't depend on the other system.
        aliases: Other spellings of the key, taken when `name` is absent.
    """

    name: str
    type: ConfigType = ConfigType.STRING
    default_value: str | None = None
    required: bool = False
    importance: Importance = Importance.MEDIUM
    documentation: str = ""
    group: str = ""
    order_in_group: int = 0
    width: Width = Width.NONE
    display_name: str = ""
    dependents: tuple[str, ...] = ()
    validators: tuple[Validator, ...] = ()
    recommended_values: tuple[str, ...] = ()
    aliases: tuple[str, ...] = ()

    def parse(self, text: str | None) -> Any:
        """Parses a value without checking it against the validators.

        Returns:
            bool, str, int, float, list of str or `Secret`; None for None.

        Raises:
            ConfigError: It isn't of the key's type, in Kafka's words.
        """
        return None if text is None else _parse(self, text.strip(BLANKS))

    def problems(self, value: Any) -> list[str]:
        """Returns what the validators find wrong with a parsed value, as whole Kafka messages."""
        if value is None and not self.required and self.default_value is None:
            return []
        return [
            invalid(self.name, value, problem)
            for problem in (validator.problem(value) for validator in self.validators)
            if problem
        ]


class ConfigDef:
    """The keys of a class, in order."""

    __slots__ = ("_keys",)

    def __init__(self, keys: Iterable[ConfigKey] = ()) -> None:
        self._keys: dict[str, ConfigKey] = {}
        for key in keys:
            if key.name in self._keys:
                raise ConfigError(f"The configuration key {key.name} is defined twice.", key=key.name)
            self._keys[key.name] = key

    @property
    def keys(self) -> tuple[ConfigKey, ...]:
        """The keys, in the order of their definition."""
        return tuple(self._keys.values())

    def __contains__(self, name: object) -> bool:
        return name in self._keys

    def __getitem__(self, name: str) -> ConfigKey:
        return self._keys[name]

    def __len__(self) -> int:
        return len(self._keys)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, ConfigDef) and other._keys == self._keys

    __hash__ = None  # type: ignore[assignment]  # compared by content, and too large to be a key

    def parse(self, values: Mapping[str, str | None]) -> dict[str, Any]:
        """Parses a configuration.

        Args:
            values: Texts by key; keys that aren't defined are left alone.

        Returns:
            A value for each defined key, defaults included.

        Raises:
            ConfigError: The first value that is missing or wrong, in Kafka's words; `key` names it.
        """
        parsed: dict[str, Any] = {}
        for key in self.keys:
            value, errors = _evaluate(key, values)
            if errors:
                raise ConfigError(errors[0], key=key.name)
            parsed[key.name] = value
        return parsed

    def validate(self, values: Mapping[str, str | None]) -> dict[str, list[str]]:
        """Finds everything that is wrong with a configuration.

        Returns:
            The messages of each defined key, in Kafka's words; an empty list where nothing is wrong.
        """
        return {key.name: _evaluate(key, values)[1] for key in self.keys}

    def secret_names(self) -> frozenset[str]:
        """Returns the names of the PASSWORD keys, other spellings included."""
        return frozenset(
            name for key in self.keys if key.type is ConfigType.PASSWORD for name in (key.name, *key.aliases)
        )

    def split_secrets(self, values: Mapping[str, str]) -> tuple[dict[str, str], dict[str, str]]:
        """Parts a configuration into what may be shown and what may not."""
        names = self.secret_names()
        shown = {name: value for name, value in values.items() if name not in names}
        return shown, {name: value for name, value in values.items() if name in names}


def invalid(name: str, value: Any, problem: str = "") -> str:
    """Returns Kafka's sentence about a wrong value."""
    return f"Invalid value {shown(value)} for configuration {name}" + (f": {problem}" if problem else "")


def shown(value: Any) -> str:
    """Returns a value as Java prints it; secrets stay hidden."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float):
        return java_double(value).strip('"')
    if isinstance(value, list):
        return f"[{', '.join(map(str, value))}]"
    return str(value)


def as_text(value: Any) -> str | None:
    """Returns a parsed value as it would stand in a configuration; a secret as itself, None as None."""
    if value is None:
        return None
    if isinstance(value, Secret):
        return value.reveal()
    return ",".join(map(str, value)) if isinstance(value, (list, tuple)) else shown(value)


def _evaluate(key: ConfigKey, values: Mapping[str, str | None]) -> tuple[Any, list[str]]:
    """Returns the value of a key and what is wrong with it, as Kafka's parseForValidate finds it."""
    value, errors = None, []
    name = next((name for name in (key.name, *key.aliases) if name in values), None)
    if name is not None:
        try:
            value = key.parse(values[name])
        except ConfigError as error:
            errors.append(str(error))
    elif key.required and key.default_value is None:
        errors.append(f'Missing required configuration "{key.name}" which has no default value.')
    else:
        value = key.parse(key.default_value)
    return value, errors + key.problems(value)


def _parse(key: ConfigKey, text: str) -> Any:
    if key.type is ConfigType.BOOLEAN:
        if text.lower() not in ("true", "false"):
            raise _wrong(key, text, "Expected value to be either true or false")
        return text.lower() == "true"
    if bits := _INTEGER_BITS.get(key.type):
        number = int(text) if _INTEGER.fullmatch(text) else None
        if number is None or not -(1 << bits - 1) <= number < 1 << bits - 1:
            raise _wrong(key, text, f"Not a number of type {key.type.name}")
        return number
    if key.type is ConfigType.DOUBLE:
        if not _DOUBLE.fullmatch(text):
            raise _wrong(key, text, "Not a number of type DOUBLE")
        return float(text) if text[-1] not in "dDfF" else float(text[:-1])
    if key.type is ConfigType.LIST:
        return _LIST_COMMA.split(text) if text else []
    return Secret(text) if key.type is ConfigType.PASSWORD else text


def _wrong(key: ConfigKey, text: str, problem: str) -> ConfigError:
    return ConfigError(invalid(key.name, text, problem), key=key.name)


def _number(bound: float) -> str:
    return str(int(bound)) if math.isfinite(bound) and bound == int(bound) else java_double(bound)
