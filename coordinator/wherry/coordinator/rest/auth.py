"""Names and passwords of REST clients: Kafka Connect's `BasicAuthSecurityRestExtension`.

Decides who may ask; the answer to whoever may not is the real worker's. Names come from a properties file that the
entry `KafkaConnect` of a JAAS file names, as Java's option or `wherry.rest.jaas.file` says where.
"""

from __future__ import annotations

import base64
import binascii
import hmac
import re
import shlex
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from wherry.contract import jaas
from wherry.contract.errors import ConfigError
from wherry.coordinator.config import properties

EXTENSION: Final = "BasicAuthSecurityRestExtension"
MODULE: Final = "PropertyFileLoginModule"
JAAS_KEY: Final = "wherry.rest.jaas.file"
DENIED: Final = "User cannot access the resource."
_KEY: Final = "rest.extension.classes"
_ENTRY: Final = re.compile(r"\bKafkaConnect\s*\{(.*?)\}\s*;", re.DOTALL)
_JAVA_OPTION: Final = "-Djava.security.auth.login.config="
_OPTIONS_VARIABLES: Final = ("KAFKA_OPTS", "JAVA_TOOL_OPTIONS", "JDK_JAVA_OPTIONS")
JAAS_BYTES_MAX: Final = 1024 * 1024


@dataclass(frozen=True, slots=True)
class BasicAuth:
    """The names and passwords that are let in."""

    users: Mapping[str, str] = field(repr=False)

    def allows(self, header: str | None) -> bool:
        """Whether an `Authorization` header is that of a user."""
        scheme, _, credentials = (header or "").strip().partition(" ")
        if scheme.lower() != "basic":
            return False
        try:
            name, colon, password = base64.b64decode(credentials.strip(), validate=True).decode().partition(":")
        except (binascii.Error, UnicodeDecodeError):
            return False
        wanted = self.users.get(name)
        # Compared in any case, so that the time taken does not tell which names there are.
        same = hmac.compare_digest(password.encode(), (wanted or "").encode())
        return bool(colon) and wanted is not None and same


def configured(extensions: list[str], values: Mapping[str, str], environ: Mapping[str, str]) -> BasicAuth | None:
    """What `rest.extension.classes` asks for; None when it names nothing.

    Raises:
        ConfigError: It names another extension, or its JAAS file or user file is missing, wrong or empty.
    """
    for name in extensions:
        if name.rpartition(".")[2] != EXTENSION:
            # Whoever names an extension counts on it, mostly for passwords: without it a door would stand open.
            raise ConfigError(
                f"Invalid value {','.join(extensions)} for configuration {_KEY}: {name} is Java code, which does not "
                f"run here. Kafka's {EXTENSION} does; for others put a proxy in front.",
                key=_KEY,
            )
    if not extensions:
        return None
    path = values.get(JAAS_KEY) or _from_java(environ)
    if not path:
        raise ConfigError(
            f"{_KEY} asks for names and passwords, but no JAAS file says where they are: set {JAAS_KEY}, or "
            f"KAFKA_OPTS={_JAVA_OPTION}FILE.",
            key=JAAS_KEY,
        )
    return BasicAuth(_users(_users_file(path)))


def _from_java(environ: Mapping[str, str]) -> str:
    for variable in _OPTIONS_VARIABLES:
        try:
            options = shlex.split(environ.get(variable, ""))
        except ValueError:
            continue
        for option in options:
            if option.startswith(_JAVA_OPTION):
                return option.removeprefix(_JAVA_OPTION).removeprefix("=")
    return ""


def _users_file(path: str) -> str:
    try:
        with Path(path).open("rb") as file:
            text = file.read(JAAS_BYTES_MAX).decode()
    except (OSError, UnicodeDecodeError) as error:
        raise _wrong(f"The JAAS file {path} cannot be read: {getattr(error, 'strerror', None) or error}.") from error
    entry = _ENTRY.search(text)
    if entry is None:
        raise _wrong(f"The JAAS file {path} has no entry KafkaConnect {{ … }};")
    try:
        module = jaas.parse(entry[1].strip())
    except ConfigError as error:
        raise _wrong(f'The entry KafkaConnect of {path} is not: {MODULE} required file="…";') from error
    if module.simple_name != MODULE:
        raise _wrong(f"The entry KafkaConnect of {path} names {module.name}, which is Java code: {MODULE} is expected.")
    file_name = module.options.get("file", "")
    if not file_name:
        raise _wrong(f'The entry KafkaConnect of {path} has no file="…" with names and passwords.')
    return file_name


def _users(path: str) -> dict[str, str]:
    users = properties.load(Path(path))
    if not users:
        # Kafka Connect lets everybody in then.
        raise _wrong(f"{path} holds no names and passwords, so that nobody could be let in: add name=password lines.")
    return dict(users)


def _wrong(message: str) -> ConfigError:
    return ConfigError(message, key=JAAS_KEY)
