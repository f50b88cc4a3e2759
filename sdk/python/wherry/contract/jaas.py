"""JAAS lines, which Java's Kafka clients take credentials from: `Module required option="value" …;`.

Decides what such a line says; which module means what to a client is `kafka_clients.py`'s affair.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from wherry.contract.errors import ConfigError

KEY: Final = "sasl.jaas.config"
_FLAGS: Final = frozenset({"required", "requisite", "sufficient", "optional"})
_EXAMPLE: Final = 'such as org.apache.kafka.common.security.plain.PlainLoginModule required username="…" password="…";'
# As Java's StreamTokenizer reads it: texts in either quotes, words, and the two signs; comments as in C.
_TOKEN: Final = re.compile(
    r"""(?P<blank>\s+|/\*.*?\*/|//[^\n]*)|(?P<sign>[=;])|"(?P<double>(?:[^"\\]|\\.)*)"|'(?P<single>(?:[^'\\]|\\.)*)'"""
    r"""|(?P<word>[^\s=;"']+)""",
    re.DOTALL,
)
_ESCAPES: Final[Mapping[str, str]] = {"n": "\n", "t": "\t", "r": "\r"}


@dataclass(frozen=True, slots=True)
class LoginModule:
    """One login module with its options.

    Attributes:
        name: Its class.
        options: As given; repr hides their values.
    """

    name: str
    options: Mapping[str, str] = field(repr=False)

    @property
    def simple_name(self) -> str:
        """The class without its package."""
        return self.name.rpartition(".")[2]

    def flag(self, option: str) -> bool:
        """Whether an option says true."""
        return self.options.get(option, "").lower() == "true"


def parse(line: str) -> LoginModule:
    """Read a line.

    Raises:
        ConfigError: It is none, or names several modules.
    """
    tokens = _tokens(line)
    if len(tokens) < 3 or tokens[-1] != (";", True):
        raise ConfigError(f"{KEY} must be one login module that ends in a semicolon, {_EXAMPLE}", key=KEY)
    if (";", True) in tokens[:-1]:
        raise ConfigError(f"{KEY} may name one login module only.", key=KEY)
    (name, _), (flag, _) = tokens[:2]
    if flag.lower() not in _FLAGS:
        raise ConfigError(f"{KEY} has '{flag}' after the login module where 'required' is expected.", key=KEY)
    options: dict[str, str] = {}
    rest = tokens[2:-1]
    for at in range(0, len(rest), 3):
        option, *value = rest[at : at + 3]
        if len(value) != 2 or value[0] != ("=", True) or option[1] or value[1][1]:
            raise ConfigError(f"{KEY} has no value for '{option[0]}': options are written name=\"value\".", key=KEY)
        options[option[0]] = value[1][0]
    return LoginModule(name, options)


def _tokens(line: str) -> list[tuple[str, bool]]:
    """Texts, each with whether it is a sign."""
    found: list[tuple[str, bool]] = []
    at = 0
    while at < len(line):
        match = _TOKEN.match(line, at)
        if match is None:
            raise ConfigError(f"{KEY} has a quote that is not closed.", key=KEY)
        at = match.end()
        match match.lastgroup:
            case "double" | "single" as quoted:
                text = re.sub(r"\\(.)", lambda escape: _ESCAPES.get(escape[1], escape[1]), match[quoted], flags=re.S)
                found.append((text, False))
            case "sign":
                found.append((match["sign"], True))
            case "word":
                found.append((match["word"], False))
    return found
