"""Which task of a sink reads which topic partitions, and which split of a source is handed out next.

Pure functions and one small queue. Knows nothing of leases' lives.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from wherry.contract.plan import Work

SPLITS_PENDING_MAX: Final = 10_000
"""Splits kept in the queue of one connector; a plan's rest is planned again later."""
SPLIT_FAILURES_REMEMBERED_MAX: Final = 10_000


def assign_partitions(
    partitions: Sequence[str], tasks_max: int, previous: Mapping[int, Sequence[str]] | None = None
) -> dict[int, tuple[str, ...]]:
    """Deal partitions to tasks 0 … tasks_max-1, evenly, moving as few as possible away from where they are.

    Partitions are dealt in the order given. Every task has an entry; the numbers differ by at most one.
    """
    assert tasks_max >= 1, "a connector has at least one task"
    wanted = set(partitions)
    dealt: dict[int, list[str]] = {task: [] for task in range(tasks_max)}
    placed: set[str] = set()
    most = -(-len(wanted) // tasks_max)
    at_most = len(wanted) - (most - 1) * tasks_max if most else 0  # so many tasks may have `most`
    for task in range(tasks_max):
        kept = [p for p in dict.fromkeys((previous or {}).get(task, ())) if p in wanted and p not in placed]
        limit = most if at_most > 0 else most - 1
        dealt[task] = kept[: max(limit, 0)]
        at_most -= len(dealt[task]) == most
        placed.update(dealt[task])
    for partition in dict.fromkeys(partitions):
        if partition not in placed:
            task = min(dealt, key=lambda number: (len(dealt[number]), number))
            dealt[task].append(partition)
    return {task: tuple(kept) for task, kept in dealt.items()}


@dataclass(slots=True)
class SplitQueue:
    """Bounded pieces of work of one source: waiting, being read, and how often each failed.

    Invariants: a split is read by at most one lease; of an order group at most one split is read, the earliest first.
    """

    pending: list[Work] = field(default_factory=list)
    active: dict[str, Work] = field(default_factory=dict)
    not_before_ms: dict[str, int] = field(default_factory=dict)
    failures: dict[str, int] = field(default_factory=dict)
    handed_out: set[str] = field(default_factory=set)
    """Taken since the last plan was asked for: that plan may still list them."""

    def plan_asked(self) -> tuple[str, ...]:
        """The splits that a plan must leave out."""
        self.handed_out.clear()
        return tuple(self.active)

    def planned(self, splits: Iterable[Work]) -> None:
        """Put a new plan's splits in place of what was waiting."""
        known = self.active.keys() | self.handed_out
        fresh = {split.id: split for split in splits if split.id not in known}
        self.pending = list(fresh.values())[:SPLITS_PENDING_MAX]

    def take(self, now_ms: int) -> Work | None:
        """The next split that may be read now; it is active from here on."""
        for index in self._ready(now_ms):
            split = self.pending.pop(index)
            self.active[split.id] = split
            self.handed_out.add(split.id)
            self.not_before_ms.pop(split.id, None)
            return split
        return None

    def ready_count(self, now_ms: int, most: int) -> int:
        """How many splits could be read now side by side; counts to `most` at the farthest."""
        count = 0
        for _ in self._ready(now_ms):
            count += 1
            if count >= most:
                break
        return count

    def done(self, split_id: str) -> bool:
        """A split was read to its end; False if nobody was reading it."""
        self.failures.pop(split_id, None)
        return self.active.pop(split_id, None) is not None

    def put_back(self, split_id: str, *, retry_at_ms: int | None = None) -> None:
        """A lease ended before the split's end; it comes first again. With `retry_at_ms` it counts as failed."""
        split = self.active.pop(split_id, None)
        if split is None:
            return
        self.pending.insert(0, split)
        if retry_at_ms is not None and len(self.failures) < SPLIT_FAILURES_REMEMBERED_MAX:
            self.failures[split_id] = self.failures.get(split_id, 0) + 1
            self.not_before_ms[split_id] = retry_at_ms

    def next_due_ms(self, now_ms: int) -> int | None:
        """When the next split's wait after a failure is over; those that are over already don't count."""
        waiting = {split.id for split in self.pending}
        due = (at_ms for split, at_ms in self.not_before_ms.items() if at_ms > now_ms and split in waiting)
        return min(due, default=None)

    def clear(self) -> None:
        """Forget everything: a new generation plans anew."""
        self.pending.clear()
        self.active.clear()
        self.not_before_ms.clear()
        self.failures.clear()
        self.handed_out.clear()

    def _ready(self, now_ms: int) -> Iterable[int]:
        blocked = {split.order_group for split in self.active.values() if split.order_group}
        for index, split in enumerate(self.pending):
            if split.order_group and split.order_group in blocked:
                continue
            if split.order_group:
                blocked.add(split.order_group)  # whatever becomes of this one, later ones of its group wait for it
            if self.not_before_ms.get(split.id, 0) <= now_ms:
                yield index
