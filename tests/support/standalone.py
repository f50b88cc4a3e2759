"""`wherry standalone` as a user starts it, and everything it starts, found by a mark that its children inherit.

The mark is the process tree's own temporary folder: TMPDIR reaches sidecars too, whose environment is otherwise
cleaned, and Java is told the same folder. So whatever a run leaves behind, process, socket or file, is known to be
its own, though other runs go on beside it.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Self

from tests.support.rest import Rest
from tests.support.waiting import eventually

from wherry.coordinator.config import properties
from wherry.coordinator.dev.ports import free_ports

REPOSITORY = Path(__file__).resolve().parents[2]
REST_TIMEOUT_S = 120.0
STOP_TIMEOUT_S = 60.0
KILL_TIMEOUT_S = 60.0
LOG_TAIL_LINES = 60

_ROLES = (
    ("org.apache.spark", "spark"),
    ("wherry.worker.daemon", "worker"),
    ("pyspark.daemon", "worker"),
    ("wherry.worker.host", "host"),
    ("wherry.coordinator", "coordinator"),
)


@dataclass(frozen=True, slots=True)
class Process:
    """One process of a run."""

    pid: int
    parent: int
    role: str
    command: str


class Standalone:
    """One `wherry standalone`. A context manager; may be started again on the same files after `stop` or `kill`.

    Args:
        bootstrap: Kafka's address.
        connectors: Configurations by name, handed over as files.
        settings: Worker settings that overrule ours; listeners come after the one that `rest` asks.
        directory: Folder for its files, which stays; None makes one that goes with it.
    """

    command = "standalone"

    def __init__(
        self,
        *,
        bootstrap: str,
        connectors: Mapping[str, Mapping[str, str]] | None = None,
        settings: Mapping[str, str] | None = None,
        directory: Path | None = None,
    ) -> None:
        # Short, because sockets lie below it and their paths may have 107 bytes.
        self._own_directory = directory is None
        self.directory = directory or Path(tempfile.mkdtemp(prefix="wherry-test-"))
        self.temporary = self.directory / "tmp"
        self.temporary.mkdir(parents=True, exist_ok=True)
        self.offsets_file = self.directory / "connect.offsets"
        self.log_path = self.directory / "wherry.log"
        self.rest = Rest(f"http://127.0.0.1:{free_ports(1)[0]}")
        self.connectors = {name: dict(config) for name, config in (connectors or {}).items()}
        self._settings = {
            "bootstrap.servers": bootstrap,
            "key.converter": "org.apache.kafka.connect.storage.StringConverter",
            "value.converter": "org.apache.kafka.connect.storage.StringConverter",
            "offset.flush.interval.ms": "1000",
            # A clean end takes as long as it takes on a machine that stands still for seconds.
            "task.shutdown.graceful.timeout.ms": "30000",
            **self.of_mode(),
            **(settings or {}),
            "listeners": ",".join([self.rest.url, *filter(None, [(settings or {}).get("listeners")])]),
        }
        self._process: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> Self:
        try:
            return self.start()
        except BaseException:
            self.close()
            raise

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if error is not None:
            error.add_note(f"The end of Wherry's log:\n{self.log_tail()}")
        self.close()

    def of_mode(self) -> dict[str, str]:
        """Return the settings that its mode demands."""
        return {"offset.storage.file.filename": str(self.offsets_file)}

    @property
    def pid(self) -> int:
        """Process id of the coordinator. Only after `start`."""
        assert self._process is not None, "it was not started"
        return self._process.pid

    @property
    def ended(self) -> bool:
        """Whether it was started and has ended by itself."""
        return self._process is not None and self._process.poll() is not None

    def start(self) -> Self:
        """Start it and wait until REST answers."""
        worker = self.directory / "worker.properties"
        worker.write_text(properties.dumps(self._settings))
        files = []
        for name, config in self.connectors.items():
            path = self.directory / f"{name}.json"
            path.write_text(json.dumps({"name": name, "config": config}))
            files.append(str(path))
        with self.log_path.open("ab") as log:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "wherry.coordinator.cli", self.command, str(worker), *files],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                env=self._environment(),
                cwd=self.directory,
                start_new_session=True,  # a Ctrl-C meant for the tests isn't meant for it
            )
        process = self._process
        ready = eventually(lambda: process.poll() is not None or self.rest.answers(), REST_TIMEOUT_S)
        assert ready, f"REST did not answer in {REST_TIMEOUT_S:.0f} s:\n{self.log_tail()}"
        assert process.poll() is None, f"it ended with {process.returncode} at once:\n{self.log_tail()}"
        return self

    def change(self, settings: Mapping[str, str]) -> None:
        """Overrule worker settings from the next start on."""
        self._settings |= settings

    def stop(self) -> tuple[int, float]:
        """Send SIGTERM and wait; return the exit code and the seconds it took."""
        assert self._process is not None
        begun = time.monotonic()
        self._process.send_signal(signal.SIGTERM)
        code = self._process.wait(STOP_TIMEOUT_S)
        return code, time.monotonic() - begun

    def kill(self) -> None:
        """End the coordinator with SIGKILL."""
        assert self._process is not None
        self._process.kill()
        self._process.wait(KILL_TIMEOUT_S)

    def close(self) -> None:
        """Stop it, if need be by force, with all it left; delete its folder when that was temporary."""
        if self._process is not None and self._process.poll() is None:
            try:
                self.stop()
            except subprocess.TimeoutExpired:
                self.kill()
        for process in self.processes():
            send(process.pid, signal.SIGKILL)
        if self._own_directory:
            shutil.rmtree(self.directory, ignore_errors=True)

    def processes(self, role: str | None = None) -> list[Process]:
        """Return the living processes of the run, of one role or all.

        Roles: coordinator, spark (the JVM), daemon (forks workers), worker (runs leases), host (of sidecars), sidecar,
        and other. Processes that have been reparented are found too.
        """
        found = _with_roles(list(_marked(f"TMPDIR={self.temporary}")))
        return [process for process in found if role in (None, process.role)]

    def sidecar_of(self, connector: str) -> int:
        """Return the process id of a connector's sidecar, once there is one and only one."""
        found: list[int] = []

        def is_one() -> bool:
            sidecars = self.rest.get("/wherry/v1/sidecars")["sidecars"]
            found[:] = [int(each["pid"]) for each in sidecars if each["connector"] == connector]
            return len(found) == 1

        assert eventually(is_one), f"{connector} has the sidecars {found}, not one"
        return found[0]

    def workers_of(self, connector: str) -> list[int]:
        """Return the ids of the processes that run a connector's leases; not of those nobody has taken up yet."""
        leases = self.rest.get("/wherry/v1/leases")["leases"]
        workers = [each["worker"] for each in leases if each["connector"] == connector and each["worker"]]
        return [int(worker.rpartition(":")[2]) for worker in workers]

    def leftover_files(self) -> list[str]:
        """Return what lies in the run's temporary folder, sockets included, as paths below it."""
        return sorted(str(path.relative_to(self.temporary)) for path in self.temporary.rglob("*"))

    def log_tail(self) -> str:
        """Return the end of its log."""
        try:
            return "\n".join(self.log_path.read_text(errors="replace").splitlines()[-LOG_TAIL_LINES:])
        except OSError:
            return "(no log)"

    def _environment(self) -> dict[str, str]:
        rooms = [str(REPOSITORY / room) for room in ("coordinator", "worker", "sdk/python")]
        inherited = {name: value for name, value in os.environ.items() if name not in ("XDG_RUNTIME_DIR", "PYTHONPATH")}
        return {
            **inherited,
            "PYTHONPATH": os.pathsep.join(rooms),
            "PATH": os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", os.defpath)]),
            "PYTHONFAULTHANDLER": "1",  # a crash in a native library says where
            "TMPDIR": str(self.temporary),
            # Java does not look at TMPDIR; this is the variable that every JVM reads.
            "JDK_JAVA_OPTIONS": f"-Djava.io.tmpdir={self.temporary}",
        }


def send(pid: int, number: signal.Signals) -> bool:
    """Send a signal; tell whether the process was there."""
    try:
        os.kill(pid, number)
    except ProcessLookupError:
        return False
    return True


def _marked(mark: str) -> Iterator[Process]:
    needle = mark.encode()
    for entry in Path("/proc").iterdir():
        if not entry.name.isdecimal():
            continue
        try:
            if needle not in (entry / "environ").read_bytes().split(b"\0"):
                continue
            fields = (entry / "stat").read_text().rpartition(")")[2].split()
            command = (entry / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace").strip()
        except OSError:  # it ended while we looked, or is not ours to read
            continue
        if fields[0] != "Z":
            yield Process(int(entry.name), int(fields[1]), "", command)


def _with_roles(processes: list[Process]) -> list[Process]:
    by_pid = {process.pid: process for process in processes}
    roles = {pid: _role(process, by_pid) for pid, process in by_pid.items()}
    return [Process(each.pid, each.parent, roles[each.pid], each.command) for each in processes]


def _role(process: Process, by_pid: Mapping[int, Process]) -> str:
    parent = by_pid.get(process.parent)
    role = next((role for word, role in _ROLES if word in process.command), "")
    if role == "worker":  # the daemon and those it forks show the same command
        return "worker" if parent is not None and parent.command == process.command else "daemon"
    if role:
        return role
    return "sidecar" if parent is not None and "wherry.worker.host" in parent.command else "other"
