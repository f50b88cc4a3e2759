"""Serves the REST API in a thread of its own, so that neither Spark nor a sidecar ever holds an answer back.

Sockets are bound in the caller's thread first: a taken port is told before anything else starts.
"""

from __future__ import annotations

import asyncio
import errno
import logging
import socket
import ssl
import threading
import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

import uvicorn

from wherry.contract.errors import ConfigError

if TYPE_CHECKING:
    from starlette.types import Receive, Scope, Send

Application = Callable[["Scope", "Receive", "Send"], Awaitable[None]]
"""What ASGI calls an application."""

START_DEADLINE_S = 10.0
STOP_DEADLINE_S = 2.0
KEEP_ALIVE_S = 90
BACKLOG = 512


@dataclass(frozen=True, slots=True)
class Listener:
    """Where to listen; an empty host is all interfaces, port 0 a free one; secure ones speak https."""

    host: str
    port: int
    secure: bool = False

    @classmethod
    def parse(cls, text: str, *, key: str = "listeners") -> Listener:
        """Read one entry of `listeners`, or of another setting `key`.

        Raises:
            ConfigError: It is neither `http://host:port` nor `https://host:port`.
        """
        wanted = f"Invalid value {text} for configuration {key}: http://host:port or https://host:port is expected"
        try:
            parts = urlsplit(text.strip())
            port = parts.port
        except ValueError as error:
            raise ConfigError(f"{wanted} ({error}).", key=key) from None
        scheme = parts.scheme.lower()
        if scheme not in ("http", "https") or port is None:
            raise ConfigError(f"{wanted}.", key=key)
        return cls(parts.hostname or "", port, scheme == "https")

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


@dataclass(frozen=True, slots=True)
class Door:
    """A bound socket and what is served there; with a context over https."""

    app: Application
    bound: socket.socket
    context: ssl.SSLContext | None = None


class RestServer:
    """The API on a set of bound sockets, in one thread."""

    def __init__(self, doors: Sequence[Door]) -> None:
        self._doors = list(doors)
        self._servers = [_server(door) for door in self._doors]
        self._thread = threading.Thread(target=self._run, name="rest", daemon=True)

    @property
    def urls(self) -> list[str]:
        """Where it listens, one for each door."""
        return [
            f"{'http' if door.context is None else 'https'}://{_host(door.bound)}:{door.bound.getsockname()[1]}"
            for door in self._doors
        ]

    def start(self) -> None:
        """Start serving; returns when requests are answered."""
        self._thread.start()
        deadline = time.monotonic() + START_DEADLINE_S
        while not all(server.started for server in self._servers):
            if not self._thread.is_alive() or time.monotonic() > deadline:
                raise RuntimeError("The REST server did not start; the log says why.")
            time.sleep(0.005)

    def stop(self) -> None:
        """Take no more requests, let those under way end, within `STOP_DEADLINE_S`."""
        for server in self._servers:
            server.should_exit = True
        self._thread.join(STOP_DEADLINE_S + 1)
        for door in self._doors:
            door.bound.close()

    def _run(self) -> None:
        try:
            asyncio.run(self._serve())
        except Exception:
            logging.getLogger(__name__).exception("The REST server ended")

    async def _serve(self) -> None:
        await asyncio.gather(
            *(server.serve(sockets=[door.bound]) for server, door in zip(self._servers, self._doors, strict=True))
        )


def _server(door: Door) -> uvicorn.Server:
    config = uvicorn.Config(
        door.app,
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
    config.load()
    config.ssl = door.context
    return uvicorn.Server(config)


def _host(bound: socket.socket) -> str:
    host = str(bound.getsockname()[0])
    return f"[{host}]" if ":" in host else host


def _has(module: str) -> bool:
    import importlib.util

    return importlib.util.find_spec(module) is not None
