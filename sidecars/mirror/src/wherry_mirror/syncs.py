"""Offset syncs of one flow, and how offsets are translated by them. Pure.

A sync says that a record lies at one offset here and at another there. Of an offset beyond it only so much is sure:
its record lies behind the sync's. So an offset is translated to the place just after the latest sync at or before it;
a group that goes on from there may see records again, and misses none.
"""

from __future__ import annotations

import bisect
from dataclasses import dataclass, field

from wherry.contract.mirror import OffsetSync

KEPT_MAX = 128
"""Syncs kept of a partition. Beyond it the older half is thinned out: groups far behind are translated coarsely."""


@dataclass(slots=True)
class SyncStore:
    """The syncs of all partitions of a source cluster."""

    _syncs: dict[tuple[str, int], list[tuple[int, int]]] = field(default_factory=dict)

    def add(self, sync: OffsetSync) -> None:
        """Takes one in; those it contradicts, of a topic that was made anew, are forgotten."""
        known = self._syncs.setdefault((sync.topic, sync.partition), [])
        while known and (known[-1][0] >= sync.upstream or known[-1][1] >= sync.downstream):
            known.pop()
        known.append((sync.upstream, sync.downstream))
        if len(known) > KEPT_MAX:
            half = len(known) // 2
            known[:half] = known[:half:2]

    def partitions(self) -> list[tuple[str, int]]:
        """Partitions that have syncs."""
        return sorted(self._syncs)

    def translated(self, topic: str, partition: int, upstream: int) -> int | None:
        """Where a group that stands at an offset would go on in the copy; None when nothing is known."""
        known = self._syncs.get((topic, partition), [])
        place = bisect.bisect_right(known, (upstream, 1 << 62)) - 1
        if place < 0:
            return None
        found_upstream, found_downstream = known[place]
        return found_downstream if found_upstream == upstream else found_downstream + 1
