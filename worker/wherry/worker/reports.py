"""What a lease tells the coordinator, and what of it that has committed.

Decides nothing: the pump says when, and answers for positions being durable (its invariant 1).
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence

from wherry.contract.batch import Batch
from wherry.contract.position import Position
from wherry.worker.counts import Counts
from wherry.worker.pipeline import Pipeline
from wherry.worker.policy import Every
from wherry.worker.signals import Phase, Reporter


class Reports:
    """The reports of one lease.

    Args:
        reporter: Carries them.
        pipeline: Tells lag and trouble; its reader hears what is committed.
        counts: Taken with each report.
        interval_s: How often one is due though nothing has happened.
        clock: Tells the time.
    """

    def __init__(
        self, reporter: Reporter, pipeline: Pipeline, counts: Counts, interval_s: float, clock: Callable[[], float]
    ) -> None:
        self._reporter = reporter
        self._pipeline = pipeline
        self._counts = counts
        self._every = Every(interval_s)
        self._clock = clock
        self._waiting: deque[tuple[int, tuple[Position, ...]]] = deque()
        self._topics: set[str] = set()
        self._new_topics: list[str] = []

    @property
    def waiting(self) -> bool:
        """Whether positions have been told that are not committed yet, as far as `settle` has heard."""
        return bool(self._waiting)

    def tell(
        self,
        phase: Phase,
        *,
        positions: Sequence[Position] = (),
        tokens: Sequence[bytes] = (),
        splits_done: Sequence[str] = (),
        want_split: bool = False,
        trouble: str = "",
    ) -> None:
        """Report now. Positions must be durable at the destination."""
        pipeline = self._pipeline
        trouble = trouble or pipeline.writer.trouble or pipeline.reader.trouble
        seq = self._reporter.report(
            phase=Phase.RETRYING if trouble and phase is Phase.RUNNING else phase,
            positions=positions,
            counts=self._counts.take(),
            splits_done=splits_done,
            want_split=want_split,
            tokens=tokens,
            lag=pipeline.reader.lag,
            trouble=trouble,
            topics=tuple(self._new_topics),
        )
        self._new_topics.clear()
        self._every.done(self._clock())
        if positions:
            self._waiting.append((seq, tuple(positions)))

    def tell_if_due(self, now: float, phase: Phase, *, trouble: str = "") -> None:
        """Report how it goes, if it is time."""
        if self._every.due(now):
            self.tell(phase, trouble=trouble)

    def settle(self) -> None:
        """Tell the reader what the coordinator has committed."""
        if not self._waiting:
            return
        committed = self._reporter.committed_seq()
        positions: dict[str, Position] = {}
        while self._waiting and self._waiting[0][0] <= committed:
            for position in self._waiting.popleft()[1]:
                positions[position.partition] = position
        if positions:
            self._pipeline.reader.committed(tuple(positions.values()))

    def note_topics(self, batch: Batch) -> None:
        """Take note of a batch's topics; each is told once, and one without rows tells none."""
        for topic in batch.topics() if batch.num_rows else ():
            if topic and topic not in self._topics:
                self._topics.add(topic)
                self._new_topics.append(topic)
