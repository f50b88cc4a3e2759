"""How many leases start side by side: a hundred that start at once starve each other, and all are late.

Decides only whether one more may start, and who is next. A start holds its place until the lease has its sidecar and
reader, has ended, or has taken so long that what it waits for is hardly this machine's work: one that hangs, as on a
database that is away, delays nobody for longer than that. One that starts alone never waits.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final

STARTS_MAX_DEFAULT: Final = 64
PLACE_HELD_MS_MAX: Final = 2_000


@dataclass(slots=True)
class Starts:
    """Leases that are starting, and connectors that wait with more."""

    most: int = STARTS_MAX_DEFAULT
    """How many at once on each machine that runs leases."""
    machines: int = 1
    _until_ms: dict[str, int] = field(default_factory=dict)
    _blocked: dict[str, None] = field(default_factory=dict)
    """Connectors in the order in which they came."""

    @property
    def free(self) -> int:
        """How many more may start now."""
        return max(self.most * max(self.machines, 1) - len(self._until_ms), 0)

    @property
    def contended(self) -> bool:
        """Whether somebody waits."""
        return bool(self._blocked)

    def begin(self, lease: str, now_ms: int) -> None:
        """A lease is starting."""
        self._until_ms[lease] = now_ms + PLACE_HELD_MS_MAX

    def done(self, lease: str) -> None:
        """A lease has started, or has ended."""
        self._until_ms.pop(lease, None)

    def block(self, connector: str) -> None:
        """A connector has leases that may not start yet."""
        self._blocked.setdefault(connector)

    def expire(self, now_ms: int) -> None:
        """Take their places from those that take too long."""
        for lease in [lease for lease, until_ms in self._until_ms.items() if until_ms <= now_ms]:
            del self._until_ms[lease]

    def next_connector(self) -> str | None:
        """The connector that may go on now, if any; it waits no longer, and does so again only by `block`."""
        if not self._blocked or not self.free:
            return None
        connector = next(iter(self._blocked))
        del self._blocked[connector]
        return connector

    def due_ms(self) -> int | None:
        """When a place is taken from somebody for whom another waits; None if never."""
        return min(self._until_ms.values(), default=None) if self._blocked else None
