"""Classes and configurations as the API shows them: the registry, the checks, and the plugin's own word.

Decides what a request about plugins or a configuration is answered; the only waiting is for a plugin that is asked,
with a deadline.
"""

from __future__ import annotations

import dataclasses
import logging
from collections.abc import Mapping, Sequence
from typing import Protocol

from wherry.contract.client import Validation
from wherry.contract.description import ClassDescription, Role, SinkClass
from wherry.contract.errors import ConfigError, WherryError
from wherry.contract.manifest import Manifest
from wherry.coordinator.api import (
    KAFKA_VERSION,
    ApiError,
    BadRequestError,
    ConfigInfo,
    ConfigInfos,
    ConfigKeyInfo,
    ConfigValueInfo,
    ConnectorType,
    NotFoundError,
    PluginInfo,
)
from wherry.coordinator.config import connector, converters, delivery, direct, owntransforms, tasksmax, transforms
from wherry.coordinator.config.clientkeys import OverrideError
from wherry.coordinator.config.overrides import OverridePolicy
from wherry.coordinator.config.providers import ProviderError, Providers, Resolved
from wherry.coordinator.config.report import key_info
from wherry.coordinator.config.versions import VersionRange, VersionRangeError, not_found
from wherry.coordinator.config.worker import WorkerConfig
from wherry.coordinator.config.workerkeys import PYTHON_KEY
from wherry.coordinator.exactly_once import is_enabled
from wherry.coordinator.plugins import Plugin, PluginRegistry

_log = logging.getLogger(__name__)

_TYPE_BY_ROLE = {Role.SOURCE: ConnectorType.SOURCE, Role.SINK: ConnectorType.SINK}
_BAD_REQUEST = "org.apache.kafka.connect.runtime.rest.errors.BadRequestException: "
# Classes of Kafka's that plug into the worker and not into a connector: by their simple names, known but not shown.
_WORKER_PLUGINS = frozenset(
    {
        *(f"{name}ConfigProvider" for name in ("File", "Directory", "EnvVar")),
        *(f"{name}ConnectorClientConfigOverridePolicy" for name in ("All", "None", "Principal", "Allowlist")),
        "BasicAuthSecurityRestExtension",
    }
)
_CONFIG_EXCEPTION = "org.apache.kafka.common.config.ConfigException: "
_HINT = (
    "\nYou can also find the above list of errors at the endpoint `/connector-plugins/{connectorType}/config/validate`"
)


class Prober(Protocol):
    """Asks a plugin, in a process of its own, what it thinks of a configuration."""

    def validate(
        self, manifest: Manifest, class_name: str, config: Mapping[str, str], secrets: Mapping[str, str]
    ) -> Validation:
        """What the plugin finds. Raises WherryError when it cannot be asked in time."""


class Catalog:
    """A `PluginCatalog` over a registry.

    Args:
        registry: The plugins.
        rules: What the worker adds to checks.
        providers: Resolve placeholders.
        prober: Asks plugins; None leaves their own checks out.
    """

    def __init__(
        self,
        registry: PluginRegistry,
        *,
        rules: connector.ConnectorRules | None = None,
        providers: Providers | None = None,
        prober: Prober | None = None,
    ) -> None:
        self.registry = registry
        rules = rules or connector.ConnectorRules(version=KAFKA_VERSION)
        self._transforms = owntransforms.WithPlugins(registry, python=rules.python)
        self._rules = dataclasses.replace(rules, transforms=self._transforms)
        self._providers = providers or Providers()
        self._prober = prober

    def plugins(self, *, connectors_only: bool = True) -> list[PluginInfo]:
        """Classes that can be used."""
        listed = [
            PluginInfo(plugin.class_name, _TYPE_BY_ROLE[plugin.role].value, plugin.manifest.version)
            for plugin in self.registry.plugins()
            if plugin.role in _TYPE_BY_ROLE
        ]
        if connectors_only:
            return listed
        simple = [PluginInfo(name, "converter", KAFKA_VERSION) for name in converters.class_names()]
        header = [PluginInfo(name, "header_converter", KAFKA_VERSION) for name in converters.class_names(header=True)]
        changing = [
            PluginInfo(name, kind, KAFKA_VERSION)
            for kind, predicates in (("transformation", False), ("predicate", True))
            for name in transforms.class_names(predicates=predicates)
        ]
        own = [PluginInfo(name, "transformation", self._transforms.version_of(name)) for name in self._transforms.names]
        return [*listed, *changing, *own, *simple, *header]

    def plugin_config(self, plugin: str, version: str | None = None) -> list[ConfigKeyInfo]:
        """Definition of a class's keys: its own first, then the common ones."""
        wanted = _range(version)
        found = self.registry.find(plugin)
        if found is not None and found.role is not Role.TRANSFORM:
            if wanted is not None and not wanted.holds(found.manifest.version):
                raise BadRequestError(not_found(found.class_name, wanted, found.manifest.version))
            description = self.registry.description(found)
            own = {key.name for key in description.config.keys}
            keys = connector.keys_of(description, version=found.manifest.version)
            ordered = sorted(keys, key=lambda key: key.name not in own)
            return [key_info(key) for key in ordered]
        converter = converters.find(plugin, header=True)
        if converter is not None:
            if wanted is not None and not wanted.holds(KAFKA_VERSION):
                available = (KAFKA_VERSION,) if converter.header_only else (KAFKA_VERSION, KAFKA_VERSION)
                raise BadRequestError(not_found(converter.class_name, wanted, *available))
            return [key_info(key) for key in converter.keys]
        transform = transforms.find(plugin) or self._transforms.find(plugin)
        if transform is not None:
            has = transform.version or KAFKA_VERSION
            if wanted is not None and not wanted.holds(has):
                raise BadRequestError(not_found(transform.class_name, wanted, has))
            return [key_info(key) for key in transform.keys]
        if plugin in transforms.ABSTRACT:
            raise ApiError("Instantiation error")
        if plugin.rpartition(".")[2] in _WORKER_PLUGINS:
            raise BadRequestError(
                f"Invalid plugin class {plugin}. Valid types are sink, source, converter, header_converter, "
                "transformation, predicate."
            )
        raise NotFoundError(f"Unknown plugin {plugin}.")

    def validate(self, config: Mapping[str, str | None], *, plugin: str | None = None) -> ConfigInfos:
        """Check a configuration; errors of values are part of the answer."""
        name = config.get("connector.class")
        if plugin is not None and name is not None and not _normalized(name).endswith(_normalized(plugin)):
            raise BadRequestError(f"Included connector type {name} does not match request type {plugin}")
        try:
            return self._validate(config)
        except BadRequestError as error:
            # The real worker lets this one out wrapped: as 500, and with the name of its class.
            raise ApiError(f"{_BAD_REQUEST}{error.message}") from error
        except VersionRangeError as error:
            raise ApiError(f"{_BAD_REQUEST}{error}") from error
        except OverrideError as error:
            raise ApiError(f"{_CONFIG_EXCEPTION}{error.message}") from error

    def check(self, config: Mapping[str, str | None]) -> dict[str, str]:
        """The configuration to store, or BadRequestError with all errors in Kafka Connect's text."""
        try:
            infos = self._validate(config)
        except VersionRangeError as error:
            raise BadRequestError(str(error)) from error
        except OverrideError as error:
            raise ApiError(error.message) from error
        if infos.error_count:
            lines = "".join(f"\n{error}" for error in infos.errors())
            raise BadRequestError(
                f"Connector configuration is invalid and contains the following {infos.error_count} error(s):"
                f"{lines}{_HINT}"
            )
        return {key: value for key, value in config.items() if value is not None}

    def connector_type(self, config: Mapping[str, str]) -> ConnectorType:
        """Role of the configured class; UNKNOWN when there is none such."""
        found = self.registry.find(config.get("connector.class") or "")
        return ConnectorType.UNKNOWN if found is None else _TYPE_BY_ROLE.get(found.role, ConnectorType.UNKNOWN)

    def resolve(self, config: Mapping[str, str]) -> dict[str, str]:
        """A configuration with all placeholders filled in, for the plugin. Raises ProviderError."""
        return dict(self._providers.resolve(config).values)

    def _validate(self, config: Mapping[str, str | None]) -> ConfigInfos:
        plugin = self._plugin(config)
        resolved = self._resolve(config)
        full: dict[str, str | None] = {**config, **resolved.values}
        description = self.registry.description(plugin)
        version = plugin.manifest.version
        infos = connector.validate(full, description, version=version, rules=self._rules)
        if infos.error_count:
            return _with_placeholders(infos, resolved)
        values = {key: value for key, value in full.items() if value is not None}
        found: dict[str, Sequence[str]] = {}
        offered: dict[str, Sequence[str]] = {}
        sink_class = description.sink_class
        if self._prober is not None:
            shown, secrets = description.config.split_secrets(direct.source_config(values))
            validation = self._ask(plugin, shown, secrets)
            offered = {finding.name: finding.recommended_values for finding in validation.findings}
            found.update(validation.errors)
            sink_class = validation.sink_class or sink_class
            found.update(self._ask_transforms(values))
        role = plugin.role
        if direct.is_direct(values):
            sink_class = direct.delivery_class(description, self._check_sink(values, description, found))
            role = Role.SINK if description.role is Role.SOURCE else role
        found.update(delivery.problems(values, role, sink_class))
        found.update(tasksmax.problems(values, role))
        if found or offered:
            infos = connector.validate(
                full, description, version=version, rules=self._rules, found=found, recommended=offered
            )
        return _with_placeholders(infos, resolved)

    def _check_sink(
        self, values: Mapping[str, str], source: ClassDescription, found: dict[str, Sequence[str]]
    ) -> SinkClass | None:
        """Add what is wrong with the sink of a direct pipeline; answers what the sink does with repeated rows."""
        plugin = self.registry.find(values[direct.SINK_CLASS])
        sink = None if plugin is None else self.registry.description(plugin)
        wrong = direct.problems(values, source, sink)
        found.update(wrong)
        if wrong or plugin is None or sink is None:
            return None
        own = direct.sink_config(values)
        errors = {name: messages for name, messages in sink.config.validate(own).items() if messages}
        sink_class = sink.sink_class
        if not errors and self._prober is not None:
            validation = self._ask(plugin, *sink.config.split_secrets(own))
            errors = {name: list(messages) for name, messages in validation.errors.items()}
            sink_class = validation.sink_class or sink_class
        found.update({f"{direct.PREFIX}{name}": list(messages) for name, messages in errors.items()})
        return sink_class

    def _ask_transforms(self, values: Mapping[str, str]) -> dict[str, Sequence[str]]:
        """What plugins find wrong with the settings of their transformations, by key."""
        found: dict[str, Sequence[str]] = {}
        for use in self._transforms.uses(values):
            definition = self.registry.description(use.plugin).config
            validation = self._ask(use.plugin, *definition.split_secrets(use.config))
            found.update({use.prefix + name: errors for name, errors in validation.errors.items()})
        return found

    def _plugin(self, config: Mapping[str, str | None]) -> Plugin:
        name = config.get("connector.class")
        if name is None:
            # Names only: the real worker prints all values here, secrets too.
            raise BadRequestError(f"Connector config with keys [{', '.join(config)}] contains no connector type")
        try:
            plugin = self.registry.resolve(name)
        except ConfigError as error:
            raise BadRequestError(error.message) from error
        if plugin.role not in _TYPE_BY_ROLE:
            raise BadRequestError(f"{plugin.class_name} is a transformation, not a connector")
        return plugin

    def _resolve(self, config: Mapping[str, str | None]) -> Resolved:
        given = {key: value for key, value in config.items() if value is not None}
        try:
            return self._providers.resolve(given)
        except ProviderError as error:
            raise ApiError(error.message) from error

    def _ask(self, plugin: Plugin, config: Mapping[str, str], secrets: Mapping[str, str]) -> Validation:
        assert self._prober is not None, "asked only with a prober"
        try:
            return self._prober.validate(plugin.manifest, plugin.class_name, config, secrets)
        except WherryError as error:
            raise ApiError(
                f"Plugin {plugin.manifest.name} could not check the configuration: {error.message}"
            ) from error


def rules_of(worker: WorkerConfig) -> connector.ConnectorRules:
    """What a worker adds to checks.

    Raises:
        ConfigError: The override policy is none of Kafka's, or a converter of the worker is not in this release.
    """
    sides = ("key", "value", "header")
    classes = {}
    for side in sides:
        name = str(worker.parsed[f"{side}.converter"])
        found = converters.find(name, header=side == "header")
        if found is None:
            known = ", ".join(converters.class_names(header=side == "header"))
            raise ConfigError(
                f"Invalid value {name} for configuration {side}.converter: Class {name} could not be found. "
                f"Converters of this release: {known}.",
                key=f"{side}.converter",
            )
        classes[side] = found.class_name
    policy = OverridePolicy.of(
        worker.parsed["connector.client.config.override.policy"],
        worker.parsed["connector.client.config.override.allowlist"],
    )
    group_id = str(worker.parsed.get("group.id") or "")
    return connector.ConnectorRules(
        converters=classes,
        overrides=policy,
        version=KAFKA_VERSION,
        group_id=group_id,
        exactly_once=is_enabled(worker),
        python=bool(worker.parsed.get(PYTHON_KEY)),
    )


def _range(version: str | None) -> VersionRange | None:
    try:
        return None if version is None else VersionRange.parse(version)
    except VersionRangeError:
        raise BadRequestError(f"Invalid version specification: {version}") from None


def _normalized(name: str) -> str:
    short = name.removesuffix("Connector")
    return short or name


def _with_placeholders(infos: ConfigInfos, resolved: Resolved) -> ConfigInfos:
    """The result with placeholders in the place of what they stand for, so that no secret is shown."""
    if not resolved.placeholders:
        return infos
    return dataclasses.replace(infos, configs=tuple(_hidden(config, resolved) for config in infos.configs))


def _hidden(config: ConfigInfo, resolved: Resolved) -> ConfigInfo:
    value = config.value
    placeholder = resolved.placeholders.get(value.name)
    if placeholder is None:
        return config
    shown = ConfigValueInfo(
        value.name,
        None if value.value is None else placeholder,
        value.recommended_values,
        tuple(resolved.hide(value.name, error) for error in value.errors),
        value.visible,
    )
    return ConfigInfo(config.definition, shown)
