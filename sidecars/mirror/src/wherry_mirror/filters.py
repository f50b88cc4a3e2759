"""Which topics, groups and settings are mirrored: names and regular expressions, Kafka's own left out. Pure."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from wherry.contract.errors import ConfigError
from wherry.contract.javaregex import RegexError, compile_java
from wherry.contract.mirror import Policy


def matcher(patterns: Sequence[str], key: str) -> Callable[[str], bool]:
    """Returns what tells whether one of the patterns matches a whole name.

    Raises:
        ConfigError: A pattern is none.
    """
    texts = [pattern.strip() for pattern in patterns if pattern.strip()]
    if not texts:
        return lambda name: False
    try:
        found = compile_java("|".join(f"(?:{text})" for text in texts))
    except RegexError as error:
        raise ConfigError(f"Invalid value {','.join(texts)} for configuration {key}: {error}", key=key) from error
    return lambda name: found.fullmatch(name) is not None


def mirrored(
    policy: Policy,
    *,
    target: str,
    included: Callable[[str], bool],
    excluded: Callable[[str], bool],
    heartbeats: bool,
) -> Callable[[str], bool]:
    """Returns what tells whether a topic of the source cluster is copied.

    Args:
        policy: How remote topics are named.
        target: Alias of the target cluster; what came from there never goes back.
        included: Tells whether a topic is asked for.
        excluded: Tells whether it is not wanted; wins.
        heartbeats: Whether heartbeats are copied whatever was asked for.
    """

    def wanted(topic: str) -> bool:
        if policy.is_heartbeats(topic):
            return heartbeats and not (topic != "heartbeats" and policy.origin(topic) == target)
        if policy.is_internal(topic):
            return False
        if not policy.identity and policy.origin(topic) == target:
            return False
        return included(topic) and not excluded(topic)

    return wanted


def dealt(partitions: Sequence[tuple[str, int]], tasks_max: int) -> list[list[tuple[str, int]]]:
    """Deals partitions out to tasks in turn, so that those of one topic are spread."""
    count = min(tasks_max, len(partitions))
    return [list(partitions[start::count]) for start in range(count)]
