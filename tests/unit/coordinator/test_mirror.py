"""Running MirrorMaker's file: what is refused, and what becomes of flows that end."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

from wherry.contract.errors import ConfigError
from wherry.coordinator import mirror
from wherry.coordinator.cli.app import run

FILE = """clusters = A, B
A.bootstrap.servers = a:1
B.bootstrap.servers = b:1
A->B.enabled = true
"""


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "mm2.properties"
    path.write_text(FILE)
    return path


def test_flows_are_read_from_the_file(file: Path) -> None:
    assert [flow.name for flow in mirror.load(file)] == ["A->B", "B->A"]
    assert [flow.name for flow in mirror.load(file, ["B"])] == ["A->B"]


def test_a_key_without_effect_is_told_with_where_it_belongs(file: Path, caplog: pytest.LogCaptureFixture) -> None:
    file.write_text(FILE + "use.defaults.from = source\n")
    mirror.load(file)
    assert "use.defaults.from has no effect here; say it of a flow: A->B.use.defaults.from" in caplog.text


def test_what_is_wrong_with_a_file_is_told_with_its_name(tmp_path: Path) -> None:
    path = tmp_path / "empty.properties"
    path.write_text("")
    with pytest.raises(ConfigError, match=r"empty\.properties: clusters is not set"):
        mirror.load(path)


def test_a_flow_that_is_not_there_is_refused(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["mirror", str(file), "--flow", "A->C"]) == 1
    assert "A->C is not one of the flows" in capsys.readouterr().err


class Ended:
    """A process that has ended with a code."""

    pid = 1

    def __init__(self, code: int) -> None:
        self.code = code

    def poll(self) -> int:
        return self.code

    def terminate(self) -> None:
        return  # as of a process that is gone already

    def wait(self, timeout: float | None = None) -> int:
        return self.code


def test_a_flow_that_ended_starts_again_after_pauses_that_grow(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    started: list[list[str]] = []

    def start(command: list[str], **_: object) -> Ended:
        started.append(command)
        return Ended(137)

    monkeypatch.setattr(mirror.subprocess, "Popen", start)
    child = mirror._Child(mirror.load(file)[0])
    monkeypatch.setattr(mirror, "time", SimpleNamespace(monotonic=lambda: 1000.0))
    pauses = []
    for _ in range(8):
        child.due_s = 0.0
        assert mirror._look_after(child, ["mirror", "f"]) is None
        assert mirror._look_after(child, ["mirror", "f"]) == 137
        pauses.append(child.due_s - 1000.0)
    assert pauses == [1, 2, 4, 8, 16, 32, 60, 60]
    assert started[0][1:] == ["-m", "wherry.coordinator.cli", "mirror", "f", "--flow", "A->B"]
    assert started[0][0] == sys.executable


def test_flows_end_with_the_first_whose_settings_are_wrong(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mirror.subprocess, "Popen", lambda *_, **__: Ended(1))
    monkeypatch.setattr(mirror, "LOOK_S", 0.0)
    assert mirror.run_flows(mirror.load(file), ["mirror", "f"]) == 1


class Ending(Ended):
    """A process that takes its time to end."""

    def __init__(self, takes_s: float) -> None:
        super().__init__(0)
        self.takes_s = takes_s
        self.killed = False

    def wait(self, timeout: float | None = None) -> int:
        if timeout is not None and timeout < self.takes_s and not self.killed:
            raise subprocess.TimeoutExpired("flow", timeout)
        return self.code

    def kill(self) -> None:
        self.killed = True


def test_a_flow_is_given_what_it_gives_its_tasks_to_end(file: Path) -> None:
    file.write_text(FILE + "B.task.shutdown.graceful.timeout.ms = 30000\n")
    patient, hasty = mirror.load(file)
    assert (mirror.end_s_of(patient), mirror.end_s_of(hasty)) == (31.0, 6.0)
    children = [mirror._Child(flow, mirror.end_s_of(flow)) for flow in (patient, hasty)]
    ending = [Ending(20.0), Ending(20.0)]
    for child, process in zip(children, ending, strict=True):
        child.process = process  # type: ignore[assignment]  # it does what is needed of one
    mirror._end(children)
    assert [process.killed for process in ending] == [False, True]
