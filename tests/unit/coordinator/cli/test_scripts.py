"""Kafka Connect's own command names."""

from __future__ import annotations

from pathlib import Path

import pytest

from wherry.coordinator.cli import scripts

SIDECARS = Path(__file__).parents[4] / "sidecars"


def called(monkeypatch: pytest.MonkeyPatch, script: str, *arguments: str) -> int:
    monkeypatch.setattr("sys.argv", [script, *arguments])
    with pytest.raises(SystemExit) as left:
        getattr(scripts, script)()
    return int(left.value.code or 0)  # type: ignore[arg-type]


@pytest.mark.parametrize("option", ["--plugin-path", "--plugin-location", "--worker-config"])
def test_plugins_are_listed_in_kafka_connects_columns(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path, option: str
) -> None:
    worker = tmp_path / "w.properties"
    worker.write_text(f"plugin.path={SIDECARS}\n")
    values = {"--plugin-path": SIDECARS, "--plugin-location": SIDECARS / "filestream", "--worker-config": worker}
    assert called(monkeypatch, "plugin_path", "list", option, str(values[option])) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].split("\t")[:3] == ["pluginName", "firstAlias", "secondAlias"]
    [source] = [line.split("\t") for line in lines if line.startswith("org.apache.kafka.connect.file.FileStreamSource")]
    assert source[1:3] == ["FileStreamSource", "FileStreamSourceConnector"]
    assert source[4:] == ["source", "true", "true", str(SIDECARS / "filestream")]
    count = len(lines) - 5
    assert lines[-3] == f"Total plugins:      \t{count}"


def test_a_list_of_nothing_is_a_wrong_use(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    assert called(monkeypatch, "plugin_path", "list") == 2
    assert "Must specify at least one --plugin-location" in capsys.readouterr().err
    assert called(monkeypatch, "plugin_path", "list", "--plugin-path", "/no/where") == 1
    assert "There is no /no/where." in capsys.readouterr().err


def test_manifests_need_no_synchronizing(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    assert called(monkeypatch, "plugin_path", "sync-manifests", "--plugin-path", "/x", "--dry-run") == 0
    assert "There is nothing to synchronize" in capsys.readouterr().out


def test_a_worker_stays_in_the_foreground(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    assert called(monkeypatch, "standalone", "-daemon", "w.properties") == 2
    assert "-daemon is not offered" in capsys.readouterr().err


def test_arguments_reach_the_command_of_that_mode(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    assert called(monkeypatch, "standalone", str(tmp_path / "none.properties")) == 1
    assert "none.properties does not exist" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (["f"], ["mirror", "f"]),
        (["f", "--clusters", "A", "B"], ["mirror", "f", "--clusters", "A", "--clusters", "B"]),
    ],
)
def test_a_mirror_maker_names_near_clusters_after_one_option(
    monkeypatch: pytest.MonkeyPatch, arguments: list[str], expected: list[str]
) -> None:
    ran: list[list[str]] = []

    def run(given: list[str]) -> int:
        ran.append(list(given))
        return 0

    monkeypatch.setattr("wherry.coordinator.cli.app.run", run)
    assert called(monkeypatch, "mirror_maker", *arguments) == 0
    assert ran == [expected]
