"""`wherry distributed`: one coordinator of a cluster, from Kafka Connect's own worker file."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from wherry.coordinator.cli.running import LogFormat, LogFormatOption, LogLevel, LogLevelOption, begin, leave
from wherry.coordinator.cli.signals import StopRequested


def register(app: typer.Typer) -> None:
    """Add the command to the application."""
    app.command("distributed")(distributed)


def distributed(
    worker: Annotated[
        Path | None,
        typer.Argument(
            metavar="[WORKER.properties]",
            help="Kafka Connect's worker file; without one, CONNECT_... variables say all.",
        ),
    ] = None,
    log_format: LogFormatOption = LogFormat.TEXT,
    log_level: LogLevelOption = LogLevel.INFO,
) -> None:
    """Run a coordinator of a cluster with Kafka Connect's own worker file, topics and group.

    Connectors, positions and states of a Kafka Connect cluster that was stopped are taken over where they stand, and
    may be taken back. Of several coordinators of one group.id one leads; the others answer reads, forward the rest, and
    take over when it ends. `wherry migrate check` tells beforehand what would run.
    """
    begin(log_format, log_level)
    from wherry.coordinator import distributed

    try:
        distributed.distributed(None if worker == Path("-") else worker, stuck=leave)
    except StopRequested:
        leave()
