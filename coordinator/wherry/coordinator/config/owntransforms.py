"""Transformations beyond Kafka Connect's: Wherry's own, which workers run, and those of plugins, which sidecars run.

The worker has the code of the former; names and keys stand here once more, as those of Kafka Connect's do.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from typing import Any, Final

from wherry.contract import selects
from wherry.contract.config import ConfigKey, ConfigType, Importance, OneOfValidator, RangeValidator, invalid
from wherry.contract.description import Role
from wherry.contract.errors import ConfigError
from wherry.contract.transforming import ENGINE_KEYS, TIMEOUT_KEY, TIMEOUT_MS_DEFAULT, TIMEOUT_MS_MAX
from wherry.coordinator.config import transforms
from wherry.coordinator.config.transforms import Setting, TransformClass
from wherry.coordinator.config.workerkeys import PYTHON_KEY
from wherry.coordinator.plugins import Plugin, PluginRegistry

PACKAGE: Final = "wherry.transforms."
PYTHON_CLASS: Final = f"{PACKAGE}Python"
PYTHON_REFUSED: Final = (
    f"{PYTHON_CLASS} runs code from the connector's configuration, which this worker does not allow; its operator does "
    f"by {PYTHON_KEY}=true in the worker's configuration."
)
HIGH, MEDIUM, LOW = Importance.HIGH, Importance.MEDIUM, Importance.LOW


def _number(name: str, documentation: str, default: int, most: float, importance: Importance = MEDIUM) -> Setting:
    return Setting(
        ConfigKey(
            name,
            ConfigType.LONG,
            str(default),
            importance=importance,
            documentation=documentation,
            validators=(RangeValidator(1, most),),
        )
    )


def _explode_together(values: Mapping[str, Any]) -> dict[str, str]:
    if values.get("index.field") and not (values.get("field") and values.get("keep.fields")):
        return {"index.field": "index.field adds a field to the record, so it needs field, and keep.fields=true."}
    return {}


def _fields_once(value: Any) -> str | None:
    return invalid("fields", value, "a field is named twice") if value and len(set(value)) < len(value) else None


_EXPLODE: Final = (
    transforms.setting(
        "field", "List or map whose elements become rows; the whole value when empty.", default="", importance=HIGH
    ),
    transforms.SYNTAX_VERSION,
    transforms.setting(
        "keep.fields", "Whether a row keeps the record's other fields; its element alone otherwise.",
        ConfigType.BOOLEAN, "true",
    ),
    transforms.setting("index.field", "Field that gets the place of the element, from 0; none when empty.", default=""),
    Setting(
        ConfigKey(
            "on.empty", default_value="drop",
            documentation="What becomes of a record whose list is empty or null: drop it, keep it with null, or fail.",
            validators=(OneOfValidator(("drop", "keep", "fail")),),
        )
    ),
    _number("elements.max", "A record with more elements fails.", 10_000, 1_000_000, LOW),
)  # fmt: skip
_DEDUPE: Final = (
    transforms.setting(
        "fields", "Fields of the value that tell records apart; the key when empty.", ConfigType.LIST, "",
        importance=HIGH, check=_fields_once,
    ),
    _number("window.ms", "How long a record is remembered.", 600_000, 2**53),
    _number("window.records", "How many are remembered, about 200 bytes each.", 100_000, 5_000_000),
)  # fmt: skip
_SQL: Final = (
    transforms.setting(
        "query", f"One SELECT from the table {selects.TABLE}, which is the batch at hand.", importance=HIGH,
        required=True, check=lambda value: None if value is None else selects.problem(value),
    ),
)  # fmt: skip


@functools.cache
def _release() -> str:
    try:
        return version("wherry")
    except PackageNotFoundError:
        return ""  # a checkout that was never installed


CLASSES: Final = (
    TransformClass(f"{PACKAGE}Dedupe", _DEDUPE, version=_release()),
    TransformClass(f"{PACKAGE}Explode", _EXPLODE, version=_release(), together=_explode_together),
    TransformClass(f"{PACKAGE}Sql", _SQL, version=_release()),
)
_BY_NAME: Final[Mapping[str, TransformClass]] = {
    name: each for each in CLASSES for name in (each.class_name, each.class_name.removeprefix(PACKAGE))
}
_TIMEOUT: Final = _number(
    TIMEOUT_KEY, "How long its sidecar may take for a batch, in ms.", TIMEOUT_MS_DEFAULT, TIMEOUT_MS_MAX, LOW
)


class Own:
    """Wherry's own transformations."""

    names: tuple[str, ...] = tuple(each.class_name for each in CLASSES)

    def find(self, name: str) -> TransformClass | None:
        """See `transforms.More.find`."""
        return _BY_NAME.get(name)


OWN: Final = Own()


@dataclass(frozen=True, slots=True)
class Use:
    """A transformation of a connector that runs in a sidecar.

    Attributes:
        alias: Its name in the configuration.
        plugin: Whose class it is.
        config: The class's own settings.
    """

    alias: str
    plugin: Plugin
    config: dict[str, str]

    @property
    def prefix(self) -> str:
        """What the names of its keys begin with."""
        return f"transforms.{self.alias}."


class WithPlugins:
    """Wherry's own transformations, and those of plugins.

    Args:
        registry: The plugins.
        python: Whether the operator allows code in configurations.
    """

    def __init__(self, registry: PluginRegistry, *, python: bool = False) -> None:
        self._registry = registry
        self._python = python

    @property
    def names(self) -> tuple[str, ...]:
        """See `transforms.More.names`."""
        served = (plugin.class_name for plugin in self._registry.plugins() if plugin.role is Role.TRANSFORM)
        return tuple(sorted((*OWN.names, *served)))

    def version_of(self, class_name: str) -> str:
        """The version of a class, without asking its plugin."""
        own = OWN.find(class_name)
        if own is not None:
            return own.version
        plugin = self._registry.find(class_name)
        return "" if plugin is None else plugin.manifest.version

    def find(self, name: str) -> TransformClass | None:
        """See `transforms.More.find`.

        Raises:
            WherryError: The class is a plugin's, and it can't be asked for its keys.
        """
        own = OWN.find(name)
        plugin = None if own is not None else self._plugin(name)
        if plugin is None:
            return own
        keys = self._registry.description(plugin).config.keys
        settings = (*(Setting(key) for key in keys), _TIMEOUT)
        refuse = None if self._allows(plugin) else lambda _: {"type": PYTHON_REFUSED}
        return TransformClass(plugin.class_name, settings, version=plugin.manifest.version, together=refuse)

    def uses(self, config: Mapping[str, str]) -> Iterator[Use]:
        """The transformations of a connector that run in sidecars.

        Raises:
            ConfigError: The operator doesn't allow one.
        """
        aliases = [alias.strip() for alias in config.get("transforms", "").split(",")]
        for alias in dict.fromkeys(alias for alias in aliases if alias):
            prefix = f"transforms.{alias}."
            name = config.get(f"{prefix}type", "").strip()
            plugin = None if transforms.find(name) or OWN.find(name) else self._plugin(name)
            if plugin is not None:
                if not self._allows(plugin):
                    raise ConfigError(PYTHON_REFUSED, key=f"{prefix}type")
                own = {key.removeprefix(prefix): text for key, text in config.items() if key.startswith(prefix)}
                yield Use(alias, plugin, {key: text for key, text in own.items() if key not in ENGINE_KEYS})

    def _allows(self, plugin: Plugin) -> bool:
        return self._python or plugin.class_name != PYTHON_CLASS

    def _plugin(self, name: str) -> Plugin | None:
        plugin = self._registry.find(name)
        return plugin if plugin is not None and plugin.role is Role.TRANSFORM else None
