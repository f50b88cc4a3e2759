"""How a host has sidecars forked from a process that has loaded the plugin already: one request, one answer.

Both ends of a socket pair (SOCK_SEQPACKET, so a message stays one) speak this; the plugin's end comes by descriptor in
`WHERRY_FORK_FD`. The plugin says READY, or why it can't be forked. Each request carries one descriptor, where the new
process prints; the new process itself answers, with its process id. Standard library only.
"""

from __future__ import annotations

import json
import socket
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

FORK_FD: Final = "WHERRY_FORK_FD"
MESSAGE_BYTES_MAX: Final = 64 * 1024
READY: Final = b"ready"


@dataclass(frozen=True, slots=True)
class ForkRequest:
    """What one forked sidecar has of its own.

    Attributes:
        parent_pid: Process that shall be its parent: the host.
        environment: Variables that it has and its siblings have not.
        cpus: CPUs it may run on; empty means all.
    """

    parent_pid: int
    environment: Mapping[str, str] = field(default_factory=dict)
    cpus: tuple[int, ...] = ()

    def encode(self) -> bytes:
        """Returns the message."""
        members = {"parent_pid": self.parent_pid, "environment": dict(self.environment), "cpus": list(self.cpus)}
        return json.dumps(members).encode()

    @classmethod
    def decode(cls, message: bytes) -> ForkRequest:
        """Returns the request of a message."""
        members = json.loads(message)
        return cls(int(members["parent_pid"]), members["environment"], tuple(members["cpus"]))


def pair() -> tuple[socket.socket, socket.socket]:
    """Returns the two ends."""
    return socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)


def send_request(control: socket.socket, request: ForkRequest, output_fd: int) -> None:
    """Asks for a process that prints to a descriptor."""
    socket.send_fds(control, [request.encode()], [output_fd])


def receive_request(control: socket.socket) -> tuple[ForkRequest, int] | None:
    """Waits for a request and its descriptor; None when the host has closed its end."""
    message, descriptors, _, _ = socket.recv_fds(control, MESSAGE_BYTES_MAX, 1)
    if not message or not descriptors:
        return None
    return ForkRequest.decode(message), descriptors[0]
