"""Every misbehaviour by its name, and what was asked for.

A mode is asked for by the key `misbehave` of a connector, a comma-separated list, or on the command line of the
manifest (`run: [python, -m, wherry_hostile, --misbehave, slow-start]`) for what comes before any configuration.
"""

from __future__ import annotations

import os
import signal
import sys
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final

from wherry.contract.errors import ConfigError, ErrorClass, error_for

# A hang ends at last, so that a forgotten process doesn't stay for ever.
HANG_S: Final = 3600.0
EXIT_CODE: Final = 3

CALLS: Final = (
    *("hello", "describe", "validate", "configure", "probe", "stop", "delete", "events"),
    *("plan", "read", "alter", "ensure", "write", "flush", "commit"),
)
_CALL_MODES: Final = {
    "hang": "never answers",
    "slow": "answers after delay.ms",
    "error": "answers with an error of the class error.class",
    "raise": "raises an exception that is none of the contract's",
    "exit": f"ends the process with code {EXIT_CODE}",
    "kill": "ends the process by SIGKILL, as the kernel's memory killer does",
    "freeze": "stops the process by SIGSTOP",
}
_PROCESS_MODES: Final = {
    "slow-start": "listens only after delay.ms",
    "never-listens": "runs and never listens",
    "never-healthy": "listens, but its health stays NOT_SERVING",
    "no-health": "serves no health service at all",
    "exit-at-start": f"ends with code {EXIT_CODE} before it listens",
    "wrong-instance": "tells the instance id of another process in Hello",
    "wrong-revision": "chooses a revision in Hello that was not offered",
    "flood-logs": "prints lines to stdout and stderr without end, some of them very long or no text",
    "flood-events": "sends log events without end",
    "leak": "takes leak.mib more memory every second",
    "spin": "keeps a core busy",
    "open-files": "opens ever more files",
    "orphan": "starts a process of its own that outlives it",
    "ignore-sigterm": "doesn't end on SIGTERM",
}
_STREAM_MODES: Final = {
    "exit-midway": "read, write: ends the process after after.rows",
    "kill-midway": "read, write: ends the process by SIGKILL after after.rows",
    "freeze-midway": "read, write: stops the process by SIGSTOP after after.rows",
    "raise-midway": "read, write: raises an exception that is none of the contract's after after.rows",
    "error-midway": "read, write: fails with error.class after after.rows",
    "end-midway": "read, write: closes the stream without a word after after.rows",
    "silence": "read, write: says nothing any more after after.rows, no heartbeat either",
    "no-opened": "read, write: leaves `opened` out",
    "seq-gap": "read: leaves a number of frames out",
    "marks-back": "read: marks that go back",
    "marks-beyond": "read: a mark behind the last row",
    "no-marks": "read: no positions at all",
    "loose-json": "read: positions with spaces in their JSON",
    "over-credit": "read: sends without credit",
    "unknown-schema": "read: frames that follow a schema which was never sent",
    "garbage": "read: bodies that are no Arrow",
    "row-count": "read: says more rows than the body has",
    "big-row": "read: every row has big.bytes, sent in chunks",
    "big-message": "read: a message over the limit instead of chunks",
    "lost-chunk": "read: leaves a chunk out of a big row",
    "row-errors": "read: every tenth row can't be read and is told as a row error (this is allowed)",
    "repeat-rows": "read: every row twice",
    "ignore-drain": "read: goes on when it is drained",
    "after-end": "read: frames after `end`",
    "never-caught-up": "read: doesn't say when there is nothing more",
    "ack-order": "write: acknowledges frames in pairs, the second first",
    "ack-twice": "write: acknowledges every frame twice",
    "ack-unknown": "write: acknowledges a frame that was never sent",
    "no-ack": "write: acknowledges nothing",
    "slow-ack": "write: acknowledges after delay.ms",
    "no-credit": "write: opens without credit",
    "lost-rows": "write: a flush that leaves a row out of the account",
    "lied-rows": "write: drops every row, but says that they are written",
    "far-positions": "write: a flush that tells positions ahead of the marks",
    "flush-id": "write: answers a flush with another id",
    "bad-rows": "write: every tenth row fails with a row error (this is allowed)",
    "error-beyond": "write: a row error of a row that the frame doesn't have",
    "backoff": "write: asks for delay.ms of silence after every frame (this is allowed)",
    "ignore-close": "write: doesn't end when the engine half-closes",
}

MODES: Final[Mapping[str, str]] = {
    **{f"{kind}-{call}": f"{call}: {what}" for kind, what in _CALL_MODES.items() for call in CALLS},
    **_PROCESS_MODES,
    **_STREAM_MODES,
}


@dataclass(frozen=True, slots=True)
class Wishes:
    """What was asked for.

    Attributes:
        modes: Names of modes.
        after_rows: Rows of a stream that pass before its misbehaviour begins.
        delay_ms: Delay of the slow modes.
        error_class: Class of the errors.
        leak_mib: Memory that `leak` takes each second.
        big_bytes: Size of a big row.
    """

    modes: frozenset[str] = frozenset()
    after_rows: int = 0
    delay_ms: int = 1000
    error_class: ErrorClass = ErrorClass.TRANSIENT
    leak_mib: int = 50
    big_bytes: int = 20 * 1024 * 1024

    def __contains__(self, mode: object) -> bool:
        return mode in self.modes

    def joined(self, modes: Iterable[str]) -> Wishes:
        """Returns these wishes with more modes."""
        return Wishes(
            self.modes | frozenset(modes),
            self.after_rows,
            self.delay_ms,
            self.error_class,
            self.leak_mib,
            self.big_bytes,
        )

    def at(self, call: str) -> None:
        """Misbehaves in a call, if it was asked for.

        Raises:
            WherryError: For `error-…`.
            RuntimeError: For `raise-…`.
        """
        for kind in _CALL_MODES:
            if f"{kind}-{call}" in self.modes:
                self._do(kind, call)

    def midway(self, rows: int) -> bool:
        """Misbehaves in the middle of a stream, if it was asked for.

        Args:
            rows: Rows that have passed.

        Returns:
            Whether the stream is to end without a word.
        """
        if rows < self.after_rows:
            return False
        for kind in ("exit", "kill", "freeze", "raise", "error"):
            if f"{kind}-midway" in self.modes:
                self._do(kind, f"row {rows}")
        return "end-midway" in self.modes

    def _do(self, kind: str, where: str) -> None:
        if kind == "hang":
            time.sleep(HANG_S)
        elif kind == "slow":
            time.sleep(self.delay_ms / 1000)
        elif kind == "error":
            raise error_for(self.error_class, f"The hostile sidecar was asked to fail at {where}.")
        elif kind == "raise":
            raise RuntimeError(f"an exception at {where}")
        elif kind == "exit":
            sys.stderr.flush()
            os._exit(EXIT_CODE)
        elif kind == "kill":
            os.kill(os.getpid(), signal.SIGKILL)
        elif kind == "freeze":
            os.kill(os.getpid(), signal.SIGSTOP)


def checked(names: Iterable[str]) -> frozenset[str]:
    """Returns the names of modes.

    Raises:
        ConfigError: There is no such mode.
    """
    modes = frozenset(name.strip() for name in names if name.strip())
    unknown = sorted(modes - MODES.keys())
    if unknown:
        raise ConfigError(
            f"Invalid value {unknown[0]} for configuration misbehave: There is no such mode; README.md names them all",
            key="misbehave",
        )
    return modes
