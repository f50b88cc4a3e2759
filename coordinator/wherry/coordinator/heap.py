"""When Spark's JVM is to give memory back.

By itself it collects garbage only when its heap is full, and keeps what it has grown by. What a thousand leases have
left that were started in a row, such as the broadcasts of their jobs, would stay for the life of the process. So it is
asked to collect when nothing has been started for a moment: that stops it for about 0.1 s, which delays no record,
because none passes through it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

JOBS_MIN: Final = 20
"""Fewer leave too little behind to be worth it."""
QUIET_S: Final = 5.0
ROUNDS: Final = 2
"""What a first round finds to be of no use Spark lets go of, and a second one collects."""
ROUND_PAUSE_S: Final = 3.0


@dataclass(slots=True)
class HeapRest:
    """Counts jobs; time is handed in."""

    _jobs: int = 0
    _jobs_collected: int = 0
    _rounds: int = 0
    _next_s: float = 0.0

    def due(self, jobs: int, now_s: float) -> bool:
        """Whether to collect now; to be asked again and again.

        Args:
            jobs: How many were ever started.
            now_s: Seconds, rising.
        """
        if jobs != self._jobs:
            self._jobs, self._next_s = jobs, now_s + QUIET_S
            if jobs - self._jobs_collected >= JOBS_MIN:
                self._rounds = ROUNDS
        if not self._rounds or now_s < self._next_s:
            return False
        self._rounds -= 1
        self._next_s = now_s + ROUND_PAUSE_S
        self._jobs_collected = jobs
        return True
