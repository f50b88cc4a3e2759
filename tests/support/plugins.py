"""Plugins that a test writes itself, and a sidecar host to run them."""

from __future__ import annotations

import json
import os
import shutil
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from wherry.coordinator.hosts import HostClient


def write_plugin(
    folder: Path, name: str, code: str, *, class_name: str, role: str = "source", **members: object
) -> Path:
    """Write a plugin that is one file of Python and may be forked; `members` are further ones of its manifest."""
    manifest = {
        "name": name,
        "version": "1",
        "classes": [{"class": class_name, "role": role}],
        "run": ["python", f"{name}.py"],
        "forkable": True,
        **members,
    }
    folder.mkdir(exist_ok=True)
    (folder / f"{name}.py").write_text(code)
    (folder / "sidecar.yaml").write_text(json.dumps(manifest))
    return folder


@contextmanager
def running_hosts() -> Iterator[HostClient]:
    """A sidecar host; its folder's path is short, as sockets' have to be."""
    directory = Path("/tmp") / f"wherry-host-{os.getpid()}-{time.monotonic_ns() % 10**9}"
    hosts = HostClient(directory)
    hosts.start()
    try:
        yield hosts
    finally:
        hosts.stop()
        shutil.rmtree(directory, ignore_errors=True)
