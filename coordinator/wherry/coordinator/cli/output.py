"""What commands print: results on standard output, as text or JSON; progress and errors on standard error."""

from __future__ import annotations

import contextlib
import enum
import json
import os
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Annotated, Any

import typer

from wherry.coordinator.cli.errors import Failure

PROGRESS_LINE_INTERVAL_S = 5.0


class OutputFormat(enum.StrEnum):
    """How results are printed."""

    TEXT = "text"
    JSON = "json"


class _State:
    """The format that the running command was asked for; errors are told in it too."""

    format = OutputFormat.TEXT


def _remember(chosen: OutputFormat) -> OutputFormat:
    _State.format = chosen
    return chosen


OutputOption = Annotated[
    OutputFormat, typer.Option("--output", "-o", help="How to print the result.", callback=_remember)
]


def wants_json() -> bool:
    """Tell whether the running command was asked for JSON."""
    return _State.format is OutputFormat.JSON


def reset() -> None:
    """Forget the chosen format, for the next command of the same process."""
    _State.format = OutputFormat.TEXT


def show(value: Mapping[str, Any] | Sequence[Any], text: str) -> None:
    """Print a result: the value as one JSON line, or the text."""
    print(json.dumps(value, ensure_ascii=False) if wants_json() else text, flush=True)


def show_failure(failure: Failure) -> None:
    """Print an error on standard error: a red sentence with its remedy below, or a JSON object."""
    if wants_json():
        told = {"error": failure.code.name.lower(), "message": failure.message, "remedy": failure.remedy or None}
        print(json.dumps(told, ensure_ascii=False), file=sys.stderr, flush=True)
        return
    print(_red(f"Error: {failure.message}"), file=sys.stderr)
    if failure.remedy:
        print(failure.remedy, file=sys.stderr)
    sys.stderr.flush()


def table(rows: Sequence[tuple[str, ...]]) -> str:
    """Return rows as text with aligned columns.

    >>> print(table([("a", "1"), ("long", "2")]))
    a     1
    long  2
    """
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = ("  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)) for row in rows)
    return "\n".join(line.rstrip() for line in lines)


@contextlib.contextmanager
def progress(title: str) -> Iterator[Callable[[str], None]]:
    """Show a waiting person what is going on, through the function this yields.

    A spinner that appears with the first message on a terminal; a line now and then elsewhere; nothing for JSON.
    """
    if wants_json():
        yield lambda _: None
    elif sys.stderr.isatty():
        yield from _spinner(title)
    else:
        yield _line_printer(title)


def _spinner(title: str) -> Iterator[Callable[[str], None]]:
    with contextlib.ExitStack() as shown:
        status: list[Any] = []

        def update(message: str) -> None:
            if not status:
                from rich.console import Console

                status.append(shown.enter_context(Console(stderr=True).status(title)))
            status[0].update(f"{title}: {message}")

        yield update


def _line_printer(title: str) -> Callable[[str], None]:
    next_at = 0.0

    def update(message: str) -> None:
        nonlocal next_at
        if time.monotonic() >= next_at:
            print(f"{title}: {message}", file=sys.stderr, flush=True)
            next_at = time.monotonic() + PROGRESS_LINE_INTERVAL_S

    return update


def _red(text: str) -> str:
    if sys.stderr.isatty() and "NO_COLOR" not in os.environ:
        return f"\x1b[31m{text}\x1b[0m"
    return text
