"""Prepares a fresh process and becomes the sidecar: `python -I -S shim.py SPEC`, standard library only.

What has to happen between fork and exec happens here and not in a `preexec_fn`, because the host has many threads and
a forked copy of them may deadlock before it execs. The spec is JSON without secrets; it is gone from the process list
when the sidecar runs.
"""

from __future__ import annotations

import contextlib
import ctypes
import json
import os
import resource
import signal
import sys
from pathlib import Path
from typing import Any

PR_SET_PDEATHSIG = 1
EXIT_CANNOT_RUN = 127
# The kernel's own out-of-memory killer takes a sidecar before a coordinator, a broker or a worker.
OOM_SCORE = "600"


def main() -> None:
    """Set limits, then exec."""
    spec: dict[str, Any] = json.loads(sys.argv[1])
    # The signal is bound to the thread that forked us: the host forks from one thread that lives as long as it does.
    ctypes.CDLL(None, use_errno=True).prctl(PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    if os.getppid() != spec["parent_pid"]:
        sys.exit("the sidecar host ended while it was starting this sidecar")
    with contextlib.suppress(OSError):
        Path("/proc/self/oom_score_adj").write_text(OOM_SCORE)
    _limit(resource.RLIMIT_CORE, 0)
    _limit(resource.RLIMIT_NOFILE, spec["open_files_max"])
    # Data, not address space: Go, Java and gRPC reserve far more addresses than they ever touch.
    _limit(resource.RLIMIT_DATA, spec["data_bytes_max"])
    if spec["cpus"]:
        with contextlib.suppress(OSError):
            os.sched_setaffinity(0, spec["cpus"])
    argv: list[str] = spec["argv"]
    try:
        os.chdir(spec["directory"])
        os.execve(spec["program"], argv, dict(os.environ))  # noqa: S606 - becoming the sidecar is the point
    except OSError as error:
        sys.stderr.write(f"{spec['program']} cannot be run: {error.strerror}\n")
        sys.stderr.flush()
        os._exit(EXIT_CANNOT_RUN)


def _limit(kind: int, value: int) -> None:
    """Lower one limit, 0 meaning as inherited; never above what we may set."""
    if kind != resource.RLIMIT_CORE and not value:
        return
    _, hard = resource.getrlimit(kind)
    if hard != resource.RLIM_INFINITY:
        value = min(value, hard)
    with contextlib.suppress(OSError, ValueError):
        resource.setrlimit(kind, (value, value))


if __name__ == "__main__":
    main()
