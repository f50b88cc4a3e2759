"""When a lease tries again by itself, and when it gives up: pure, given the time.

A sidecar that has died is replaced within the lease, because that takes a fraction of a second; a lease that is handed
out anew takes longer. Too many faults in a short time are not for the lease to hide.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field
from typing import Final

FAULT_WINDOW_S: Final = 60.0
# The pause before each try within the window; one fault more ends the lease.
FAULT_PAUSES_S: Final = (0.0, 0.1, 0.25, 0.5, 1.0, 2.0, 4.0, 4.0, 4.0, 4.0)


@dataclass(slots=True)
class Recovery:
    """The faults of a lease that are not forgotten yet."""

    window_s: float = FAULT_WINDOW_S
    pauses_s: tuple[float, ...] = FAULT_PAUSES_S
    _faults: deque[float] = field(default_factory=deque)

    def pause_s(self, now_s: float, retry_after_s: float = 0.0) -> float | None:
        """Note a fault; return how long to wait before the next try, None to give up.

        Args:
            now_s: The time.
            retry_after_s: What the other side asks for; a longer wait than ours wins.
        """
        while self._faults and now_s - self._faults[0] > self.window_s:
            self._faults.popleft()
        count = len(self._faults)
        self._faults.append(now_s)
        if count >= len(self.pauses_s):
            return None
        return max(self.pauses_s[count], retry_after_s)

    @property
    def count(self) -> int:
        """Faults within the window when it was last looked at."""
        return len(self._faults)
