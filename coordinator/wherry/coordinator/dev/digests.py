"""Manifests: the names, sizes and SHA-256 digests of the files of a folder, written, read and checked.

A manifest is a text file of lines `digest size name`, sorted by name; lines that begin with `#` are comments.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from wherry.coordinator.dev.errors import ArtifactCorruptError

MANIFEST_BYTES_MAX = 1024 * 1024


@dataclass(frozen=True, slots=True)
class FileDigest:
    """What a file has to be.

    Attributes:
        sha256: Hexadecimal digest of its content.
        size_bytes: Its length.
    """

    sha256: str
    size_bytes: int


Manifest = Mapping[str, FileDigest]


def digest_files(paths: Iterable[Path]) -> dict[str, FileDigest]:
    """Return the manifest of the given files, by file name."""
    return {path.name: _digest(path) for path in sorted(paths)}


def render_manifest(manifest: Manifest) -> str:
    """Return the manifest as text."""
    return "".join(f"{file.sha256} {file.size_bytes} {name}\n" for name, file in sorted(manifest.items()))


def parse_manifest(text: str, origin: str) -> dict[str, FileDigest]:
    """Return the manifest in `text`; `origin` names it in errors.

    Raises:
        ArtifactCorruptError: A line is none of a manifest.
    """
    manifest = {}
    for number, line in enumerate(text.splitlines(), start=1):
        if not line.strip() or line.startswith("#"):
            continue
        fields = line.split(" ", 2)
        if len(fields) != 3 or len(fields[0]) != 64 or not fields[1].isdecimal():
            raise ArtifactCorruptError(f"Line {number} of {origin} is not `digest size name`.", "Delete the folder.")
        manifest[fields[2]] = FileDigest(fields[0], int(fields[1]))
    return manifest


def check_sizes(folder: Path, manifest: Manifest) -> None:
    """Check that every file is there with its size: a millisecond for a hundred jars.

    Raises:
        ArtifactCorruptError: A file is missing or has another length.
    """
    for name, expected in manifest.items():
        try:
            size_bytes = (folder / name).stat().st_size
        except OSError as error:
            raise _corrupt(folder / name, "is missing") from error
        if size_bytes != expected.size_bytes:
            raise _corrupt(folder / name, f"has {size_bytes} bytes, not {expected.size_bytes}")


def check_digests(folder: Path, manifest: Manifest) -> None:
    """Check the content of every file of the manifest.

    Raises:
        ArtifactCorruptError: A file is missing or has another content.
    """
    check_sizes(folder, manifest)
    for name, expected in manifest.items():
        actual = _digest(folder / name)
        if actual != expected:
            raise _corrupt(folder / name, f"has SHA-256 {actual.sha256[:12]}…, not {expected.sha256[:12]}…")


def _digest(path: Path) -> FileDigest:
    with path.open("rb") as content:
        return FileDigest(hashlib.file_digest(content, "sha256").hexdigest(), path.stat().st_size)


def _corrupt(path: Path, what: str) -> ArtifactCorruptError:
    return ArtifactCorruptError(
        f"The file {path} {what}: it is damaged or was changed.",
        f"Delete the folder {path.parent} and start again: it is fetched anew.",
    )
