"""`wherry migrate check`: what would become of a Kafka Connect cluster's connectors, told before it is stopped."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from wherry.coordinator.cli.errors import ExitCode
from wherry.coordinator.cli.output import OutputFormat, OutputOption, progress, show, table

if TYPE_CHECKING:
    from wherry.coordinator.migrate import Cluster, Plugin, Verdict


def register(app: typer.Typer) -> None:
    """Add the group of commands to the application."""
    group = typer.Typer(help="Move from Kafka Connect, and back.", no_args_is_help=True)
    group.callback()(_root)  # with a callback, even a single command keeps its name
    group.command("check")(check)
    app.add_typer(group, name="migrate")


def _root() -> None:
    return


def check(
    worker: Annotated[
        Path, typer.Argument(metavar="WORKER.properties", help="The file of the cluster's distributed workers.")
    ],
    output: OutputOption = OutputFormat.TEXT,
) -> None:
    """Tell which connectors of a cluster would run here, on which plugin, and which would not, and why.

    Only reads: the cluster may be running. The exit code is 0 when everything would run, and 1 when not.
    """
    from wherry.coordinator import migrate
    from wherry.coordinator.config.worker import WorkerConfig

    config = WorkerConfig.load(worker, distributed=True)
    with progress("Reading the cluster's topics") as report:
        report(config.bootstrap_servers)
        cluster = migrate.read(config)
    verdicts = _examined(config, cluster)
    fine = not cluster.problems and all(verdict.runs for verdict in verdicts)
    shown: dict[str, Any] = {
        "group": str(config.parsed["group.id"]),
        "runs": fine,
        "missing_topics": cluster.missing,
        "problems": cluster.problems,
        "unknown_settings": list(config.unknown),
        "connectors": [_shape(verdict) for verdict in verdicts],
    }
    show(shown, _text(shown, verdicts))
    if not fine:
        raise typer.Exit(int(ExitCode.CONFIG))


def _examined(config: Any, cluster: Cluster) -> list[Verdict]:
    from wherry.coordinator import migrate
    from wherry.coordinator.catalog import Catalog, rules_of
    from wherry.coordinator.cli.plugins import prepared

    with prepared(",".join(map(str, config.plugin_path))) as registry:
        catalog = Catalog(registry, rules=rules_of(config), providers=config.providers)

        def find(values: Mapping[str, str]) -> Plugin | None:
            found = registry.find(values.get("connector.class", ""))
            if found is None:
                return None
            return migrate.Plugin(found.manifest.name, found.manifest.version, catalog.connector_type(values))

        def errors_of(values: Mapping[str, str]) -> Sequence[str]:
            return catalog.validate(values).errors()

        return migrate.examine(cluster, find, errors_of)


def _shape(verdict: Verdict) -> dict[str, Any]:
    shape = dataclasses.asdict(verdict)
    if verdict.plugin is not None:
        shape["plugin"]["type"] = verdict.plugin.type.value
    return {**shape, "state": verdict.state.value if verdict.state else None, "runs": verdict.runs}


def _text(shown: Mapping[str, Any], verdicts: Sequence[Verdict]) -> str:
    lines: list[str] = []
    if verdicts:
        rows = [("CONNECTOR", "TYPE", "PLUGIN", "WANTED", "TASKS", "POSITIONS", "HERE")]
        rows += map(_row, verdicts)
        lines.append(table(rows))
    else:
        lines.append(f"The cluster {shown['group']} has no connectors.")
    for verdict in verdicts:
        lines += [f"{verdict.name}: {problem}" for problem in verdict.problems]
    lines += shown["problems"]
    lines += [f"The topic {name} is not there; it will be created." for name in shown["missing_topics"]]
    lines += [
        f"The setting {name} of the worker file is not known, and will do nothing."
        for name in shown["unknown_settings"]
    ]
    lines.append(
        "Everything would run. Stop all of the cluster's workers, then start `wherry distributed` with this file."
        if shown["runs"]
        else "Not everything would run: mend what is named above first, or leave it to the cluster as it is."
    )
    return "\n".join(lines)


def _row(verdict: Verdict) -> tuple[str, str, str, str, str, str, str]:
    plugin = verdict.plugin
    return (
        verdict.name,
        plugin.type.value if plugin else "unknown",
        f"{plugin.name} {plugin.version}" if plugin else f"none for {verdict.class_name}",
        verdict.target,
        str(verdict.tasks),
        str(verdict.positions) if plugin is None or plugin.type.value == "source" else "of its group",
        "runs" if verdict.runs else "does not run",
    )
