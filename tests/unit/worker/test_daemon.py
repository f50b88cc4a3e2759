"""What the daemon loads before it forks, and what it keeps out."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

CHILD = """
import json, os, sys, threading
from wherry.worker import daemon
sys.path.append("/somewhere/some.jar")
missing = daemon.preload()
import pyarrow
pyarrow.array([b"x"])
print(json.dumps({
    "missing": missing,
    "pandas": "pandas" in sys.modules,
    "lease": "wherry.worker.lease" in sys.modules,
    "threads": [thread.name for thread in threading.enumerate()],
    "jars": [entry for entry in sys.path if entry.endswith(".jar")],
    "importable": bool(__import__("pandas")),
    "blocked": any(type(finder).__module__ == "wherry.contract.memory" for finder in sys.meta_path),
}))
"""


@pytest.fixture(scope="module")
def preloaded() -> dict[str, object]:
    """What a process is like after `preload`; a process of its own, since it cannot be undone."""
    pytest.importorskip("pyspark")
    done = subprocess.run([sys.executable, "-c", CHILD], capture_output=True, text=True, timeout=180, check=True)
    found: dict[str, object] = json.loads(done.stdout)
    return found


def test_everything_a_lease_needs_is_loaded(preloaded: dict[str, object]) -> None:
    assert preloaded["missing"] == []
    assert preloaded["lease"]


def test_pandas_stays_out_of_workers(preloaded: dict[str, object]) -> None:
    assert not preloaded["pandas"]


def test_pandas_can_still_be_had(preloaded: dict[str, object]) -> None:
    assert preloaded["importable"]
    assert not preloaded["blocked"]


def test_no_thread_is_started_before_the_fork(preloaded: dict[str, object]) -> None:
    assert preloaded["threads"] == ["MainThread"]


def test_jars_are_not_searched_for_modules(preloaded: dict[str, object]) -> None:
    assert preloaded["jars"] == []
