"""`wherry plugins …`: what plugins this installation has, without any running worker."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from wherry.coordinator.cli.errors import CliError, ExitCode
from wherry.coordinator.cli.output import OutputFormat, OutputOption, progress, show, table

if TYPE_CHECKING:
    from wherry.contract.manifest import Manifest
    from wherry.coordinator.plugins import PluginRegistry

BUILD_TIMEOUT_S = 600
PATH_VARIABLES = ["WHERRY_PLUGIN_PATH", "CONNECT_PLUGIN_PATH"]
_DOCUMENTATION_CHARS_MAX = 90

PathOption = Annotated[
    str, typer.Option("--plugin-path", envvar=PATH_VARIABLES, help="Folders with more plugins, joined by commas.")
]


def register(app: typer.Typer) -> None:
    """Add the group of commands to the application."""
    group = typer.Typer(help="Look at plugins, and make them ready.", no_args_is_help=True)
    group.command("list")(list_plugins)
    group.command("describe")(describe)
    group.command("install")(install)
    app.add_typer(group, name="plugins")


def list_plugins(plugin_path: PathOption = "", output: OutputOption = OutputFormat.TEXT) -> None:
    """List the classes of all plugins, and folders that offer none."""
    registry = _registry(plugin_path)
    found = [
        {
            "class": plugin.class_name,
            "type": plugin.role.name.lower(),
            "version": plugin.manifest.version,
            "plugin": plugin.manifest.name,
            "aliases": list(plugin.manifest_class.aliases),
            "directory": str(plugin.manifest.directory),
        }
        for plugin in registry.plugins()
    ]
    broken = [{"directory": str(each.directory), "message": each.message} for each in registry.broken()]
    rows = [("CLASS", "TYPE", "VERSION", "PLUGIN", "ALIASES")]
    rows += [
        (each["class"], each["type"], each["version"], each["plugin"], ", ".join(each["aliases"]))  # type: ignore[misc]
        for each in found
    ]
    text = table(rows) if found else "There are no plugins."
    if broken:
        text += "\n\nNot usable:\n" + "\n".join(f"  {each['message']}" for each in broken)
    show({"plugins": found, "broken": broken}, text)


def describe(
    name: Annotated[str, typer.Argument(help="Class, simple name or alias.")],
    plugin_path: PathOption = "",
    output: OutputOption = OutputFormat.TEXT,
) -> None:
    """Show a class and its configuration keys."""
    with prepared(plugin_path) as registry:
        plugin = registry.find(name)
        if plugin is None:
            raise CliError(
                f"No plugin has a class named {name}.", "See `wherry plugins list`.", code=ExitCode.NOT_FOUND
            )
        with progress(f"Asking plugin {plugin.manifest.name}") as report:
            report("a first start makes its environment")
            described = registry.description(plugin)
    keys = [
        {
            "name": key.name,
            "type": key.type.name,
            "required": key.required,
            "default": key.default_value,
            "importance": key.importance.name,
            "documentation": key.documentation,
        }
        for key in described.config.keys
    ]
    shown: dict[str, Any] = {
        "class": described.class_name,
        "type": described.role.name.lower(),
        "version": plugin.manifest.version,
        "aliases": list(plugin.manifest_class.aliases),
        "sink_class": described.sink_class.name if described.sink_class else None,
        "source_class": described.source_class.name if described.source_class else None,
        "documentation": described.documentation,
        "config": keys,
    }
    rows = [("KEY", "TYPE", "DEFAULT", "WHAT IT DOES")]
    rows += [(key["name"], key["type"], _default(key), _short(str(key["documentation"]))) for key in keys]  # type: ignore[misc]
    guarantee = shown["sink_class"] or shown["source_class"] or ""
    head = f"{shown['class']} {shown['version']} ({shown['type']}, {guarantee.lower()})"
    show(shown, "\n".join(part for part in (head, described.documentation, "", table(rows)) if part is not None))


def install(
    names: Annotated[
        list[str] | None, typer.Argument(metavar="[PLUGIN|FOLDER]...", help="Names or folders; by default all.")
    ] = None,
    plugin_path: PathOption = "",
    output: OutputOption = OutputFormat.TEXT,
) -> None:
    """Make plugins ready before they are needed: build what is to be built, make environments, ask for classes."""
    with prepared(plugin_path) as registry:
        ready = []
        for manifest in _chosen(registry, names or []):
            with progress(f"Installing {manifest.name}") as report:
                report("building" if manifest.build else "making its environment")
                _build(manifest)
                for plugin in registry.plugins():
                    if plugin.manifest.directory == manifest.directory:
                        registry.description(plugin)
            ready.append({"plugin": manifest.name, "version": manifest.version, "directory": str(manifest.directory)})
    show({"installed": ready}, "\n".join(f"{each['plugin']} {each['version']} is ready." for each in ready))


def unasked(manifest: Manifest) -> Any:
    """In the place of what asks a plugin: for commands that start none."""
    raise CliError(f"Plugin {manifest.name} is asked for its classes, but nothing runs it.")


def _registry(plugin_path: str, describe: Any = None) -> PluginRegistry:
    from wherry.coordinator.plugins import PluginRegistry, bundled_folders, descriptions_folder

    paths = [Path(part).expanduser() for part in plugin_path.split(",") if part.strip()]
    return PluginRegistry([*bundled_folders(), *paths], describe or unasked, cache=descriptions_folder())


@contextmanager
def prepared(plugin_path: str) -> Iterator[PluginRegistry]:
    """A registry that can ask plugins, through a sidecar host of its own."""
    import tempfile

    from wherry.coordinator.hosts import HostClient
    from wherry.coordinator.probe import PluginProber

    with tempfile.TemporaryDirectory(prefix="wherry-") as directory:
        hosts = HostClient(Path(directory))
        prober = PluginProber(hosts)
        started = False

        def ask(manifest: Manifest) -> Any:
            nonlocal started
            if not started:
                hosts.start()  # only now: what is kept from earlier needs no host
                started = True
            return prober.describe(manifest)

        try:
            yield _registry(plugin_path, ask)
        finally:
            prober.close()
            if started:
                hosts.stop()


def _chosen(registry: PluginRegistry, names: list[str]) -> list[Manifest]:
    from wherry.contract.manifest import Manifest

    manifests = {manifest.name: manifest for manifest in registry.manifests()}
    if not names:
        return list(manifests.values())
    chosen = []
    for name in names:
        if name in manifests:
            chosen.append(manifests[name])
        elif Path(name).is_dir():
            folder = Manifest.load(name)
            known = next((each for each in manifests.values() if each.directory == folder.directory), None)
            if known is None:
                raise CliError(
                    f"{name} is not among the plugins.",
                    f"Add --plugin-path {Path(name).resolve()}.",
                    code=ExitCode.USAGE,
                )
            chosen.append(known)
        else:
            raise CliError(f"There is no plugin {name}.", "See `wherry plugins list`.", code=ExitCode.NOT_FOUND)
    return chosen


def _build(manifest: Manifest) -> None:
    import subprocess

    if not manifest.build:
        return
    try:
        done = subprocess.run(
            manifest.build, cwd=manifest.directory, capture_output=True, text=True, timeout=BUILD_TIMEOUT_S, check=False
        )
    except FileNotFoundError:
        raise CliError(
            f"Plugin {manifest.name} is built with {manifest.build[0]}, which is not on this machine.",
            f"Install {manifest.build[0]} and run this again.",
            code=ExitCode.ENVIRONMENT,
        ) from None
    except subprocess.TimeoutExpired:
        raise CliError(
            f"Building plugin {manifest.name} took longer than {BUILD_TIMEOUT_S} s.", code=ExitCode.FAILED
        ) from None
    if done.returncode:
        last = "\n".join((done.stderr or done.stdout).strip().splitlines()[-5:])
        raise CliError(f"Building plugin {manifest.name} failed: {last}", code=ExitCode.FAILED)


def _default(key: dict[str, Any]) -> str:
    return "(required)" if key["required"] and key["default"] is None else str(key["default"] or "")


def _short(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= _DOCUMENTATION_CHARS_MAX else f"{line[: _DOCUMENTATION_CHARS_MAX - 1]}…"
