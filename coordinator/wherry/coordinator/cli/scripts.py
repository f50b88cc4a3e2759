"""The commands by Kafka Connect's names: `connect-standalone`, `connect-distributed`, `connect-mirror-maker`, ….

Scripts and images that start Kafka Connect start Wherry so, with the arguments they have.
"""

from __future__ import annotations

import itertools
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

from wherry.coordinator.cli.errors import CliError, ExitCode

_SYNC: Final = (
    "There is nothing to synchronize: plugins of Wherry carry a manifest (sidecar.yaml) each, and jars are served with "
    "or without service manifests."
)
_COLUMNS: Final = (
    "pluginName", "firstAlias", "secondAlias", "pluginVersion", "pluginType", "isLoadable", "hasManifest",
    "pluginLocation",
)  # fmt: skip
_NONE: Final = "N/A"


def standalone() -> None:
    """`connect-standalone WORKER.properties [CONNECTOR…]`."""
    sys.exit(_start("standalone", sys.argv[1:]))


def distributed() -> None:
    """`connect-distributed WORKER.properties`."""
    sys.exit(_start("distributed", sys.argv[1:]))


def mirror_maker() -> None:
    """`connect-mirror-maker MM2.properties [--clusters CLUSTER…]`."""
    arguments, clusters = sys.argv[1:], []
    if "--clusters" in arguments:
        # One option with all that follows it, as MirrorMaker has it.
        start = arguments.index("--clusters")
        rest = list(itertools.takewhile(lambda each: not each.startswith("-"), arguments[start + 1 :]))
        clusters = [text for name in rest for text in ("--clusters", name)]
        arguments = arguments[:start] + arguments[start + 1 + len(rest) :]
    sys.exit(_start("mirror", [*arguments, *clusters], name="mirror-maker"))


def plugin_path() -> None:
    """`connect-plugin-path list|sync-manifests`."""
    sys.exit(_run_plugin_path(sys.argv[1:]))


def _start(mode: str, arguments: Sequence[str], *, name: str = "") -> int:
    from wherry.coordinator.cli import output
    from wherry.coordinator.cli.app import run
    from wherry.coordinator.cli.errors import Failure

    if "-daemon" in arguments:
        output.show_failure(
            Failure(
                ExitCode.USAGE,
                "-daemon is not offered: the command stays in the foreground.",
                f"Leave it to a service manager, or use: nohup connect-{name or mode} … &",
            )
        )
        return int(ExitCode.USAGE)
    return run([mode, *arguments])


def _run_plugin_path(arguments: Sequence[str]) -> int:
    import argparse

    from wherry.coordinator.cli import output
    from wherry.coordinator.cli.errors import failure_of

    parser = argparse.ArgumentParser(prog="connect-plugin-path", description="Look at the plugins on a plugin path.")
    commands = parser.add_subparsers(dest="command", required=True, metavar="{list,sync-manifests}")
    for name in ("list", "sync-manifests"):
        command = commands.add_parser(name)
        places = command.add_argument_group("plugin providers")
        places.add_argument("--plugin-location", action="append", default=[], help="a single plugin folder")
        places.add_argument("--plugin-path", action="append", default=[], help="folders with plugins, with commas")
        places.add_argument("--worker-config", action="append", default=[], help="a worker file with plugin.path")
        if name == "sync-manifests":
            command.add_argument("--dry-run", action="store_true")
            command.add_argument("--keep-not-found", action="store_true")
    try:
        given = parser.parse_args(list(arguments))
        if given.command == "sync-manifests":
            print(_SYNC)
            return int(ExitCode.OK)
        print(listing(_places(given)))
    except SystemExit as leaving:
        return int(leaving.code or 0) if isinstance(leaving.code, int | None) else int(ExitCode.USAGE)
    except Exception as error:
        failure = failure_of(error)
        if failure is None:
            raise
        output.show_failure(failure)
        return int(failure.code)
    return int(ExitCode.OK)


def _places(given: Any) -> list[Path]:
    from wherry.coordinator.config import properties

    places = [Path(location) for location in given.plugin_location]
    paths = list(given.plugin_path)
    for file in given.worker_config:
        paths.append(properties.load(Path(file)).get("plugin.path", ""))
    places += [Path(part.strip()).expanduser() for path in paths for part in path.split(",") if part.strip()]
    if not (given.plugin_location or given.plugin_path or given.worker_config):
        raise CliError(
            "Must specify at least one --plugin-location, --plugin-path, or --worker-config", code=ExitCode.USAGE
        )
    missing = [str(place) for place in places if not place.exists()]
    if missing:
        raise CliError(f"There is no {missing[0]}.", "Correct the plugin path.", code=ExitCode.CONFIG)
    return places


def listing(places: Sequence[Path]) -> str:
    """The table of all plugins below some folders, as connect-plugin-path prints it."""
    from wherry.coordinator.cli.plugins import unasked
    from wherry.coordinator.plugins import PluginRegistry, descriptions_folder

    registry = PluginRegistry(list(places), unasked, cache=descriptions_folder())
    plugins = registry.plugins()
    lines = ["\t".join(_COLUMNS)]
    for plugin in plugins:
        aliases = [*plugin.manifest_class.aliases, _NONE, _NONE]
        lines.append(
            "\t".join(
                (
                    plugin.class_name, aliases[0], aliases[1], plugin.manifest.version, plugin.role.name.lower(),
                    "true", "true", str(plugin.manifest.directory),
                )
            )
        )  # fmt: skip
    broken = registry.broken()
    lines += [
        f"{each.directory.name}\t{_NONE}\t{_NONE}\t{_NONE}\t{_NONE}\tfalse\ttrue\t{each.directory}" for each in broken
    ]
    count = len(plugins) + len(broken)
    return "\n".join(
        [
            *lines, "", f"Total plugins:      \t{count}", f"Loadable plugins:   \t{len(plugins)}",
            f"Compatible plugins: \t{len(plugins)}",
        ]
    )  # fmt: skip
