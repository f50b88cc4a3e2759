"""The differences that are wanted on walks, beside those of the fixed steps, each with its reason."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from tests.peer.accepted import ACCEPTED as OF_STEPS
from tests.peer.compare import Difference
from tests.support.rest import Answer

SHOWN = "afterwards "


@dataclass(frozen=True, slots=True)
class Accepted:
    """A difference that is wanted.

    Attributes:
        step: Pattern of the step's name.
        field: Pattern of the field, after `afterwards ` where it is in what is shown after the step.
        connect: Pattern of a part of Kafka Connect's value.
        wherry: Pattern of a part of ours.
        before: Pattern of a part of some step's name up to this one, this one included.
        reason: Why.
    """

    step: str
    field: str
    reason: str
    connect: str = ""
    wherry: str = ""
    before: str = ""

    def covers(self, step: str, field: str, difference: Difference, lived: Sequence[str]) -> bool:
        """Tell whether it is this difference."""
        return bool(
            re.fullmatch(self.step, step)
            and re.fullmatch(self.field, field)
            and re.search(self.connect, str(difference.connect))
            and re.search(self.wherry, str(difference.wherry))
            and any(re.search(self.before, each) for each in (step, *lived))
        )


ACCEPTED: tuple[Accepted, ...] = (
    Accepted(
        ".*", "Content-Type|body", "A web server's own page; we answer as to any wrong request.", "text/html|<html>"
    ),
    Accepted(".*override class.*", ".*", "Java's classes mean nothing to our clients; they are left alone."),
    Accepted(".*(offsets topic|dead letters) null.*", ".*", "A null is told as one; Kafka Connect: 500, an NPE."),
    Accepted(
        "keys of .*version=.*", "status|body", "The version of a plugin of ours is its own.", "^200$|'name': 'file'"
    ),
    Accepted(
        "alter sink: .*forgotten.*",
        "status|body.*",
        "Nothing to forget is forgotten; while there is no such group, Kafka Connect's own request fails.",
        "500|Failed to alter consumer group offsets|missing",
        "200|missing|altered successfully",
    ),
    Accepted(
        ".*",
        r"(afterwards )?body.*\.version",
        "The version of what failed is told, also if it failed before it was loaded.",
        "^None$",
    ),
    Accepted(
        ".*regex broken.*dead letters.*|.*dead letters.*regex broken.*",
        "status|body.*",
        "A pattern that is none is told as an error of its key; Kafka Connect compiles it twice, and is 500.",
        "500|Unclosed|missing|None",
    ),
    Accepted(
        ".*converter no converter.*", r"body\..*", "No such class is known here, so that it is not found.", "String"
    ),
    Accepted(
        ".*",
        rf"{SHOWN}.*tasks\[[12]\]\.(state|trace|version)",
        "A task of a sink without partitions has nothing to do, and is not started to fail.",
        "FAILED|True|None",
        "RUNNING|missing|4",
        "sink",
    ),
    Accepted(
        ".*",
        rf"{SHOWN}.*tasks\[\d\]\.(state|trace|version)",
        "A task of a sink without partitions has nothing to do, and is not started to fail.",
        "FAILED|True|None",
        "RUNNING|missing|4",
        "topic that is missing",
    ),
    Accepted(
        ".*",
        rf"{SHOWN}.*\.offsets.*",
        "A record that was skipped moves the position of a source.",
        before="source: .*tolera",
    ),
    Accepted(
        "validate.*",
        r"body.*\.value",
        "A resolved secret is shown by nobody here.",
        wherry=r"\$\{file:",
    ),
    Accepted(
        r"restart task \d+ of .*|POST /tasks/0/restart.*",
        "status|body.*",
        "Kafka Connect says for ever that a rebalance goes on; there is no such task, which is what we say.",
        "^409$|no known leader URL|stale configuration",
        "404|Unknown task",
    ),
    Accepted(
        ".*",
        rf"{SHOWN}.*\.topics",
        "A topic counts as used once something of it was handed on; there, once a record of it was converted.",
        "lines",
        r"^\[\]$",
        "json|longs|bytes|cast|replace",
    ),
    Accepted(
        ".*",
        rf"{SHOWN}.*status\.connector\.(state|trace|version)",
        "What is stopped or pauses is not started, and so can't fail to.",
        "FAILED|True|None",
        "STOPPED|PAUSED|missing|4",
        "topic of none|creation (groups|partitions)",
    ),
    Accepted(
        ".*",
        rf"{SHOWN}.*tasks\[\d\]\.state",
        "When a connector can't start with what it was told last, its tasks do not go on with what was before.",
        "RUNNING",
        "UNASSIGNED",
        "topic of none|creation (groups|partitions)",
    ),
    Accepted(".*topic null.*", ".*", "What is required may not be null; Kafka Connect fails later."),
    Accepted(
        ".*exactly once.*",
        r"body\.message",
        "What is wrong is told once; there, a second time by the question for exactly-once support that fails over it.",
        "An unexpected error occurred during validation",
    ),
    Accepted(
        "alter source: null to .*",
        r"body\.message",
        "Of two things that are wrong one is told.",
        "'position'",
        "Partition objects cannot be null",
    ),
    Accepted(
        ".*",
        rf"{SHOWN}.*offsets",
        "Where reading begins at the end, that is a position: a later lease has to begin there.",
        r"^\[\]$",
        before="consumer from the end|override consumer",
    ),
    Accepted("validate .*plugin version missing.*", ".*", "Kafka Connect's second answer to it is an NPE."),
    Accepted(
        ".*",
        rf"{SHOWN}.*\.topics",
        "A topic counts as used once a record is handed to the producer; there, once one is acknowledged.",
        r"^\[\]$",
        "not a topic",
        "topic that cannot be",
    ),
    Accepted(
        ".*(two topics|regex of one).*",
        f"{SHOWN}.*offsets.*",
        "What was never read has no position; Kafka Connect commits those of a task's idle partitions with the others.",
        "'kafka_offset': 0",
    ),
    Accepted(
        ".*",
        f"{SHOWN}.*",
        "A file that ends before a position was truncated: read from its start, and not waited for.",
        before=r"alter source: .*to (500|2147483648)",
    ),
)
_JAVAS: tuple[tuple[re.Pattern[str], str], ...] = (
    (re.compile(r"Invalid regex: .*?(?=\n[A-Z]|$)", re.DOTALL), "Invalid regex"),
    (re.compile(r"Connector config .*? contains no connector type"), "no connector type"),
)
"""Texts that only a JVM can have."""


def plain(answer: Answer) -> Answer:
    """An answer without what only a JVM can say."""
    return Answer(answer.status, _plain(answer.body), answer.headers)


def _plain(body: Any) -> Any:
    if isinstance(body, dict):
        return {key: _plain(value) for key, value in body.items()}
    if isinstance(body, list):
        return [_plain(each) for each in body]
    if isinstance(body, str):
        for pattern, text in _JAVAS:
            body = pattern.sub(text, body)
    return body


def reason_for(step: str, difference: Difference, lived: Sequence[str], *, shown: bool) -> str | None:
    """Tell why a difference is wanted; None when it isn't. `lived` are the steps before."""
    field = f"{SHOWN}{difference.field}" if shown else difference.field
    for accepted in ACCEPTED:
        if accepted.covers(step, field, difference, lived):
            return accepted.reason
    return None if shown else next((each.reason for each in OF_STEPS if each.covers(step, difference)), None)
