"""Headers that the worker's configuration adds to answers: CORS and `response.http.headers.config`."""

from __future__ import annotations

import email.utils
import time
from collections.abc import Mapping
from dataclasses import dataclass

from starlette.datastructures import MutableHeaders

from wherry.contract.errors import ConfigError

_METHODS = ("GET", "POST", "HEAD")
_ACTIONS = ("set", "add", "setDate", "addDate")


@dataclass(frozen=True, slots=True)
class HeaderRule:
    """One action on a header; dates are offsets in ms from now."""

    action: str
    name: str
    value: str


@dataclass(frozen=True, slots=True)
class HeaderRules:
    """What to add to every answer.

    Attributes:
        allowed_origins: `access.control.allow.origin`, split; empty adds nothing.
        allowed_methods: `access.control.allow.methods`; empty means GET, POST and HEAD.
        rules: `response.http.headers.config`, parsed.
    """

    allowed_origins: tuple[str, ...] = ()
    allowed_methods: tuple[str, ...] = ()
    rules: tuple[HeaderRule, ...] = ()

    def apply(self, headers: MutableHeaders, *, asked: Mapping[str, str], method: str) -> None:
        """Add the headers to the answer to a request that came with the headers `asked`."""
        if self.allowed_origins:
            headers.append("Vary", "Origin")
        origin = asked.get("origin")
        if origin is not None and self._allows(origin):
            headers["Access-Control-Allow-Origin"] = origin
            if self.is_preflight(method, asked):
                headers["Access-Control-Allow-Methods"] = ",".join(self.allowed_methods or _METHODS)
                headers["Access-Control-Allow-Headers"] = "Content-Type"
                headers["Access-Control-Max-Age"] = "60"
        for rule in self.rules:
            value = rule.value
            if rule.action.endswith("Date"):
                value = email.utils.formatdate(time.time() + int(value) / 1000, usegmt=True)
            if rule.action.startswith("set"):
                headers[rule.name] = value
            else:
                headers.append(rule.name, value)

    def is_preflight(self, method: str, asked: Mapping[str, str]) -> bool:
        """Whether a browser asks before it sends a request from an origin that is allowed."""
        if method != "OPTIONS" or "access-control-request-method" not in asked:
            return False
        return self._allows(asked.get("origin", ""))

    def _allows(self, origin: str) -> bool:
        return "*" in self.allowed_origins or origin in self.allowed_origins


def parse_rules(text: str) -> tuple[HeaderRule, ...]:
    """Parse `response.http.headers.config`: a comma list of `action header:value`.

    Raises:
        ConfigError: A part is none.
    """
    rules = []
    for part in (part.strip() for part in text.split(",")):
        if not part:
            continue
        action, _, rest = part.partition(" ")
        name, colon, value = rest.partition(":")
        if action not in _ACTIONS or not colon or not name.strip():
            actions = ", ".join(_ACTIONS)
            raise _wrong(text, f"'{part}' is not 'action header:value' with one of the actions {actions}")
        if action.endswith("Date") and not value.strip().lstrip("-").isdigit():
            raise _wrong(text, f"{action} takes ms from now, not '{value}'")
        rules.append(HeaderRule(action, name.strip(), value.strip()))
    return tuple(rules)


def _wrong(text: str, problem: str) -> ConfigError:
    key = "response.http.headers.config"
    return ConfigError(f"Invalid value {text} for configuration {key}: {problem}.", key=key)
