"""The command line as a whole: exit codes, errors as sentences, quick to start."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable

import pytest
import typer

from wherry.contract.errors import ConfigError
from wherry.coordinator.cli import app as application
from wherry.coordinator.cli import output, signals
from wherry.coordinator.cli.errors import CliError, ExitCode, failure_of
from wherry.coordinator.cli.output import OutputFormat, OutputOption
from wherry.coordinator.cli.signals import StopRequested
from wherry.coordinator.dev.errors import DevServerError, PortTakenError


@pytest.fixture(autouse=True)
def no_signal_handlers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(signals, "install", lambda: None)


@pytest.fixture
def failing(monkeypatch: pytest.MonkeyPatch) -> Callable[[BaseException], list[str]]:
    """Makes a command line with one command, `fail`, that raises what it is given."""

    def prepare(error: BaseException) -> list[str]:
        def fail(output: OutputOption = OutputFormat.TEXT) -> None:
            raise error

        def build() -> typer.Typer:
            app = typer.Typer(pretty_exceptions_enable=False)
            app.callback()(lambda: None)
            app.command("fail")(fail)
            return app

        monkeypatch.setattr(application, "build_app", build)
        return ["fail"]

    return prepare


def test_help_lists_the_commands(capsys: pytest.CaptureFixture[str]) -> None:
    assert application.run(["--help"]) == ExitCode.OK
    told = capsys.readouterr().out
    assert "version" in told
    assert "dev" in told


@pytest.mark.parametrize("arguments", [["nonsense"], ["version", "--nonsense"], ["dev", "kafka", "--port", "0"]])
def test_a_wrong_command_line_is_a_usage_error(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert application.run(arguments) == ExitCode.USAGE
    assert "wherry" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (CliError("Bad.", code=ExitCode.REFUSED), ExitCode.REFUSED),
        (ConfigError("Bad."), ExitCode.CONFIG),
        (PortTakenError("Bad."), ExitCode.ENVIRONMENT),
        (DevServerError("Bad."), ExitCode.ENVIRONMENT),
    ],
)
def test_every_expected_error_has_its_exit_code(
    error: Exception, code: ExitCode, failing: Callable[[BaseException], list[str]], capsys: pytest.CaptureFixture[str]
) -> None:
    assert application.run(failing(error)) == code
    assert capsys.readouterr().err == "Error: Bad.\n"


def test_a_remedy_stands_below_the_error(
    failing: Callable[[BaseException], list[str]], capsys: pytest.CaptureFixture[str]
) -> None:
    application.run(failing(CliError("It is broken.", "Mend it.")))
    assert capsys.readouterr().err == "Error: It is broken.\nMend it.\n"


def test_an_error_is_json_where_json_was_asked_for(
    failing: Callable[[BaseException], list[str]], capsys: pytest.CaptureFixture[str]
) -> None:
    assert application.run([*failing(CliError("It is broken.", "Mend it.")), "-o", "json"]) == ExitCode.CONFIG
    assert json.loads(capsys.readouterr().err) == {
        "error": "config",
        "message": "It is broken.",
        "remedy": "Mend it.",
    }


def test_an_unforeseen_error_is_called_a_defect_and_keeps_its_trace(
    failing: Callable[[BaseException], list[str]], capsys: pytest.CaptureFixture[str]
) -> None:
    assert application.run(failing(ZeroDivisionError("by zero"))) == ExitCode.BUG
    told = capsys.readouterr().err
    assert "Traceback" in told
    assert "Wherry has a defect: ZeroDivisionError: by zero." in told


def test_being_stopped_is_no_error(
    failing: Callable[[BaseException], list[str]], capsys: pytest.CaptureFixture[str]
) -> None:
    assert application.run(failing(StopRequested(15))) == 143
    assert capsys.readouterr().err == ""


def test_errors_that_nobody_expects_have_no_failure() -> None:
    assert failure_of(ValueError("x")) is None


def test_the_versions_are_told_as_json(capsys: pytest.CaptureFixture[str]) -> None:
    assert application.run(["version", "-o", "json"]) == ExitCode.OK
    told = json.loads(capsys.readouterr().out)
    assert set(told) == {"wherry", "kafka", "spark", "python", "java"}
    assert told["python"] == sys.version.split()[0]


def test_the_format_of_one_command_does_not_stick_to_the_next(capsys: pytest.CaptureFixture[str]) -> None:
    application.run(["version", "-o", "json"])
    application.run(["version"])
    assert not output.wants_json()
    assert capsys.readouterr().out.splitlines()[1].startswith("Wherry ")


def test_a_table_aligns_its_columns() -> None:
    assert output.table([("a", "1"), ("long", "2")]) == "a     1\nlong  2"
