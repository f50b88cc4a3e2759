"""TCP ports for local servers: choosing free ones and telling early that a wanted one is taken."""

from __future__ import annotations

import secrets
import socket
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Final

from wherry.coordinator.dev.errors import PortTakenError

LOOPBACK = "127.0.0.1"
CONNECT_TIMEOUT_S = 0.5
LOWEST: Final = 10_240
"""Below are the ports of well-known servers."""
ATTEMPTS: Final = 50
_CLIENTS: Final = Path("/proc/sys/net/ipv4/ip_local_port_range")


def free_ports(count: int, host: str = LOOPBACK) -> list[int]:
    """Return distinct ports that nobody listens on at this moment, and that no client is given as its own meanwhile."""
    with ExitStack() as held:
        # All are held until the last one is known, so that none is chosen twice.
        return [
            _bind_one(held.enter_context(socket.socket(socket.AF_INET, socket.SOCK_STREAM)), host) for _ in range(count)
        ]


def _bind_one(one: socket.socket, host: str) -> int:
    """Bind a socket to a port below those that the system gives to clients.

    One of those may be gone before a server listens on it: another connection can get it, and a client that calls a
    server which is just being restarted can even get connected to itself.
    """
    first = _first_of_clients()
    for _ in range(ATTEMPTS if first > LOWEST else 0):
        with suppress(OSError):
            one.bind((host, LOWEST + secrets.randbelow(first - LOWEST)))
            return int(one.getsockname()[1])
    one.bind((host, 0))
    return int(one.getsockname()[1])


def _first_of_clients() -> int:
    """The first port that clients are given; 0 where the system does not say so."""
    try:
        return int(_CLIENTS.read_text().split()[0])
    except (OSError, ValueError, IndexError):
        return 0


def require_free(port: int, purpose: str, host: str = LOOPBACK) -> None:
    """Do nothing when `port` can be listened on.

    Raises:
        PortTakenError: Somebody listens there already, or this user may not.
    """
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as probe:
        # As servers do: a connection of a killed predecessor that lingers in TIME_WAIT is no hindrance.
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((host, port))
            probe.listen(1)
        except PermissionError as error:
            raise PortTakenError(
                f"Port {port} for {purpose} may not be used by this user.", "Choose a port above 1023."
            ) from error
        except (OSError, OverflowError) as error:
            raise PortTakenError(
                f"Port {port} for {purpose} is already in use on {host}.",
                "Stop what listens there, or choose another port.",
            ) from error


def accepts_connections(port: int, host: str = LOOPBACK) -> bool:
    """Tell whether somebody listens on the port."""
    try:
        with socket.create_connection((host, port), timeout=CONNECT_TIMEOUT_S):
            return True
    except OSError:
        return False


def any_accepts_connections(addresses: str) -> bool:
    """Tell whether somebody listens at one of the `host:port` addresses, written as `bootstrap.servers` is."""
    for address in addresses.split(","):
        _, _, after_scheme = address.strip().rpartition("://")
        host, _, port = after_scheme.rpartition(":")
        if port.isdecimal() and accepts_connections(int(port), host.strip("[]")):
            return True
    return False
