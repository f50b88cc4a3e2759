"""`wherry demo`: real rows through a real broker into a table, proven equal at the end."""

from __future__ import annotations

import contextlib
import shutil
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from wherry.coordinator.cli.errors import CliError, ExitCode
from wherry.coordinator.cli.output import OutputFormat, OutputOption, progress, show, table, wants_json
from wherry.coordinator.cli.signals import StopRequested

if TYPE_CHECKING:
    from wherry.coordinator.demo.proof import Proof
    from wherry.coordinator.demo.stage import Connector, Stage
    from wherry.coordinator.demo.watch import Probe, View

SAMPLE_INTERVAL_S = 0.5
STALL_TIMEOUT_S = 120.0


def register(app: typer.Typer) -> None:
    """Add the command to the application."""
    app.command("demo")(demo)


def demo(
    file: Annotated[Path | None, typer.Option(help="A CSV file of yours, with a header; it is copied.")] = None,
    rows: Annotated[int, typer.Option(min=1, help="Rows to make up when no file is given.")] = 300_000,
    postgres: Annotated[
        str | None, typer.Option(help="Also write into this PostgreSQL, postgresql://user@host:port/database.")
    ] = None,
    keep: Annotated[bool, typer.Option("--keep", help="Leave everything running at the end.")] = False,
    folder: Annotated[Path | None, typer.Option(help="Where to put everything.  [default: a temporary folder]")] = None,
    port: Annotated[int | None, typer.Option(min=1, max=65535, help="Port of REST.  [default: a free one]")] = None,
    output: OutputOption = OutputFormat.TEXT,
) -> None:
    """Move real rows from a CSV file through Kafka into a table, and prove that they are all there.

    Everything is real: a Kafka broker, Spark, sidecar processes. It all ends with the command.
    """
    if file is not None and not file.is_file():
        raise CliError(f"There is no file {file}.", "Name an existing CSV file with --file.")
    place = folder or Path(tempfile.mkdtemp(prefix="wherry-demo-"))
    place.mkdir(parents=True, exist_ok=True)
    if any(place.iterdir()):
        raise CliError(f"The folder {place} isn't empty.", "Name a new one with --folder.")
    sent = _csv_file(file, rows, place)
    with _running(place, port) as stage:
        _show_run(stage, sent, None if file else rows, postgres, keep=keep)


def _show_run(stage: Stage, sent: Path, rows: int | None, postgres: str | None, *, keep: bool) -> None:
    from wherry.coordinator.demo import proof, watch
    from wherry.coordinator.demo.stage import PARTITIONS, TOPIC, duckdb_sink, postgres_sink, source

    sinks = [duckdb_sink(stage)]
    if postgres:
        sinks.append(postgres_sink(f"jdbc:{postgres.replace('postgres://', 'postgresql://')}"))
    probe = watch.Probe(stage.bootstrap, [sink["name"] for sink in sinks])
    probe.create_topic(PARTITIONS)
    spool = stage.folder / "spool"
    spool.mkdir()
    began_s = time.monotonic()
    for connector in (source(stage, spool), *sinks):
        _create(stage, connector)
    sent.rename(spool / "orders.csv")
    view = watch.View(rows)
    _watch(stage, probe, view)
    took_s = time.monotonic() - began_s
    stage.request("PUT", f"/connectors/{sinks[0]['name']}/stop")
    found = _prove(lambda: proof.compare(stage.database, TOPIC, stage.folder / "finished" / "orders.csv"))
    _report(stage, found, took_s)
    if not found.equal:
        raise CliError("What landed is not what was sent.", f"Look into {stage.log}.", code=ExitCode.FAILED)
    if keep:
        stage.request("PUT", f"/connectors/{sinks[0]['name']}/resume")
        _leave_running(stage)


def _csv_file(file: Path | None, rows: int, place: Path) -> Path:
    target = place / "orders.csv"
    if file is not None:
        shutil.copyfile(file, target)
        return target
    from wherry.coordinator.demo.data import write_orders

    with progress("Making up the data") as report:
        report(f"{rows:,} orders")
        write_orders(target, rows)
    return target


@contextlib.contextmanager
def _running(place: Path, port: int | None) -> Iterator[Stage]:
    from wherry.coordinator.demo.stage import wherry
    from wherry.coordinator.dev.kafka import EmbeddedKafka

    with contextlib.ExitStack() as running:
        with progress("Starting Kafka") as report:
            broker = running.enter_context(EmbeddedKafka(data_dir=place / "kafka", progress=report))
        with progress("Starting Wherry") as report:
            report("the REST API")
            stage = running.enter_context(wherry(place, broker.bootstrap, port))
        if not wants_json():
            print(f"Kafka is at {broker.bootstrap}, Wherry's REST API at {stage.rest_url}, everything in {place}.")
        yield stage


def _create(stage: Stage, connector: Connector) -> None:
    with progress(f"Creating {connector['name']}") as report:
        report(connector["config"]["connector.class"])
        stage.request("POST", "/connectors", connector)


def _watch(stage: Stage, probe: Probe, view: View) -> None:
    """Shows rates until everything has landed.

    Raises:
        CliError: A connector failed, or nothing moves any more.
    """
    moved_at, before = time.monotonic(), None
    with _live(view) as draw:
        while True:
            sample = probe.sample()
            view.add(sample)
            draw()
            if _is_done(stage, view):
                return
            counts = (sample.sent, *sample.landed.values())
            if counts != before:
                moved_at, before = time.monotonic(), counts
            _require_healthy(stage, time.monotonic() - moved_at)
            time.sleep(SAMPLE_INTERVAL_S)


def _is_done(stage: Stage, view: View) -> bool:
    """All that was sent has landed, and the file is finished."""
    newest = view.samples[-1]
    finished = (stage.folder / "finished" / "orders.csv").exists()
    return finished and newest.sent > 0 and all(landed == newest.sent for landed in newest.landed.values())


def _require_healthy(stage: Stage, still_s: float) -> None:
    for name, info in stage.request("GET", "/connectors?expand=status").items():
        status = info["status"]
        for part in (status["connector"], *status["tasks"]):
            if part["state"] == "FAILED":
                raise CliError(f"{name} failed: {part.get('trace', '').splitlines()[0]}", code=ExitCode.FAILED)
    if still_s > STALL_TIMEOUT_S:
        raise CliError(f"Nothing has moved for {STALL_TIMEOUT_S:.0f} s.", stage.last_words(), code=ExitCode.FAILED)


@contextlib.contextmanager
def _live(view: View) -> Iterator[Callable[[], None]]:
    import sys

    if wants_json():
        yield lambda: None
    elif not sys.stdout.isatty():
        yield _line_drawer(view)
    else:
        from rich.live import Live

        with Live(auto_refresh=False) as live:
            yield lambda: live.update(_rich_table(view), refresh=True)


def _line_drawer(view: View) -> Callable[[], None]:
    last: list[str] = [""]

    def draw() -> None:
        line = "  |  ".join(f"{name}: {count} ({rate})" for name, count, rate, _ in view.rows())
        if line != last[0]:
            print(line, flush=True)
        last[0] = line

    return draw


def _rich_table(view: View) -> Any:
    from rich.table import Table

    drawn = Table("flow", box=None, pad_edge=False)
    for heading in ("rows", "rate", "on the way"):
        drawn.add_column(heading, justify="right")
    for row in view.rows():
        drawn.add_row(*row)
    return drawn


def _prove(compare: Callable[[], Proof]) -> Proof:
    """Compares as soon as the sink has let go of its file."""
    deadline = time.monotonic() + 30
    while True:
        try:
            return compare()
        except Exception as error:
            if "lock" not in str(error).lower() or time.monotonic() > deadline:
                raise
            time.sleep(SAMPLE_INTERVAL_S)


def _report(stage: Stage, found: Proof, took_s: float) -> None:
    from wherry.coordinator.demo.proof import as_rows
    from wherry.coordinator.demo.stage import TOPIC

    verdict = "equal: every row is there, once" if found.equal else "NOT equal"
    text = (
        f"\nThe first rows of table {TOPIC} in {stage.database}:\n\n{table(as_rows(found))}\n\n"
        f"{found.sent:,} rows in the file, {found.landed:,} in the table; {found.missing:,} missing, "
        f"{found.extra:,} too many: {verdict}.\n"
        f"From creating the connectors to the last row: {took_s:.1f} s."
    )
    result = {
        "sent": found.sent,
        "landed": found.landed,
        "missing": found.missing,
        "extra": found.extra,
        "equal": found.equal,
        "seconds": round(took_s, 3),
        "database": str(stage.database),
    }
    show(result, text)


def _leave_running(stage: Stage) -> None:
    if not wants_json():
        print(
            f"\nStill running. Try:\n"
            f"  wherry connectors list --url {stage.rest_url}\n"
            f"  curl {stage.rest_url}/connectors/demo-files/status\n"
            f"  cp more.csv {stage.folder / 'spool'}/\n"
            "Ctrl-C stops everything.",
            flush=True,
        )
    with contextlib.suppress(StopRequested):
        while True:
            time.sleep(3600)
