"""Puts the commands together and runs one of them.

To add a command: write a module here with `register(app)`, import heavy things inside its functions, raise `CliError`
or an error that `errors.py` knows, and name the module in COMMAND_MODULES.
"""

from __future__ import annotations

import importlib
import os
import sys
from collections.abc import Sequence

import typer

from wherry.coordinator.cli import output, signals
from wherry.coordinator.cli.errors import ExitCode, Failure, failure_of

# In the order `wherry --help` lists them.
COMMAND_MODULES = (
    "wherry.coordinator.cli.demo",
    "wherry.coordinator.cli.standalone",
    "wherry.coordinator.cli.distributed",
    "wherry.coordinator.cli.mirror",
    "wherry.coordinator.cli.connectors",
    "wherry.coordinator.cli.plugins",
    "wherry.coordinator.cli.dlq",
    "wherry.coordinator.cli.migrate",
    "wherry.coordinator.cli.dev",
    "wherry.coordinator.cli.version",
)

TRACE_VARIABLE = "WHERRY_TRACE"


def build_app() -> typer.Typer:
    """Return the whole command line."""
    app = typer.Typer(
        name="wherry",
        help="Moves data between Kafka and every other system: Kafka Connect's contract, connectors in any language.",
        no_args_is_help=True,
        add_completion=False,
        pretty_exceptions_enable=False,
        rich_markup_mode=None,  # rich help looks better and doubles the time that --help takes
        context_settings={"help_option_names": ["-h", "--help"]},
    )
    app.callback()(_root)  # with a callback, even a single command keeps its name
    for module in COMMAND_MODULES:
        importlib.import_module(module).register(app)
    return app


def run(arguments: Sequence[str]) -> int:
    """Run one command line and return its exit code. Never raises."""
    output.reset()
    signals.install()
    try:
        build_app()(list(arguments), prog_name="wherry")
    except SystemExit as leaving:
        return leaving.code if isinstance(leaving.code, int) else int(ExitCode.USAGE)
    except signals.StopRequested as stop:
        return stop.exit_code
    except BrokenPipeError:
        # Whoever read our output has had enough; a message about that would go nowhere too.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return int(ExitCode.OK)
    except Exception as error:
        return _report(error)
    return int(ExitCode.OK)


def _root() -> None:
    return


def _report(error: Exception) -> int:
    failure = failure_of(error)
    if failure is None or os.environ.get(TRACE_VARIABLE):
        import traceback

        traceback.print_exception(error)
    if failure is None:
        failure = Failure(
            ExitCode.BUG,
            f"Wherry has a defect: {type(error).__name__}: {error}.",
            "Please report it with the lines above.",
        )
    output.show_failure(failure)
    return int(failure.code)
