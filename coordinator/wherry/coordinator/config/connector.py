"""Checks a connector's configuration as Kafka Connect does, with its groups, orders and error texts.

Decides what is wrong with values; starts nothing and asks nobody (`catalog.py` adds what the plugin itself finds).
Errors of values are part of the result, never exceptions.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from wherry.contract.config import ConfigKey, invalid
from wherry.contract.description import ClassDescription, Role, SourceClass
from wherry.contract.java import in_map_order
from wherry.contract.javaregex import RegexError, compile_java
from wherry.coordinator.api import ConfigInfo, ConfigInfos, ConfigValueInfo
from wherry.coordinator.config import clientkeys, converters, errorkeys, owntransforms, transforms
from wherry.coordinator.config.connectorkeys import COMMON_KEYS, SINK_KEYS, SOURCE_KEYS
from wherry.coordinator.config.overrides import OverridePolicy
from wherry.coordinator.config.report import Report, key_info
from wherry.coordinator.config.versions import VersionRange, not_found

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
        group_id: The worker's group, which no sink's consumers may have; empty for a worker without one.
        exactly_once: Whether the worker's sources write exactly once.
        python: Whether code in configurations is allowed.
        transforms: Transformations beyond Kafka Connect's.
    """

    converters: Mapping[str, str] = field(default_factory=dict)
    overrides: OverridePolicy = field(default_factory=OverridePolicy)
    version: str = ""
    group_id: str = ""
    exactly_once: bool = False
    python: bool = False
    transforms: transforms.More = owntransforms.OWN


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

    Raises:
        OverrideError: A client's setting is not of its type.
        VersionRangeError: A version asked for is no version.
    """
    rules = rules or ConnectorRules()
    report = Report(config)
    if not _version_is_there(config, version):
        return _without_version(report, description, version, rules)
    own = {key.name for key in description.config.keys}
    keys = keys_of(description, version=version)
    for key in keys:
        if key.name not in own:
            report.check(_with_worker_default(key, rules, version))
    _check_name(report)
    # Kafka Connect shows them before the class's own keys.
    transforms.check(report, _is_converter, rules.version, rules.transforms)
    for key in keys:
        if key.name in own:
            report.check(_with_worker_default(key, rules, version))
    if description.role is Role.SINK:
        _check_topics(report)
        _check_group(report, rules.group_id)
    else:
        _check_source(report, description)
        _check_exactly_once(report, description, rules)
    _show_overrides(report, description.role, rules.overrides)
    if description.role is Role.SINK and description.capabilities.raw:
        _check_raw(report, description)
    else:
        for side in ("header", "key", "value"):
            _check_converter(report, side, rules)
    for name, errors in errorkeys.problems(config, description.role).items():
        report.add(name, *errors)
    for name, problems in (found or {}).items():
        report.add(name, *problems)
    for name, value in config.items():
        if value is None and name not in description.config:
            report.add(name, NULL_VALUE)
    return report.infos(str(config.get("connector.class") or ""), recommended or {})


def _check_name(report: Report) -> None:
    name = report.value("name")
    if not isinstance(name, str):
        return
    if not name:
        report.add("name", invalid("name", name, "String may not be empty"))
    controls = [str(ord(char)) for char in name if ord(char) < 0x20 or 0x7F <= ord(char) <= 0x9F]
    if controls:
        problem = f"String may not contain control sequences but had the following ASCII chars: {', '.join(controls)}"
        report.add("name", invalid("name", name, problem))


def _version_is_there(config: Mapping[str, str | None], version: str) -> bool:
    text = config.get(_VERSION_KEY)
    wanted = VersionRange.parse(text) if text is not None else None
    return wanted is None or not version or wanted.holds(version)


def _without_version(report: Report, description: ClassDescription, version: str, rules: ConnectorRules) -> ConfigInfos:
    """Only what is common to all connectors, since there is no class to ask."""
    for key in COMMON_KEYS:
        # What a connector may choose is not asked either, but for its version.
        report.check(_with_worker_default(key, rules, version) if key.name == _VERSION_KEY else key)
    for side in _SIDES:
        _without_class(report, side)
    wanted = VersionRange.parse(report.text(_VERSION_KEY))
    assert wanted is not None, "a version that is not there was asked for"
    problem = not_found(description.class_name, wanted, version)
    report.add("connector.class", problem)
    report.add(_VERSION_KEY, problem)
    return report.infos(report.text("connector.class"), {})


def _check_converter(report: Report, side: str, rules: ConnectorRules) -> None:
    key = f"{side}.converter"
    if report.config.get(key) is None:
        if key in report.config:
            report.hide(f"{key}.plugin.version")
        return
    name = report.text(key)
    found = converters.find(name, header=side == "header")
    if found is None:
        _wrong_converter(report, key, name)
        return
    report.put(key, found.class_name)
    if not _converter_version_is_there(report, key, found, rules.version):
        return
    settings = {setting.name: setting for setting in found.keys}
    for setting in in_map_order(settings):
        report.check_of(settings[setting], f"{key}.", given={"converter.type": side})


def _check_raw(report: Report, description: ClassDescription) -> None:
    """A sink that converts by itself: which converters there are is its own matter, but nobody else sees a record."""
    for side in ("header", "key", "value"):
        report.hide(f"{side}.converter.plugin.version")
    if report.texts("transforms"):
        told = (
            f"{description.class_name} takes records as bytes, which no transformation looks into. Remove transforms."
        )
        report.add("transforms", told)


def _wrong_converter(report: Report, key: str, name: str) -> None:
    _without_class(report, key.removesuffix(".converter"))
    other = converters.find(name, header=True)
    if other is not None:
        report.hide(f"{key}.plugin.version", hidden=False)
        report.put(key, other.class_name)
        report.add(key, f"Class class {other.class_name} does not implement the Converter interface")
        return
    report.put(key, None)
    report.add(key, invalid(key, name, f"Class {name} could not be found."))


def _converter_version_is_there(report: Report, key: str, found: converters.ConverterClass, version: str) -> bool:
    text = report.config.get(f"{key}.plugin.version")
    wanted = VersionRange.parse(text) if text is not None else None
    if wanted is None or not version or wanted.holds(version):
        return True
    # A class that converts values and headers is listed as two plugins.
    problem = not_found(found.class_name, wanted, *((version,) if found.header_only else (version, version)))
    report.add(key, problem)
    report.add(f"{key}.plugin.version", problem)
    return False


def _without_class(report: Report, side: str) -> None:
    """A converter that cannot be found has no version to choose."""
    key = f"{side}.converter.plugin.version"
    report.check(next(each for each in COMMON_KEYS if each.name == key))
    report.put(key, None)
    report.hide(key)


def _show_overrides(report: Report, role: Role, policy: OverridePolicy) -> None:
    problems = policy.problems(report.config)
    for client in clientkeys.clients_of(role, report.config):
        for setting, value in clientkeys.overridden(client, report.config):
            key = clientkeys.definition(client, setting)
            shown = clientkeys.shown(client, setting, value)
            name = f"{client}.override.{setting}"
            value_info = ConfigValueInfo(name, shown, errors=tuple(problems.get(name, ())))
            report.show(ConfigInfo(None if key is None else key_info(key), value_info))


def _check_group(report: Report, worker_group: str) -> None:
    """A sink whose consumers joined the workers' own group would break it."""
    name, key = report.text("name"), "consumer.override.group.id"
    overridden = report.config.get(key)
    if overridden is not None:
        report.mention(key, overridden)
    if not worker_group:
        return
    if overridden == worker_group:
        report.add(key, f"Consumer group {overridden} conflicts with Connect worker group {worker_group}")
    elif overridden is None and f"connect-{name}" == worker_group:
        report.add(
            "name",
            f"Consumer group for sink connector named {name} conflicts with Connect worker group {worker_group}",
        )


def _is_converter(name: str) -> bool:
    return converters.find(name, header=True) is not None


def _check_topics(report: Report) -> None:
    topics, pattern = report.texts("topics"), report.text("topics.regex")
    if "topics" in report.config and report.config["topics"] is None:
        report.add("topics", "Configuration 'topics' values must not be null.")
    elif len(set(topics)) < len(topics):
        report.add("topics", "Configuration 'topics' values must not be duplicated.")
    elif any(not topic for topic in topics):
        report.add("topics", "Configuration 'topics' values must not be empty.")
    if "topics.regex" in report.config and report.config["topics.regex"] is None:
        report.add("topics.regex", invalid("topics.regex", None, "Invalid regex: there is none"))
    if pattern:
        try:
            compile_java(pattern)
        except RegexError as error:
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
    _check_dead_letters(report, topics, pattern)


def _check_dead_letters(report: Report, topics: list[str], pattern: str) -> None:
    dead_letters = report.text("errors.deadletterqueue.topic.name")
    if not dead_letters:
        return
    if dead_letters in topics:
        report.add(
            "topics",
            f"The DLQ topic '{dead_letters}' may not be included in the list of topics "
            f"('topics=[{', '.join(topics)}]') consumed by the connector",
        )
    if pattern and compile_java(pattern).fullmatch(dead_letters):
        report.add(
            "topics.regex",
            f"The DLQ topic '{dead_letters}' may not be matched by the regex for the topics "
            f"('topics.regex={pattern}') consumed by the connector",
        )


def _check_source(report: Report, description: ClassDescription) -> None:
    groups = report.texts("topic.creation.groups")
    if "topic.creation.groups" in report.config and report.config["topic.creation.groups"] is None:
        report.add("topic.creation.groups", invalid("topic.creation.groups", None, "entry must be non null"))
    if len(set(groups)) < len(groups):
        report.add("topic.creation.groups", invalid("topic.creation.groups", groups, "Duplicate alias provided."))
    topic = report.config.get("offsets.storage.topic")
    if topic is not None and not topic.strip():
        report.add("offsets.storage.topic", invalid("offsets.storage.topic", "", "String must be non-empty"))
    wants_boundaries = report.text("transaction.boundary").lower() == "connector"
    if wants_boundaries and not description.capabilities.transaction_boundaries:
        report.add(
            "transaction.boundary",
            "The connector does not support connector-defined transaction boundaries with the given configuration. "
            "Please reconfigure it to use a different transaction boundary definition.",
        )


def _check_exactly_once(report: Report, description: ClassDescription, rules: ConnectorRules) -> None:
    """Refuse what asks for more than worker and class can give."""
    if report.text("exactly.once.support").lower() == "required":
        if not rules.exactly_once:
            report.add(
                "exactly.once.support",
                "This worker does not have exactly-once source support enabled.",
            )
        elif description.source_class is not SourceClass.REPLAYABLE:
            report.add(
                "exactly.once.support",
                "The connector does not support exactly-once semantics with the provided configuration.",
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


def _replaced(key: ConfigKey, **changes: object) -> ConfigKey:
    import dataclasses

    return dataclasses.replace(key, **changes)  # type: ignore[arg-type]
