"""Pairs of connectors that carry lines from a file through a topic into another file, and traffic that never rests.

Whoever disturbs something in the middle sees at the other end when each pair moves again, and afterwards which lines
were lost or repeated.
"""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final, Self

WRITE_SECONDS: Final = 0.05
POLL_SECONDS: Final = 0.01
_TAIL_BYTES: Final = 64


class Pair:
    """A file that goes through a topic into another file."""

    def __init__(self, directory: Path, prefix: str, label: str, number: int) -> None:
        self.number = number
        self.sent = 0
        self.topic = f"{prefix}-{label}-{number}"
        self._in, self._out = directory / f"{label}-{number}.in", directory / f"{label}-{number}.out"
        source = {"connector.class": "FileStreamSource", "file": str(self._in), "topic": self.topic}
        sink = {"connector.class": "FileStreamSink", "file": str(self._out), "topics": self.topic}
        self.connectors = {f"in-{number}": source, f"out-{number}": sink}

    def write(self) -> None:
        """Write the next line."""
        with self._in.open("a") as file:
            file.write(f"{self.sent}\n")
        self.sent += 1

    def received(self) -> list[int]:
        """The numbers of all lines that have come out, in order."""
        if not self._out.exists():
            return []
        return [int(line) for line in self._out.read_text().split("\n")[:-1]]

    def last(self) -> int:
        """The number of the last line that came out; -1 for none."""
        if not self._out.exists():
            return -1
        with self._out.open("rb") as file:
            file.seek(max(self._out.stat().st_size - _TAIL_BYTES, 0))
            lines = file.read().split(b"\n")[:-1]
        return int(lines[-1]) if lines else -1


class Traffic:
    """Writes a line to every file, again and again."""

    def __init__(self, pairs: Sequence[Pair]) -> None:
        self._pairs = pairs
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stopped.set()
        self._thread.join()

    def _run(self) -> None:
        while not self._stopped.wait(WRITE_SECONDS):
            for pair in self._pairs:
                pair.write()


def moving_again(pairs: Sequence[Pair], until: Callable[[Callable[[], bool]], None]) -> dict[int, float]:
    """Return the seconds until each pair has brought out a line that is written from now on.

    Args:
        pairs: All of them; there has to be traffic.
        until: Waits for a condition, with a deadline of its own.
    """
    began = time.monotonic()
    marks = {pair.number: pair.sent + 1 for pair in pairs}
    moved: dict[int, float] = {}

    def all_move() -> bool:
        for pair in pairs:
            if pair.number not in moved and pair.last() >= marks[pair.number]:
                moved[pair.number] = time.monotonic() - began
        return len(moved) == len(pairs)

    until(all_move)
    return moved


def lost_and_repeated(pairs: Sequence[Pair]) -> tuple[int, int]:
    """How many lines never came out, and how many came out again. Only when all traffic has come to its end."""
    counts = [Counter(pair.received()) for pair in pairs]
    lost = sum(pair.sent - len(found) for pair, found in zip(pairs, counts, strict=True))
    return lost, sum(found.total() - len(found) for found in counts)
