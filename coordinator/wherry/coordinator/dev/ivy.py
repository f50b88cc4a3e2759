"""Fetching Maven artifacts with the Ivy jar that the PySpark wheel carries, so that nobody has to install Maven."""

from __future__ import annotations

import importlib.util
import os
import re
import subprocess
import threading
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from xml.sax.saxutils import quoteattr

from wherry.coordinator.dev.errors import (
    ArtifactCorruptError,
    ArtifactError,
    ArtifactNotFoundError,
    NetworkUnavailableError,
)
from wherry.coordinator.dev.java import Java

RETRIEVE_TIMEOUT_S = 900.0
OUTPUT_LINES_MAX = 2000
SETTINGS_VARIABLE = "WHERRY_IVY_SETTINGS"

Progress = Callable[[str], None]

_RETRY = "What has arrived is kept; a second run goes on from there."
_PATTERN = "[artifact]-[revision](-[classifier]).[ext]"
_COORDINATE = re.compile(r"([\w.-]+):([\w.-]+):([\w.-]+)(?::([\w.-]+))?(?:@([\w.]+))?")


@dataclass(frozen=True, slots=True)
class Coordinate:
    """One Maven artifact.

    Attributes:
        group: As `org.apache.kafka`.
        artifact: As `kafka_2.13`.
        version: As `4.3.1`.
        classifier: As `plugin`; empty for the main artifact.
        type: File name ending; anything but `jar` is fetched alone, without what it depends on.
    """

    group: str
    artifact: str
    version: str
    classifier: str = ""
    type: str = "jar"

    @property
    def is_alone(self) -> bool:
        """Whether it is a single file, no library with dependencies."""
        return bool(self.classifier) or self.type != "jar"

    def __str__(self) -> str:
        """The way `parse_coordinate` reads it."""
        classifier = f":{self.classifier}" if self.classifier else ""
        return f"{self.group}:{self.artifact}:{self.version}{classifier}" + (
            f"@{self.type}" if self.type != "jar" else ""
        )


def parse_coordinate(text: str) -> Coordinate:
    """Return the artifact written as `group:artifact:version[:classifier][@type]`.

    Raises:
        ArtifactError: The text is written otherwise.
    """
    match = _COORDINATE.fullmatch(text.strip())
    if match is None:
        raise ArtifactError(
            f"{text!r} names no Maven artifact.",
            "Write group:artifact:version[:classifier][@type], as org.apache.kafka:connect-file:4.3.1.",
        )
    group, artifact, version, classifier, kind = match.groups()
    return Coordinate(group, artifact, version, classifier or "", kind or "jar")


def retrieve(coordinates: Sequence[Coordinate], *, java: Java, into: Path, cache: Path, progress: Progress) -> None:
    """Fetch the artifacts, with what they depend on, into the folder `into`.

    Raises:
        ArtifactError: One of the subclasses: not found, no network, or damaged on the way.
    """
    into.mkdir(parents=True, exist_ok=True)
    cache.mkdir(parents=True, exist_ok=True)
    description = into / "ivy.xml"
    description.write_text(render_ivy_file(coordinates))
    try:
        code, lines = _run(ivy_command(java, description, into, cache), progress)
    finally:
        description.unlink()
    if code != 0:
        raise explain_failure(coordinates, lines)


def ivy_command(java: Java, description: Path, into: Path, cache: Path) -> list[str]:
    """Return the command line that fetches what the description names.

    Raises:
        ArtifactError: PySpark, which carries Ivy, is not installed.
    """
    settings = os.environ.get(SETTINGS_VARIABLE)
    return [
        str(java.executable),
        # Most of the run waits for the network; a JVM that compiles little starts and resolves sooner.
        "-XX:TieredStopAtLevel=1",
        "-jar",
        str(find_ivy()),
        *(["-settings", settings] if settings else []),
        *("-ivy", str(description)),
        *("-cache", str(cache)),
        *("-confs", "default"),
        *("-retrieve", f"{into}/{_PATTERN}"),
    ]


def find_ivy() -> Path:
    """Return PySpark's Ivy jar.

    Raises:
        ArtifactError: There is none.
    """
    # find_spec looks without importing: PySpark is heavy.
    spec = importlib.util.find_spec("pyspark")
    folders = list(spec.submodule_search_locations or []) if spec else []
    jars = sorted(jar for folder in folders for jar in Path(folder, "jars").glob("ivy-*.jar"))
    if not jars:
        raise ArtifactError(
            "PySpark, whose Ivy fetches the jars, is not installed in this Python environment.",
            "Install Wherry with its engine: pip install 'wherry[spark]'.",
        )
    return jars[-1]


def render_ivy_file(coordinates: Sequence[Coordinate]) -> str:
    """Return the Ivy description that depends on the artifacts."""
    return "\n".join(
        [
            '<ivy-module version="2.0" xmlns:m="http://ant.apache.org/ivy/maven">',
            '  <info organisation="wherry" module="jars"/>',
            '  <configurations><conf name="default"/></configurations>',
            "  <dependencies>",
            *(line for coordinate in coordinates for line in _dependency(coordinate)),
            "  </dependencies>",
            "</ivy-module>\n",
        ]
    )


def explain_failure(coordinates: Sequence[Coordinate], lines: Sequence[str]) -> ArtifactError:
    """Return the error that Ivy's output tells of."""
    text = "\n".join(lines)
    missing = _unresolved(lines)
    named = ", ".join(missing) if missing else ", ".join(map(str, coordinates))
    refused = re.search(r"Server access error at url \S+ \((?:[\w.]+\.)?(\w+)(?:: ([^)]*))?\)", text)
    if refused or "UnknownHostException" in text:
        reason = f" ({refused.group(1)})" if refused else ""
        return NetworkUnavailableError(
            f"The artifact repositories cannot be reached{reason}, so {named} cannot be fetched.",
            f"Check the network or proxy, or name a mirror's Ivy settings file in {SETTINGS_VARIABLE}. {_RETRY}",
        )
    if "invalid sha1" in text or "invalid md5" in text:
        return ArtifactCorruptError(f"A download of {named} arrived damaged.", _RETRY)
    if missing:
        return ArtifactNotFoundError(
            f"The artifact repositories have no {named}.", "Check its group, name and version."
        )
    ending = "; ".join(line.strip() for line in list(lines)[-3:] if line.strip())
    return ArtifactError(f"Fetching {named} failed: {ending or 'Ivy said nothing'}.", _RETRY)


def progress_of(line: str) -> str | None:
    """Return what a line of Ivy's output tells a waiting person, or None."""
    line = line.strip()
    if line.startswith("found "):
        return "resolving " + line.removeprefix("found ").split(" in ")[0].replace("#", ":").replace(";", ":")
    if line.startswith("downloading "):
        return "downloading " + line.split()[1].rpartition("/")[2]
    return None


def _dependency(coordinate: Coordinate) -> Iterator[str]:
    opening = (
        f"    <dependency org={quoteattr(coordinate.group)} name={quoteattr(coordinate.artifact)}"
        f' rev={quoteattr(coordinate.version)} conf="default->default"'
    )
    if not coordinate.is_alone:
        yield opening + "/>"
        return
    classifier = f" m:classifier={quoteattr(coordinate.classifier)}" if coordinate.classifier else ""
    kind = quoteattr(coordinate.type)
    yield opening + ' transitive="false">'
    yield f"      <artifact name={quoteattr(coordinate.artifact)} type={kind} ext={kind}{classifier}/>"
    yield "    </dependency>"


def _unresolved(lines: Sequence[str]) -> list[str]:
    """Return the artifacts that Ivy's summary calls not found, in Maven's writing, each once."""
    found = (re.match(r"\s*:: (\S+)#(\S+?);(\S+?)(?:!\S+)?(?:: .*)?$", line) for line in lines)
    return list(dict.fromkeys(":".join(match.groups()) for match in found if match))


def _run(command: Sequence[str], progress: Progress) -> tuple[int, list[str]]:
    lines: deque[str] = deque(maxlen=OUTPUT_LINES_MAX)
    with subprocess.Popen(
        command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace"
    ) as ivy:
        # Reading lines has no deadline of its own: the timer ends the process, and that ends the lines.
        timer = threading.Timer(RETRIEVE_TIMEOUT_S, ivy.kill)
        timer.daemon = True
        timer.start()
        try:
            assert ivy.stdout is not None
            for line in ivy.stdout:
                lines.append(line.rstrip("\n"))
                if (told := progress_of(line)) is not None:
                    progress(told)
            code = ivy.wait()
        except BaseException:
            ivy.kill()
            raise
        finally:
            timer.cancel()
    return code, list(lines)
