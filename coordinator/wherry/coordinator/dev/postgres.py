"""A real PostgreSQL on this machine for tests and demonstrations, from the installed binaries."""

from __future__ import annotations

import os
import pwd
import re
import shutil
import signal
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Self

from wherry.coordinator.dev.errors import BinariesMissingError, DevServerError, ServerStartError
from wherry.coordinator.dev.folders import server_folder
from wherry.coordinator.dev.ports import LOOPBACK, accepts_connections, free_ports, require_free
from wherry.coordinator.dev.process import KeptProcess, ServerCommand
from wherry.coordinator.dev.server import ProcessServer

READY_TIMEOUT_S = 60.0
COMMAND_TIMEOUT_S = 60.0
STOP_GRACE_S = 15.0
SUPERUSER = "postgres"
DATABASE = "postgres"

DEBIAN_ROOT = Path("/usr/lib/postgresql")
# PostgreSQL refuses to run as root; the packaged user is the natural other one.
UNPRIVILEGED_USERS = ("postgres", "nobody")

_INSTALL = "Install the server (Debian and Ubuntu: apt-get install postgresql), or put its programs on PATH."


@dataclass(frozen=True, slots=True)
class _Identity:
    """Whom the server runs as; None and None are ourselves."""

    user_id: int | None = None
    group_id: int | None = None


class LocalPostgres(ProcessServer):
    """One PostgreSQL server with trust authentication on the loopback address. A context manager.

    Its settings are PostgreSQL's own unless `options` say otherwise; pass `{"fsync": "off"}` where durability
    against a power cut is of no interest. May be started again on the same data after `stop` or `kill`.
    """

    def __init__(
        self,
        *,
        port: int | None = None,
        data_dir: Path | None = None,
        options: Mapping[str, str] | None = None,
        binaries: Path | None = None,
    ) -> None:
        """Describe the server; nothing is started yet.

        Args:
            port: Where clients connect; None takes a free one.
            data_dir: Folder that is kept; None makes a temporary one that `close` deletes.
            options: Server settings, as of `postgresql.conf`.
            binaries: Folder of its programs; None finds them.

        Raises:
            BinariesMissingError: PostgreSQL is not installed.
        """
        self.host = LOOPBACK
        self.port = port if port is not None else free_ports(1)[0]
        self._binaries = binaries or find_binaries()
        self._options = dict(options or {})
        self._identity = _unprivileged_identity()
        super().__init__(server_folder("postgres", data_dir))

    @property
    def url(self) -> str:
        """A libpq address of its database `postgres`."""
        return self.url_of(DATABASE)

    @property
    def jdbc_url(self) -> str:
        """The same address as JDBC drivers want it."""
        return f"jdbc:postgresql://{self.host}:{self.port}/{DATABASE}?user={SUPERUSER}"

    @property
    def data_dir(self) -> Path:
        """The folder with the data, the log and the Unix socket."""
        return self._folder.path

    @property
    def log_path(self) -> Path:
        """The file that takes the server's log."""
        return self.data_dir / "postgres.log"

    def url_of(self, database: str) -> str:
        """Return the libpq address of a database."""
        return f"postgresql://{SUPERUSER}@{self.host}:{self.port}/{database}"

    def start(self, timeout_s: float = READY_TIMEOUT_S) -> Self:
        """Start the server and wait until it accepts connections. Does nothing when it runs.

        Raises:
            PortTakenError: Somebody listens on its port.
            ServerStartError: Its data cannot be made, or it ended or stayed silent.
        """
        if self.is_running:
            return self
        require_free(self.port, "PostgreSQL")
        self._make_cluster()
        self._process = KeptProcess(self._command())
        self._process.wait_until_ready(self._is_ready, timeout_s)
        return self

    def run_sql(self, statement: str, database: str = DATABASE) -> list[str]:
        """Run SQL and return the result's lines, columns separated by `|`, as psql prints them.

        Without psql, which the portable build lacks, psycopg runs one statement.

        Raises:
            DevServerError: The server refuses it.
        """
        if not (self._binaries / "psql").exists():
            return _run_by_driver(self.url_of(database), statement)
        arguments = ["-X", "-q", "-A", "-t", "-v", "ON_ERROR_STOP=1", "-d", self.url_of(database), "-c", statement]
        done = self._run("psql", arguments)
        if done.returncode != 0:
            raise DevServerError(f"PostgreSQL refused {statement!r}: {' '.join(done.stderr.split())}.")
        return done.stdout.splitlines()

    @property
    def _cluster(self) -> Path:
        return self.data_dir / "cluster"

    def _make_cluster(self) -> None:
        if (self._cluster / "PG_VERSION").is_file():
            return
        if self._identity.user_id is not None:
            os.chown(self.data_dir, self._identity.user_id, self._identity.group_id or 0)
        arguments = ["-D", str(self._cluster), "-U", SUPERUSER, "-A", "trust", "-E", "UTF8", "--locale=C.UTF-8", "-N"]
        done = self._run("initdb", arguments)
        if done.returncode != 0:
            raise ServerStartError(
                f"PostgreSQL's data folder {self._cluster} cannot be made: {' '.join(done.stderr.split())}",
                "Choose a folder that an unprivileged user may reach.",
            )

    def _command(self) -> ServerCommand:
        settings = {
            "listen_addresses": self.host,
            "port": str(self.port),
            "unix_socket_directories": str(self.data_dir),
            **self._options,
        }
        return ServerCommand(
            name="PostgreSQL",
            argv=[
                *(str(self._binaries / "postgres"), "-D", str(self._cluster)),
                *(argument for key, value in settings.items() for argument in ("-c", f"{key}={value}")),
            ],
            log_path=self.log_path,
            directory=self.data_dir,
            user_id=self._identity.user_id,
            group_id=self._identity.group_id,
            stop_signal=signal.SIGINT,  # its "fast" shutdown; SIGTERM would wait for clients to leave
            grace_s=STOP_GRACE_S,
            remove=self._folder.removable,
        )

    def _is_ready(self) -> bool:
        # The server tells its state in the last line of this file (pg_isready isn't part of every build). A killed one
        # leaves the file behind, so somebody has to listen too; a new one writes the file before it listens.
        try:
            told = (self._cluster / "postmaster.pid").read_text().split()
        except (FileNotFoundError, PermissionError):
            return False
        return told[-1:] == ["ready"] and accepts_connections(self.port, self.host)

    def _run(self, program: str, arguments: Sequence[str]) -> subprocess.CompletedProcess[str]:
        identity = self._identity
        return subprocess.run(
            [str(self._binaries / program), *arguments],
            capture_output=True,
            text=True,
            errors="replace",
            timeout=COMMAND_TIMEOUT_S,
            check=False,
            cwd=self.data_dir,
            user=identity.user_id,
            group=identity.group_id,
            extra_groups=None if identity.user_id is None else [],
        )


def find_binaries(root: Path = DEBIAN_ROOT) -> Path:
    """Return the folder of PostgreSQL's programs.

    It is the newest Debian package's, or that of `postgres` on PATH, or a portable build fetched on first use.

    Raises:
        BinariesMissingError: There is none, and no portable build for this machine.
        DevServerError: The portable build can't be fetched.
    """
    packaged = [path.parent for path in root.glob("*/bin/postgres")]
    if packaged:
        return max(packaged, key=lambda path: _number(path.parent.name))
    found = shutil.which("postgres")
    if found is not None and Path(found).resolve().with_name("initdb").exists():
        return Path(found).resolve().parent
    from wherry.coordinator.dev.postgres_binaries import fetch_binaries

    return fetch_binaries()


def _run_by_driver(url: str, statement: str) -> list[str]:
    import psycopg  # only where psql is missing

    with psycopg.connect(url, autocommit=True) as connection, connection.cursor() as cursor:
        try:
            result = cursor.execute(statement).pgresult
        except psycopg.Error as error:
            raise DevServerError(f"PostgreSQL refused {statement!r}: {' '.join(str(error).split())}.") from None
        if result is None:
            return []
        cells = (
            (result.get_value(row, column) or b"" for column in range(result.nfields)) for row in range(result.ntuples)
        )
        return ["|".join(cell.decode() for cell in row) for row in cells]


def _number(version: str) -> float:
    match = re.match(r"\d+(?:\.\d+)?", version)
    return float(match.group()) if match else -1.0


def _unprivileged_identity() -> _Identity:
    if os.geteuid() != 0:
        return _Identity()
    for name in UNPRIVILEGED_USERS:
        try:
            entry = pwd.getpwnam(name)
        except KeyError:
            continue
        return _Identity(entry.pw_uid, entry.pw_gid)
    raise BinariesMissingError(
        f"PostgreSQL does not run as root, and there is no user {' or '.join(UNPRIVILEGED_USERS)}.", _INSTALL
    )
