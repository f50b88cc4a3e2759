"""What a sidecar uses: resident memory and CPU time of a process and of all it has started.

Reads /proc only; a process that ends while it is looked at counts as nothing.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass

PROCESSES_MAX = 256
READ_BYTES_MAX = 64 * 1024
_PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")
_TICKS_PER_S = os.sysconf("SC_CLK_TCK")
# Fields of /proc/PID/stat behind the command's closing bracket: user and system time.
_UTIME, _STIME = 11, 12


@dataclass(frozen=True, slots=True)
class Usage:
    """Resident memory in bytes and CPU time in ms."""

    rss_bytes: int
    cpu_ms: int


def usage_of(pid: int) -> Usage:
    """Return what a process and its descendants use now."""
    rss = cpu = 0
    for member in family_of(pid):
        rss += _rss_bytes(member)
        cpu += _cpu_ms(member)
    return Usage(rss, cpu)


def memory_of(pid: int) -> int:
    """Return the resident memory of a process and its descendants now, in bytes."""
    return sum(_rss_bytes(member) for member in family_of(pid))


def family_of(pid: int) -> Iterator[int]:
    """Return a process and its descendants, at most `PROCESSES_MAX`."""
    waiting = [pid]
    for _ in range(PROCESSES_MAX):
        if not waiting:
            return
        member = waiting.pop()
        yield member
        waiting.extend(_children(member))


def _children(pid: int) -> list[int]:
    children: list[int] = []
    try:
        for task in os.listdir(f"/proc/{pid}/task"):  # noqa: PTH208 - paths as objects are what costs
            children.extend(int(child) for child in _read(f"/proc/{pid}/task/{task}/children").split())
    except OSError:
        pass
    return children


def _rss_bytes(pid: int) -> int:
    try:
        return int(_read(f"/proc/{pid}/statm").split()[1]) * _PAGE_BYTES
    except (OSError, IndexError):
        return 0


def _cpu_ms(pid: int) -> int:
    try:
        fields = _read(f"/proc/{pid}/stat").rpartition(b")")[2].split()
        return (int(fields[_UTIME]) + int(fields[_STIME])) * 1000 // _TICKS_PER_S
    except (OSError, IndexError):
        return 0


def _read(path: str) -> bytes:
    """Return a small file's bytes.

    Every sidecar is looked at twice a second, and has a file for each of its threads: paths as objects and decoded
    texts would cost four times as much.
    """
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        return os.read(descriptor, READ_BYTES_MAX)
    finally:
        os.close(descriptor)
