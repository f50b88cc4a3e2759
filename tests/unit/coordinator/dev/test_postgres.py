"""Finding PostgreSQL's programs."""

from __future__ import annotations

from pathlib import Path

import pytest

from wherry.coordinator.dev import postgres_binaries
from wherry.coordinator.dev.errors import BinariesMissingError
from wherry.coordinator.dev.postgres import find_binaries


def install(folder: Path) -> Path:
    folder.mkdir(parents=True)
    for program in ("postgres", "initdb"):
        (folder / program).touch(mode=0o755)
    return folder


def test_the_newest_packaged_version_is_taken(tmp_path: Path) -> None:
    install(tmp_path / "9.6" / "bin")
    newest = install(tmp_path / "15" / "bin")
    assert find_binaries(tmp_path) == newest


def test_programs_on_the_path_serve_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    programs = install(tmp_path / "own")
    monkeypatch.setenv("PATH", str(programs))
    assert find_binaries(tmp_path / "no packages") == programs


def test_a_machine_without_postgresql_gets_the_portable_build(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(postgres_binaries, "fetch_binaries", lambda: tmp_path / "portable")
    assert find_binaries(tmp_path) == tmp_path / "portable"


def test_a_machine_without_a_portable_build_is_told_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("platform.machine", lambda: "vax")
    with pytest.raises(BinariesMissingError) as missing:
        postgres_binaries.fetch_binaries()
    assert "no portable PostgreSQL" in missing.value.message
    assert "Install the server" in missing.value.remedy
