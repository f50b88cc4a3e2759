"""The keeper and the counting of process trees, on real but tiny processes."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.bench.processes import KEEPER, BenchError, Launched, ProcessTree, command_line

BURN = "import time\nend = time.process_time() + 0.3\nwhile time.process_time() < end: pass\n"
LINGER = BURN + "time.sleep(300)"
ORPHAN = f"import subprocess, sys\nsubprocess.Popen([sys.executable, '-c', {LINGER!r}], start_new_session=True)\n"


def wait_for(happened: Callable[[], bool], seconds: float = 60.0) -> None:
    deadline = time.monotonic() + seconds
    while not happened():
        assert time.monotonic() < deadline, "it did not happen in time"
        time.sleep(0.02)


def test_cpu_of_a_child_that_has_ended_still_counts(tmp_path: Path) -> None:
    script = f"import subprocess, sys, time\nsubprocess.run([sys.executable, '-c', {BURN!r}])\ntime.sleep(300)"
    launched = Launched([sys.executable, "-c", script], log=tmp_path / "log")
    try:
        tree = ProcessTree(launched.pid, lambda *_: "any", count_root=False)
        wait_for(lambda: tree.cpu().by_role.get("ended", 0.0) >= 0.25)
    finally:
        launched.stop()


def test_an_orphan_in_a_session_of_its_own_stays_in_the_tree(tmp_path: Path) -> None:
    middle = f"import subprocess, sys, time\nsubprocess.run([sys.executable, '-c', {ORPHAN!r}])\ntime.sleep(300)"
    launched = Launched([sys.executable, "-c", middle], log=tmp_path / "log")
    try:
        tree = ProcessTree(
            launched.pid, lambda command, _: "orphan" if "process_time" in command else "other", count_root=False
        )
        wait_for(lambda: tree.cpu().by_role.get("orphan", 0.0) >= 0.25)
    finally:
        launched.stop()


def test_what_a_command_leaves_behind_is_killed_and_named(tmp_path: Path) -> None:
    launched = Launched([sys.executable, "-c", ORPHAN], log=tmp_path / "log")
    wait_for(lambda: not launched.alive())
    (line,) = launched.leftovers()
    assert "time.sleep(300)" in line


def test_what_ends_soon_after_its_command_was_not_left_behind(tmp_path: Path) -> None:
    late = "import subprocess, sys\nsubprocess.Popen([sys.executable, '-c', 'import time; time.sleep(0.3)'])\n"
    launched = Launched([sys.executable, "-c", late], log=tmp_path / "log")
    wait_for(lambda: not launched.alive())
    assert launched.leftovers() == []


def test_the_tree_ends_when_the_one_who_started_it_is_killed(tmp_path: Path) -> None:
    pid_file = tmp_path / "pid"
    inner = f"import os, pathlib, time; pathlib.Path({str(pid_file)!r}).write_text(str(os.getpid())); time.sleep(300)"
    keeper = [sys.executable, "-I", "-S", str(KEEPER), sys.executable, "-c", inner]
    starting = f"import subprocess, time; subprocess.Popen({keeper!r}); time.sleep(300)"
    starter = subprocess.Popen([sys.executable, "-c", starting])
    wait_for(lambda: pid_file.exists() and pid_file.read_text() != "")
    pid = int(pid_file.read_text())
    starter.kill()
    starter.wait(60)
    wait_for(lambda: command_line(pid) == "")


def test_a_command_that_ends_while_starting_is_told_with_its_last_words(tmp_path: Path) -> None:
    launched = Launched([sys.executable, "-c", "print('no memory left')"], log=tmp_path / "log")
    with pytest.raises(BenchError, match=r"ended while starting.*\n.*no memory left"):
        launched.wait_until(lambda: False, what="The server", seconds=60.0)


def test_a_command_that_never_gets_ready_is_not_waited_for_ever(tmp_path: Path) -> None:
    launched = Launched([sys.executable, "-c", "import time; time.sleep(300)"], log=tmp_path / "log")
    try:
        with pytest.raises(BenchError, match="not ready in 0 s"):
            launched.wait_until(lambda: False, what="The server", seconds=0.2)
    finally:
        launched.stop()
    assert not launched.alive()
