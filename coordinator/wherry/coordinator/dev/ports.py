"""TCP ports for local servers: choosing free ones and telling early that a wanted one is taken."""

from __future__ import annotations

import socket
from contextlib import ExitStack

from wherry.coordinator.dev.errors import PortTakenError

LOOPBACK = "127.0.0.1"
CONNECT_TIMEOUT_S = 0.5


def free_ports(count: int, host: str = LOOPBACK) -> list[int]:
    """Return distinct ports that nobody listens on at this moment."""
    with ExitStack() as held:
        # All are held until the last one is known, so that the system cannot hand out one of them twice.
        sockets = [held.enter_context(socket.socket(socket.AF_INET, socket.SOCK_STREAM)) for _ in range(count)]
        for each in sockets:
            each.bind((host, 0))
        return [int(each.getsockname()[1]) for each in sockets]


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
