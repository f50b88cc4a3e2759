"""`wherry standalone`: one worker in one process, from Kafka Connect's own files."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from wherry.coordinator.cli.running import LogFormat, LogFormatOption, LogLevel, LogLevelOption, begin, leave
from wherry.coordinator.cli.signals import StopRequested


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
    log_format: LogFormatOption = LogFormat.TEXT,
    log_level: LogLevelOption = LogLevel.INFO,
) -> None:
    """Run a worker with Kafka Connect's own files.

    It runs until Ctrl-C or SIGTERM, which drain and commit first; a second one ends it at once. Connectors are made
    from files and over REST, and last as long as the process; positions stay in offset.storage.file.filename.
    Variables such as CONNECT_BOOTSTRAP_SERVERS go before the file's settings; `-` as the file is none.
    """
    begin(log_format, log_level)
    from wherry.coordinator import main

    try:
        main.standalone(None if worker == Path("-") else worker, connectors or (), stuck=leave)
    except StopRequested:
        leave()  # being stopped is how a worker ends
