"""What Wherry's own transforms have in common: the package of their names, and how their settings are read."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from wherry.contract.errors import ConfigError

OWN_PACKAGE: Final = "wherry.transforms."


def whole_number(config: Mapping[str, str], key: str, default: int, least: int, most: int) -> int:
    """Reads a setting that is a whole number.

    Raises:
        ConfigError: It is none, or out of bounds.
    """
    text = config.get(key)
    if text is None:
        return default
    try:
        value = int(text.strip())
    except ValueError:
        value = least - 1
    if not least <= value <= most:
        raise ConfigError(
            f"Invalid value {text} for configuration {key}: it must be a whole number from {least} to {most}", key=key
        )
    return value


def one_of(config: Mapping[str, str], key: str, default: str, allowed: tuple[str, ...]) -> str:
    """Reads a setting that is one of a few words.

    Raises:
        ConfigError: It is none of them.
    """
    text = config.get(key, default).strip().lower()
    if text not in allowed:
        raise ConfigError(
            f"Invalid value {config.get(key)} for configuration {key}: String must be one of: {', '.join(allowed)}",
            key=key,
        )
    return text
