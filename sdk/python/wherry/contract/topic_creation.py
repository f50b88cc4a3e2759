"""The `topic.creation.*` keys of a source: which settings a topic gets that does not exist yet.

Kafka Connect's rules: without any such key the broker creates topics by itself; with one, the default group has to say
both numbers, the first group whose `include` matches wins, and the default group takes the rest. A group without
`include` matches nothing, and takes from the default group its numbers, but none of its settings.
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
# In the order in which Kafka Connect looks for them: what the largest is, Java's name of such a number, what it may be.
_NUMBERS: Final[Mapping[str, tuple[int, str, str]]] = {
    "replication.factor": (
        2**15 - 1, "SHORT", "Replication factor must be positive and not larger than the number of brokers in the Kafka"
        " cluster, or -1 to use the broker's default",
    ),
    "partitions": (2**31 - 1, "INT", "Number of partitions must be positive, or -1 to use the broker's default"),
}  # fmt: skip
_OWN_KEYS: Final = frozenset({"include", "exclude", *_NUMBERS})
_INTEGER: Final = re.compile(r"[+-]?\d+")


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
        if not enabled or not any(key.startswith(_PREFIX) for key in config):
            return None
        names = [name.strip() for name in config.get(f"{_PREFIX}groups", "").split(",") if name.strip()]
        groups = []
        for name in [*(name for name in names if name != _DEFAULT), _DEFAULT]:
            prefix = f"{_PREFIX}{name}."
            groups.append(
                (name, {key.removeprefix(prefix): value for key, value in config.items() if key.startswith(prefix)})
            )
        default = groups[-1][1]
        for key in _NUMBERS:
            if key not in default:
                full = f"{_PREFIX}{_DEFAULT}.{key}"
                raise ConfigError(f'Missing required configuration "{full}" which has no default value.', key=full)
        for name, group in groups:
            for key in _NUMBERS:
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
        merged = {**{key: default[key] for key in _NUMBERS}, **chosen}
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
    largest, kind, may_be = _NUMBERS[key]
    text = group[key].strip()
    # Java reads no underscores, and nothing its type can't hold.
    number = int(text) if _INTEGER.fullmatch(text) else None
    if number is None or not -largest - 1 <= number <= largest:
        raise ConfigError(f"Invalid value {group[key]} for configuration {full}: Not a number of type {kind}", key=full)
    if number == 0 or number < _BROKERS_CHOICE:
        raise ConfigError(f"Invalid value {number} for configuration {full}: {may_be}", key=full)
    return number
