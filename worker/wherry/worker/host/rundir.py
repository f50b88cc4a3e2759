"""The folder where a host keeps the sockets of its sidecars, and who may be at the other end of one.

Invariants: the folder belongs to this user and nobody else may enter it; a socket whose process is gone does not stay.
"""

from __future__ import annotations

import contextlib
import os
import socket
import stat
import struct
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from wherry.contract.errors import AuthError, ConfigError
from wherry.contract.limits import SOCKET_PATH_BYTES_MAX

CONNECT_TIMEOUT_S: Final = 1.0
_CREDENTIALS = struct.Struct("iII")
_DIRECTORY_MODE = 0o700


@dataclass(frozen=True, slots=True)
class Peer:
    """Who listens at a socket, as the kernel tells it."""

    pid: int
    user_id: int


def make_private(directory: Path) -> None:
    """Make a folder that only this user may enter, or check the one that is there.

    Raises:
        ConfigError: It can't be made, or others may enter it.
    """
    try:
        directory.mkdir(mode=_DIRECTORY_MODE, parents=True, exist_ok=True)
        status = directory.stat()
    except OSError as error:
        raise ConfigError(f"the folder {directory} for sockets cannot be made: {error.strerror}") from None
    if status.st_uid != os.geteuid() or stat.S_IMODE(status.st_mode) & 0o077:
        raise ConfigError(
            f"the folder {directory} for sockets must belong to user {os.geteuid()} alone; "
            f"it belongs to user {status.st_uid} with mode {stat.S_IMODE(status.st_mode):o}, and 700 is wanted"
        )


def claim(path: Path) -> None:
    """Remove what an earlier host left at our socket's place.

    Raises:
        ConfigError: Another host listens there.
    """
    peer = peer_of(path)
    if peer is not None:
        raise ConfigError(f"process {peer.pid} listens at {path} already; choose another socket, or end that process")
    path.unlink(missing_ok=True)


def remove_stale(directory: Path) -> None:
    """Remove the sockets in a folder that nobody listens at."""
    for path in directory.glob("*.sock"):
        if peer_of(path) is None:
            path.unlink(missing_ok=True)


def remove(directory: Path) -> None:
    """Remove a folder of sockets."""
    for path in directory.glob("*.sock"):
        path.unlink(missing_ok=True)
    with contextlib.suppress(OSError):
        directory.rmdir()


def check_socket_path(path: Path) -> None:
    """Refuse a path that the kernel would cut.

    Raises:
        ConfigError: It is too long.
    """
    length = len(os.fsencode(path))
    if length > SOCKET_PATH_BYTES_MAX:
        raise ConfigError(
            f"the socket path {path} has {length} bytes, and the system allows {SOCKET_PATH_BYTES_MAX}; "
            "choose a shorter folder"
        )


def peer_of(path: Path) -> Peer | None:
    """Return who listens at a socket, None when nobody does."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe:
        probe.settimeout(CONNECT_TIMEOUT_S)
        try:
            probe.connect(str(path))
            raw = probe.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _CREDENTIALS.size)
        except OSError:
            return None
    pid, user_id, _ = _CREDENTIALS.unpack(raw)
    return Peer(pid, user_id)


def check_peer(peer: Peer, *, session_id: int | None, what: str) -> None:
    """Refuse a listener that is not ours.

    Args:
        peer: The listener.
        session_id: Session that it must be in: that of the process which was started; None for an attached one.
        what: The sidecar, for the message.

    Raises:
        AuthError: It is of another user, or not the process that was started.
    """
    if peer.user_id not in (os.geteuid(), 0):
        raise AuthError(f"{what} is run by user {peer.user_id}, and only user {os.geteuid()} or root may serve here")
    if session_id is None:
        return
    with contextlib.suppress(ProcessLookupError):
        if os.getsid(peer.pid) != session_id:
            raise AuthError(f"process {peer.pid} listens in the place of {what}, which is process {session_id}")
