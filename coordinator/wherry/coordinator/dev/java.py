"""Finding the Java that runs Kafka and Ivy, and telling its version without starting it where that is possible."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

from wherry.coordinator.dev.errors import JavaError

MAJOR_VERSION_MIN = 17  # of Kafka 4's servers and of Spark 4.3
VERSION_TIMEOUT_S = 20.0

_INSTALL = f"Install a Java runtime of version {MAJOR_VERSION_MIN} or newer, or point JAVA_HOME at one."


@dataclass(frozen=True, slots=True)
class Java:
    """A usable Java runtime.

    Attributes:
        executable: The `java` program, symbolic links resolved.
        version: Its full version, as `17.0.15`.
    """

    executable: Path
    version: str

    @property
    def major(self) -> int:
        """The feature release: 17 for `17.0.15`, 8 for `1.8.0_402`."""
        return major_version(self.version)


def find_java(environ: dict[str, str] | None = None) -> Java:
    """Return the Java of JAVA_HOME, or else the first one on PATH.

    Raises:
        JavaError: There is none, it does not run, or it is too old.
    """
    java = Java(executable := _locate(dict(os.environ) if environ is None else environ), _version(executable))
    if java.major < MAJOR_VERSION_MIN:
        raise JavaError(
            f"The Java at {java.executable} is version {java.version}, but Kafka needs {MAJOR_VERSION_MIN} or newer.",
            _INSTALL,
        )
    return java


def major_version(version: str) -> int:
    """Return the feature release in a Java version string.

    Raises:
        ValueError: The text is no Java version.
    """
    match = re.match(r"(?:1\.)?(\d+)", version)
    if match is None:
        raise ValueError(f"{version!r} is no Java version")
    return int(match.group(1))


def parse_version_output(text: str) -> str:
    """Return the version in what `java -version` prints.

    Raises:
        ValueError: There is none.
    """
    match = re.search(r'version "([^"]+)"', text)
    if match is None:
        raise ValueError(f"no version in {text.strip()[:200]!r}")
    return match.group(1)


def parse_release_file(text: str) -> str | None:
    """Return JAVA_VERSION of a JDK's `release` file, or None when it has none."""
    match = re.search(r'^JAVA_VERSION="([^"]+)"', text, re.MULTILINE)
    return match.group(1) if match else None


def _locate(environ: dict[str, str]) -> Path:
    home = environ.get("JAVA_HOME")
    if home:
        executable = Path(home) / "bin" / "java"
        if not os.access(executable, os.X_OK):
            raise JavaError(f"JAVA_HOME is {home}, but there is no program {executable}.", _INSTALL)
        return executable.resolve()
    found = shutil.which("java", path=environ.get("PATH", os.defpath))
    if found is None:
        raise JavaError("No Java was found: JAVA_HOME is not set and there is no `java` on PATH.", _INSTALL)
    return Path(found).resolve()


def _version(executable: Path) -> str:
    # Reading JAVA_HOME/release costs nothing; starting a JVM only to ask costs some 50 ms.
    try:
        version = parse_release_file((executable.parent.parent / "release").read_text(errors="replace"))
    except OSError:
        version = None
    return version or _ask_version(executable)


def _ask_version(executable: Path) -> str:
    try:
        asked = subprocess.run(
            [str(executable), "-version"], capture_output=True, text=True, timeout=VERSION_TIMEOUT_S, check=False
        )
        return parse_version_output(asked.stderr + asked.stdout)
    except (OSError, subprocess.TimeoutExpired, ValueError) as error:
        raise JavaError(f"The Java at {executable} does not tell its version: {error}.", _INSTALL) from error
