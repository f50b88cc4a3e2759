"""Where environments are, when they must be made anew, and what a sidecar is run with."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest

from wherry.contract.errors import ConfigError
from wherry.contract.manifest import Manifest
from wherry.worker.host import engine, environment


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("WHERRY_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


def plugin(directory: Path, **members: Any) -> Manifest:
    directory.mkdir(exist_ok=True)
    whole = {"name": "p", "version": "1", "classes": [{"class": "C", "role": "source"}], "run": ["python", "-m", "p"]}
    (directory / "sidecar.yaml").write_text(json.dumps({**whole, **members}))
    return Manifest.load(directory)


def project(directory: Path, **members: Any) -> Manifest:
    directory.mkdir(exist_ok=True)
    (directory / "pyproject.toml").write_text("[project]\nname = 'p'\nversion = '1'\n")
    return plugin(directory, environment={"python": ">=3.11", "project": "."}, **members)


def test_a_plugin_without_a_project_runs_on_the_engines_python(tmp_path: Path) -> None:
    runtime = environment.ensure(plugin(tmp_path / "p"))
    assert runtime.argv == (sys.executable, "-m", "p")


def test_variables_of_the_manifest_are_given(tmp_path: Path) -> None:
    runtime = environment.ensure(plugin(tmp_path / "p", environment={"none": True, "variables": {"A": 1}}))
    assert runtime.environment["A"] == "1"


def test_a_binary_of_the_folder_is_found_wherever_we_are(tmp_path: Path) -> None:
    manifest = plugin(tmp_path / "p", run=["bin/tool", "--serve"])
    (tmp_path / "p/bin").mkdir()
    (tmp_path / "p/bin/tool").touch(mode=0o755)
    assert environment.ensure(manifest).argv == (str(tmp_path / "p/bin/tool"), "--serve")


def test_a_binary_that_may_not_be_run_is_refused(tmp_path: Path) -> None:
    manifest = plugin(tmp_path / "p", run=["./tool"])
    (tmp_path / "p/tool").touch(mode=0o644)
    with pytest.raises(ConfigError, match="tool is not executable"):
        environment.ensure(manifest)


def test_a_binary_to_be_built_says_how(tmp_path: Path) -> None:
    manifest = plugin(tmp_path / "p", run=["bin/tool"], build=["go", "build"])
    with pytest.raises(ConfigError, match=r"does not exist; run `wherry plugins install .*` to build it"):
        environment.ensure(manifest)


def test_an_environment_that_is_not_there_yet_must_be_made(tmp_path: Path) -> None:
    assert environment.runtime_of(project(tmp_path / "p")) is None


def test_an_environment_that_is_there_is_used_without_uv(tmp_path: Path, cache: Path) -> None:
    manifest = project(tmp_path / "p")
    interpreter = environment.environment_directory(manifest) / "bin" / "python"
    interpreter.parent.mkdir(parents=True)
    interpreter.symlink_to(sys.executable)
    runtime = environment.ensure(manifest)
    assert runtime.argv[0] == str(interpreter)
    assert runtime.path == (str(interpreter.parent),)
    assert cache in interpreter.parents


def test_an_environment_whose_python_was_removed_is_made_anew(tmp_path: Path) -> None:
    manifest = project(tmp_path / "p")
    interpreter = environment.environment_directory(manifest) / "bin" / "python"
    interpreter.parent.mkdir(parents=True)
    interpreter.symlink_to(tmp_path / "gone")
    assert environment.runtime_of(manifest) is None


@pytest.mark.parametrize("name", ["pyproject.toml", "uv.lock"])
def test_an_environment_changes_with_what_it_is_made_of(tmp_path: Path, name: str) -> None:
    manifest = project(tmp_path / "p")
    before = environment.environment_directory(manifest)
    assert environment.environment_directory(manifest) == before
    (tmp_path / "p" / name).write_text("# changed")
    assert environment.environment_directory(manifest) != before


def test_a_build_makes_what_is_missing_and_only_that(tmp_path: Path) -> None:
    manifest = plugin(tmp_path / "p", run=["./tool"], build=["sh", "-c", "touch tool && chmod +x tool && touch built"])
    assert environment.build(manifest)
    (tmp_path / "p/built").unlink()
    assert not environment.build(manifest)
    assert not (tmp_path / "p/built").exists()


def test_a_failed_build_is_told_with_its_last_words(tmp_path: Path) -> None:
    manifest = plugin(tmp_path / "p", run=["./tool"], build=["sh", "-c", "echo no compiler >&2; exit 4"])
    with pytest.raises(ConfigError, match=r"(?s)build of plugin p .* sh ended with code 4:\n  no compiler"):
        environment.build(manifest)


def test_a_build_tool_that_is_missing_is_told(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="is built with 'no-such-tool', which is not installed"):
        environment.build(plugin(tmp_path / "p", run=["./tool"], build=["no-such-tool"]))


def test_an_engine_in_a_source_tree_installs_that_tree(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(engine.importlib.metadata, "distribution", _missing)
    source = engine.engine_source()
    assert source.editable
    assert (Path(source.requirement) / "sdk/python/wherry/sdk").is_dir()


@pytest.mark.parametrize(
    ("direct_url", "arguments"),
    [
        (None, ["wherry==9.9"]),
        ({"url": "file:///src/wherry", "dir_info": {"editable": True}}, ["--editable", "/src/wherry"]),
        ({"url": "file:///src/wherry", "dir_info": {}}, ["/src/wherry"]),
        ({"url": "file:///w.whl", "archive_info": {}}, ["wherry @ file:///w.whl"]),
        ({"url": "https://g/w", "vcs_info": {"vcs": "git", "commit_id": "abc"}}, ["wherry @ git+https://g/w@abc"]),
    ],
)
def test_an_installed_engine_installs_itself_again(
    monkeypatch: pytest.MonkeyPatch, direct_url: dict[str, Any] | None, arguments: list[str]
) -> None:
    class Distribution:
        version = "9.9"

        def read_text(self, name: str) -> str | None:
            return json.dumps(direct_url) if direct_url else None

    monkeypatch.setattr(engine.importlib.metadata, "distribution", lambda name: Distribution())
    monkeypatch.setattr(engine, "exports_traces", lambda: False)
    assert engine.engine_source().arguments == arguments


@pytest.mark.parametrize(
    ("requirement", "argument"),
    [
        ("wherry==9.9", "wherry[otlp]==9.9"),
        ("wherry @ file:///w.whl", "wherry[otlp] @ file:///w.whl"),
        ("/src/wherry", "/src/wherry[otlp]"),
    ],
)
def test_an_engine_that_exports_traces_has_its_sidecars_do_so(requirement: str, argument: str) -> None:
    assert engine.EngineSource(requirement, extras=("otlp",)).arguments == [argument]


def _missing(name: str) -> None:
    raise engine.importlib.metadata.PackageNotFoundError(name)
