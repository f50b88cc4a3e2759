"""`wherry plugins …`, as far as no plugin has to run."""

from __future__ import annotations

import json

import pytest

from wherry.coordinator.cli.app import run
from wherry.coordinator.cli.errors import ExitCode


@pytest.fixture
def folder(tmp_path):
    def make(build="", name="orders"):
        directory = tmp_path / name
        directory.mkdir()
        (directory / "sidecar.yaml").write_text(
            f"name: {name}\nversion: 1.0.0\nrun: [./run]\nenvironment: {{none: true}}\n{build}"
            "classes:\n  - {class: x.OrderSource, role: source, aliases: [Orders]}\n"
        )
        return directory

    return make


def test_plugins_of_a_path_are_listed_with_the_bundled_ones(folder, tmp_path, capsys):
    folder()
    assert run(["plugins", "list", "--plugin-path", str(tmp_path)]) == ExitCode.OK
    out = capsys.readouterr().out
    assert "x.OrderSource" in out
    assert "org.apache.kafka.connect.file.FileStreamSourceConnector" in out


def test_folders_that_offer_nothing_are_listed_with_the_reason(folder, tmp_path, capsys):
    (folder() / "sidecar.yaml").write_text("name: [")
    assert run(["plugins", "list", "--plugin-path", str(tmp_path), "-o", "json"]) == ExitCode.OK
    assert "sidecar.yaml" in json.loads(capsys.readouterr().out)["broken"][0]["message"]


@pytest.mark.parametrize("command", ["describe", "install"])
def test_an_unknown_plugin_is_not_found(command, capsys):
    assert run(["plugins", command, "nope"]) == ExitCode.NOT_FOUND
    assert "See `wherry plugins list`." in capsys.readouterr().err


def test_a_build_that_fails_is_told_with_its_last_words(folder, tmp_path, capsys):
    folder(build="build: [sh, -c, 'echo no compiler >&2; exit 3']\n")
    code = run(["plugins", "install", "orders", "--plugin-path", str(tmp_path)])
    assert code == ExitCode.FAILED
    assert "Building plugin orders failed: no compiler" in capsys.readouterr().err


def test_a_build_tool_that_is_missing_is_told(folder, tmp_path, capsys):
    folder(build="build: [no-such-compiler]\n")
    assert run(["plugins", "install", "orders", "--plugin-path", str(tmp_path)]) == ExitCode.ENVIRONMENT
    assert "no-such-compiler, which is not on this machine" in capsys.readouterr().err
