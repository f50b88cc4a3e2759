"""Warm processes of plugins, from which sidecars are forked instead of each importing everything for itself.

A plugin whose manifest says `forkable: true` is started once without an endpoint; `serve` of its SDK then waits for
requests (`wherry.contract.forking`). What cannot be forked (it failed to start, runs threads, did not answer) is
started the plain way, so that its failure is told as it always was, and forking is tried again later.

Measured here for the filestream plugin: 0.46 s of CPU and 38 MB a sidecar started the plain way.

Invariants: one warm process per plugin digest; a forked sidecar is this process's own child and outlives its warm
parent; a warm process that has answered late once is never asked again.
"""

from __future__ import annotations

import dataclasses
import logging
import os
import signal
import socket
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import IO, Final, Protocol

from wherry.contract.errors import TransientError
from wherry.contract.forking import FORK_FD, READY, ForkRequest, pair, send_request
from wherry.contract.manifest import Manifest
from wherry.worker.host.logs import EventHub, SidecarEvent
from wherry.worker.host.process import Command, Exit, ProcessLoop, SidecarProcess

PARENTS_MAX: Final = 32
READY_TIMEOUT_S: Final = 15.0
FORK_TIMEOUT_S: Final = 5.0
IDLE_S: Final = 60.0
PLAIN_S: Final = 60.0
"""After a warm process could not be had, sidecars of the plugin are started the plain way for so long."""
ANSWER_BYTES_MAX: Final = 1024
# numpy, which Arrow imports where it is installed, otherwise starts threads then and there. The manifest's own wins.
_THREADLESS: Final = {"OPENBLAS_NUM_THREADS": "1"}
_OWN: Final = ("WHERRY_ENDPOINT", "WHERRY_INSTANCE_ID")

_log = logging.getLogger(__name__)


class Starter(Protocol):
    """Starts sidecar processes."""

    def start(
        self,
        command: Command,
        *,
        on_line: Callable[[SidecarProcess, str], None],
        on_exit: Callable[[SidecarProcess, Exit], None],
    ) -> SidecarProcess:
        """Start one. Raises TransientError when the machine cannot now."""


class ForkedChild:
    """A child of ours that was forked by another process: what `subprocess.Popen` is for those we start."""

    def __init__(self, pid: int, stdout: IO[bytes]) -> None:
        self.pid = pid
        self.stdout = stdout

    def wait(self, timeout: float | None = None) -> int:
        """Reap it; its exit code, negative for a signal. It has ended already, so there is nothing to wait for."""
        del timeout
        try:
            _, status = os.waitpid(self.pid, 0)
        except ChildProcessError:
            return 0  # reaped by somebody else, who did not tell how it ended
        return os.waitstatus_to_exitcode(status)


@dataclass(slots=True)
class _Warm:
    """One plugin's warm process. `lock` makes its callers wait for its start, and for one another's forks."""

    name: str
    lock: threading.Lock = field(default_factory=threading.Lock)
    process: SidecarProcess | None = None
    control: socket.socket | None = None
    plain_until_s: float = 0.0
    used_s: float = 0.0

    def end(self, reason: str) -> None:
        """End the process; the caller holds the lock."""
        process, control = self.process, self.control
        self.process = self.control = None
        if control is not None:
            control.close()
        if process is not None:
            process.told_to_end = True
            process.signal(signal.SIGKILL, reason)


class WarmParents:
    """The warm processes of this machine. Safe for use by several threads.

    Args:
        loop: What runs processes; none is warm unless it adopts orphans.
        hub: Where what they print goes.
        clock: Seconds, rising.
    """

    def __init__(self, loop: ProcessLoop, hub: EventHub, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._loop = loop
        self._hub = hub
        self._clock = clock
        self._lock = threading.Lock()
        self._warm: dict[str, _Warm] = {}
        self._closed = False

    def starter(self, manifest: Manifest) -> Starter:
        """What starts sidecars of a plugin."""
        if not manifest.forkable or not self._loop.adopts_orphans:
            return self._loop
        with self._lock:
            warm = self._warm.get(manifest.digest)
            if warm is None:
                if self._closed or len(self._warm) >= PARENTS_MAX:
                    return self._loop
                warm = self._warm[manifest.digest] = _Warm(manifest.name, used_s=self._clock())
        return _WarmStarter(self, warm)

    def sweep(self) -> None:
        """End those that nobody has used for a while. Called now and then."""
        now = self._clock()
        with self._lock:
            idle = [digest for digest, warm in self._warm.items() if now - warm.used_s > IDLE_S and _is_free(warm)]
            ended = [self._warm.pop(digest) for digest in idle]
        for warm in ended:
            with warm.lock:
                warm.end("it was not needed any more")

    def close(self) -> None:
        """End all of them."""
        with self._lock:
            self._closed = True
            ended, self._warm = list(self._warm.values()), {}
        for warm in ended:
            # Not under its lock, which is held while one of them hangs.
            warm.end("the sidecar host ends")

    def fork(self, warm: _Warm, command: Command) -> ForkedChild | None:
        """A forked sidecar; None when it has to be started the plain way."""
        with warm.lock:
            warm.used_s = now = self._clock()
            if warm.plain_until_s > now:
                return None
            try:
                return self._fork(warm, command)
            except (OSError, ValueError, TransientError) as error:
                _log.warning("Sidecars of %s are not forked for %g s: %s", warm.name, PLAIN_S, error)
                warm.end("it could not be forked")
                warm.plain_until_s = self._clock() + PLAIN_S
                return None

    def _fork(self, warm: _Warm, command: Command) -> ForkedChild:
        if warm.process is not None and warm.process.is_running and warm.control is not None:
            try:
                return self._ask(warm.control, command)
            except ConnectionError as error:
                # It has died, of which news is late: it never got the request.
                _log.info("The warm process of %s is gone: %s", warm.name, error)
        warm.end("it is started anew")
        return self._ask(self._start(warm, command), command)

    def _ask(self, control: socket.socket, command: Command) -> ForkedChild:
        own = {name: command.environment[name] for name in _OWN}
        request = ForkRequest(os.getpid(), own, tuple(self._loop.choose_cpus(command.cpus_max)))
        read_fd, write_fd = os.pipe()
        try:
            send_request(control, request, write_fd)
        except BaseException:
            os.close(read_fd)
            raise
        finally:
            os.close(write_fd)
        output = os.fdopen(read_fd, "rb", buffering=0)
        try:
            answer = _answer(control, FORK_TIMEOUT_S, "it did not fork")
            return ForkedChild(int(answer), output)
        except BaseException:
            output.close()
            raise

    def _start(self, warm: _Warm, command: Command) -> socket.socket:
        ours, theirs = pair()

        def on_line(process: SidecarProcess, line: str) -> None:
            self._hub.publish(SidecarEvent(connector=warm.name, instance_id="", pid=process.pid, line=line))

        def on_exit(process: SidecarProcess, outcome: Exit) -> None:
            del process, outcome  # whoever asks it next finds out

        shared = {name: value for name, value in command.environment.items() if name not in _OWN}
        environment = {**_THREADLESS, **shared}
        environment[FORK_FD] = str(theirs.fileno())
        try:
            with theirs:
                warm.process = self._loop.start(
                    dataclasses.replace(command, environment=environment, cpus_max=0.0, passed_fds=(theirs.fileno(),)),
                    on_line=on_line,
                    on_exit=on_exit,
                )
        except BaseException:
            ours.close()
            raise
        warm.control = ours
        answer = _answer(ours, READY_TIMEOUT_S, "it did not get ready")
        if answer != READY:
            raise TransientError(answer.decode(errors="replace"))
        return ours


class _WarmStarter:
    """Starts sidecars of one plugin by forking, or the plain way where that can't be."""

    def __init__(self, parents: WarmParents, warm: _Warm) -> None:
        self._parents = parents
        self._warm = warm

    def start(
        self,
        command: Command,
        *,
        on_line: Callable[[SidecarProcess, str], None],
        on_exit: Callable[[SidecarProcess, Exit], None],
    ) -> SidecarProcess:
        loop = self._parents._loop
        with loop.expecting_orphans():
            child = self._parents.fork(self._warm, command)
            if child is not None:
                try:
                    return loop.adopt(command, child, on_line=on_line, on_exit=on_exit)
                except BaseException:
                    os.kill(child.pid, signal.SIGKILL)
                    child.stdout.close()
                    raise
        return loop.start(command, on_line=on_line, on_exit=on_exit)


def _is_free(warm: _Warm) -> bool:
    if not warm.lock.acquire(blocking=False):
        return False
    warm.lock.release()
    return True


def _answer(control: socket.socket, timeout_s: float, what: str) -> bytes:
    control.settimeout(timeout_s)
    try:
        answer = control.recv(ANSWER_BYTES_MAX)
    except TimeoutError:
        raise TransientError(f"{what} within {timeout_s:g} s") from None
    if not answer:
        raise TransientError(f"{what}: it ended")
    return answer
