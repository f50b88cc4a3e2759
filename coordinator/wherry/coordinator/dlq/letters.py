"""What becomes of a dead letter: sent back to where its record came from, or left where it is, with the reason.

A letter is the record as it was read, with headers appended that tell what happened (`errors.deadletterqueue.
context.headers.enable`). A record that failed more than once has several sets of them; the last one counts, and only
that one is taken away when the record is sent again.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

PREFIX: Final = "__connect.errors."
ENCODING: Final = "__wherry.errors.encoding"

Header = tuple[str, bytes | None]


@dataclass(frozen=True, slots=True)
class Letter:
    """One record of a dead letter topic."""

    partition: int
    offset: int
    key: bytes | None
    value: bytes | None
    headers: tuple[Header, ...] = ()
    timestamp_ms: int = 0


@dataclass(frozen=True, slots=True)
class Rules:
    """Which letters are sent, and where.

    Attributes:
        connector: Only those of this connector; empty for all.
        stage: Only those that failed in this stage, such as VALUE_CONVERTER; empty for all.
        to: Topic they are sent to; empty for the topic each came from.
    """

    connector: str = ""
    stage: str = ""
    to: str = ""


@dataclass(frozen=True, slots=True)
class Resend:
    """A record to be sent; `partition` None lets the producer choose by the key."""

    topic: str
    partition: int | None
    key: bytes | None
    value: bytes | None
    headers: tuple[Header, ...]
    timestamp_ms: int


@dataclass(frozen=True, slots=True)
class Left:
    """A letter that is not sent. `wanted` tells whether it passed the filters: then something keeps it from going."""

    reason: str
    wanted: bool


def decide(letter: Letter, rules: Rules) -> Resend | Left:
    """What becomes of a letter."""
    told, own = context(letter.headers)
    for name, wanted in (("connector.name", rules.connector), ("stage", rules.stage)):
        if wanted and told.get(name) != wanted:
            return Left(f"its {name} is {told.get(name) or 'not told'}", wanted=False)
    if any(name == ENCODING for name, _ in letter.headers) and not rules.to:
        return Left("it holds JSON, because the record of this source had no bytes yet; --to sends it so", wanted=True)
    topic = rules.to or told.get("topic", "")
    if not topic:
        return Left("it does not tell the topic it came from; --to names one", wanted=True)
    partition = None if rules.to or not told.get("partition", "").isdecimal() else int(told["partition"])
    return Resend(topic, partition, letter.key, letter.value, own, letter.timestamp_ms)


def context(headers: Sequence[Header]) -> tuple[dict[str, str], tuple[Header, ...]]:
    """The last set of context headers by their short names, and the headers before it, which are the record's own."""
    told: dict[str, str] = {}
    end = len(headers)
    while end:
        name, value = headers[end - 1]
        short = name.removeprefix(PREFIX)
        if name == ENCODING and not told:
            end -= 1
            continue
        if short == name or short in told:
            break
        told[short] = "" if value is None else value.decode(errors="replace")
        end -= 1
    return told, tuple(headers[:end])
