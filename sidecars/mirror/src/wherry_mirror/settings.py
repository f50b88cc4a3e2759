"""Which settings of topics go along. Pure."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Setting:
    """One setting of a topic.

    Attributes:
        value: Its value.
        is_default: Whether Kafka's own default holds, which nobody chose.
        of_topic: Whether it was chosen for this topic.
        of_file: Whether it comes from the file of a broker.
    """

    value: str
    is_default: bool = False
    of_topic: bool = True
    of_file: bool = False


def wanted_settings(
    settings: Mapping[str, Setting], excluded: Callable[[str], bool], *, defaults: bool
) -> dict[str, str]:
    """Settings that a remote topic has to have of its own.

    Args:
        settings: Those of the origin.
        excluded: Tells whether one is not copied.
        defaults: Whether Kafka's defaults in the source cluster are copied, too (`use.defaults.from=source`).
    """
    return {
        name: setting.value
        for name, setting in settings.items()
        if not excluded(name) and not setting.of_file and (defaults or not setting.is_default)
    }


def changed(
    wanted: Mapping[str, str], found: Mapping[str, Setting], excluded: Callable[[str], bool]
) -> dict[str, str | None]:
    """Settings to set, and with None those to take back, so that a remote topic is as its origin."""
    own = {name: setting.value for name, setting in found.items() if setting.of_topic}
    changes: dict[str, str | None] = {name: value for name, value in wanted.items() if own.get(name) != value}
    changes.update({name: None for name in own if name not in wanted and not excluded(name)})
    return changes
