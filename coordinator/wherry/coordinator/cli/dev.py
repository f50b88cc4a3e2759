"""`wherry dev …`: real servers in the foreground, for development and comparison."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any, Protocol

import typer

from wherry.coordinator.cli.errors import CliError, ExitCode
from wherry.coordinator.cli.output import OutputFormat, OutputOption, progress, show, table
from wherry.coordinator.cli.signals import StopRequested

KAFKA_PORT = 9092
CONNECT_PORT = 8083
SPARK_PORT = 7077
SPARK_UI_PORT = 8080


class _Server(Protocol):
    def last_words(self) -> str: ...

    def wait(self, timeout_s: float | None = None) -> bool: ...

    def close(self) -> None: ...


def register(app: typer.Typer) -> None:
    """Add the group of commands to the application."""
    group = typer.Typer(help="Run real servers on this machine.", no_args_is_help=True)
    group.command("kafka")(kafka)
    group.command("connect")(connect)
    group.command("spark")(spark)
    group.command("jars")(jars)
    app.add_typer(group, name="dev")


def kafka(
    port: Annotated[int, typer.Option(min=1, max=65535, help="Port for clients.")] = KAFKA_PORT,
    data: Annotated[
        Path | None, typer.Option(help="Folder to keep the data in; without it they go at the end.")
    ] = None,
    output: OutputOption = OutputFormat.TEXT,
) -> None:
    """Run a Kafka broker.

    It runs until Ctrl-C or SIGTERM; a line tells when it is ready.
    """
    from wherry.coordinator.dev.jars import KAFKA_VERSION
    from wherry.coordinator.dev.kafka import EmbeddedKafka

    with progress(f"Starting Kafka {KAFKA_VERSION}") as report:
        broker = EmbeddedKafka(port=port, data_dir=data, progress=report)
        with _closed_on_failure(broker):
            broker.start()
    ready = {
        "bootstrap": broker.bootstrap,
        "pid": broker.pid,
        "data": str(broker.data_dir),
        "log": str(broker.log_path),
    }
    kept = "in" if data else "for now in"
    _run_in_foreground(
        broker, "Kafka", ready, f"Kafka {KAFKA_VERSION} is ready at {broker.bootstrap} (data {kept} {broker.data_dir})."
    )


def connect(
    connectors: Annotated[
        list[Path] | None, typer.Argument(help="Connector files, .properties or .json: runs a standalone worker.")
    ] = None,
    bootstrap: Annotated[
        str | None, typer.Option(help=f"Kafka's address.  [default: the worker file's, or 127.0.0.1:{KAFKA_PORT}]")
    ] = None,
    port: Annotated[
        int | None,
        typer.Option(min=1, max=65535, help=f"Port of REST.  [default: the worker file's, or {CONNECT_PORT}]"),
    ] = None,
    worker: Annotated[Path | None, typer.Option(help="A Kafka Connect worker.properties file.")] = None,
    plugin_path: Annotated[list[Path] | None, typer.Option(help="Folder of plugins; may be given again.")] = None,
    output: OutputOption = OutputFormat.TEXT,
) -> None:
    """Run the real Kafka Connect worker.

    It runs until Ctrl-C or SIGTERM, for comparison with Wherry.
    """
    from wherry.coordinator.dev.connect import RealConnect
    from wherry.coordinator.dev.jars import KAFKA_VERSION

    options = _worker_options(worker)
    if missing := [str(path) for path in connectors or [] if not path.is_file()]:
        raise CliError(f"There is no connector file {missing[0]}.", "Name an existing .properties or .json file.")
    if bootstrap is not None:
        options["bootstrap.servers"] = bootstrap
    address = options.setdefault("bootstrap.servers", f"127.0.0.1:{KAFKA_PORT}")
    _require_reachable(address)
    with progress(f"Starting Kafka Connect {KAFKA_VERSION}") as report:
        server = RealConnect(
            bootstrap=address,
            mode="standalone" if connectors or _is_standalone(options) else "distributed",
            rest_port=port or _rest_port(options),
            plugin_path=plugin_path or (),
            connectors=connectors or (),
            options=options,
            progress=report,
        )
        with _closed_on_failure(server):
            server.start()
    ready = {"rest": server.rest_url, "pid": server.pid, "log": str(server.log_path)}
    _run_in_foreground(
        server, "Kafka Connect", ready, f"Kafka Connect {KAFKA_VERSION} is ready at {server.rest_url} ({server.mode})."
    )


def spark(
    port: Annotated[int, typer.Option(min=1, max=65535, help="Port of the Master.")] = SPARK_PORT,
    ui_port: Annotated[int, typer.Option(min=1, max=65535, help="Port of the Master's pages.")] = SPARK_UI_PORT,
    workers: Annotated[int, typer.Option(min=1, max=32, help="How many Workers.")] = 2,
    slots: Annotated[int, typer.Option(min=1, max=1024, help="Leases that each Worker runs side by side.")] = 32,
    memory: Annotated[str, typer.Option(help="What each Worker offers to executors, as 2g.")] = "2g",
    data: Annotated[
        Path | None, typer.Option(help="Folder to keep logs and state in; without it they go at the end.")
    ] = None,
    output: OutputOption = OutputFormat.TEXT,
) -> None:
    """Run a Spark standalone cluster.

    It runs until Ctrl-C or SIGTERM, a Master and Workers from the installed PySpark.
    """
    from wherry.coordinator.dev.spark import SparkCluster

    with progress("Starting Spark"):
        cluster = SparkCluster(workers=workers, slots=slots, memory=memory, port=port, ui_port=ui_port, data_dir=data)
        with _closed_on_failure(cluster):
            cluster.start()
    ready = {
        "master": cluster.url,
        "pid": cluster.master_pid,
        "workers": [cluster.worker_pid(number) for number in range(workers)],
        "data": str(cluster.data_dir),
        "log": str(cluster.log_path),
    }
    text = f"Spark is ready: wherry.spark.master={cluster.url} ({workers} Workers of {slots} slots)."
    _run_in_foreground(cluster, "Spark", ready, text)


def jars(
    coordinates: Annotated[
        list[str] | None, typer.Argument(help="More artifacts, group:artifact:version[:classifier][@type].")
    ] = None,
    output: OutputOption = OutputFormat.TEXT,
) -> None:
    """Fetch the jars of these servers.

    Those that are in the cache already are checked.
    """
    from wherry.coordinator.dev.jars import STANDARD_SETS, ensure_jars, jar_folder, jar_set

    sets = [*STANDARD_SETS, *(jar_set(coordinate) for coordinate in coordinates or [])]
    results: list[dict[str, Any]] = []
    for wanted in sets:
        with progress(f"Fetching {wanted.name} {wanted.version}") as report:
            files = ensure_jars(wanted, report)
        size_bytes = sum(file.stat().st_size for file in files)
        results.append(
            {
                "name": wanted.name,
                "version": wanted.version,
                "files": len(files),
                "bytes": size_bytes,
                "folder": str(jar_folder(wanted)),
            }
        )
    rows = [
        (r["name"], r["version"], f"{r['files']} files", f"{r['bytes'] / 1e6:.0f} MB", r["folder"]) for r in results
    ]
    show(results, table(rows))


def _run_in_foreground(server: _Server, name: str, ready: dict[str, Any], text: str) -> None:
    """Tell that the server is ready, wait to be stopped, and stop it.

    Raises:
        CliError: The server ended by itself.
    """
    try:
        show(ready, f"{text}\nCtrl-C stops it.")
        with contextlib.suppress(StopRequested):
            server.wait()
            raise CliError(f"{name} ended by itself; {server.last_words()}", code=ExitCode.FAILED)
    finally:
        server.close()


@contextlib.contextmanager
def _closed_on_failure(server: _Server) -> Iterator[None]:
    try:
        yield
    except BaseException:
        server.close()
        raise


def _worker_options(path: Path | None) -> dict[str, str]:
    if path is None:
        return {}
    from wherry.coordinator.config.properties import load

    return load(path)


def _is_standalone(options: dict[str, str]) -> bool:
    return "offset.storage.file.filename" in options and "group.id" not in options


def _rest_port(options: dict[str, str]) -> int:
    match = re.search(r":(\d+)\s*(?:,|$)", options.get("listeners", ""))
    return int(match.group(1)) if match else CONNECT_PORT


def _require_reachable(bootstrap: str) -> None:
    """Tell in a sentence what the worker would tell in forty lines after a minute."""
    from wherry.coordinator.dev.ports import any_accepts_connections

    if not any_accepts_connections(bootstrap):
        raise CliError(
            f"No Kafka broker listens at {bootstrap}.",
            "Start one (wherry dev kafka), or name another with --bootstrap.",
            code=ExitCode.UNREACHABLE,
        )
