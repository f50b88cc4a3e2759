"""What only a cluster has: records that the topics do not take, and what workers ask one another."""

from __future__ import annotations

from collections.abc import Iterator

from tests.peer.steps import SOURCE_CLASS, Ask, Settle, States, Step
from tests.peer.steps_protocol import JSON_BODY, code

LARGE = "large-{x}"
_CONFIG = {"connector.class": SOURCE_CLASS, "file": "{dir}/none", "topic": "t"}
_ABSURD = {**_CONFIG, "absurd": "x" * 2_000_000}
_SIGNATURE, _ALGORITHM = "X-Connect-Authorization", "X-Connect-Request-Signature-Algorithm"
_STOPPED = {"name": LARGE, "config": _CONFIG, "initial_state": "STOPPED"}


def _too_large() -> Iterator[Step]:
    """A configuration beyond what a record may hold: refused, and nothing of it is kept."""
    yield Ask("create too large", "POST", "/connectors", {**_STOPPED, "config": _ABSURD}, only=code)
    yield Settle()
    yield Ask("too large: not there", "GET", f"/connectors/{LARGE}")
    yield Ask("too large: no status", "GET", f"/connectors/{LARGE}/status")
    yield Ask("create large", "POST", "/connectors", _STOPPED)
    yield States(LARGE, ("STOPPED",))
    yield Ask("change to too large", "PUT", f"/connectors/{LARGE}/config", _ABSURD, only=code)
    yield Ask("patch to too large", "PATCH", f"/connectors/{LARGE}/config", {"absurd": _ABSURD["absurd"]}, only=code)
    yield Settle()
    yield Ask("too large: unchanged", "GET", f"/connectors/{LARGE}/config")
    yield Ask("delete large", "DELETE", f"/connectors/{LARGE}")


def _internal() -> Iterator[Ask]:
    """What another worker would sign."""
    signed = {**JSON_BODY, _SIGNATURE: "d3Jvbmc=", _ALGORITHM: "HmacSHA256"}
    for method, path in (("POST", "/connectors/nobody/tasks"), ("PUT", "/connectors/nobody/fence")):
        for name, headers in (
            ("unsigned", JSON_BODY),
            ("without algorithm", {**JSON_BODY, _SIGNATURE: "d3Jvbmc="}),
            ("without signature", {**JSON_BODY, _ALGORITHM: "HmacSHA256"}),
            ("wrongly signed", signed),
        ):
            yield Ask(f"internal {method} {name}", method, path, raw=b"[]", headers=headers)
        unknown = {**signed, _ALGORITHM: "HmacMD5"}
        yield Ask(f"internal {method} with an unknown algorithm", method, path, raw=b"[]", headers=unknown, only=code)


STEPS: tuple[Step, ...] = (*_too_large(), *_internal())
