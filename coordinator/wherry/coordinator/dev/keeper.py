"""Keeps one server process: starts it, passes a stop on, and ends it when the process that wanted it is gone.

Runs as a program of its own (`python -I -S keeper.py SPEC`, standard library only) between the owner and the server.
A parent-death signal set by the owner would not do: it is bound to the *thread* that forked, and would end the server
with any short-lived thread. The keeper has one thread, watches the owner by pidfd, and the server's own parent-death
signal is bound to the keeper, so that neither a killed owner nor a killed keeper leaves a server behind.
"""

from __future__ import annotations

import contextlib
import ctypes
import json
import os
import select
import shutil
import signal
import subprocess
import sys
import time
from typing import Any

PR_SET_PDEATHSIG = 1
POLL_WITHOUT_PIDFD_MS = 200


def main() -> int:
    """Run the server of the SPEC in argv to its end and return its exit code, 128 + n for signal n."""
    spec: dict[str, Any] = json.loads(sys.argv[1])
    wakeup = _catch_stop_signals()
    try:
        server = _start(spec)
    except OSError as error:
        os.write(spec["status_fd"], f"error {error.strerror}: {spec['argv'][0]}".encode())
        return 127
    os.write(spec["status_fd"], f"started {server.pid}".encode())
    os.close(spec["status_fd"])
    _wait_for_a_reason(spec["owner_pid"], server, wakeup)
    code = _end(server, spec["stop_signal"], spec["grace_s"])
    if os.getppid() != spec["owner_pid"]:
        # Nobody is left who could tidy up.
        for path in spec["remove"]:
            shutil.rmtree(path, ignore_errors=True)
    return 128 - code if code < 0 else code


def _catch_stop_signals() -> int:
    readable, writable = os.pipe()
    os.set_blocking(writable, False)
    signal.set_wakeup_fd(writable, warn_on_full_buffer=False)
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, lambda *_: None)
    return readable


def _start(spec: dict[str, Any]) -> subprocess.Popen[bytes]:
    libc = ctypes.CDLL(None) if sys.platform == "linux" else None

    def die_with_keeper() -> None:
        # Runs after the change of user, which would clear it.
        if libc is not None:
            libc.prctl(PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)

    identity = {}
    if spec["user_id"] is not None:
        identity = {"user": spec["user_id"], "group": spec["group_id"], "extra_groups": []}
    with open(spec["log_path"], "ab") as log:  # noqa: PTH123 - pathlib would double the keeper's start time
        return subprocess.Popen(
            spec["argv"],
            cwd=spec["directory"],
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            start_new_session=True,
            preexec_fn=die_with_keeper,  # safe: the keeper has a single thread
            **identity,
        )


def _wait_for_a_reason(owner_pid: int, server: subprocess.Popen[bytes], wakeup: int) -> None:
    """Return when the owner is gone, the server has ended, or a signal asks to stop."""
    poller = select.poll()
    poller.register(wakeup, select.POLLIN)
    timeout_ms: int | None = None
    for pid in (owner_pid, server.pid):
        try:
            poller.register(os.pidfd_open(pid), select.POLLIN)
        except (AttributeError, OSError):  # an old kernel, another system, or the process has gone already
            timeout_ms = POLL_WITHOUT_PIDFD_MS
    while os.getppid() == owner_pid and not _has_ended(server):
        if poller.poll(timeout_ms):
            return


def _has_ended(server: subprocess.Popen[bytes]) -> bool:
    # WNOWAIT leaves the zombie, and so its process group id, in place until the whole group has been ended.
    return os.waitid(os.P_PID, server.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None


def _end(server: subprocess.Popen[bytes], stop_signal: int, grace_s: float) -> int:
    if not _has_ended(server):
        os.kill(server.pid, stop_signal)
        _wait_for_end(server, grace_s)
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(server.pid, signal.SIGKILL)
    return server.wait()


def _wait_for_end(server: subprocess.Popen[bytes], timeout_s: float) -> None:
    deadline = time.monotonic() + timeout_s
    while not _has_ended(server) and time.monotonic() < deadline:
        time.sleep(0.01)


if __name__ == "__main__":
    sys.exit(main())
