"""`wherry dlq …`: dead letter topics."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from wherry.coordinator.cli.errors import CliError, ExitCode
from wherry.coordinator.cli.output import OutputFormat, OutputOption, progress, show, table, wants_json

if TYPE_CHECKING:
    from wherry.coordinator.dlq import Left, Letter, Replayed, Resend
    from wherry.coordinator.dlq.replay import Settings

SHOWN_MAX = 50
_MESSAGE_CHARS_MAX = 80


def register(app: typer.Typer) -> None:
    """Add the group of commands to the application."""
    group = typer.Typer(help="Look after dead letter topics.", no_args_is_help=True)
    group.callback()(_root)  # with a callback, even a single command keeps its name
    group.command("replay")(replay)
    app.add_typer(group, name="dlq")


def _root() -> None:
    return


def replay(
    topic: Annotated[str, typer.Argument(help="The dead letter topic.")],
    config: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Properties with bootstrap.servers and security, such as worker.properties."),
    ] = None,
    bootstrap: Annotated[str, typer.Option(metavar="HOST:PORT", help="Kafka's address, if no file tells it.")] = "",
    connector: Annotated[str, typer.Option(metavar="NAME", help="Only letters of this connector.")] = "",
    stage: Annotated[str, typer.Option(help="Only letters that failed in this stage, such as VALUE_CONVERTER.")] = "",
    to: Annotated[
        str, typer.Option(metavar="TOPIC", help="Send to this topic, by key, not to where each came from.")
    ] = "",
    group: Annotated[
        str, typer.Option(help="Consumer group that keeps the progress; by default one for the topic and the filters.")
    ] = "",
    limit: Annotated[int | None, typer.Option(min=1, help="Read at most so many letters.")] = None,
    skip: Annotated[
        bool, typer.Option("--skip", help="Pass over letters that cannot be sent; else the replay ends before them.")
    ] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Send nothing; show what would be sent.")] = False,
    output: OutputOption = OutputFormat.TEXT,
) -> None:
    """Send the records of a dead letter topic back to the topics and partitions they came from.

    Letters need their context headers (errors.deadletterqueue.context.headers.enable), or --to. Run again, it goes on
    where it was: no record is sent twice.
    """
    from wherry.coordinator.dlq import Replay, Rules

    consumer, producer = _clients(config, bootstrap)
    group = group or "-".join(part for part in ("wherry-dlq-replay", topic, connector, stage) if part)
    run = Replay(topic, Rules(connector, stage.upper(), to), group, consumer, producer)
    shown: list[tuple[str, ...]] = []

    def told(letter: Letter, what: Resend | Left) -> None:
        if dry_run and len(shown) < SHOWN_MAX:
            shown.append(_row(letter, what))

    with progress(f"Replaying {topic}") as say:
        done = run.run(
            dry_run=dry_run, skip=skip, limit=limit, told=told, progress=lambda now: say(f"{now.sent} records sent")
        )
    value = {
        "topic": topic, "group": group, "dry_run": dry_run, "read": done.read, "sent": done.sent,
        "filtered": done.filtered, "left": done.left, "topics": done.topics, "reasons": done.reasons,
    }  # fmt: skip
    rows = table([("LETTER", "TO", "STAGE", "WHAT HAPPENED"), *shown]) + "\n" if shown and not wants_json() else ""
    show(value, rows + _summary(done, dry_run=dry_run))
    if done.left and not skip and not dry_run:
        raise typer.Exit(int(ExitCode.FAILED))


def _clients(config: Path | None, bootstrap: str) -> tuple[Settings, Settings]:
    """Settings for reading and for sending."""
    from wherry.contract import kafka_clients
    from wherry.coordinator.config import properties

    worker = properties.load(config) if config is not None else {}
    if bootstrap:
        worker["bootstrap.servers"] = bootstrap
    if not worker.get("bootstrap.servers"):
        raise CliError("No broker is named: give --bootstrap HOST:PORT, or --config FILE.", code=ExitCode.USAGE)
    # Tools take the connection settings as they stand in the file, without a prefix.
    shared = kafka_clients.resolve("admin", worker=worker).values
    consumer, producer = (kafka_clients.resolve(kind, worker=worker).values for kind in ("consumer", "producer"))
    return {**shared, **consumer}, {**shared, **producer}


def _row(letter: Letter, what: Resend | Left) -> tuple[str, ...]:
    from wherry.coordinator.dlq import Resend
    from wherry.coordinator.dlq.letters import context

    told, _ = context(letter.headers)
    if isinstance(what, Resend):
        goal = what.topic if what.partition is None else f"{what.topic}/{what.partition}"
    else:
        goal = f"- ({what.reason})"
    message = " ".join(told.get("exception.message", "").split())
    return f"{letter.partition}/{letter.offset}", goal, told.get("stage", ""), message[:_MESSAGE_CHARS_MAX]


def _summary(done: Replayed, *, dry_run: bool) -> str:
    verb = "would be sent" if dry_run else "sent"
    where = ", ".join(f"{count} to {topic}" for topic, count in sorted(done.topics.items()))
    lines = [f"{done.read} letters read, {done.sent} records {verb}{f' ({where})' if where else ''}."]
    if done.filtered:
        lines.append(f"{done.filtered} are not of the connector or stage asked for.")
    lines += [f"{count} left: {reason}." for reason, count in done.reasons.items()]
    return "\n".join(lines)
