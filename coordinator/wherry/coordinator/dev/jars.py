"""Sets of jars from Maven repositories, fetched once per user and checked by digest on every use.

A set lives in `<cache>/jars/<name>-<version>/` with its manifest. It appears there whole or not at all: it is fetched
into a folder beside it, under a lock that other processes wait for, checked, and renamed.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import importlib.resources
import os
import shutil
import tarfile
import tempfile
import time
import zipfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from wherry.contract.cache import cache_folder
from wherry.coordinator.dev import ivy
from wherry.coordinator.dev.digests import (
    FileDigest,
    Manifest,
    check_digests,
    check_sizes,
    digest_files,
    parse_manifest,
    render_manifest,
)
from wherry.coordinator.dev.errors import ArtifactCorruptError, ArtifactError
from wherry.coordinator.dev.ivy import RETRIEVE_TIMEOUT_S, Coordinate, Progress, parse_coordinate
from wherry.coordinator.dev.java import find_java

KAFKA_VERSION = "4.3.1"
SCALA_VERSION = "2.13"
LOG4J_VERSION = "2.25.4"

LOCK_TIMEOUT_S = RETRIEVE_TIMEOUT_S + 60.0
LOCK_POLL_S = 0.1
DIFFERENCES_SHOWN_MAX = 3

_MANIFEST = "manifest.txt"
_CHECKED = "checked.txt"
_PARTIAL = ".partial-"


@dataclass(frozen=True, slots=True)
class JarSet:
    """Artifacts that are used together.

    Attributes:
        name: Of its folder; unique among sets.
        version: Of its folder.
        coordinates: What to fetch; jars come with what they depend on.
        is_pinned: Whether the package carries the manifest that the files have to match.
    """

    name: str
    version: str
    coordinates: tuple[Coordinate, ...]
    is_pinned: bool = False


def _kafka(artifact: str) -> Coordinate:
    return Coordinate("org.apache.kafka", artifact, KAFKA_VERSION)


# Kafka's own packages bring this logger; without it a server that fails to start says nothing.
_LOGGER = Coordinate("org.apache.logging.log4j", "log4j-slf4j-impl", LOG4J_VERSION)

BROKER = JarSet("broker", KAFKA_VERSION, (_kafka(f"kafka_{SCALA_VERSION}"), _LOGGER), is_pinned=True)
CONNECT = JarSet("connect", KAFKA_VERSION, (_kafka("connect-runtime"), _kafka("connect-file"), _LOGGER), is_pinned=True)
STANDARD_SETS = (BROKER, CONNECT)


def jar_set(*coordinates: str, name: str | None = None) -> JarSet:
    """Return the set of any other artifacts, each `group:artifact:version[:classifier][@type]`.

    Raises:
        ArtifactError: A coordinate is badly written.
    """
    parsed = tuple(map(parse_coordinate, coordinates))
    if not parsed:
        raise ArtifactError("A set of jars names no artifact.", "Name at least one.")
    # The digest keeps sets apart that share their first artifact or a name.
    told = hashlib.sha256(" ".join(map(str, parsed)).encode()).hexdigest()[:8]
    return JarSet(name or parsed[0].artifact, f"{parsed[0].version}-{told}", parsed)


def jar_folder(wanted: JarSet) -> Path:
    """Return where the set is, or will be."""
    return cache_folder() / "jars" / f"{wanted.name}-{wanted.version}"


def is_fetched(wanted: JarSet) -> bool:
    """Tell whether the set is in the cache already, unchecked."""
    return (jar_folder(wanted) / _MANIFEST).is_file()


def ensure_jars(wanted: JarSet, progress: Progress | None = None) -> list[Path]:
    """Return the files of the set, sorted by name, fetching them first when they are not in the cache.

    Raises:
        JavaError: There is no usable Java to fetch them with.
        ArtifactError: They cannot be fetched, or a cached file was changed.
    """
    folder = jar_folder(wanted)
    report = progress or _ignore
    if not is_fetched(wanted):
        with _locked(folder.parent, report):
            if not is_fetched(wanted):
                _fetch(wanted, folder, report)
    manifest = _manifest(wanted, folder)
    _check(folder, manifest)
    return [folder / name for name in sorted(manifest)]


def ensure_plugin(wanted: JarSet, progress: Progress | None = None) -> Path:
    """Return a folder for `plugin.path` that holds the set's plugins, archives unpacked.

    Raises:
        JavaError: There is no usable Java to fetch them with.
        ArtifactError: They cannot be fetched or unpacked.
    """
    files = ensure_jars(wanted, progress)
    folder = cache_folder() / "plugins" / f"{wanted.name}-{wanted.version}"
    if folder.is_dir():
        return folder
    with _locked(folder.parent, progress or _ignore):
        if not folder.is_dir():
            partial = Path(tempfile.mkdtemp(prefix=_PARTIAL, dir=folder.parent))
            for file in files:
                _unpack(file, partial, wanted.name)
            partial.chmod(0o755)
            partial.rename(folder)
    return folder


def class_path(files: Sequence[Path]) -> str:
    """Return the Java class path of the jars among the files, in a stable order."""
    return os.pathsep.join(str(file) for file in files if file.suffix == ".jar")


def _ignore(_: str) -> None:
    return


def _fetch(wanted: JarSet, folder: Path, progress: Progress) -> None:
    java = find_java()
    partial = Path(tempfile.mkdtemp(prefix=_PARTIAL, dir=folder.parent))
    try:
        ivy.retrieve(wanted.coordinates, java=java, into=partial, cache=_ivy_cache(), progress=progress)
        files = [path for path in partial.iterdir() if path.is_file()]
        manifest = digest_files(files)
        if wanted.is_pinned:
            _require_pinned(wanted, manifest)
        (partial / _MANIFEST).write_text(render_manifest(manifest))
        partial.chmod(0o755)  # mkdtemp's 0700 would lock out a server that runs as another user
        _discard_broken(folder)
        partial.rename(folder)
    finally:
        shutil.rmtree(partial, ignore_errors=True)


def _discard_broken(folder: Path) -> None:
    # A folder without its manifest was tampered with; the rename would fail on it.
    shutil.rmtree(folder, ignore_errors=True)


def _require_pinned(wanted: JarSet, actual: Manifest) -> None:
    pinned = pinned_manifest(wanted)
    differing = sorted(name for name in {*pinned, *actual} if pinned.get(name) != actual.get(name))
    if differing:
        # What Ivy remembers may be what is wrong: the next run has to ask the repositories anew.
        shutil.rmtree(_ivy_cache(), ignore_errors=True)
        raise ArtifactCorruptError(
            f"The files fetched for {wanted.name} {wanted.version} are not those that Wherry was tested with; "
            f"they differ in {', '.join(differing[:DIFFERENCES_SHOWN_MAX])}.",
            "Run it again: everything is fetched anew. If it stays so, check the mirror the files come from.",
        )


def _ivy_cache() -> Path:
    return cache_folder() / "ivy"


def pinned_manifest(wanted: JarSet) -> dict[str, FileDigest]:
    """Return the manifest that the package carries for a pinned set."""
    name = f"{wanted.name}-{wanted.version}.txt"
    text = importlib.resources.files(__package__).joinpath("manifests", name).read_text()
    return parse_manifest(text, name)


def _manifest(wanted: JarSet, folder: Path) -> Manifest:
    if wanted.is_pinned:
        return pinned_manifest(wanted)
    return parse_manifest((folder / _MANIFEST).read_text(), str(folder / _MANIFEST))


def _check(folder: Path, manifest: Manifest) -> None:
    """Check sizes always, content when a file changed its place, time or length since it was last checked."""
    check_sizes(folder, manifest)
    stamp = _stamp(folder, manifest)
    remembered = folder / _CHECKED
    with contextlib.suppress(OSError):
        if remembered.read_text() == stamp:
            return
    check_digests(folder, manifest)
    with contextlib.suppress(OSError):  # a read-only cache is checked anew each time
        scratch = remembered.with_name(f"{_CHECKED}.{os.getpid()}")
        scratch.write_text(stamp)
        scratch.replace(remembered)


def _stamp(folder: Path, manifest: Manifest) -> str:
    lines = []
    for name in sorted(manifest):
        status = (folder / name).stat()
        lines.append(f"{manifest[name].sha256} {status.st_ino} {status.st_mtime_ns} {status.st_ctime_ns} {name}\n")
    return "".join(lines)


def _unpack(file: Path, into: Path, name: str) -> None:
    try:
        if file.name.endswith((".tar.gz", ".tgz", ".tar")):
            with tarfile.open(file) as archive:
                archive.extractall(into, filter="data")
        elif file.suffix == ".zip":
            with zipfile.ZipFile(file) as archive:
                archive.extractall(into)  # noqa: S202 - zipfile drops leading slashes and `..` itself
        else:
            (into / name).mkdir(exist_ok=True)
            shutil.copy2(file, into / name / file.name)
    except (OSError, tarfile.TarError, zipfile.BadZipFile) as error:
        shutil.rmtree(into, ignore_errors=True)
        raise ArtifactCorruptError(
            f"The archive {file} cannot be unpacked: {error}.", f"Delete {file.parent}."
        ) from error


@contextlib.contextmanager
def _locked(folder: Path, progress: Progress) -> Iterator[None]:
    """Hold the cache's one lock: Ivy's own cache is shared by all sets and bears one writer."""
    folder.mkdir(parents=True, exist_ok=True)
    deadline = time.monotonic() + LOCK_TIMEOUT_S
    with (folder / ".lock").open("w") as lock:
        waiting = False
        while not _try_lock(lock.fileno()):
            if not waiting:
                progress("waiting for another process that fetches jars")
                waiting = True
            if time.monotonic() >= deadline:
                raise ArtifactError(
                    f"Another process holds {folder / '.lock'} for more than {LOCK_TIMEOUT_S:g} s.", "End that process."
                )
            time.sleep(LOCK_POLL_S)
        for leftover in folder.glob(f"{_PARTIAL}*"):  # of a process that was killed
            shutil.rmtree(leftover, ignore_errors=True)
        yield


def _try_lock(descriptor: int) -> bool:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
