"""What a validation says of each key: definition, value, what may be chosen, what is wrong.

Collects; decides nothing about values but Kafka's own parsing of them. The result is in Kafka Connect's shape.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping

from wherry.contract.config import HIDDEN, ConfigDef, ConfigKey, ConfigType, Secret, as_text
from wherry.contract.errors import ConfigError
from wherry.coordinator.api import ConfigInfo, ConfigInfos, ConfigKeyInfo, ConfigValueInfo


def key_info(key: ConfigKey) -> ConfigKeyInfo:
    """A key in Kafka Connect's shape."""
    default = key.default_value
    if default is not None and key.type is ConfigType.PASSWORD:
        default = HIDDEN
    return ConfigKeyInfo(
        name=key.name,
        type=key.type.name,
        required=key.required and key.default_value is None,
        default_value=default,
        importance=key.importance.name,
        documentation=key.documentation,
        group=key.group or None,
        order_in_group=key.order_in_group if key.group else -1,
        width=key.width.name,
        display_name=key.display_name or key.name,
        dependents=key.dependents,
    )


def prefixed(key: ConfigKey, prefix: str) -> ConfigKey:
    """A class's key as a connector configures it."""
    dependents = tuple(prefix + name for name in key.dependents)
    return dataclasses.replace(
        key, name=prefix + key.name, display_name=key.display_name or key.name, dependents=dependents
    )


class Report:
    """Collects values and errors by key, in order.

    Args:
        config: The configuration; values of keys that nobody defines are left alone.
    """

    def __init__(self, config: Mapping[str, str | None]) -> None:
        self.config = config
        self._keys: dict[str, ConfigKey] = {}
        self._order: list[str | ConfigInfo] = []
        self._mentioned: dict[str, str] = {}
        self._hidden: set[str] = set()
        self._values: dict[str, object] = {}
        self._errors: dict[str, list[str]] = {}

    @property
    def names(self) -> frozenset[str]:
        """Keys that somebody defines."""
        return frozenset(self._keys)

    def check(self, key: ConfigKey) -> None:
        """Parse and check one value; errors are those of Kafka's ConfigDef."""
        self._check(key, self.config, "")

    def check_of(self, key: ConfigKey, prefix: str, *, given: Mapping[str, str]) -> None:
        """Check a value of a class that is configured under a prefix, which its messages leave out.

        `given` are values that nobody has to configure, since they follow from the place of the class.
        """
        inner = {name[len(prefix) :]: value for name, value in self.config.items() if name.startswith(prefix)}
        self._check(key, {**inner, **given}, prefix)

    def _check(self, key: ConfigKey, config: Mapping[str, str | None], prefix: str) -> None:
        shown = prefixed(key, prefix) if prefix else key
        if shown.name not in self._keys:
            self._order.append(shown.name)
        self._keys[shown.name] = shown
        definition = ConfigDef((key,))
        errors = definition.validate(config)[key.name]
        value = None
        name = next((name for name in (key.name, *key.aliases) if name in config), None)
        try:
            value = key.parse(config[name] if name is not None else key.default_value)
        except ConfigError:
            value = None
        self._values[shown.name] = value
        self._errors.setdefault(shown.name, []).extend(errors)

    def value(self, name: str) -> object:
        """A parsed value; None when it is absent or wrong."""
        return self._values.get(name)

    def texts(self, name: str) -> list[str]:
        """A list; empty when it is absent or wrong."""
        value = self._values.get(name)
        return value if isinstance(value, list) else []

    def text(self, name: str) -> str:
        """A text; empty when it is absent."""
        value = self._values.get(name)
        return value if isinstance(value, str) else ""

    def put(self, name: str, value: object) -> None:
        """Show another value than the one given."""
        self._values[name] = value

    def add(self, name: str, *errors: str) -> None:
        """Add errors; a key that nobody defines is shown without definition."""
        self._errors.setdefault(name, []).extend(errors)

    def show(self, info: ConfigInfo) -> None:
        """Show something as it is, after the keys that were checked so far."""
        self._order.append(info)

    def mention(self, name: str, value: str) -> None:
        """Show the value of a key that nobody defines."""
        self._mentioned[name] = value

    def hide(self, name: str, *, hidden: bool = True) -> None:
        """Tell whether a key is of no use as things stand."""
        (self._hidden.add if hidden else self._hidden.discard)(name)

    def infos(self, name: str, recommended: Mapping[str, Iterable[str]]) -> ConfigInfos:
        """The result: keys nobody defines first, then the others in order."""
        strange = [
            ConfigInfo(None, ConfigValueInfo(key, self._mentioned.get(key), errors=tuple(self._errors.get(key, ()))))
            for key in dict.fromkeys((*self._mentioned, *(key for key, errors in self._errors.items() if errors)))
            if key not in self._keys
        ]
        defined = [
            self._info(self._keys[entry], tuple(recommended.get(entry, ()))) if isinstance(entry, str) else entry
            for entry in self._order
        ]
        groups = dict.fromkeys(key.group for key in self._keys.values() if key.group)
        return ConfigInfos(name, tuple(groups), (*strange, *defined))

    def _info(self, key: ConfigKey, recommended: tuple[str, ...]) -> ConfigInfo:
        value = self._values.get(key.name)
        shown = HIDDEN if isinstance(value, Secret) else as_text(value)
        offered = () if key.name in self._hidden else recommended or key.recommended_values
        errors = tuple(self._errors.get(key.name, ()))
        return ConfigInfo(
            key_info(key), ConfigValueInfo(key.name, shown, offered, errors, key.name not in self._hidden)
        )
