"""Checks a connector's configuration as Kafka Connect does, with its groups, orders and error texts.

Decides what is wrong with values; starts nothing and asks nobody (`catalog.py` adds what the plugin itself finds).
Errors of values are part of the result, never exceptions.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from wherry.contract.config import HIDDEN, ConfigDef, ConfigKey, ConfigType, Secret, as_text, invalid
from wherry.contract.description import ClassDescription, Role
from wherry.contract.errors import ConfigError
from wherry.coordinator.api import ConfigInfo, ConfigInfos, ConfigKeyInfo, ConfigValueInfo
from wherry.coordinator.config import converters, errorkeys
from wherry.coordinator.config.connectorkeys import COMMON_KEYS, SINK_KEYS, SOURCE_KEYS
from wherry.coordinator.config.overrides import OverridePolicy

NULL_VALUE = "Null value can not be supplied as the configuration value."
_SIDES = ("key", "value", "header")
_VERSION_KEY = "connector.plugin.version"


@dataclass(frozen=True, slots=True)
class ConnectorRules:
    """What a worker adds to a check.

    Attributes:
        converters: The worker's converter class of each side, shown as default.
        overrides: Which client settings a connector may override.
        version: Version shown for our own plugins: converters.
    """

    converters: Mapping[str, str] = field(default_factory=dict)
    overrides: OverridePolicy = field(default_factory=OverridePolicy)
    version: str = ""


def keys_of(description: ClassDescription, *, version: str = "") -> tuple[ConfigKey, ...]:
    """All keys of a class in the order that a validation shows: the common ones, then the class's own."""
    own = {key.name for key in description.config.keys}
    shared = SINK_KEYS if description.role is Role.SINK else SOURCE_KEYS
    framework = [key for key in (*COMMON_KEYS, *shared) if key.name not in own]
    shown = version or description.version or None
    return (*(_with_default(key, shown) if key.name == _VERSION_KEY else key for key in framework),
            *description.config.keys)  # fmt: skip


def validate(
    config: Mapping[str, str | None],
    description: ClassDescription,
    *,
    version: str = "",
    rules: ConnectorRules | None = None,
    found: Mapping[str, Iterable[str]] | None = None,
    recommended: Mapping[str, Iterable[str]] | None = None,
) -> ConfigInfos:
    """Check a configuration.

    Args:
        config: Values, with placeholders of config providers resolved.
        description: The class.
        version: Version of the plugin.
        rules: What the worker adds.
        found: Errors that the plugin itself found, by key; keys nobody defines are allowed.
        recommended: Values that the plugin itself offers, by key.
    """
    rules = rules or ConnectorRules()
    report = _Report(config)
    keys = [_with_worker_default(key, rules, version) for key in keys_of(description, version=version)]
    for key in keys:
        report.check(key, null_is_wrong=key.name not in description.config)
    _check_name(report)
    _check_version(report, version)
    for side in _SIDES:
        _check_converter(report, side, rules)
    _check_unavailable(report)
    if description.role is Role.SINK:
        _check_topics(report)
    else:
        _check_source(report)
    for name, errors in rules.overrides.problems(config).items():
        report.add(name, *errors)
    for name, errors in errorkeys.problems(config, description.role).items():
        report.add(name, *errors)
    for name, problems in (found or {}).items():
        report.add(name, *problems)
    for name, value in config.items():
        if value is None and name not in report.names:
            report.add(name, NULL_VALUE)
    return report.infos(str(config.get("connector.class") or ""), recommended or {})


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
        order_in_group=key.order_in_group if key.order_in_group > 0 else -1,
        width=key.width.name,
        display_name=key.display_name or key.name,
        dependents=key.dependents,
    )


class _Report:
    """Collects values and errors by key, in order."""

    def __init__(self, config: Mapping[str, str | None]) -> None:
        self.config = config
        self._keys: dict[str, ConfigKey] = {}
        self._values: dict[str, object] = {}
        self._errors: dict[str, list[str]] = {}

    @property
    def names(self) -> frozenset[str]:
        return frozenset(self._keys)

    def check(self, key: ConfigKey, *, null_is_wrong: bool = False) -> None:
        """Parse and check one value; errors are those of Kafka's ConfigDef."""
        self._keys[key.name] = key
        definition = ConfigDef((key,))
        errors = definition.validate(self.config)[key.name]
        value = None
        name = next((name for name in (key.name, *key.aliases) if name in self.config), None)
        try:
            value = key.parse(self.config[name] if name is not None else key.default_value)
        except ConfigError:
            value = None
        self._values[key.name] = value
        self._errors.setdefault(key.name, []).extend(errors)
        if null_is_wrong and name is not None and self.config[name] is None:
            self.add(key.name, NULL_VALUE)

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

    def offer(self, name: str, *, version: str) -> None:
        """Fill in a version that was not asked for, as the newest is what runs."""
        if self._values.get(name) is None:
            self._values[name] = version or None

    def infos(self, name: str, recommended: Mapping[str, Iterable[str]]) -> ConfigInfos:
        """The result: keys nobody defines first, then the others in order."""
        strange = [
            ConfigInfo(None, ConfigValueInfo(key, None, errors=tuple(errors)))
            for key, errors in self._errors.items()
            if key not in self._keys and errors
        ]
        defined = [self._info(key, tuple(recommended.get(key.name, ()))) for key in self._keys.values()]
        groups = dict.fromkeys(key.group for key in self._keys.values() if key.group)
        return ConfigInfos(name, tuple(groups), (*strange, *defined))

    def _info(self, key: ConfigKey, recommended: tuple[str, ...]) -> ConfigInfo:
        value = self._values.get(key.name)
        shown = HIDDEN if isinstance(value, Secret) else as_text(value)
        offered = recommended or key.recommended_values
        errors = tuple(self._errors.get(key.name, ()))
        return ConfigInfo(key_info(key), ConfigValueInfo(key.name, shown, offered, errors))


def _check_name(report: _Report) -> None:
    name = report.value("name")
    if not isinstance(name, str):
        return
    if not name:
        report.add("name", invalid("name", name, "String may not be empty"))
    controls = [str(ord(char)) for char in name if ord(char) < 0x20 or 0x7F <= ord(char) <= 0x9F]
    if controls:
        problem = f"String may not contain control sequences but had the following ASCII chars: {', '.join(controls)}"
        report.add("name", invalid("name", name, problem))


def _check_version(report: _Report, version: str) -> None:
    wanted = report.value(_VERSION_KEY)
    if not isinstance(wanted, str) or not version or _version_fits(wanted, version):
        return
    class_name = report.text("connector.class")
    problem = f"Plugin {class_name} not found that matches the version range {wanted}, available versions: [{version}]"
    report.add("connector.class", problem)
    report.add(_VERSION_KEY, problem)


def _version_fits(wanted: str, version: str) -> bool:
    """Whether a version lies in a Maven range; a bare version is exact, as in Kafka Connect."""
    text = wanted.strip()
    if text in ("", "latest") or text[:1] not in "[(":
        return text in ("", "latest", version)
    low, comma, high = text[1:-1].partition(",")
    if not comma:
        return low.strip() == version
    number = _version_number(version)
    above = not low.strip() or number > _version_number(low) or (text[0] == "[" and number == _version_number(low))
    below = not high.strip() or number < _version_number(high) or (text[-1] == "]" and number == _version_number(high))
    return above and below


def _version_number(text: str) -> tuple[int, ...]:
    return tuple(int(part) for part in re.findall(r"\d+", text))


def _check_converter(report: _Report, side: str, rules: ConnectorRules) -> None:
    key = f"{side}.converter"
    report.offer(f"{key}.plugin.version", version=rules.version)
    if report.config.get(key) is None:
        return
    name = report.text(key)
    found = converters.find(name, header=side == "header")
    if found is None:
        report.put(key, None)
        report.add(key, invalid(key, name, f"Class {name} could not be found."))
        return
    report.put(key, found.class_name)
    for setting in found.keys:
        if setting.name == "converter.type":
            continue
        report.check(_prefixed(setting, f"{key}."))


def _check_unavailable(report: _Report) -> None:
    """Refuse what this release cannot do, naming it: a transformation left out in silence would lose or spoil data."""
    for what, plural in (("transforms", "Transformations"), ("predicates", "Predicates")):
        aliases = report.texts(what)
        if len(set(aliases)) < len(aliases):
            report.add(what, invalid(what, aliases, "Duplicate alias provided."))
        for alias in dict.fromkeys(aliases):
            class_name = report.config.get(f"{what}.{alias}.type") or "no type given"
            report.add(
                what,
                invalid(what, aliases, f"{plural} are not in this release; remove '{alias}' ({class_name}) to go on."),
            )


def _check_topics(report: _Report) -> None:
    topics, pattern = report.texts("topics"), report.text("topics.regex")
    if any(not topic for topic in topics):
        report.add("topics", "Configuration 'topics' values must not be empty.")
    if len(set(topics)) < len(topics):
        report.add("topics", "Configuration 'topics' values must not be duplicated.")
    if pattern:
        try:
            re.compile(pattern)
        except re.error as error:
            report.add("topics.regex", invalid("topics.regex", pattern, f"Invalid regex: {error}"))
            return
    given = {name for name in ("topics", "topics.regex") if (report.config.get(name) or "").strip()}
    if len(given) == 2:
        problem = "topics and topics.regex are mutually exclusive options, but both are set."
        report.add("topics", problem)
        report.add("topics.regex", problem)
    elif not given:
        problem = "Must configure one of topics or topics.regex"
        report.add("topics", problem)
        report.add("topics.regex", problem)
    else:
        _check_dead_letters(report, topics, pattern)


def _check_dead_letters(report: _Report, topics: list[str], pattern: str) -> None:
    dead_letters = report.text("errors.deadletterqueue.topic.name")
    if not dead_letters:
        return
    if dead_letters in topics:
        report.add(
            "topics",
            f"The DLQ topic '{dead_letters}' may not be included in the list of topics "
            f"('topics=[{', '.join(topics)}]') consumed by the connector",
        )
    if pattern and re.fullmatch(pattern, dead_letters):
        report.add(
            "topics.regex",
            f"The DLQ topic '{dead_letters}' may not be matched by the regex for the topics "
            f"('topics.regex={pattern}') consumed by the connector",
        )


def _check_source(report: _Report) -> None:
    groups = report.texts("topic.creation.groups")
    if len(set(groups)) < len(groups):
        report.add("topic.creation.groups", invalid("topic.creation.groups", groups, "Duplicate alias provided."))
    topic = report.config.get("offsets.storage.topic")
    if topic is not None and not topic.strip():
        report.add("offsets.storage.topic", invalid("offsets.storage.topic", "", "String must be non-empty"))
    if report.text("exactly.once.support").lower() == "required":
        report.add(
            "exactly.once.support",
            "This worker does not have exactly-once source support enabled: it is not in this release, so that "
            "exactly.once.support can only be 'requested'.",
        )


def _with_default(key: ConfigKey, default: str | None) -> ConfigKey:
    return _replaced(key, default_value=default)


def _with_worker_default(key: ConfigKey, rules: ConnectorRules, version: str) -> ConfigKey:
    """The key as a validation shows it: with the worker's converters as defaults, and what may be chosen."""
    for side in _SIDES:
        if key.name == f"{side}.converter":
            offered = converters.class_names(header=side == "header")
            return _replaced(key, default_value=rules.converters.get(side), recommended_values=offered)
        if key.name == f"{side}.converter.plugin.version" and rules.version:
            return _replaced(key, default_value=rules.version, recommended_values=(rules.version,))
    if key.name == _VERSION_KEY and version:
        return _replaced(key, recommended_values=(version,))
    return key


def _prefixed(key: ConfigKey, prefix: str) -> ConfigKey:
    dependents = tuple(prefix + name for name in key.dependents)
    return _replaced(key, name=prefix + key.name, display_name=key.display_name or key.name, dependents=dependents)


def _replaced(key: ConfigKey, **changes: object) -> ConfigKey:
    import dataclasses

    return dataclasses.replace(key, **changes)  # type: ignore[arg-type]
