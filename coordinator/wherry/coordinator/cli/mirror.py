"""`wherry mirror`: MirrorMaker 2's dedicated mode, from its own file."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from wherry.coordinator.cli.running import LogFormat, LogFormatOption, LogLevel, LogLevelOption, begin, leave
from wherry.coordinator.cli.signals import StopRequested


def register(app: typer.Typer) -> None:
    """Add the command to the application."""
    app.command("mirror")(mirror)


def mirror(
    file: Annotated[Path, typer.Argument(metavar="MM2.properties", help="MirrorMaker's own file.")],
    clusters: Annotated[
        list[str] | None,
        typer.Option(help="A cluster that is near: only flows into it run here. May be given again."),
    ] = None,
    flow: Annotated[str | None, typer.Option(metavar="A->B", help="Run this flow alone, in this process.")] = None,
    log_format: LogFormatOption = LogFormat.TEXT,
    log_level: LogLevelOption = LogLevel.INFO,
) -> None:
    """Run the flows of a MirrorMaker file between Kafka clusters, in MirrorMaker's place.

    Each flow is a process and a Kafka Connect cluster of its own on its target, with MirrorMaker's group and topics:
    a flow goes on where MirrorMaker was stopped, and may be taken back. Several nodes may run the same file; of each
    flow one leads. A flow that only beats (`emit.heartbeats.enabled`, on by default) is a process, too.
    """
    begin(log_format, log_level)
    from wherry.contract.errors import ConfigError
    from wherry.coordinator import mirror as running

    flows = running.load(file, clusters or ())
    try:
        if flow is not None:
            chosen = [each for each in flows if each.name == flow]
            if not chosen:
                names = ", ".join(each.name for each in flows)
                raise ConfigError(f"{flow} is not one of the flows of {file}: {names}.")
            running.die_with_parent()
            running.run_flow(chosen[0], stuck=leave)
        if len(flows) == 1:
            running.run_flow(flows[0], stuck=leave)
        near = [text for name in clusters or () for text in ("--clusters", name)]
        looks = ["--log-format", log_format.value, "--log-level", log_level.value]
        raise typer.Exit(running.run_flows(flows, ["mirror", str(file), *near, *looks]))
    except StopRequested:
        leave()
