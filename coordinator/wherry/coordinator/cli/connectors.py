"""`wherry connectors …`: the verbs on connectors of a running worker."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

from wherry.coordinator.cli.client import URL_DEFAULT, RestClient, UrlOption
from wherry.coordinator.cli.errors import CliError, ExitCode
from wherry.coordinator.cli.output import OutputFormat, OutputOption, show, table

_TRACE_CHARS_MAX = 100

Name = Annotated[str, typer.Argument(help="Name of the connector.")]


def register(app: typer.Typer) -> None:
    """Add the group of commands to the application."""
    group = typer.Typer(help="Manage the connectors of a running worker.", no_args_is_help=True)
    group.command("list")(list_connectors)
    for command in (get, create, update, delete, status, pause, resume, stop, restart, offsets):
        group.command(command.__name__)(command)
    app.add_typer(group, name="connectors")


def list_connectors(url: UrlOption = URL_DEFAULT, output: OutputOption = OutputFormat.TEXT) -> None:
    """List all connectors with their states."""
    found = RestClient(url).get("connectors", query="?expand=status&expand=info")
    rows = [("NAME", "TYPE", "STATE", "TASKS", "CLASS")]
    for name in sorted(found):
        state, info = found[name].get("status", {}), found[name].get("info", {})
        running = sum(task["state"] == "RUNNING" for task in state.get("tasks", ()))
        tasks = f"{running}/{len(state.get('tasks', ()))}"
        connector_class = info.get("config", {}).get("connector.class", "")
        rows.append((name, info.get("type", ""), state.get("connector", {}).get("state", ""), tasks, connector_class))
    show(found, table(rows) if found else "There are no connectors.")


def get(name: Name, url: UrlOption = URL_DEFAULT, output: OutputOption = OutputFormat.TEXT) -> None:
    """Show a connector's configuration."""
    info = RestClient(url).get("connectors", name)
    show(info, table(sorted(info["config"].items())))


def create(
    files: Annotated[list[Path], typer.Argument(metavar="FILE...", help="Connector files: properties or JSON.")],
    url: UrlOption = URL_DEFAULT,
    output: OutputOption = OutputFormat.TEXT,
) -> None:
    """Create connectors from files."""
    from wherry.coordinator.config import connectorfile

    wanted = [connectorfile.load(path) for path in files]
    client = RestClient(url)
    made = []
    try:
        for file in wanted:
            body: dict[str, object] = {"name": file.name, "config": dict(file.config)}
            if file.initial_state is not None:
                body["initial_state"] = {"STARTED": "RUNNING"}.get(file.initial_state.value, file.initial_state.value)
            made.append(client.request("POST", "connectors", body=body))
    finally:
        # Where one is refused, those before it are there all the same.
        if made:
            show(made, "\n".join(f"Created {info['name']}." for info in made))


def update(
    name: Name,
    file: Annotated[Path | None, typer.Argument(metavar="[FILE]", help="The whole new configuration.")] = None,
    set_: Annotated[
        list[str] | None, typer.Option("--set", metavar="KEY=VALUE", help="Change one key; may be repeated.")
    ] = None,
    unset: Annotated[list[str] | None, typer.Option(metavar="KEY", help="Remove one key; may be repeated.")] = None,
    url: UrlOption = URL_DEFAULT,
    output: OutputOption = OutputFormat.TEXT,
) -> None:
    """Change a connector: all of it from a file, or single keys."""
    client = RestClient(url)
    if (file is None) == (not set_ and not unset):
        raise CliError("Give either a file or --set and --unset.", code=ExitCode.USAGE)
    if file is not None:
        from wherry.coordinator.config import connectorfile

        config = {**connectorfile.load(file).config, "name": name}
        info = client.request("PUT", "connectors", name, "config", body=config)
    else:
        info = client.request("PATCH", "connectors", name, "config", body=_patch(set_ or (), unset or ()))
    show(info, f"Updated {name}.")


def delete(name: Name, url: UrlOption = URL_DEFAULT, output: OutputOption = OutputFormat.TEXT) -> None:
    """Delete a connector. Its offsets stay."""
    RestClient(url).request("DELETE", "connectors", name)
    show({"deleted": name}, f"Deleted {name}.")


def status(name: Name, url: UrlOption = URL_DEFAULT, output: OutputOption = OutputFormat.TEXT) -> None:
    """Show the state of a connector and its tasks; exit code 7 when a part has failed."""
    state = RestClient(url).get("connectors", name, "status")
    rows = [("PART", "STATE", "WORKER", "WHAT HAPPENED"), _part("connector", state["connector"])]
    rows += [_part(f"task {task['id']}", task) for task in state["tasks"]]
    show(state, table(rows))
    if any(part["state"] == "FAILED" for part in (state["connector"], *state["tasks"])):
        raise typer.Exit(int(ExitCode.FAILED))


def pause(name: Name, url: UrlOption = URL_DEFAULT, output: OutputOption = OutputFormat.TEXT) -> None:
    """Pause a connector."""
    RestClient(url).request("PUT", "connectors", name, "pause")
    show({"paused": name}, f"{name} is being paused.")


def resume(name: Name, url: UrlOption = URL_DEFAULT, output: OutputOption = OutputFormat.TEXT) -> None:
    """Let a paused or stopped connector go on."""
    RestClient(url).request("PUT", "connectors", name, "resume")
    show({"resumed": name}, f"{name} goes on.")


def stop(name: Name, url: UrlOption = URL_DEFAULT, output: OutputOption = OutputFormat.TEXT) -> None:
    """Stop a connector: no tasks at all, and its offsets may be changed."""
    RestClient(url).request("PUT", "connectors", name, "stop")
    show({"stopped": name}, f"{name} is being stopped.")


def restart(
    name: Name,
    task: Annotated[int | None, typer.Option(min=0, help="Restart this task only.")] = None,
    tasks: Annotated[bool, typer.Option("--tasks", help="Restart its tasks too.")] = False,
    only_failed: Annotated[bool, typer.Option("--only-failed", help="Leave alone what has not failed.")] = False,
    url: UrlOption = URL_DEFAULT,
    output: OutputOption = OutputFormat.TEXT,
) -> None:
    """Restart a connector, or one of its tasks."""
    client = RestClient(url)
    if task is not None:
        client.request("POST", "connectors", name, "tasks", str(task), "restart")
        show({"restarted": f"{name}-{task}"}, f"Task {task} of {name} is being restarted.")
        return
    query = f"?includeTasks={str(tasks).lower()}&onlyFailed={str(only_failed).lower()}"
    plan = client.request("POST", "connectors", name, "restart", query=query)
    show(plan or {"restarted": name}, f"{name} is being restarted.")


def offsets(
    name: Name,
    reset: Annotated[bool, typer.Option("--reset", help="Forget all offsets; the connector must be stopped.")] = False,
    set_: Annotated[
        Path | None,
        typer.Option("--set", metavar="FILE", help="Write the offsets of a JSON file; the connector must be stopped."),
    ] = None,
    url: UrlOption = URL_DEFAULT,
    output: OutputOption = OutputFormat.TEXT,
) -> None:
    """Show, write or reset a connector's offsets."""
    client = RestClient(url)
    if reset and set_ is not None:
        raise CliError("Give either --reset or --set.", code=ExitCode.USAGE)
    if reset or set_ is not None:
        method, body = ("DELETE", None) if set_ is None else ("PATCH", _offsets_of(set_))
        answer = client.request(method, "connectors", name, "offsets", body=body)
        show(answer, answer["message"])
        return
    found = client.get("connectors", name, "offsets")
    rows = [("PARTITION", "OFFSET")]
    rows += [(_compact(entry["partition"]), _compact(entry["offset"])) for entry in found["offsets"]]
    show(found, table(rows) if found["offsets"] else f"{name} has no offsets yet.")


def _part(title: str, part: Mapping[str, Any]) -> tuple[str, str, str, str]:
    trace = next(iter(str(part.get("trace", "")).splitlines()), "")
    shown = trace if len(trace) <= _TRACE_CHARS_MAX else f"{trace[: _TRACE_CHARS_MAX - 1]}…"
    return title, part["state"], part["worker_id"], shown


def _patch(changes: Sequence[str], removals: Sequence[str]) -> dict[str, str | None]:
    patch: dict[str, str | None] = dict.fromkeys(removals)
    for change in changes:
        key, equals, value = change.partition("=")
        if not equals or not key:
            raise CliError(f"--set {change} has no KEY=VALUE.", code=ExitCode.USAGE)
        patch[key] = value
    return patch


def _offsets_of(path: Path) -> Any:
    try:
        value = json.loads(path.read_text("utf-8"))
    except OSError as error:
        raise CliError(f"{path} cannot be read: {error.strerror}.") from None
    except ValueError as error:
        raise CliError(f"{path} is not valid JSON: {error}.") from None
    # What `offsets -o json` printed can be given back as it is.
    return value if isinstance(value, dict) else {"offsets": value}


def _compact(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))
