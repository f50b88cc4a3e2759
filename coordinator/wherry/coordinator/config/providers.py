"""Config providers: `${provider:path:key}` in a value stands for something kept elsewhere.

Decides what a placeholder means on this machine, with Kafka's three providers (file, directory, environment). A
provider works only when `config.providers` names it, as in Kafka Connect: whoever may create connectors could
otherwise read any file of the worker. A placeholder of an unknown provider, or of a key that is not there, stays as
it is.
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

# A provider takes path and key and answers the value, or None when it has none.
_Provider = Callable[[str, str], str | None]


class ProviderError(ConfigError):
    """A provider could not read what a placeholder names."""


@dataclass(frozen=True, slots=True)
class Resolved:
    """Values with placeholders filled in, and what was filled in where."""

    values: Mapping[str, str]
    placeholders: Mapping[str, str]

    def hide(self, key: str, text: str) -> str:
        """A text about a key's value with the placeholder in place of what it stands for."""
        placeholder = self.placeholders.get(key)
        return text if placeholder is None else text.replace(self.values[key], placeholder)


class Providers:
    """The providers of one worker; immutable, for use by many threads."""

    def __init__(self, providers: Mapping[str, _Provider] | None = None) -> None:
        self._providers = dict(providers or {})

    @classmethod
    def configured(cls, values: Mapping[str, str], environ: Mapping[str, str] | None = None) -> Providers:
        """The providers that `config.providers` names.

        Raises:
            ConfigError: A provider has no class, or one that is not Kafka's.
        """
        environment = os.environ if environ is None else environ
        found: dict[str, _Provider] = {}
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
        return Resolved(resolved, {key: values[key] for key in values if resolved[key] != values[key]})

    def _replace(self, match: re.Match[str]) -> str:
        provider = self._providers.get(match[1])
        value = provider(match[3] or "", match[4]) if provider else None
        return match[0] if value is None else value


def _make(name: str, values: Mapping[str, str], environ: Mapping[str, str]) -> _Provider:
    prefix = f"config.providers.{name}"
    class_name = values.get(f"{prefix}.class", "").strip()
    if class_name in (_FILE, _DIRECTORY):
        allowed = [Path(part.strip()) for part in values.get(f"{prefix}.param.allowed.paths", "").split(",") if part]
        read = _read_properties if class_name == _FILE else _read_directory
        return lambda path, key: read(_checked(path, allowed), key)
    if class_name == _ENVIRONMENT:
        pattern = re.compile(values.get(f"{prefix}.param.allowlist.pattern") or ".*")
        return lambda path, key: environ.get(key) if pattern.fullmatch(key) else None
    known = ", ".join((_FILE, _DIRECTORY, _ENVIRONMENT))
    raise ConfigError(
        f"Invalid value {class_name or 'null'} for configuration {prefix}.class: Class {class_name or 'null'} could "
        f"not be found. Known config providers: {known}.",
        key=f"{prefix}.class",
    )


def _checked(path: str, allowed: list[Path]) -> Path | None:
    """The path to read; None where `allowed.paths` does not lead, as Kafka's providers answer nothing there."""
    if not path:
        return None
    real = Path(os.path.realpath(path))
    if allowed and not any(real.is_relative_to(os.path.realpath(root)) for root in allowed):
        return None
    return real


def _read_properties(path: Path | None, key: str) -> str | None:
    if path is None:
        return None
    try:
        return properties.load(path).get(key)
    except ConfigError as error:
        raise ProviderError(f"Could not read properties from file {path}: {error.message}") from error


def _read_directory(path: Path | None, key: str) -> str | None:
    if path is None:
        return None
    file = path / key
    # A key is the name of a file of that folder; it may not lead elsewhere.
    if not key or Path(key).name != key or not file.is_file():
        return None
    try:
        if file.stat().st_size > SECRET_FILE_BYTES_MAX:
            raise ProviderError(f"Could not read file {file}: it is larger than {SECRET_FILE_BYTES_MAX} bytes.")
        return file.read_text("utf-8")
    except (OSError, ValueError) as error:
        raise ProviderError(f"Could not read file {file}: {error}.") from error
