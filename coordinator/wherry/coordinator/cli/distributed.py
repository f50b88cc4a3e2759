"""`wherry distributed`: one coordinator of a cluster, from Kafka Connect's own worker file."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from wherry.coordinator.cli.errors import ExitCode
from wherry.coordinator.cli.signals import StopRequested
from wherry.coordinator.cli.standalone import LogFormat, LogLevel


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
    log_format: Annotated[LogFormat, typer.Option(help="How log lines look.")] = LogFormat.TEXT,
    log_level: Annotated[LogLevel, typer.Option(help="Least grave log line shown.")] = LogLevel.INFO,
) -> None:
    """Run a coordinator of a cluster with Kafka Connect's own worker file, topics and group.

    Connectors, positions and states of a Kafka Connect cluster that was stopped are taken over where they stand, and
    may be taken back. Of several coordinators of one group.id one leads; the others answer reads, forward the rest, and
    take over when it ends. `wherry migrate check` tells beforehand what would run.
    """
    import logging
    import os
    import sys

    # gRPC tells of every process that is started while a call is under way; here that is the normal course of things.
    os.environ.setdefault("GRPC_VERBOSITY", "ERROR")
    from wherry.coordinator import distributed, logs

    def leave() -> None:
        # As in `standalone`: all that could be committed is, and native threads would only take seconds to end.
        logging.shutdown()
        sys.stdout.flush()
        os._exit(int(ExitCode.OK))

    logs.setup(form=log_format.value, level=logging.getLevelNamesMapping()[log_level.upper()])
    try:
        distributed.distributed(None if worker == Path("-") else worker, stuck=leave)
    except StopRequested:
        leave()
