"""One run: flows are fed at a steady pace while a fault comes, watched from outside, and judged at the end."""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial

from tests.chaos import limits
from tests.chaos.flows import Flow, totals
from tests.chaos.verdict import Verdict, judge, recovery_s, summary
from tests.support.rest import NoAnswerError
from tests.support.standalone import Standalone
from tests.support.waiting import eventually

SLICES_PER_S = 20


@dataclass(slots=True)
class Watched:
    """A flow with what is known of it."""

    flow: Flow
    records: int
    progress: list[tuple[float, int]] = field(default_factory=list)
    committed: dict[int, int] = field(default_factory=dict)
    fault_at: float | None = None

    @property
    def delivered(self) -> int:
        """How far the destination has come."""
        return self.progress[-1][1] if self.progress else 0

    def is_complete(self) -> bool:
        """Tell whether the destination has everything."""
        return self.delivered >= self.records


class Run:
    """Flows in one Wherry, under way. A context manager; leaving it stops feeding and watching.

    Args:
        system: Not started; gets the flows' connectors.
        flows: What runs.
        records: Of each flow.
        seed: Of the moments at which faults come.
    """

    def __init__(self, system: Standalone, flows: Sequence[Flow], records: int, seed: int) -> None:
        self.system = system
        self.random = random.Random(seed)
        self.watched = [Watched(flow, sum(totals(flow, records).values())) for flow in flows]
        self._records = records
        self._ending = threading.Event()
        self._threads: list[threading.Thread] = []
        self._failures: list[BaseException] = []
        system.connectors.update({flow.name: flow.config() for flow in flows})

    def __enter__(self) -> Run:
        self.system.start()
        try:
            for watched in self.watched:
                watched.flow.feed(0, 1)
                self._thread(partial(self._watch, watched), f"watch-{watched.flow.name}")
            self._wait_for_first_records()
            for watched in self.watched:
                self._thread(partial(self._feed, watched), f"feed-{watched.flow.name}")
        except BaseException:
            self._end()
            raise
        return self

    def __exit__(self, _: object, error: BaseException | None, __: object) -> None:
        if error is not None:
            error.add_note(f"The end of Wherry's log:\n{self.system.log_tail()}")
        self._end()

    def fault(self, watched: Watched, inject: Callable[[], None]) -> None:
        """Wait for a random moment of a flow, note what is committed, and let the fault come."""
        share = self.random.uniform(limits.EARLIEST_FAULT, limits.LATEST_FAULT)
        self.wait_until(
            lambda: watched.delivered >= watched.records * share, f"{watched.flow.name} comes to {share:.0%}"
        )
        self.note_committed(watched)
        inject()
        watched.fault_at = time.monotonic()

    def start_again(self) -> None:
        """Start the system on the same files and wait until it knows its connectors; REST answers before that."""
        self.system.start()
        wanted = {watched.flow.name for watched in self.watched}
        known = eventually(lambda: wanted <= set(self.system.rest.get("/connectors")), limits.FIRST_RECORD_S)
        assert known, f"only {self.system.rest.get('/connectors')} are there after {limits.FIRST_RECORD_S:.0f} s"

    def note_committed(self, *several: Watched) -> None:
        """Note what is committed now: none of it may come again."""
        for watched in several or self.watched:
            watched.committed = watched.flow.committed(self.system.rest)

    def wait_until(self, condition: Callable[[], bool], what: str) -> None:
        """Wait as long as anything moves."""
        moved_at, seen = time.monotonic(), -1
        while not condition():
            self._raise_failures()
            delivered = sum(watched.delivered for watched in self.watched)
            if delivered != seen:
                moved_at, seen = time.monotonic(), delivered
            if time.monotonic() - moved_at > limits.STALL_S:
                raise AssertionError(
                    f"Nothing moved for {limits.STALL_S:.0f} s while waiting until {what}: {self.told()}"
                )
            time.sleep(limits.PROGRESS_POLL_S)

    def finish(self) -> None:
        """Wait until everything has arrived and been committed."""
        for watched in self.watched:
            flow, records = watched.flow, watched.records
            self.wait_until(watched.is_complete, f"{flow.name} has all {records}")
            wanted = dict(totals(flow, self._records))
            deadline = time.monotonic() + limits.STALL_S
            while (committed := flow.committed(self.system.rest)) != wanted:
                assert time.monotonic() < deadline, f"{flow.name} has committed {committed}, not {wanted}"
                time.sleep(limits.COMMITTED_POLL_S)

    def judge(self) -> dict[str, dict[int, Verdict]]:
        """Judge every flow, printing a line about each; raise when one is not sound."""
        judged: dict[str, dict[int, Verdict]] = {}
        for watched in self.watched:
            flow = watched.flow
            arrived = flow.arrived()
            verdicts = {
                partition: judge(arrived[partition], total, watched.committed.get(partition, 0))
                for partition, total in totals(flow, self._records).items()
            }
            judged[flow.name] = verdicts
            print(f"{flow.name}: {watched.records} records, {summary(verdicts)}")
            for partition, verdict in verdicts.items():
                assert verdict.sound, f"partition {partition} of {flow.name}: {verdict}"
                assert not (flow.exactly_once and verdict.duplicates), f"{flow.name} promises exactly once: {verdict}"
        return judged

    def recovery_s(self, watched: Watched) -> float:
        """Return, and print, how long a flow took from its fault to the next record at its destination."""
        assert watched.fault_at is not None
        seconds = recovery_s(watched.progress, watched.fault_at, watched.fault_at + limits.UNDER_WAY_S)
        print(f"{watched.flow.name}: records again {seconds:.2f} s after the fault")
        return seconds

    def told(self) -> str:
        """Return where each flow is and what state it shows."""
        shown = []
        for watched in self.watched:
            try:
                status = self.system.rest.call("GET", f"/connectors/{watched.flow.name}/status", timeout_s=5.0).body
            except NoAnswerError as error:
                status = str(error)
            shown.append(f"{watched.flow.name} {watched.delivered}/{watched.records}: {status}")
        return "\n".join(shown)

    def _wait_for_first_records(self) -> None:
        deadline = time.monotonic() + limits.FIRST_RECORD_S
        while not all(watched.delivered for watched in self.watched):
            self._raise_failures()
            assert time.monotonic() < deadline, f"no first record in {limits.FIRST_RECORD_S:.0f} s: {self.told()}"
            time.sleep(limits.PROGRESS_POLL_S)

    def _feed(self, watched: Watched) -> None:
        """Hand over all but the first record, evenly over the time."""
        total = self._records // watched.flow.partitions
        begun, slices = time.monotonic(), int(limits.FEED_S * SLICES_PER_S)
        fed = 1
        for number in range(1, slices + 1):
            if self._ending.wait(max(0.0, begun + number / SLICES_PER_S - time.monotonic())):
                return
            upto = max(fed, total * number // slices)
            watched.flow.feed(fed, upto)
            fed = upto

    def _watch(self, watched: Watched) -> None:
        while not self._ending.wait(limits.PROGRESS_POLL_S):
            watched.progress.append((time.monotonic(), watched.flow.delivered()))

    def _thread(self, body: Callable[[], None], name: str) -> None:
        def guarded() -> None:
            try:
                body()
            except BaseException as error:
                self._failures.append(error)

        thread = threading.Thread(target=guarded, name=name, daemon=True)
        self._threads.append(thread)
        thread.start()

    def _raise_failures(self) -> None:
        if self._failures:
            raise self._failures[0]

    def _end(self) -> None:
        self._ending.set()
        for thread in self._threads:
            thread.join(limits.STALL_S)
