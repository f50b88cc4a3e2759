"""What processes use."""

from __future__ import annotations

import os
import subprocess
import sys

from wherry.worker.host.usage import family_of, memory_of, usage_of


def test_our_own_use_is_seen() -> None:
    usage = usage_of(os.getpid())
    assert usage.rss_bytes > 10_000_000
    assert usage.cpu_ms > 0


def test_a_process_that_is_gone_uses_nothing() -> None:
    assert usage_of(2**22 - 3).rss_bytes == 0


def test_a_process_is_of_its_own_family() -> None:
    assert next(family_of(os.getpid())) == os.getpid()


def test_memory_is_that_of_a_process_and_of_what_it_has_started() -> None:
    def forks(pid: int) -> list[int]:
        return list(family_of(pid))

    argv = [sys.executable, "-c", "import subprocess, sys; subprocess.run([sys.executable, '-c', 'input(1)'])"]
    with subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as child:
        assert child.stdout is not None
        assert child.stdout.read(1) == b"1", "both have started"
        parent, grandchild = forks(child.pid)
        # A Python that does nothing takes some MB, and so do two of them.
        assert memory_of(parent) > memory_of(grandchild) > 0
        assert usage_of(parent).rss_bytes > memory_of(grandchild)
        assert parent == child.pid
        child.communicate(b"\n", timeout=60.0)
    assert memory_of(child.pid) == 0
