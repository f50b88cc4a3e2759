"""Finds the files of a directory and takes them away when they are finished or bad."""

from __future__ import annotations

import errno
import fnmatch
import json
import os
import re
import shutil
import stat
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from wherry.contract.errors import ConfigError, TransientError

# Writers give a file its name when it is whole; until then it looks like one of these.
UNFINISHED = ("*.tmp", "*.part", "*.partial", "*.crdownload", "*.PROCESSING", "_*", ".*")
REPORT_SUFFIX = ".error.json"
# A directory that is no such thing, or not ours to list; whatever else goes wrong, as on a network's drive, may pass.
_WRONG = frozenset((errno.ENOENT, errno.ENOTDIR, errno.EACCES, errno.EPERM, errno.ELOOP))


@dataclass(frozen=True, slots=True)
class SpoolFile:
    """A file as it was when it was seen; another size or time makes it another file."""

    path: Path
    name: str
    """Path below the input directory, with slashes."""
    size_bytes: int
    modified_ms: int


@dataclass(frozen=True, slots=True)
class Listing:
    """What a look at a directory has found.

    Attributes:
        files: Files that are ready, oldest first.
        unseen: Directories below that can't be listed now, with a slash behind them: what lies there is not known.
    """

    files: tuple[SpoolFile, ...]
    unseen: tuple[str, ...] = ()

    def may_hold(self, name: str) -> bool:
        """Whether a file that was not found may be there all the same."""
        return name.startswith(self.unseen)


def find(directory: Path, pattern: str, *, recursive: bool, age_ms_min: int, now_ms: int) -> Listing:
    """Lists the files that are ready.

    Args:
        directory: Where to look.
        pattern: Regular expression that a whole name must match.
        recursive: Also look into directories below.
        age_ms_min: Leave files alone that were changed more recently.
        now_ms: The time, in ms since the epoch.

    Raises:
        WherryError: The directory can't be listed, or not now.
    """
    wanted = re.compile(pattern)
    found = []
    unseen: list[str] = []
    for path in _paths(directory, recursive, unseen):
        if not wanted.fullmatch(path.name) or _unfinished(path.name):
            continue
        name = path.relative_to(directory).as_posix()
        try:
            status = path.stat()
        except FileNotFoundError:
            continue  # taken away meanwhile
        except OSError:
            unseen.append(name)
            continue
        if not stat.S_ISREG(status.st_mode):
            continue
        modified_ms = status.st_mtime_ns // 1_000_000
        if now_ms - modified_ms >= age_ms_min:
            found.append(SpoolFile(path, name, status.st_size, modified_ms))
    return Listing(tuple(sorted(found, key=lambda file: (file.modified_ms, file.name))), tuple(unseen))


def _paths(directory: Path, recursive: bool, unseen: list[str]) -> Iterator[Path]:
    """What is in a directory and, if wanted, in those below; tells those below that can't be listed."""

    def refused(error: OSError) -> None:
        place = Path(error.filename)
        if place == directory:
            text = f"input.path {directory} can't be listed: {error.strerror}"
            raise ConfigError(text, key="input.path") if error.errno in _WRONG else TransientError(text)
        if not isinstance(error, FileNotFoundError):
            unseen.append(f"{place.relative_to(directory).as_posix()}/")

    for parent, folders, names in os.walk(directory, onerror=refused):
        yield from (Path(parent, name) for name in names)
        if not recursive:
            folders.clear()


def move(file: SpoolFile, target: Path) -> Path:
    """Moves a file below another directory, never over an older one of the same name."""
    return _place(file.path, target / file.name, lambda source, to: shutil.move(source, to))


def report_error(file: SpoolFile, target: Path, message: str) -> Path:
    """Moves a bad file to the error directory, with a report beside it that says what is wrong."""
    moved = move(file, target)
    report = {
        "file": file.name,
        "error": message,
        "size_bytes": file.size_bytes,
        "moved_to": str(moved),
        "at": datetime.now(UTC).isoformat(),
    }
    moved.with_name(moved.name + REPORT_SUFFIX).write_text(json.dumps(report, indent=2) + "\n")
    return moved


def require_directory(path: Path, key: str, *, writable: bool) -> str | None:
    """What is wrong with a directory of the configuration, in a sentence; None if nothing."""
    if not path.is_absolute():
        return f"{path} is not an absolute path; a sidecar has no working directory of yours"
    if not path.is_dir():
        return f"{path} is not a directory; create it, or correct {key}"
    if not os.access(path, os.R_OK | os.X_OK | (os.W_OK if writable else 0)):
        return f"{path} can't be {'written' if writable else 'read'} by user {os.getuid()}; change its mode, or {key}"
    return None


def _unfinished(name: str) -> bool:
    return any(fnmatch.fnmatch(name, pattern) for pattern in UNFINISHED)


def _place(source: Path, wanted: Path, act: Callable[[Path, Path], object]) -> Path:
    wanted.parent.mkdir(parents=True, exist_ok=True)
    target, number = wanted, 1
    while target.exists():
        target = wanted.with_name(f"{wanted.stem}.{number}{wanted.suffix}")
        number += 1
    act(source, target)
    return target
