"""Command lines of manifests; processes are started in tests/conformance."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from wherry.conformance.failure import UsageError
from wherry.conformance.launcher import build, command_from, command_of
from wherry.contract.manifest import Manifest


def manifest(folder: Path, run: tuple[str, ...] | None, build: tuple[str, ...] | None = None) -> Manifest:
    return Manifest("x", "1", folder, (), run=run, build=build)


def test_python_means_this_interpreter_unless_another_is_named(tmp_path: Path) -> None:
    assert command_of(manifest(tmp_path, ("python", "-m", "x"))).argv == (sys.executable, "-m", "x")
    assert command_of(manifest(tmp_path, ("python",)), python=sys.executable).directory == tmp_path


def test_a_relative_program_is_of_the_folder(tmp_path: Path) -> None:
    (tmp_path / "run.sh").touch()
    assert command_of(manifest(tmp_path, ("./run.sh",))).argv == (f"{tmp_path}/run.sh",)


def test_a_missing_program_is_built(tmp_path: Path) -> None:
    build(command_of(manifest(tmp_path, ("bin/x",), (sys.executable, "-c", "open('built', 'w')"))))
    assert (tmp_path / "built").exists()


def test_a_missing_program_that_nothing_builds_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="there is no such program, and nothing builds it"):
        build(command_of(manifest(tmp_path, ("bin/x",))))


def test_a_build_that_fails_is_told_with_its_output(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"can't be built with .*: no compiler"):
        build(command_of(manifest(tmp_path, ("bin/x",), (sys.executable, "-c", "raise SystemExit('no compiler')"))))


def test_the_source_of_a_project_is_on_the_path(tmp_path: Path) -> None:
    (tmp_path / "src").mkdir()
    assert command_of(manifest(tmp_path, ("python", "-m", "x"))).variables["PYTHONPATH"].startswith(f"{tmp_path}/src")


def test_a_plugin_that_is_attached_to_has_nothing_to_start(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="attached to and not run"):
        command_of(manifest(tmp_path, None))


def test_an_empty_command_line_is_refused() -> None:
    with pytest.raises(UsageError, match="Give --manifest DIR"):
        command_from([])
