"""The stage of the demonstration: a broker, a standalone Wherry as a user would start it, and its connectors.

Everything lives in one folder and ends with the process.
"""

from __future__ import annotations

import ctypes
import json
import signal
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypedDict

from wherry.coordinator.dev.errors import ServerStartError
from wherry.coordinator.dev.keeper import PR_SET_PDEATHSIG
from wherry.coordinator.dev.ports import free_ports

TOPIC = "demo"
PARTITIONS = 4
TASKS = 2
START_TIMEOUT_S = 300.0  # a first start makes the sidecars' environments
STOP_TIMEOUT_S = 15.0
REQUEST_TIMEOUT_S = 30.0
POLL_S = 0.2
LOG_LINES_SHOWN = 15


class Connector(TypedDict):
    """A connector as REST takes it."""

    name: str
    config: dict[str, str]


@dataclass(frozen=True, slots=True)
class Stage:
    """Where everything is."""

    folder: Path
    bootstrap: str
    rest_url: str

    @property
    def database(self) -> Path:
        """The DuckDB file that rows land in."""
        return self.folder / "landed.duckdb"

    @property
    def log(self) -> Path:
        """What Wherry says."""
        return self.folder / "wherry.log"

    def request(self, method: str, path: str, body: Any = None) -> Any:
        """Calls the REST API.

        Raises:
            ServerStartError: The server refused, or isn't there; in its own words.
        """
        request = urllib.request.Request(  # noqa: S310  the URL is our own
            self.rest_url + path,
            method=method,
            data=None if body is None else json.dumps(body).encode(),
            headers={"Content-Type": "application/json"},
        )
        try:
            with urllib.request.urlopen(request, timeout=REQUEST_TIMEOUT_S) as response:  # noqa: S310
                text = response.read()
        except urllib.error.HTTPError as error:
            raise ServerStartError(f"Wherry refused {method} {path}: {_message(error)}", self.last_words()) from None
        return json.loads(text) if text else None

    def last_words(self) -> str:
        """The last lines of Wherry's log."""
        lines = self.log.read_text(errors="replace").splitlines() if self.log.exists() else []
        return "\n".join(lines[-LOG_LINES_SHOWN:])


def source(stage: Stage, spool: Path) -> Connector:
    """Reads the CSV file from its directory."""
    return {
        "name": "demo-files",
        "config": {
            "connector.class": "SpoolDir",
            "tasks.max": str(TASKS),
            "topic": TOPIC,
            "input.path": str(spool),
            "finished.path": str(stage.folder / "finished"),
            "error.path": str(stage.folder / "error"),
            "format": "csv",
            "split.bytes": str(8 << 20),
        },
    }


def duckdb_sink(stage: Stage) -> Connector:
    """Writes into a DuckDB file."""
    return {
        "name": "demo-table",
        "config": {
            "connector.class": "TableSink",
            "tasks.max": str(TASKS),
            "topics": TOPIC,
            "database": str(stage.database),
        },
    }


def postgres_sink(jdbc_url: str) -> Connector:
    """Writes into PostgreSQL."""
    return {
        "name": "demo-postgres",
        "config": {
            "connector.class": "JdbcSink",
            "tasks.max": str(TASKS),
            "topics": TOPIC,
            "connection.url": jdbc_url,
            "table.name.format": "wherry_demo",
            "auto.create": "true",
            "auto.evolve": "true",
        },
    }


@contextmanager
def wherry(folder: Path, bootstrap: str, rest_port: int | None) -> Iterator[Stage]:
    """Starts a standalone Wherry and stops it at the end.

    Raises:
        ServerStartError: It ended, or doesn't answer in time.
    """
    port = rest_port or free_ports(1)[0]
    stage = Stage(folder, bootstrap, f"http://127.0.0.1:{port}")
    properties = folder / "worker.properties"
    properties.write_text(
        f"bootstrap.servers={bootstrap}\n"
        "key.converter=org.apache.kafka.connect.storage.StringConverter\n"
        "value.converter=org.apache.kafka.connect.json.JsonConverter\n"
        "value.converter.schemas.enable=false\n"
        f"offset.storage.file.filename={folder / 'offsets'}\n"
        "offset.flush.interval.ms=1000\n"
        f"listeners=http://127.0.0.1:{port}\n"
    )
    with stage.log.open("wb") as log:
        process = subprocess.Popen(
            [sys.executable, "-m", "wherry.coordinator.cli", "standalone", str(properties)],
            stdout=log,
            stderr=subprocess.STDOUT,
            stdin=subprocess.DEVNULL,
            preexec_fn=_end_with_parent,
        )
    try:
        _wait_for_rest(stage, process)
        yield stage
    finally:
        process.send_signal(signal.SIGTERM)
        try:
            process.wait(STOP_TIMEOUT_S)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def _end_with_parent() -> None:
    """Has the kernel end this process when the demonstration is killed. Runs between fork and exec."""
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGTERM)


def _wait_for_rest(stage: Stage, process: subprocess.Popen[bytes]) -> None:
    deadline = time.monotonic() + START_TIMEOUT_S
    while True:
        if process.poll() is not None:
            raise ServerStartError(f"Wherry ended with code {process.returncode}.", stage.last_words())
        try:
            stage.request("GET", "/")
            return
        except (urllib.error.URLError, ConnectionError, TimeoutError):
            if time.monotonic() > deadline:
                raise ServerStartError("Wherry's REST API doesn't answer.", stage.last_words()) from None
        time.sleep(POLL_S)


def _message(error: urllib.error.HTTPError) -> str:
    try:
        return str(json.loads(error.read())["message"])
    except (ValueError, KeyError, TypeError):
        return f"HTTP {error.code}"
