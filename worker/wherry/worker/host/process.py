"""Runs sidecar processes: one thread starts them all, reads what they print, and notices how they end.

Decides nothing about connectors. Invariants: every process is started by the same thread, which lives as long as the
host (a parent-death signal is bound to the thread that forked); a process group is killed as a whole, before its
leader is reaped, so that no foreign process that got the same number is ever hit; nothing here waits for a sidecar.
"""

from __future__ import annotations

import contextlib
import ctypes
import functools
import json
import logging
import math
import os
import queue
import selectors
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Final, Protocol

from wherry.contract.errors import TransientError
from wherry.worker.host.logs import LogStream
from wherry.worker.host.usage import Usage, memory_of, usage_of

TICK_S: Final = 0.5
READ_BYTES: Final = 64 * 1024
# Of one process, so many bytes are read before its pipe rests for a moment: a flood costs the host little CPU, and what
# is dropped then is not even read, so that the one who floods waits.
FLOOD_BYTES: Final = 1024 * 1024
REST_S: Final = 0.02
# When a process has ended, so much of what its pipe still holds is read.
FINAL_READS_MAX: Final = 16
START_TIMEOUT_S: Final = 10.0
CLOSE_TIMEOUT_S: Final = 5.0
# RLIMIT_DATA is the net under the memory watch: it stops what grows faster than the watch looks.
DATA_LIMIT_FACTOR: Final = 2
DATA_LIMIT_EXTRA_BYTES: Final = 1024 * 1024 * 1024
# A message travels in a gRPC status, which has room for about 2 KiB.
TAIL_LINES_MAX: Final = 8
TAIL_LINE_CHARACTERS_MAX: Final = 180
MIB: Final = 1024 * 1024
# Ended processes of sidecars' own that came to us when their parents ended, reaped at one look.
STRAYS_MAX: Final = 64
PR_SET_CHILD_SUBREAPER: Final = 36

_log = logging.getLogger(__name__)
_HERE = Path(__file__).parent


@dataclass(frozen=True, slots=True, kw_only=True)
class Command:
    """How to run one sidecar.

    Attributes:
        argv: Program and arguments; the program is an absolute path.
        environment: Its whole environment.
        directory: Its working directory.
        memory_bytes_max: Resident memory above which it is killed; 0 means no limit.
        open_files_max: Most open files; 0 means as the host has it.
        cpus_max: Most CPUs it may run on at once; 0 means all.
        passed_fds: Descriptors of ours that it gets.
    """

    argv: Sequence[str]
    environment: Mapping[str, str]
    directory: Path
    memory_bytes_max: int = 0
    open_files_max: int = 0
    cpus_max: float = 0.0
    passed_fds: tuple[int, ...] = ()


class Child(Protocol):
    """A child process of ours, as far as the loop needs it; `subprocess.Popen` is one."""

    @property
    def pid(self) -> int:
        """Its process id."""

    @property
    def stdout(self) -> IO[bytes] | None:
        """Where what it prints is read."""

    def wait(self, timeout: float | None = None) -> int:
        """Reap it; its exit code, negative for a signal."""


@dataclass(frozen=True, slots=True)
class Exit:
    """How a process ended: exit code (negative for a signal) and one sentence without its end stop."""

    code: int
    message: str


class SidecarProcess:
    """One process. Its methods may be called from any thread."""

    def __init__(
        self,
        command: Command,
        child: Child,
        on_line: Callable[[SidecarProcess, str], None],
        on_exit: Callable[[SidecarProcess, Exit], None],
    ) -> None:
        self.command = command
        self.pid = child.pid
        self.ended = threading.Event()
        self.exit: Exit | None = None
        # Set by whoever asks it to end, so that its end is not taken for a crash.
        self.told_to_end = False
        self._child = child
        self._on_line = on_line
        self._on_exit = on_exit
        self._log = LogStream()
        self._lock = threading.Lock()
        self._kill_reason = ""
        self._rss_bytes_seen = 0
        self._read_bytes = 0

    @property
    def is_running(self) -> bool:
        """Whether it has not ended yet."""
        return self.exit is None

    @property
    def was_killed(self) -> bool:
        """Whether it was ended by a SIGKILL that we have not sent for a reason."""
        return self.exit is not None and self.exit.code == -signal.SIGKILL and not self._kill_reason

    def tail(self) -> list[str]:
        """Return the last lines it printed."""
        return self._log.tail()

    def usage(self) -> Usage:
        """Return what it and its children use now."""
        return usage_of(self.pid) if self.is_running else Usage(0, 0)

    def signal(self, number: int, reason: str = "") -> None:
        """Send a signal to its whole process group. Does nothing when it has ended.

        Args:
            number: The signal.
            reason: For its exit message: why it was killed.
        """
        with self._lock:
            if self.exit is None:
                self._kill_reason = self._kill_reason or reason
                with contextlib.suppress(ProcessLookupError, PermissionError):
                    os.killpg(self.pid, number)

    # What follows is called by the loop's thread only.

    def _pass_on(self, lines: list[str]) -> None:
        for line in lines:
            self._on_line(self, line)

    def _check_memory(self) -> None:
        limit = self.command.memory_bytes_max
        used = self._rss_bytes_seen = memory_of(self.pid)
        if limit and used > limit:
            self.signal(signal.SIGKILL, f"it was using {used // MIB} MiB of its {limit // MIB} MiB")

    def _reap(self) -> Exit:
        with self._lock:
            # Before the leader is reaped nobody else can get its number.
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(self.pid, signal.SIGKILL)
            code = self._child.wait(CLOSE_TIMEOUT_S)
            self.exit = Exit(code, _exit_message(code, self._kill_reason, self._rss_bytes_seen))
        return self.exit


class ProcessLoop:
    """The thread that owns all sidecar processes and watches their users."""

    def __init__(self, directory: Path, host_socket: Path) -> None:
        """Start the thread.

        Args:
            directory: Where the sidecars' sockets are; the warden empties it when the host is killed.
            host_socket: The host's own socket, which the warden removes then.
        """
        self._leftovers = [str(directory), str(host_socket)]
        self._selector = selectors.DefaultSelector()
        self._wake_fd = os.eventfd(0, os.EFD_NONBLOCK | os.EFD_CLOEXEC)
        self._selector.register(self._wake_fd, selectors.EVENT_READ, self._drain_wake)
        self._todo: queue.SimpleQueue[Callable[[], object]] = queue.SimpleQueue()
        self._running: dict[int, SidecarProcess] = {}
        # Pipes that rest, with what reads them.
        self._resting: dict[int, Callable[[], object]] = {}
        self._warden: subprocess.Popen[bytes] | None = None
        self._cpu_next = 0
        self.adopts_orphans = False
        self._expecting = 0
        self._expecting_lock = threading.Lock()
        self._closing = False
        self._post(self._ensure_warden)
        self._thread = threading.Thread(target=self._run, name="sidecar-processes", daemon=True)
        self._thread.start()

    def start(
        self,
        command: Command,
        *,
        on_line: Callable[[SidecarProcess, str], None],
        on_exit: Callable[[SidecarProcess, Exit], None],
    ) -> SidecarProcess:
        """Start a sidecar. The callbacks are called from the loop's thread and must not wait.

        Raises:
            TransientError: The machine cannot start a process now.
        """
        started: Future[SidecarProcess] = Future()

        self._begin(started, lambda: self._take_in(command, self._spawn(command), on_line, on_exit))
        return started.result(START_TIMEOUT_S)

    def adopt(
        self,
        command: Command,
        child: Child,
        *,
        on_line: Callable[[SidecarProcess, str], None],
        on_exit: Callable[[SidecarProcess, Exit], None],
    ) -> SidecarProcess:
        """Look after a child of ours that another process has made, as if it had been started here.

        Raises:
            TransientError: The machine cannot watch a process now.
        """
        adopted: Future[SidecarProcess] = Future()
        self._begin(adopted, lambda: self._take_in(command, child, on_line, on_exit))
        return adopted.result(START_TIMEOUT_S)

    def adopt_orphans(self) -> None:
        """Become the parent of what sidecars leave behind, and reap it; for a process that has no other children."""
        ctypes.CDLL(None, use_errno=True).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
        self.adopts_orphans = True

    @contextlib.contextmanager
    def expecting_orphans(self) -> Iterator[None]:
        """While this lasts no unknown child is reaped: it may be about to be adopted."""
        with self._expecting_lock:
            self._expecting += 1
        try:
            yield
        finally:
            with self._expecting_lock:
                self._expecting -= 1

    def choose_cpus(self, cpus_max: float) -> list[int]:
        """CPUs for one more process that may use so many, taken in turn; empty means all."""
        available = sorted(os.sched_getaffinity(0))
        count = math.ceil(cpus_max)
        if not count or count >= len(available):
            return []
        first, self._cpu_next = self._cpu_next, self._cpu_next + count
        return [available[(first + index) % len(available)] for index in range(count)]

    def _begin(self, outcome: Future[SidecarProcess], act: Callable[[], SidecarProcess]) -> None:
        def begin() -> None:
            try:
                outcome.set_result(act())
            except OSError as error:
                outcome.set_exception(TransientError(f"a process cannot be started now: {error.strerror}"))

        self._post(begin)

    def watch(self, pid: int, on_death: Callable[[], None]) -> Callable[[], None]:
        """Call `on_death` once when a process has ended, at once when it has already; return how to stop watching."""
        try:
            fd = os.pidfd_open(pid)
        except OSError:
            on_death()
            return lambda: None
        cancelled = threading.Event()

        def end() -> None:
            if not cancelled.is_set():
                cancelled.set()
                self._selector.unregister(fd)
                os.close(fd)

        def died() -> None:
            end()
            on_death()

        self._post(lambda: self._register(fd, died))
        return lambda: self._post(end)

    def close(self) -> None:
        """Kill every process that is left and end the thread."""
        for process in list(self._running.values()):
            process.signal(signal.SIGKILL)
        for process in list(self._running.values()):
            process.ended.wait(CLOSE_TIMEOUT_S)
        self._closing = True
        self._post(lambda: None)
        self._thread.join(CLOSE_TIMEOUT_S)
        if self._warden is not None and self._warden.stdin is not None:
            with contextlib.suppress(OSError):
                self._warden.stdin.close()
            with contextlib.suppress(subprocess.TimeoutExpired):
                self._warden.wait(CLOSE_TIMEOUT_S)

    def _post(self, action: Callable[[], object]) -> None:
        self._todo.put(action)
        os.eventfd_write(self._wake_fd, 1)

    def _drain_wake(self) -> None:
        with contextlib.suppress(BlockingIOError):
            os.eventfd_read(self._wake_fd)
        while not self._todo.empty():
            self._guard(self._todo.get())

    def _register(self, fd: int, action: Callable[[], object]) -> None:
        self._selector.register(fd, selectors.EVENT_READ, action)

    def _run(self) -> None:
        tick_at = rest_until = 0.0
        while not self._closing:
            pause_s = REST_S if self._resting else TICK_S if self._running else None
            events = self._selector.select(pause_s)
            for key, _ in events:
                # An earlier action of this round may have ended what this one is about.
                if key.fd in self._selector.get_map():
                    self._guard(key.data)
            now = time.monotonic()
            if now >= rest_until:
                rest_until = now + REST_S
                self._end_rest()
            if now >= tick_at:
                tick_at = now + TICK_S
                self._reap_strays()
                for process in list(self._running.values()):
                    process._check_memory()
                    process._pass_on(process._log.tick(now))

    def _reap_strays(self) -> None:
        """Reap what ended sidecars have left to us: nobody else will."""
        for _ in range(STRAYS_MAX if self.adopts_orphans else 0):
            with self._expecting_lock:
                if self._expecting:
                    return
                try:
                    found = os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)
                except ChildProcessError:
                    return
                warden = self._warden.pid if self._warden is not None else 0
                if found is None or found.si_pid == warden or found.si_pid in self._running:
                    return  # of a known one we are told in a moment
                with contextlib.suppress(ChildProcessError):
                    os.waitpid(found.si_pid, os.WNOHANG)

    def _end_rest(self) -> None:
        for process in self._running.values():
            process._read_bytes = 0
        for fd, action in self._resting.items():
            self._selector.register(fd, selectors.EVENT_READ, action)
        self._resting.clear()

    def _guard(self, action: Callable[[], object]) -> None:
        """Run an action; a fault in one must not end the thread, because every sidecar would die with it."""
        try:
            action()
        except Exception:
            _log.exception("an action on sidecar processes failed")

    def _spawn(self, command: Command) -> Child:
        spec = {
            "parent_pid": os.getpid(),
            "program": command.argv[0],
            "argv": list(command.argv),
            "directory": str(command.directory),
            "open_files_max": command.open_files_max,
            "data_bytes_max": _data_limit(command.memory_bytes_max),
            "cpus": self.choose_cpus(command.cpus_max),
        }
        return subprocess.Popen(
            [sys.executable, "-I", "-S", str(_HERE / "shim.py"), json.dumps(spec)],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            env=dict(command.environment),
            start_new_session=True,
            pass_fds=command.passed_fds,
        )

    def _take_in(
        self,
        command: Command,
        child: Child,
        on_line: Callable[[SidecarProcess, str], None],
        on_exit: Callable[[SidecarProcess, Exit], None],
    ) -> SidecarProcess:
        process = SidecarProcess(command, child, on_line, on_exit)
        self._running[child.pid] = process
        self._tell_warden("+", child.pid)
        assert child.stdout is not None
        output_fd = child.stdout.fileno()
        os.set_blocking(output_fd, False)
        pid_fd = os.pidfd_open(child.pid)
        self._register(output_fd, functools.partial(self._read, process, output_fd))
        self._register(pid_fd, functools.partial(self._end, process, output_fd, pid_fd))
        return process

    def _read(self, process: SidecarProcess, fd: int) -> bool:
        """Read once; tell whether there may be more."""
        try:
            chunk = os.read(fd, READ_BYTES)
        except BlockingIOError:
            return False
        if not chunk:
            self._selector.unregister(fd)
            process._pass_on(process._log.close())
            return False
        process._pass_on(process._log.feed(chunk, time.monotonic()))
        process._read_bytes += len(chunk)
        if process._read_bytes > FLOOD_BYTES and fd in self._selector.get_map():
            self._resting[fd] = self._selector.unregister(fd).data
        return True

    def _end(self, process: SidecarProcess, output_fd: int, pid_fd: int) -> None:
        self._selector.unregister(pid_fd)
        os.close(pid_fd)
        outcome = process._reap()
        rested = self._resting.pop(output_fd, None)
        if rested is not None:
            self._register(output_fd, rested)
        process._read_bytes = -FLOOD_BYTES  # no rest for the last reads
        if output_fd in self._selector.get_map():
            for _ in range(FINAL_READS_MAX):
                if not self._read(process, output_fd):
                    break
        if output_fd in self._selector.get_map():
            self._selector.unregister(output_fd)
            process._pass_on(process._log.close())
        if process._child.stdout is not None:
            process._child.stdout.close()
        self._running.pop(process.pid, None)
        self._tell_warden("-", process.pid)
        process._on_exit(process, outcome)
        process.ended.set()

    def _ensure_warden(self) -> bool:
        """Start the warden if it does not run; tell whether it had to be."""
        if self._warden is not None and self._warden.poll() is None:
            return False
        self._warden = subprocess.Popen(
            [sys.executable, "-I", "-S", str(_HERE / "warden.py"), *self._leftovers],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            env={"PATH": os.defpath},
            start_new_session=True,
        )
        return True

    def _tell_warden(self, sign: str, group: int) -> None:
        told = [f"+{pid}" for pid in self._running] if self._ensure_warden() else [f"{sign}{group}"]
        assert self._warden is not None
        assert self._warden.stdin is not None
        with contextlib.suppress(BrokenPipeError):
            self._warden.stdin.write("".join(f"{line}\n" for line in told).encode())
            self._warden.stdin.flush()


def with_tail(message: str, tail: Sequence[str]) -> str:
    """Add the last lines that a process printed to a message about it."""
    if not tail:
        return f"{message}; it printed nothing"
    lines = [f"  {line[:TAIL_LINE_CHARACTERS_MAX]}" for line in tail[-TAIL_LINES_MAX:]]
    return f"{message}; its last lines were:\n" + "\n".join(lines)


def _exit_message(code: int, kill_reason: str, rss_bytes: int) -> str:
    if code >= 0:
        return f"ended with code {code}" + (f"; {kill_reason}" if kill_reason else "")
    try:
        name = signal.Signals(-code).name
    except ValueError:
        name = f"signal {-code}"
    if kill_reason:
        return f"was killed by {name}; {kill_reason}"
    return f"was killed by {name}" + (f"; it was last seen using {rss_bytes // MIB} MiB" if rss_bytes else "")


def _data_limit(memory_bytes_max: int) -> int:
    return memory_bytes_max * DATA_LIMIT_FACTOR + DATA_LIMIT_EXTRA_BYTES if memory_bytes_max else 0
