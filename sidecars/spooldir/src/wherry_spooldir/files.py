"""Finds the files of a directory and takes them away when they are finished or bad."""

from __future__ import annotations

import fnmatch
import json
import os
import re
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from wherry.contract.errors import ConfigError

# Writers give a file its name when it is whole; until then it looks like one of these.
UNFINISHED = ("*.tmp", "*.part", "*.partial", "*.crdownload", "*.PROCESSING", "_*", ".*")
REPORT_SUFFIX = ".error.json"


@dataclass(frozen=True, slots=True)
class SpoolFile:
    """A file as it was when it was seen; another size or time makes it another file."""

    path: Path
    name: str
    """Path below the input directory, with slashes."""
    size_bytes: int
    modified_ms: int


def find(directory: Path, pattern: str, *, recursive: bool, age_ms_min: int, now_ms: int) -> list[SpoolFile]:
    """Lists the files that are ready, oldest first.

    Args:
        directory: Where to look.
        pattern: Regular expression that a whole name must match.
        recursive: Also look into directories below.
        age_ms_min: Leave files alone that were changed more recently.
        now_ms: The time, in ms since the epoch.

    Raises:
        ConfigError: The directory can't be listed.
    """
    wanted = re.compile(pattern)
    found = []
    try:
        paths = list(directory.rglob("*") if recursive else directory.iterdir())
    except OSError as error:
        raise ConfigError(f"input.path {directory} can't be listed: {error.strerror}", key="input.path") from None
    for path in paths:
        try:
            stat = path.stat()
        except FileNotFoundError:
            continue  # taken away meanwhile
        if not path.is_file() or not wanted.fullmatch(path.name) or _unfinished(path.name):
            continue
        modified_ms = stat.st_mtime_ns // 1_000_000
        if now_ms - modified_ms >= age_ms_min:
            found.append(SpoolFile(path, path.relative_to(directory).as_posix(), stat.st_size, modified_ms))
    return sorted(found, key=lambda file: (file.modified_ms, file.name))


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
