"""Several coordinators on one broker: frozen, cut off, killed and started again; all from one seed.

Each has the machine that says who leads and a `World` for its own machine of connectors and its own workers. Positions
are the cluster's: whoever commits, they may move forward only, and only by the lease that was given them last by
anybody. The broker is a group with one partition and a log whose writer a claim fences.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping
from typing import Final

from tests.unit.coordinator.simulation import TIMES, Worker, World

from wherry.contract.errors import ErrorClass
from wherry.coordinator import effects as fx
from wherry.coordinator import events as ev
from wherry.coordinator.membership import Effect, Input, Membership, Phase, due, step

SLICE_MS: Final = 100
SESSION_MS: Final = 6_000
REBALANCE_MS_MAX: Final = 1_500
ANSWER_MS_MAX: Final = 800


Place = tuple[int, int]
"""A member of the group: the node, and how often it has joined."""


class Broker:
    """The group, and the log that only the last claimant writes.

    A place lasts for the session's time after its member's last sign of life, whoever joins meanwhile, and so does the
    partition stay with it; away, the broker counts no time.
    """

    def __init__(self, chance: random.Random) -> None:
        self._chance = chance
        self._seen: dict[Place, int] = {}
        self.owner: Place | None = None
        self.decided = 0
        self._moving_ms: int | None = None
        self.claimant: int | None = None
        self.epoch = 0
        self.away = False

    def beat(self, place: Place, now_ms: int) -> bool:
        """A sign of life; False from a member that is none any more."""
        if place in self._seen:
            self._seen[place] = now_ms
        return place in self._seen

    def join(self, place: Place, now_ms: int) -> None:
        self._seen[place] = now_ms

    def leave(self, place: Place) -> None:
        self._seen.pop(place, None)
        if self.owner == place:
            self.owner = self._moving_ms = None

    def live(self, now_ms: int) -> None:
        if self.away:
            return
        for place, seen_ms in list(self._seen.items()):
            if now_ms - seen_ms > SESSION_MS:
                self.leave(place)
        if self.owner is None and self._seen and self._moving_ms is None:
            self._moving_ms = now_ms + self._chance.randrange(50, REBALANCE_MS_MAX)
        if self.owner is None and self._moving_ms is not None and now_ms >= self._moving_ms and self._seen:
            self.owner, self._moving_ms = self._chance.choice(sorted(self._seen)), None
            self.decided += 1

    def back(self, now_ms: int) -> None:
        """It is there again: the time of every place begins anew."""
        self.away = False
        self._seen = dict.fromkeys(self._seen, now_ms)

    def claim(self, node: int) -> int:
        self.claimant, self.epoch = node, self.epoch + 1
        return self.epoch

    def writes(self, node: int, epoch: int) -> bool:
        """Whether a write to the log is taken."""
        return (node, epoch) == (self.claimant, self.epoch)


class Node(World):
    """One coordinator with the workers it has started."""

    def __init__(self, number: int, broker: Broker, seed: int, connectors: Mapping[str, ev.ConnectorSpec]) -> None:
        super().__init__(seed * 10 + number, faults=0.1)
        self.number, self._broker, self._specs = number, broker, connectors
        self.frozen = self.cut = False
        self.membership = Membership()
        self._epoch = 0
        self._beat_ms = self._contact_ms = 0
        self._joins = 0
        self._place: Place = (number, 0)
        self._told_of = 0
        self._held_ms: int | None = None
        # Of the last place that had the partition, as far as the group has told.
        self._old_place: Place = self._place
        self._member = self._has_partition = False
        self._later: list[tuple[int, Callable[[], None]]] = []
        self._doubts: list[fx.Effect] = []
        self.refused = 0
        self.wrote = 0
        self._join()

    @property
    def may_write(self) -> bool:
        """As `Leadership.may_write`: in the lead, and not just back from a long absence."""
        return self.membership.may_write and self._due(self.now_ms) is None

    @property
    def _cut_off(self) -> bool:
        return self.cut or self._broker.away

    def _due(self, now_ms: int) -> Input | None:
        return due(self.membership, now_ms=now_ms, beat_ms=self._beat_ms, held_ms=self._held_ms, session_ms=SESSION_MS)

    def live(self, until_ms: int) -> None:
        """A slice of time. A frozen one does nothing; what it missed comes all at once, in an order of chance."""
        if self.frozen:
            return
        acts = [lambda: self.run(until_ms - self.now_ms), lambda: self._membership_thread(until_ms)]
        if self.random.random() < 0.5:
            acts.reverse()
        if until_ms - self.now_ms > SLICE_MS:
            self.now_ms = until_ms - 1  # it wakes up; its leases' reports of long ago are still in its ears
        for act in acts:
            act()
        while self._doubts and not self._is_in_doubt:
            self._do(self._doubts.pop(0))
        if self.may_write and not self._cut_off:
            self._write()

    def _write(self) -> None:
        self.wrote += 1
        if not self._broker.writes(self.number, self._epoch):
            self.refused += 1
            self._take(Input.FENCED)

    def _membership_thread(self, now_ms: int) -> None:
        found = self._due(now_ms)
        silent = now_ms - self._beat_ms > SESSION_MS / 2
        self._beat_ms = now_ms
        if found is not None:
            self._take(found)
        if silent:
            return  # what the group has to say comes with the next poll only
        due_acts = [act for at_ms, act in self._later if at_ms <= now_ms]
        self._later = [(at_ms, act) for at_ms, act in self._later if at_ms > now_ms]
        for act in due_acts:
            act()
        if self._cut_off:
            if self._member and now_ms - self._contact_ms > SESSION_MS:
                self._lost()
            return
        if self._member and not self._broker.beat(self._place, now_ms):
            self._lost()
        if not self._member:
            self._join()
        self._contact_ms = now_ms
        if self._told_of == self._broker.decided or self._broker.owner is None:
            return
        self._told_of = self._broker.decided
        mine = self._broker.owner == self._place
        if mine or not self._has_partition:
            self._held_ms, self._old_place = None, self._place
        if mine != self._has_partition or not mine:
            taken, self._has_partition = self._has_partition and not mine, mine
            self._take(Input.GIVEN if mine else Input.TAKEN if taken else Input.JOINED)

    def _lost(self) -> None:
        self._member = False
        if self._has_partition:
            self._has_partition = False
            self._held_ms = self.now_ms
            self._take(Input.LOST)

    def _join(self) -> None:
        """As a new member; the group tells who has the partition when it has decided next."""
        self._member = True
        self._contact_ms = self.now_ms
        self._joins += 1
        self._place = (self.number, self._joins)
        self._told_of = self._broker.decided
        self._broker.join(self._place, self.now_ms)

    def _take(self, given: Input, claim: int | None = None) -> None:
        self.membership, effects = step(self.membership, given, claim=claim)
        for effect in effects:
            self._follow(effect, self.membership.claim)

    def _soon(self, act: Callable[[], None]) -> None:
        """Late, and now and then twice."""
        for _ in range(1 + (self.random.random() < self.faults)):
            self._later.append((self.now_ms + self.random.randrange(1, ANSWER_MS_MAX), act))

    def _follow(self, effect: Effect, claim: int) -> None:
        match effect:
            case Effect.CLAIM:
                self._soon(lambda: self._claim(claim))
            case Effect.ASK:
                self._soon(lambda: self._ask(claim))
            case Effect.LEAD:
                # The driver hands it to another thread: it may come after the lead is lost again.
                self._soon(lambda: self._lead(claim))
            case Effect.DEPOSE:
                self.at(0, ev.LeadershipLost())
            case Effect.REJOIN:
                self._broker.leave(self._place)
                self._has_partition = self._member = False

    def _claim(self, claim: int) -> None:
        if claim != self.membership.claim or self.membership.phase is not Phase.CLAIMING:
            return
        if self._cut_off or self.random.random() < self.faults:
            self._take(Input.CLAIM_FAILED, claim)
            return
        self._epoch = self._broker.claim(self.number)
        self._take(Input.CLAIMED, claim)

    def _ask(self, claim: int) -> None:
        if claim != self.membership.claim:
            return
        holds = self._broker.owner == self._old_place
        undecided = self._held_ms is not None and self.membership.phase is Phase.DOUBTING
        if self._cut_off or (not holds and self._broker.owner is None and undecided):
            self._later.append((self.now_ms + ANSWER_MS_MAX, lambda: self._ask(claim)))
            return
        if holds and self._held_ms is not None:
            self._held_ms = self.now_ms
        self._take(Input.CONFIRMED if holds else Input.REFUTED, claim)

    def _lead(self, claim: int) -> None:
        if self.membership.phase is Phase.DOUBTING and claim == self.membership.claim:
            self._later.append((self.now_ms + SLICE_MS, lambda: self._lead(claim)))  # it waits for its first write
            return
        if self.membership.phase is not Phase.LEADING:
            return
        if self.random.random() < self.faults:
            self._take(Input.LEAD_FAILED, claim)
            return
        self.at(0, ev.LeadershipGiven(1_000_000 + self.now_ms))
        for name, spec in self._specs.items():
            self.at(0, ev.ConnectorPut(name, spec, restored=True))

    # ---- what is the cluster's -------------------------------------------------------------------------------------

    def share(self, other: World) -> None:
        """Have positions, and who may move them, in common."""
        self.committed, self.owners = other.committed, other.owners

    def _carry_out(self, effect: fx.Effect) -> None:
        if isinstance(effect, fx.CommitReport | fx.GrantLease) and (self._doubts or self._is_in_doubt):
            self._doubts.append(effect)  # as `Leadership.may_write_soon`: a doubt is waited for, in order
            return
        self._do(effect)

    @property
    def _is_in_doubt(self) -> bool:
        return self.membership.phase in (Phase.LEADING, Phase.DOUBTING) and not self.may_write

    def _do(self, effect: fx.Effect) -> None:
        if isinstance(effect, fx.CommitReport) and (self._cut_off or not self.may_write):
            failure = ev.Failure(ErrorClass.FENCED, "another one leads")
            self.at(1, ev.CommitFailed(effect.connector, effect.lease, failure))
            return
        if isinstance(effect, fx.GrantLease) and (self._cut_off or not self.may_write):
            for worker in self._of(effect.lease):
                worker.alive = False
            return
        super()._carry_out(effect)

    def kill(self) -> None:
        """The process dies, its workers with it; another one of its name starts at once, later it joins."""
        for worker in self.workers.values():
            worker.alive = False

    def working(self) -> list[Worker]:
        return [worker for worker in self.workers.values() if worker.alive and worker.work is not None]


class Cluster:
    """Nodes, broker and time."""

    def __init__(self, seed: int, size: int, connectors: Mapping[str, ev.ConnectorSpec]) -> None:
        self.random = random.Random(seed)
        self.seed, self.connectors = seed, connectors
        self.now_ms = 0
        self.broker = Broker(self.random)
        self._made = 0
        self._several_ms = 0
        self.several_ms_max = 0
        """For how long at a time more than one has thought it might write."""
        self.nodes: list[Node] = []
        for _ in range(size):
            self.add()

    def add(self) -> Node:
        """A new coordinator."""
        node = Node(self._made, self.broker, self.seed, self.connectors)
        self._made += 1
        node.now_ms = node._beat_ms = node._contact_ms = self.now_ms
        node.at(0, ev.EngineUp())
        if self.nodes:
            node.share(self.nodes[0])
        self.nodes.append(node)
        return node

    def replace(self, node: Node) -> None:
        """SIGKILL, and a new process in its place."""
        node.kill()
        self.add().share(node)
        self.nodes.remove(node)

    def run(self, for_ms: int) -> None:
        until_ms = self.now_ms + for_ms
        while self.now_ms < until_ms:
            self.now_ms += SLICE_MS
            self.broker.live(self.now_ms)
            for node in self.nodes:
                node.live(self.now_ms)
            several = sum(node.may_write and not node.frozen for node in self.nodes) > 1
            self._several_ms = self._several_ms + SLICE_MS if several else 0
            self.several_ms_max = max(self.several_ms_max, self._several_ms)
            self.check()

    def check(self) -> None:
        leading = [node.number for node in self.nodes if node.may_write and not (node.frozen or node.cut)]
        assert len(leading) <= 1, f"seed {self.seed}: {leading} lead at once"

    def leaders(self) -> list[Node]:
        return [node for node in self.nodes if node.membership.phase is Phase.LEADING]


assert TIMES.silence_ms > SESSION_MS, "leases outlive a change of leaders, so that fencing is needed"
