"""Runs one command so that nothing it starts can escape being counted or outlive the harness.

The keeper is a child subreaper: a process whose parent dies becomes the keeper's child instead of init's, so the whole
tree, and the CPU time of everything in it that has ended, stays below one process id. When the harness dies the
keeper gets SIGTERM; when the command ends, what is left of the tree is killed and named on stderr.

Used as a script, alone: it must not import anything of this package, because it is started with `python -I -S`.
"""

from __future__ import annotations

import ctypes
import os
import signal
import sys
import time
from pathlib import Path
from types import FrameType

PR_SET_PDEATHSIG = 1
PR_SET_CHILD_SUBREAPER = 36
GRACE_SECONDS = 1.0
"""What ends by itself this soon after the command was only a little late."""

LEFTOVER_SECONDS = 2.0
POLL_SECONDS = 0.05


def children_of(parent: int) -> list[int]:
    """The direct children of a process, from the parent id in every /proc/<pid>/stat."""
    found = []
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit():
            continue
        try:
            fields = (entry / "stat").read_text().rpartition(")")[2].split()
        except OSError:
            continue
        if int(fields[1]) == parent and fields[0] != "Z":
            found.append(int(entry.name))
    return found


def wait_for(child: int) -> int:
    """Collects whatever ends, own child or adopted orphan, until the child has; its exit code."""
    while True:
        pid, status = os.waitpid(-1, 0)
        if pid == child:
            return os.waitstatus_to_exitcode(status)


def reap() -> None:
    """Collects what has ended, without waiting."""
    try:
        while os.waitpid(-1, os.WNOHANG)[0] != 0:
            pass
    except ChildProcessError:
        return


def kill_leftovers() -> None:
    """Kills what the command left behind, telling which; orphans adopted on the way are killed too."""
    grace = time.monotonic() + GRACE_SECONDS
    while children_of(os.getpid()) and time.monotonic() < grace:
        time.sleep(POLL_SECONDS)
        reap()
    deadline = time.monotonic() + LEFTOVER_SECONDS
    while time.monotonic() < deadline:
        left = children_of(os.getpid())
        if not left:
            return
        for pid in left:
            try:
                command = " ".join(Path(f"/proc/{pid}/cmdline").read_text(errors="replace").replace("\0", " ").split())
                print(f"keeper: left behind and killed: {pid} {command[:300]}", file=sys.stderr, flush=True)
                os.kill(pid, signal.SIGKILL)
            except OSError:
                continue
        time.sleep(POLL_SECONDS)
        reap()


def main(argv: list[str]) -> int:
    """Runs `argv` to its end and gives its exit code."""
    libc = ctypes.CDLL(None, use_errno=True)
    libc.prctl(PR_SET_PDEATHSIG, signal.SIGTERM)
    libc.prctl(PR_SET_CHILD_SUBREAPER, 1)
    child = os.fork()
    if child == 0:
        os.execvp(argv[0], argv)

    def forward(number: int, _frame: FrameType | None) -> None:
        try:
            os.kill(child, number)
        except ProcessLookupError:
            return

    signal.signal(signal.SIGTERM, forward)
    signal.signal(signal.SIGINT, forward)
    code = wait_for(child)
    kill_leftovers()
    return code if code >= 0 else 128 - code


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
