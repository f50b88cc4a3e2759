"""The executor of a worker, from a /proc made of files."""

from __future__ import annotations

import os
from pathlib import Path

from wherry.worker import executor


def proc(root: Path, command: list[str]) -> Path:
    """A worker's parent, Spark's daemon, and its parent, 4711, with a command."""
    daemon = root / str(os.getppid())
    daemon.mkdir()
    (daemon / "stat").write_text(f"{os.getppid()} (py) thon) S 4711 1 1")
    (root / "4711").mkdir()
    (root / "4711" / "cmdline").write_bytes("\0".join([*command, ""]).encode())
    return root


def test_an_executors_id_is_on_its_command_line(tmp_path: Path) -> None:
    root = proc(tmp_path, ["java", "CoarseGrainedExecutorBackend", "--executor-id", "12", "--cores", "8"])
    assert executor.pid(proc=root) == 4711
    assert executor.own_id(proc=root) == "12"


def test_beside_the_driver_there_is_none(tmp_path: Path) -> None:
    assert executor.own_id(proc=proc(tmp_path, ["java", "SparkSubmit", "pyspark-shell"])) == ""


def test_what_cannot_be_seen_is_none(tmp_path: Path) -> None:
    assert executor.own_id(proc=tmp_path) == ""
    assert executor.pid(proc=tmp_path) == os.getppid()
