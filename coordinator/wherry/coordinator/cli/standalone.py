"""`wherry standalone`: one worker in one process, from Kafka Connect's own files."""

from __future__ import annotations

import enum
from pathlib import Path
from typing import Annotated

import typer

from wherry.coordinator.cli.errors import ExitCode
from wherry.coordinator.cli.signals import StopRequested


class LogFormat(enum.StrEnum):
    """How log lines look."""

    TEXT = "text"
    JSON = "json"


class LogLevel(enum.StrEnum):
    """Least grave log line shown."""

    DEBUG = "debug"
    INFO = "info"
    WARN = "warn"
    ERROR = "error"


def register(app: typer.Typer) -> None:
    """Add the command to the application."""
    app.command("standalone")(standalone)


def standalone(
    worker: Annotated[
        Path | None,
        typer.Argument(
            metavar="[WORKER.properties]",
            help="Kafka Connect's worker file; without one, CONNECT_... variables say all.",
        ),
    ] = None,
    connectors: Annotated[
        list[Path] | None,
        typer.Argument(metavar="[CONNECTOR.properties|json]...", help="Connectors to create at start."),
    ] = None,
    log_format: Annotated[LogFormat, typer.Option(help="How log lines look.")] = LogFormat.TEXT,
    log_level: Annotated[LogLevel, typer.Option(help="Least grave log line shown.")] = LogLevel.INFO,
) -> None:
    """Run a worker with Kafka Connect's own files.

    It runs until Ctrl-C or SIGTERM, which drain and commit first; a second one ends it at once. Connectors are made
    from files and over REST, and last as long as the process; positions stay in offset.storage.file.filename.
    Variables such as CONNECT_BOOTSTRAP_SERVERS go before the file's settings; `-` as the file is none.
    """
    import logging
    import os
    import sys

    # gRPC tells of every process that is started while a call is under way; here that is the normal course of things.
    os.environ.setdefault("GRPC_VERBOSITY", "ERROR")
    from wherry.coordinator import logs, main

    def leave() -> None:
        # Everything that could be drained and committed is; leaving the usual way would only wait seconds more for the
        # native threads of Kafka's and gRPC's clients.
        logging.shutdown()
        sys.stdout.flush()
        os._exit(int(ExitCode.OK))

    logs.setup(form=log_format.value, level=logging.getLevelNamesMapping()[log_level.upper()])
    try:
        main.standalone(None if worker == Path("-") else worker, connectors or (), stuck=leave)
    except StopRequested:
        leave()  # being stopped is how a worker ends
