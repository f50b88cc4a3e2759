"""Config providers: `${provider:path:key}` in a value stands for something kept elsewhere.

Decides what a placeholder means on this machine, with Kafka's three providers (file, directory, environment). A
provider works only when `config.providers` names it, as in Kafka Connect: whoever may create connectors could
otherwise read any file of the worker. A placeholder of an unknown provider, or of a key that is not there, stays as
it is. A provider with our own parameter `ttl.ms` gives its answers for so long only: they are asked for again, and
what has changed restarts the connector (`reload.py`).
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from wherry.contract.errors import ConfigError
from wherry.coordinator.config import properties

_PLACEHOLDER = re.compile(r"\$\{([^}]*?):(([^}]*?):)?([^}]*?)\}")
_FILE = "org.apache.kafka.common.config.provider.FileConfigProvider"
_DIRECTORY = "org.apache.kafka.common.config.provider.DirectoryConfigProvider"
_ENVIRONMENT = "org.apache.kafka.common.config.provider.EnvVarConfigProvider"
SECRET_FILE_BYTES_MAX = 1024 * 1024

TTL_PARAMETER = "ttl.ms"
TTL_MS_MIN = 1000

# Takes path and key and answers the value, or None when it has none.
_Read = Callable[[str, str], str | None]


class ProviderError(ConfigError):
    """A provider could not read what a placeholder names."""


@dataclass(frozen=True, slots=True)
class Provider:
    """One provider.

    Attributes:
        read: Answers a value.
        ttl_ms: How long an answer holds; None is for ever.
    """

    read: _Read
    ttl_ms: int | None = None


@dataclass(frozen=True, slots=True)
class Resolved:
    """Values with placeholders filled in, what was filled in where, and how long that holds (None: for ever)."""

    values: Mapping[str, str]
    placeholders: Mapping[str, str]
    ttl_ms: int | None = None

    def hide(self, key: str, text: str) -> str:
        """A text about a key's value with the placeholder in place of what it stands for."""
        placeholder = self.placeholders.get(key)
        return text if placeholder is None else text.replace(self.values[key], placeholder)


class Providers:
    """The providers of one worker; immutable, for use by many threads."""

    def __init__(self, providers: Mapping[str, Provider] | None = None) -> None:
        self._providers = dict(providers or {})

    @classmethod
    def configured(cls, values: Mapping[str, str], environ: Mapping[str, str] | None = None) -> Providers:
        """The providers that `config.providers` names.

        Raises:
            ConfigError: A provider has no class, or one that is not Kafka's.
        """
        environment = os.environ if environ is None else environ
        found: dict[str, Provider] = {}
        for name in (part.strip() for part in values.get("config.providers", "").split(",")):
            if name:
                found[name] = _make(name, values, environment)
        return cls(found)

    def resolve(self, values: Mapping[str, str]) -> Resolved:
        """Fill in all placeholders.

        Raises:
            ProviderError: A file or folder that a placeholder names cannot be read.
        """
        if not self._providers:
            return Resolved(values, {})
        resolved = {key: _PLACEHOLDER.sub(self._replace, value) for key, value in values.items()}
        filled = {key: values[key] for key in values if resolved[key] != values[key]}
        used = {match[1] for value in values.values() for match in _PLACEHOLDER.finditer(value)}
        times = [each.ttl_ms for name, each in self._providers.items() if name in used and each.ttl_ms is not None]
        return Resolved(resolved, filled, min(times, default=None))

    @property
    def ttl_ms(self) -> int | None:
        """The shortest time that any provider's answers hold; None when all hold for ever."""
        return min((each.ttl_ms for each in self._providers.values() if each.ttl_ms is not None), default=None)

    def _replace(self, match: re.Match[str]) -> str:
        provider = self._providers.get(match[1])
        value = provider.read(match[3] or "", match[4]) if provider else None
        return match[0] if value is None else value


def _make(name: str, values: Mapping[str, str], environ: Mapping[str, str]) -> Provider:
    prefix = f"config.providers.{name}"
    class_name = values.get(f"{prefix}.class", "").strip()
    if class_name in (_FILE, _DIRECTORY):
        allowed = _allowed(values.get(f"{prefix}.param.allowed.paths", ""), f"{prefix}.param.allowed.paths")
        read_file = _read_properties if class_name == _FILE else _read_directory
        read: _Read = lambda path, key: read_file(_checked(path, allowed), key)  # noqa: E731
    elif class_name == _ENVIRONMENT:
        read = _environment_reader(values, f"{prefix}.param.allowlist.pattern", environ)
    else:
        known, shown = ", ".join((_FILE, _DIRECTORY, _ENVIRONMENT)), class_name or "null"
        raise ConfigError(
            f"Invalid value {shown} for configuration {prefix}.class: Class {shown} could not be found. Known config "
            f"providers: {known}.",
            key=f"{prefix}.class",
        )
    return Provider(read, _ttl_ms(values, f"{prefix}.param.{TTL_PARAMETER}"))


def _allowed(value: str, key: str) -> list[Path]:
    """The folders and files that may be read; none is any."""
    paths = [Path(part.strip()) for part in value.split(",") if part.strip()]
    for path in paths:
        if not path.is_absolute():
            raise ConfigError(f"Path {path} is not absolute ({key})", key=key)
        if not path.exists():
            raise ConfigError(f"Path {path} does not exist ({key})", key=key)
    return paths


def _environment_reader(values: Mapping[str, str], key: str, environ: Mapping[str, str]) -> _Read:
    pattern_text = values.get(key)
    try:
        pattern = re.compile(".*" if pattern_text is None else pattern_text)
    except re.error as error:
        raise ConfigError(
            f"Invalid value {pattern_text} for configuration {key}: Invalid regex: {error}", key=key
        ) from None

    def read(path: str, name: str) -> str | None:
        if path:
            raise ProviderError(f"Path is not supported for EnvVarConfigProvider, invalid value '{path}'")
        return environ.get(name) if pattern.fullmatch(name) else None

    return read


def _ttl_ms(values: Mapping[str, str], key: str) -> int | None:
    text = values.get(key, "").strip()
    if not text:
        return None
    if not text.isdecimal() or int(text) < TTL_MS_MIN:
        raise ConfigError(
            f"Invalid value {text} for configuration {key}: milliseconds are expected, at least {TTL_MS_MIN}.", key=key
        )
    return int(text)


def _checked(path: str, allowed: list[Path]) -> Path | None:
    """The path to read; None where `allowed.paths` does not lead, as Kafka's providers answer nothing there."""
    if not path:
        return None
    real = Path(os.path.realpath(path))
    if allowed and not (
        Path(path).is_absolute() and any(real.is_relative_to(os.path.realpath(root)) for root in allowed)
    ):
        return None
    return real


def _read_properties(path: Path | None, key: str) -> str | None:
    if path is None:
        return None
    try:
        if path.stat().st_size > SECRET_FILE_BYTES_MAX:
            raise ProviderError(
                f"Could not read properties from file {path}: it is larger than {SECRET_FILE_BYTES_MAX} bytes."
            )
        # Kafka's provider reads UTF-8, though a worker file is ISO 8859-1.
        return properties.loads(path.read_text("utf-8")).get(key)
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or error
        raise ProviderError(f"Could not read properties from file {path}: {reason}.") from error
    except ProviderError:
        raise
    except ConfigError as error:
        raise ProviderError(f"Could not read properties from file {path}: {error.message}") from error


def _read_directory(path: Path | None, key: str) -> str | None:
    if path is None:
        return None
    file = path / key
    # A key is the name of a file of that folder; it may not lead elsewhere.
    if not key or Path(key).name != key:
        return None
    try:
        if not file.is_file():
            return None
        if file.stat().st_size > SECRET_FILE_BYTES_MAX:
            raise ProviderError(f"Could not read file {file}: it is larger than {SECRET_FILE_BYTES_MAX} bytes.")
        return file.read_text("utf-8")
    except (OSError, ValueError) as error:
        raise ProviderError(f"Could not read file {file}: {error}.") from error
