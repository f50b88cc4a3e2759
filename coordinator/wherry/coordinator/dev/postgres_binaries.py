"""PostgreSQL's programs for machines that have none installed: the portable build that Maven repositories carry."""

from __future__ import annotations

import os
import platform
import shutil
import tarfile
import tempfile
import zipfile
from pathlib import Path

from wherry.contract.cache import cache_folder
from wherry.coordinator.dev.errors import BinariesMissingError
from wherry.coordinator.dev.ivy import Progress
from wherry.coordinator.dev.jars import ensure_jars, jar_set

POSTGRES_VERSION = "17.6.0"
MACHINES = {"x86_64": "amd64", "amd64": "amd64", "aarch64": "arm64v8", "arm64": "arm64v8"}
# PostgreSQL refuses to run as root, and no other user can read root's cache.
SHARED_FOLDER = Path("/var/tmp")  # noqa: S108  checked to be ours before use


def fetch_binaries(progress: Progress | None = None) -> Path:
    """Return the folder of PostgreSQL's programs, fetched and unpacked on first use.

    Raises:
        BinariesMissingError: There is no build for this machine.
        DevServerError: It can't be fetched.
    """
    system, machine = platform.system().lower(), MACHINES.get(platform.machine().lower())
    if system != "linux" or machine is None:
        raise BinariesMissingError(
            f"There is no portable PostgreSQL for {platform.system()} on {platform.machine()}.",
            "Install the server, or put its programs on PATH.",
        )
    folder = _home() / f"postgres-{POSTGRES_VERSION}-{machine}"
    if not (folder / "bin" / "postgres").is_file() or folder.stat().st_uid != os.geteuid():
        name = f"io.zonky.test.postgres:embedded-postgres-binaries-linux-{machine}:{POSTGRES_VERSION}"
        jar = next(path for path in ensure_jars(jar_set(name), progress) if path.suffix == ".jar")
        _unpack(jar, folder)
    return folder / "bin"


def _home() -> Path:
    return SHARED_FOLDER / f"wherry-{os.geteuid()}" if os.geteuid() == 0 else cache_folder()


def _unpack(jar: Path, folder: Path) -> None:
    """Unpack beside the place and rename, so that the folder is whole or absent."""
    folder.parent.mkdir(parents=True, exist_ok=True)
    folder.parent.chmod(0o755)
    with tempfile.TemporaryDirectory(dir=folder.parent) as scratch:
        with zipfile.ZipFile(jar) as archive:
            inner = next(name for name in archive.namelist() if name.endswith(".txz"))
            packed = Path(archive.extract(inner, scratch))
        made = Path(scratch) / "made"
        made.mkdir(mode=0o755)
        with tarfile.open(packed, "r:xz") as archive_inside:
            archive_inside.extractall(made, filter="data")
        if folder.exists():
            shutil.rmtree(folder)
        made.rename(folder)
