"""What commands that run until they are stopped have in common: how they log, and how they end."""

from __future__ import annotations

import enum
import logging
import os
import sys
from typing import Annotated, NoReturn

import typer

from wherry.coordinator.cli.errors import ExitCode


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


LogFormatOption = Annotated[LogFormat, typer.Option(help="How log lines look.")]
LogLevelOption = Annotated[LogLevel, typer.Option(help="Least grave log line shown.")]


def begin(log_format: LogFormat, log_level: LogLevel) -> None:
    """Set up logging; to be called before anything is imported that brings gRPC."""
    # gRPC tells of every process that is started while a call is under way; here that is the normal course of things.
    os.environ.setdefault("GRPC_VERBOSITY", "ERROR")
    from wherry.coordinator import logs

    logs.setup(form=log_format.value, level=logging.getLevelNamesMapping()[log_level.upper()])


def leave() -> NoReturn:
    """End the process now.

    Everything that could be drained and committed is; leaving the usual way would only wait seconds more for the native
    threads of Kafka's and gRPC's clients.
    """
    logging.shutdown()
    sys.stdout.flush()
    os._exit(int(ExitCode.OK))
