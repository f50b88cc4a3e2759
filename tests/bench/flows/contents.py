"""Whether both engines make the same of the same records: through one configuration into a file on each, line by line.

It costs a second, once per flow and system, and keeps a flow from comparing two things that do not do the same.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from pathlib import Path

from tests.bench import limits
from tests.bench.processes import BenchError
from tests.bench.site import Site
from tests.bench.systems import Connector

RECORDS = 1_000
SHOWN_CHARACTERS = 300


def check(site: Site, name: str, config: Mapping[str, str], topic: str) -> None:
    """Writes the records of a topic to a file and compares it with the other system's, when both are there."""
    lines: dict[str, list[str]] = site.notes.setdefault("contents", {})  # type: ignore[assignment]
    if name in lines:
        return
    path = site.directory / f"contents-{name}.txt"
    connector = Connector(
        f"contents-{name}",
        {
            "connector.class": "org.apache.kafka.connect.file.FileStreamSinkConnector",
            **config,
            "tasks.max": "1",
            "topics": topic,
            "file": str(path),
        },
    )
    system = site.running(name)
    system.rest.create(connector.name, connector.config)
    deadline = time.monotonic() + limits.STALL_SECONDS
    while (found := _lines(path)) < RECORDS:
        failure = system.rest.failure(connector.name)
        if failure is not None:
            raise BenchError(f"{connector.name} failed: {failure}")
        if time.monotonic() > deadline:
            raise BenchError(f"{name} wrote {found} of {RECORDS} lines within {limits.STALL_SECONDS:.0f} s.")
        time.sleep(limits.PROGRESS_POLL_SECONDS)
    system.rest.delete(connector.name)
    lines[name] = sorted(path.read_text().splitlines())
    compare(lines)


def compare(lines: Mapping[str, list[str]]) -> None:
    """Raises `BenchError` when two systems wrote different lines."""
    if len(lines) < 2:
        return
    (one, ours), (other, theirs) = lines.items()
    if len(ours) != len(theirs):
        raise BenchError(f"{one} wrote {len(ours)} lines where {other} wrote {len(theirs)}.")
    for left, right in zip(ours, theirs, strict=True):
        if left != right:
            raise BenchError(
                f"{one} wrote {left[:SHOWN_CHARACTERS]!r} where {other} wrote {right[:SHOWN_CHARACTERS]!r}."
            )


def _lines(path: Path) -> int:
    return path.read_bytes().count(b"\n") if path.exists() else 0
