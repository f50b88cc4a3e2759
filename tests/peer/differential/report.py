"""Compares two outcomes, and tells a difference so that it can be understood without running anything."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from tests.peer.differential.cases import Case
from tests.peer.differential.play import Outcome, Written

FAILED = "FAILED"
_TEXT_MAX = 300
_BEFORE = 60


@dataclass(frozen=True, slots=True)
class Difference:
    """One way in which outcomes differ: the first place in one of their parts.

    Attributes:
        both: The whole part, of Kafka Connect and of Wherry; empty for a status or a state.
    """

    case: Case
    part: str
    place: int
    connect: Any
    wherry: Any
    both: tuple[Sequence[Any], Sequence[Any]] = ((), ())

    def __str__(self) -> str:
        config = {key: value for key, value in self.case.config.items() if value[:1] != "{"}
        sent = self.case.records or self.case.lines
        config = {key: value.replace("org.apache.kafka.connect.", "") for key, value in config.items()}
        near = "\n".join(f"    {each!r}"[:_TEXT_MAX] for each in sent[max(0, self.place - 1) : self.place + 2])
        return (
            f"case {self.case.number}: {self.part}[{self.place}]"
            + f"\n  Kafka Connect {_unlike(self.connect, self.wherry)}"[: 2 * _TEXT_MAX]
            + f"\n  Wherry        {_unlike(self.wherry, self.connect)}"[: 2 * _TEXT_MAX]
            + f"\n  {config}\n  about there went in\n{near}"
        )


def differences(case: Case, connect: Outcome, wherry: Outcome) -> Iterator[Difference]:
    """All differences; where one has more than the other, those up to the first.

    When both tasks failed, one may have written more before that: Kafka Connect converts a whole poll before it writes
    the first record of it, so how much stands there depends on how the records happened to be polled.
    """
    both_failed = connect.state == wherry.state == FAILED
    if both_failed and case.is_wide:
        return  # which partition came first is a matter of chance
    for part in ("status", "state"):
        pair = getattr(connect, part), getattr(wherry, part)
        if pair[0] != pair[1]:
            yield Difference(case, part, 0, (pair[0], connect.why[:_TEXT_MAX]), (pair[1], wherry.why[:_TEXT_MAX]))
            return
    cause = cause_of(connect.why)
    if both_failed and cause not in wherry.why:
        yield Difference(case, "why", 0, cause, wherry.why[:_TEXT_MAX])
    for part in ("lines", "written", "dead"):
        one, other = getattr(connect, part), getattr(wherry, part)
        for place, pair in enumerate(zip(one, other, strict=False)):
            if pair[0] != pair[1]:
                yield Difference(case, part, place, *pair, (one, other))
                if len(one) != len(other):
                    return  # what follows is shifted
        if len(one) != len(other) and not both_failed:
            place = min(len(one), len(other))
            more = (each[place] if place < len(each) else None for each in (one, other))
            yield Difference(case, part, place, *more, (one, other))


def cause_of(trace: str) -> str:
    """What a trace of Java says of the record that failed: the message of the first cause, or of the error itself."""
    lines = [line for line in trace.splitlines() if not line.startswith(("\tat ", "\t..."))]
    said = next((line for line in lines if line.startswith("Caused by: ")), lines[0] if lines else "")
    return said.removeprefix("Caused by: ").partition(": ")[2].rstrip(": .")


def _unlike(one: Any, other: Any) -> str:
    """Text of a record, less what is the same in the other."""
    if not isinstance(one, Written) or not isinstance(other, Written):
        return _shorter(one, other)
    parts = [
        f"{name} {mine!r}"
        for name, mine, theirs in zip(one._fields, one, other, strict=True)
        if mine != theirs and name != "headers"
    ]
    headers = [header for header in one.headers if header not in other.headers]
    return ", ".join([*parts, f"headers {headers or one.headers!r}"] if one.headers != other.headers else parts)


def _shorter(one: Any, other: Any) -> str:
    """The text from shortly before where it differs."""
    mine, theirs = repr(one), repr(other)
    same = next((at for at, pair in enumerate(zip(mine, theirs, strict=False)) if pair[0] != pair[1]), 0)
    return mine if same < 2 * _BEFORE else f"\u2026{mine[same - _BEFORE :]}"
