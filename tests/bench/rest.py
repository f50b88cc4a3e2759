"""A small client for the REST API that both systems speak; every call has a deadline, every refusal is a sentence."""

from __future__ import annotations

import json
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Mapping
from typing import Any

from tests.bench import limits
from tests.bench.processes import BenchError


class Rest:
    """One worker's REST API."""

    def __init__(self, url: str) -> None:
        self.url = url.rstrip("/")

    def answers(self) -> bool:
        """Whether the API answers `GET /` now."""
        try:
            with urllib.request.urlopen(f"{self.url}/", timeout=2.0) as response:
                return bool(response.status == 200)
        except OSError:
            return False

    def wait_healthy(self) -> None:
        """Waits until `GET /health` is answered with 200: the worker can run tasks."""
        deadline = time.monotonic() + limits.SYSTEM_START_SECONDS
        while True:
            try:
                self.call("GET", "/health")
            except BenchError:
                if time.monotonic() > deadline:
                    raise
                time.sleep(0.1)
            else:
                return

    def call(self, method: str, path: str, body: object = None) -> Any:
        """Sends one request; gives the decoded answer, None for an empty one."""
        data = json.dumps(body).encode() if body is not None else None
        headers = {"Content-Type": "application/json"} if data is not None else {}
        request = urllib.request.Request(self.url + path, data=data, headers=headers, method=method)
        try:
            with urllib.request.urlopen(request, timeout=limits.REST_TIMEOUT_SECONDS) as response:
                content = response.read()
        except urllib.error.HTTPError as error:
            answer = error.read().decode(errors="replace")
            raise BenchError(f"{method} {self.url}{path} was refused with {error.code}: {answer[:600]}") from error
        except OSError as error:
            raise BenchError(f"{method} {self.url}{path} got no answer: {error}") from error
        return json.loads(content) if content else None

    def create(self, name: str, config: Mapping[str, str]) -> None:
        """Creates a connector."""
        self.patiently("POST", "/connectors", {"name": name, "config": dict(config)})

    def patiently(self, method: str, path: str, body: object = None) -> None:
        """Sends a request; a rebalance in progress (409) is waited out, as Kafka Connect asks."""
        deadline = time.monotonic() + limits.CONNECTOR_RUNNING_SECONDS
        while True:
            try:
                self.call(method, path, body)
            except BenchError as error:
                if "refused with 409" not in str(error) or time.monotonic() > deadline:
                    raise
                time.sleep(limits.PROGRESS_POLL_SECONDS)
            else:
                return

    def delete(self, name: str) -> None:
        """Deletes a connector and waits until it is gone."""
        self.call("DELETE", f"/connectors/{name}")
        deadline = time.monotonic() + limits.SYSTEM_STOP_SECONDS
        while name in self.call("GET", "/connectors"):
            if time.monotonic() > deadline:
                raise BenchError(f"Connector {name} is still listed {limits.SYSTEM_STOP_SECONDS:.0f} s after DELETE.")
            time.sleep(0.05)

    def failure(self, name: str) -> str | None:
        """The first lines of what failed in a connector or its tasks; None while nothing has."""
        try:
            status = self.call("GET", f"/connectors/{name}/status")
        except BenchError as error:
            if "refused with 404" in str(error):
                return None
            raise
        for part in [status["connector"], *status["tasks"]]:
            if part["state"] == "FAILED":
                return " | ".join(str(part.get("trace", "(no trace)")).splitlines()[:3])[:1500]
        return None

    def wait_running(self, name: str, tasks: int) -> None:
        """Waits until a connector and that many tasks are RUNNING."""

        def running() -> bool:
            status = self.call("GET", f"/connectors/{name}/status")
            parts = [status["connector"], *status["tasks"]]
            return len(status["tasks"]) >= tasks and all(part["state"] == "RUNNING" for part in parts)

        self._until(running, name)

    def _until(self, done: Callable[[], bool], name: str) -> None:
        deadline = time.monotonic() + limits.CONNECTOR_RUNNING_SECONDS
        while True:
            failure = self.failure(name)
            if failure is not None:
                raise BenchError(f"Connector {name} failed: {failure}")
            try:
                if done():
                    return
            except BenchError as error:
                if "refused with 404" not in str(error):
                    raise
            if time.monotonic() > deadline:
                raise BenchError(f"Connector {name} is not RUNNING after {limits.CONNECTOR_RUNNING_SECONDS:.0f} s.")
            time.sleep(0.1)
