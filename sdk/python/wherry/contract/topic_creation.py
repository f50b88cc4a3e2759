"""The `topic.creation.*` keys of a source: which settings a topic gets that does not exist yet.

Kafka Connect's rules: without settings of the default group the broker creates topics by itself; with them, the first
group whose `include` matches wins, and the default group takes the rest. A group without `include` matches nothing.
Pure; read by the coordinator, which refuses to start a connector whose rules are wrong, and by workers.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Mapping
from typing import Final

from wherry.contract.errors import ConfigError
from wherry.contract.javaregex import RegexError, compile_java

_PREFIX: Final = "topic.creation."
_DEFAULT: Final = "default"
_BROKERS_CHOICE: Final = -1
_OWN_KEYS: Final = frozenset({"include", "exclude", "replication.factor", "partitions"})


@dataclasses.dataclass(frozen=True, slots=True)
class TopicSettings:
    """How a topic is created; -1 leaves a number to the broker."""

    partitions: int
    replication_factor: int
    config: Mapping[str, str]


@dataclasses.dataclass(frozen=True, slots=True)
class TopicRules:
    """The `topic.creation.*` keys of a connector, in their order."""

    groups: tuple[tuple[str, Mapping[str, str]], ...]

    @classmethod
    def of(cls, config: Mapping[str, str], worker_config: Mapping[str, str]) -> TopicRules | None:
        """Reads the rules; None when the broker is to create topics.

        Raises:
            ConfigError: The default group misses its partitions or replication factor, a number is none or can't be,
                or an expression is none.
        """
        enabled = worker_config.get("topic.creation.enable", "true").strip().lower() == "true"
        if not enabled or not any(key.startswith(f"{_PREFIX}{_DEFAULT}.") for key in config):
            return None
        names = [name.strip() for name in config.get(f"{_PREFIX}groups", "").split(",") if name.strip()]
        groups = []
        for name in [*(name for name in names if name != _DEFAULT), _DEFAULT]:
            prefix = f"{_PREFIX}{name}."
            groups.append(
                (name, {key.removeprefix(prefix): value for key, value in config.items() if key.startswith(prefix)})
            )
        default = groups[-1][1]
        for key in ("partitions", "replication.factor"):
            if key not in default:
                raise ConfigError(
                    f"{_PREFIX}{_DEFAULT}.{key} must be set when topic.creation is used.",
                    key=f"{_PREFIX}{_DEFAULT}.{key}",
                )
        for name, group in groups:
            for key in ("partitions", "replication.factor"):
                if key in group:
                    _number(name, group, key)
            for key in ("include", "exclude"):
                _patterns(name, group, key)
        return cls(tuple(groups))

    def settings(self, topic: str) -> TopicSettings:
        """Returns the settings of a topic by the first group that matches."""
        default = self.groups[-1][1]
        found = (entry for entry in self.groups if entry[0] == _DEFAULT or _matches(*entry, topic))
        name, chosen = next(found, (_DEFAULT, default))
        merged = {**{key: default[key] for key in ("partitions", "replication.factor")}, **chosen}
        extra = {key: value for key, value in chosen.items() if key not in _OWN_KEYS}
        return TopicSettings(_number(name, merged, "partitions"), _number(name, merged, "replication.factor"), extra)


def _matches(name: str, group: Mapping[str, str], topic: str) -> bool:
    def one_of(key: str) -> bool:
        return any(pattern.fullmatch(topic) for pattern in _patterns(name, group, key))

    return one_of("include") and not one_of("exclude")


def _patterns(name: str, group: Mapping[str, str], key: str) -> list[re.Pattern[str]]:
    full = f"{_PREFIX}{name}.{key}"
    compiled = []
    for pattern in group.get(key, "").split(","):
        if pattern.strip():
            try:
                compiled.append(compile_java(pattern.strip()))
            except RegexError as error:
                raise ConfigError(
                    f"Invalid value {pattern.strip()} for configuration {full}: Invalid regex: {error}", key=full
                ) from None
    return compiled


def _number(name: str, group: Mapping[str, str], key: str) -> int:
    full = f"{_PREFIX}{name}.{key}"
    try:
        number = int(group[key])
    except ValueError:
        raise ConfigError(
            f"Invalid value {group[key]} for configuration {full}: Not a number of type INT", key=full
        ) from None
    if number == 0 or number < _BROKERS_CHOICE:
        raise ConfigError(
            f"Invalid value {number} for configuration {full}: it must be at least 1, or -1 for the broker's default.",
            key=full,
        )
    return number
