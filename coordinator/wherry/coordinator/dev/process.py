"""A server process that never outlives the process that started it."""

from __future__ import annotations

import contextlib
import json
import os
import select
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from wherry.coordinator.dev.errors import ServerStartError

START_TIMEOUT_S = 20.0
STOP_GRACE_S = 10.0
KILL_TIMEOUT_S = 10.0
READY_POLL_S = 0.02
LOG_TAIL_LINES = 12
LOG_TAIL_BYTES = 16 * 1024
STATUS_BYTES_MAX = 4096

_KEEPER = Path(__file__).with_name("keeper.py")


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerCommand:
    """How to run one server.

    Attributes:
        name: What people call it, for messages.
        argv: Program and arguments.
        log_path: File that takes what the server prints; appended to.
        directory: Its working directory.
        environment: Its whole environment; None hands down our own.
        user_id: User to run as; None means ours. Needs `group_id`.
        group_id: Group to run as.
        stop_signal: The signal that asks this server to end cleanly.
        grace_s: How long it may take over that before it is killed.
        remove: Directories to delete when the owner was killed and cannot do it.
    """

    name: str
    argv: Sequence[str]
    log_path: Path
    directory: Path
    environment: Mapping[str, str] | None = None
    user_id: int | None = None
    group_id: int | None = None
    stop_signal: int = signal.SIGTERM
    grace_s: float = STOP_GRACE_S
    remove: Sequence[Path] = ()


class KeptProcess:
    """One running server under its keeper. Not for use from several threads at once."""

    def __init__(self, command: ServerCommand) -> None:
        """Start the server.

        Raises:
            ServerStartError: The program cannot be run.
        """
        self._command = command
        readable, writable = os.pipe()
        try:
            self._keeper = subprocess.Popen(
                [sys.executable, "-I", "-S", str(_KEEPER), _specification(command, writable)],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                env=None if command.environment is None else dict(command.environment),
                pass_fds=[writable],
                # Ctrl-C in a terminal reaches the owner only; the owner then stops its servers in order.
                start_new_session=True,
            )
            os.close(writable)
            writable = -1
            self.pid = _read_pid(readable, command.name)
        finally:
            for descriptor in (readable, writable):
                if descriptor >= 0:
                    os.close(descriptor)

    @property
    def is_running(self) -> bool:
        """Whether the server has not ended yet."""
        return self._keeper.poll() is None

    @property
    def exit_code(self) -> int | None:
        """The server's exit code, 128 + n when signal n ended it, None while it runs."""
        return self._keeper.poll()

    def wait(self, timeout_s: float | None = None) -> bool:
        """Wait for the server to end; tell whether it did within the time."""
        try:
            self._keeper.wait(timeout_s)
        except subprocess.TimeoutExpired:
            return False
        return True

    def stop(self) -> None:
        """End the server cleanly, by force once its grace is over. Does nothing when it has ended."""
        if not self.is_running:
            return
        self._keeper.terminate()
        if not self.wait(self._command.grace_s + KILL_TIMEOUT_S):
            self.kill()

    def kill(self) -> None:
        """End the server at once with SIGKILL, as a crash would. Does nothing when it has ended."""
        if not self.is_running:
            return
        with contextlib.suppress(ProcessLookupError):
            os.kill(self.pid, signal.SIGKILL)
        if not self.wait(KILL_TIMEOUT_S):
            self._keeper.kill()
            self._keeper.wait(KILL_TIMEOUT_S)

    def last_words(self) -> str:
        """Return the end of the server's log as the end of a sentence."""
        lines = log_tail(self._command.log_path)
        return "its last lines were:\n" + "\n".join(f"  {line}" for line in lines) if lines else "it logged nothing."

    def wait_until_ready(self, is_ready: Callable[[], bool], timeout_s: float) -> None:
        """Poll `is_ready` until it says yes.

        Raises:
            ServerStartError: The server ended before that, or the time is over; it has been stopped then.
        """
        deadline = time.monotonic() + timeout_s
        while not is_ready():
            if not self.is_running:
                raise self._start_error(f"{self._command.name} ended with code {self.exit_code} before it was ready")
            if time.monotonic() >= deadline:
                self.kill()
                raise self._start_error(f"{self._command.name} was not ready within {timeout_s:g} s")
            time.sleep(READY_POLL_S)

    def _start_error(self, message: str) -> ServerStartError:
        # A log in a temporary folder goes with it.
        remedy = "" if self._command.remove else f"The whole log is {self._command.log_path}."
        return ServerStartError(f"{message}; {self.last_words()}", remedy)


def log_tail(path: Path, lines: int = LOG_TAIL_LINES) -> list[str]:
    """Return the last lines of a log file, none when it cannot be read."""
    try:
        with path.open("rb") as log:
            log.seek(0, os.SEEK_END)
            log.seek(max(0, log.tell() - LOG_TAIL_BYTES))
            return log.read().decode(errors="replace").splitlines()[-lines:]
    except OSError:
        return []


def _specification(command: ServerCommand, status_fd: int) -> str:
    return json.dumps(
        {
            "argv": [str(argument) for argument in command.argv],
            "directory": str(command.directory),
            "grace_s": command.grace_s,
            "group_id": command.group_id,
            "log_path": str(command.log_path),
            "owner_pid": os.getpid(),
            "remove": [str(path) for path in command.remove],
            "status_fd": status_fd,
            "stop_signal": int(command.stop_signal),
            "user_id": command.user_id,
        }
    )


def _read_pid(readable: int, name: str) -> int:
    status = b""
    if select.select([readable], [], [], START_TIMEOUT_S)[0]:
        status = os.read(readable, STATUS_BYTES_MAX)
    word, _, rest = status.decode(errors="replace").partition(" ")
    if word != "started":
        raise ServerStartError(f"{name} could not be started: {rest or 'its keeper did not answer'}.")
    return int(rest)
