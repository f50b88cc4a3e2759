"""A world for the machine to live in: workers, plans and a network that drops, repeats and reorders; all from one seed.

Time jumps from event to event. The world checks what must always hold while it runs, and can be told to behave
(`calm`), after which everything that is wanted has to come about.
"""

from __future__ import annotations

import heapq
import itertools
import json
import random
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from wherry.contract.errors import ErrorClass
from wherry.contract.plan import Plan, Work
from wherry.contract.position import Position
from wherry.coordinator import effects as fx
from wherry.coordinator import events as ev
from wherry.coordinator.api import State
from wherry.coordinator.lease import LeasePhase, LeaseTimes
from wherry.coordinator.machine import Machine
from wherry.coordinator.spread import MOVES_AT_ONCE_MAX, SpreadTimes
from wherry.coordinator.starts import PLACE_HELD_MS_MAX
from wherry.coordinator.task import LEASED, TaskState

TIMES = LeaseTimes(launch_ms=20_000, silence_ms=10_000, drain_ms=4_000, drain_grace_ms=500)
STEPS_MAX = 200_000
SPREAD = SpreadTimes(window_ms=8_000, rest_ms=20_000)
STARTS_MAX = 2
SLOTS = 32
SPLIT_LENGTHS = {f"s{n}": 1 if n % 2 else 25 for n in range(16)}
"""Steps of each split: quick ones are done while a plan that still lists them is under way."""


@dataclass
class Worker:
    """A process that runs a lease attempt. It reports every 500 ms and obeys signals, unless it is dead or deaf."""

    lease: str
    connector: str
    generation: int
    attempt: int
    work: ev.TaskWork | None = None
    position: int = 0
    alive: bool = True
    heard_ms: int = 0
    draining: bool = False
    waiting: bool = False
    executor: str = ""


class World:
    """Runs a machine against everything that can go wrong."""

    def __init__(self, seed: int, *, faults: float = 0.15, idles: float = 0.05) -> None:
        self.random = random.Random(seed)
        self.faults = faults
        self.idles = idles
        self.now_ms = 0
        self.machine = Machine(
            generation=1_000, times=TIMES, jitter=self.random.random, starts_max=STARTS_MAX, spread=SPREAD
        )
        self.executors = ["0", "1"]
        self.executors_ever = 2
        self.drains = 0
        self.committed: dict[tuple[str, str], int] = {}
        self.workers: dict[tuple[str, int], Worker] = {}
        self.commits: list[fx.CommitReport] = []
        self.owners: dict[tuple[str, str], str] = {}
        """Who was given each partition last: lease/attempt."""
        self.in_hand: dict[str, ev.TaskWork | None] = {}
        """Work granted or assigned to each lease last."""
        self.shown: dict[tuple[str, int | None], str] = {}
        self.generations: dict[str, int] = {}
        self._queue: list[tuple[int, int, object]] = []
        self._numbers = itertools.count()
        self._requests = itertools.count(1)
        self.at(0, ev.EngineUp())
        self.at(0, self._executors_seen())

    # ---- time and network --------------------------------------------------------------------------------------

    def at(self, delay_ms: int, item: object) -> None:
        heapq.heappush(self._queue, (self.now_ms + delay_ms, next(self._numbers), item))

    def send(self, event: ev.Event) -> None:
        """Over the network: late, twice, or never."""
        if self.random.random() < self.faults:
            if self.random.random() < 0.5:
                return
            self.at(self.random.randrange(1, 3_000), event)
        self.at(self.random.randrange(1, 50), event)

    def lose_executor(self) -> None:
        """One of several dies, and everything on it; another one comes after a while."""
        if len(self.executors) < 2:
            return
        lost = self.executors.pop(self.random.randrange(len(self.executors)))
        self.at(self.random.randrange(1, 2_000), self._executors_seen())
        for worker in [worker for worker in self.workers.values() if worker.alive and worker.executor == lost]:
            self._crash(worker)

    def gain_executor(self) -> None:
        """One more is there."""
        self.executors.append(str(self.executors_ever))
        self.executors_ever += 1
        self.at(0, self._executors_seen())

    def loads(self) -> dict[str, int]:
        """How many workers at work each executor has."""
        alive = [worker.executor for worker in self.workers.values() if worker.alive and worker.work is not None]
        return {executor: alive.count(executor) for executor in self.executors}

    def _executors_seen(self) -> ev.ExecutorsSeen:
        return ev.ExecutorsSeen(tuple(ev.Executor(executor, SLOTS) for executor in self.executors))

    def calm(self) -> None:
        self.faults = 0.0

    def run(self, for_ms: int) -> None:
        until = self.now_ms + for_ms
        for _ in range(STEPS_MAX):
            due = self.machine.due_ms()
            head = self._queue[0][0] if self._queue else None
            nearest = min((t for t in (due, head) if t is not None), default=until + 1)
            if nearest > until:
                self.now_ms = until
                return
            self.now_ms = max(self.now_ms, nearest)
            item: object = ev.Tick()
            if head is not None and head <= nearest:
                item = heapq.heappop(self._queue)[2]
            if isinstance(item, Worker):
                self._work(item)
            else:
                self._step(item)  # type: ignore[arg-type]
        raise AssertionError("the world never comes to rest")

    def _step(self, event: ev.Event) -> None:
        for effect in self.machine.step(event, self.now_ms):
            self._carry_out(effect)
        self.check()

    def everything_runs(self, connector: str, tasks: int) -> bool:
        """Whether all tasks show RUNNING, and so does the connector."""
        shown = self.machine.shown(connector)
        if shown is None or shown.connector[0] is not State.RUNNING or len(shown.tasks) != tasks:
            return False
        return all(state is State.RUNNING for state, _ in shown.tasks.values())

    # ---- what must always hold -----------------------------------------------------------------------------------

    def check(self) -> None:
        tasks = [(lease.connector, lease.task) for lease in self.machine.leases()]
        assert len(tasks) == len(set(tasks)), "two live leases for one task"
        splits = [(lease.connector, lease.split) for lease in self.machine.leases() if lease.split]
        assert len(splits) == len(set(splits)), "a split is read twice at once"
        partitions = [
            (lease.connector, partition)
            for lease in self.machine.leases()
            if (work := self.in_hand.get(lease.id)) is not None
            for partition in (work.partitions or (work.work.partitions if work.work else ()))
        ]
        assert len(partitions) == len(set(partitions)), "two live leases read one partition"
        young = [
            lease
            for lease in self.machine.leases()
            if lease.phase is LeasePhase.LAUNCHING
            and lease.deadline_ms - TIMES.launch_ms > self.now_ms - PLACE_HELD_MS_MAX
        ]
        # Those of an executor that is gone meanwhile may go on.
        assert len(young) <= STARTS_MAX * self.executors_ever, "too many start at once"
        moving = 0
        for name in self.machine.connectors():
            book = self.machine.book(name)
            assert book is not None
            assert book.handout.generation >= self.generations.get(name, 0), "generations rise"
            self.generations[name] = book.handout.generation
            for lease in book.handout.leases.values():
                assert lease.generation == book.handout.generation, "no lease of an old generation is live"
                assert book.handout.tasks[lease.task].state in LEASED, "a task with a lease says so"
            moving += sum(task.state is TaskState.MOVING for task in book.handout.tasks.values())
            shown = self.machine.shown(name)
            for task, (state, _) in (shown.tasks if shown else {}).items():
                assert self.shown.get((name, task)) == state.value, "what is shown was published"
        assert moving <= MOVES_AT_ONCE_MAX, "too many move at once"

    def _check_commit(self, effect: fx.CommitReport) -> None:
        lease = next((lease for lease in self.machine.leases() if lease.id == effect.lease), None)
        if lease is not None:  # it may have ended by the same step
            assert effect.generation == lease.generation
        for position in effect.positions:
            key = (effect.connector, position.partition)
            said = json.loads(position.offset or "{}")
            assert said["by"] == self.owners[key], "only whom the partition was given to last may move it"
            assert said["n"] >= self.committed.get(key, 0), "a position moved back"
            self.committed[key] = said["n"]

    # ---- effects -------------------------------------------------------------------------------------------------

    def _carry_out(self, effect: fx.Effect) -> None:
        match effect:
            case fx.LoadPlan():
                self._plan(effect)
            case fx.StartLeases():
                for start in effect.leases:
                    worker = Worker(start.lease, effect.connector, effect.generation, 0)
                    self._open(worker, start.executor)
            case fx.GrantLease():
                self._grant(effect)
            case fx.DrainLease() if self._drained() and self.random.random() >= self.faults:
                for worker in self._of(effect.lease):
                    worker.draining = True
            case fx.FenceLease() if self.random.random() >= self.faults:
                for worker in self._of(effect.lease):
                    if effect.below_attempt is None or worker.attempt < effect.below_attempt:
                        worker.alive = False
            case fx.AssignSplit():
                self.in_hand[effect.lease] = effect.work
                attempt = next(lease.attempt for lease in self.machine.leases() if lease.id == effect.lease)
                for worker in self._of(effect.lease):
                    if worker.attempt != attempt:
                        continue  # signals go to the stream of the newest attempt only
                    if effect.work is None:
                        self._end(worker, ev.EndReason.SPLITS_DONE)
                    else:
                        self._take_up(worker, effect.work)
            case fx.CommitReport():
                self._check_commit(effect)
                self.commits.append(effect)
            case fx.WatchTask():
                self.at(self.random.randrange(100, 5_000), ev.Woken(effect.connector, effect.task))
            case fx.PublishStatus():
                key = (effect.connector, effect.task)
                if effect.state is None:
                    self.shown.pop(key, None)
                else:
                    self.shown[key] = effect.state.value
            case _:
                pass

    def _plan(self, effect: fx.LoadPlan) -> None:
        if self.random.random() < self.faults:
            failure = ev.Failure(ErrorClass.TRANSIENT, "the other system is away")
            self.send(ev.PlanFailed(effect.connector, effect.plan_id, failure))
            return
        result: ev.SourcePlan | ev.SinkPlan
        if effect.spec.kind is ev.Kind.SINK:
            # Partitions come, and topics go: work moves between tasks.
            names = range(self.random.randrange(4), self.random.randrange(5, 12)) if self.faults else range(8)
            result = ev.SinkPlan(tuple(f'{{"p":{n}}}' for n in names), replan_after_ms=7_000)
        else:
            done = {i for i, n in SPLIT_LENGTHS.items() if self.committed.get((effect.connector, split(i)), 0) >= n}
            logs = int(effect.spec.config.get("logs", "0"))
            tasks = tuple(Work(str(n), partitions=(f'{{"log":{n}}}',)) for n in range(logs))
            splits = tuple(
                Work(i, partitions=(split(i),), order_group="g" if i in ("s1", "s2", "s3") else "")
                for i in (SPLIT_LENGTHS if effect.spec.splits else ())
                if i not in done and i not in effect.splits_active
            )
            result = ev.SourcePlan(Plan(tasks, splits, replan_after_ms=20_000))
        # The answer is made now and arrives later, when it may be out of date.
        self.at(self.random.randrange(2_000), ev.Planned(effect.connector, effect.plan_id, result))

    # ---- workers -------------------------------------------------------------------------------------------------

    def _of(self, lease: str) -> Sequence[Worker]:
        return [worker for worker in self.workers.values() if worker.lease == lease and worker.alive]

    def _drained(self) -> bool:
        self.drains += 1
        return True

    def _open(self, worker: Worker, wish: str = "") -> None:
        obeyed = wish in self.executors and self.random.random() >= self.faults
        worker.executor = wish if obeyed else self.random.choice(self.executors)
        self.workers[worker.lease, worker.attempt] = worker
        if self.random.random() < self.faults:
            self._crash(worker)
            return
        self.send(
            ev.LeaseOpening(
                worker.connector,
                worker.lease,
                worker.generation,
                worker.attempt,
                next(self._requests),
                "w",
                worker.executor,
            )
        )

    def _crash(self, worker: Worker) -> None:
        """The process dies: Spark runs the task once more, or the job fails; either may go unheard."""
        worker.alive = False
        if worker.attempt < 3 and self.random.random() < 0.7:
            again = Worker(worker.lease, worker.connector, worker.generation, worker.attempt + 1)
            self._open(again)
        else:
            self.send(ev.LeaseLost(worker.connector, worker.lease, "the worker died"))

    def _grant(self, effect: fx.GrantLease) -> None:
        worker = self.workers.get((effect.lease, effect.attempt))
        if worker is None or not worker.alive or worker.work is not None:
            return
        self.in_hand[effect.lease] = effect.work
        self._take_up(worker, effect.work)
        worker.heard_ms = self.now_ms
        self.at(100, worker)

    def _take_up(self, worker: Worker, work: ev.TaskWork) -> None:
        worker.work = work
        worker.waiting = False
        self.owners[worker.connector, _partition(work)] = f"{worker.lease}/{worker.attempt}"
        worker.position = self.committed.get((worker.connector, _partition(work)), 0)

    def _work(self, worker: Worker) -> None:
        """Half a second of a worker's life."""
        if not worker.alive or worker.work is None:
            return
        # Signs of life of the coordinator: a worker that hears nothing for long stops by itself.
        if self.random.random() >= self.faults:
            worker.heard_ms = self.now_ms
        if self.now_ms - worker.heard_ms > TIMES.silence_ms:
            worker.alive = False
            return
        if self.random.random() < self.faults / 10:
            self._crash(worker)
            return
        if self.random.random() < self.faults / 10 and worker.attempt < 3:
            # Spark lost sight of the executor: another attempt starts while this one goes on.
            self._open(Worker(worker.lease, worker.connector, worker.generation, worker.attempt + 1))
        if self.random.random() < self.faults / 10:
            failed = ev.Failure(ErrorClass.BUG, "it broke")
            self._end(worker, ev.EndReason.FAILED, failed)
            return
        self._progress(worker)

    def _progress(self, worker: Worker) -> None:
        assert worker.work is not None
        if worker.draining:
            self._end(worker, ev.EndReason.DRAINED)
            return
        self.at(500, worker)
        if worker.waiting:
            self._report(worker)
            return
        worker.position += 1
        offset = f'{{"n":{worker.position},"by":"{worker.lease}/{worker.attempt}"}}'
        position = Position(_partition(worker.work), offset)
        if worker.work.work is not None and worker.work.split and worker.position >= SPLIT_LENGTHS[worker.work.work.id]:
            worker.waiting = True
            self._report(worker, positions=(position,), splits_done=(worker.work.work.id,), want_split=True)
            return
        self._report(worker, positions=(position,))
        if not worker.work.split and self.random.random() < self.idles:
            self._end(worker, ev.EndReason.IDLE)

    def _report(self, worker: Worker, **fields: Any) -> None:
        """One stream: reports never overtake one another; a broken one is said again, or the worker dies with it."""
        if self.random.random() < self.faults / 20:
            worker.alive = False
            return
        report = ev.LeaseReported(worker.connector, worker.lease, worker.attempt, worker.position, **fields)
        self.at(1, report)
        if self.random.random() < self.faults:
            self.at(1, report)

    def _end(self, worker: Worker, reason: ev.EndReason, failure: ev.Failure | None = None) -> None:
        worker.alive = False
        self.at(2, ev.LeaseEnded(worker.connector, worker.lease, worker.attempt, reason, failure))


def split(name: str) -> str:
    return f'{{"split":"{name}"}}'


def _partition(work: ev.TaskWork) -> str:
    if work.work is not None:
        return work.work.partitions[0]
    return work.partitions[0]
