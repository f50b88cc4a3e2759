"""Sinks that get in one another's way: the same records into the same place, or one consumer group for two.

Decides what to point out, and refuses nothing: two sinks may well write into one table on purpose.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import combinations, islice
from typing import Final

from wherry.contract.description import Role
from wherry.contract.errors import WherryError
from wherry.coordinator.api import Overlap, TargetState
from wherry.coordinator.commits import group_of
from wherry.coordinator.plugins import PluginRegistry
from wherry.coordinator.store import StoredConnector

# Keys that say where records go. What says how (batch sizes, time-outs, users) may differ without parting two targets.
_PLACE: Final = re.compile(
    r"(?i)(.*[._-])?(url|uri|file|path|dir|directory|table|index|bucket|host|hosts|hostname|port|database|db|schema|"
    r"collection|keyspace|dataset|project|queue|stream|endpoint|account|container|namespace|topic|name\.format|prefix)"
    r"([._-].*)?"
)
_SHOWN_MAX: Final = 3
PAIRS_MAX: Final = 1_000
"""Overlaps told at most; with more of them nobody reads on."""


@dataclass(frozen=True, slots=True)
class Sink:
    """A sink as far as it matters here.

    Attributes:
        name: Of the connector.
        plugin: What runs it; different plugins have different places.
        config: As configured, placeholders and all.
        keys: The keys of its class, which are its own and not the framework's.
    """

    name: str
    plugin: str
    config: Mapping[str, str]
    keys: frozenset[str]


def overlaps(sinks: Iterable[Sink], about: str | None = None) -> list[Overlap]:
    """All pairs of sinks that get in one another's way, or those with one connector; at most `PAIRS_MAX`."""
    known = list(sinks)
    if about is None:
        pairs: Iterable[tuple[Sink, Sink]] = combinations(known, 2)
    else:
        one = next((sink for sink in known if sink.name == about), None)
        pairs = ((one, other) for other in known if other is not one) if one is not None else ()
    # What is known of the one is worked out once, not for every other.
    seen: dict[str, tuple[str, frozenset[tuple[str, str]]]] = {}
    found = (
        overlap
        for one, other in pairs
        if (overlap := _overlap(one, other, *(seen.get(one.name) or seen.setdefault(one.name, _own(one)))))
    )
    return list(islice(found, PAIRS_MAX))


def _own(sink: Sink) -> tuple[str, frozenset[tuple[str, str]]]:
    return group_of(sink.name, sink.config), _place(sink)


def sinks_of(connectors: Iterable[StoredConnector], registry: PluginRegistry) -> Iterator[Sink]:
    """The sinks among connectors that are not stopped."""
    known: dict[str, tuple[str, frozenset[str]] | None] = {}
    for stored in connectors:
        if stored.target_state is TargetState.STOPPED:
            continue
        class_name = stored.config.get("connector.class", "")
        if class_name not in known:
            known[class_name] = _sink_class(class_name, registry)
        if (found := known[class_name]) is not None:
            yield Sink(stored.name, found[0], stored.config, found[1])


def _sink_class(class_name: str, registry: PluginRegistry) -> tuple[str, frozenset[str]] | None:
    """The plugin of a sink's class and the class's own keys; None if it is no sink, or unknown."""
    plugin = registry.find(class_name)
    if plugin is None or plugin.role is not Role.SINK:
        return None
    try:
        return plugin.manifest.name, frozenset(key.name for key in registry.description(plugin).config.keys)
    except WherryError:
        return None  # it cannot be asked; its connector says so itself


def _overlap(one: Sink, other: Sink, group: str, place: frozenset[tuple[str, str]]) -> Overlap | None:
    """How two sinks get in one another's way, if they do; `group` and `place` are the one's."""
    names = (one.name, other.name)
    if group == group_of(other.name, other.config):
        text = f"{one.name} and {other.name} both commit to the consumer group {group}: each overwrites the other's"
        return Overlap(names, f"{text} offsets. Give each a group of its own.")
    # The cheapest question first: it is asked of every other sink whenever one is written.
    if one.plugin != other.plugin:
        return None
    for key, value in place:
        if other.config.get(key, "").strip() != value:
            return None
    topics = _common(one.config, other.config) if place and place == _place(other) else []
    return Overlap(names, _told(one.name, other.name, topics, place)) if topics else None


def _told(one: str, other: str, topics: list[str], place: Iterable[tuple[str, str]]) -> str:
    names = ", ".join(topics[:_SHOWN_MAX]) + (" and others" if len(topics) > _SHOWN_MAX else "")
    where = ", ".join(key for key, _ in sorted(place))
    return f"{one} and {other} write the same topics ({names}) into one target (by {where}): every record comes twice."


def _place(sink: Sink) -> frozenset[tuple[str, str]]:
    """Where it writes, by the keys that say so; empty when none does."""
    return frozenset(
        (key, value.strip())
        for key, value in sink.config.items()
        if key in sink.keys and _PLACE.fullmatch(key) and value.strip()
    )


def _common(one: Mapping[str, str], other: Mapping[str, str]) -> list[str]:
    """Topics that both read, as far as the configurations tell; of two patterns only the same one."""
    names, pattern = _topics(one), one.get("topics.regex", "").strip()
    other_names, other_pattern = _topics(other), other.get("topics.regex", "").strip()
    if pattern and pattern == other_pattern:
        return [pattern]
    common = names & other_names
    common |= {name for name in other_names if _matches(pattern, name)}
    common |= {name for name in names if _matches(other_pattern, name)}
    return sorted(common)


def _topics(config: Mapping[str, str]) -> set[str]:
    return {name.strip() for name in config.get("topics", "").split(",") if name.strip()}


def _matches(pattern: str, name: str) -> bool:
    try:
        return bool(pattern) and re.fullmatch(pattern, name) is not None
    except re.error:
        return False
