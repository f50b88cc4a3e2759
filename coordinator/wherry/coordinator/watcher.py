"""The one watcher of all parked sink tasks, and of all sinks' topics.

A parked task costs an entry here. A few times a second the end offsets of all parked partitions are listed in one call;
a task is woken when records lie beyond what its group has committed. Now and then the topics are listed in one call; a
sink whose topics have other partitions than when it was planned is planned anew.

A control record (the end of a transaction) lies beyond the last committed record for ever. So a partition that was
looked at by a lease which then went idle is quiet at the end it had when that lease was woken. At any other end it is
looked at anew, be it a lower one: then the topic was deleted and made again, and holds other records.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Final

from wherry.contract.errors import WherryError
from wherry.contract.position import Position, TopicPartition, parse_kafka_position
from wherry.coordinator import events as ev
from wherry.coordinator.planner import partitions_of
from wherry.coordinator.task import NEEDS_A_PERSON

log = logging.getLogger(__name__)

LOOK_INTERVAL_S: Final = 0.3
TOPICS_INTERVAL_S: Final = 5.0
MISSING_TOPICS_INTERVAL_S: Final = 0.5
"""While some sink has no partitions at all: its topic is about to be made."""
FAILURE_WAIT_S_MAX: Final = 10.0
LOOK_SHARE_MAX: Final = 0.02
"""Of a core, for looking: with very many partitions the looks come less often."""
LOOK_INTERVAL_S_MAX: Final = 2.0
LOOK_GAP_S: Final = 0.1
"""Between two looks, also while one task after the other is being parked."""


@dataclass(slots=True)
class _Parked:
    connector: str
    task: int
    partitions: tuple[TopicPartition, ...]
    committed: Mapping[TopicPartition, int] | None = None


@dataclass(slots=True)
class _Followed:
    config: Mapping[str, str]
    partitions: tuple[str, ...]
    seen: int = -1
    """Which of the topic lists it was compared with last."""


@dataclass(slots=True)
class Watcher:
    """Wakes parked tasks. Safe for use by several threads.

    Args:
        end_offsets: Lists end offsets.
        committed: Committed offsets of a connector's group for partitions.
        topics: Lists topics with their numbers of partitions.
        post: Takes Woken and PlanChanged.
    """

    end_offsets: Callable[[Iterable[TopicPartition]], dict[TopicPartition, int]]
    committed: Callable[[str, tuple[TopicPartition, ...]], Mapping[TopicPartition, int]]
    topics: Callable[[], Mapping[str, int]]
    post: Callable[[ev.Event], None]
    look_interval_s: float = LOOK_INTERVAL_S
    topics_interval_s: float = TOPICS_INTERVAL_S
    _parked: dict[tuple[str, int], _Parked] = field(default_factory=dict)
    _followed: dict[str, _Followed] = field(default_factory=dict)
    _quiet_at: dict[tuple[str, TopicPartition], int] = field(default_factory=dict)
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _changed: threading.Event = field(default_factory=threading.Event)
    _stopping: threading.Event = field(default_factory=threading.Event)
    _topics: Mapping[str, int] = field(default_factory=dict)
    _topics_number: int = 0

    def start(self) -> None:
        """Start the thread."""
        threading.Thread(target=self._run, name="watcher", daemon=True).start()

    def stop(self) -> None:
        """End the thread."""
        self._stopping.set()
        self._changed.set()

    def watch(self, connector: str, task: int, partitions: Iterable[str]) -> None:
        """Wake this task when there is something in its partitions."""
        own = tuple(parse_kafka_position(Position(partition, None))[0] for partition in partitions)
        with self._lock:
            self._parked[connector, task] = _Parked(connector, task, own)
        self._changed.set()

    def unwatch(self, connector: str, task: int) -> None:
        """Forget a parked task."""
        with self._lock:
            self._parked.pop((connector, task), None)

    def follow(self, connector: str, config: Mapping[str, str], partitions: tuple[str, ...]) -> None:
        """Plan this sink anew when its topics have other partitions than these."""
        with self._lock:
            self._followed[connector] = _Followed(config, partitions)
        self._changed.set()

    def forget(self, connector: str) -> None:
        """Forget a connector altogether."""
        with self._lock:
            self._followed.pop(connector, None)
            self._parked = {key: parked for key, parked in self._parked.items() if key[0] != connector}
            self._quiet_at = {key: end for key, end in self._quiet_at.items() if key[0] != connector}

    def look(self) -> int:
        """Look at all parked tasks once; returns how many were woken.

        Raises:
            WherryError: Kafka doesn't tell. Of a single task only after all others were looked at.
        """
        with self._lock:
            parked = list(self._parked.values())
        if not parked:
            return 0
        ends = self.end_offsets({partition for task in parked for partition in task.partitions})
        woken, failure = 0, None
        for task in parked:
            try:
                woken += self._look_at(task, ends)
            except WherryError as error:
                if error.error_class in NEEDS_A_PERSON:
                    # Its lease meets with the same, and tells it where it is looked for.
                    woken += self._wake(task, ends)
                else:
                    failure = error
        if failure is not None:
            raise failure
        return woken

    def look_at_topics(self) -> None:
        """Compare the topics of all sinks with what was planned."""
        with self._lock:
            followed = list(self._followed.items())
        if not followed:
            return
        topics = self.topics()
        if topics != self._topics:
            self._topics, self._topics_number = dict(topics), self._topics_number + 1
        for connector, sink in followed:
            if sink.seen == self._topics_number:
                continue
            sink.seen = self._topics_number
            if partitions_of(sink.config, topics) != sink.partitions:
                self.post(ev.PlanChanged(connector, "topics or partitions changed"))

    def _look_at(self, task: _Parked, ends: Mapping[TopicPartition, int]) -> bool:
        quiet = self._quiet_at
        candidates = [p for p in task.partitions if ends.get(p, 0) not in (0, quiet.get((task.connector, p), 0))]
        if not candidates:
            return False
        if task.committed is None:
            task.committed = self.committed(task.connector, task.partitions)
        moved = {partition: ends[partition] for partition in candidates}
        behind = {partition: end for partition, end in moved.items() if end != task.committed.get(partition, 0)}
        return bool(behind) and self._wake(task, behind)

    def _wake(self, task: _Parked, ends: Mapping[TopicPartition, int]) -> bool:
        """Wake a task for partitions that end here now; False when it isn't parked any more."""
        with self._lock:
            if self._parked.pop((task.connector, task.task), None) is None:
                return False
            for partition in task.partitions:
                if partition in ends:
                    self._quiet_at[task.connector, partition] = ends[partition]
        self.post(ev.Woken(task.connector, task.task))
        return True

    def _run(self) -> None:
        topics_due_s = 0.0
        failures = 0
        while not self._stopping.is_set():
            with self._lock:
                idle = not self._parked and not self._followed
                parked = bool(self._parked)
            if idle:
                self._changed.wait(self.topics_interval_s)
                self._changed.clear()
                continue
            used_s = time.thread_time()
            fine = self._tried(self.look, failures)
            # Also when parked tasks can't be looked at: what is wrong may be a topic that is not there any more.
            if time.monotonic() >= topics_due_s:
                listed = self._tried(self.look_at_topics, failures)
                topics_due_s = time.monotonic() + self._topics_wait_s() if listed else topics_due_s
                fine = fine and listed
            failures = 0 if fine else failures + 1
            used_s = time.thread_time() - used_s
            wait_s = self._look_wait_s(used_s) if parked else self._topics_wait_s()
            self._changed.clear()
            if self._stopping.wait(min(wait_s, LOOK_GAP_S)):
                return
            if failures:
                self._stopping.wait(min(wait_s * 2**failures, FAILURE_WAIT_S_MAX))
            else:
                self._changed.wait(wait_s)

    def _tried(self, act: Callable[[], object], failures: int) -> bool:
        """Do it; False when it failed, which is told the first time of several in a row."""
        try:
            act()
        except WherryError as error:
            if failures == 0:
                log.warning("Parked tasks can't be watched: %s", error)
            return False
        except Exception:
            log.exception("Parked tasks can't be watched")
            return False
        return True

    def _look_wait_s(self, used_s: float) -> float:
        """Until the next look, after one that took so much CPU time."""
        return min(max(self.look_interval_s, used_s / LOOK_SHARE_MAX), max(self.look_interval_s, LOOK_INTERVAL_S_MAX))

    def _topics_wait_s(self) -> float:
        with self._lock:
            missing = any(not sink.partitions for sink in self._followed.values())
        return min(MISSING_TOPICS_INTERVAL_S if missing else self.topics_interval_s, self.topics_interval_s)
