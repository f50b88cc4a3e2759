"""Serves the REST API in a thread of its own, so that neither Spark nor a sidecar ever holds an answer back.

Sockets are bound in the caller's thread first: a taken port is told before anything else starts.
"""

from __future__ import annotations

import errno
import logging
import socket
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass
from urllib.parse import urlsplit

import uvicorn

from wherry.contract.errors import ConfigError
from wherry.coordinator.rest.app import App

START_DEADLINE_S = 10.0
STOP_DEADLINE_S = 2.0
KEEP_ALIVE_S = 90
BACKLOG = 512


@dataclass(frozen=True, slots=True)
class Listener:
    """Where to listen; an empty host is all interfaces, port 0 a free one."""

    host: str
    port: int

    @classmethod
    def parse(cls, text: str) -> Listener:
        """Read one entry of `listeners`.

        Raises:
            ConfigError: It is no `http://host:port`.
        """
        wanted = f"Invalid value {text} for configuration listeners: http://host:port is expected"
        try:
            parts = urlsplit(text.strip())
            port = parts.port
        except ValueError as error:
            raise ConfigError(f"{wanted} ({error}).", key="listeners") from None
        if parts.scheme.lower() == "https":
            raise ConfigError(
                f"Invalid value {text} for configuration listeners: https is not served by this release; put a proxy "
                "that ends TLS in front, and listen on http.",
                key="listeners",
            )
        if parts.scheme.lower() != "http" or port is None:
            raise ConfigError(f"{wanted}.", key="listeners")
        return cls(parts.hostname or "", port)

    def bind(self) -> socket.socket:
        """A listening socket.

        Raises:
            ConfigError: The port is taken, or the host is none of this machine's.
        """
        everywhere = not self.host and socket.has_dualstack_ipv6()
        family = socket.AF_INET6 if everywhere or ":" in self.host else socket.AF_INET
        try:
            return socket.create_server(
                (self.host, self.port),
                family=family,
                backlog=BACKLOG,
                dualstack_ipv6=everywhere,
            )
        except OSError as error:
            where = f"{self.host or '*'}:{self.port}"
            if error.errno == errno.EADDRINUSE:
                message = f"Port {self.port} is already in use: stop what listens on {where}, or change listeners."
            else:
                message = f"Listening on {where} is not possible: {error.strerror or error}. Change listeners."
            raise ConfigError(message, key="listeners") from error


class RestServer:
    """The API on a set of bound sockets."""

    def __init__(self, app: App, sockets: Sequence[socket.socket]) -> None:
        self._sockets = list(sockets)
        self._server = uvicorn.Server(
            uvicorn.Config(
                app,
                http="httptools" if _has("httptools") else "h11",
                ws="none",
                loop="asyncio",
                lifespan="off",
                log_config=None,
                access_log=False,
                server_header=False,
                timeout_keep_alive=KEEP_ALIVE_S,
                timeout_graceful_shutdown=int(STOP_DEADLINE_S),
            )
        )
        self._thread = threading.Thread(target=self._run, name="rest", daemon=True)

    @property
    def ports(self) -> list[int]:
        """Ports listened on."""
        return [int(bound.getsockname()[1]) for bound in self._sockets]

    def start(self) -> None:
        """Start serving; returns when requests are answered."""
        self._thread.start()
        deadline = time.monotonic() + START_DEADLINE_S
        while not self._server.started:
            if not self._thread.is_alive() or time.monotonic() > deadline:
                raise RuntimeError("The REST server did not start; the log says why.")
            time.sleep(0.005)

    def stop(self) -> None:
        """Take no more requests, let those under way end, within `STOP_DEADLINE_S`."""
        self._server.should_exit = True
        self._thread.join(STOP_DEADLINE_S + 1)
        for bound in self._sockets:
            bound.close()

    def _run(self) -> None:
        try:
            self._server.run(sockets=self._sockets)
        except Exception:
            logging.getLogger(__name__).exception("The REST server ended")


def _has(module: str) -> bool:
    import importlib.util

    return importlib.util.find_spec(module) is not None
