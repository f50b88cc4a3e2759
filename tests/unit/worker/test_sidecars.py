"""Who starts the sidecar host of an executor, and who waits for it."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from wherry.worker import executor, sidecars

EXECUTOR, OTHER = 40_001, 40_002
HOLDER = """
import fcntl, sys
lock = open(sys.argv[1], "a")
fcntl.lockf(lock, fcntl.LOCK_EX, 1, int(sys.argv[2]))
print("held", flush=True)
sys.stdin.read()
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where hosts of executors have their sockets; the process asking belongs to EXECUTOR."""
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    monkeypatch.setattr(executor, "pid", lambda: EXECUTOR)
    folder = tmp_path / f"wherry-{os.geteuid()}"
    folder.mkdir()
    return folder


def _listen(path: Path) -> socket.socket:
    server = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    server.bind(str(path))
    server.listen()
    return server


def _holder(folder: Path, executor_pid: int) -> subprocess.Popen[bytes]:
    """A process that starts the host of an executor, and does not come to an end with it."""
    holder = subprocess.Popen(
        [sys.executable, "-c", HOLDER, str(folder / "host.lock"), str(executor_pid)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    assert holder.stdout is not None
    assert holder.stdout.readline() == b"held\n"
    return holder


def test_a_host_that_runs_is_found_while_another_starts_it_once_more(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sidecars, "_start_host", lambda *_: pytest.fail("it runs already"))
    with _listen(folder / f"host-{EXECUTOR}.sock"), _holder(folder, EXECUTOR):
        assert sidecars.own_host_endpoint() == f"unix://{folder}/host-{EXECUTOR}.sock"


def test_a_host_is_started_while_that_of_another_executor_takes_its_time(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    started: list[tuple[Path, int]] = []
    monkeypatch.setattr(sidecars, "_start_host", lambda *arguments: started.append(arguments))
    with _holder(folder, OTHER):
        sidecars.own_host_endpoint()
    assert started == [(folder / f"host-{EXECUTOR}.sock", EXECUTOR)]


def test_a_host_is_started_once_for_several_workers_of_an_executor(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    served: list[socket.socket] = []

    def start(path: Path, executor_pid: int) -> None:
        del executor_pid
        served.append(_listen(path))

    monkeypatch.setattr(sidecars, "_start_host", start)
    assert sidecars.own_host_endpoint() == sidecars.own_host_endpoint()
    assert len(served) == 1
    served[0].close()
