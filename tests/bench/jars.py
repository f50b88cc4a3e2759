"""The Java side of the comparison: where its jars are, fetched once with Maven into the user's cache, never committed.

Three folders: the broker's class path, the Kafka Connect worker's class path, and a `plugin.path` with the FileStream
connectors and Debezium's JDBC sink, each in a folder of its own as Kafka Connect wants them.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import tarfile
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from xml.sax.saxutils import escape

from tests.bench import limits
from tests.bench.processes import BenchError

KAFKA_VERSION = "4.3.1"
DEBEZIUM_VERSION = "3.6.0.Final"
LOG4J_VERSION = "2.25.4"

# Kafka's archive carries these three beside its own jars; the poms of the jars do not ask for them.
LOGGING = tuple(f"org.apache.logging.log4j:{name}:{LOG4J_VERSION}" for name in ("log4j-core", "log4j-slf4j-impl"))
BROKER = (f"org.apache.kafka:kafka_2.13:{KAFKA_VERSION}", *LOGGING)
CONNECT = (
    tuple(
        f"org.apache.kafka:{name}:{KAFKA_VERSION}" for name in ("connect-runtime", "connect-json", "connect-transforms")
    )
    + LOGGING
)
FILE = (f"org.apache.kafka:connect-file:{KAFKA_VERSION}",)
DEBEZIUM_ARCHIVE = f"io.debezium:debezium-connector-jdbc:{DEBEZIUM_VERSION}:tar.gz:plugin"


@dataclass(frozen=True, slots=True)
class Jars:
    """The three folders."""

    broker: Path
    connect: Path
    plugins: Path


def resolve() -> Jars:
    """Gives the folders, filling those that are missing."""
    home = _cache()
    plugins = home / f"plugins-{KAFKA_VERSION}-{DEBEZIUM_VERSION}"
    _once(plugins / "file", lambda folder: _copy_dependencies(FILE, folder))
    _once(plugins / "debezium-jdbc", _unpack_debezium)
    return Jars(
        broker=_once(home / f"broker-{KAFKA_VERSION}", lambda folder: _copy_dependencies(BROKER, folder)),
        connect=_once(home / f"connect-{KAFKA_VERSION}", lambda folder: _copy_dependencies(CONNECT, folder)),
        plugins=plugins,
    )


def _cache() -> Path:
    base = os.environ.get("XDG_CACHE_HOME") or str(Path.home() / ".cache")
    return Path(base) / "wherry" / "bench"


def _once(folder: Path, fill: Callable[[Path], None]) -> Path:
    """Fills a folder beside its final place and renames it, so that a broken download never looks complete."""
    if folder.is_dir():
        return folder
    folder.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=folder.parent, prefix=f".{folder.name}-") as partial:
        content = Path(partial) / "content"
        content.mkdir()
        fill(content)
        try:
            content.rename(folder)
        except OSError:
            # Another run was faster; its folder is as good as ours.
            if not folder.is_dir():
                raise
    return folder


def _copy_dependencies(coordinates: Sequence[str], folder: Path) -> None:
    """Copies artifacts with all they need at run time."""
    dependencies = []
    for coordinate in coordinates:
        group, artifact, version = (escape(part) for part in coordinate.split(":"))
        dependencies.append(
            f"<dependency><groupId>{group}</groupId><artifactId>{artifact}</artifactId>"
            f"<version>{version}</version></dependency>"
        )
    pom = (
        '<project xmlns="http://maven.apache.org/POM/4.0.0"><modelVersion>4.0.0</modelVersion>'
        "<groupId>bench</groupId><artifactId>bench</artifactId><version>1</version>"
        f"<dependencies>{''.join(dependencies)}</dependencies></project>"
    )
    with tempfile.TemporaryDirectory() as directory:
        Path(directory, "pom.xml").write_text(pom)
        target = f"-DoutputDirectory={folder}"
        _maven(["dependency:copy-dependencies", target, "-DincludeScope=runtime"], Path(directory), coordinates[0])


def _unpack_debezium(folder: Path) -> None:
    with tempfile.TemporaryDirectory() as directory:
        arguments = ["dependency:copy", f"-Dartifact={DEBEZIUM_ARCHIVE}", f"-DoutputDirectory={directory}"]
        _maven(arguments, Path(directory), DEBEZIUM_ARCHIVE)
        archives = list(Path(directory).glob("*.tar.gz"))
        if len(archives) != 1:
            raise BenchError(f"Maven fetched {len(archives)} archives for {DEBEZIUM_ARCHIVE}; expected exactly one.")
        with tarfile.open(archives[0]) as archive:
            archive.extractall(folder, filter="data")


def _maven(arguments: list[str], directory: Path, wanted: str) -> None:
    if shutil.which("mvn") is None:
        raise BenchError(f"Cannot fetch {wanted}: mvn is not on the PATH. Install Maven (Debian: apt install maven).")
    done = subprocess.run(
        ["mvn", "-q", "-B", *arguments],
        cwd=directory, capture_output=True, text=True, timeout=limits.JAR_RESOLUTION_SECONDS, check=False,
    )  # fmt: skip
    if done.returncode != 0:
        lines = [line for line in (done.stdout + done.stderr).splitlines() if line.strip()]
        raise BenchError(f"Cannot fetch {wanted}: Maven said: {' '.join(lines[:3])[:600]}")
