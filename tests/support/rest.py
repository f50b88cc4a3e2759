"""A client for the REST API that both systems speak: every call has a deadline, refusals are answers like any other."""

from __future__ import annotations

import http.client
import json
import re
import time
import urllib.parse
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from email.message import Message
from typing import Any

CALL_TIMEOUT_S = 90.0
STATE_TIMEOUT_S = 120.0
MOMENTARY = re.compile("rebalance|momentarily")
POLL_S = 0.05
JSON = {"Accept": "application/json"}
WITH_BODY = {**JSON, "Content-Type": "application/json"}


class NoAnswerError(OSError):
    """Nobody answered."""


@dataclass(frozen=True, slots=True)
class Answer:
    """What came back. `body` is the decoded JSON, the text where it is none, None where it is empty.

    Names of headers are written Like-This, whatever the server's way.
    """

    status: int
    body: Any
    headers: Mapping[str, str]


class Rest:
    """One server's REST API. Holds no connection, so it survives the server.

    Args:
        url: Where it is.
        authorization: What is sent under this name with every request that has none of its own.
    """

    def __init__(self, url: str, authorization: str | None = None) -> None:
        self.url = url.rstrip("/")
        self.authorization = authorization

    def call(
        self,
        method: str,
        path: str,
        body: Any = None,
        *,
        raw: bytes | None = None,
        headers: Mapping[str, str] | None = None,
        timeout_s: float = CALL_TIMEOUT_S,
    ) -> Answer:
        """Send one request, with a body as JSON, or `raw` as it is; a refusal is an answer too.

        `headers` are sent in the place of those that say JSON in and out.

        Raises:
            NoAnswerError: Nobody answered in time.
        """
        data = raw if raw is not None else None if body is None else json.dumps(body).encode()
        sent = {} if self.authorization is None else {"Authorization": self.authorization}
        sent |= headers if headers is not None else JSON if data is None else WITH_BODY
        # urllib would name a form as the type of a body for which nobody named one, and follow redirects.
        parts = urllib.parse.urlsplit(self.url)
        connection = http.client.HTTPConnection(parts.hostname or "", parts.port, timeout=timeout_s)
        try:
            connection.request(method, parts.path + path, data, sent)
            answer = connection.getresponse()
            return Answer(answer.status, _decoded(answer.read()), _named(answer.headers))
        except (OSError, http.client.HTTPException) as error:
            raise NoAnswerError(f"{method} {self.url}{path}: {error}") from None
        finally:
            connection.close()

    def get(self, path: str) -> Any:
        """Return the body of a GET that has to work."""
        answer = self.call("GET", path)
        assert answer.status == 200, f"GET {path} answered {answer.status}: {answer.body}"
        return answer.body

    def answers(self) -> bool:
        """Tell whether the server answers at all."""
        try:
            return self.call("GET", "/", timeout_s=2.0).status == 200
        except NoAnswerError:
            return False

    def is_healthy(self) -> bool:
        """Tell whether the server has come up in all its parts."""
        try:
            return self.call("GET", "/health", timeout_s=2.0).status == 200
        except NoAnswerError:
            return False

    def create(self, name: str, config: Mapping[str, str]) -> None:
        """Create a connector or change it."""
        path = f"/connectors/{urllib.parse.quote(name)}/config"
        answer = settled(lambda: self.call("PUT", path, dict(config)))
        assert answer.status in (200, 201), f"{name} was refused with {answer.status}: {answer.body}"

    def states(self, name: str) -> tuple[str, ...]:
        """Return the connector's state and those of its tasks; nothing while it has no status."""
        answer = self.call("GET", f"/connectors/{urllib.parse.quote(name)}/status")
        if answer.status != 200:
            return ()
        return (answer.body["connector"]["state"], *(task["state"] for task in answer.body["tasks"]))

    def wait_for_states(self, name: str, *states: str, timeout_s: float = STATE_TIMEOUT_S) -> None:
        """Wait until the connector and its tasks are in these states."""
        deadline = time.monotonic() + timeout_s
        while (found := self.states(name)) != states:
            if time.monotonic() >= deadline:
                shown = self.call("GET", f"/connectors/{urllib.parse.quote(name)}/status").body
                raise AssertionError(f"{name} is {found} after {timeout_s:.0f} s, not {states}: {shown}")
            time.sleep(POLL_S)

    def offsets(self, name: str) -> list[tuple[dict[str, Any], dict[str, Any] | None]]:
        """Return the connector's committed offsets, as (partition, offset)."""
        listed = self.get(f"/connectors/{urllib.parse.quote(name)}/offsets")["offsets"]
        return [(entry["partition"], entry["offset"]) for entry in listed]


def settled(send: Callable[[], Answer], timeout_s: float = STATE_TIMEOUT_S) -> Answer:
    """Send again while the answer is that it can't be told just now: a rebalance goes on, or news are still to read."""
    deadline = time.monotonic() + timeout_s
    while (answer := send()).status == 409 and MOMENTARY.search(str(answer.body)) and time.monotonic() < deadline:
        time.sleep(POLL_S)
    return answer


def _named(headers: Message) -> dict[str, str]:
    return {name.title(): value for name, value in headers.items()}


def _decoded(content: bytes) -> Any:
    if not content:
        return None
    try:
        return json.loads(content)
    except ValueError:
        return content.decode(errors="replace")
