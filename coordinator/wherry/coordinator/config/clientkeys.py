"""The settings of Kafka's own clients, as a validation shows those that a connector overrides.

Decides which clients a connector has, and the definition of each of their keys (Kafka 4.3.1's types, importances and
defaults, in `clientkeys.json`); whether an override is allowed is `overrides.py`'s to say.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Final

from wherry.contract.config import HIDDEN, ConfigKey, ConfigType, Importance, as_text
from wherry.contract.description import Role
from wherry.contract.errors import ConfigError
from wherry.contract.java import in_map_order

PRODUCER: Final = "producer"
CONSUMER: Final = "consumer"
ADMIN: Final = "admin"
_TABLE: Final = Path(__file__).with_name("clientkeys.json")
_DEAD_LETTERS: Final = "errors.deadletterqueue.topic.name"
_CREATION: Final = ("topic.creation.groups", "topic.creation.default.")


class OverrideError(ConfigError):
    """A client's setting is not of its type. The real worker answers 500 to it, with one message."""


def clients_of(role: Role, config: Mapping[str, str | None]) -> tuple[str, ...]:
    """The clients that a connector has, in the order in which their settings are shown."""
    if role is Role.SINK:
        dead_letters = bool((config.get(_DEAD_LETTERS) or "").strip())
        return (PRODUCER, CONSUMER, ADMIN) if dead_letters else (CONSUMER,)
    creates_topics = any(key.startswith(_CREATION) for key in config)
    return (PRODUCER, ADMIN) if creates_topics else (PRODUCER,)


def overridden(client: str, config: Mapping[str, str | None]) -> list[tuple[str, str | None]]:
    """The settings that a connector overrides of a client, without their prefix, in Java's order."""
    prefix = f"{client}.override."
    # Out of one hash table and into another: what falls into the same slot keeps the order of the first.
    # The prefix alone overrides nothing.
    given = {
        key[len(prefix) :]: config[key] for key in in_map_order(config) if key.startswith(prefix) and key != prefix
    }
    return [(key, given[key]) for key in in_map_order(given)]


def definition(client: str, setting: str) -> ConfigKey | None:
    """The definition of a client's setting under the name a connector gives it; None for one Kafka does not know."""
    return _definitions(client).get(setting)


def shown(client: str, setting: str, value: str | None) -> str | None:
    """A value as a validation shows it.

    Raises:
        OverrideError: It is not of its type.
    """
    key = definition(client, setting)
    if key is None or value is None:
        return value
    if key.type is ConfigType.PASSWORD:
        return HIDDEN
    try:
        # The message names the setting as the client does, without the prefix.
        return as_text(ConfigKey(setting, key.type).parse(value))
    except ConfigError as error:
        raise OverrideError(error.message, key=key.name) from error


@cache
def _definitions(client: str) -> dict[str, ConfigKey]:
    return {
        name: ConfigKey(
            f"{client}.override.{name}",
            ConfigType[type_],
            default[0] if default else None,
            required=not default,
            importance=Importance[importance],
            documentation=f"Setting {name} of the connector's {client}, in the place of the worker's.",
            display_name=name,
        )
        for name, (type_, importance, *default) in json.loads(_TABLE.read_text())[client].items()
    }
