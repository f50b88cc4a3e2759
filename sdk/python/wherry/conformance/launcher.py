"""Starts the sidecar under test as the sidecar host does, with a clean environment and a Unix socket.

It knows nothing of limits, log capture or restarts: a case wants to see the process as it is. Every wait has a
deadline, and a process that was started here is gone when `stop` returns.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from wherry.conformance.failure import Failure, UsageError
from wherry.contract.manifest import Manifest

SOCKET_DEADLINE_S: Final = 60.0
BUILD_DEADLINE_S: Final = 600.0
TERMINATE_DEADLINE_S: Final = 5.0
POLL_S: Final = 0.01
LOG_TAIL_BYTES: Final = 2048
# What a sidecar finds in its environment beside its own variables.
INHERITED: Final = ("PATH", "HOME", "LANG", "TZ", "TMPDIR", "PYTHONPATH")


@dataclass(frozen=True, slots=True)
class Command:
    """What is started.

    Attributes:
        argv: Command line.
        directory: Working directory.
        variables: Environment variables of its own.
        build: Command line that makes the program when it is missing; None when nothing does.
    """

    argv: tuple[str, ...]
    directory: Path
    variables: Mapping[str, str] = field(default_factory=dict)
    build: tuple[str, ...] | None = None

    @property
    def missing(self) -> bool:
        """Whether there is no such program."""
        return shutil.which(self.argv[0]) is None


def command_of(manifest: Manifest, *, python: str | None = None) -> Command:
    """Returns the command line of a manifest. Nothing is built or started.

    Args:
        manifest: Manifest of the plugin.
        python: Interpreter that stands for "python"; None means this one.

    Raises:
        UsageError: The manifest starts nothing.
    """
    if manifest.run is None:
        raise UsageError(f"{manifest.name} is attached to and not run; give the command line after --.")
    program = manifest.run[0]
    variables = dict(manifest.environment.variables)
    if program == "python":
        program = python or sys.executable
        source = manifest.directory / "src"
        if source.is_dir():
            # A project is tested as it lies there, installed or not.
            variables["PYTHONPATH"] = os.pathsep.join(filter(None, (str(source), os.environ.get("PYTHONPATH"))))
    elif "/" in program and not Path(program).is_absolute():
        program = str(manifest.directory / program)
    return Command((program, *manifest.run[1:]), manifest.directory, variables, manifest.build)


def build(command: Command) -> None:
    """Makes a program that is missing; does nothing when it is there.

    Raises:
        UsageError: It can't be built.
    """
    if not command.missing:
        return
    if command.build is None:
        raise UsageError(f"{command.argv[0]} can't be started: there is no such program, and nothing builds it.")
    told = f"{command.argv[0]} can't be built with {' '.join(command.build)}"
    try:
        done = subprocess.run(
            command.build, cwd=command.directory, capture_output=True, text=True, timeout=BUILD_DEADLINE_S, check=False
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise UsageError(f"{told}: {error}.") from error
    if done.returncode:
        raise UsageError(f"{told}: {done.stderr.strip()}")


class Process:
    """One running sidecar.

    Attributes:
        endpoint: Where it listens, as in WHERRY_ENDPOINT.
        instance_id: Its instance id, as in WHERRY_INSTANCE_ID.
    """

    def __init__(self, command: Command) -> None:
        # Paths of Unix sockets are short (108 bytes), so this is not the case's scratch folder.
        self._folder = Path(tempfile.mkdtemp(prefix="wherry-c-"))
        self._socket = self._folder / "s"
        self._log_path = self._folder / "log"
        self.endpoint = f"unix://{self._socket}"
        self.instance_id = uuid.uuid4().hex
        environment = {name: os.environ[name] for name in INHERITED if name in os.environ}
        environment |= {
            **command.variables,
            "WHERRY_ENDPOINT": self.endpoint,
            "WHERRY_INSTANCE_ID": self.instance_id,
        }
        try:
            with self._log_path.open("wb") as log:
                self._process = subprocess.Popen(
                    command.argv,
                    cwd=command.directory,
                    env=environment,
                    stdin=subprocess.DEVNULL,
                    stdout=log,
                    stderr=subprocess.STDOUT,
                    start_new_session=True,
                )
        except OSError as error:
            shutil.rmtree(self._folder, ignore_errors=True)
            raise UsageError(f"{command.argv[0]} can't be started: {error.strerror}.") from error

    @property
    def running(self) -> bool:
        """Whether the process has not ended."""
        return self._process.poll() is None

    def wait_for_socket(self, deadline_s: float = SOCKET_DEADLINE_S) -> None:
        """Waits until the sidecar listens.

        Raises:
            Failure: It ended, or didn't listen in time.
        """
        end = time.monotonic() + deadline_s
        while not self._socket.exists():
            code = self._process.poll()
            if code is not None:
                raise Failure(f"The sidecar ended with code {code} before it listened.{self.log_tail()}")
            if time.monotonic() > end:
                raise Failure(f"The sidecar did not listen on its endpoint within {deadline_s:g} s.{self.log_tail()}")
            time.sleep(POLL_S)

    def terminate(self, within_s: float) -> float:
        """Sends SIGTERM and waits for the end.

        Returns:
            Seconds it took.

        Raises:
            Failure: It did not end in time.
        """
        begin = time.monotonic()
        self._process.send_signal(signal.SIGTERM)
        try:
            self._process.wait(within_s)
        except subprocess.TimeoutExpired:
            raise Failure(f"The process did not end within {within_s:g} s of SIGTERM.") from None
        return time.monotonic() - begin

    def stop(self, *, kill: bool = False) -> None:
        """Ends the process and everything it has started, in order if it can; never fails."""
        if not kill and self.running:
            self._process.terminate()
            with contextlib.suppress(subprocess.TimeoutExpired):
                self._process.wait(TERMINATE_DEADLINE_S)
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()
        shutil.rmtree(self._folder, ignore_errors=True)

    def log_tail(self) -> str:
        """Returns the end of what the process has printed, as an addition to a sentence."""
        try:
            text = self._log_path.read_bytes()[-LOG_TAIL_BYTES:].decode(errors="replace").strip()
        except OSError:
            return ""
        return f" Its last output:\n{text}" if text else " It printed nothing."


def command_from(argv: Sequence[str]) -> Command:
    """Returns a command line given by hand.

    Raises:
        UsageError: It is empty.
    """
    if not argv:
        raise UsageError("Give --manifest DIR, or a command line after --.")
    return Command(tuple(argv), Path.cwd())
