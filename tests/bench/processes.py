"""Starting servers under a keeper, and reading what process trees cost: CPU time and proportional memory.

CPU time of a tree is the sum of utime, stime, cutime and cstime of every process in it. Because the tree's root is a
subreaper that collects every orphan, a process that has ended is still counted in the times of whoever reaped it.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from tests.bench import limits

TICKS_PER_SECOND = os.sysconf("SC_CLK_TCK")
LEFT_BEHIND = "keeper: left behind"
KEEPER = Path(__file__).with_name("keeper.py")

RoleOf = Callable[[str, str], str]
"""Names a process's part in its system from its command line and its parent's."""


class BenchError(RuntimeError):
    """The harness cannot go on; the text says what is wrong and where to look."""


@dataclass(frozen=True, slots=True)
class CpuReading:
    """CPU seconds a tree has used so far, by role; what ended processes used is under `ended`."""

    by_role: Mapping[str, float]

    @property
    def total(self) -> float:
        """All of it."""
        return sum(self.by_role.values())


@dataclass(frozen=True, slots=True)
class _Stat:
    pid: int
    parent: int
    own_ticks: int
    ended_ticks: int


def _stats() -> dict[int, _Stat]:
    stats = {}
    for name in os.listdir("/proc"):  # noqa: PTH208 - a hundred entries four times a second; Path objects cost more
        if not name.isdigit():
            continue
        try:
            with open(f"/proc/{name}/stat", "rb") as file:  # noqa: PTH123 - as above
                fields = file.read().rpartition(b")")[2].split()
        except OSError:
            continue
        pid = int(name)
        own = int(fields[11]) + int(fields[12])
        ended = int(fields[13]) + int(fields[14])
        stats[pid] = _Stat(pid=pid, parent=int(fields[1]), own_ticks=own, ended_ticks=ended)
    return stats


def _descendants(root: int, stats: Mapping[int, _Stat]) -> list[_Stat]:
    children: dict[int, list[int]] = {}
    for stat in stats.values():
        children.setdefault(stat.parent, []).append(stat.pid)
    found, waiting = [], [root]
    while waiting:
        pid = waiting.pop()
        if pid in stats:
            found.append(stats[pid])
            waiting.extend(children.get(pid, ()))
    return found


def command_line(pid: int) -> str:
    """The arguments of a process, joined by blanks; empty when it is gone."""
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace").strip()
    except OSError:
        return ""


class ProcessTree:
    """A root process and all its descendants, read afresh at every question."""

    def __init__(self, root: int, role_of: RoleOf, *, count_root: bool = True) -> None:
        """Takes the root's process id; a keeper at the root is not part of what is measured."""
        self.root = root
        self._count_root = count_root
        self._role_of = role_of
        self._roles: dict[int, str] = {}

    def pids(self) -> list[int]:
        """Every process of the tree that is there now."""
        return [stat.pid for stat in _descendants(self.root, _stats()) if self._counts(stat.pid)]

    def cpu(self) -> CpuReading:
        """CPU seconds used so far."""
        by_role: dict[str, float] = {}
        for stat in _descendants(self.root, _stats()):
            if self._counts(stat.pid):
                role = self._role(stat.pid)
                by_role[role] = by_role.get(role, 0.0) + stat.own_ticks / TICKS_PER_SECOND
            by_role["ended"] = by_role.get("ended", 0.0) + stat.ended_ticks / TICKS_PER_SECOND
        return CpuReading(by_role)

    def pss_mb(self) -> dict[str, float]:
        """Proportional set size in MB of every process, by role and, where a role has several, numbered."""
        sizes: dict[str, float] = {}
        for pid in sorted(self.pids()):
            size = pss_mb(pid)
            if size is None:
                continue
            role, number = self._role(pid), 2
            name = role
            while name in sizes:
                name, number = f"{role} {number}", number + 1
            sizes[name] = size
        return sizes

    def _counts(self, pid: int) -> bool:
        return self._count_root or pid != self.root

    def _role(self, pid: int) -> str:
        role = self._roles.get(pid)
        if role is None:
            role = self._role_of(command_line(pid), command_line(_parent(pid)))
            # A process between fork and exec still shows its parent's command line, so a fresh one is asked again.
            if _age_seconds(pid) > 1.0:
                self._roles[pid] = role
        return role


def started_at(pid: int) -> float:
    """The wall-clock time at which a process was started, to a hundredth of a second."""
    ticks = int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[19])
    return time.time() - (time.clock_gettime(time.CLOCK_BOOTTIME) - ticks / TICKS_PER_SECOND)


def _parent(pid: int) -> int:
    try:
        return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])
    except OSError:
        return 0


def _age_seconds(pid: int) -> float:
    try:
        return time.time() - started_at(pid)
    except OSError:
        return 0.0


def machine_busy_seconds() -> float:
    """CPU seconds the whole machine has worked since it started, everything but idle and waiting for disks."""
    fields = [int(field) for field in Path("/proc/stat").read_text().split("\n", 1)[0].split()[1:]]
    # user nice system idle iowait irq softirq steal; guest times are contained in user and nice.
    return (sum(fields[:8]) - fields[3] - fields[4]) / TICKS_PER_SECOND


def pss_mb(pid: int) -> float | None:
    """Proportional set size of one process in MB (10^6 bytes); None when it is gone or has no memory."""
    try:
        for line in Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines():
            if line.startswith("Pss:"):
                return int(line.split()[1]) * 1024 / 1e6
    except OSError:
        return None
    return None


class Launched:
    """A command running under a keeper, with its output in a log file."""

    def __init__(
        self, argv: Sequence[str], *, log: Path, environment: Mapping[str, str] | None = None, cwd: Path | None = None
    ) -> None:
        self.argv = list(argv)
        self.log = log
        log.parent.mkdir(parents=True, exist_ok=True)
        with log.open("ab") as output:
            self._process = subprocess.Popen(
                [sys.executable, "-I", "-S", str(KEEPER), *argv],
                stdin=subprocess.DEVNULL, stdout=output, stderr=subprocess.STDOUT,
                env=dict(environment) if environment is not None else None, cwd=cwd,
            )  # fmt: skip
        self.started_at = time.time()

    @property
    def pid(self) -> int:
        """The keeper's process id: the root of the tree."""
        return self._process.pid

    def alive(self) -> bool:
        """Whether the command still runs."""
        return self._process.poll() is None

    def log_tail(self) -> str:
        """The last lines of the log, for an error text."""
        try:
            lines = self.log.read_text(errors="replace").splitlines()
        except OSError:
            return ""
        return "\n".join(lines[-limits.LOG_TAIL_LINES :])

    def leftovers(self) -> list[str]:
        """What the keeper had to kill after the command had ended, a line for each process."""
        return [line for line in self.log.read_text(errors="replace").splitlines() if line.startswith(LEFT_BEHIND)]

    def wait_until(self, ready: Callable[[], bool], *, what: str, seconds: float, poll_seconds: float = 0.05) -> None:
        """Polls until `ready`; raises when the command ends first or the time is over."""
        deadline = time.monotonic() + seconds
        while not ready():
            if not self.alive():
                raise BenchError(f"{what} ended while starting; the end of {self.log}:\n{self.log_tail()}")
            if time.monotonic() > deadline:
                raise BenchError(f"{what} is not ready in {seconds:.0f} s; the end of {self.log}:\n{self.log_tail()}")
            time.sleep(poll_seconds)

    def stop(self) -> float:
        """Asks the command to end, kills its tree if it does not; gives the seconds it took."""
        begun = time.monotonic()
        if self.alive():
            self._process.send_signal(signal.SIGTERM)
            try:
                self._process.wait(limits.SYSTEM_STOP_SECONDS)
            except subprocess.TimeoutExpired:
                for stat in _descendants(self.pid, _stats()):
                    if stat.pid != self.pid:
                        _kill(stat.pid)
                self._process.wait(limits.SYSTEM_STOP_SECONDS)
        return time.monotonic() - begun


def _kill(pid: int) -> None:
    try:
        os.kill(pid, signal.SIGKILL)
    except ProcessLookupError:
        return
