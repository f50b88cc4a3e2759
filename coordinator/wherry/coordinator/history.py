"""The last failures and restarts of a connector and its tasks, for `/wherry/v1/connectors/NAME/restarts`.

Decides nothing; notes what `task.py` and `connector.py` have decided. Kept with the connector's book, so it ends with
the connector or with this coordinator's lead, and never grows beyond `NOTES_MAX`. Pure: time is handed in.
"""

from __future__ import annotations

import enum
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final, Protocol

from wherry.coordinator.api import RestartNote
from wherry.coordinator.events import Failure

NOTES_MAX: Final = 50
MESSAGE_CHARACTERS_MAX: Final = 500


class Happening(enum.Enum):
    """What happened."""

    FAILED = "failed"
    """It is started again by itself."""
    GIVEN_UP = "given up"
    """It failed and waits for a person."""
    ASKED = "asked"
    """Somebody asked for a restart."""


class Failing(Protocol):
    """A task or a connector after a failure."""

    @property
    def restarts(self) -> int:
        """Restarts in a row, that under way included."""

    @property
    def retry_at_ms(self) -> int | None:
        """When the next one comes; None when it was given up."""


@dataclass(frozen=True, slots=True)
class _Note:
    at_ms: int
    task: int | None
    happening: Happening
    failure: Failure | None
    attempt: int
    wait_ms: int | None


class RestartHistory:
    """Failures and restarts of one connector, the last `NOTES_MAX` of them."""

    def __init__(self) -> None:
        self._notes: deque[_Note] = deque(maxlen=NOTES_MAX)

    def failed(self, task: int | None, part: Failing, failure: Failure, now_ms: int) -> None:
        """A task, or with None the connector, has failed and is now `part`."""
        if part.retry_at_ms is None:
            self._notes.append(_Note(now_ms, task, Happening.GIVEN_UP, failure, part.restarts, None))
            return
        wait_ms = max(part.retry_at_ms - now_ms, 0)
        self._notes.append(_Note(now_ms, task, Happening.FAILED, failure, part.restarts, wait_ms))

    def asked(self, task: int | None, now_ms: int) -> None:
        """Somebody asked for a restart of a task, or of the connector."""
        self._notes.append(_Note(now_ms, task, Happening.ASKED, None, 0, 0))

    def told(self, epoch_ms: int) -> Iterator[RestartNote]:
        """All of it, oldest first; `epoch_ms` is when the clock of the notes stood at 0."""
        for note in self._notes:
            yield RestartNote(
                at_ms=epoch_ms + note.at_ms,
                task=note.task,
                happening=note.happening.value,
                error_class="" if note.failure is None else note.failure.error_class.name,
                message="" if note.failure is None else note.failure.message[:MESSAGE_CHARACTERS_MAX],
                attempt=note.attempt,
                wait_ms=note.wait_ms,
            )
