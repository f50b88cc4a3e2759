"""`wherry dev`, as far as it starts no server."""

from __future__ import annotations

from pathlib import Path

import pytest

from wherry.coordinator.cli import app as application
from wherry.coordinator.cli import dev, signals
from wherry.coordinator.cli.errors import ExitCode
from wherry.coordinator.dev.ports import free_ports


@pytest.fixture(autouse=True)
def no_signal_handlers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(signals, "install", lambda: None)


def test_no_broker_at_the_address_is_told_before_a_worker_starts(capsys: pytest.CaptureFixture[str]) -> None:
    (port,) = free_ports(1)
    assert application.run(["dev", "connect", "--bootstrap", f"127.0.0.1:{port}"]) == ExitCode.UNREACHABLE
    assert capsys.readouterr().err.startswith(f"Error: No Kafka broker listens at 127.0.0.1:{port}.\n")


def test_the_worker_file_names_the_broker(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (port,) = free_ports(1)
    worker = tmp_path / "worker.properties"
    worker.write_text(f"bootstrap.servers=127.0.0.1:{port}\n")
    assert application.run(["dev", "connect", "--worker", str(worker)]) == ExitCode.UNREACHABLE
    assert f"127.0.0.1:{port}" in capsys.readouterr().err


def test_a_missing_worker_file_is_a_configuration_error(capsys: pytest.CaptureFixture[str]) -> None:
    assert application.run(["dev", "connect", "--worker", "/none"]) == ExitCode.CONFIG
    assert capsys.readouterr().err == "Error: /none does not exist.\n"


def test_a_missing_connector_file_is_a_configuration_error(capsys: pytest.CaptureFixture[str]) -> None:
    assert application.run(["dev", "connect", "none.json"]) == ExitCode.CONFIG
    assert "There is no connector file none.json." in capsys.readouterr().err


@pytest.mark.parametrize(
    ("listeners", "port"),
    [("http://:8085", 8085), ("http://127.0.0.1:18083,https://x:18443", 18083), ("", 8083), ("nonsense", 8083)],
)
def test_the_port_of_rest_comes_from_the_first_listener(listeners: str, port: int) -> None:
    assert dev._rest_port({"listeners": listeners}) == port


def test_a_worker_file_with_an_offset_file_and_no_group_is_standalone() -> None:
    assert dev._is_standalone({"offset.storage.file.filename": "f"})
    assert not dev._is_standalone({"offset.storage.file.filename": "f", "group.id": "g"})
