"""Sidecars forked from a process that has loaded the plugin's code: what `serve` does first when the host asks for it.

The process that was started never serves; it forks whenever the host wants a sidecar, and only the forked ones go on.
A sidecar so begins within milliseconds instead of after half a second of imports, and shares the memory of what was
imported. It is handed to the host as its child (forked twice, the host being the reaper of orphans), with a session,
an output and a parent-death signal of its own, so that nothing which happens to the process it came from, or to
its siblings, reaches it. Limits set before are inherited.

Invariants: only a process of one thread is forked; no gRPC object has been made in it.
"""

from __future__ import annotations

import contextlib
import ctypes
import gc
import os
import signal
import socket
import sys
import time
from pathlib import Path
from typing import Final

from wherry.contract.forking import FORK_FD, READY, ForkRequest, receive_request

PR_SET_PDEATHSIG: Final = 1
ADOPTION_TIMEOUT_S: Final = 5.0
_ADOPTION_POLL_S: Final = 0.0005
THREAD_NAME_WAIT_S: Final = 0.5
THREAD_NAME_POLL_S: Final = 0.005
_STDOUT, _STDERR = 1, 2
# Threads of libraries that see to forks themselves: Arrow's allocator gives memory back by one.
_FORK_SAFE_THREADS: Final = frozenset({"jemalloc_bg_thd"})


def fork_if_asked() -> None:
    """Serves the host's requests for forks where there may be any; returns in a process that is to be a sidecar."""
    number = os.environ.pop(FORK_FD, "")
    if not number:
        return
    with socket.socket(fileno=int(number)) as control:
        control.set_inheritable(False)
        threads = _other_threads(Path("/proc/self/task"))
        patience = time.monotonic() + THREAD_NAME_WAIT_S
        while threads and time.monotonic() < patience:
            # A thread has the name of its process until it has given itself another.
            time.sleep(THREAD_NAME_POLL_S)
            threads = _other_threads(Path("/proc/self/task"))
        if threads:
            control.send(f"it runs threads before it serves: {', '.join(threads)}".encode())
            os._exit(0)
        # What is there now stays and is shared: a collection that looked at it would copy the pages it is on.
        gc.collect()
        gc.freeze()
        control.send(READY)
        while True:
            asked = receive_request(control)
            if asked is None:
                os._exit(0)  # the host has ended, or wants no more
            request, output_fd = asked
            if _forked(output_fd):
                _become(request, output_fd, control)
                return


def _other_threads(tasks: Path) -> list[str]:
    """Returns the names of threads that a fork would lose, the main one left out."""
    others = [task for task in tasks.iterdir() if task.name != str(os.getpid())]
    names = [(task / "comm").read_text().strip() for task in others]
    return sorted(name for name in names if name not in _FORK_SAFE_THREADS)


def _forked(output_fd: int) -> bool:
    """Forks twice; True in the new process, which is nobody's child yet."""
    sys.stdout.flush()
    sys.stderr.flush()
    between = os.fork()
    if between == 0:
        if os.fork():
            os._exit(0)
        return True
    os.close(output_fd)
    os.waitpid(between, 0)
    return False


def _become(request: ForkRequest, output_fd: int, control: socket.socket) -> None:
    """Gets everything of a sidecar's own, then tells the host."""
    os.setsid()
    for number in (_STDOUT, _STDERR):
        os.dup2(output_fd, number)
    os.close(output_fd)
    if request.cpus:
        with contextlib.suppress(OSError):
            os.sched_setaffinity(0, request.cpus)
    os.environ.update(request.environment)
    deadline = time.monotonic() + ADOPTION_TIMEOUT_S
    while os.getppid() != request.parent_pid and time.monotonic() < deadline:
        time.sleep(_ADOPTION_POLL_S)
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    if os.getppid() != request.parent_pid:
        os._exit(1)  # the host has ended meanwhile
    try:
        control.send(str(os.getpid()).encode())
    except OSError:
        os._exit(1)  # nobody waits for it any more
