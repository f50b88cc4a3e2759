"""Connector files of the standalone command: `.properties`, a flat JSON map, or `{name, config, initial_state}`.

Told apart by content, as Kafka Connect does, not by name.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from wherry.contract.errors import ConfigError
from wherry.coordinator.api import TargetState
from wherry.coordinator.config import properties

_INITIAL_STATES = {"RUNNING": TargetState.STARTED, "PAUSED": TargetState.PAUSED, "STOPPED": TargetState.STOPPED}


@dataclass(frozen=True, slots=True)
class ConnectorFile:
    """A connector as a file asks for it."""

    path: Path
    name: str
    config: Mapping[str, str]
    initial_state: TargetState | None = None


def load(path: Path) -> ConnectorFile:
    """Read a connector file.

    Raises:
        ConfigError: The file cannot be read, is neither form, or names no connector.
    """
    try:
        start = path.read_bytes()
    except FileNotFoundError:
        raise ConfigError(f"The connector file {path} does not exist.") from None
    except OSError as error:
        raise ConfigError(f"The connector file {path} cannot be read: {error.strerror or error}.") from None
    if not start.removeprefix(b"\xef\xbb\xbf").lstrip().startswith(b"{"):
        return _named(path, properties.load(path), None)
    try:
        # Numbers keep their spelling, as configuration values are texts.
        value = json.loads(start.decode("utf-8-sig"), parse_int=str, parse_float=str)
    except ValueError as error:
        raise ConfigError(f"The connector file {path} is not valid JSON: {error}.") from None
    if isinstance(value.get("config"), dict):
        return _request(path, value)
    return _named(path, _texts(path, value), None)


def _request(path: Path, value: dict[str, Any]) -> ConnectorFile:
    config = _texts(path, value["config"])
    name = value.get("name", config.get("name"))
    if name is not None and config.get("name", name) != name:
        raise ConfigError(
            f"The connector file {path} has two names: '{name}' and, within config, '{config['name']}'. Leave one out."
        )
    state = value.get("initial_state")
    if state is not None and str(state).upper() not in _INITIAL_STATES:
        raise ConfigError(
            f"The connector file {path} has the initial_state '{state}': one of {', '.join(_INITIAL_STATES)} is right."
        )
    given = config if name is None else {**config, "name": str(name)}
    return _named(path, given, None if state is None else _INITIAL_STATES[str(state).upper()])


def _named(path: Path, config: dict[str, str], state: TargetState | None) -> ConnectorFile:
    name = config.get("name", "").strip()
    if not name:
        raise ConfigError(f"Connector configuration at '{path}' is missing the mandatory 'name' configuration")
    return ConnectorFile(path, name, config, state)


def _texts(path: Path, values: Mapping[str, Any]) -> dict[str, str]:
    texts = {}
    for key, value in values.items():
        if isinstance(value, (dict, list)) or value is None:
            raise ConfigError(f"The connector file {path} has no text, number or boolean at '{key}'.")
        texts[key] = ("true" if value else "false") if isinstance(value, bool) else str(value)
    return texts
