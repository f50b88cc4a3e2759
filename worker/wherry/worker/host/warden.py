"""Cleans up after a host that was killed: `python -I -S warden.py DIRECTORY SOCKET`, standard library only.

A parent-death signal reaches a sidecar but not what the sidecar itself has started, and nobody would remove its
sockets. The warden has one thread and one pipe, whose other end only the host holds. The host tells it the process
group of every sidecar; when the pipe closes, the warden kills the groups that are left and removes the sockets.
"""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import sys
import time
from pathlib import Path

LOOKS_MAX = 20
LOOK_PAUSE_S = 0.05


def main() -> None:
    """Follow the host until it is gone, then clean up."""
    # The host decides when this ends; a signal to the whole terminal must not.
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    groups: set[int] = set()
    for line in sys.stdin:
        sign, number_text = line[0], line[1:].strip()
        if sign == "+":
            groups.add(int(number_text))
        elif sign == "-":
            groups.discard(int(number_text))
    for group in groups:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(group, signal.SIGKILL)
    directory, host_socket = Path(sys.argv[1]), Path(sys.argv[2])
    for _ in range(LOOKS_MAX):
        # What was killed a moment ago may still be accepting; a host that was started anew serves at the same place.
        for path in [*directory.glob("*.sock"), host_socket]:
            if not _is_served(path):
                path.unlink(missing_ok=True)
        with contextlib.suppress(OSError):
            directory.rmdir()
        if not directory.exists() and not host_socket.exists():
            return
        time.sleep(LOOK_PAUSE_S)


def _is_served(path: Path) -> bool:
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe:
        probe.settimeout(1.0)
        try:
            probe.connect(str(path))
        except OSError:
            return False
    return True


if __name__ == "__main__":
    main()
